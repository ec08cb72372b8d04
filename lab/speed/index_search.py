"""An index of a million short texts: time and memory to write, open, search and change it.

The texts are halves of sentences of WikiQA and QASent, joined at random; the questions are WikiQA's dev questions.
Times are of the processor, one thread.
"""

import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

from lab.memory import watched
from varitext.answers.index import CandidateIndex
from varitext.answers.segment import IndexedDocument
from varitext.corpora import load_questions

FOUND = 100


def measure(quick: bool) -> dict[str, Any]:
    corpora = [load_questions(*named) for named in (("wikiqa", "train"), ("qasent", "train-all"))]
    sentences = sorted({one.text for part in corpora for question in part.questions for one in question.candidates})
    questions = [question.text for question in load_questions("wikiqa", "dev").questions[: 5 if quick else 100]]
    texts = joined_halves(sentences, 2_000 if quick else 1_000_000)
    with tempfile.TemporaryDirectory() as folder:
        with watched() as peak:
            write_seconds, index = timed(lambda: CandidateIndex.create(Path(folder) / "index", texts))
        open_seconds, index = timed(lambda: CandidateIndex.open(Path(folder) / "index"))
        searches = sorted(timed(lambda one=one: index.search(one, FOUND))[0] for one in questions)
        add_seconds, _ = timed(lambda: index.add(["a new text"]))
        delete_seconds, _ = timed(lambda: index.delete([index[0].id or ""]))
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    return {
        "documents": len(index),
        "write_seconds": write_seconds,
        "write_peak_megabytes": peak.above,
        "folder_megabytes": size / 2**20,
        "open_milliseconds": 1e3 * open_seconds,
        "search_milliseconds": {"median": 1e3 * median(searches), "slowest": 1e3 * searches[-1]},
        "add_one_milliseconds": 1e3 * add_seconds,
        "delete_one_milliseconds": 1e3 * delete_seconds,
        "questions": len(questions),
    }


def joined_halves(sentences: list[str], n: int) -> Iterator[IndexedDocument]:
    drawn = random.Random(0)
    for number in range(n):
        one, other = drawn.choice(sentences).split(), drawn.choice(sentences).split()
        text = " ".join(one[: len(one) // 2] + other[len(other) // 2 :])
        yield IndexedDocument(text, f"d{number}", {"first": one[0] if one else ""})


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    """Processor time, and the result."""
    started = process_time()
    found = run()
    return process_time() - started, found
