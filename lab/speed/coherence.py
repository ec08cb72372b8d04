"""Coherence beside gensim's CoherenceModel: time, equality of the values, and the effect of the window.

The reference is the raw 20 Newsgroups training articles, tokenised by our rules, for both. The topics are the 50 of
ten words that `python -m lab topics` found for NVDM. gensim's dictionary is made beforehand; it runs in one process, as
it does by default on two cores, and varitext in one thread.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gensim.corpora import Dictionary
from gensim.models import CoherenceModel

from lab import experiment_named
from lab.import_graph import ROOT
from lab.speed.timing import median_seconds, seconds_of
from varitext.corpora import load_documents
from varitext.evaluation.coherence import coherence_record
from varitext.reproduce.engine import read_records
from varitext.text import tokenise

NAMES = {"npmi": "c_npmi", "c_v": "c_v"}
WINDOWS: dict[str, dict[str, Any]] = {  # as settings of `coherence_record`
    "as gensim counts": {},
    "as the definition says": {"window_rule": "exact"},
    "whole documents": {"window": "document"},
}
WANTED = {"corpus": "20newsgroups-nvdm", "system": "regions", "topics": 50, "seed": 0}


def measure(quick: bool) -> dict[str, Any]:
    articles = load_documents("20newsgroups", "train")
    tokens = [tokenise(text) for text in (articles.texts or ())[: 300 if quick else None]]
    records = read_records(experiment_named("topics"), ROOT / "results")
    topics = next(one["result"]["topics"] for one in records if WANTED.items() <= one["settings"].items())
    windows = {
        measure: {name: coherence_record(topics, tokens, measure, **rule).coherence for name, rule in WINDOWS.items()}
        for measure in NAMES
    }
    dictionary = Dictionary(tokens)
    return {
        "corpus": articles.name,
        "corpus_sha256": articles.sha256,
        "documents": len(tokens),
        "tokens": sum(map(len, tokens)),
        "topics": len(topics),
        "words_per_topic": len(topics[0]),
        "windows": windows,
        "rows": [compare(topics, tokens, dictionary, measure) for measure in NAMES],
    }


def compare(
    topics: list[list[str]], tokens: Sequence[Sequence[str]], dictionary: Dictionary, measure: str
) -> dict[str, Any]:
    settings = {"topics": topics, "texts": tokens, "dictionary": dictionary, "coherence": NAMES[measure]}
    found: list[float] = []
    gensim_seconds = seconds_of(lambda: found.extend(CoherenceModel(**settings, processes=1).get_coherence_per_topic()))
    expected = np.array(found)
    (seconds,) = median_seconds(lambda: coherence_record(topics, tokens, measure), repeats=3)
    values = np.array(coherence_record(topics, tokens, measure).by_topic, float)  # nan for topics of unknown words
    return {
        "measure": measure,
        "gensim_seconds": gensim_seconds,
        "varitext_seconds": seconds,
        "times_faster": gensim_seconds / seconds,
        "largest_difference": float(np.nanmax(np.abs(values - expected))),
        "mean_gensim": float(np.nanmean(expected)),
        "mean_varitext": float(np.nanmean(values)),
    }
