"""`varitext calibrate`: probabilities for a new domain from some labelled questions, or for any ranker's scores."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from varitext.cli import options
from varitext.cli.options import option, refuse_options
from varitext.cli.printing import check_table_file, log, print_json, write_table
from varitext.errors import InputError
from varitext.files import refuse_to_overwrite
from varitext.loading import load_ranker

if TYPE_CHECKING:
    from varitext.answers.ranker import AnswerRanker
    from varitext.answers.recalibration import ProbabilityQuality
    from varitext.corpora.own_scores import CandidateScores
    from varitext.evaluation.conformal import HeldOutQuestions

PRECISIONS = (0.5, 0.7, 0.8, 0.9)  # that are printed

Folder = Annotated[
    Path | None, typer.Argument(metavar="DIR", help="A ranker's model folder, or one that needs no fit: minilm, bm25.")
]
Questions = Annotated[str | None, typer.Argument(metavar="QUESTIONS", help="Labelled questions: file or corpus.")]
ScoresFile = Annotated[
    Path | None, option("Scores of another ranker: a table with question_id, score and label.", "FILE")
]
RunFile = Annotated[Path | None, option("Scores of another ranker: a TREC run, with --qrels.", "FILE")]
QrelsFile = Annotated[Path | None, option("Labels for --run: a TREC qrels file.", "FILE")]
ScoreColumn = Annotated[str | None, option("With --scores: column of the score (default: 'score').", "NAME")]
OutFolder = Annotated[Path | None, option("Folder for the calibrated model (default: DIR itself).", "DIR")]


def calibrate(
    folder: Folder = None,
    questions: Questions = None,
    scores: ScoresFile = None,
    run: RunFile = None,
    qrels: QrelsFile = None,
    out: OutFolder = None,
    part: options.Part = None,
    question_column: options.QuestionColumn = None,
    answer_column: options.AnswerColumn = None,
    label_column: options.LabelColumn = None,
    id_column: options.IdColumn = None,
    score_column: ScoreColumn = None,
    min_relevance: options.MinRelevance = None,
    threads: options.Threads = None,
    device: options.Device = "cpu",
    trust: options.Trust = None,
    data_dir: options.DataDir = None,
    as_json: options.AsJson = False,
) -> None:
    """Refit probabilities on some 50 labelled questions, in seconds, without refitting the network.

    The order of rankings stays. Prints log loss and calibration errors before and after, cross-validated over the
    questions, and thresholds of abstention (`varitext rank --abstain-below`). Questions without a right answer should
    be as frequent as in use: P(none) is learned from them.

    With --scores or --run, any ranker's scores get probabilities: `varitext rank DIR --scores FILE --out FILE`, or
    --run, applies them to new scores.

    \b
    Examples:
      varitext calibrate models/answers questions.csv --out models/calibrated
      varitext calibrate minilm questions.csv --out models/mine
      varitext calibrate --scores judged.csv --score-column judge --out models/judge
      varitext calibrate --run bm25.run --qrels labels.qrels --out models/bm25
    """
    columns = options.QuestionSettings(question_column, answer_column, label_column, id_column, min_relevance)
    if out is not None:
        refuse_to_overwrite(out)
    if scores is not None or run is not None:
        refuse_options({"part": part}, "scores need no corpus")
        if folder or out is None or (scores is None) == (run is None) or (run is None) != (qrels is None):
            raise InputError("Calibrate scores with --scores FILE, or --run FILE and --qrels FILE, and --out DIR")
        given = _labelled_scores(scores, run, qrels, columns, score_column)
        named = {"score_column": score_column, "id_column": id_column}
        return _calibrate_scores(given, {key: value for key, value in named.items() if value}, out, as_json)
    refuse_options({"qrels": qrels, "score_column": score_column}, "it belongs to --scores or --run")
    if folder is None or questions is None:
        raise InputError("Name a model folder, or minilm or bm25, and labelled questions; or --scores, or --run")
    if out is None and not folder.exists():
        raise InputError("Missing --out: name a folder for the calibrated model, for example --out models/calibrated")
    ranker = load_ranker(folder, threads, device, trust)
    _calibrate_ranker(ranker, questions, part, data_dir, columns)
    place = out or folder
    ranker.save(place, overwrite=out is None)
    _report_ranker(ranker, place, as_json)


# A ranker


def _calibrate_ranker(
    ranker: "AnswerRanker",
    questions: str,
    part: str | None,
    data_dir: Path | None,
    columns: options.QuestionSettings,
) -> None:
    from varitext.corpora import load_questions, question_parts

    known = question_parts(questions)
    if part is None and known != ("all",):
        raise InputError(
            f"{questions} has the parts {', '.join(known)}: choose one that was not used to fit, --part dev"
        )
    ranker.calibrate(load_questions(questions, part or "all", data_dir, columns.columns()))


def _report_ranker(ranker: "AnswerRanker", folder: Path, as_json: bool) -> None:
    report, held_out = ranker.fitted_.calibrated, ranker.fitted_.held_out
    assert report is not None and held_out is not None
    thresholds = _thresholds(held_out)
    if as_json:
        return print_json(report.as_dict() | {"thresholds": thresholds, "model": str(folder)})
    _print_report(report.corpus, report.n_questions, report.n_without_answer, report.before, report.after, thresholds)
    log(f"calibrated model in {folder}")


# Scores


def _labelled_scores(
    scores: Path | None,
    run: Path | None,
    qrels: Path | None,
    columns: options.QuestionSettings,
    score_column: str | None,
) -> "CandidateScores":
    from varitext.corpora.own_scores import SCORE, CandidateScores, load_scores
    from varitext.corpora.sources import combined_sha256, source_file
    from varitext.evaluation.trec_files import judged, read_qrels, read_run

    if scores is not None:
        return load_scores(scores, columns.columns(), score_column or SCORE)
    assert run is not None and qrels is not None
    grade = 1 if columns.min_relevance is None else columns.min_relevance
    kept, labels = judged(read_run(run), read_qrels(qrels), grade)
    files = [source_file(path.name, path.read_bytes()) for path in (run, qrels)]
    return CandidateScores(*kept, labels, str(run), combined_sha256(files))


def _calibrate_scores(given: "CandidateScores", columns: dict[str, str], out: Path, as_json: bool) -> None:
    """`columns` are those that were named; they are looked for in new scores, too."""
    from varitext.answers.calibrated import CalibratedRanker

    source = {"name": given.name, "sha256": given.sha256} | columns
    ranker = CalibratedRanker().fit_scores(given.scores, given.labels, given.question_ids, source)
    ranker.save(out)
    fitted = ranker.fitted_
    thresholds, counts = _thresholds(fitted.held_out), (fitted.n_questions, fitted.n_without_answer)
    if as_json:
        record = {"corpus": given.name, "sha256": given.sha256, "n_questions": counts[0], "n_without_answer": counts[1]}
        return print_json(record | {"after": fitted.quality.as_dict(), "thresholds": thresholds, "model": str(out)})
    _print_report(given.name, *counts, None, fitted.quality, thresholds)
    log(f"calibration in {out}: `varitext rank {out} --scores FILE --out FILE` applies it")


# Printing


def _thresholds(held_out: "HeldOutQuestions") -> dict[str, dict[str, float] | None]:
    """For each precision: the threshold, and the share of the questions that it answers."""
    found = {str(one): held_out.abstention_threshold(one) for one in PRECISIONS}
    top = held_out.top
    return {
        precision: None if one is None else {"threshold": one, "answered": sum(p >= one for p in top) / len(top)}
        for precision, one in found.items()
    }


def _print_report(
    name: str,
    n_questions: int,
    n_without: int,
    before: "ProbabilityQuality | None",
    after: "ProbabilityQuality",
    thresholds: dict[str, Any],
) -> None:
    share = n_without / n_questions
    rows = {
        "log_loss": ("log loss", "nats per candidate"),
        "ece": ("calibration error", "of P(right)"),
        "mean_probability_none": ("P(no right answer)", f"mean; {share:.4f} of the questions have none"),
        "none_ece": ("its calibration error", ""),
    }
    print(f"{name}: {n_questions} questions, {n_without} without a right answer")
    print(f"  {'':22} {'before   ' if before else ''}  after   (cross-validated)")
    for field, (label, note) in rows.items():
        old = f"{getattr(before, field):8.4f} " if before else ""
        print(f"  {label:22} {old}{getattr(after, field):8.4f}   {note}".rstrip())
    for precision, found in thresholds.items():
        reached = "not reached"
        if found is not None:
            reached = f"--abstain-below {found['threshold']:.3f} answers {found['answered']:.0%} of the questions"
        print(f"  precision {float(precision):.0%}: {reached}")
    if not n_without:
        log(
            "note: every question has a right answer, so P(none) is now small. "
            "If questions without one were left out, it is too small."
        )


# New scores, for `varitext rank`


def apply_calibration(
    folder: Path,
    scores: Path | None,
    run: Path | None,
    out: Path,
    id_column: str | None,
    abstain: float | None,
    coverage: float,
    raw_csv: bool = False,
) -> None:
    """Write one row per candidate, in the order of the file. Columns are named as in the file of the calibration."""
    from varitext.answers.calibrated import CalibratedRanker
    from varitext.corpora import QuestionColumns
    from varitext.corpora.own_scores import SCORE, load_scores
    from varitext.evaluation.trec_files import read_run

    check_table_file(out)
    ranker = CalibratedRanker.load(folder)
    known = ranker.fitted_.corpus
    columns, column = QuestionColumns(id_column=id_column or known.get("id_column")), known.get("score_column", SCORE)
    question_ids, candidate_ids, given = (
        read_run(run) if run is not None else load_scores(scores or Path(), columns, column, labelled=False)[:3]
    )
    found = ranker.predict(given, question_ids, abstain, coverage)
    named = {"question_id": question_ids, "candidate_id": candidate_ids, "score": given, "rank": found.rank}
    named |= {"probability": found.right, "probability_best": found.best, "probability_none": found.none}
    named |= {"answered": found.answered, "in_set": found.in_set, "none_in_set": found.none_in_set}
    values = zip(*(column.tolist() for column in named.values()), strict=True)
    write_table(out, [dict(zip(named, row, strict=True)) for row in values], raw_csv)
    log(f"{len(set(question_ids.tolist())):,} questions with {len(given):,} candidates in {out}")
