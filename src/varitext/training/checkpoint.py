"""A moment of training on disk: tensors and plain values in one safetensors file, replaced atomically. No pickle."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from varitext.errors import InputError
from varitext.files import atomic_file


class Snapshot(NamedTuple):
    """What a checkpoint file holds and what a roll-back goes back to."""

    tensors: dict[str, Tensor]
    state: dict[str, Any]
    settings: dict[str, Any]


def save_checkpoint(path: Path, snapshot: Snapshot) -> None:
    metadata = {"state": json.dumps(snapshot.state), "settings": json.dumps(snapshot.settings)}
    with atomic_file(path) as temporary:
        save_file({name: tensor.cpu().contiguous() for name, tensor in snapshot.tensors.items()}, temporary, metadata)


def load_checkpoint(path: Path) -> Snapshot:
    try:
        with safe_open(path, "pt") as stored:
            metadata = stored.metadata() or {}
            tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118 (not a dict)
        return Snapshot(tensors, json.loads(metadata["state"]), json.loads(metadata["settings"]))
    except (SafetensorError, KeyError, json.JSONDecodeError, OSError) as error:
        raise InputError(f"{path} is not a checkpoint that can be read ({error}); start without --resume") from None
