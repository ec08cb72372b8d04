"""Functions of log odds and of logarithms, on numpy arrays: importing torch or scipy would take longer than a ranking.

`functions_for` returns them for arrays and torch's for tensors, so that one formula serves training, which needs
gradients, and prediction, which does not.
"""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor


def expit(log_odds: np.ndarray) -> np.ndarray:
    """The probability of log odds."""
    with np.errstate(over="ignore"):  # exp of a large number is infinity, and the probability 0
        return np.asarray(1 / (1 + np.exp(-log_odds)))


def logit(probability: np.ndarray) -> np.ndarray:
    """The log odds of a probability, between 0 and 1."""
    return np.asarray(np.log(probability / (1 - probability)))


class Functions(NamedTuple):
    """The last three sum over, or join along, the last axis."""

    log: Callable[[Any], Any]
    where: Callable[[Any, Any, Any], Any]
    stack: Callable[[Any], Any]
    logsigmoid: Callable[[Any], Any]
    logsumexp: Callable[[Any], Any]
    log_softmax: Callable[[Any], Any]
    concatenate: Callable[[Any], Any]


def functions_for(values: "np.ndarray | Tensor") -> Functions:
    """The functions that apply to these values."""
    return OF_ARRAYS if isinstance(values, np.ndarray) else _of_tensors()


def _log(values: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):  # as in torch: minus infinity for 0
        return np.asarray(np.log(values))


def _logsumexp(values: np.ndarray) -> np.ndarray:
    return np.asarray(np.logaddexp.reduce(values, -1))


OF_ARRAYS = Functions(
    log=_log,
    where=np.where,
    stack=np.stack,
    logsigmoid=lambda values: -np.logaddexp(0, -values),
    logsumexp=_logsumexp,
    log_softmax=lambda values: values - _logsumexp(values)[..., None],
    concatenate=lambda parts: np.concatenate(parts, -1),
)


@cache
def _of_tensors() -> Functions:
    import torch  # slow to import

    return Functions(
        log=torch.log,
        where=torch.where,
        stack=torch.stack,
        logsigmoid=torch.nn.functional.logsigmoid,
        logsumexp=lambda values: values.logsumexp(-1),
        log_softmax=lambda values: values.log_softmax(-1),
        concatenate=lambda parts: torch.cat(parts, -1),
    )
