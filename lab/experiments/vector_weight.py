"""The weight of the sentence vector's term, chosen on held-out training texts without their classes.

A fifth of the texts is held out. Measures, in words of the vocabulary: perplexity with h inferred from words alone, and
the perplexity of half the words of a text given the other half, with h inferred from that half and the vector of its
words. That vector is computed from the observed half only: MiniLM's vector of the whole text would reveal the hidden
words.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import torch

from lab.experiments.short_texts import DEBIAN, SUBJECTS, missing_corpus, sentence_vectors, short_texts
from varitext.corpora.document_vectors import CountsWithVectors
from varitext.corpora.sharded_counts import in_memory
from varitext.documents.evaluation import completion_log_likelihoods
from varitext.documents.model import DocumentModel
from varitext.documents.vectors import encode_texts
from varitext.evaluation.perplexity import hide_words
from varitext.reproduce.document_fits import QUICK_EPOCHS, samples_of, short
from varitext.reproduce.engine import Experiment, Plan, Record, Run, markdown_table, mean, results

HELD_OUT, SEEDS = 0.2, 1
WEIGHTS = (0.03, 0.1, 0.3, 1.0)


def runs(plan: Plan) -> Iterator[Run]:
    for corpus in (DEBIAN, SUBJECTS):
        for weight in WEIGHTS:
            for seed in plan.seeds_or(SEEDS):
                settings = {"corpus": corpus, "weight": weight, "seed": seed}
                yield Run(settings, partial(measure, corpus, weight, seed, plan), missing_corpus(corpus, plan))


def measure(corpus: str, weight: float, seed: int, plan: Plan) -> dict[str, Any]:
    texts = short_texts(corpus, plan).texts
    vectors = sentence_vectors(corpus, texts, plan)
    order = np.random.default_rng(0).permutation(len(texts))
    held_out, train = np.split(order, [int(HELD_OUT * len(texts))])
    model = DocumentModel(
        n_topics=2,
        epochs=QUICK_EPOCHS if plan.quick else None,
        network={"vector_weight": weight},
        seed=seed,
        threads=plan.threads,
    )
    model.fit([texts[row] for row in train], vectors=vectors[train])
    unseen = [texts[row] for row in held_out]
    found = {"perplexity": model.perplexity(unseen), "training_seconds": model.fitted_.fit_seconds}
    return short(found | completion(model, unseen, samples_of(plan)))


def completion(model: DocumentModel, texts: list[str], samples: int) -> dict[str, float]:
    """Perplexity of the hidden halves, per word: from the observed words, and from their vector as well."""
    network, words = model.fitted_.network, model.fitted_.vocabulary.words
    halves = hide_words(in_memory(model._words_of(texts)), seed=0)
    observed = [
        " ".join(words[column] for column in np.repeat(row.indices, row.data.astype(int))) for row in halves.observed
    ]
    beside = halves._replace(observed=CountsWithVectors.of(halves.observed, encode_texts(observed)))
    found = {}
    for name, each in {"completion_from_words": halves, "completion_with_vectors": beside}.items():
        with torch.no_grad():
            log_likelihood = completion_log_likelihoods(network, each, samples)
        found[name] = float(np.exp(-log_likelihood.sum() / each.hidden.sum()))
    return found


def table(records: list[Record]) -> str:
    measures = {
        "perplexity": "perplexity, words alone",
        "completion_from_words": "hidden half from observed words",
        "completion_with_vectors": "and their vector",
    }
    rows = []
    for corpus in (DEBIAN, SUBJECTS):
        for weight in WEIGHTS:
            if found := results(records, corpus=corpus, weight=weight):
                rows.append([corpus, f"{weight:g}", *(mean(found, name, ".1f") for name in measures)])
    return markdown_table(["", "weight", *measures.values()], rows)


EXPERIMENT = Experiment("vector-weight", "the weight of sentence vectors on held-out texts", runs, table)
