"""What both registries of models share: entries, plug-ins from other packages, and architecture arguments.

Reading a registry imports neither a model nor torch: the command line's help does so.
"""

import importlib
import inspect
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import reduce
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, TypeVar

from varitext.errors import InputError


@dataclass(frozen=True)
class ModelEntry:
    """One line of a registry."""

    title: str
    """As in the paper's tables."""
    home: str
    """Where the class is: `package.module:Class`."""

    plug_in: bool = field(default=False, kw_only=True)
    """Whether an entry point of another package registered it."""

    def imported(self) -> Any:
        return _imported(self.home)


Entry = TypeVar("Entry", bound=ModelEntry)


def plug_ins(group: str, entry: type[Entry]) -> dict[str, Entry]:
    """Models that installed packages register as entry points of a group. Nothing is imported until one is used."""
    return {point.name: entry(point.name, point.value, plug_in=True) for point in entry_points(group=group)}


def check_name(name: str, known: Collection[str], what: str) -> None:
    if name not in known:
        raise InputError(f"no {what} is called {name!r}; there are: {', '.join(known)}")


def home_of(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def stored_name(model: str | type, registry: Mapping[str, ModelEntry]) -> str:
    """How a model folder names a model: by its name in the registry, or `package.module:Class` of a plug-in."""
    if isinstance(model, str):
        return registry[model].home if registry[model].plug_in else model
    home = home_of(model)
    return next((name for name, entry in registry.items() if entry.home == home and not entry.plug_in), home)


def trusted_class(home: str, trust: str | type | None, folder: Path) -> Any:
    """The class that a model folder names, if the caller asked for exactly that one. Nothing else is imported."""
    if isinstance(trust, type) and home_of(trust) == home:
        return trust
    if trust != home:
        raise InputError(
            f"{folder} holds a model of the class {home!r}, which is not part of varitext. "
            f"If you trust that package, load the folder with trust={home!r} (--trust {home})"
        )
    try:
        return _imported(home)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(f"{folder} needs {home}: install its package ({error})") from None


def with_network_arguments(
    kind: type, architecture: Mapping[str, Any], changes: Mapping[str, Any] | None, reserved: Collection[str] = ()
) -> dict[str, Any]:
    """The architecture with what the user set by `network={...}`; `reserved` are set by other means."""
    known = [name for name in inspect.signature(kind).parameters if name not in reserved]
    for name in changes or {}:
        if name not in known:
            raise InputError(f"network: {kind.__name__} has no argument {name!r}; it has: {', '.join(known)}")
    return {**architecture, **(changes or {})}


def _imported(home: str) -> Any:
    module, _, name = home.partition(":")
    return reduce(getattr, name.split("."), importlib.import_module(module))
