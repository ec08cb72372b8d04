"""Shares by bins of numbers and dates."""

import math
from datetime import date

import pytest

from varitext.errors import InputError
from varitext.evaluation.shares import NO_VALUE, binned, shares_by_value


def test_a_number_of_equally_wide_bins():
    found = binned([0, 5, "10", 10.0, None, math.nan, "many"], 2)
    assert found.names == ["0 to 5", "5 to 10", "5 to 10", "5 to 10", NO_VALUE, NO_VALUE, NO_VALUE]
    assert found.order == ["0 to 5", "5 to 10", NO_VALUE]
    assert binned([3, 3], 1).names == ["3 to 4"] * 2


def test_edges_and_what_lies_outside():
    assert binned([-1, 0, 99, 100, 101], range(0, 101, 50)).names == [
        NO_VALUE, "0 to 50", "50 to 100", "50 to 100", NO_VALUE,
    ]  # fmt: skip


def test_dates_by_period_and_by_number():
    days = [date(2026, 1, 31), "2026-02-01", None, date(2026, 12, 31)]
    with pytest.warns(UserWarning, match="1 date in 'values' cannot be read"):
        found = binned(days, "quarter")
    assert found.names == ["2026-Q1", "2026-Q1", NO_VALUE, "2026-Q4"]
    assert binned([date(2026, 1, 1), date(2026, 1, 3)], 2).names == [
        "2026-01-01 to 2026-01-02",
        "2026-01-02 to 2026-01-03",
    ]


def test_bins_are_in_order_of_their_numbers_and_none_are_as_they_were():
    inside = binned([5, 50, 500], [0, 10, 100, 1000])
    found = shares_by_value([1, 1, 1], inside.names, [1], inside.order)
    assert [one.value for one in found] == ["0 to 10", "10 to 100", "100 to 1000"]
    assert binned([2, "b"], None) == (["2", "b"], None)


@pytest.mark.parametrize("bins", [0, [1.0], [2.0, 1.0], [[1, 2]], 2.5, "century"])
def test_other_bins_are_refused(bins):
    with pytest.raises(InputError, match="bins must be"):
        binned([1, 2, "2026-01-01"], bins)


def test_values_that_are_neither_numbers_nor_dates_are_refused():
    with pytest.raises(InputError, match="no readable date"):
        binned(["red", "green"], 2)
