"""`varitext rank`: one question and its candidates, a question asked of a corpus, or a file of many questions."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from varitext.cli.answer_input import read_candidates
from varitext.cli.checks import refuse_options
from varitext.cli.options import (
    AnswerColumn,
    AsJson,
    Device,
    IdColumn,
    QuestionColumn,
    TextColumn,
    Threads,
)
from varitext.cli.printing import log, print_json, print_ranking
from varitext.cli.ranking_files import FORMATS, check_ranking_file, write_rankings
from varitext.errors import InputError
from varitext.loading import load_ranker, untrained_ranker

if TYPE_CHECKING:
    from varitext.answers.ranker import AnswerRanker
    from varitext.answers.ranking import Ranking

SHOWN = 10  # candidates, unless more are asked for
LOOKED_AT = 100  # sentences of a corpus that BM25 finds for the ranker


MaybeFolder = Annotated[Path | None, typer.Argument(metavar="DIR", help="A model folder, as `fit --out` writes it.")]
Untrained = Annotated[
    str | None, typer.Option(metavar="NAME", help="Instead of a folder: a model that ranks without any fit, minilm.")
]
Asked = Annotated[str | None, typer.Option(metavar="TEXT", help="The question.")]
Candidates = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Sentences: .txt, one a line; .jsonl, .csv or .parquet; - for standard input."),
]
CorpusFile = Annotated[
    str | None,
    typer.Option(metavar="FILE", help=f"Many sentences, as for --candidates: the {LOOKED_AT} best by BM25 are ranked."),
]
Top = Annotated[
    int | None, typer.Option("-n", "--top", min=1, metavar="N", help="Only the best N; else 10, with --json all.")
]
Pairs = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Many questions: a .csv, .jsonl or .parquet with question and answer a row."),
]
RankingFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help=f"With --pairs: where they go, {', '.join(FORMATS)}.")
]
Drawn = Annotated[
    int | None,
    typer.Option(
        min=1, max=10_000, metavar="N", help="Samples of h; else as fitted, 20. More give finer probabilities."
    ),
]
Unordered = Annotated[
    bool, typer.Option("--unordered", help="The candidates are not the sentences of one document, in their order.")
]
AbstainBelow = Annotated[
    float | None,
    typer.Option(min=0, max=1, metavar="P", help="Give no answer if the first is right with less than this."),
]


def rank(
    folder: MaybeFolder = None,
    question: Asked = None,
    candidates: Candidates = None,
    corpus: CorpusFile = None,
    top: Top = None,
    pairs: Pairs = None,
    out: RankingFile = None,
    samples: Drawn = None,
    unordered: Unordered = False,
    model: Untrained = None,
    abstain_below: AbstainBelow = None,
    threads: Threads = None,
    device: Device = "cpu",
    text_column: TextColumn = None,
    question_column: QuestionColumn = None,
    answer_column: AnswerColumn = None,
    id_column: IdColumn = None,
    as_json: AsJson = False,
) -> None:
    """Rank candidate sentences for a question.

    For each candidate: its rank; the probability that it is a right answer; the probability that it is the best;
    the ranks that it may have once one knows which are right, with about 90 %; the words with most attention, as
    multiples of what each would get if all had the same. The probability that none is right comes last.

    A model that reads positions takes the first line or row for the first sentence of a document, the second for the
    second, and so on: early sentences are right more often. If yours come from elsewhere, as from a search, say
    --unordered: then places are unknown and count for nothing. Other models do not look at the order.

    Of many questions (--pairs) places are known if the file has a column `position`. Labels are not needed.

    \b
    Examples:
      varitext rank models/answers --question "who wrote Ulysses?" --candidates sentences.txt
      grep Joyce notes.txt | varitext rank models/answers --question "who wrote Ulysses?" --candidates - --unordered
      varitext rank models/answers --question "who wrote Ulysses?" --corpus library.txt --top 5
      varitext rank models/answers --pairs questions.csv --question-column asked --out run.trec
      varitext rank --model minilm --question "who wrote Ulysses?" --candidates sentences.txt
    """
    columns = {"question_column": question_column, "answer_column": answer_column, "id_column": id_column}
    if pairs is not None or out is not None:
        one = {"question": question, "candidates": candidates, "corpus": corpus, "top": top, "json": as_json}
        refuse_options(one | {"text_column": text_column, "unordered": unordered}, "--pairs ranks many questions")
        files = _checked_files(pairs, out)
        return _rank_pairs(_ranker(folder, model, threads, device), *files, columns, samples, abstain_below)
    refuse_options(columns, "it belongs to --pairs")
    file = _sentences_of(question, candidates, corpus)
    ranker = _ranker(folder, model, threads, device)
    asked = _Request(question or "", read_candidates(file, text_column), samples, abstain_below)
    ranking = _search(ranker, asked, unordered) if corpus else _rank(ranker, asked, unordered)
    if as_json:
        record = ranking.as_dict()
        return print_json(record | {"candidates": record["candidates"][:top], "model": str(folder or model)})
    print_ranking(ranking, top or SHOWN)


def _ranker(folder: Path | None, model: str | None, threads: int | None, device: str) -> "AnswerRanker":
    if (folder is None) == (model is None):
        raise InputError("say which model folder ranks, or --model minilm for one that needs no fit")
    if folder is not None:
        return load_ranker(folder, threads, device)
    return untrained_ranker(str(model), threads, device)


class _Request(NamedTuple):
    question: str
    texts: list[str]
    samples: int | None
    abstain: float | None


def _sentences_of(question: str | None, candidates: str | None, corpus: str | None) -> str:
    """The file of the sentences to rank."""
    if question is None or (candidates is None) == (corpus is None):
        raise InputError("say --question with --candidates or with --corpus, or --pairs with --out")
    return candidates or corpus or ""


def _rank(ranker: "AnswerRanker", asked: _Request, unordered: bool) -> "Ranking":
    positions = range(len(asked.texts)) if ranker.reads_positions and not unordered else None
    return ranker.rank(asked.question, asked.texts, asked.samples, positions, asked.abstain)


def _search(ranker: "AnswerRanker", asked: _Request, unordered: bool) -> "Ranking":
    from varitext.answers.index import CandidateIndex

    refuse_options({"unordered": unordered}, "the sentences of a corpus have no order that counts")
    return ranker.search(asked.question, CandidateIndex(asked.texts), LOOKED_AT, asked.samples, asked.abstain)


def _checked_files(pairs: Path | None, out: Path | None) -> tuple[Path, Path]:
    if pairs is None or out is None:
        raise InputError("--pairs FILE and --out FILE belong together")
    check_ranking_file(out)
    return pairs, out


def _rank_pairs(
    ranker: "AnswerRanker",
    pairs: Path,
    out: Path,
    columns: dict[str, str | None],
    samples: int | None,
    abstain: float | None,
) -> None:
    from varitext.corpora import QuestionColumns, load_questions

    named = QuestionColumns(columns["question_column"], columns["answer_column"], id_column=columns["id_column"])
    questions = load_questions(pairs, "all", columns=named, labelled=False)
    write_rankings(out, questions, ranker.rank_many(questions, samples, abstain))
    log(f"{questions.n_questions:,} questions with {questions.n_pairs:,} candidates in {out}")
