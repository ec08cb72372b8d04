"""One training loop for every model: schedule, early stopping, rollback after divergence, checkpoints and resume.

A `Task` defines what is learned: its batches, the loss of a batch, and the score on held-out examples. The loop knows
nothing else about models. Signs flip only in tasks: models return log likelihoods, tasks return losses.

A checkpoint is one safetensors file that is replaced atomically (no pickle).
"""

import hashlib
import itertools
import json
import math
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

import varitext
from varitext.compiled import registers, usable
from varitext.errors import InputError, TrainingDiverged
from varitext.files import atomic_file
from varitext.runtime.interruption import Interruption
from varitext.runtime.processes import ALONE, World
from varitext.runtime.randomness import random_states, seeded, set_random_states, stream
from varitext.training.optimizer import ADAMW, AdamW, Optimization, TorchOptimizer, WeightAverage
from varitext.training.settings import (
    KL_CYCLES,
    HasInferenceParameters,
    Progress,
    Score,
    StepLoss,
    Task,
    TrainingSettings,
    TrainingState,
)

CHECKPOINT_FORMAT = 1
RESCUES = 5  # rollbacks before training gives up
RESCUE_FACTOR = 0.3  # of the learning rate at a rollback
WRITE_EVERY = 2.0  # seconds at least between two checkpoints, since a round may take less time than writing one


class Trainer:
    """Trains `model` on `task`; afterwards the model holds the weights of the best held-out score."""

    def __init__(
        self,
        model: nn.Module,
        task: Task,
        settings: TrainingSettings,
        checkpoint: Path | None = None,
        progress: Progress | None = None,
        world: World = ALONE,
        optimization: Optimization = ADAMW,
    ):
        self.model, self.task, self.settings = model, task, settings
        self.checkpoint, self.progress, self.world = checkpoint, progress, world
        self.state = TrainingState()
        self.device = next(model.parameters()).device
        self.started, self.interruption = time.monotonic(), Interruption()
        self.written: Snapshot | None = None  # what the checkpoint holds
        self.written_at = -math.inf
        self.groups = _parameter_groups(model, settings.updates)
        self.schedule = optimization.schedule
        self.optimizers = [optimization.of(group, settings.weight_decay) for group in self.groups]
        first = self.optimizers[0]
        self.peak_rate = first.rates[0] if isinstance(first, TorchOptimizer) else settings.learning_rate
        self.average = WeightAverage(model, settings.averaging) if settings.averaging else None
        self.learner = Learner(model, self.optimizers, self.average, self.device)
        self.total_steps = settings.epochs * task.steps_per_epoch
        self.steps_per_round = max(1, math.ceil(task.steps_per_epoch / settings.rounds_per_epoch))

    def train(self, resume: bool = False) -> TrainingState:
        """Run to the end, from the start or from the checkpoint. The global random state is restored afterwards."""
        with seeded(stream(self.settings.seed, "training noise"), self.device), Interruption() as interruption:
            resumed = self.world.agree(bool(resume and self.checkpoint and self.checkpoint.exists()))
            if resumed and self.checkpoint:
                snapshot = load_checkpoint(self.checkpoint)
                if (differing := snapshot.differing_circumstances()) and self.world.is_first:
                    warnings.warn(f"{differing}; the result may differ from that of an uninterrupted fit", stacklevel=2)
                self._restore(snapshot)
            else:
                self._begin()
            try:
                self._run(interruption)
            finally:
                self._write()
        self.model.load_state_dict(self.best_weights)
        return self.state

    # The run

    def _begin(self) -> None:
        score = self._score()
        if not math.isfinite(score.loss):
            raise InputError(
                "the untrained model already gives infinite values on the held-out examples: check the data"
            )
        self.state.first_score = score.loss
        self._keep(score)
        self._save()

    def _run(self, interruption: Interruption) -> None:
        self.started, self.interruption = time.monotonic() - self.state.seconds, interruption
        self.model.train()
        while not self.state.stopped:
            epoch, done = divmod(self.state.step, self.task.steps_per_epoch)
            for batch in itertools.islice(self.task.batches(epoch), done, None):
                if not self._step(batch):
                    self._rescue()
                    break  # the step count was rolled back: restart from its batch
                self.state.stopped = self._reason_to_stop()
                over = self.state.stopped or self.state.step % self.steps_per_round == 0
                if over and not self._round():
                    break
                if self.state.stopped:
                    break

    def _step(self, batch: Any) -> bool:
        """One update; False if the gradient was not finite, in which case nothing was changed."""
        settings, share = self.settings, self._share_done()
        chosen = range(len(self.groups))
        if settings.updates == "alternating":
            side = self.state.step // settings.alternate_every % 2
            chosen = range(side, side + 1)
            # no gradients for the side that is not updated
            for number, group in enumerate(self.groups):
                for parameter in group:
                    parameter.requires_grad_(number in chosen)
        loss = self.task.loss(self.model, batch, self._kl_weight(share))
        if loss.loss.requires_grad:
            torch.autograd.backward(loss.loss)
        parameters = [parameter for number in chosen for parameter in self.groups[number]]
        loss = self._together(parameters, loss)
        norm = nn.utils.get_total_norm([parameter.grad for parameter in parameters if parameter.grad is not None])
        if norm > settings.gradient_clip:
            nn.utils.clip_grads_with_norm_(parameters, settings.gradient_clip, norm)
        finite = bool(torch.isfinite(norm))
        for number in chosen:
            optimizer = self.optimizers[number]
            if finite:
                optimizer.step(self._learning_rate(share))
            optimizer.zero_grad()
        self.state.step += finite
        if finite and self.average:
            self.average.update(self.model, self.state.step)
        if finite and self.progress:
            self.progress.step(self._share_done(), loss.elbo.item(), loss.kl.item())
        return finite

    @torch.no_grad()
    def _together(self, parameters: list[nn.Parameter], loss: StepLoss) -> StepLoss:
        """Sum gradients and losses over all processes, and agree on the time and on requests to stop."""
        seconds, asked = time.monotonic() - self.started, self.interruption.requested
        if self.world.size > 1:
            told = [float(asked), seconds if self.world.is_first else 0.0]
            sums = torch.cat([torch.stack(loss), torch.tensor(told, device=loss.loss.device)])
            self.world.sum_([*(each.grad for each in parameters if each.grad is not None), sums])
            loss, (asked, seconds) = StepLoss(*sums[:3]), sums[3:].tolist()
        self.state.seconds, self.asked_to_stop = seconds, bool(asked)
        return loss

    def _round(self) -> bool:
        """Compute the held-out score, keep the best weights, write the checkpoint; False after a rollback."""
        state, score = self.state, self._score()
        hopeless = not math.isfinite(score.loss) or score.loss > state.first_score + 9 * abs(state.first_score)
        if hopeless and state.stopped in ("", "finished"):
            state.stopped = ""
            self._rescue()
            return False
        if not hopeless:
            self._keep(score)
        if not state.stopped and state.rounds_without_gain >= self.settings.patience:
            state.stopped = "early"
        if state.stopped in ("interrupted", "time"):
            return True  # mid-round: resuming from the last complete round repeats the uninterrupted run
        self._save()
        return True

    def _save(self) -> None:
        """Keep the state for a rollback, and write it if the checkpoint is not recent."""
        self.safe = self._snapshot()
        if time.monotonic() - self.written_at >= WRITE_EVERY:
            self._write()

    def _write(self) -> None:
        if self.checkpoint and self.world.is_first and self.written is not self.safe:
            save_checkpoint(self.checkpoint, self.safe)
            self.written, self.written_at = self.safe, time.monotonic()

    def _reason_to_stop(self) -> str:
        if self.asked_to_stop or (self.world.size == 1 and self.interruption.requested):
            return "interrupted"
        if self.settings.time_limit is not None and self.state.seconds >= self.settings.time_limit:
            return "time"
        return "finished" if self.state.step >= self.total_steps else ""

    def _rescue(self) -> None:
        """Roll back to the last good weights, with a smaller learning rate."""
        rescues, scale = self.state.rescues + 1, self.state.learning_rate_scale * RESCUE_FACTOR
        self._restore(self.safe)
        self.state.rescues, self.state.learning_rate_scale = rescues, scale
        rate = self.peak_rate * scale
        if rescues > RESCUES:
            self.model.load_state_dict(self.best_weights)
            self.state.stopped = "diverged"
            raise TrainingDiverged(
                f"training diverged {rescues} times, last at a learning rate of {rate:.2g}; the best weights so far "
                f"are kept. Try a learning rate below {rate / 10:.1g}, or look for extreme values in the data"
            )
        if self.progress:
            self.progress.note(f"training diverged: rolled back, continuing with a learning rate of {rate:.2g}")

    def _score(self) -> Score:
        """The score computed by the first process, so that all processes make the same decisions."""
        score = None
        if self.world.is_first:
            self.model.eval()
            # separate noise: the number of evaluations must not change the run
            with seeded(stream(self.settings.seed, "dev noise"), self.device), torch.no_grad(), self._averaged():
                score = self.task.score(self.model)
            self.model.train()
        return Score(*self.world.agree(score))

    def _averaged(self) -> AbstractContextManager[None]:
        return self.average.applied(self.model) if self.average else nullcontext()

    def _keep(self, score: Score) -> None:
        state, full_kl = self.state, self._kl_weight(self._share_done()) == 1
        state.last_scores = [*state.last_scores, score.loss][-self.settings.smoothing :]
        mean = sum(state.last_scores) / len(state.last_scores)
        if mean < state.best or state.step == 0:
            state.best, state.best_step, state.rounds_without_gain = mean, state.step, 0
            with self._averaged():
                self.best_weights = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}
        elif full_kl:
            state.rounds_without_gain += 1
        record = {"step": state.step, "epoch": round(state.step / self.task.steps_per_epoch, 3)}
        record |= {"seconds": round(state.seconds, 3), "kl_weight": self._kl_weight(self._share_done())}
        record |= {"learning_rate": self._learning_rate(self._share_done())} | score.metrics
        state.history.append(record)
        if self.progress:
            self.progress.round(record)

    # The schedule

    def _share_done(self) -> float:
        share = self.state.step / self.total_steps
        if self.settings.time_limit is not None:
            share = max(share, self.state.seconds / self.settings.time_limit)
        return min(share, 1.0)

    def _learning_rate(self, share: float) -> float:
        if self.schedule:
            factor = self.schedule(share)
            if not 0 <= factor < math.inf:
                raise InputError(
                    f"schedule({share:.3g}) is {factor}: it must be a factor of the learning rate, 0 or more"
                )
            return self.peak_rate * self.state.learning_rate_scale * factor
        warm_up = self.settings.learning_rate_warm_up
        rise = min(1.0, (share + 1 / self.total_steps) / warm_up) if warm_up else 1.0  # the first step is not zero
        fall = 0.5 * (1 + math.cos(math.pi * share)) if self.settings.learning_rate_schedule == "cosine" else 1.0
        return self.peak_rate * self.state.learning_rate_scale * rise * fall

    def _kl_weight(self, share: float) -> float:
        schedule, warm_up = self.settings.kl_schedule, self.settings.kl_warm_up
        if schedule == "none" or not warm_up:
            return 1.0
        if schedule == "cyclical" and share < 1:  # share 1 is the end of the last cycle
            share = share * KL_CYCLES % 1
        return min(1.0, 0.1 + 0.9 * share / warm_up)

    # State

    def _snapshot(self) -> "Snapshot":
        tensors = self.learner.tensors() | {f"best.{name}": tensor for name, tensor in self.best_weights.items()}
        settings = self._settings() | {"fingerprint": self.task.fingerprint}
        return Snapshot(tensors, _with_own_lists(vars(self.state)), settings, circumstances())

    def _settings(self) -> dict[str, Any]:
        own = [type(one.own).__name__ for one in self.optimizers if isinstance(one, TorchOptimizer)]
        return asdict(self.settings) | ({"optimizer": own[0]} if own else {})

    def _restore(self, snapshot: "Snapshot") -> None:
        snapshot.refuse_another_run(self._settings(), self.task.fingerprint)
        self.learner.restore(snapshot.tensors)
        self.best_weights = with_prefix(snapshot.tensors, "best.")
        self.state = TrainingState(**_with_own_lists(snapshot.state))
        self.safe = snapshot


def _with_own_lists(state: dict[str, Any]) -> dict[str, Any]:
    """Copies the lists but not their records, which never change."""
    return state | {name: [*state[name]] for name in ("history", "last_scores")}


def _parameter_groups(model: nn.Module, updates: str) -> list[list[nn.Parameter]]:
    """All parameters; for alternating updates, those of the generative model and of the inference network."""
    if updates == "joint":
        return [list(model.parameters())]
    if not isinstance(model, HasInferenceParameters):
        raise InputError(f"{type(model).__name__} has no inference_parameters: use updates='joint'")
    inference = list(model.inference_parameters())
    numbers = {id(parameter) for parameter in inference}
    return [[parameter for parameter in model.parameters() if id(parameter) not in numbers], inference]


# Checkpoints


class Snapshot(NamedTuple):
    """The content of a checkpoint file, and the state that a rollback returns to."""

    tensors: dict[str, Tensor]
    state: dict[str, Any]
    settings: dict[str, Any]
    written_under: Mapping[str, Any] = MappingProxyType({})  # `circumstances`; earlier versions did not record them

    def differing_circumstances(self) -> str:
        """How the circumstances differ from the present ones, as text. Another major version is refused."""
        now, before = circumstances(), self.written_under
        if before and (_major(before), before["checkpoint"]) != (_major(now), now["checkpoint"]):
            wrote, runs = (f"varitext {one['varitext']} (format {one['checkpoint']})" for one in (before, now))
            raise InputError(
                f"the checkpoint was written by {wrote}, this is {runs}: "
                "resume with that version, or start again without --resume"
            )
        if not before:
            return "the checkpoint was written by an earlier version of varitext"
        changed = [
            f"{name} {before.get(name)}, now {value}" for name, value in now.items() if before.get(name) != value
        ]
        return f"the checkpoint was written under other circumstances ({'; '.join(changed)})" if changed else ""

    def refuse_another_run(self, settings: dict[str, Any], fingerprint: str) -> None:
        for name in settings | self.settings:
            before, now = self.settings.get(name), settings.get(name)
            if before != now and name not in ("time_limit", "fingerprint"):  # the time limit may change
                raise InputError(
                    f"the checkpoint was written with other settings ({name} {before}, now {now}): "
                    "resume with the same settings, or start again without --resume"
                )
        if self.settings["fingerprint"] != fingerprint:
            raise InputError(
                "the checkpoint was written for other data: resume with the same data, or start again without --resume"
            )


class Learner(NamedTuple):
    """The tensors that training changes: weights, their average, optimizer moments, random states."""

    model: nn.Module
    optimizers: Sequence[AdamW | TorchOptimizer]
    average: WeightAverage | None
    device: torch.device

    def tensors(self) -> dict[str, Tensor]:
        """The tensors, by their names in a checkpoint."""
        found = {f"model.{name}": tensor.clone() for name, tensor in self.model.state_dict().items()}
        if self.average:
            found |= {f"average.{name}": tensor.clone() for name, tensor in self.average.weights.items()}
        found |= random_states(self.device)
        for number, optimizer in enumerate(self.optimizers):
            found |= {f"optimizer.{number}.{name}": tensor.clone() for name, tensor in optimizer.tensors().items()}
        return found

    def restore(self, tensors: dict[str, Tensor]) -> None:
        try:
            self.model.load_state_dict(with_prefix(tensors, "model."))
            for number, optimizer in enumerate(self.optimizers):
                optimizer.restore(with_prefix(tensors, f"optimizer.{number}."))
        except (RuntimeError, KeyError, IndexError, ValueError):
            raise InputError(
                "the checkpoint was written for a model of another shape: resume with the same settings, or start again"
            ) from None
        if self.average:
            for name, tensor in with_prefix(tensors, "average.").items():
                self.average.weights[name].copy_(tensor)
        set_random_states(tensors, self.device)


def circumstances() -> dict[str, Any]:
    """What bit-for-bit identical results depend on besides settings, data and machine."""
    return {
        "checkpoint": CHECKPOINT_FORMAT,
        "varitext": varitext.__version__,
        "torch": torch.__version__,
        "compiled kernels": f"{registers()}-bit" if usable() else "none",
        "threads": torch.get_num_threads(),
    }


def _major(versions: Mapping[str, Any]) -> str:
    return str(versions["varitext"]).split(".")[0]


def with_prefix(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def save_checkpoint(path: Path, snapshot: Snapshot) -> None:
    tensors = {name: tensor.cpu().contiguous() for name, tensor in snapshot.tensors.items()}
    metadata = {"state": json.dumps(snapshot.state), "settings": json.dumps(snapshot.settings)}
    metadata["circumstances"] = json.dumps(dict(snapshot.written_under))
    with atomic_file(path) as temporary:
        save_file(tensors, temporary, metadata | {"sha256": _sha256(tensors, metadata)})


def load_checkpoint(path: Path) -> Snapshot:
    """Load a snapshot; its checksum detects any change of the file."""
    try:
        with safe_open(path, "pt") as stored:
            metadata = stored.metadata() or {}
            tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118 (not a dict)
        if metadata.pop("sha256") != _sha256(tensors, metadata):
            raise InputError(f"{path} is damaged or was changed; start without --resume, in another folder")
        under = json.loads(metadata.get("circumstances", "{}"))
        return Snapshot(tensors, json.loads(metadata["state"]), json.loads(metadata["settings"]), under)
    except (SafetensorError, KeyError, json.JSONDecodeError, OSError) as error:
        raise InputError(f"{path} is not a checkpoint that can be read ({error}); start without --resume") from None


def _sha256(tensors: dict[str, Tensor], metadata: dict[str, str]) -> str:
    found = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        found.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        found.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()
