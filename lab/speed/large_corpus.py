"""A corpus of RCV1's size from a known model: peak memory of a fit from shards, and the distance from the optimum.

The model is NVDM's own: h ~ N(0, I), words from softmax(h R + b), b by Zipf's law and R random. Since it is known, so
is the best perplexity that any model can reach: -log p(X) / N of held-out documents under it. log p(X) is enclosed from
both sides by importance sampling from the Laplace approximation of p(h | X): the logarithm of a mean of n weights is on
average below log p(X), and above it if one of the n draws comes from the true posterior, as the h that generated the
document does (Grosse, Ghahramani, Adams 2015).

Each step is a child process, whose peak memory the operating system reports. Finished steps stay in `large-corpus/`,
training with its last checkpoint: the same command continues from there.
"""

import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor

from lab.child import in_child
from varitext.batches.counts import CountBatch
from varitext.corpora import load_documents
from varitext.corpora.counts import numbered_words
from varitext.corpora.shards import chunk_of, finish_folder, write_shards
from varitext.documents.model import DocumentModel
from varitext.evaluation.perplexity import per_document_perplexity
from varitext.files import atomic_folder, read_json, write_json
from varitext.layers.counts import multinomial_log_likelihood
from varitext.models.documents.log_linear import gradient_ascent, newton_step
from varitext.runtime.memory import peak_so_far

WORDS, LATENT, LENGTH = 10_000, 20, 93  # 93 words are about 75 different ones under this model
DOCUMENTS, TEST, THREADS = 794_414, 2000, 2
BLOCK = 500
DRAWS, TOGETHER = 200, 10  # of h for each test document; how many at a time
WIDER = 1.1  # than the Laplace approximation, so that no weight is huge


def measure(quick: bool) -> dict[str, Any]:
    documents, tested = (3000, 50) if quick else (DOCUMENTS, TEST)
    work = Path("large-corpus", "quick" if quick else "full")
    train, test, model = (str(work / part) for part in ("train", "test", "model"))
    found: dict[str, Any] = {"documents": documents, "words": WORDS, "latent_dim": LATENT, "threads": THREADS}
    found["drawing"] = _step(work, "write_corpus", folder=train, documents=documents, seed=1)
    _step(work, "write_corpus", folder=test, documents=tested, seed=2)
    found["best"] = _step(work, "best_perplexity", documents=tested, seed=2)
    found["fit"] = _step(work, "fit", folder=train, out=model, epochs=1 if quick else None)
    found["held_out"] = _step(work, "evaluate", model=model, folder=test)
    best, held_out = found["best"]["per_document_perplexity_at_most"], found["held_out"]
    found["above_best"] = held_out["iwae_per_document_perplexity"] / best - 1
    found["bound_above_best"] = held_out["per_document_perplexity"] / best - 1
    return found


def _step(work: Path, function: str, **task: Any) -> dict[str, Any]:
    """One of the functions below in a child; a finished step is not repeated."""
    path = work / f"{function}-{task.get('seed', 0)}.json"
    if not path.exists():
        write_json(path, in_child("lab.speed.large_corpus:run_step", {"function": function, "task": task}, THREADS))
    found: dict[str, Any] = read_json(path)
    return found


def run_step(function: str, task: dict[str, Any]) -> dict[str, Any]:
    """In the child, with its time and peak memory."""
    torch.set_num_threads(THREADS)
    started = time.monotonic()
    found: dict[str, Any] = globals()[function](**task)
    return found | {"wall_seconds": round(time.monotonic() - started, 1), "peak_megabytes": round(peak_so_far())}


def true_model() -> torch.nn.Linear:
    generator = torch.Generator().manual_seed(0)
    decoder = torch.nn.Linear(LATENT, WORDS).requires_grad_(False)
    decoder.bias.copy_(-torch.log(torch.arange(WORDS) + 30.0))
    decoder.weight.copy_(0.35 * torch.randn(WORDS, LATENT, generator=generator))
    return decoder


def draw(documents: int, seed: int) -> Iterator[tuple[torch.Tensor, csr_matrix]]:
    """Documents of the true model in blocks, each with its h."""
    decoder, generator = true_model(), np.random.default_rng(seed)
    for start in range(0, documents, BLOCK):
        size = min(BLOCK, documents - start)
        h = torch.from_numpy(generator.standard_normal((size, LATENT), np.float32))
        shares = torch.softmax(decoder(h), 1).double().cumsum(1).numpy()
        lengths = np.maximum(5, generator.lognormal(math.log(LENGTH) - 0.125, 0.5, size)).astype(int)
        owner = np.repeat(np.arange(size), lengths)
        # the cumulative shares of row r go from r to r + 1: one search serves all rows
        shares /= shares[:, -1:]
        shares += np.arange(size)[:, None]
        found = np.searchsorted(shares.ravel(), owner + generator.random(len(owner)), side="right")
        words = np.minimum(found - owner * WORDS, WORDS - 1)
        yield h, csr_matrix((np.ones(len(words), np.float32), (owner, words)), (size, WORDS))


def write_corpus(folder: str, documents: int, seed: int) -> dict[str, Any]:
    with atomic_folder(Path(folder)) as temporary:
        shards = write_shards(temporary, (chunk_of(counts) for _, counts in draw(documents, seed)), WORDS)
        finish_folder(temporary, shards, numbered_words(WORDS), [], {"vocabulary": "of the counts", "seed": seed})
    entries, words = sum(shard.entries for shard in shards), sum(shard.words for shard in shards)
    return {"distinct_words_per_document": entries / documents, "words_per_document": words / documents}


@torch.no_grad()
def best_perplexity(documents: int, seed: int) -> dict[str, Any]:
    """Bounds of the test perplexity under the true model, and its value given the true h."""
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
    """A Gaussian with the curvature of log p(h, X) at its mode, slightly wider."""
    probabilities = torch.softmax(decoder(top), 1)  # [B, V]
    mean = probabilities @ decoder.weight  # [B, K]
    products = (decoder.weight[:, :, None] * decoder.weight[:, None, :]).flatten(1)  # [V, K K]
    second = (probabilities @ products).unflatten(1, (LATENT, LATENT))
    covariance = second - mean[:, :, None] * mean[:, None, :]
    precision = torch.eye(LATENT) + batch.lengths[:, None, None] * covariance
    return torch.distributions.MultivariateNormal(top, precision_matrix=precision / WIDER**2)


def fit(folder: str, out: str, epochs: int | None) -> dict[str, Any]:
    model = DocumentModel("nvdm", latent_dim=LATENT, epochs=epochs, threads=THREADS)
    model.fit(load_documents(folder), checkpoint=Path(out).with_suffix(".checkpoint"), resume=True)
    model.save(out)
    settings = {name: model.fitted_.training[name] for name in ("epochs", "batch_size", "learning_rate")}
    found = {"seconds": round(model.fitted_.fit_seconds, 1), "stopped": model.fitted_.stopped}
    return settings | found | {"history": model.fitted_.history}


def evaluate(model: str, folder: str) -> dict[str, Any]:
    record = DocumentModel.load(model).set_params(threads=THREADS).perplexity_record(load_documents(folder))
    names = ("per_document_perplexity", "iwae_per_document_perplexity", "unigram_per_document_perplexity")
    return {name: getattr(record, name) for name in names}
