"""The model folder: `config.json`, `weights.safetensors`, `vocabulary.txt`, `metrics.jsonl`, and what some models add.

Safe to load from anyone: plain text, JSON and safetensors, no pickle, no code; every file is checked against its hash
before it is used. Sizes are bounded, and a network is built only after its shapes have been found to be those of the
weights (`layers/architecture.py`). This is format version 1.

The weights of document models are tensors, those of rankers numpy arrays: a ranker without a network needs no torch.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors import numpy as arrays

import varitext
from varitext.errors import InputError, first_line
from varitext.files import (
    atomic_folder,
    check_sha256,
    read_config,
    read_text,
    refuse_to_overwrite,
    sha256_of,
    write_json,
    write_text,
)
from varitext.text.vocabulary import Vocabulary

FORMAT = "varitext-model"
FORMAT_VERSION = 1
DOCUMENT_MODEL, ANSWER_RANKER, CALIBRATED_RANKER = KINDS = ("document-model", "answer-ranker", "calibrated-ranker")
CHECKPOINT = "checkpoint.safetensors"
CHECKPOINT_STATES = "checkpoint-states.sqlite"  # what a pretrained encoder has read, beside the checkpoint of a fit
CACHE = "cache.safetensors"  # what was computed for documents (`documents/cache.py`)
CONFIG_SHA256 = "config_sha256"  # of config.json without this line; remove the line to change config.json by hand
WEIGHTS = "weights.safetensors"
HASHED = (WEIGHTS, "vocabulary.txt", "metrics.jsonl")

MAX_FILES = 100
MAX_BYTES = {".safetensors": 16 << 30, ".json": 32 << 20}  # of a file
MAX_TEXT_BYTES = 256 << 20  # of any other: ten million words
MAX_HEADER_BYTES = 4 << 20  # of a .safetensors file: some 40,000 tensors


class StoredModel(NamedTuple):
    kind: str  # one of KINDS
    config: dict[str, Any]  # what the kind needs to build itself again
    weights: dict[str, Any]  # tensors of a document model, arrays of a ranker
    vocabulary: Vocabulary
    metrics: list[dict[str, Any]]  # one record per training round
    attachments: Mapping[str, bytes] = MappingProxyType({})  # more files, by name: what not every model has


Model = TypeVar("Model")
Builder = Callable[[StoredModel, Path], Model]  # a model of one kind, from what its folder holds


def save_model(folder: Path, stored: StoredModel, overwrite: bool = False) -> None:
    """Write the folder completely or not at all. An unfinished run's checkpoint in it is kept, and so is the cache."""
    if not overwrite:
        refuse_to_overwrite(folder, "Name another folder, or replace it: save(folder, overwrite=True).")
    with atomic_folder(folder) as temporary:
        _write_weights(stored, temporary / WEIGHTS)
        stored.vocabulary.save(temporary / "vocabulary.txt")
        write_text(temporary / "metrics.jsonl", "".join(json.dumps(record) + "\n" for record in stored.metrics))
        header = {"format": FORMAT, "format_version": FORMAT_VERSION, "varitext_version": varitext.__version__}
        for name, content in stored.attachments.items():
            (temporary / name).write_bytes(content)
        hashed = (*HASHED, *stored.attachments)
        header |= {"kind": stored.kind, "sha256": {name: sha256_of(temporary / name) for name in hashed}}
        config = json.loads(json.dumps(header | stored.config))
        write_json(temporary / "config.json", config | {CONFIG_SHA256: _sha256_of_config(config)})
        for kept in (*checkpoints(folder), *folder.glob(CACHE)):
            shutil.copy2(kept, temporary / kept.name)


def checkpoints(folder: Path) -> list[Path]:
    """The checkpoints of an unfinished run; a ranker that learns from counts has one more per fold."""
    return sorted(folder.glob(f"{Path(CHECKPOINT).stem}*.safetensors"))


def holds_unfinished_run(folder: Path) -> bool:
    """Whether a fit was cut short there: after its first checkpoint, or while the pretrained encoder was reading."""
    return any((folder / name).exists() for name in (CHECKPOINT, CHECKPOINT_STATES))


def load_one_of(
    folder: Path, builders: Mapping[str, Builder[Model]], refusals: Mapping[str, str] = MappingProxyType({})
) -> Model:
    """The model that the builder of the folder's kind makes of it; `refusals` explain why other kinds are refused."""
    config = read_model_config(folder)
    kind = str(config.get("kind"))
    if kind in refusals:
        raise InputError(f"{folder} {refusals[kind]}")
    if kind not in builders:
        needed = " or ".join(map(repr, builders))
        raise InputError(f"{folder} holds a model of kind {kind!r}; this needs {needed}")
    try:
        return builders[kind](_read_stored(folder, kind, config), folder)
    except InputError:
        raise
    except (AttributeError, KeyError, OverflowError, RuntimeError, TypeError, ValueError) as error:
        name = f"{type(error).__name__}: {first_line(error)}"
        raise InputError(f"{folder / 'config.json'} does not describe a model of kind {kind!r} ({name})") from None


def read_model_config(folder: Path) -> dict[str, Any]:
    """Read config.json, or refuse a folder that is not a model folder."""
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder: a model is a folder that `varitext fit --out` wrote")
    if not (folder / "config.json").exists():
        if holds_unfinished_run(folder):
            raise InputError(
                f"{folder} holds an unfinished run: continue with `varitext fit ... --out {folder} --resume`"
            )
        raise InputError(f"{folder} is not a model folder: it has no config.json")
    _check_size(folder / "config.json")
    return read_config(folder, FORMAT, FORMAT_VERSION, "varitext model")


def read_array(folder: Path, config: dict[str, Any], name: str) -> np.ndarray:
    """One of the weights of a model folder with this config.json, without torch."""
    _check_files(folder, config)
    path = folder / WEIGHTS
    try:
        with safe_open(path, "numpy") as weights:
            array: np.ndarray = weights.get_tensor(name)
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path} cannot be read ({first_line(error)})") from None
    _check_finite(path, {name: bool(np.isfinite(array).all())})
    return array


def _read_stored(folder: Path, kind: str, config: dict[str, Any]) -> StoredModel:
    """The files beside config.json, each checked against its hash there."""
    _check_files(folder, config)
    weights = _read_weights(folder / WEIGHTS, kind)
    try:
        metrics = [dict(json.loads(line)) for line in read_text(folder / "metrics.jsonl").splitlines()]
    except (TypeError, ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{folder / 'metrics.jsonl'} is not valid JSON lines ({first_line(error)})") from None
    attachments = {name: (folder / name).read_bytes() for name in config["sha256"] if name not in HASHED}
    return StoredModel(kind, config, weights, Vocabulary.load(folder / "vocabulary.txt"), metrics, attachments)


def _write_weights(stored: StoredModel, path: Path) -> None:
    if stored.kind != DOCUMENT_MODEL:
        return arrays.save_file(stored.weights, path)
    from safetensors.torch import save_file  # slow to import

    save_file({name: tensor.detach().cpu().contiguous() for name, tensor in stored.weights.items()}, path)


def _read_weights(path: Path, kind: str) -> dict[str, Any]:
    load_file: Callable[[Path], dict[str, Any]] = arrays.load_file
    if kind == DOCUMENT_MODEL:
        from safetensors.torch import load_file  # slow to import
    try:
        weights = load_file(path)
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path} cannot be read ({first_line(error)})") from None
    _check_finite(path, {name: bool(np.isfinite(np.asarray(values)).all()) for name, values in weights.items()})
    return weights


def _check_files(folder: Path, config: dict[str, Any]) -> None:
    """Refuse files beside config.json that are missing, too large or not those of its hashes."""
    hashes = config.get("sha256")
    if not isinstance(hashes, dict) or not set(hashes) >= set(HASHED):
        raise InputError(f"{folder / 'config.json'} does not list the hashes of the folder's files")
    if config.get(CONFIG_SHA256, whole := _sha256_of_config(config)) != whole:
        changed = f"{folder / 'config.json'} is damaged or was changed"
        raise InputError(f"{changed}; if you did that on purpose, remove {CONFIG_SHA256} from it")
    if len(hashes) > MAX_FILES:
        raise InputError(f"{folder / 'config.json'} lists {len(hashes):,} files; at most {MAX_FILES} are allowed")
    for name, expected in hashes.items():
        if Path(name).name != name:  # nothing outside the folder is ever read
            raise InputError(f"{folder / 'config.json'} lists {name!r}, which is not a file of the folder")
        _check_size(folder / name)
        check_sha256(folder / name, expected, "model folder")


def _check_finite(path: Path, finite: Mapping[str, bool]) -> None:
    for name, is_finite in finite.items():
        if not is_finite:
            raise InputError(f"{path}: {name} holds infinities or NaN")


def _check_size(path: Path) -> None:
    """Refuse a file that is far larger than any model's, before it is read."""
    if not path.is_file():
        raise InputError(f"{path} is missing: the model folder is incomplete")
    most = MAX_BYTES.get(path.suffix, MAX_TEXT_BYTES)
    if path.stat().st_size > most:
        raise InputError(f"{path} has {path.stat().st_size:,} bytes; at most {most:,} are allowed")
    if path.suffix == ".safetensors":
        with path.open("rb") as stream:
            header = int.from_bytes(stream.read(8), "little")
        if header > MAX_HEADER_BYTES:
            raise InputError(f"{path}: its header has {header:,} bytes; at most {MAX_HEADER_BYTES:,} are allowed")


def _sha256_of_config(config: dict[str, Any]) -> str:
    values = {name: value for name, value in config.items() if name != CONFIG_SHA256}
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
