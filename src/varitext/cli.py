"""The command line: plain typed functions, one per command. Results go to standard output, the rest to standard error.

Exit codes: 0 done; 2 bad input, with one line that says what and where; 130 interrupted (the best model is kept).
Heavy modules are imported inside the commands, so that `--help` answers at once.
"""

import dataclasses
import json
import re
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from varitext.errors import InputError

if TYPE_CHECKING:
    from varitext.corpora import CorpusStatus, Documents
    from varitext.document_model import DocumentModel
    from varitext.evaluation.perplexity import PerplexityRecord

app = typer.Typer(
    name="varitext",
    help="Neural variational inference for text: topics, document vectors with uncertainty, honest perplexity.",
    epilog="Start with: varitext demo",
    no_args_is_help=True,
    add_completion=False,
)
data_app = typer.Typer(help="Which corpora are known, and where each was found.", no_args_is_help=True)
app.add_typer(data_app, name="data")

Corpus = Annotated[str, typer.Argument(help="A known corpus (see `varitext data list`), or a file or folder of yours.")]
ModelFolder = Annotated[Path, typer.Argument(metavar="DIR", help="A model folder, as `varitext fit --out` writes it.")]
DataDir = Annotated[Path | None, typer.Option(help="Folder of corpora; else $VARITEXT_DATA, then the cache.")]
TextColumn = Annotated[str | None, typer.Option(help="Which column of a .jsonl, .csv or .parquet file has the text.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print exactly one JSON object and nothing else.")]
Threads = Annotated[int | None, typer.Option(min=1, help="CPU threads; all cores if left out.")]


@data_app.command("list")
def data_list(data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List the known corpora, where each was found, and its checksum."""
    from varitext.corpora import describe

    corpora = describe(data_dir)
    if as_json:
        return _print_json({"corpora": [dataclasses.asdict(entry) for entry in corpora]})
    for entry in corpora:
        _print_corpus(entry)


@data_app.command("fetch")
def data_fetch(name: Annotated[str, typer.Argument(help="A name from the list.")], data_dir: DataDir = None) -> None:
    """Find or download a corpus, check it, and keep it in the cache."""
    from varitext.corpora import fetch

    _print_corpus(fetch(name, data_dir))


@app.command()
def fit(
    corpus: Corpus,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the model folder goes; must not exist yet.")],
    model: Annotated[str, typer.Option(help="Which model.")] = "nvdm",
    preset: Annotated[str, typer.Option(help="recommended, or paper: as Miao, Yu and Blunsom.")] = "recommended",
    latent_dim: Annotated[int, typer.Option(min=1, help="Latent dimensions (topics).")] = 50,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same bits, on one machine and thread count.")] = 0,
    epochs: Annotated[int | None, typer.Option(min=1, help="Passes over the documents; else by their number.")] = None,
    batch_size: Annotated[int | None, typer.Option(min=1)] = None,
    learning_rate: Annotated[float | None, typer.Option(min=0)] = None,
    updates: Annotated[str | None, typer.Option(help="joint, or alternating as in the paper.")] = None,
    time_limit: Annotated[str | None, typer.Option(help="For example 60s, 10m or 2h; the schedule adapts.")] = None,
    threads: Threads = None,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    vocabulary_size: Annotated[int | None, typer.Option(min=2, help="Most words to keep, for corpora of text.")] = None,
    processes: Annotated[int, typer.Option(min=1, help="Processes that count words.")] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint in DIR.")] = False,
    text_column: TextColumn = None,
    data_dir: DataDir = None,
) -> None:
    """Fit a model to a corpus and write the model folder.

    Some documents are held out to choose when to stop. Ctrl-C keeps the best model so far; --resume goes on.

    Example: varitext fit 20newsgroups --out models/news
    """
    from varitext.document_model import DocumentModel
    from varitext.progress import show_progress
    from varitext.store import CHECKPOINT, refuse_to_overwrite
    from varitext.text import VocabularyRules

    if not resume:
        refuse_to_overwrite(out)
    limit = _seconds(time_limit)
    documents = _load(corpus, "train", data_dir, text_column)
    rules = VocabularyRules() if vocabulary_size is None else VocabularyRules(size=vocabulary_size)
    estimator = DocumentModel(
        model,
        latent_dim,
        preset=preset,
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        updates=updates,
        time_limit=limit,
        vocabulary_rules=rules,
        processes=processes,
        threads=threads,
        device=device,
        seed=seed,
    )
    with show_progress() as progress:
        estimator.fit(documents, progress=progress, checkpoint=out / CHECKPOINT, resume=resume)
    estimator.corpus_ |= {"text_column": text_column}
    estimator.save(out, overwrite=True)
    _say(
        f"{estimator.n_training_documents_} documents, {len(estimator.vocabulary_)} words, "
        f"{estimator.fit_seconds_:.0f} s ({estimator.stopped_}); held-out perplexity {estimator.dev_perplexity_:.1f}; "
        f"model in {out}"
    )
    if estimator.stopped_ == "interrupted":
        raise typer.Exit(130)
    (out / CHECKPOINT).unlink(missing_ok=True)


@app.command()
def evaluate(
    folder: ModelFolder,
    corpus: Annotated[str | None, typer.Argument(help="Documents; else the test part of its own corpus.")] = None,
    samples: Annotated[int, typer.Option(min=1, help="Draws of h per document.")] = 20,
    part: Annotated[str, typer.Option(help="Which part of the corpus.")] = "test",
    threads: Threads = None,
    text_column: TextColumn = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Held-out perplexity: bound, importance-weighted bound, KL apart, unigram, 95 % interval, file hashes."""
    model = _model(folder, threads)
    documents = _documents_for(model, corpus, part, data_dir, text_column)
    record = model.perplexity_record(documents, samples)
    if as_json:
        source = {"corpus": documents.name, "part": documents.part, "corpus_sha256": documents.sha256}
        return _print_json(record.as_dict() | source | {"model": str(folder)})
    _print_record(record, f"{documents.name} ({documents.part})")


@app.command()
def transform(
    folder: ModelFolder,
    file: Annotated[str, typer.Argument(help="Documents: a file or folder of yours, or a known corpus.")],
    out: Annotated[Path, typer.Option(help="vectors.parquet, .npy or .csv")],
    with_std: Annotated[bool, typer.Option("--with-std", help="Standard deviations beside the means.")] = False,
    part: Annotated[str, typer.Option(help="Which part of a known corpus.")] = "test",
    threads: Threads = None,
    text_column: TextColumn = None,
    data_dir: DataDir = None,
) -> None:
    """One vector per document: the posterior mean, and its spread if asked."""
    from varitext.export import check_vector_format, write_vectors

    check_vector_format(out)
    model = _model(folder, threads)
    documents = _load(file, part, data_dir, text_column)
    posterior = model.posterior(documents)
    write_vectors(out, posterior.mean, posterior.std if with_std else None)
    _say(f"{len(posterior.mean)} vectors of {posterior.mean.shape[1]} dimensions in {out}")


@app.command()
def topics(
    folder: ModelFolder,
    words: Annotated[int, typer.Option(min=1, help="Words per topic.")] = 10,
    as_json: AsJson = False,
) -> None:
    """The topics as ranked words, those that carry most of the documents first."""
    found = _model(folder).topics(words)
    if as_json:
        return _print_json({"topics": [topic._asdict() for topic in found]})
    for topic in found:
        print(f"{topic.number:4}  {topic.kl:5.2f} nats  {' '.join(topic.words)}")


@app.command()
def similar(
    folder: ModelFolder,
    word: Annotated[str | None, typer.Option(help="A word of the model's vocabulary.")] = None,
    text: Annotated[str | None, typer.Option(help="A text; finds the most similar documents.")] = None,
    among: Annotated[str | None, typer.Option(help="Documents to search; else the corpus it was fitted on.")] = None,
    n: Annotated[int, typer.Option("-n", min=1, help="How many.")] = 5,
    text_column: TextColumn = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """The words nearest to a word, or the documents nearest to a text."""
    if (word is None) == (text is None):
        raise InputError("say either --word or --text")
    model = _model(folder)
    if word is not None:
        neighbours = [{"word": name, "similarity": value} for name, value in model.similar_words(word, n)]
        return _print_neighbours(neighbours, "word", as_json)
    documents = _documents_for(model, among, "train", data_dir, text_column)
    if not model.count([text]).nnz:
        raise InputError("the text has no word that the model knows")
    found = model.similar_documents([text], documents, n)[0]
    neighbours = [_document_entry(documents, entry.index, entry.similarity) for entry in found]
    _print_neighbours(neighbours, "text" if documents.texts is not None else "index", as_json)


@app.command()
def report(
    folder: ModelFolder,
    out: Annotated[Path, typer.Option(help="The HTML file to write.")] = Path("report.html"),
    corpus: Annotated[str | None, typer.Option(help="Documents to show; else the test part of its corpus.")] = None,
    text_column: TextColumn = None,
    data_dir: DataDir = None,
) -> None:
    """A self-contained HTML report: figures, a map of the documents, topics, training curves. Opens offline."""
    from varitext.report import write_corpus_report

    model = _model(folder)
    write_corpus_report(model, _documents_for(model, corpus, "test", data_dir, text_column), out)
    _say(f"report in {out}")


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the model and the report.")] = Path("demo"),
    threads: Threads = None,
    data_dir: DataDir = None,
) -> None:
    """The sixty-second tour on 20 Newsgroups: fit, topics, nearest words, perplexity, a report with pictures."""
    from varitext.demo import run_demo

    run_demo(out, threads, data_dir)


def main() -> None:
    """Run the command line; everything a user can put right is one line on standard error and exit code 2."""
    warnings.showwarning = lambda message, *_, **__: _say(f"note: {message}")
    try:
        sys.exit(app(standalone_mode=False) or 0)
    except InputError as error:
        _fail(str(error))
    except OSError as error:
        _fail(f"{error.filename or 'a file'}: {error.strerror or error}")
    except KeyboardInterrupt:
        _say("varitext: interrupted")
        sys.exit(130)
    except Exception as error:
        if not hasattr(error, "format_message"):  # typer's own errors about the words of a command have it
            raise
        _fail(error.format_message())


# Inside


def _print_corpus(status: "CorpusStatus") -> None:
    print(f"{status.name}\n  {status.description}\n  {status.where}")
    if status.sha256:
        print(f"  sha256 {status.sha256}")


def _print_record(record: "PerplexityRecord", corpus: str) -> None:
    low, high = record.per_document_interval_95
    nats = record.kl_per_word + record.reconstruction_per_word
    rows = [
        ("per-document perplexity", record.per_document_perplexity, f"95 % interval {low:.1f} to {high:.1f}"),
        ("importance-weighted", record.iwae_per_document_perplexity, f"tighter bound, {record.n_samples} samples"),
        ("unigram model", record.unigram_per_document_perplexity, f"ratio {record.ratio_to_unigram:.3f}"),
        ("per-corpus perplexity", record.corpus_perplexity, f"importance-weighted {record.iwae_corpus_perplexity:.1f}"),
        ("KL", record.kl_per_document, f"nats per document; {record.kl_per_word:.3f} of {nats:.3f} per word"),
    ]
    print(f"{corpus}: {record.n_documents} documents, {record.n_tokens} words")
    for name, value, note in rows:
        print(f"  {name:24} {value:8.1f}   {note}")


def _model(folder: Path, threads: int | None = None) -> "DocumentModel":
    from varitext.document_model import DocumentModel

    return DocumentModel.load(folder).set_params(threads=threads, device="cpu")


def _load(corpus: str, part: str, data_dir: Path | None, text_column: str | None) -> "Documents":
    from varitext.corpora import load

    return load(corpus, part, data_dir=data_dir, text_column=text_column)


def _documents_for(
    model: "DocumentModel", corpus: str | None, part: str, data_dir: Path | None, text_column: str | None
) -> "Documents":
    """The documents named, or the part of the corpus that the model was fitted on."""
    if corpus is not None:
        return _load(corpus, part, data_dir, text_column)
    if not model.corpus_:
        raise InputError("the model does not say which corpus it was fitted on: name one")
    return _load(model.corpus_["name"], part, data_dir, text_column or model.corpus_.get("text_column"))


def _document_entry(documents: "Documents", index: int, similarity: float) -> dict[str, Any]:
    entry: dict[str, Any] = {"index": index, "similarity": similarity}
    if documents.labels is not None:
        entry["label"] = documents.labels[index]
    if documents.texts is not None:
        entry["text"] = _first_words(documents.texts[index])
    return entry


def _first_words(text: str, length: int = 100) -> str:
    line = " ".join(text[: 5 * length].split())
    return line if len(line) <= length else line[:length].rsplit(" ", 1)[0] + " ..."


def _print_neighbours(neighbours: list[dict[str, Any]], column: str, as_json: bool) -> None:
    if as_json:
        return _print_json({"similar": neighbours})
    for entry in neighbours:
        print(f"{entry['similarity']:6.3f}  {entry.get('label', '')}  {entry[column]}".replace("    ", "  "))


def _seconds(duration: str | None) -> float | None:
    if duration is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|m|h)?", duration.strip())
    if not match or float(match[1]) == 0:
        raise InputError(f"--time-limit {duration!r} is not a duration such as 60s, 10m or 2h")
    return float(match[1]) * {"s": 1, "m": 60, "h": 3600, None: 1}[match[2]]


def _print_json(value: dict[str, Any]) -> None:
    print(json.dumps(value, ensure_ascii=False))


def _say(message: str) -> None:
    print(message, file=sys.stderr)


def _fail(message: str) -> None:
    _say(f"varitext: {' '.join(message.split())}")
    sys.exit(2)
