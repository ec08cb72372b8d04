"""Which settings are fair to other tools' LDA: those of the benchmark, and others from their documentation.

Each is fitted to the earlier training documents of 20newsgroups-nvdm in one shuffled order, K = 50, and evaluated on
those held out by date, with topics fixed and our variational bound run to convergence; test documents are not used.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from lab.benchmark.systems import Setting
from lab.experiments.held_out_by_date import split_by_date
from varitext.evaluation.perplexity import per_document_perplexity
from varitext.reproduce.engine import Experiment, Plan, Record, Run, markdown_table

SETTING = Setting(latent_dim=50, threads=2)


def gensim() -> Any:
    from lab.benchmark.systems.gensim_lda import GensimLDA

    return GensimLDA(SETTING)


def gensim_tutorial() -> Any:
    """Both priors learned, at most 400 iterations per document; in one process."""
    from gensim.models import LdaModel

    system = gensim()

    def fit(documents: list[list[tuple[int, int]]]) -> None:
        system.model = LdaModel(
            documents,
            num_topics=SETTING.latent_dim,
            id2word={number: str(number) for number in range(system.words)},
            passes=20,
            iterations=400,
            alpha="auto",
            eta="auto",
            eval_every=None,
            random_state=SETTING.seed,
        )

    system.fit = fit
    return system


def tomotopy(**changes: Any) -> Any:
    import tomotopy as tool

    from lab.benchmark.systems.tomotopy_lda import TomotopyLDA

    system = TomotopyLDA(SETTING)
    if changes:
        system.model = tool.LDAModel(k=SETTING.latent_dim, seed=SETTING.seed + 1, **changes)
    return system


def sklearn(**changes: Any) -> Any:
    from lab.benchmark.systems.sklearn_lda import SklearnLDA

    system = SklearnLDA(SETTING)
    system.model.set_params(**changes)
    return system


SYSTEMS: dict[str, Callable[[], Any]] = {
    "gensim: LdaMulticore, 20 passes": gensim,
    "gensim: tutorial settings, learned priors, 20 passes of 400 iterations": gensim_tutorial,
    "tomotopy: 1,000 iterations": tomotopy,
    "tomotopy: eta = 0.1 instead of 0.01": partial(tomotopy, eta=0.1),
    "tomotopy: eta = 0.6, as in `--model lda`": partial(tomotopy, eta=0.6),
    "scikit-learn: batch, 20 passes": sklearn,
    "scikit-learn: batch, 60 passes": partial(sklearn, max_iter=60),
    "scikit-learn: online, 20 passes": partial(sklearn, learning_method="online"),
}


def runs(plan: Plan) -> Iterator[Run]:
    for name in SYSTEMS:
        yield Run({"settings": name}, partial(measure, name))


def measure(name: str) -> dict[str, float]:
    earlier, later = split_by_date()
    system = SYSTEMS[name]()
    documents = system.read(earlier[np.random.default_rng(0).permutation(earlier.shape[0])])
    started = time.monotonic()
    system.fit(documents)
    seconds = time.monotonic() - started
    lengths = np.asarray(later.sum(1)).ravel()
    return {"perplexity": per_document_perplexity(system.bounds(later), lengths), "fit_seconds": seconds}


def table(records: list[Record]) -> str:
    found = {record["settings"]["settings"]: record["result"]["perplexity"] for record in records}
    rows = [[name, f"{found[name]:,.0f}"] for name in SYSTEMS if name in found]
    return markdown_table(["settings", "perplexity, held-out training documents"], rows)


EXPERIMENT = Experiment("peer-settings", "LDA of other tools under several of their settings", runs, table)
