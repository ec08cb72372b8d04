"""Which lambda ranks the words of topics best, chosen on training documents that the model has not seen.

    python benchmarks/topic_relevance.py --json results/topic_relevance.json

A model is fitted on four fifths of the training documents; the others are the reference that says which words occur
together. For each lambda: NPMI of the first ten words in the documents of the reference, the share of words that are
unique, and their product, topic quality (Dieng, Ruiz and Blei 2020), which decides.
"""

import argparse
import json
from pathlib import Path
from statistics import mean

import numpy as np

from varitext.corpora import load
from varitext.documents.model import DocumentModel
from varitext.documents.region_words import relevance
from varitext.evaluation import coherence_record, diversity_record

LAMBDAS = (0.2, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7, 0.8, 1.0)
WORDS, TOPICS = 10, 50


def measure(corpus: str, seed: int, epochs: int | None) -> dict[float, dict[str, float]]:
    documents = load(corpus, "train")
    counts, words = documents.counts, documents.vocabulary.words
    reference = np.random.default_rng(seed).permutation(counts.shape[0])[: counts.shape[0] // 5]
    fitted_on = np.delete(np.arange(counts.shape[0]), reference)
    model = DocumentModel(threads=1, epochs=epochs, seed=seed, n_topics=TOPICS)
    model.fit(counts[fitted_on], vocabulary=words)
    found = {}
    for weight in LAMBDAS:
        ranked = np.argsort(-relevance(model.regions_.word_probabilities, model.regions_.frequencies, weight), axis=1)
        topics = [[words[column] for column in row] for row in ranked[:, :WORDS]]
        npmi = coherence_record(topics, counts[reference], "npmi", window="document", vocabulary=words).coherence
        unique = diversity_record(topics).unique_words
        found[weight] = {"npmi": npmi, "unique_words": unique, "quality": npmi * unique}
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", default="20newsgroups-nvdm")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--epochs", type=int, help="fewer than the recipe has, to try the script")
    parser.add_argument("--json", type=Path)
    typed = parser.parse_args()
    by_seed = [measure(typed.corpus, seed, typed.epochs) for seed in range(typed.seeds)]
    means = {
        weight: {name: mean(one[weight][name] for one in by_seed) for name in by_seed[0][weight]} for weight in LAMBDAS
    }
    best = max(means, key=lambda weight: means[weight]["quality"])
    result = {"corpus": typed.corpus, "topics": TOPICS, "seeds": typed.seeds, "best_lambda": best, "by_lambda": means}
    text = json.dumps(result, indent=1) + "\n"
    print(text, end="")
    if typed.json:
        typed.json.write_text(text, encoding="utf-8")
