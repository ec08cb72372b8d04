"""What a registry says of a model. Reading it imports no model, nor torch: the command line's help does so."""

import importlib
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from varitext.errors import InputError


@dataclass(frozen=True)
class ModelEntry:
    """One line of a registry."""

    title: str
    """As in the paper's tables."""
    home: str
    """Where the class is: `package.module:Class`."""

    def imported(self) -> Any:
        module, _, name = self.home.partition(":")
        return getattr(importlib.import_module(module), name)


def check_name(name: str, known: Collection[str], what: str) -> None:
    if name not in known:
        raise InputError(f"no {what} is called {name!r}; there are: {', '.join(known)}")
