"""Which settings are fair to other tools' LDA: those of `varitext benchmark`, and others that their documentation has.

    python benchmarks/peer_settings.py [--json results/peer_settings.json] [--only NAME...]

Each is fitted to the earlier training documents of 20newsgroups-nvdm in one shuffled order, K = 50, and evaluated on
those held out by date (`held_out_by_date.py`), with topics fixed and our variational bound run to convergence, as in
the benchmark; test documents are not looked at. Every figure is written as it comes; those that the file already has
are kept.
"""

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from gensim.models import LdaModel
from scipy.sparse import csr_matrix

from lab.benchmark.systems import Setting
from lab.benchmark.systems.gensim_lda import GensimLDA
from lab.benchmark.systems.sklearn_lda import SklearnLDA
from lab.benchmark.systems.tomotopy_lda import TomotopyLDA
from lab.held_out_by_date import split_by_date
from varitext.evaluation.perplexity import per_document_perplexity
from varitext.files import write_json
from varitext.reproduce.provenance import provenance

SETTING = Setting(latent_dim=50, threads=2)


def sklearn(**changes: Any) -> SklearnLDA:
    system = SklearnLDA(SETTING)
    system.model.set_params(**changes)
    return system


def tomotopy(**changes: Any) -> TomotopyLDA:
    import tomotopy as tool

    system = TomotopyLDA(SETTING)
    system.model = tool.LDAModel(k=SETTING.latent_dim, seed=SETTING.seed + 1, **changes)
    return system


class LearnedPriors(GensimLDA):
    """As gensim's tutorial on LDA has it: both priors are learned, and a document may take 400 iterations; that is in
    one process."""

    def fit(self, documents: list[list[tuple[int, int]]]) -> None:
        self.model = LdaModel(
            documents,
            num_topics=self.setting.latent_dim,
            id2word={number: str(number) for number in range(self.words)},
            passes=20,
            iterations=400,
            alpha="auto",
            eta="auto",
            eval_every=None,
            random_state=self.setting.seed,
        )


SYSTEMS: dict[str, Callable[[], Any]] = {
    "gensim: LdaMulticore, 20 passes": lambda: GensimLDA(SETTING),
    "gensim: its tutorial's, priors learned, 20 passes of 400 iterations": lambda: LearnedPriors(SETTING),
    "tomotopy: 1,000 iterations": lambda: TomotopyLDA(SETTING),
    "tomotopy: words smoothed by eta = 0.1 in place of 0.01": partial(tomotopy, eta=0.1),
    "tomotopy: words smoothed by eta = 0.6, as `--model lda` has it": partial(tomotopy, eta=0.6),
    "scikit-learn: batch, 20 passes": lambda: SklearnLDA(SETTING),
    "scikit-learn: batch, 60 passes": partial(sklearn, max_iter=60),
    "scikit-learn: online, 20 passes": partial(sklearn, learning_method="online"),
}


def perplexity(system: Any, train: csr_matrix, later: csr_matrix) -> dict[str, float]:
    documents = system.read(train)
    started = time.monotonic()
    system.fit(documents)
    seconds = time.monotonic() - started
    lengths = np.asarray(later.sum(1)).ravel()
    return {"perplexity": per_document_perplexity(system.bounds(later), lengths), "fit_seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", nargs="*", default=list(SYSTEMS), choices=SYSTEMS)
    options = parser.parse_args()
    found = json.loads(options.json.read_text()) if options.json and options.json.exists() else {}
    earlier, later = split_by_date()
    train = earlier[np.random.default_rng(0).permutation(earlier.shape[0])]
    for name in options.only:
        if name in found:
            continue
        found[name] = perplexity(SYSTEMS[name](), train, later) | provenance()
        print(f"{name}: {found[name]['perplexity']:.1f} after {found[name]['fit_seconds']:.0f} s", flush=True)
        if options.json:
            write_json(options.json, found)


if __name__ == "__main__":
    main()
