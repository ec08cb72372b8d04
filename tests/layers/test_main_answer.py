"""A main answer or none: against sums by hand over all labels, candidates that stand for several, and padding."""

import itertools
import math

import pytest
import torch

from varitext.layers.main_answer import log_main_or_none, log_probability_of_labels, places, side_by_side

QUESTION_OF = torch.tensor([1, 0, 1, 1, 0])


def log_probability(scores, none, also, labels, number) -> torch.Tensor:
    log_main, log_none = log_main_or_none(scores, none, number)
    return log_probability_of_labels(log_main, log_none, also, labels, number)


def some(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))).double()


def test_candidates_stand_side_by_side_whatever_their_order():
    assert places(QUESTION_OF).tolist() == [0, 0, 1, 2, 1]
    values = torch.arange(1.0, 6.0)
    expected = torch.tensor([[2.0, 5.0, 0.0], [1.0, 3.0, 4.0]])
    assert torch.equal(side_by_side(values, QUESTION_OF), expected)
    samples = torch.stack([values, 10 * values])
    assert torch.equal(side_by_side(samples, QUESTION_OF), torch.stack([expected, 10 * expected]))
    assert side_by_side(values > 3, QUESTION_OF).tolist() == [[False, True, False], [False, False, True]]


def test_probabilities_of_all_labels_sum_to_one_and_padding_has_no_part():
    scores, none, also = some(2, 1, 4), some(2, 1), some(4)[None, None].expand(2, 1, 4)
    number = torch.tensor([[1.0, 1, 1, 0]]).double()
    total = torch.zeros(2, 1).double()
    for labels in itertools.product((False, True), repeat=3):
        right = torch.tensor([[*labels, False]])
        found = log_probability(scores, none, also, right, number)
        short = log_probability(scores[..., :3], none, also[..., :3], right[:, :3], number[:, :3])
        torch.testing.assert_close(found, short)
        total += found.exp()
    torch.testing.assert_close(total, torch.ones(2, 1).double())


def test_two_right_answers_by_hand():
    scores, also = torch.tensor([[0.3, -0.5, 1.0]]).double(), torch.tensor([[-1.0, 0.4, -2.0]]).double()
    found = log_probability(
        scores, torch.tensor([0.7]).double(), also, torch.tensor([[True, False, True]]), torch.ones(1, 3).double()
    )
    beside = also.sigmoid()[0].tolist()
    first, second = math.exp(0.3) * beside[2], math.exp(1.0) * beside[0]
    total = sum(map(math.exp, (0.3, -0.5, 1.0, 0.7)))
    assert found.exp().item() == pytest.approx((first + second) * (1 - beside[1]) / total)


@pytest.mark.parametrize("labels", [[True, False, False], [False, False, False], [False, True, True]])
def test_a_candidate_that_stands_for_two_is_as_two(labels):
    scores, none, also = some(1, 3), some(1), some(3)[None]
    order = [0, 1, 2, 2]
    right = torch.tensor([labels])
    twice = log_probability(scores[:, order], none, also[:, order], right[:, order], torch.ones(1, 4).double())
    heavier = log_probability(scores, none, also, right, torch.tensor([[1.0, 1, 2]]).double())
    torch.testing.assert_close(heavier, twice)
