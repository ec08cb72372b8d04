"""A corpus of RCV1's size from a known model: peak memory of a fit from shards, and how far from the best it ends.

    python benchmarks/large_corpus.py [--documents 794414] [--epochs 1] [--json results/large_corpus.json]

The model is NVDM's own: h ~ N(0, I), words from softmax(h R + b), b falling as in Zipf's law and R random. Since it is
known, so is the best perplexity that any model can reach: -log p(X) / N of held-out documents under the model that made
them, by importance sampling from a Gaussian around the mode of log p(h | X). On average the estimate lies below log
p(X), so the best is at most the figure given. Documents go straight to shards. Each step is a child process, whose peak
memory is the operating system's figure. One thread.
"""

import argparse
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix

from varitext import DocumentModel
from varitext.batches import CountBatches
from varitext.corpora import load
from varitext.corpora.count_files import numbered_words
from varitext.corpora.shard_folder import finish_folder, write_shard
from varitext.evaluation.perplexity import per_document_perplexity
from varitext.files import write_json
from varitext.layers import multinomial_log_likelihood
from varitext.models.log_linear import climb, newton_step
from varitext.preparing import ShardSizes, chunk_of, in_shards

WORDS, LATENT, LENGTH = 10_000, 20, 110  # 110 words are about 75 different ones under this model
TEST = 2000
BLOCK = 500
DRAWS = 200  # of h for each test document


def true_model() -> torch.nn.Linear:
    generator = torch.Generator().manual_seed(0)
    decoder = torch.nn.Linear(LATENT, WORDS).requires_grad_(False)
    decoder.bias.copy_(-torch.log(torch.arange(WORDS) + 30.0))
    decoder.weight.copy_(0.35 * torch.randn(WORDS, LATENT, generator=generator))
    return decoder


def draw(documents: int, seed: int) -> Iterator[csr_matrix]:
    """Documents of the true model, some at a time."""
    decoder, generator = true_model(), np.random.default_rng(seed)
    for start in range(0, documents, BLOCK):
        size = min(BLOCK, documents - start)
        h = torch.from_numpy(generator.standard_normal((size, LATENT), np.float32))
        shares = torch.softmax(decoder(h), 1).double().cumsum(1).numpy()
        lengths = np.maximum(5, generator.lognormal(math.log(LENGTH) - 0.125, 0.5, size)).astype(int)
        owner = np.repeat(np.arange(size), lengths)
        words = np.concatenate(
            [
                np.searchsorted(row, generator.random(length) * row[-1])
                for row, length in zip(shares, lengths, strict=True)
            ]
        )
        yield csr_matrix((np.ones(len(words), np.float32), (owner, words)), (size, WORDS))


def write_corpus(folder: Path, documents: int, seed: int) -> dict[str, Any]:
    folder.mkdir()
    shards = [
        write_shard(folder, number, shard, WORDS)
        for number, shard in enumerate(in_shards(map(chunk_of, draw(documents, seed)), ShardSizes()))
    ]
    finish_folder(folder, shards, numbered_words(WORDS), [], {"vocabulary": "of the counts", "seed": seed})
    entries, words = sum(shard.entries for shard in shards), sum(shard.words for shard in shards)
    return {"distinct_words_per_document": entries / documents, "words_per_document": words / documents}


@torch.no_grad()
def best_perplexity(folder: Path) -> dict[str, Any]:
    """Of the test documents under the model that made them."""
    decoder, values, lengths = true_model(), [], []
    torch.manual_seed(0)
    for batch in CountBatches(load(str(folder)).counts).in_order(64):
        hill = climb(decoder, newton_step(decoder, batch).mean, batch, 60)
        q = torch.distributions.Normal(hill.h, 1.1 * hill.precision.rsqrt())  # a little wider than the posterior
        weights = []
        for _ in range(DRAWS // 10):
            h = q.sample((10,))
            log_prior = torch.distributions.Normal(0.0, 1.0).log_prob(h).sum(-1)
            weights.append(multinomial_log_likelihood(decoder(h), batch) + log_prior - q.log_prob(h).sum(-1))
        values.append(torch.logsumexp(torch.cat(weights).double(), 0) - math.log(DRAWS))
        lengths.append(batch.lengths)
    perplexity = per_document_perplexity(torch.cat(values).numpy(), torch.cat(lengths).double().numpy())
    return {"per_document_perplexity": perplexity, "draws": DRAWS}


def fit(folder: Path, out: Path, epochs: int) -> dict[str, Any]:
    model = DocumentModel(latent_dim=LATENT, epochs=epochs, threads=1).fit(load(str(folder)))
    model.save(out)
    return {"epochs": epochs, "seconds": round(model.fit_seconds_, 1), "documents": model.n_training_documents_}


def judge(out: Path, folder: Path) -> dict[str, Any]:
    record = DocumentModel.load(out).set_params(threads=1).perplexity_record(load(str(folder)))
    names = ("per_document_perplexity", "iwae_per_document_perplexity", "unigram_per_document_perplexity")
    return {name: getattr(record, name) for name in names}


STEPS = {"write": write_corpus, "best": best_perplexity, "fit": fit, "judge": judge}


def in_child(step: str, *arguments: object) -> dict[str, Any]:
    """The step in a process of its own, with how long it took and its peak memory."""
    command = [sys.executable, __file__, "--step", step, *map(str, arguments)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def run_step(step: str, arguments: list[str]) -> None:
    torch.set_num_threads(1)
    started = time.monotonic()
    found = STEPS[step](*(int(word) if word.isdigit() else Path(word) for word in arguments))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(found | {"wall_seconds": round(time.monotonic() - started, 1), "peak_megabytes": round(peak)}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=794_414)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--step", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        return run_step(options.step[0], options.step[1:])
    with tempfile.TemporaryDirectory() as name:
        train, test, model = (Path(name) / part for part in ("train", "test", "model"))
        results = {"documents": options.documents, "words": WORDS, "latent_dim": LATENT, "threads": 1}
        results["drawing"] = in_child("write", train, options.documents, 1)
        in_child("write", test, TEST, 2)
        results["best"] = in_child("best", test)
        results["fit"] = in_child("fit", train, model, options.epochs)
        results["held_out"] = in_child("judge", model, test)
    best, held_out = results["best"]["per_document_perplexity"], results["held_out"]
    results["above_best"] = held_out["iwae_per_document_perplexity"] / best - 1
    results["bound_above_best"] = held_out["per_document_perplexity"] / best - 1
    print(json.dumps(results, indent=2))
    if options.json:
        write_json(options.json, results)


if __name__ == "__main__":
    main()
