"""Table 3: numbers of questions and pairs in QASent and WikiQA."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from varitext.reproduce import ABOUT
from varitext.reproduce.answer_fits import DATA, load_part
from varitext.reproduce.engine import Experiment, Plan, Record, Run, markdown_table

PAPER = {  # questions, pairs
    ("qasent", "train"): (1229, 53417),
    ("qasent", "dev"): (82, 1148),
    ("qasent", "test"): (100, 1517),
    ("wikiqa", "train"): (2118, 20360),
    ("wikiqa", "dev"): (296, 2733),
    ("wikiqa", "test"): (633, 6165),
}


def runs(plan: Plan) -> Iterator[Run]:
    for corpus, part in PAPER:
        yield Run({"corpus": corpus, "part": part}, partial(count, corpus, part, plan))


def count(corpus: str, part: str, plan: Plan) -> dict[str, Any]:
    found = load_part(corpus, part, plan)
    answerable = sum(question.has_right for question in found.questions)
    both = sum(question.has_right and question.has_wrong for question in found.questions)
    numbers = {"questions": found.n_questions, "pairs": found.n_pairs, "right": found.n_positive}
    return numbers | {"answerable": answerable, "both": both, "corpus_sha256": found.sha256}


def table(records: list[Record]) -> str:
    found = {(one["settings"]["corpus"], one["settings"]["part"]): one["result"] for one in records}
    head = ["", "", "questions, paper", "ours", "pairs, paper", "ours", "with a correct answer"]
    head += ["with correct and incorrect"]
    rows = []
    for (corpus, part), (questions, pairs) in PAPER.items():
        ours = found[corpus, part]
        numbers = [questions, ours["questions"], pairs, ours["pairs"], ours["answerable"], ours["both"]]
        rows.append([corpus, DATA[corpus].train if part == "train" else part, *(f"{number:,}" for number in numbers)])
    return markdown_table(head, rows)


EXPERIMENT = Experiment("table3", ABOUT["table3"], runs, table)
