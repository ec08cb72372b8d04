"""`varitext compare`: two rankers on the same questions, or models of documents on the same documents."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from varitext.cli.fit_seeds import seed_folders
from varitext.cli.input import documents_for, questions_for
from varitext.cli.options import (
    AsJson,
    DataDir,
    Device,
    Part,
    Protocol,
    Samples,
    TextColumn,
    Threads,
    Trust,
    refuse_options,
)
from varitext.cli.printing import log, print_json
from varitext.errors import InputError
from varitext.loading import load_any, load_document_model, load_ranker

if TYPE_CHECKING:
    import numpy as np

    from varitext.answers.ranker import AnswerRanker
    from varitext.answers.ranking import AnswerEvaluation
    from varitext.corpora import Documents
    from varitext.documents.model import DocumentModel
    from varitext.evaluation.perplexity import DocumentComparison
    from varitext.evaluation.ranking import RankingComparison


def compare(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR DIR... [CORPUS]",
            help="Model folders: two rankers (or minilm or bm25, which need no fit), or two or more models of "
            "documents. Then a corpus (default: the test part of the corpus that they were fitted on).",
        ),
    ],
    samples: Samples = None,
    part: Part = None,
    protocol: Protocol = None,
    text_column: TextColumn = None,
    threads: Threads = None,
    device: Device = "cpu",
    trust: Trust = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Compare rankers on the same questions, or models of documents on the same documents.

    Rankers: a paired randomisation test. p is the probability of a difference in MAP (or MRR) at least as large if the
    two models' results are swapped at random, question by question. A small p means more than chance in the choice of
    questions. It does not account for the training seed: fit several of each to see its effect.

    Documents: log-likelihood per word (the bound) of every document, each model against the first: the mean difference,
    a 95 % bootstrap interval over documents, and the same test over documents. All models need the same vocabulary.
    Of a folder fitted with --seeds, the mean over all of its seeds is compared.

    \b
    Examples:
      varitext compare models/nasm models/attention
      varitext compare models/answers minilm
      varitext compare models/nvdm models/dcm models/gsm 20newsgroups-nvdm
    """
    from varitext.documents.model import PREDICTION_SAMPLES, DocumentModel

    models, corpus = _models_and_corpus(folders)
    if isinstance(load_any(models[0], threads, device, trust), DocumentModel):
        refuse_options({"protocol": protocol}, f"{models[0]} holds a model of documents")
        fits = [[load_document_model(one, threads, device, trust) for one in seed_folders(each)] for each in models]
        documents = _documents(fits, models, corpus, part, data_dir, text_column)
        compared = _compare_documents(fits, models, documents, samples or PREDICTION_SAMPLES)
        return print_json(compared.as_dict()) if as_json else compared.show()
    refuse_options({"text_column": text_column}, f"{models[0]} holds a ranker of answers")
    if len(models) != 2:
        raise InputError(f"{len(models)} rankers: two are compared at a time")
    rankers = [load_ranker(folder, threads, device, trust) for folder in models]
    _compare_rankers(rankers, models, corpus, part, protocol, samples, data_dir, as_json)


def _models_and_corpus(typed: Sequence[Path]) -> tuple[list[Path], str | None]:
    """The last one is a corpus if it comes after two others and is not a model itself."""
    from varitext.models.answers import ANSWER_MODELS

    if len(typed) < 2:
        raise InputError(f"only {typed[0]} was named: varitext compare DIR DIR [CORPUS] needs two models")
    *models, last = typed
    is_model = str(last) in ANSWER_MODELS or (last / "config.json").is_file()
    return (list(typed), None) if len(typed) == 2 or is_model else (models, str(last))


# Documents


class ComparedDocuments(NamedTuple):
    documents: "Documents"
    folders: Sequence[Path]
    bounds: "list[np.ndarray]"  # of each folder, log p(X) / N or its bound, [seeds, D]
    kinds: list[str]  # what each of them is: bound, exact or estimate
    differences: "list[DocumentComparison]"  # of each folder but the first, against it

    @property
    def perplexities(self) -> list[float]:
        import numpy as np

        return [float(np.exp(-each.mean())) for each in self.bounds]

    def as_dict(self) -> dict[str, Any]:
        models = [
            {"model": str(folder), "per_document_perplexity": perplexity, "kind": kind, "n_seeds": len(bounds)}
            for folder, perplexity, kind, bounds in zip(
                self.folders, self.perplexities, self.kinds, self.bounds, strict=True
            )
        ]
        for model, one in zip(models[1:], self.differences, strict=True):
            model |= one._asdict()
        corpus = {"corpus": self.documents.name, "part": self.documents.part, "corpus_sha256": self.documents.sha256}
        return corpus | {"n_documents": self.bounds[0].shape[1], "models": models}

    def show(self) -> None:
        print(f"{self.documents.name} ({self.documents.part}): {self.bounds[0].shape[1]:,} documents")
        width = max(len(_name(folder, bounds)) for folder, bounds in zip(self.folders, self.bounds, strict=True))
        print(f"  {'':{width}}  perplexity  nats per word  95 % interval          p")
        for place, (folder, bounds) in enumerate(zip(self.folders, self.bounds, strict=True)):
            row = f"  {_name(folder, bounds):{width}}  {self.perplexities[place]:10.1f}"
            if place:
                one = self.differences[place - 1]
                low, high = one.interval_95
                row += f"  {one.difference:+13.4f}  {low:+.4f} to {high:+.4f}  {one.p_value:.2g}"
            print(row)
        print(f"  differences from {self.folders[0]}, positive is better; paired over documents")
        if len(set(self.kinds)) > 1:
            said = ", ".join(f"{folder}: {kind}" for folder, kind in zip(self.folders, self.kinds, strict=True))
            log(f"note: bounds are compared with other values of log p(X) ({said})")


def _name(folder: Path, bounds: "np.ndarray") -> str:
    return f"{folder} ({len(bounds)} seeds)" if len(bounds) > 1 else str(folder)


def _documents(
    fits: "list[list[DocumentModel]]",
    folders: Sequence[Path],
    corpus: str | None,
    part: str | None,
    data_dir: Path | None,
    text_column: str | None,
) -> "Documents":
    """The documents to compare on; refused if the models differ in their words, or were fitted on these documents."""
    hint = f"varitext compare {' '.join(map(str, folders))} CORPUS"
    first = fits[0][0].fitted_
    for folder, (model, *_) in zip(folders, fits, strict=True):
        words = model.fitted_.vocabulary.words
        if set(words) != set(first.vocabulary.words):
            raise InputError(
                f"{folder} has another vocabulary ({len(words):,} words) than {folders[0]}: "
                "perplexities of different words cannot be compared. Fit both on the same counts"
            )
    names = {model.fitted_.corpus["name"] for model, *_ in fits if model.fitted_.corpus}
    if corpus is None and len(names) > 1:
        raise InputError(f"the models were fitted on {' and '.join(sorted(names))}: name documents, {hint}")
    documents = documents_for(fits[0][0], corpus, part, data_dir, text_column, hint)
    for folder, (model, *_) in zip(folders, fits, strict=True):
        if (model.fitted_.corpus or {}).get("sha256") == documents.sha256:
            log(f"note: {folder} was fitted on {documents.name} ({documents.part}): these are not held-out documents")
    return documents


def _compare_documents(
    fits: "list[list[DocumentModel]]", folders: Sequence[Path], documents: "Documents", samples: int
) -> ComparedDocuments:
    import numpy as np

    from varitext.evaluation.perplexity import compare_documents

    bounds = [np.stack([model.bounds_per_word(documents, samples) for model in models]) for models in fits]
    kinds = [models[0].fitted_.network.estimate_kind.kind for models in fits]
    differences = [compare_documents(bounds[0], each) for each in bounds[1:]]
    return ComparedDocuments(documents, folders, bounds, kinds, differences)


# Rankers


def _compare_rankers(
    rankers: "list[AnswerRanker]",
    folders: Sequence[Path],
    corpus: str | None,
    part: str | None,
    protocol: str | None,
    samples: int | None,
    data_dir: Path | None,
    as_json: bool,
) -> None:
    from varitext.corpora import default_protocol
    from varitext.evaluation.ranking import compare_rankings

    hint = f"varitext compare {folders[0]} {folders[1]} CORPUS"
    fitted_on = {ranker.fitted_.corpus["name"]: ranker for ranker in rankers if ranker.fitted_.corpus}
    if corpus is None and len(fitted_on) > 1:
        raise InputError(f"the models were fitted on {' and '.join(fitted_on)}: name questions, {hint}")
    questions = questions_for([*fitted_on.values(), *rankers][0], corpus, part, data_dir, hint)
    chosen = protocol or default_protocol(questions.name)
    records = [ranker.evaluate(questions, chosen, samples, baselines=False) for ranker in rankers]
    comparison = compare_rankings(records[0].ranking, records[1].ranking)
    if not as_json:
        return _print_comparison(records, comparison, folders)
    tests = {
        measure: {"first": getattr(records[0].ranking, measure), "second": getattr(records[1].ranking, measure)}
        | getattr(comparison, measure)._asdict()
        for measure in comparison._fields
    }
    names = ("protocol", "n_questions", "n_pairs", "corpus", "part", "corpus_sha256")
    shared = {name: value for name, value in records[0].as_dict().items() if name in names}
    shared["n_samples"] = max(record.n_samples for record in records)  # one, for a model without a latent variable
    print_json(tests | shared | {"models": [str(folder) for folder in folders]})


def _print_comparison(
    records: Sequence["AnswerEvaluation"], comparison: "RankingComparison", folders: Sequence[Path]
) -> None:
    first, second = (record.ranking for record in records)
    print(f"{records[0].corpus} ({records[0].part}): {first.n_questions} questions, {first.protocol}")
    width = max(12, *(len(str(folder)) for folder in folders))
    print(f"       {folders[0]!s:>{width}}  {folders[1]!s:>{width}}  difference  p")
    for name, test in zip(("MAP", "MRR"), comparison, strict=True):
        values = (getattr(record, name.lower()) for record in (first, second))
        columns = "  ".join(f"{value:{width}.4f}" for value in values)
        print(f"  {name}  {columns}  {test.difference:+10.4f}  {test.p_value:.2g}")
    drawn = "all" if comparison.map.exact else f"{comparison.map.n_assignments:,} random"
    print(f"  paired randomisation test over questions, {drawn} assignments")
