"""The commands: plain typed functions, one each; their docstrings are the help.

Heavy modules are imported inside the commands, so that `--help` answers at once.
"""

import dataclasses
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import varitext
from varitext.cli.asking import (
    check_device,
    check_model,
    check_place_for_model,
    documents_for,
    known_word,
    load_documents,
    load_model,
    seconds_of,
)
from varitext.cli.printing import (
    document_entry,
    print_corpus,
    print_json,
    print_neighbours,
    print_record,
    say,
)
from varitext.errors import InputError, TrainingDiverged

if TYPE_CHECKING:
    from varitext.document_model import DocumentModel

app = typer.Typer(
    name="varitext",
    help="Neural variational inference for text: topics, document vectors with uncertainty, honest perplexity.",
    epilog="Start with: varitext demo",
    rich_markup_mode=None,  # plain help keeps the examples as they are written
    pretty_exceptions_enable=False,
    add_completion=False,
)
data_app = typer.Typer(help="Which corpora are known, and where each was found.", rich_markup_mode=None)
app.add_typer(data_app, name="data")

Corpus = Annotated[
    str,
    typer.Argument(metavar="CORPUS", help="A known corpus (see `varitext data list`), or a file or folder of yours."),
]
ModelFolder = Annotated[Path, typer.Argument(metavar="DIR", help="A model folder, as `varitext fit --out` writes it.")]
DataDir = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Folder of corpora; else $VARITEXT_DATA, then the cache.")
]
TextColumn = Annotated[
    str | None, typer.Option(metavar="NAME", help="Which column of a .jsonl, .csv or .parquet file has the text.")
]
Part = Annotated[
    str | None, typer.Option(metavar="NAME", help="train or test, if the documents are divided; test if left out.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print exactly one JSON object and nothing else.")]
Threads = Annotated[int | None, typer.Option(min=1, max=1024, metavar="N", help="CPU threads; all cores if left out.")]


class Updates(StrEnum):
    joint = "joint"
    alternating = "alternating"


@app.callback(invoke_without_command=True)
def varitext_command(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
) -> None:
    if version:
        print(f"varitext {varitext.__version__}")
    elif context.invoked_subcommand is None:
        print(context.get_help())


@data_app.callback(invoke_without_command=True)
def data(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


@data_app.command("list")
def data_list(data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List the known corpora, where each was found, and its checksum. Uses no network.

    \b
    Example:
      varitext data list --json
    """
    from varitext.corpora import describe

    corpora = describe(data_dir)
    if as_json:
        return print_json({"corpora": [dataclasses.asdict(entry) for entry in corpora]})
    for entry in corpora:
        print_corpus(entry)


@data_app.command("fetch")
def data_fetch(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name from the list.")], data_dir: DataDir = None
) -> None:
    """Find or download a corpus, check it, and keep it in the cache.

    \b
    Example:
      varitext data fetch 20newsgroups
    """
    from varitext.corpora import fetch

    print_corpus(fetch(name, data_dir))


@app.command()
def fit(
    corpus: Corpus,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the model folder goes; must not exist yet.")],
    model: Annotated[str, typer.Option(metavar="NAME", help="Which model.")] = "nvdm",
    preset: Annotated[
        str, typer.Option(metavar="NAME", help="Settings by name: recommended; nvdm also has that of its paper: paper.")
    ] = "recommended",
    latent_dim: Annotated[int, typer.Option(min=1, metavar="N", help="Latent dimensions (topics).")] = 50,
    seed: Annotated[
        int,
        typer.Option(min=0, max=2**32 - 1, metavar="N", help="Same seed, same bits, on one machine and thread count."),
    ] = 0,
    epochs: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Passes over the documents; else by their number.")
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Documents per update; else by their number.")
    ] = None,
    learning_rate: Annotated[
        float | None, typer.Option(metavar="RATE", help="The highest of the run; else the preset's.")
    ] = None,
    updates: Annotated[Updates | None, typer.Option(help="Together, or in turn as in the paper.")] = None,
    time_limit: Annotated[
        str | None, typer.Option(metavar="TIME", help="For example 60s, 10m or 2h; the schedule adapts.")
    ] = None,
    threads: Threads = None,
    device: Annotated[str, typer.Option(metavar="NAME", help="cpu or cuda.")] = "cpu",
    vocabulary_size: Annotated[
        int | None, typer.Option(min=2, metavar="N", help="Most words to keep, for corpora of text.")
    ] = None,
    processes: Annotated[int, typer.Option(min=1, max=256, metavar="N", help="Processes that count words.")] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint in DIR.")] = False,
    text_column: TextColumn = None,
    data_dir: DataDir = None,
) -> None:
    """Fit a model to a corpus and write the model folder.

    Files of yours: a folder of .txt; a .jsonl, .csv or .parquet with a text column; counts as .npz or .feat. All but
    .npz may be gzipped. A folder with train and test (sub-folders, or files such as train.jsonl) is divided in parts.

    Some documents are held out to choose when to stop. Ctrl-C keeps the best model so far; the same command with
    --resume goes on, and ends with the same bits as a run that was never stopped.

    \b
    Examples:
      varitext fit 20newsgroups --out models/news
      varitext fit articles.csv --text-column body --latent-dim 20 --out models/mine
    """
    from varitext.document_model import DocumentModel
    from varitext.progress import show_progress
    from varitext.store import CHECKPOINT
    from varitext.text import VocabularyRules

    check_place_for_model(out, resume)
    check_model(model, preset)
    check_device(device)
    limit = seconds_of(time_limit)
    documents = load_documents(corpus, "train", data_dir, text_column)
    rules = VocabularyRules() if vocabulary_size is None else VocabularyRules(size=vocabulary_size)
    estimator = DocumentModel(
        model,
        latent_dim,
        preset=preset,
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        updates=updates and updates.value,
        time_limit=limit,
        vocabulary_rules=rules,
        processes=processes,
        threads=threads,
        device=device,
        seed=seed,
    )
    try:
        with show_progress() as progress:
            estimator.fit(documents, progress=progress, checkpoint=out / CHECKPOINT, resume=resume)
    except KeyboardInterrupt:
        if not hasattr(estimator, "stopped_"):  # a second Ctrl-C: at once
            raise
        _save(estimator, out, corpus, text_column)
        say("the same command with --resume goes on from here")
        raise
    except TrainingDiverged as error:
        _save(estimator, out, corpus, text_column)
        (out / CHECKPOINT).unlink(missing_ok=True)
        raise InputError(f"{error}; model in {out}") from None
    except OSError as error:
        if not (out / CHECKPOINT).exists():
            raise
        raise InputError(f"{error.filename}: {error.strerror}; the same command with --resume goes on") from None
    _save(estimator, out, corpus, text_column)
    (out / CHECKPOINT).unlink(missing_ok=True)


@app.command()
def evaluate(
    folder: ModelFolder,
    corpus: Annotated[
        str | None, typer.Argument(metavar="CORPUS", help="Documents; else the test part of its own corpus.")
    ] = None,
    samples: Annotated[int, typer.Option(min=1, max=10_000, metavar="N", help="Draws of h per document.")] = 20,
    part: Part = None,
    threads: Threads = None,
    text_column: TextColumn = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Held-out perplexity, beside the unigram model's.

    The lower bound and the tighter importance-weighted one, per document and per corpus; the KL apart; a 95 % interval
    over documents; with --json also the hash of the files. Documents without any word of the model's vocabulary are
    left out and counted.

    \b
    Examples:
      varitext evaluate models/news
      varitext evaluate models/mine unseen.csv --text-column body --json
    """
    model = load_model(folder, threads)
    documents = documents_for(model, corpus, part, data_dir, text_column, f"varitext evaluate {folder} FILE")
    record = model.perplexity_record(documents, samples)
    source = {"corpus": documents.name, "part": documents.part, "corpus_sha256": documents.sha256}
    fitted_on = model.corpus_ or {}
    held_out = (fitted_on.get("sha256"), fitted_on.get("part")) != (documents.sha256, documents.part)
    if not held_out:
        say(f"note: the model was fitted on {documents.name}: this is not a held-out perplexity")
    if as_json:
        return print_json(record.as_dict() | source | {"held_out": held_out, "model": str(folder)})
    print_record(record, f"{documents.name} ({documents.part})")


@app.command()
def transform(
    folder: ModelFolder,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Documents: a file or folder of yours, or a known corpus.")
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="vectors.parquet, .npy or .csv")],
    with_std: Annotated[bool, typer.Option("--with-std", help="Standard deviations beside the means.")] = False,
    part: Part = None,
    threads: Threads = None,
    text_column: TextColumn = None,
    data_dir: DataDir = None,
) -> None:
    """Write one vector per document.

    Rows are documents in their order; columns are the posterior mean and, with --with-std, its spread. A document
    without any word of the model's vocabulary gets the prior: mean 0, standard deviation 1 for nvdm.

    \b
    Example:
      varitext transform models/mine articles.csv --text-column body --with-std --out vectors.parquet
    """
    from varitext.export import check_vector_file, write_vectors

    check_vector_file(out)
    model = load_model(folder, threads)
    counts = model.count(load_documents(file, part, data_dir, text_column))
    posterior = model.posterior(counts)
    write_vectors(out, posterior.mean, posterior.std if with_std else None)
    if unknown := int((counts.getnnz(1) == 0).sum()):
        say(f"note: {unknown} documents have no known word: they get the prior")
    say(f"{len(posterior.mean)} vectors of {posterior.mean.shape[1]} dimensions in {out}")


@app.command()
def topics(
    folder: ModelFolder,
    words: Annotated[int, typer.Option(min=1, metavar="N", help="Words per topic.")] = 10,
    as_json: AsJson = False,
) -> None:
    """The topics as ranked words.

    Those that carry most come first. The second column is what a topic carries: its KL, in nats per document.

    \b
    Example:
      varitext topics models/news --words 8
    """
    found = load_model(folder).topics(words)
    if as_json:
        return print_json({"topics": [topic._asdict() for topic in found]})
    for topic in found:
        print(f"{topic.number:4}  {topic.kl:5.2f} nats  {' '.join(topic.words)}")


@app.command()
def similar(
    folder: ModelFolder,
    word: Annotated[str | None, typer.Option(metavar="WORD", help="A word of the model's vocabulary.")] = None,
    text: Annotated[str | None, typer.Option(metavar="TEXT", help="A text; finds the most similar documents.")] = None,
    among: Annotated[
        str | None, typer.Option(metavar="CORPUS", help="Documents to search; else the corpus it was fitted on.")
    ] = None,
    n: Annotated[int, typer.Option("-n", min=1, metavar="N", help="How many.")] = 5,
    text_column: TextColumn = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Words like a word, or documents like a text.

    The figure is the cosine of their vectors: 1 is the same direction, 0 unrelated.

    \b
    Examples:
      varitext similar models/news --word israel
      varitext similar models/news --text "the shuttle reached orbit" -n 3
      varitext similar models/mine --text "late delivery" --among complaints.jsonl --json
    """
    if (word is None) == (text is None):
        raise InputError("say either --word or --text")
    model = load_model(folder)
    if word is not None:
        found = model.similar_words(known_word(model, word), n)
        return print_neighbours([{"similarity": value, "word": name} for name, value in found], as_json)
    if not model.count([text]).nnz:
        raise InputError("the text has no word that the model knows")
    part = "train" if among is None else None
    documents = documents_for(model, among, part, data_dir, text_column, "--among FILE")
    neighbours = model.similar_documents([text], documents, n)[0]
    print_neighbours([document_entry(documents, entry.index, entry.similarity) for entry in neighbours], as_json)


@app.command()
def report(
    folder: ModelFolder,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file; an earlier one is replaced.")] = Path(
        "report.html"
    ),
    corpus: Annotated[
        str | None, typer.Option(metavar="CORPUS", help="Documents to show; else the test part of its corpus.")
    ] = None,
    part: Part = None,
    threads: Threads = None,
    text_column: TextColumn = None,
    data_dir: DataDir = None,
) -> None:
    """Write a report as one HTML file that opens offline.

    Figures, a map of the documents, topics and training curves. Needs the extra: pip install 'varitext[report]'.

    \b
    Examples:
      varitext report models/news --out news.html
      varitext report models/mine --corpus unseen.csv --text-column body --out mine.html
    """
    from varitext.files import check_can_write
    from varitext.report import write_corpus_report

    if out.suffix not in (".html", ".htm"):
        raise InputError(f"{out}: a report is an .html file")
    check_can_write(out)
    model = load_model(folder, threads)
    documents = documents_for(model, corpus, part, data_dir, text_column, "--corpus FILE")
    write_corpus_report(model, documents, out)
    say(f"report in {out}")


@app.command()
def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the model and the report.")] = Path("demo"),
    threads: Threads = None,
    data_dir: DataDir = None,
) -> None:
    """The sixty-second tour on 20 Newsgroups.

    Fits a model, shows topics, nearest words and perplexity, and writes a report with pictures.

    \b
    Example:
      varitext demo --out demo
    """
    from varitext.demo import run_demo

    run_demo(out, threads, data_dir)


_STOPPED = {
    "finished": "all epochs",
    "early": "stopped early, no longer getting better",
    "time": "time limit reached",
    "interrupted": "interrupted",
}


def _save(estimator: "DocumentModel", out: Path, corpus: str, text_column: str | None) -> None:
    """Write the model folder; it remembers the corpus as it was typed, so that `evaluate` finds its test part."""
    estimator.corpus_ |= {"name": corpus, "text_column": text_column}
    estimator.save(out, overwrite=True)
    if estimator.stopped_ != "diverged":  # that error has one line of its own
        say(
            f"{estimator.n_training_documents_} documents, {len(estimator.vocabulary_)} words, "
            f"{estimator.fit_seconds_:.0f} s ({_STOPPED[estimator.stopped_]}); "
            f"held-out perplexity {estimator.dev_perplexity_:.1f}; model in {out}"
        )
