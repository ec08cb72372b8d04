"""What training is told and what it tells: settings, tasks, scores, progress and state."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

from torch import Tensor, nn

from varitext.errors import InputError


@dataclass(frozen=True)
class TrainingSettings:
    epochs: int = 25
    """Passes over the training examples, unless early stopping or the time limit ends it before."""
    batch_size: int = 128
    learning_rate: float = 2e-3
    """The highest; it rises over `learning_rate_warm_up` of the steps, then falls along a cosine to zero."""
    learning_rate_warm_up: float = 0.05
    kl_warm_up: float = 0.2
    """Share of the steps over which the weight of the KL rises to 1; a share, so that it always gets there."""
    samples: int = 1
    """Draws of h per example and step."""
    updates: str = "joint"
    """`joint`, or `alternating`: the generative model, then the inference network, `alternate_every` steps each."""
    alternate_every: int = 1
    gradient_clip: float = 5.0
    weight_decay: float = 0.0
    averaging: float = 0.0
    """Decay per step of a moving average of the weights, which then is what is scored and kept; 0 is without."""
    patience: int = 5
    """Rounds without a better held-out score before training stops; counted once the KL has its full weight."""
    smoothing: int = 1
    """Rounds whose mean held-out score chooses what is kept: above 1 where one score is noisy, against lucky rounds."""
    rounds_per_epoch: int = 1
    """How often per epoch the held-out score is taken and a checkpoint written."""
    time_limit: float | None = None
    """Seconds; the schedule is squeezed into it. A run cut by the clock is not repeatable to the bit."""
    seed: int = 0

    def __post_init__(self) -> None:
        positive = ("epochs", "batch_size", "learning_rate", "samples", "gradient_clip")
        for name in (*positive, "patience", "smoothing", "rounds_per_epoch", "alternate_every"):
            if not 0 < getattr(self, name) < math.inf:
                raise InputError(f"{name} must be above zero, not {getattr(self, name)}")
        for name in ("learning_rate_warm_up", "kl_warm_up"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name} is a share of the steps, from 0 to 1, not {getattr(self, name)}")
        if self.time_limit is not None and not self.time_limit > 0:
            raise InputError(f"time_limit must be above zero, not {self.time_limit}")
        if not 0 <= self.averaging < 1:
            raise InputError(f"averaging is a decay per step, from 0 to below 1, not {self.averaging}")
        if self.updates not in ("joint", "alternating"):
            raise InputError(f"updates is 'joint' or 'alternating', not {self.updates!r}")


class StepLoss(NamedTuple):
    """The loss of one batch, and what the progress line shows of it; of a share, its part in them."""

    loss: Tensor  # scalar
    elbo: Tensor  # scalar, un-annealed, per unit (word or pair)
    kl: Tensor  # scalar, per example


class Score(NamedTuple):
    """How well the model does on held-out examples."""

    loss: float  # lower is better; decides what is kept and when to stop
    metrics: dict[str, float]  # for metrics.jsonl and the progress line


class Task(Protocol):
    """What is learned; `model` is of the kind that the task is made for."""

    steps_per_epoch: int

    @property
    def fingerprint(self) -> str:
        """Tells one set of training examples from another: a checkpoint belongs to its data."""

    def batches(self, epoch: int) -> Iterator[Any]:
        """The training batches of one epoch, in an order that depends on seed and epoch alone."""

    def loss(self, model: Any, batch: Any, kl_weight: float) -> StepLoss: ...

    def score(self, model: Any) -> Score: ...


@runtime_checkable
class HasInferenceParameters(Protocol):
    """A model that tells phi, of the inference network, from theta: what alternating updates need."""

    def inference_parameters(self) -> Iterator[nn.Parameter]: ...


class Progress(Protocol):
    """Whoever watches. All methods may do nothing."""

    def step(self, share_done: float, elbo: float, kl: float) -> None: ...

    def round(self, record: dict[str, float]) -> None: ...

    def note(self, message: str) -> None: ...


@dataclass(frozen=True)
class PartOfProgress:
    """Progress of one run among several that are watched as one: from share `start` of the whole to share `end`."""

    whole: Progress
    start: float
    end: float

    def step(self, share_done: float, elbo: float, kl: float) -> None:
        self.whole.step(self.start + share_done * (self.end - self.start), elbo, kl)

    def round(self, record: dict[str, float]) -> None:
        self.whole.round(record)

    def note(self, message: str) -> None:
        self.whole.note(message)


@dataclass
class TrainingState:
    """All that a run needs to go on, besides the tensors; saved with every checkpoint."""

    step: int = 0
    seconds: float = 0.0
    best: float = math.inf  # the mean of as many scores as `smoothing` says
    best_step: int = 0
    last_scores: list[float] = field(default_factory=list)
    rounds_without_gain: int = 0
    rescues: int = 0
    learning_rate_scale: float = 1.0
    first_score: float = math.inf
    stopped: str = ""  # empty while running; then: finished, early, time, interrupted, diverged
    history: list[dict[str, float]] = field(default_factory=list)

    @property
    def best_record(self) -> dict[str, float]:
        """The metrics of the weights that were kept."""
        return next(record for record in self.history if record["step"] == self.best_step)
