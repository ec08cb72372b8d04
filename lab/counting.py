"""How fast varitext counts words beside scikit-learn's CountVectorizer, on the raw 20 Newsgroups training articles.

    python benchmarks/counting.py [--data-dir DIR] [--repeats 5] [--json]

Every repeat runs all contestants one after the other, so that a busy machine slows all of them alike; the ratios are
of the medians. Both sides learn the vocabulary and count in one call, in one thread; the last row uses two other
processes, whose start is part of its time.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable

from sklearn.feature_extraction.text import CountVectorizer

from varitext import corpora
from varitext.reproduce.provenance import provenance
from varitext.text import VocabularyRules, count_texts

ALL_WORDS = VocabularyRules(10**9, minimum_documents=1, maximum_document_share=1.0, stop_words="none")
SAME_LIMITS = {"max_features": 10_000, "min_df": 3, "max_df": 0.5, "stop_words": "english"}

# name: (who to be compared with, what to run)
CONTESTANTS: dict[str, tuple[str, Callable[[list[str]], object]]] = {
    "scikit-learn, all words": ("", lambda texts: CountVectorizer().fit_transform(texts)),
    "scikit-learn, 10,000 words": ("", lambda texts: CountVectorizer(**SAME_LIMITS).fit_transform(texts)),
    "varitext, all words": ("scikit-learn, all words", lambda texts: count_texts(texts, vocabulary_rules=ALL_WORDS)),
    "varitext, 10,000 words": ("scikit-learn, 10,000 words", count_texts),
    "varitext, 10,000 words, 2 processes": (
        "scikit-learn, 10,000 words",
        lambda texts: count_texts(texts, processes=2),
    ),
}


def measure(texts: list[str], repeats: int) -> dict[str, float]:
    """The median seconds of each contestant."""
    seconds: dict[str, list[float]] = {name: [] for name in CONTESTANTS}
    for _ in range(repeats):
        for name, (_, run) in CONTESTANTS.items():
            start = time.perf_counter()
            run(texts)
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def ratios(seconds: dict[str, float]) -> dict[str, float]:
    return {name: seconds[rival] / seconds[name] for name, (rival, _) in CONTESTANTS.items() if rival}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--copies", type=int, default=1, help="how often the corpus is repeated, to see larger ones")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()

    texts = list(corpora.load_documents("20newsgroups", "train", arguments.data_dir).texts) * arguments.copies
    seconds = measure(texts, arguments.repeats)
    times_faster = ratios(seconds)
    if arguments.json:
        found = {"documents": len(texts), "seconds": seconds, "times_faster": times_faster}
        print(json.dumps(found | provenance()))
        return
    print(f"{len(texts):,} documents, median of {arguments.repeats}")
    for name, value in seconds.items():
        beside = f"{times_faster[name]:.1f} times faster" if name in times_faster else ""
        print(f"{name:38} {value:6.2f} s  {beside}")


if __name__ == "__main__":
    main()
