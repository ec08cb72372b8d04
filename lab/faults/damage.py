"""Ways to damage a folder of files: one is chosen at random and described in words."""

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Generator = np.random.Generator
HOSTILE = (None, True, -1, 0, 2**70, 1e308, float("nan"), float("inf"), "", "x", "../../etc", [], {}, [[]], {"a": {}})


def damage(folder: Path, other: Path, generator: Generator) -> str:
    """Damage a file of `folder`; `other` is a folder of the same kind."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    path = files[generator.integers(len(files))]
    way = WAYS[generator.integers(len(WAYS))]
    return f"{path.name}, {way(path, other, generator)}"


def flip(path: Path, other: Path, generator: Generator) -> str:
    content = bytearray(path.read_bytes())
    place, bit = int(generator.integers(max(len(content), 1))), int(generator.integers(8))
    content[place : place + 1] = bytes([content[place] ^ 1 << bit]) if content else b"\0"
    path.write_bytes(content)
    return f"bit {bit} of byte {place} flipped"


def cut(path: Path, other: Path, generator: Generator) -> str:
    length = int(generator.integers(max(path.stat().st_size, 1)))
    path.write_bytes(path.read_bytes()[:length])
    return f"cut to {length} bytes"


def delete(path: Path, other: Path, generator: Generator) -> str:
    path.unlink()
    return "deleted"


def swap(path: Path, other: Path, generator: Generator) -> str:
    beside = sorted(path.parent.iterdir())
    chosen = beside[generator.integers(len(beside))]
    mine, its = path.read_bytes(), chosen.read_bytes()
    path.write_bytes(its)
    chosen.write_bytes(mine)
    return f"swapped with {chosen.name}"


def exchange(path: Path, other: Path, generator: Generator) -> str:
    if (its := other / path.name).is_file():
        path.write_bytes(its.read_bytes())
    return "replaced by that of another folder"


def put_value(path: Path, other: Path, generator: Generator) -> str:
    value = HOSTILE[generator.integers(len(HOSTILE))]

    def put(holder: Any, key: Any) -> None:
        holder[key] = value

    return f"{_change_json(path, generator, put)} set to {value!r}"


def remove_key(path: Path, other: Path, generator: Generator) -> str:
    def remove(holder: Any, key: Any) -> None:
        del holder[key]

    return f"{_change_json(path, generator, remove)} removed"


WAYS = (flip, flip, cut, delete, swap, exchange, put_value, put_value, put_value, remove_key, remove_key)


def _change_json(path: Path, generator: Generator, change: Callable[[Any, Any], None]) -> str:
    """Change a value in a JSON file, in one of its lines or in a safetensors header; returns a description."""
    if path.suffix == ".safetensors":
        content = path.read_bytes()
        length = struct.unpack("<Q", content[:8])[0]
        where, header = _changed(content[8 : 8 + length].decode(), generator, change)
        path.write_bytes(struct.pack("<Q", len(header.encode())) + header.encode() + content[8 + length :])
    elif path.suffix == ".jsonl":
        lines = path.read_text().splitlines()
        number = int(generator.integers(len(lines)))
        where, lines[number] = _changed(lines[number], generator, change)
        path.write_text("\n".join(lines) + "\n")
    elif path.suffix == ".json":
        where, text = _changed(path.read_text(), generator, change)
        path.write_text(text)
    else:
        where = flip(path, path, generator) + "; nothing"
    return where


def _changed(text: str, generator: Generator, change: Callable[[Any, Any], None]) -> tuple[str, str]:
    whole = json.loads(text)
    places = list(_places(whole, ""))
    where, holder, key = places[generator.integers(len(places))]
    if isinstance(holder[key], str) and holder[key].startswith("{"):  # JSON in JSON: the state in a checkpoint
        inner, holder[key] = _changed(holder[key], generator, change)
        return where + inner, json.dumps(whole)
    change(holder, key)
    return where, json.dumps(whole)


def _places(value: Any, path: str) -> Any:
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield f"{path}/{key}", value, key
        yield from _places(value[key], f"{path}/{key}")
