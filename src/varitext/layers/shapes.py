"""Check sizes in a model folder (`store.py`): the numbers of an architecture, and the shapes of weights."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from varitext.errors import InputError

MAX_SIZE = 10_000_000  # of a number in the architecture


def check_numbers(architecture: Mapping[str, Any], folder: Path) -> None:
    """Refuse an architecture with a number that no model needs."""
    if (largest := max(_numbers(architecture), default=0)) > MAX_SIZE:
        config = folder / "config.json"
        raise InputError(f"{config}: the architecture has the number {largest}; at most {MAX_SIZE:,} is allowed")


def check_shapes(expected: Mapping[str, Any], weights: Mapping[str, Any], folder: Path) -> None:
    """Refuse weights without the names and shapes of the expected arrays or tensors."""
    needed, found = ({name: tuple(one.shape) for name, one in values.items()} for values in (expected, weights))
    if differing := sorted(name for name in needed.keys() | found if needed.get(name) != found.get(name)):
        name, shapes = differing[0], [one.get(differing[0], "absent") for one in (found, needed)]
        raise InputError(
            f"{folder}: the weights do not fit the model in config.json: {name} is {shapes[0]}, expected {shapes[1]}"
        )


def _numbers(value: Any) -> Iterator[float]:
    """All numbers in a JSON value."""
    if isinstance(value, (dict, list)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _numbers(one)
    elif isinstance(value, (int, float)):
        yield value
