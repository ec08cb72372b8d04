"""One h a question (`nasm_question`) beside the same network without h: does h live, and what is it worth? WikiQA.

Not a table of the paper, whose NASM has an h that carries nothing. Both are trained on all questions, also those that
have no right answer, since the likelihood of a question's labels is that of questions as they come.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from lab.experiments.question_latents import Labelled, Latents, Part, Scaling, exchanged
from varitext.answers.task import ACTIVE
from varitext.corpora.question_answers import canonical_order
from varitext.evaluation.calibration import log_loss
from varitext.evaluation.ranking import ranking_record
from varitext.evaluation.significance import bootstrap_interval, paired_randomisation_test
from varitext.reproduce.answer_fits import DATA, fit_ranker, fitted_ranker, load_part, record_of
from varitext.reproduce.engine import Experiment, Plan, Record, Run, markdown_table, rounded

CORPUS, MODEL = "wikiqa", "nasm_question"
SEEDS = 3
LATENT_DIMS = {8: "one h a question", 0: "without h"}  # 8 is its own default
BY_RIGHT = {"none": (0, 0), "one": (1, 1), "two": (2, 2), "three or more": (3, 10**9)}  # numbers of right answers


def runs(plan: Plan) -> Iterator[Run]:
    for seed in plan.seeds_or(SEEDS):
        for latent_dim in LATENT_DIMS:
            settings = {"model": MODEL, "latent_dim": latent_dim, "seed": seed}
            yield Run(settings, partial(measure, latent_dim, seed, plan))


def measure(latent_dim: int, seed: int, plan: Plan) -> dict[str, Any]:
    if latent_dim:
        ranker = fitted_ranker(CORPUS, MODEL, seed, plan)  # Figures 4 and 5 are of the same
    else:
        ranker = fit_ranker(CORPUS, MODEL, seed, plan, latent_dim=0)
    dev, test = (load_part(CORPUS, part, plan) for part in ("dev", "test"))
    on_dev, on_test = (Part(ranker, canonical_order(part).question_answers) for part in (dev, test))
    of_dev, of_test = on_dev.latents(), on_test.latents()
    scaling = Scaling.fit(on_dev.given(of_dev.of_prior))
    found = {
        **record_of(ranker.evaluate(test, DATA[CORPUS].protocol), per_question=True),
        "dev_map": round(ranker.fitted_.dev_map, 5),
        "fit_seconds": round(ranker.fitted_.fit_seconds, 1),
        "scaling": rounded(scaling, 5),
        "dev": _measures(on_dev, of_dev, scaling),
        "test": _measures(on_test, of_test, scaling),
    }
    return found


def _measures(part: Part, latents: Latents, scaling: Scaling) -> dict[str, Any]:
    trained = part.given(latents.of_prior)
    own = trained.scaled(scaling)
    joint, as_trained = own.joint(), trained.joint()
    without_right = np.bincount(own.question_of, own.labels) == 0
    found = {
        "joint_log_likelihood": rounded(joint),  # of each question
        "joint_nll": round(-float(joint.mean()), 5),
        "log_likelihood_as_trained": rounded(as_trained),
        "nll_as_trained": round(-float(as_trained.mean()), 5),
        "none_log_loss": round(log_loss(own.probability_none(), without_right), 5),
        "n_right": np.bincount(own.question_of, own.labels).astype(int).tolist(),
        "map": _map(own),
    }
    return found | (_of_latent(part, latents, scaling, own) if latents.kl.shape[1] else {})


def _of_latent(part: Part, latents: Latents, scaling: Scaling, own: Labelled) -> dict[str, float]:
    """What h carries: nats of a question, and what is lost where it has another question's h."""
    other = part.given(exchanged(latents.of_prior)).scaled(scaling)
    posterior, others = (
        part.given(h).scaled(scaling).given_h().mean() for h in (latents.of_posterior, exchanged(latents.of_posterior))
    )
    given_h = own.given_h()  # [S, Q]
    weights = given_h.softmax(0)  # of samples of the prior, which make them samples of the exact posterior
    values = {
        "kl": latents.kl.sum(1).mean(),
        "active_units": (latents.kl.mean(0) > ACTIVE).sum(),
        "cost_of_other_prior": own.joint().mean() - other.joint().mean(),
        "cost_of_other_posterior": posterior - others,
        "exact_kl": ((weights * given_h).sum(0) - own.joint()).mean(),
        "effective_samples": (1 / weights.square().sum(0)).mean() / len(weights),
        "log_odds_std": own.logits.std(0).mean(),
    }
    return {name: round(float(value), 5) for name, value in values.items()} | {"map_of_other_prior": _map(other)}


def _map(labelled: Labelled) -> float:
    found = ranking_record(labelled.probability(), labelled.labels.numpy(), labelled.question_of.numpy())
    return round(found.map, 5)


# What is shown


def table(records: list[Record]) -> str:
    ours, twin = (_results(records, latent_dim) for latent_dim in LATENT_DIMS)
    parts = [f"What h carries on test questions:\n\n{_carried(ours)}", f"How well both do:\n\n{_done(ours, twin)}"]
    if ours and len(ours) == len(twin):
        parts.append(f"With h against without, each question the mean over seeds, paired:\n\n{_compared(ours, twin)}")
    return "\n\n".join(parts)


def _results(records: list[Record], latent_dim: int) -> list[dict[str, Any]]:
    found = [one for one in records if one["settings"]["latent_dim"] == latent_dim]
    return [one["result"] for one in sorted(found, key=lambda one: one["settings"]["seed"])]


def _carried(ours: list[dict[str, Any]]) -> str:
    test = [one["test"] for one in ours]
    rows = [
        ["KL, nats a question", _mean(test, "kl", ".3f")],
        ["KL, exact", _mean(test, "exact_kl", ".3f")],
        [f"units above {ACTIVE} nats", _mean(test, "active_units", ".1f")],
        ["std of log odds over samples of h", _mean(test, "log_odds_std", ".2f")],
        ["h of another question's posterior costs, nats", _mean(test, "cost_of_other_posterior", ".3f")],
        ["h of another question's prior costs, nats", _mean(test, "cost_of_other_prior", ".4f")],
        ["MAP with 200 samples", _mean(test, "map", ".4f")],
        ["MAP with h of another question's prior", _mean(test, "map_of_other_prior", ".4f")],
    ]
    return markdown_table(["", f"mean of {len(ours)} seeds"], rows)


def _done(ours: list[dict[str, Any]], twin: list[dict[str, Any]]) -> str:
    rows = []
    for name, found in zip(LATENT_DIMS.values(), (ours, twin), strict=True):
        dev, test = ([one[part] for one in found] for part in ("dev", "test"))
        cells = [_mean(dev, "joint_nll", ".4f"), _mean(test, "joint_nll", ".4f", spread=True)]
        cells += [_mean(test, "nll_as_trained", ".4f")]
        cells += [_mean(test, "none_log_loss", ".4f"), _mean(found, "dev_map", ".4f")]
        cells += [_mean(found, "map", ".4f", spread=True), _mean(found, "mrr", ".4f", spread=True)]
        rows.append([name, *cells, str(len(found))])
    head = ["", "dev NLL", "test NLL, nats a question", "as trained", "log loss of P(none)"]
    head += ["dev MAP", "MAP", "MRR", "seeds"]
    return markdown_table(head, rows)


def _mean(found: list[dict[str, Any]], name: str, form: str, spread: bool = False) -> str:
    values = [one[name] for one in found if name in one]
    if not values:
        return ""
    return f"{np.mean(values):{form}}" + (f" ± {np.std(values):{form}}" if spread else "")


def _compared(ours: list[dict[str, Any]], twin: list[dict[str, Any]]) -> str:
    joint, as_trained = (
        [[one["test"][name] for one in found] for found in (ours, twin)]
        for name in ("joint_log_likelihood", "log_likelihood_as_trained")
    )
    precision = [[one["average_precision"] for one in found] for found in (ours, twin)]
    rows = [["joint log likelihood, nats", "all", *_paired(*joint)]]
    n_right = np.array(ours[0]["test"]["n_right"])
    for name, (low, high) in BY_RIGHT.items():
        chosen = (low <= n_right) & (n_right <= high)
        if chosen.any():
            rows.append(["", f"right answers: {name}", *_paired(*(np.array(values)[:, chosen] for values in joint))])
    rows.append(["as trained", "all", *_paired(*as_trained)])
    rows.append(["average precision", "with a right answer", *_paired(*precision)])
    return markdown_table(["", "questions", "number", "difference", "95 % interval", "p"], rows)


def _paired(ours: Any, twin: Any) -> list[str]:
    tested = paired_randomisation_test(ours, twin)
    interval = bootstrap_interval(np.array(ours) - np.array(twin), resamples=10_000)
    bounds = f"{interval.low:+.4f} to {interval.high:+.4f}"
    return [str(tested.n_questions), f"{tested.difference:+.4f}", bounds, f"{tested.p_value:.3f}"]


EXPERIMENT = Experiment("question-latent", "one h a question beside the same network without h", runs, table)
