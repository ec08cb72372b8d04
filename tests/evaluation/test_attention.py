"""How dark attention is drawn: against equal weights, in logarithms."""

import pytest

from varitext.evaluation.attention import strength, times_equal


def test_weights_are_held_against_equal_ones():
    assert times_equal([0.5, 0.25, 0.25, 0.0]) == [2.0, 1.0, 1.0, 0.0]
    assert times_equal([]) == []


def test_flat_attention_is_pale_and_eight_times_the_equal_weight_is_dark():
    assert strength([0.25] * 4) == [0.0] * 4
    weights = [8 / 64, 2 / 64, 1 / 64, 0.5 / 64, 16 / 64] + [0.0] * 59
    assert strength(weights)[:5] == pytest.approx([1.0, 1 / 3, 0.0, 0.0, 1.0])
