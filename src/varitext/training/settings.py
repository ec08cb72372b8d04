"""The interface of training: its options and settings, tasks, scores, progress and state."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from varitext.errors import InputError
from varitext.records import MODEL, TRAINING, WHERE_IT_RUNS, Option

if TYPE_CHECKING:  # the command line's help reads the options without importing torch
    from torch import Tensor, nn

# Options of every fit, of documents and of answers
LATENT_DIM = Option("Number of latent dimensions (default: 50, or the model's own).", MODEL, "N", minimum=1)
EPOCHS = Option(
    "Passes over the training documents or questions. Chosen by the model if omitted.", TRAINING, "N", minimum=1
)
LEARNING_RATE = Option("Peak learning rate. Chosen by the model if omitted.", TRAINING, "RATE")
TIME_LIMIT = Option("Time limit, for example 60s, 10m or 2h; the schedule adapts to it.", TRAINING, "TIME")
SEED = Option(
    "Random seed. Same seed, machine and number of threads: identical results.",
    TRAINING,
    "N",
    minimum=0,
    maximum=2**32 - 1,
)
THREADS = Option("Number of CPU threads (default: all cores).", WHERE_IT_RUNS, "N", minimum=1, maximum=1024)
DEVICE = Option("Device: cpu or cuda.", WHERE_IT_RUNS, "NAME")

KL_SCHEDULES = ("linear", "cyclical", "none")
KL_CYCLES = 4  # as in Fu et al. 2019


@dataclass(frozen=True)
class TrainingSettings:
    epochs: int = 25
    """Passes over the training examples, unless early stopping or the time limit ends training first."""
    batch_size: int = 128
    learning_rate: float = 2e-3
    """Peak learning rate; it rises over `learning_rate_warm_up` of the steps."""
    learning_rate_schedule: str = "cosine"
    """The schedule after that: `cosine`, a fall to zero, or `constant`."""
    learning_rate_warm_up: float = 0.05
    kl_schedule: str = "linear"
    """`linear`: the weight of the KL rises once; `cyclical`: in each of `KL_CYCLES` cycles; `none`: it is 1."""
    kl_warm_up: float = 0.2
    """Share of the steps, or of those of a cycle, over which the weight of the KL rises to 1."""
    samples: int = 1
    """Draws of h per example and step."""
    updates: str = "joint"
    """`joint`, or `alternating`: the generative model, then the inference network, `alternate_every` steps each."""
    alternate_every: int = 1
    gradient_clip: float = 5.0
    weight_decay: float = 0.0
    averaging: float = 0.0
    """Decay per step of a moving average of the weights, which is then scored and kept; 0 for none."""
    patience: int = 5
    """Rounds without a better held-out score before training stops, counted once the KL has full weight."""
    smoothing: int = 1
    """Rounds over which the held-out score is averaged before the best weights are chosen."""
    rounds_per_epoch: int = 1
    """Held-out evaluations and checkpoints per epoch."""
    time_limit: float | None = None
    """Seconds; the schedule adapts to the limit. A run that the limit ends is not reproducible bit-for-bit."""
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
        if self.kl_schedule not in KL_SCHEDULES:
            raise InputError(f"kl_schedule is one of {', '.join(KL_SCHEDULES)}, not {self.kl_schedule!r}")
        if self.learning_rate_schedule not in ("cosine", "constant"):
            raise InputError(f"learning_rate_schedule is 'cosine' or 'constant', not {self.learning_rate_schedule!r}")
        if self.updates not in ("joint", "alternating"):
            raise InputError(f"updates is 'joint' or 'alternating', not {self.updates!r}")


class StepLoss(NamedTuple):
    """The loss of one batch and the values of the progress line; with several processes, this one's part of them."""

    loss: "Tensor"  # scalar; without a graph if the task has set the gradients itself
    elbo: "Tensor"  # scalar, un-annealed, per unit (word or pair)
    kl: "Tensor"  # scalar, per example


class Score(NamedTuple):
    """The result on held-out examples."""

    loss: float  # lower is better; selects the weights and stops training
    metrics: dict[str, float]  # for metrics.jsonl and the progress line


class Task(Protocol):
    """A learning task; `model` must be of the kind that the task is for."""

    steps_per_epoch: int

    @property
    def fingerprint(self) -> str:
        """Identifies the training examples: a checkpoint belongs to its data."""

    def batches(self, epoch: int) -> Iterator[Any]:
        """The training batches of one epoch, in an order that depends on seed and epoch only."""

    def loss(self, model: Any, batch: Any, kl_weight: float) -> StepLoss: ...

    def score(self, model: Any) -> Score: ...


@runtime_checkable
class HasInferenceParameters(Protocol):
    """A model whose inference network has separate parameters, as alternating updates need."""

    def inference_parameters(self) -> "Iterator[nn.Parameter]": ...


class Progress(Protocol):
    """A display of training; all methods may do nothing."""

    def step(self, share_done: float, elbo: float, kl: float) -> None: ...

    def round(self, record: dict[str, float]) -> None: ...

    def note(self, message: str) -> None: ...


@dataclass(frozen=True)
class PartOfProgress:
    """Progress of one of several runs that are shown as one: from share `start` of the whole to `end`."""

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
class ProgressWithRest:
    """Progress of training, which is the first part of the whole up to `end`, and of the work that follows it."""

    whole: Progress
    end: float
    last: tuple[float, float] = (0.0, 0.0)  # the bound and the KL of the last step

    def step(self, share_done: float, elbo: float, kl: float) -> None:
        self.last = elbo, kl
        self.whole.step(share_done * self.end, elbo, kl)

    def round(self, record: dict[str, float]) -> None:
        self.whole.round(record)

    def note(self, message: str) -> None:
        self.whole.note(message)

    def rest(self, share_done: float) -> None:
        self.whole.step(self.end + share_done * (1 - self.end), *self.last)


@dataclass
class TrainingState:
    """The state of a run besides its tensors; saved with every checkpoint."""

    step: int = 0
    seconds: float = 0.0
    best: float = math.inf  # the mean of the last `smoothing` scores
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
        """The metrics of the best weights."""
        return next(record for record in self.history if record["step"] == self.best_step)
