"""The default settings on corpora of many sizes, against tomotopy's LDA of the same number of topics.

    python benchmarks/generality.py [NAME ...] [--json FILE]

Both get the same counts; perplexity is of the bound on the same held-out documents (LDA: topics fixed, converged).
Needs VARITEXT_DATA and the extra `peers`. Results go into the JSON as they come; LDA figures that it has are kept.
"""

import argparse
import gzip
import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse

from varitext import DocumentModel
from varitext.corpora import load
from varitext.corpora.repeats import without_repeats
from varitext.evaluation.perplexity import per_document_perplexity
from varitext.files import write_json
from varitext.models.documents.lda_bound import lda_document_bounds
from varitext.text import VocabularyRules, count_texts

THREADS = 1  # for both; timings are then comparable on a machine that does other things too
ITERATIONS = 1000


class Split(NamedTuple):
    train: scipy.sparse.csr_matrix
    test: scipy.sparse.csr_matrix  # none of these is a training document, too
    repeated: int  # held-out documents that were, and were left out


def counts_of(texts: Sequence[str], words: int, held_out: float = 0.2) -> Split:
    """Train and test counts: a random fifth is held out, the vocabulary comes from the rest.

    Held-out documents that training has word for word are left out, and said: of titles that is most of them.
    """
    order = np.random.default_rng(0).permutation(len(texts))
    cut = int(held_out * len(texts))
    train = count_texts([texts[i] for i in order[cut:]], vocabulary_rules=VocabularyRules(size=words))
    test = count_texts([texts[i] for i in order[:cut]], vocabulary=train.vocabulary)
    return apart(_without_empty(train.counts), _without_empty(test.counts))


def apart(train: scipy.sparse.csr_matrix, test: scipy.sparse.csr_matrix) -> Split:
    kept = without_repeats(test, train)
    return Split(train, kept, test.shape[0] - kept.shape[0])


def _without_empty(counts: scipy.sparse.csr_matrix) -> scipy.sparse.csr_matrix:
    return counts[np.flatnonzero(np.asarray(counts.sum(1)).ravel())]


def articles() -> list[str]:
    return list(load("20newsgroups", "train").texts)


def lines_of(name: str) -> list[dict]:
    path = Path(os.environ["VARITEXT_DATA"]) / name
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


def titles() -> list[str]:
    """The subject lines of the articles: four or five words each."""
    texts = (entry["text"].split("\n\n", 1)[0] for entry in lines_of("20news/raw/train.jsonl.gz"))
    subjects = [line[8:] for text in texts for line in text.split("\n") if line.startswith("Subject:")]
    return [subject.replace("Re:", "") for subject in subjects]


def paragraphs() -> list[str]:
    return [part for text in articles() for part in text.split("\n\n") if len(part.split()) >= 5]


def answers(name: str) -> list[str]:
    return [entry["answer"] for entry in lines_of(name)]


def lines() -> list[str]:
    """A quarter of a million short documents."""
    return [line for text in articles() for line in text.split("\n") if len(line.split()) >= 3]


CORPORA: dict[str, Callable[[], Split]] = {
    "300 articles, 500 words": lambda: counts_of(articles()[::38][:300], 500),
    "1,000 articles, 5,000 words": lambda: counts_of(articles()[::11][:1000], 5000),
    "articles, 10,000 words": lambda: counts_of(articles(), 10_000),
    "articles, 50,000 words": lambda: counts_of(articles(), 50_000),
    "titles, 2,000 words": lambda: counts_of(titles(), 2000),
    "paragraphs, 5,000 words": lambda: counts_of(paragraphs(), 5000),
    "WikiQA sentences, 10,000 words": lambda: counts_of(answers("wikiqa/train.jsonl.gz"), 10_000),
    "QASent sentences, 20,000 words": lambda: counts_of(answers("qasent/train-all.jsonl.gz"), 20_000),
    "lines, 10,000 words": lambda: counts_of(lines(), 10_000),
    "20newsgroups-nvdm": lambda: apart(*(load("20newsgroups-nvdm", part).counts for part in ("train", "test"))),
}


def fit_lda(train: scipy.sparse.csr_matrix, test: scipy.sparse.csr_matrix, topics: int) -> tuple[float, float]:
    """Perplexity and seconds of tomotopy's LDA."""
    import tomotopy

    model = tomotopy.LDAModel(k=topics, seed=1)
    for row in range(train.shape[0]):
        start, end = train.indptr[row : row + 2]
        model.add_doc(np.repeat(train.indices[start:end], train.data[start:end].astype(int)).astype(str).tolist())
    started = time.perf_counter()
    model.train(ITERATIONS, workers=THREADS)
    seconds = time.perf_counter() - started
    columns = np.array([int(word) for word in model.used_vocabs])
    distribution = np.full((topics, train.shape[1]), 1e-12)
    for topic in range(topics):
        distribution[topic, columns] = model.get_topic_word_dist(topic)
    distribution /= distribution.sum(1, keepdims=True)
    bounds = lda_document_bounds(test, distribution, np.asarray(model.alpha, np.float64))
    return per_document_perplexity(bounds, np.asarray(test.sum(1)).ravel()), seconds


def compare(name: str, latent_dim: int, known: dict[str, object]) -> dict[str, object]:
    train, test, repeated = CORPORA[name]()
    started = time.perf_counter()
    model = DocumentModel(latent_dim=latent_dim, threads=THREADS).fit(train)
    seconds = time.perf_counter() - started
    record = model.perplexity_record(test)
    lda, lda_seconds = (known["lda"], known["lda_seconds"]) if "repeated" in known else fit_lda(train, test, latent_dim)
    return {
        "corpus": name,
        "documents": train.shape[0],
        "test_documents": test.shape[0],
        "repeated": repeated,
        "words": train.shape[1],
        "words_per_document": round(float(train.sum() / train.shape[0]), 1),
        "latent_dim": latent_dim,
        "unigram": record.unigram_per_document_perplexity,
        "lda": lda,
        "nvdm": record.per_document_perplexity,
        "nvdm_importance_weighted": record.iwae_per_document_perplexity,
        "nvdm_over_lda": record.per_document_perplexity / lda,
        "lda_seconds": lda_seconds,
        "nvdm_seconds": seconds,
        "stopped": model.stopped_,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", default=list(CORPORA))
    parser.add_argument("--latent-dim", type=int, default=50)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    path = arguments.json
    results = {r["corpus"]: r for r in json.loads(path.read_text())} if path and path.exists() else {}
    for name in arguments.names:
        result = results[name] = compare(name, arguments.latent_dim, results.get(name, {}))
        print(
            f"{name:32} {result['documents']:7} x {result['words']:6}  unigram {result['unigram']:7.0f}  "
            f"LDA {result['lda']:7.0f} ({result['lda_seconds']:.0f} s)  NVDM {result['nvdm']:7.0f} "
            f"({result['nvdm_seconds']:.0f} s)  ratio {result['nvdm_over_lda']:.3f}",
            flush=True,
        )
        if path:
            write_json(path, [results[name] for name in CORPORA if name in results])


if __name__ == "__main__":
    main()
