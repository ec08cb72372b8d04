"""From text to counts, compared with CountVectorizer; a million short texts through fit, transform and assign.

Counting: the raw 20 Newsgroups training articles, as they are and with accents and typographic quotes. Both sides learn
the vocabulary and count in one call. The time includes starting the processes.

Short texts: one or two sentences of those articles each, drawn at random and passed to commands in separate processes.
Training is cut short, because the measurement concerns the growth of memory with the number of texts.
"""

import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from joblib.externals.loky import get_reusable_executor
from sklearn.feature_extraction.text import CountVectorizer

from lab.speed.timing import median_seconds
from varitext import compiled
from varitext.corpora import load_documents
from varitext.text import VocabularyRules, count_texts

ALL_WORDS = VocabularyRules(10**9, minimum_documents=1, maximum_document_share=1.0, stop_words="none")
SAME_LIMITS = {"max_features": 10_000, "min_df": 3, "max_df": 0.5, "stop_words": "english"}
Texts = list[str]
SIZES, TRAINING = (100_000, 300_000, 1_000_000), "20s"
MAX_ASSIGNED = 100_000  # texts: `assign` also bounds the likelihood of each, which takes longest
SHORTEST, LONGEST = 30, 300  # characters of a sentence
# the peak of its own memory: what getrusage reports starts with that of the process that started it
COMMAND = "import sys, time; from varitext.cli import _run; from varitext.runtime.memory import status; code = _run(); \
print(status('VmHWM'), time.process_time()); sys.exit(code)"


def in_python(texts: Texts, processes: int) -> object:
    """Count in Python here and, through the environment, in the processes that are started, which end with the call."""
    with (
        mock.patch.object(compiled, "available", lambda: False),
        mock.patch.dict(os.environ, VARITEXT_COMPILED="0"),
    ):
        counted = count_texts(texts, processes=processes)
    if processes > 1:
        get_reusable_executor().shutdown(wait=True)
    return counted


PEER, PEER_LIMITED = "scikit-learn, all words", "scikit-learn, 10,000 words"
CONTESTANTS: dict[str, tuple[str, Callable[[Texts], object]]] = {  # name: (compared with, what to run)
    PEER: ("", lambda texts: CountVectorizer().fit_transform(texts)),
    PEER_LIMITED: ("", lambda texts: CountVectorizer(**SAME_LIMITS).fit_transform(texts)),
    "all words, one thread": (PEER, partial(count_texts, vocabulary_rules=ALL_WORDS, processes=1)),
    "10,000 words, one thread": (PEER_LIMITED, partial(count_texts, processes=1)),
    "10,000 words, two threads": (PEER_LIMITED, partial(count_texts, processes=2)),
    "10,000 words, in Python, one process": (PEER_LIMITED, partial(in_python, processes=1)),
    "10,000 words, in Python, two processes": (PEER_LIMITED, partial(in_python, processes=2)),
}


def measure(quick: bool) -> dict[str, Any]:
    texts = list(load_documents("20newsgroups", "train").texts or ())[: 200 if quick else None]
    accented = [text.replace("e ", "é ").replace("'", "’") for text in texts]
    found = {"articles": _compared(texts, quick), "articles with accents": _compared(accented, quick)}
    with tempfile.TemporaryDirectory() as folder:
        sizes = (300, 600) if quick else SIZES
        short = [_short_texts(Path(folder), texts, size) for size in sizes]
    return {"documents": len(texts), "counting": found, "training": TRAINING, "short_texts": short}


def _compared(texts: Texts, quick: bool) -> dict[str, Any]:
    actions = [partial(run, texts) for _, run in CONTESTANTS.values()]
    seconds = dict(zip(CONTESTANTS, median_seconds(*actions, repeats=1 if quick else 5), strict=True))
    faster = {name: seconds[rival] / seconds[name] for name, (rival, _) in CONTESTANTS.items() if rival}
    return {"seconds": seconds, "times_faster": faster}


# Short texts


def _short_texts(folder: Path, articles: Texts, size: int) -> dict[str, Any]:
    file, model = folder / f"{size}.jsonl", folder / f"model-{size}"
    with file.open("w", encoding="utf-8") as stream:
        stream.writelines(json.dumps({"text": text}) + "\n" for text in drawn(articles, size))
    found = {
        "documents": size,
        "megabytes": file.stat().st_size / 1e6,
        "fit": _command("fit", file, "--out", model, "--time-limit", TRAINING, "--topics", 20),
        "transform": _command("transform", model, file, "--out", folder / f"vectors-{size}.parquet"),
    }
    if size <= MAX_ASSIGNED:
        found["assign"] = _command("assign", model, file, "--out", folder / f"topics-{size}.parquet")
    return found


def drawn(articles: Texts, size: int) -> Iterator[str]:
    """One or two sentences of articles without their headers."""
    bodies = (article.partition("\n\n")[2] for article in articles)
    parts = (" ".join(part.split()) for body in bodies for part in re.split(r"(?<=[.!?])\s+|\n\n+", body))
    sentences = [part for part in parts if SHORTEST <= len(part) <= LONGEST]
    draw = random.Random(0)
    return (" ".join(draw.choices(sentences, k=draw.randint(1, 2))) for _ in range(size))


def _command(*typed: object) -> dict[str, float]:
    """Peak memory, processor seconds, and the rate by the clock that the command prints, if it does."""
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *map(str, typed)], env=os.environ, capture_output=True, text=True, check=True
    )
    megabytes, seconds = map(float, done.stdout.split()[-2:])
    rate = re.search(r"([\d,]+) documents per second", done.stderr)
    found = {"peak_megabytes": megabytes, "cpu_seconds": seconds}
    return found | ({"documents_per_second": float(rate[1].replace(",", ""))} if rate else {})
