"""Tables of calibration with few questions, and of stated against observed coverage and precision."""

from collections.abc import Callable
from typing import Any

from lab.pages.reading import measured
from lab.speed.calibrate_any import COVERAGES, PRECISIONS
from varitext.reproduce.engine import markdown_table


def calibration_tables() -> dict[str, str]:
    found = measured("calibrate_any")
    return {
        "calibrate-transfer": transfer(found["transfer"]),
        "calibrate-coverage": coverage(found["any_ranker"]),
        "calibrate-precision": precision(found["any_ranker"]),
    }


def transfer(found: dict[str, Any]) -> str:
    rows = [
        [
            name,
            f"{one['ece_before']:.3f}",
            f"{one['ece']:.3f}",
            f"{one['none_ece_before']:.3f}",
            f"{one['none_ece']:.3f}",
            f"{one['share_error']:.3f}",
        ]
        for name, one in found.items()
    ]
    head = ["fitted on, used on", "ECE of P(right)", "calibrated", "of P(none)", "calibrated", "share in 50 questions"]
    return markdown_table(head, rows)


def coverage(found: dict[str, Any]) -> str:
    return _halves_and_test(found, COVERAGES, _coverage)


def precision(found: dict[str, Any]) -> str:
    return _halves_and_test(found, PRECISIONS, _precision)


def _halves_and_test(
    found: dict[str, Any], stated: tuple[float, ...], cell: Callable[[dict[str, Any], float], str]
) -> str:
    rows = [
        [name, *(cell(one[on], share) for share in stated for on in ("halves", "test"))] for name, one in found.items()
    ]
    return markdown_table(["", *(head for share in stated for head in (f"stated {share:.0%}", "test"))], rows)


def _coverage(one: dict[str, Any], stated: float) -> str:
    return f"{one[f'coverage_{stated}']:.1%} ({one[f'set_size_{stated}']:.1f})"


def _precision(one: dict[str, Any], stated: float) -> str:
    """Rows of a stated precision; one that most halves do not reach is left out."""
    kind = f"precision_{stated}"
    if one[f"reached_{kind}"] <= 0.5:
        return "not reached"
    return f"{one[kind]:.1%} ({one[f'answered_{kind}']:.0%})"
