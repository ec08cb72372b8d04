"""What one h for all candidates of a question says (`models/answers/nasm_question.py`), measured on whole parts.

The joint likelihood of a question's labels is a mean over samples h of the prior,

    p(y | q) = E_{p(h | q)} sum_m p(m | h) p(y | m, h)        `layers/main_answer.py`

of which a model without h has a single term. It is given as the network has it, and with one scale and one shift of
the log odds by which p(m | h) chooses, which maximise it on dev questions: for each model by itself, so that a model
that is only too sure, or expects too many answers, loses nothing by it.
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from varitext.answers.prediction import PREDICTION_PAIRS, prior_samples
from varitext.answers.ranker import AnswerRanker
from varitext.batches.pairs import PairBatches
from varitext.corpora.question_answers import QuestionAnswers
from varitext.latent.bound import kl
from varitext.layers.main_answer import log_main_or_none, log_probability_of_labels, side_by_side
from varitext.models.answers.nasm_question import QuestionNASM
from varitext.runtime.randomness import seeded

SAMPLES = 200


class Labelled(NamedTuple):
    """What the network says of a part under each of S samples of h, and what is known of its pairs."""

    logits: Tensor  # [S, P]   of being the main answer, against none
    also: Tensor  # [S, P]   log odds of being right beside it
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
        return _log_mean(self.given_h())

    def probability_none(self) -> np.ndarray:
        """That no candidate is right, [Q]."""
        _, log_none = self._main_or_none()
        return _log_mean(log_none).exp().numpy()

    def probability(self) -> np.ndarray:
        """What candidates are ranked by, [P]."""
        return self.logits.sigmoid().mean(0).numpy()

    def _main_or_none(self) -> tuple[Tensor, Tensor]:
        return log_main_or_none(
            self._table(self.logits), self.score_of_none, self._table(self._ones())
        )  # [S, Q, n], [S, Q]

    def _table(self, of_pairs: Tensor) -> Tensor:
        return side_by_side(of_pairs, self.question_of)

    def _ones(self) -> Tensor:
        return torch.ones_like(self.labels, dtype=self.logits.dtype)


def _log_mean(values: Tensor) -> Tensor:
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
    """A part of a corpus, as a fitted network reads it; in the order of `canonical_order`."""

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
        """What the network says of all pairs where each question has its row of h, [S, Q, K]."""
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
    """Each question is given the h of one half round the part: neighbours are often alike."""
    return h.roll(h.shape[1] // 2, 1)
