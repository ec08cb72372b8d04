"""How dark attention is drawn: against equal weights, in logarithms."""

import pytest

from varitext.evaluation.attention import is_focused, strength, times_equal


def test_weights_are_held_against_equal_ones():
    assert times_equal([0.5, 0.25, 0.25, 0.0]) == [2.0, 1.0, 1.0, 0.0]
    assert times_equal([]) == []


def test_flat_attention_is_pale_and_eight_times_the_equal_weight_is_dark():
    assert strength([0.25] * 4) == [0.0] * 4
    weights = [8 / 64, 2 / 64, 1 / 64, 0.5 / 64, 16 / 64] + [0.0] * 59
    assert strength(weights)[:5] == pytest.approx([1.0, 1 / 3, 0.0, 0.0, 1.0])


def test_attention_explains_something_if_it_is_on_few_words():
    nearly_even = [1.6 / 12] + [10.4 / 12 / 11] * 11
    assert not any(map(is_focused, ([], [1.0], [0.25] * 4, nearly_even)))
    assert is_focused([0.5, 0.3] + [0.2 / 10] * 10)
