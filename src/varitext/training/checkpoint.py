"""A moment of training: what it holds, and how it is kept in one safetensors file, replaced atomically. No pickle."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from varitext.errors import InputError
from varitext.files import atomic_file
from varitext.runtime.randomness import random_states, set_random_states
from varitext.training.adamw import AdamW
from varitext.training.averaging import WeightAverage


class Snapshot(NamedTuple):
    """What a checkpoint file holds and what a roll-back goes back to."""

    tensors: dict[str, Tensor]
    state: dict[str, Any]
    settings: dict[str, Any]

    def refuse_another_run(self, settings: dict[str, Any], fingerprint: str) -> None:
        for name, value in settings.items():
            if self.settings[name] != value and name != "time_limit":  # a run is the same run under another clock
                raise InputError(
                    f"the checkpoint was written with other settings ({name} {self.settings[name]}, now {value}): "
                    "resume with the same, or start anew"
                )
        if self.settings["fingerprint"] != fingerprint:
            raise InputError("the checkpoint was written for other data: resume with the same, or start anew")


class Learner(NamedTuple):
    """All that steps of training change, besides plain values: weights, their average, moments, random states."""

    model: nn.Module
    optimizers: Sequence[AdamW]
    average: WeightAverage | None
    device: torch.device

    def tensors(self) -> dict[str, Tensor]:
        """As a checkpoint names them."""
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
                "the checkpoint was written for a model of another shape: resume with the same settings, or start anew"
            ) from None
        if self.average:
            for name, tensor in with_prefix(tensors, "average.").items():
                self.average.weights[name].copy_(tensor)
        set_random_states(tensors, self.device)


def with_prefix(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def save_checkpoint(path: Path, snapshot: Snapshot) -> None:
    tensors = {name: tensor.cpu().contiguous() for name, tensor in snapshot.tensors.items()}
    metadata = {"state": json.dumps(snapshot.state), "settings": json.dumps(snapshot.settings)}
    with atomic_file(path) as temporary:
        save_file(tensors, temporary, metadata | {"sha256": _sha256(tensors, metadata)})


def load_checkpoint(path: Path) -> Snapshot:
    """What was saved, to the bit: a single one that flipped on the disk is told."""
    try:
        with safe_open(path, "pt") as stored:
            metadata = stored.metadata() or {}
            tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118 (not a dict)
        expected = metadata.pop("sha256", None)  # the first checkpoints had none
        if expected is not None and expected != _sha256(tensors, metadata):
            raise InputError(f"{path} is damaged or was changed; start without --resume, in another folder")
        return Snapshot(tensors, json.loads(metadata["state"]), json.loads(metadata["settings"]))
    except (SafetensorError, KeyError, json.JSONDecodeError, OSError) as error:
        raise InputError(f"{path} is not a checkpoint that can be read ({error}); start without --resume") from None


def _sha256(tensors: dict[str, Tensor], metadata: dict[str, str]) -> str:
    found = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        found.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        found.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()
