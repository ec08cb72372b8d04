"""`varitext evaluate`: the perplexity of a model of documents, the ranking and calibration of one of answers."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from varitext.cli.answer_input import questions_for
from varitext.cli.checks import check_new_file, refuse_options
from varitext.cli.data_settings import QuestionSettings
from varitext.cli.inputs import documents_for, training_documents
from varitext.cli.options import (
    AnswerColumn,
    AsJson,
    DataDir,
    Device,
    IdColumn,
    LabelColumn,
    ModelFolder,
    Part,
    Protocol,
    QuestionColumn,
    RightFrom,
    Samples,
    TextColumn,
    Threads,
)
from varitext.cli.printing import (
    log,
    print_answer_evaluation,
    print_document_evaluation,
    print_json,
    print_record,
)
from varitext.errors import InputError
from varitext.loading import load_any

if TYPE_CHECKING:
    from varitext.answers.ranker import AnswerRanker
    from varitext.corpora import Documents, QuestionAnswers
    from varitext.documents.model import DocumentModel

EvaluatedCorpus = Annotated[
    str | None,
    typer.Argument(metavar="CORPUS", help="Documents or questions; else the test part of its own corpus."),
]
RunFile = Annotated[Path | None, typer.Option(metavar="FILE", help="Answers: write the ranking as a TREC run file.")]
QrelsFile = Annotated[Path | None, typer.Option(metavar="FILE", help="Answers: write the labels as a TREC qrels file.")]


def evaluate(
    folder: ModelFolder,
    corpus: EvaluatedCorpus = None,
    samples: Samples = None,
    part: Part = None,
    threads: Threads = None,
    device: Device = "cpu",
    text_column: TextColumn = None,
    full: Annotated[
        bool,
        typer.Option("--full", help="Documents: also topics, retrieval, classification and completion."),
    ] = False,
    protocol: Protocol = None,
    question_column: QuestionColumn = None,
    answer_column: AnswerColumn = None,
    label_column: LabelColumn = None,
    id_column: IdColumn = None,
    min_relevance: RightFrom = None,
    run: RunFile = None,
    qrels: QrelsFile = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Held-out perplexity, or the quality of a ranking.

    Documents: the lower bound and the tighter importance-weighted one, per document and per corpus, beside the unigram
    model; the KL apart; a 95 % interval over documents. Documents without any word of the model's vocabulary are left
    out and counted. With --full the corpus needs a train part beside the one that is evaluated: training documents say
    which words belong together, and are what retrieval and classification learn from if both parts have labels.

    Answers: MAP and MRR of the questions that the protocol counts, with 95 % intervals over questions; ties count in
    expectation over their orders, so that the order of a file can never help. Log loss, Brier score and calibration
    error of the same pairs; how often the top answer is wrong, among all questions and among the surer half. TREC files
    hold the questions that count, so that trec_eval finds the same MAP where scores are distinct.

    \b
    Examples:
      varitext evaluate models/news --full
      varitext evaluate models/mine unseen.csv --text-column body --json
      varitext evaluate models/answers
      varitext evaluate models/answers wikiqa --protocol both --run answers.run --qrels answers.qrels
    """
    from varitext.documents.model import DocumentModel

    for path in filter(None, (run, qrels)):
        check_new_file(path)
    columns = QuestionSettings(question_column, answer_column, label_column, id_column, min_relevance)
    model = load_any(folder, threads, device)
    if isinstance(model, DocumentModel):
        of_answers = {"protocol": protocol, "run": run, "qrels": qrels} | vars(columns)
        refuse_options(of_answers, f"{folder} holds a model of documents")
        source = _Source(corpus, part, data_dir, text_column, f"varitext evaluate {folder} FILE")
        return (_evaluate_fully if full else _evaluate_documents)(model, source, samples, folder, as_json)
    refuse_options({"text_column": text_column, "full": full}, f"{folder} holds a ranker of answers")
    hint = f"varitext evaluate {folder} FILE"
    questions = questions_for(model, corpus, part, data_dir, hint, columns.columns())
    protocol = protocol or _default_protocol(questions)
    _evaluate_answers(model, questions, protocol, samples, folder, as_json)
    _write_trec_files(model, questions, protocol, samples, run, qrels)


def _default_protocol(questions: "QuestionAnswers") -> str:
    from varitext.corpora import default_protocol

    return default_protocol(questions.name)


class _Source(NamedTuple):
    """The documents to evaluate on, as they were typed."""

    corpus: str | None
    part: str | None
    data_dir: Path | None
    text_column: str | None
    hint: str

    def documents(self, model: "DocumentModel") -> "Documents":
        return documents_for(model, *self)


def _evaluate_documents(
    model: "DocumentModel", given: _Source, samples: int | None, folder: Path, as_json: bool
) -> None:
    documents = given.documents(model)
    repeated = _repeated_documents(model, given.corpus, documents, given.data_dir, given.text_column)
    record = model.perplexity_record(documents) if samples is None else model.perplexity_record(documents, samples)
    source = {"corpus": documents.name, "part": documents.part, "corpus_sha256": documents.sha256}
    held_out = _is_held_out(model, documents)
    if not held_out:
        log(f"note: the model was fitted on {documents.name}: this is not a held-out perplexity")
    if repeated:
        log(f"note: {repeated:,} of {len(documents):,} documents are among the training documents word for word")
    if as_json:
        of_fit = {"dev_perplexity": model.fitted_.dev_perplexity, "n_dev_documents": model.fitted_.n_dev_documents}
        known = {"held_out": held_out, "n_repeated_documents": repeated, "model": str(folder)}
        return print_json(record.as_dict() | source | of_fit | known)
    if held_out:
        return print_record(record, f"{documents.name} ({documents.part})")
    n_dev = model.fitted_.n_dev_documents
    print(f"held-out perplexity {model.fitted_.dev_perplexity:.1f}, of {n_dev} documents that the fit held out")
    print_record(record, f"{documents.name} (fitted on these)")


def _repeated_documents(
    model: "DocumentModel",
    corpus: str | None,
    documents: "Documents",
    data_dir: Path | None,
    text_column: str | None,
) -> int | None:
    """How many documents the train part of the model's own corpus has, too; None where that is not at hand."""
    from varitext.corpora.repeats import count_repeats
    from varitext.documents.input import without_empty

    try:
        train = training_documents(model, corpus, documents, data_dir, text_column, "")
    except InputError:
        return None
    if (model.fitted_.corpus or {}).get("sha256") != train.sha256:
        return None
    return count_repeats(without_empty(model.count(documents)), without_empty(model.count(train)))


def _evaluate_fully(model: "DocumentModel", given: _Source, samples: int | None, folder: Path, as_json: bool) -> None:
    from varitext.documents.evaluation import evaluate_documents
    from varitext.documents.model import PREDICTION_SAMPLES
    from varitext.runtime.devices import running_on

    test, columns = given.documents(model), (given.data_dir, given.text_column)
    train = training_documents(model, given.corpus, test, *columns, given.hint)
    with running_on(model.threads):
        found = evaluate_documents(model, train, test, samples=samples or PREDICTION_SAMPLES)
    if as_json:
        source = {"corpus": test.name, "part": test.part, "corpus_sha256": test.sha256}
        return print_json(found.as_dict() | source | {"train_sha256": train.sha256, "model": str(folder)})
    print_record(found.perplexity, f"{test.name} ({test.part})")
    print_document_evaluation(found)


def _evaluate_answers(
    ranker: "AnswerRanker",
    questions: "QuestionAnswers",
    protocol: str,
    samples: int | None,
    folder: Path,
    as_json: bool,
) -> None:
    record = ranker.evaluate(questions, protocol, samples)
    held_out = _is_held_out(ranker, questions)
    if not held_out:
        log(f"note: the model was fitted on {questions.name}: these are not results on held-out questions")
    if as_json:
        return print_json(record.as_dict() | {"held_out": held_out, "model": str(folder)})
    print_answer_evaluation(record)


def _is_held_out(model: Any, corpus: "Documents | QuestionAnswers") -> bool:
    fitted_on = model.fitted_.corpus or {}
    return (fitted_on.get("sha256"), fitted_on.get("part")) != (corpus.sha256, corpus.part)


def _write_trec_files(
    ranker: "AnswerRanker",
    questions: "QuestionAnswers",
    protocol: str,
    samples: int | None,
    run: Path | None,
    qrels: Path | None,
) -> None:
    import numpy as np

    from varitext.evaluation.ranking import counted_rows
    from varitext.evaluation.trec_files import one_word_ids, write_qrels, write_run

    if run is None and qrels is None:
        return
    counted = counted_rows(questions.labels, questions.groups, protocol)
    question_ids = np.array(one_word_ids([question.id for question in questions.questions]))[questions.groups]
    candidate_ids = np.concatenate(
        [one_word_ids([candidate.id for candidate in question.candidates]) for question in questions.questions]
    )
    ids = question_ids[counted], candidate_ids[counted]
    if run is not None:
        write_run(run, *ids, ranker.predict_proba(questions, samples)[counted])
        log(f"run in {run}")
    if qrels is not None:
        write_qrels(qrels, *ids, questions.labels[counted])
        log(f"qrels in {qrels}")
