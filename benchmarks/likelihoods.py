"""NVDM with a multinomial and with a Polya likelihood on corpora of many sizes, with the same defaults.

    python benchmarks/likelihoods.py [NAME ...] [--json results/likelihoods_corpora.json]

The corpora are those of `generality.py`: a random fifth of the documents is held out, without those that training has
word for word. Needs VARITEXT_DATA. Results go into the JSON as they come; those that it has are kept.
"""

import argparse
import json
import time
from pathlib import Path

import scipy.sparse
from generality import CORPORA, THREADS

from varitext import DocumentModel
from varitext.files import write_json

MODELS = ("nvdm", "nvdm_polya")


def fit_and_evaluate(
    model: str, train: scipy.sparse.csr_matrix, test: scipy.sparse.csr_matrix, latent_dim: int
) -> dict[str, object]:
    started = time.process_time()
    fitted = DocumentModel(model, latent_dim, threads=THREADS).fit(train)
    seconds = time.process_time() - started
    record = fitted.perplexity_record(test)
    return {
        "bound": record.per_document_perplexity,
        "importance_weighted": record.iwae_per_document_perplexity,
        "corpus_perplexity": record.corpus_perplexity,
        "unigram": record.unigram_per_document_perplexity,
        "kl_per_document": record.kl_per_document,
        "fit_cpu_seconds": seconds,
        "epochs": fitted.history_[-1]["epoch"],
        "stopped": fitted.stopped_,
    }


def compare(name: str, latent_dim: int) -> dict[str, object]:
    train, test, repeated = CORPORA[name]()
    return {
        "corpus": name,
        "documents": train.shape[0],
        "test_documents": test.shape[0],
        "repeated": repeated,
        "words": train.shape[1],
        "words_per_document": round(float(train.sum() / train.shape[0]), 1),
        "latent_dim": latent_dim,
        **{model: fit_and_evaluate(model, train, test, latent_dim) for model in MODELS},
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
        if name in results:
            continue
        result = results[name] = compare(name, arguments.latent_dim)
        said = ", ".join(f"{m} {result[m]['bound']:.1f} ({result[m]['fit_cpu_seconds']:.0f} s)" for m in MODELS)
        print(f"{name:32} {result['documents']:7} x {result['words']:6}  {said}", flush=True)
        if path:
            write_json(path, [results[name] for name in CORPORA if name in results])


if __name__ == "__main__":
    main()
