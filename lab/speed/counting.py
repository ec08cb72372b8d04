"""Counting words beside scikit-learn's CountVectorizer, on the raw 20 Newsgroups training articles.

Both sides learn the vocabulary and count in one call, in one thread; the last row uses two other processes, whose start
is part of its time.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from sklearn.feature_extraction.text import CountVectorizer

from lab.speed.timing import median_seconds
from varitext.corpora import load_documents
from varitext.text import VocabularyRules, count_texts

ALL_WORDS = VocabularyRules(10**9, minimum_documents=1, maximum_document_share=1.0, stop_words="none")
SAME_LIMITS = {"max_features": 10_000, "min_df": 3, "max_df": 0.5, "stop_words": "english"}
CONTESTANTS: dict[str, tuple[str, Callable[[list[str]], object]]] = {  # name: (compared with, what to run)
    "scikit-learn, all words": ("", lambda texts: CountVectorizer().fit_transform(texts)),
    "scikit-learn, 10,000 words": ("", lambda texts: CountVectorizer(**SAME_LIMITS).fit_transform(texts)),
    "varitext, all words": ("scikit-learn, all words", partial(count_texts, vocabulary_rules=ALL_WORDS)),
    "varitext, 10,000 words": ("scikit-learn, 10,000 words", count_texts),
    "varitext, 10,000 words, 2 processes": ("scikit-learn, 10,000 words", partial(count_texts, processes=2)),
}


def measure(quick: bool) -> dict[str, Any]:
    texts = list(load_documents("20newsgroups", "train").texts or ())[: 200 if quick else None]
    actions = [partial(run, texts) for _, run in CONTESTANTS.values()]
    seconds = dict(zip(CONTESTANTS, median_seconds(*actions, repeats=1 if quick else 5), strict=True))
    faster = {name: seconds[rival] / seconds[name] for name, (rival, _) in CONTESTANTS.items() if rival}
    return {"documents": len(texts), "seconds": seconds, "times_faster": faster}
