"""Errors that are one line for people."""

from collections.abc import Callable

import pytest

from varitext import InputError


def refused(call: Callable[[], object], *parts: str) -> None:
    """`call` raises an `InputError` of one line that has all these parts."""
    with pytest.raises(InputError) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    for part in parts:
        assert part in message, message
