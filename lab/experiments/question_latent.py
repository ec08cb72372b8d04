"""NASM with a question-level latent (`nasm_question`) beside the same network without h, on WikiQA.

Both are trained on all questions, including those without a correct answer. The joint likelihood of a question's labels
is a mean over samples h of the prior,

    p(y | q) = E_{p(h | q)} sum_m p(m | h) p(y | m, h)        `layers/main_answer.py`

which has a single term for a model without h. It is reported as trained, and with one scale and one shift of the log
odds of p(m | h), fitted for each model on dev questions, which removes the effect of over-confidence.
"""

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from varitext.answers.network_prediction import PREDICTION_PAIRS, prior_samples
from varitext.answers.ranker import AnswerRanker
from varitext.answers.task import ACTIVE
from varitext.batches.pairs import PairBatches
from varitext.corpora.question_answers import QuestionAnswers, canonical_order
from varitext.evaluation.calibration import log_loss
from varitext.evaluation.ranking import ranking_record
from varitext.evaluation.significance import bootstrap_interval, paired_randomisation_test
from varitext.latent.bound import kl
from varitext.layers.main_answer import log_main_or_none, log_probability_of_labels, side_by_side
from varitext.models.answers.nasm_question import QuestionNASM
from varitext.reproduce.answer_fits import DATA, fit_ranker, fitted_ranker, load_part, record_of
from varitext.reproduce.engine import Experiment, Plan, Record, grid, markdown_table, mean, results, rounded
from varitext.runtime.randomness import seeded

SAMPLES = 200


class Labelled(NamedTuple):
    """The network's outputs for a part under each of S samples of h, and the labels of its pairs."""

    logits: Tensor  # [S, P]   of being the main answer, against none
    also: Tensor  # [S, P]   log odds of being correct beside it
    score_of_none: Tensor  # [S, Q]
    labels: Tensor  # [P]
    question_of: Tensor  # [P]

    def scaled(self, scaling: "Scaling") -> "Labelled":
        return self._replace(logits=scaling.scale * self.logits + scaling.shift)

    def given_h(self) -> Tensor:
        """log p(y | q, h) of each question, [S, Q]."""
        also, right, number = (self._table(one) for one in (self.also, self.labels == 1, self._ones()))
        return log_probability_of_labels(*self._main_or_none(), also, right, number)

    def joint(self) -> Tensor:
        """log p(y | q), [Q]."""
        return _logmean(self.given_h())

    def probability_none(self) -> np.ndarray:
        """That no candidate is correct, [Q]."""
        _, log_none = self._main_or_none()
        return _logmean(log_none).exp().numpy()

    def probability(self) -> np.ndarray:
        """Candidates are ranked by this, [P]."""
        return self.logits.sigmoid().mean(0).numpy()

    def _main_or_none(self) -> tuple[Tensor, Tensor]:
        return log_main_or_none(
            self._table(self.logits), self.score_of_none, self._table(self._ones())
        )  # [S, Q, n], [S, Q]

    def _table(self, of_pairs: Tensor) -> Tensor:
        return side_by_side(of_pairs, self.question_of)

    def _ones(self) -> Tensor:
        return torch.ones_like(self.labels, dtype=self.logits.dtype)


def _logmean(values: Tensor) -> Tensor:
    return torch.logsumexp(values, 0) - math.log(len(values))


class Scaling(NamedTuple):
    scale: float
    shift: float

    @classmethod
    def fit(cls, labelled: Labelled) -> "Scaling":
        """By maximum likelihood of whole questions."""

        def objective(values: np.ndarray) -> tuple[float, np.ndarray]:
            parameters = torch.tensor(values, requires_grad=True)
            loss = -labelled.scaled(Scaling(*parameters)).joint().mean()
            (gradient,) = torch.autograd.grad(loss, parameters)
            return float(loss.detach()), gradient.numpy()

        return cls(*minimize(objective, np.array([1.0, 0.0]), jac=True, method="L-BFGS-B").x.tolist())


class Latents(NamedTuple):
    """h of every question of a part, and how far its posterior is from its prior."""

    of_prior: Tensor  # [S, Q, K]
    of_posterior: Tensor  # [S, Q, K]   which has seen the labels
    kl: Tensor  # [Q, K]


class Part:
    """A part of a corpus in canonical order, as a fitted network reads it."""

    def __init__(self, ranker: AnswerRanker, question_answers: QuestionAnswers, samples: int = SAMPLES):
        network = ranker.fitted_.network
        assert isinstance(network, QuestionNASM)
        self.network, self.seed = network, ranker.seed
        self.samples = samples if network.has_latent else 1
        self.labels = torch.from_numpy(question_answers.labels)
        self.question_of = torch.from_numpy(question_answers.groups)
        self.batches = PairBatches(question_answers, ranker.fitted_.vocabulary, PREDICTION_PAIRS)

    @torch.no_grad()
    def latents(self) -> Latents:
        found = []
        with seeded(self.seed):
            for batch in self.batches.in_order():
                encoding = self.network.encode(batch)
                prior, posterior = self.network.prior(encoding), self.network.posterior(encoding)
                drawn = prior_samples(self.network, encoding, batch, self.samples, self.seed)
                found.append((drawn, posterior.rsample(self.samples), kl(posterior, prior)))
        of_prior, of_posterior, divergence = zip(*found, strict=True)
        return Latents(torch.cat(of_prior, 1), torch.cat(of_posterior, 1), torch.cat(divergence))

    @torch.no_grad()
    def given(self, h: Tensor) -> Labelled:
        """The network's outputs for all pairs, each question with its row of h, [S, Q, K]."""
        found, first = [], 0
        for batch in self.batches.in_order():
            own = h[:, first : first + len(batch.questions)]
            first += len(batch.questions)
            encoding = self.network.encode(batch)
            logits = self.network.logits(own.index_select(1, batch.question_of), encoding)
            none = self.network.score_of_none(own, encoding)
            found.append((logits, self.network.also(logits, own, encoding), none))
        logits, also, none = (torch.cat(values, -1).double() for values in zip(*found, strict=True))
        return Labelled(logits, also, none, self.labels, self.question_of)


def exchanged(h: Tensor) -> Tensor:
    """Give each question the h of the question half the part away, because neighbouring questions are often similar."""
    return h.roll(h.shape[1] // 2, 1)


CORPUS, MODEL = "wikiqa", "nasm_question"
SEEDS = 3
LATENT_DIMS = {8: "question-level latent", 0: "without h"}  # 8 is the default
BY_RIGHT = {"none": (0, 0), "one": (1, 1), "two": (2, 2), "three or more": (3, 10**9)}  # numbers of right answers


def measure(model: str, latent_dim: int, seed: int, plan: Plan) -> dict[str, Any]:
    if latent_dim:
        ranker = fitted_ranker(CORPUS, model, seed, plan)  # shared with Figures 4 and 5
    else:
        ranker = fit_ranker(CORPUS, model, seed, plan, latent_dim=0)
    dev, test = (load_part(CORPUS, part, plan) for part in ("dev", "test"))
    on_dev, on_test = (Part(ranker, canonical_order(part).question_answers) for part in (dev, test))
    of_dev, of_test = on_dev.latents(), on_test.latents()
    scaling = Scaling.fit(on_dev.given(of_dev.of_prior))
    found = {
        **record_of(ranker.evaluate(test, DATA[CORPUS].protocol, baselines=False), per_question=True),
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
    """Information in h, in nats per question, and the loss when each question gets another question's h."""
    other = part.given(exchanged(latents.of_prior)).scaled(scaling)
    posterior, others = (
        part.given(h).scaled(scaling).given_h().mean() for h in (latents.of_posterior, exchanged(latents.of_posterior))
    )
    given_h = own.given_h()  # [S, Q]
    weights = given_h.softmax(0)  # weights of samples of the prior, which turn them into samples of the exact posterior
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


def table(records: list[Record]) -> str:
    ours, baseline = (results(records, latent_dim=latent_dim) for latent_dim in LATENT_DIMS)
    parts = [
        f"Information in h, test questions:\n\n{_carried(ours)}",
        f"Quality of both:\n\n{_quality(ours, baseline)}",
    ]
    if ours and len(ours) == len(baseline):
        parts.append(
            f"With h against without, each question the mean over seeds, paired:\n\n{_compared(ours, baseline)}"
        )
    return "\n\n".join(parts)


def _carried(ours: list[dict[str, Any]]) -> str:
    test = [one["test"] for one in ours]
    rows = [
        ["KL, nats per question", mean(test, "kl", ".3f")],
        ["KL, exact", mean(test, "exact_kl", ".3f")],
        [f"units above {ACTIVE} nats", mean(test, "active_units", ".1f")],
        ["std of log odds over samples of h", mean(test, "log_odds_std", ".2f")],
        ["cost of another question's posterior h, nats", mean(test, "cost_of_other_posterior", ".3f")],
        ["cost of another question's prior h, nats", mean(test, "cost_of_other_prior", ".4f")],
        ["MAP with 200 samples", mean(test, "map", ".4f")],
        ["MAP with another question's prior h", mean(test, "map_of_other_prior", ".4f")],
    ]
    return markdown_table(["", f"mean of {len(ours)} seeds"], rows)


def _quality(ours: list[dict[str, Any]], baseline: list[dict[str, Any]]) -> str:
    rows = []
    for name, found in zip(LATENT_DIMS.values(), (ours, baseline), strict=True):
        dev, test = ([one[part] for one in found] for part in ("dev", "test"))
        cells = [mean(dev, "joint_nll", ".4f"), mean(test, "joint_nll", ".4f", spread=True)]
        cells += [mean(test, "nll_as_trained", ".4f")]
        cells += [mean(test, "none_log_loss", ".4f"), mean(found, "dev_map", ".4f")]
        cells += [mean(found, "map", ".4f", spread=True), mean(found, "mrr", ".4f", spread=True)]
        rows.append([name, *cells, str(len(found))])
    head = ["", "dev NLL", "test NLL, nats per question", "as trained", "log loss of P(none)"]
    head += ["dev MAP", "MAP", "MRR", "seeds"]
    return markdown_table(head, rows)


def _compared(ours: list[dict[str, Any]], baseline: list[dict[str, Any]]) -> str:
    joint, as_trained = (
        [[one["test"][name] for one in found] for found in (ours, baseline)]
        for name in ("joint_log_likelihood", "log_likelihood_as_trained")
    )
    precision = [[one["average_precision"] for one in found] for found in (ours, baseline)]
    rows = [["joint log likelihood, nats", "all", *_paired(*joint)]]
    n_right = np.array(ours[0]["test"]["n_right"])
    for name, (low, high) in BY_RIGHT.items():
        chosen = (low <= n_right) & (n_right <= high)
        if chosen.any():
            rows.append(["", f"correct answers: {name}", *_paired(*(np.array(values)[:, chosen] for values in joint))])
    rows.append(["as trained", "all", *_paired(*as_trained)])
    rows.append(["average precision", "with a correct answer", *_paired(*precision)])
    return markdown_table(["", "questions", "number", "difference", "95 % interval", "p"], rows)


def _paired(ours: Any, baseline: Any) -> list[str]:
    tested = paired_randomisation_test(ours, baseline)
    interval = bootstrap_interval(np.array(ours) - np.array(baseline), resamples=10_000)
    bounds = f"{interval.low:+.4f} to {interval.high:+.4f}"
    return [str(tested.n_questions), f"{tested.difference:+.4f}", bounds, f"{tested.p_value:.3f}"]


RUNS = partial(grid, measure, SEEDS, model=[MODEL], latent_dim=LATENT_DIMS)
EXPERIMENT = Experiment("question-latent", "NASM with a question-level latent beside the same without h", RUNS, table)
