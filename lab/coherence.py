"""How fast varitext computes coherence beside gensim's CoherenceModel, and whether the values are equal.

    python benchmarks/coherence.py [--json results/coherence.json] [--measures npmi c_v] [--documents N]

The reference is the raw 20 Newsgroups training articles, cut into words by our rules; both sides get the same lists of
words. The topics are the 50 of ten words that `varitext reproduce topics` found for NVDM. gensim's dictionary is made
beforehand and is not part of its time. gensim runs with one process, which is its default on two cores; varitext, one
thread, runs before and after it, and its median counts. The same topics are measured with other windows, too: what is
counted moves the value.
"""

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
from gensim.corpora import Dictionary
from gensim.models import CoherenceModel

from varitext.corpora import load_documents
from varitext.evaluation.coherence import coherence_record
from varitext.files import write_json
from varitext.reproduce.provenance import provenance
from varitext.text import tokenise

NAMES = {"npmi": "c_npmi", "c_v": "c_v", "u_mass": "u_mass"}
WINDOWS: dict[str, dict[str, Any]] = {  # as settings of `coherence_record`
    "as gensim counts": {},
    "as the definition says": {"window_rule": "exact"},
    "whole documents": {"window": "document"},
}
TOPICS_FROM = Path(__file__).resolve().parents[1] / "results" / "topics" / "20newsgroups-nvdm-regions-50-0.json"


def topics_of_nvdm() -> list[list[str]]:
    return json.loads(TOPICS_FROM.read_text())["result"]["topics"]


def ours(topics: list[list[str]], tokens: list[list[str]], measure: str) -> tuple[float, np.ndarray]:
    start = time.perf_counter()
    record = coherence_record(topics, tokens, measure)
    return time.perf_counter() - start, np.array(record.by_topic)


def theirs(
    topics: list[list[str]], tokens: list[list[str]], dictionary: Dictionary, measure: str
) -> tuple[float, np.ndarray]:
    start = time.perf_counter()
    model = CoherenceModel(topics=topics, texts=tokens, dictionary=dictionary, coherence=NAMES[measure], processes=1)
    values = model.get_coherence_per_topic()
    return time.perf_counter() - start, np.array(values)


def compare(topics: list[list[str]], tokens: list[list[str]], dictionary: Dictionary, measure: str) -> dict[str, Any]:
    before, values = ours(topics, tokens, measure)
    gensim_seconds, expected = theirs(topics, tokens, dictionary, measure)
    middle, again = ours(topics, tokens, measure), ours(topics, tokens, measure)
    seconds = statistics.median([before, middle[0], again[0]])
    row = {
        "measure": measure,
        "gensim_seconds": gensim_seconds,
        "varitext_seconds": seconds,
        "times_faster": gensim_seconds / seconds,
        "largest_difference": float(np.abs(values - expected).max()),
        "mean_gensim": float(expected.mean()),
        "mean_varitext": float(values.mean()),
    }
    print(
        f"{measure:7} gensim {gensim_seconds:7.1f} s   varitext {seconds:6.2f} s   "
        f"{row['times_faster']:6.1f} times faster   largest difference {row['largest_difference']:.1e}",
        flush=True,
    )
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--measures", nargs="+", default=["npmi", "c_v"], choices=list(NAMES))
    parser.add_argument("--documents", type=int, help="at most this many of the reference's documents")
    arguments = parser.parse_args()

    articles = load_documents("20newsgroups", "train")
    tokens = [tokenise(text) for text in articles.texts[: arguments.documents]]
    topics, dictionary = topics_of_nvdm(), Dictionary(tokens)
    results = {
        "corpus": articles.name,
        "corpus_sha256": articles.sha256,
        "documents": len(tokens),
        "tokens": sum(map(len, tokens)),
        "topics": len(topics),
        "words_per_topic": len(topics[0]),
        "windows": {},
        "rows": [],
    }
    for measure in arguments.measures:
        found = {name: coherence_record(topics, tokens, measure, **rule) for name, rule in WINDOWS.items()}
        results["windows"][measure] = {name: record.coherence for name, record in found.items()}
    for measure in arguments.measures:
        results["rows"].append(compare(topics, tokens, dictionary, measure))
        if arguments.json:
            write_json(arguments.json, results | provenance())


if __name__ == "__main__":
    main()
