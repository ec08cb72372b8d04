"""Which lambda ranks the words of topics best, chosen on training documents that the model has not seen.

    python benchmarks/topic_relevance.py --json results/topic_relevance.json

A model is fitted on four fifths of the training documents; the others are the reference that says which words occur
together. For each lambda: NPMI of the first ten words in the documents of the reference, the share of words that are
unique, and their product, topic quality (Dieng, Ruiz and Blei 2020), which decides.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

import numpy as np
import scipy.sparse

from varitext.corpora import load_documents
from varitext.documents.model import DocumentModel
from varitext.evaluation import coherence_record, diversity_record
from varitext.reproduce.provenance import provenance
from varitext.text import VocabularyRules, count_texts

LAMBDAS = (0.2, 0.3, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.8, 1.0)
WORDS, TOPICS = 10, 50


def counted(corpus: str) -> tuple[scipy.sparse.csr_matrix, Sequence[str]]:
    documents = load_documents(corpus, "train")
    if documents.counts is None:
        found = count_texts(documents.texts, vocabulary_rules=VocabularyRules(size=10_000))
        return found.counts, found.vocabulary.words
    return documents.counts, documents.vocabulary.words


def measure(corpus: str, seed: int, epochs: int | None) -> dict[float, dict[str, float]]:
    counts, words = counted(corpus)
    reference = np.random.default_rng(seed).permutation(counts.shape[0])[: counts.shape[0] // 5]
    fitted_on = np.delete(np.arange(counts.shape[0]), reference)
    model = DocumentModel(threads=1, epochs=epochs, seed=seed, n_topics=TOPICS)
    model.fit(counts[fitted_on], vocabulary=words)
    found = {}
    for weight in LAMBDAS:
        ranked = np.argsort(-model.fitted_.regions.shares.relevance(weight), axis=1, kind="stable")
        topics = [[words[column] for column in row] for row in ranked[:, :WORDS]]
        npmi = coherence_record(topics, counts[reference], "npmi", window="document", vocabulary=words).coherence
        unique = diversity_record(topics).unique_words
        found[weight] = {"npmi": npmi, "unique_words": unique, "quality": npmi * unique}
    return found


def summary(corpus: str, seeds: int, epochs: int | None) -> dict[str, object]:
    by_seed = [measure(corpus, seed, epochs) for seed in range(seeds)]
    means = {
        weight: {name: mean(one[weight][name] for one in by_seed) for name in by_seed[0][weight]} for weight in LAMBDAS
    }
    best = max(means, key=lambda weight: means[weight]["quality"])
    return {"topics": TOPICS, "seeds": seeds, "best_lambda": best, "by_lambda": means}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpora", nargs="*", default=["20newsgroups-nvdm", "20newsgroups"])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--epochs", type=int, help="fewer than the recipe has, to try the script")
    parser.add_argument("--json", type=Path)
    typed = parser.parse_args()
    found = {"corpora": {corpus: summary(corpus, typed.seeds, typed.epochs) for corpus in typed.corpora}}
    text = json.dumps(found | provenance(), indent=1) + "\n"
    print(text, end="")
    if typed.json:
        typed.json.write_text(text, encoding="utf-8")
