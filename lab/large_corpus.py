"""A corpus of RCV1's size from a known model: peak memory of a fit from shards, and how far from the best it ends.

    python benchmarks/large_corpus.py [--documents 794414] [--threads 2] [--work DIR] [--json results/large_corpus.json]

The model is NVDM's own: h ~ N(0, I), words from softmax(h R + b), b falling as in Zipf's law and R random. Since it is
known, so is the best perplexity that any model can reach: -log p(X) / N of held-out documents under the model that made
them. log p(X) is enclosed from both sides by importance sampling from the Laplace approximation of p(h | X): the
logarithm of a mean of n weights is on average below log p(X); and above it if one of the n draws is a draw of the true
posterior, which the h that made the document is (Grosse, Ghahramani, Adams 2015). A model that was told h could do
better; no model of documents can.

Documents go straight to shards. Each step is a child process, whose peak memory is the operating system's figure. What
is done stays in the folder --work, training to its last checkpoint: the same command goes on from there.
"""

import argparse
import json
import math
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor

from varitext.batches.counts import CountBatch
from varitext.corpora import load_documents
from varitext.corpora.counts import numbered_words
from varitext.corpora.shards import chunk_of, finish_folder, write_shards
from varitext.documents.model import DocumentModel
from varitext.evaluation.perplexity import per_document_perplexity
from varitext.files import atomic_folder, read_json, write_json
from varitext.layers.counts import multinomial_log_likelihood
from varitext.models.documents.log_linear import gradient_ascent, newton_step
from varitext.reproduce.provenance import provenance
from varitext.runtime.memory import peak_so_far

WORDS, LATENT, LENGTH = 10_000, 20, 93  # 93 words are about 75 different ones under this model
TEST = 2000
BLOCK = 500
DRAWS, TOGETHER = 200, 10  # of h for each test document; how many at a time
WIDER = 1.1  # than the Laplace approximation, so that no weight is huge


def true_model() -> torch.nn.Linear:
    generator = torch.Generator().manual_seed(0)
    decoder = torch.nn.Linear(LATENT, WORDS).requires_grad_(False)
    decoder.bias.copy_(-torch.log(torch.arange(WORDS) + 30.0))
    decoder.weight.copy_(0.35 * torch.randn(WORDS, LATENT, generator=generator))
    return decoder


def draw(documents: int, seed: int) -> Iterator[tuple[torch.Tensor, csr_matrix]]:
    """Documents of the true model, some at a time, each with its h."""
    decoder, generator = true_model(), np.random.default_rng(seed)
    for start in range(0, documents, BLOCK):
        size = min(BLOCK, documents - start)
        h = torch.from_numpy(generator.standard_normal((size, LATENT), np.float32))
        shares = torch.softmax(decoder(h), 1).double().cumsum(1).numpy()
        lengths = np.maximum(5, generator.lognormal(math.log(LENGTH) - 0.125, 0.5, size)).astype(int)
        owner = np.repeat(np.arange(size), lengths)
        # row r's shares pile up from r to r + 1: one search serves all rows
        shares /= shares[:, -1:]
        shares += np.arange(size)[:, None]
        found = np.searchsorted(shares.ravel(), owner + generator.random(len(owner)), side="right")
        words = np.minimum(found - owner * WORDS, WORDS - 1)
        yield h, csr_matrix((np.ones(len(words), np.float32), (owner, words)), (size, WORDS))


def write_corpus(folder: Path, documents: int, seed: int) -> dict[str, Any]:
    with atomic_folder(folder) as temporary:
        shards = write_shards(temporary, (chunk_of(counts) for _, counts in draw(documents, seed)), WORDS)
        finish_folder(temporary, shards, numbered_words(WORDS), [], {"vocabulary": "of the counts", "seed": seed})
    entries, words = sum(shard.entries for shard in shards), sum(shard.words for shard in shards)
    return {"distinct_words_per_document": entries / documents, "words_per_document": words / documents}


@torch.no_grad()
def best_perplexity(documents: int, seed: int) -> dict[str, Any]:
    """Of the test documents under the model that made them: at least, at most, and for one who is told h."""
    decoder, rows = true_model(), []
    torch.manual_seed(0)
    for h, counts in draw(documents, seed):
        for start in range(0, counts.shape[0], 50):
            batch = CountBatch.from_rows(counts[start : start + 50])
            rows.append(torch.stack([*enclosed(decoder, h[start : start + 50], batch), batch.lengths.double()]))
    below, above, told, lengths = torch.cat(rows, 1).numpy()
    return {
        "per_document_perplexity_at_most": per_document_perplexity(below, lengths),
        "per_document_perplexity_at_least": per_document_perplexity(above, lengths),
        "per_document_perplexity_given_h": per_document_perplexity(told, lengths),
        "draws": DRAWS,
    }


def enclosed(decoder: torch.nn.Linear, true: Tensor, batch: CountBatch) -> tuple[Tensor, Tensor, Tensor]:
    """For each document a value below log p(X) on average, one above it, and log p(X | h) of the true h."""
    top = gradient_ascent(decoder, newton_step(decoder, batch).mean, batch, 60).h
    proposal = laplace(decoder, top, batch)

    def log_weights(h: Tensor) -> Tensor:
        log_prior = torch.distributions.Normal(0.0, 1.0).log_prob(h).sum(-1)
        return (multinomial_log_likelihood(decoder(h), batch) + log_prior - proposal.log_prob(h)).double()  # [S, B]

    drawn = torch.cat([log_weights(proposal.sample((TOGETHER,))) for _ in range(DRAWS // TOGETHER)])
    with_true = torch.cat([log_weights(true[None]), drawn[1:]])
    told = multinomial_log_likelihood(decoder(true[None]), batch)[0].double()
    return drawn.logsumexp(0) - math.log(DRAWS), with_true.logsumexp(0) - math.log(DRAWS), told


def laplace(decoder: torch.nn.Linear, top: Tensor, batch: CountBatch) -> torch.distributions.MultivariateNormal:
    """A Gaussian with the curvature of log p(h, X) at its top, a little wider."""
    probabilities = torch.softmax(decoder(top), 1)  # [B, V]
    mean = probabilities @ decoder.weight  # [B, K]
    products = (decoder.weight[:, :, None] * decoder.weight[:, None, :]).flatten(1)  # [V, K K]
    second = (probabilities @ products).unflatten(1, (LATENT, LATENT))
    covariance = second - mean[:, :, None] * mean[:, None, :]
    precision = torch.eye(LATENT) + batch.lengths[:, None, None] * covariance
    return torch.distributions.MultivariateNormal(top, precision_matrix=precision / WIDER**2)


def fit(folder: Path, out: Path, epochs: int, threads: int) -> dict[str, Any]:
    model = DocumentModel("nvdm", latent_dim=LATENT, epochs=epochs or None, threads=threads)
    model.fit(load_documents(str(folder)), checkpoint=out.with_suffix(".checkpoint"), resume=True, progress=Lines())
    model.save(out)
    settings = {name: model.fitted_.training[name] for name in ("epochs", "batch_size", "learning_rate")}
    return settings | {
        "seconds": round(model.fitted_.fit_seconds, 1),
        "stopped": model.fitted_.stopped,
        "history": model.fitted_.history,
    }


class Lines:
    """Progress as plain lines on standard error."""

    def step(self, share_done: float, elbo: float, kl: float) -> None: ...

    def round(self, record: dict[str, float]) -> None:
        print(json.dumps(record), file=sys.stderr, flush=True)

    def note(self, message: str) -> None:
        print(message, file=sys.stderr, flush=True)


def evaluate(out: Path, folder: Path, threads: int) -> dict[str, Any]:
    record = DocumentModel.load(out).set_params(threads=threads).perplexity_record(load_documents(str(folder)))
    names = ("per_document_perplexity", "iwae_per_document_perplexity", "unigram_per_document_perplexity")
    return {name: getattr(record, name) for name in names}


STEPS = {"write": write_corpus, "best": best_perplexity, "fit": fit, "evaluate": evaluate}


def in_child(work: Path, name: str, step: str, threads: int, *arguments: object) -> dict[str, Any]:
    """The step in a process of its own, with how long it took and its peak memory; what is done is done once."""
    path = work / f"{name}.json"
    if not path.exists():
        print(name, file=sys.stderr, flush=True)
        command = [sys.executable, __file__, "--step", str(threads), step, *map(str, arguments)]
        write_json(path, json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout))
    return read_json(path)


def run_step(threads: int, step: str, arguments: list[str]) -> None:
    torch.set_num_threads(threads)
    started = time.monotonic()
    found = STEPS[step](*(int(word) if word.isdigit() else Path(word) for word in arguments))
    peak = peak_so_far()
    print(json.dumps(found | {"wall_seconds": round(time.monotonic() - started, 1), "peak_megabytes": round(peak)}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=794_414)
    parser.add_argument("--epochs", type=int, default=0, help="0: the recommended number for that many documents")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--work", type=Path, default=Path("large-corpus"))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--step", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        return run_step(int(options.step[0]), options.step[1], options.step[2:])
    work, threads, documents = options.work / str(options.documents), options.threads, options.documents
    work.mkdir(parents=True, exist_ok=True)
    train, test, model = (work / part for part in ("train", "test", "model"))
    results = {"documents": documents, "words": WORDS, "latent_dim": LATENT, "threads": threads}
    results["drawing"] = in_child(work, "drawing", "write", threads, train, documents, 1)
    in_child(work, "test-documents", "write", threads, test, TEST, 2)
    results["best"] = in_child(work, "best", "best", threads, TEST, 2)
    results["fit"] = in_child(work, "fit", "fit", threads, train, model, options.epochs, threads)
    results["held_out"] = in_child(work, "held-out", "evaluate", threads, model, test, threads)
    best, held_out = results["best"]["per_document_perplexity_at_most"], results["held_out"]
    results["above_best"] = held_out["iwae_per_document_perplexity"] / best - 1
    results["bound_above_best"] = held_out["per_document_perplexity"] / best - 1
    print(json.dumps(results | {"fit": {**results["fit"], "history": "..."}}, indent=2))
    if options.json:
        write_json(options.json, results | provenance())


if __name__ == "__main__":
    main()
