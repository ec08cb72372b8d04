"""Effects of covariates on topics: how often 95 % intervals contain effects that are known.

Documents belong to one of four topics, with shares that depend on a party and a number. Their topics are seen with
noise; memberships are the calibrated posterior that ignores the covariates, as a fitted model's do. The last row fits a
model to simulated texts instead.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from varitext.documents.effects import corrected_memberships, regress
from varitext.documents.model import DocumentModel
from varitext.reproduce.engine import Experiment, Plan, Record, grid, markdown_table

SEEDS = 1
SIMULATIONS, QUICK_SIMULATIONS = 400, 20
FITS, QUICK_FITS = 10, 1
SHARES = np.array([0.4, 0.3, 0.2, 0.1])
OF_PARTY, OF_NUMBER = np.array([0.1, -0.1, 0.05, -0.05]), np.array([0.1, 0.05, -0.1, -0.05])
NOISES = (0.3, 0.6, 1.0)
DOCUMENTS, WORDS = 600, 8


class Drawn(NamedTuple):
    design: np.ndarray  # [D, 3]   one, party, number
    shares: np.ndarray  # [D, 4]   of topics, given these
    topics: np.ndarray  # [D]


def draw(generator: np.random.Generator) -> Drawn:
    party, number = generator.integers(2, size=DOCUMENTS), generator.random(DOCUMENTS) - 0.5
    shares = SHARES + np.outer(party, OF_PARTY) + np.outer(number, OF_NUMBER)
    topics = (generator.random(DOCUMENTS)[:, None] > shares.cumsum(1)).sum(1)
    return Drawn(np.stack([np.ones(DOCUMENTS), party, number], 1), shares, topics)


def memberships_of(drawn: Drawn, noise: float, generator: np.random.Generator) -> np.ndarray:
    """Memberships from topics observed with noise that differs between documents."""
    own = noise * generator.uniform(0.5, 1.5, (DOCUMENTS, 1))
    seen = np.eye(4)[drawn.topics] + own * generator.standard_normal((DOCUMENTS, 4))
    log_joint = np.log(drawn.shares.mean(0)) - np.square(seen[:, None] - np.eye(4)).sum(2) / (2 * own**2)
    joint = np.exp(log_joint - log_joint.max(1, keepdims=True))
    return joint / joint.sum(1, keepdims=True)


def fitted_memberships(drawn: Drawn, seed: int, generator: np.random.Generator) -> np.ndarray:
    """Memberships by a model fitted to texts of one topic each; columns in the order of the true topics."""
    words = np.array([[f"{kind}{chr(97 + one)}" for one in range(10)] for kind in ("space", "sport", "faith", "trade")])
    texts = [" ".join(generator.choice(words[topic], WORDS)) for topic in drawn.topics]
    model = DocumentModel(latent_dim=4, epochs=20, seed=seed, threads=1, n_topics=4).fit(texts)
    found = model.topic_memberships(texts)
    order = [int(found[drawn.topics == topic].mean(0).argmax()) for topic in range(4)]
    return found[:, order]


def covered(design: np.ndarray, memberships: np.ndarray) -> tuple[list[bool], list[float]]:
    """Whether each interval contains the effect of the party, and the estimates."""
    rows = list(regress(design, memberships).combined(np.array([0.0, 1.0, 0.0])))
    return [low <= true <= high for (_, _, low, high, _), true in zip(rows, OF_PARTY, strict=True)], [
        row[0] for row in rows
    ]


def measure(seed: int, plan: Plan) -> dict[str, Any]:
    found = {}
    n_simulations, n_fits = (QUICK_SIMULATIONS, QUICK_FITS) if plan.quick else (SIMULATIONS, FITS)
    for name, noise in [*((f"noise {noise}", noise) for noise in NOISES), ("fitted model", None)]:
        results = []
        for number in range(n_simulations if noise else n_fits):
            generator = np.random.default_rng((seed, number, int(10 * (noise or 0))))
            drawn = draw(generator)
            raw = memberships_of(drawn, noise, generator) if noise else fitted_memberships(drawn, number, generator)
            results.append([*covered(drawn.design, corrected_memberships(raw)), *covered(drawn.design, raw)])
        hits, estimates, raw_hits, raw_estimates = (np.array([one[i] for one in results], float) for i in range(4))
        found[name] = {
            "simulations": len(results),
            "coverage": round(float(hits.mean()), 4),
            "slope": round(float((estimates @ OF_PARTY).mean() / (OF_PARTY @ OF_PARTY)), 3),
            "uncorrected_coverage": round(float(raw_hits.mean()), 4),
            "uncorrected_slope": round(float((raw_estimates @ OF_PARTY).mean() / (OF_PARTY @ OF_PARTY)), 3),
        }
    return {"kinds": found}


def table(records: list[Record]) -> str:
    head = ["documents", "simulations", "coverage", "estimate / truth", "uncorrected: coverage", "estimate / truth"]
    rows = [[name, *map(str, one.values())] for name, one in records[0]["result"]["kinds"].items()]
    return markdown_table(head, rows)


RUNS = partial(grid, measure, SEEDS)
EXPERIMENT = Experiment("effects", "coverage of 95 % intervals of known effects of covariates", RUNS, table)
