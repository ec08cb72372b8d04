"""`varitext evaluate`: the held-out perplexity of a model of documents, or the quality of a ranker of answers."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from varitext.cli import options
from varitext.cli.input import documents_for, own_corpus, questions_for, trec_ids
from varitext.cli.options import option, refuse_options
from varitext.cli.printing import check_new_file, log, print_json, with_samples
from varitext.errors import InputError
from varitext.loading import load_any

if TYPE_CHECKING:
    from varitext.answers.baselines import Baseline
    from varitext.answers.ranker import AnswerRanker
    from varitext.answers.ranking import AnswerEvaluation
    from varitext.corpora import Documents, QuestionAnswers
    from varitext.documents.evaluation import DocumentEvaluation
    from varitext.documents.model import DocumentModel
    from varitext.evaluation.perplexity import PerplexityRecord

    Load = Callable[..., Documents]


EvaluatedCorpus = Annotated[
    str | None,
    typer.Argument(metavar="CORPUS", help="Documents or questions (default: the test part of the model's own corpus)."),
]
Full = Annotated[bool, option("Documents: also coherence, retrieval, classification and completion.", None, "--full")]
RunFile = Annotated[Path | None, option("Answers: write the ranking as a TREC run file.", "FILE")]
QrelsFile = Annotated[Path | None, option("Answers: write the labels as a TREC qrels file.", "FILE")]


def evaluate(
    folder: options.ModelFolder,
    corpus: EvaluatedCorpus = None,
    samples: options.Samples = None,
    part: options.Part = None,
    threads: options.Threads = None,
    device: options.Device = "cpu",
    trust: options.Trust = None,
    text_column: options.TextColumn = None,
    full: Full = False,
    protocol: options.Protocol = None,
    question_column: options.QuestionColumn = None,
    answer_column: options.AnswerColumn = None,
    label_column: options.LabelColumn = None,
    id_column: options.IdColumn = None,
    min_relevance: options.MinRelevance = None,
    count_column: options.CountColumn = None,
    run: RunFile = None,
    qrels: QrelsFile = None,
    data_dir: options.DataDir = None,
    as_json: options.AsJson = False,
) -> None:
    """Compute held-out perplexity, or the quality of a ranking.

    Documents: the lower bound and the tighter importance-weighted bound, per document and per corpus, beside the
    unigram model; the KL; a 95 % interval over documents. Documents without a known word are left out and counted.
    --full needs a corpus with a train part: coherence counts words in the training documents, and retrieval and
    classification learn from them if both parts have labels.

    Answers: MAP, MRR and precision at 1 of the questions that the protocol counts, with 95 % intervals over questions,
    beside three baselines that need no fit: word count, BM25 and MiniLM, if its extra is installed. Ties count as the
    expectation over their orders, so the order of the file has no effect. Also log loss, Brier score and
    calibration error of the pairs, and how often the top answer is wrong, among all questions and among the more
    certain half. TREC files hold the counted questions, so trec_eval finds the same MAP if scores are distinct.

    \b
    Examples:
      varitext evaluate models/news --full
      varitext evaluate models/mine unseen.csv --text-column body --json
      varitext evaluate models/answers
      varitext evaluate models/answers wikiqa --protocol both --run answers.run --qrels answers.qrels
    """
    from varitext.corpora import default_protocol
    from varitext.documents.model import PREDICTION_SAMPLES, DocumentModel

    for path in filter(None, (run, qrels)):
        check_new_file(path)
    columns = options.QuestionSettings(
        question_column, answer_column, label_column, id_column, min_relevance, count_column
    )
    model, hint = load_any(folder, threads, device, trust), f"varitext evaluate {folder} FILE"
    if isinstance(model, DocumentModel):
        of_answers = {"protocol": protocol, "run": run, "qrels": qrels} | vars(columns)
        refuse_options(of_answers, f"{folder} holds a model of documents")
        load = partial(_documents, model, corpus, data_dir, text_column, hint)
        result = (_full_evaluation if full else _perplexity)(model, load, part, samples or PREDICTION_SAMPLES)
    else:
        refuse_options({"text_column": text_column, "full": full}, f"{folder} holds a ranker of answers")
        questions = questions_for(model, corpus, part, data_dir, hint, columns.columns())
        protocol = protocol or default_protocol(questions.name)
        result = _ranking_quality(model, questions, protocol, samples)
        _write_trec_files(model, questions, protocol, samples, run, qrels)
    print_json(result.record | {"model": str(folder)}) if as_json else result.show()


class Result(NamedTuple):
    record: dict[str, Any]  # for JSON
    show: Callable[[], None]


# Documents


def _documents(
    model: "DocumentModel",
    corpus: str | None,
    data_dir: Path | None,
    text_column: str | None,
    hint: str,
    part: str | None,
    beside: "Documents | None" = None,
) -> "Documents":
    """A part of the corpus; with `beside`, refuse one that is not another part of the same corpus."""
    from varitext.corpora import parts

    if beside is not None:
        named = corpus or own_corpus(model, "documents", hint)
        if beside.part == part or not {part, beside.part} <= set(parts(named)):
            where = f"{named} ({beside.part})"
            raise InputError(f"{where}: --full needs a corpus with a train part and another part to evaluate")
    return documents_for(model, corpus, part, data_dir, text_column, hint)


def _perplexity(model: "DocumentModel", load: "Load", part: str | None, samples: int) -> Result:
    documents, fitted = load(part), model.fitted_
    repeated = _repeated_documents(model, documents, load)
    record = model.perplexity_record(documents, samples)
    held_out = _is_held_out(model, documents)
    if not held_out:
        log(f"note: the model was fitted on {documents.name}: this is not a held-out perplexity")
    if repeated:
        log(f"note: {repeated:,} of {len(documents):,} documents are exact copies of training documents")

    def show() -> None:
        if held_out:
            return print_record(record, f"{documents.name} ({documents.part})")
        held = f"of {fitted.n_dev_documents} documents that the fit held out"
        print(f"held-out perplexity {fitted.dev_perplexity:.1f}, {held}")
        print_record(record, f"{documents.name} (fitted on these)")

    of_fit = {"dev_perplexity": fitted.dev_perplexity, "n_dev_documents": fitted.n_dev_documents}
    known = {"held_out": held_out, "n_repeated_documents": repeated}
    return Result(record.as_dict() | _source(documents) | of_fit | known, show)


def _repeated_documents(model: "DocumentModel", documents: "Documents", load: "Load") -> int | None:
    """The number of documents that are also in the train part of the model's own corpus; None if that is not here."""
    from varitext.corpora.repeats import count_repeats
    from varitext.documents.input import without_empty

    try:
        training = load("train", documents)
    except InputError:
        return None
    if (model.fitted_.corpus or {}).get("sha256") != training.sha256:
        return None
    return count_repeats(without_empty(model.count(documents)), without_empty(model.count(training)))


def _full_evaluation(model: "DocumentModel", load: "Load", part: str | None, samples: int) -> Result:
    from varitext.documents.evaluation import evaluate_documents
    from varitext.runtime.devices import running_on

    test = load(part)
    training = load("train", test)
    with running_on(model.threads):
        found = evaluate_documents(model, training, test, samples=samples)

    def show() -> None:
        print_record(found.perplexity, f"{test.name} ({test.part})")
        _print_document_evaluation(found)

    return Result(found.as_dict() | _source(test) | {"train_sha256": training.sha256}, show)


def _source(documents: "Documents") -> dict[str, Any]:
    return {"corpus": documents.name, "part": documents.part, "corpus_sha256": documents.sha256}


def _is_held_out(model: Any, corpus: "Documents | QuestionAnswers") -> bool:
    fitted_on = model.fitted_.corpus or {}
    return (fitted_on.get("sha256"), fitted_on.get("part")) != (corpus.sha256, corpus.part)


def print_record(record: "PerplexityRecord", corpus: str) -> None:
    low, high = record.per_document_interval_95
    nats = record.kl_per_word + record.reconstruction_per_word
    rows = [
        ("per-document perplexity", record.per_document_perplexity, f"95 % interval {low:.1f} to {high:.1f}"),
        ("importance-weighted", record.iwae_per_document_perplexity, f"tighter bound, {record.n_samples} samples"),
        ("unigram model", record.unigram_per_document_perplexity, f"ratio {record.ratio_to_unigram:.3f}"),
        ("per-corpus perplexity", record.corpus_perplexity, f"importance-weighted {record.iwae_corpus_perplexity:.1f}"),
        ("KL", record.kl_per_document, f"nats per document; {record.kl_per_word:.3f} of {nats:.3f} per word"),
    ]
    if record.kind != "bound":  # then there is no tighter bound, and no KL
        rows = [rows[0], rows[2], ("per-corpus perplexity", record.corpus_perplexity, record.description)]
    if record.standard_error:
        rows.insert(1, ("standard error", record.standard_error, "of the estimate itself"))
    left_out = f" ({record.n_empty_documents} without a known word left out)" if record.n_empty_documents else ""
    likelihood = "" if record.likelihood == "multinomial" else f"; likelihood: {record.likelihood}"
    print(f"{corpus}: {record.n_documents} documents{left_out}, {record.n_tokens} words{likelihood}")
    for name, value, note in rows:
        print(f"  {name:24} {value:8.1f}   {note}")


def _print_document_evaluation(found: "DocumentEvaluation") -> None:
    """The rows below the perplexity."""
    completion, npmi, c_v, diversity = found.completion, found.npmi, found.c_v, found.diversity
    ratio = f"hidden half given the other, {completion.estimator}; ratio to unigram {completion.ratio_to_unigram:.3f}"
    window = f"windows of {npmi.window} words" if npmi.window else "whole documents"
    rows = [
        ("completion perplexity", f"{completion.per_document_perplexity:8.1f}", ratio),
        ("NPMI", f"{npmi.coherence:8.3f}", f"coherence of {npmi.n_topics} latent dimensions, {window}"),
    ]
    if c_v:
        rows.append(("C_V", f"{c_v.coherence:8.3f}", f"coherence of the same, windows of {c_v.window} words"))
    per_dimension = f"share among the first {diversity.words_per_topic} of each latent dimension"
    rows.append(("unique words", f"{diversity.unique_words:8.3f}", per_dimension))
    if retrieval := found.retrieval:
        chance = f"of the first 2 % retrieved; by chance {retrieval.by_chance:.3f}"
        rows.append(("precision", f"{retrieval.precision_at_2_percent:8.3f}", chance))
    if classes := found.classification:
        note = f"macro F1 {classes.macro_f1:.3f}; most frequent label {classes.majority_accuracy:.3f}"
        rows.append(("classification accuracy", f"{classes.accuracy:8.3f}", note))
    for name, value, note in rows:
        print(f"  {name:24} {value}   {note}")


# Answers


def _ranking_quality(
    ranker: "AnswerRanker", questions: "QuestionAnswers", protocol: str, samples: int | None
) -> Result:
    record = ranker.evaluate(questions, protocol, samples)
    held_out = _is_held_out(ranker, questions)
    if not held_out:
        log(f"note: the model was fitted on {questions.name}: these are not results on held-out questions")
    if (calibrated := ranker.fitted_.calibrated) and calibrated.sha256 == questions.sha256:
        log(f"note: the model was calibrated on {questions.name}: its probabilities are too good here")

    def show() -> None:
        _print_answer_evaluation(record)
        _print_baselines(record, ranker.fitted_.corpus.get("name"))

    return Result(record.as_dict() | {"held_out": held_out}, show)


def _print_answer_evaluation(record: "AnswerEvaluation") -> None:
    ranking, calibration, uncertainty = record.ranking, record.calibration, record.uncertainty
    maps, mrrs = ranking.map_interval_95, ranking.mrr_interval_95
    nominal = f"of the ranks under known labels; nominal {uncertainty.nominal_coverage:.4f}"
    rows = [
        ("MAP", ranking.map, f"95 % interval {maps[0]:.3f} to {maps[1]:.3f}; ties: {ranking.ties}"),
        ("MRR", ranking.mrr, f"95 % interval {mrrs[0]:.3f} to {mrrs[1]:.3f}"),
        ("P@1", ranking.precision_at_1, "the first candidate is right"),
        *([] if ranking.ndcg is None else [("nDCG", ranking.ndcg, "of grades as gains, as trec_eval does")]),
        ("log loss", calibration.log_loss, f"nats per pair{with_samples(record.n_samples)}"),
        ("Brier score", calibration.brier, f"{calibration.share_right:.1%} of the pairs are right"),
        ("calibration error", calibration.ece, f"expected, over {calibration.ece_binning} bins"),
        ("top answer wrong", calibration.risk, f"{calibration.risk_of_surer_half:.4f} in the more certain half"),
        ("rank coverage", uncertainty.rank_interval_coverage, nominal),
    ]
    if no_answer := record.no_answer:
        share, error = f"{no_answer.share_without_answer:.4f} of all questions have none", no_answer.none_ece
        chance = f"calibration error {error:.4f}, by chance {no_answer.none_ece_by_chance:.4f}"
        rows.append(("P(no right answer)", no_answer.mean_probability_none, f"{share}; {chance}"))
    if record.n_unfamiliar:
        unlike = "questions, of all, look unlike those of the fit: their probabilities are widened"
        rows.append(("unfamiliar", record.n_unfamiliar, unlike))
    left_out = f" ({ranking.n_questions_left_out} left out)" if ranking.n_questions_left_out else ""
    print(f"{record.corpus} ({record.part}): {ranking.n_questions} questions{left_out}, {ranking.n_pairs} pairs")
    print(f"  {ranking.protocol}: {ranking.questions}")
    for name, value, note in rows:
        print(f"  {name:20} {value:8.4f}   {note}" if isinstance(value, float) else f"  {name:20} {value:8}   {note}")
    groups = (f"{one.question_word} {one.map:.3f} ({one.n_questions})" for one in record.by_question_word)
    print(f"  MAP by question word: {', '.join(groups)}")


TITLES = {"word_count": "word count", "bm25": "BM25", "minilm": "MiniLM, no fit"}
SUBJECTS = {"word_count": "Word counts alone rank", "bm25": "BM25 alone ranks", "minilm": "MiniLM without a fit ranks"}
SIGNIFICANT = 0.05


def _print_baselines(record: "AnswerEvaluation", fitted_on: str | None) -> None:
    """The ranker and the baselines, one line each, and a sentence if one of them is at least as good."""
    from varitext.answers.baselines import best_baseline

    print("  baselines, with a paired randomisation test of MAP over questions:")
    print(f"    {'':16}     MAP     MRR     P@1  difference  p")
    rows = [("this ranker", record.ranking, "")]
    rows += [(TITLES[one.name], one.ranking, _against(one)) for one in record.baselines if one.ranking]
    for name, one, test in rows:
        print(f"    {name:16}  {one.map:.4f}  {one.mrr:.4f}  {one.precision_at_1:.4f}{test}")
    for baseline in record.baselines:
        if baseline.left_out:
            print(f"    {TITLES[baseline.name]} left out: {baseline.left_out}")
    best = best_baseline(record.baselines)
    if best is not None and best.test is not None and best.test.difference <= 0:
        print(_advice(best, record.baselines, fitted_on, record.corpus))


def _against(baseline: "Baseline") -> str:
    assert baseline.test is not None
    return f"  {baseline.test.difference:+10.4f}  {baseline.test.p_value:.2g}"


def _advice(best: "Baseline", baselines: "Sequence[Baseline]", fitted_on: str | None, corpus: str) -> str:
    """What to do about a baseline that ranks at least as well."""
    assert best.test is not None
    better = "better" if best.test.p_value < SIGNIFICANT else "as well"
    cause = "" if fitted_on in (None, corpus) else "this ranker was fitted on other text; "
    unmeasured = "`minilm` or " if any(one.name == "minilm" and one.left_out for one in baselines) else ""
    use = f"{unmeasured}`{'minilm' if best.name == 'minilm' else 'bm25'}`"
    fit = "more questions" if fitted_on == corpus else "some of your own questions"
    subject = SUBJECTS[best.name]
    return f"{subject} these questions {better} (p = {best.test.p_value:.2g}): {cause}use {use}, or fit on {fit}."


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
    from varitext.evaluation.trec_files import write_qrels, write_run

    if run is None and qrels is None:
        return
    counted = counted_rows(questions.labels, questions.groups, protocol)
    question_ids, candidate_ids = (np.array(column)[counted] for column in trec_ids(questions))
    if run is not None:
        write_run(run, question_ids, candidate_ids, ranker.predict_proba(questions, samples)[counted])
        log(f"run in {run}")
    if qrels is not None:
        write_qrels(qrels, question_ids, candidate_ids, questions.labels[counted])
        log(f"qrels in {qrels}")
