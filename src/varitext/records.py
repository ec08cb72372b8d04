"""Settings that travel as JSON: plain frozen dataclasses, checked when they come back."""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from varitext.errors import InputError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Record = TypeVar("Record", bound="DataclassInstance")


def record_from_dict(kind: type[Record], values: Mapping[str, Any]) -> Record:
    """The `kind` of record that `values` describes; absent fields take their defaults, unknown ones are refused."""
    if not isinstance(values, Mapping):
        raise InputError(f"{kind.__name__} must be an object with named settings, not {type(values).__name__}")
    known = [field.name for field in dataclasses.fields(kind)]
    unknown = sorted(set(map(str, values)) - set(known))
    if unknown:
        raise InputError(f"{kind.__name__} has no setting {unknown[0]!r}; it has {', '.join(known)}")
    return kind(**values)


def check_types(record: Any) -> None:
    """Refuse a field whose value is not of the type it was declared with (bool, int, float or str)."""
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        kind: Any = field.type  # a class: settings files do not postpone their annotations
        allowed = (int, float) if kind is float else kind
        # bool is a subclass of int, but `minimum_length=True` is a mistake
        if not isinstance(value, allowed) or (isinstance(value, bool) and kind is not bool):
            raise InputError(f"{field.name} must be {kind.__name__}, not {value!r}")


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InputError(f"{name} must be one of {', '.join(choices)}, not {value!r}")


def check_at_least(name: str, value: float, least: float) -> None:
    if not value >= least:
        raise InputError(f"{name} must be at least {least}, not {value}")


class Option(NamedTuple):
    """How a setting is asked for on the command line."""

    help: str
    group: str
    metavar: str | None = None
    minimum: float | None = None
    maximum: float | None = None


def setting(
    default: Any,
    help: str,
    group: str,
    metavar: str | None = None,
    minimum: float | None = None,
    maximum: float | None = None,
) -> Any:
    """A field of a settings record that is an option of `varitext fit`, too: said once, here."""
    return dataclasses.field(default=default, metadata={"option": Option(help, group, metavar, minimum, maximum)})
