"""Held-out perplexity of NVDM on the paper's own files: all presets, both sizes, three seeds.

    python benchmarks/perplexity.py [--json results/nvdm_perplexity.json]

Settings were chosen on held-out training documents (`dev`); test figures are only reported. Takes about a quarter of an
hour on one core; every run is written as it comes, and runs that the file already has are kept.
"""

import argparse
import itertools
import json
from pathlib import Path

from varitext import DocumentModel
from varitext.corpora import load
from varitext.files import write_json

PAPER = {50: 836, 200: 852}
WORDS = ("weapons", "medical", "companies", "define", "israel", "book")  # those of the paper's Table 1b
THREADS = 1  # runs can then share a machine without disturbing each other


def fit_and_evaluate(preset: str, latent_dim: int, seed: int) -> dict[str, object]:
    train, test = load("20newsgroups-nvdm", "train"), load("20newsgroups-nvdm", "test")
    model = DocumentModel(latent_dim=latent_dim, preset=preset, seed=seed, threads=THREADS).fit(train)
    record = model.perplexity_record(test).as_dict()
    return {
        "preset": preset,
        "latent_dim": latent_dim,
        "seed": seed,
        "paper": PAPER[latent_dim],
        "dev_perplexity": model.dev_perplexity_,
        "test": record,
        "neighbours": {word: [name for name, _ in model.similar_words(word)] for word in WORDS},
        "topics": [list(topic.words) for topic in model.latent_dimensions()],
        "fit_seconds": model.fit_seconds_,
        "stopped": model.stopped_,
        "settings": model.training_ | model.architecture_,
        "train_sha256": train.sha256,
        "test_sha256": test.sha256,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", type=Path)
    path = parser.parse_args().json
    results = json.loads(path.read_text()) if path and path.exists() else []
    done = {(result["preset"], result["latent_dim"], result["seed"]) for result in results}
    for preset, latent_dim, seed in itertools.product(("recommended", "paper", "paper-network"), PAPER, range(3)):
        if (preset, latent_dim, seed) in done:
            continue
        result = fit_and_evaluate(preset, latent_dim, seed)
        results.append(result)
        test = result["test"]
        print(
            f"{preset:12} K={latent_dim:<4} seed {seed}  test {test['per_document_perplexity']:.1f}  "
            f"importance-weighted {test['iwae_per_document_perplexity']:.1f}  "
            f"corpus {test['corpus_perplexity']:.1f}  paper {PAPER[latent_dim]}  {result['fit_seconds']:.0f} s",
            flush=True,
        )
        if path:
            write_json(path, results)


if __name__ == "__main__":
    main()
