"""Settings as frozen dataclasses: read from JSON with checks, and offered as options of the command line."""

import dataclasses
import math
import reprlib
from collections.abc import Mapping
from types import UnionType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard, TypeVar, Union, get_args, get_origin

from varitext.errors import InputError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Record = TypeVar("Record", bound="DataclassInstance")


def record_from_dict(kind: type[Record], values: Mapping[str, Any]) -> Record:
    """A record of `kind` from JSON; missing fields take their defaults, unknown ones are refused."""
    if not isinstance(values, Mapping):
        raise InputError(f"{kind.__name__} must be an object with named settings, not {type(values).__name__}")
    known = [field.name for field in dataclasses.fields(kind)]
    unknown = sorted(set(map(str, values)) - set(known))
    if unknown:
        raise InputError(f"{kind.__name__} has no setting {unknown[0]!r}; it has {', '.join(known)}")
    return kind(**values)


MAX_INTEGER = 2**63 - 1  # arrays have no larger ones


def check_types(record: Any) -> None:
    """Refuse a field, of a dataclass or NamedTuple, whose value does not have its declared type."""
    is_tuple = isinstance(record, tuple)
    declared = type(record).__annotations__ if is_tuple else {one.name: one.type for one in dataclasses.fields(record)}
    for name, kind in declared.items():
        if not _is_a(value := getattr(record, name), kind):
            raise InputError(f"{name} must be {getattr(kind, '__name__', kind)}, not {reprlib.repr(value)}")


def _is_a(value: Any, kind: Any) -> bool:
    """Whether a value has a declared type. Of containers only tuples of one type are looked into."""
    origin, inside = get_origin(kind), get_args(kind)
    if isinstance(kind, str) or kind is Any:
        return True
    if origin in (Union, UnionType):
        return any(_is_a(value, one) for one in inside)
    if isinstance(value, bool):  # a subclass of int, but `minimum_length=True` is a mistake
        return kind is bool
    if isinstance(value, int) and not -MAX_INTEGER <= value <= MAX_INTEGER:
        return False
    if origin is tuple and inside[-1] is Ellipsis:
        return isinstance(value, tuple) and all(_is_a(one, inside[0]) for one in value)
    return isinstance(value, (int, float) if kind is float else origin or kind)


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InputError(f"{name} must be one of {', '.join(choices)}, not {value!r}")


def check_at_least(name: str, value: float, least: float) -> None:
    if not value >= least:
        raise InputError(f"{name} must be at least {least}, not {value}")


class DictRecord:
    """A dataclass that becomes plain values for JSON."""

    def as_dict(self: "DataclassInstance") -> dict[str, Any]:
        """The record as a dict, for JSON."""
        return dataclasses.asdict(self)


# Groups of options in the help of `varitext fit`, in this order.
DATA, MODEL, TRAINING, WHERE_IT_RUNS = GROUPS = ("Data", "Model", "Training", "Runtime")


class Option(NamedTuple):
    """A setting as an option of the command line."""

    help: str
    group: str
    metavar: str | None = None
    minimum: int | None = None
    maximum: int | None = None
    name: str | None = None  # with underscores (default: the field's name)
    choices: tuple[str, ...] = ()


def setting(default: Any, option: Option) -> Any:
    """A field of a settings record that is also an option of `varitext fit`."""
    return dataclasses.field(default=default, metadata={"option": option})


def is_record(value: object) -> "TypeGuard[DataclassInstance]":
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def options_of(kind: "type[DataclassInstance]") -> dict[str, "dataclasses.Field[Any]"]:
    """The fields of a settings record, and of records in it, that are options, by option name."""
    found: dict[str, dataclasses.Field[Any]] = {}
    for field in dataclasses.fields(kind):
        if option := field.metadata.get("option"):
            found[option.name or field.name] = field
        elif is_record(field.default):
            found |= options_of(type(field.default))
    return found


def check_ranges(record: "DataclassInstance") -> None:
    """Refuse numbers outside the ranges of their options, which the command line checks itself."""
    for field in dataclasses.fields(record):
        value, option = getattr(record, field.name), field.metadata.get("option")
        if is_record(value):
            check_ranges(value)
        elif option and option.minimum is not None and value is not None:
            highest = math.inf if option.maximum is None else option.maximum
            if not (isinstance(value, int) and option.minimum <= value <= highest):
                raise InputError(
                    f"{field.name} must be a whole number from {option.minimum} to {highest}, not {value!r}"
                )


def record_from_options(kind: type[Record], typed: Mapping[str, Any]) -> Record:
    """The record with the options that were given; the other fields keep their defaults."""
    values = {}
    for field in dataclasses.fields(kind):
        if option := field.metadata.get("option"):
            name = option.name or field.name
            if name in typed:
                values[field.name] = typed[name]
        elif is_record(field.default):
            values[field.name] = record_from_options(type(field.default), typed)
    return kind(**values)
