"""The joint likelihood of a question's labels, its scale and shift, and h given to another question."""

import itertools
import math

import numpy as np
import pytest
import torch
from made_up_questions import made_up
from scipy.special import logit, softmax

from lab.experiments.question_latent import Labelled, Part, Scaling, exchanged, table
from varitext import AnswerRanker
from varitext.corpora.question_answers import canonical_order

QUESTION_OF = torch.tensor([0, 0, 1, 1, 1])
LOGITS = torch.tensor([[0.5, -1.0, 2.0, -2.0, 0.0], [-0.5, 1.5, 0.3, -1.0, -3.0]]).double()


ALSO = torch.tensor([[-1.0, -2.0, 0.5, -1.5, -3.0], [-2.0, 0.0, 1.0, -1.0, -0.5]]).double()
NONE = torch.tensor([[0.3, 1.2], [0.3, 1.2]]).double()


def labelled(labels: tuple[int, ...]) -> Labelled:
    return Labelled(LOGITS, ALSO, NONE, torch.tensor(labels), QUESTION_OF)


def test_the_joint_likelihood_is_the_mean_over_h_of_a_sum_over_main_answers():
    found = np.exp(labelled((1, 0, 0, 1, 1)).joint().numpy())
    also, score = ALSO.sigmoid().numpy(), np.exp(LOGITS.numpy())
    first = np.mean(score[:, 0] * (1 - also[:, 1]) / (score[:, :2].sum(1) + math.exp(0.3)))
    by_main = score[:, 3] * also[:, 4] + score[:, 4] * also[:, 3]
    second = np.mean(by_main * (1 - also[:, 2]) / (score[:, 2:].sum(1) + math.exp(1.2)))
    np.testing.assert_allclose(found, [first, second])
    every = [np.exp(labelled((0, 0, *last)).joint()[1].item()) for last in itertools.product((0, 1), repeat=3)]
    assert sum(every) == pytest.approx(1)
    none = labelled((1, 1, 1, 1, 1)).probability_none()  # whatever the labels
    np.testing.assert_allclose(none, np.exp(labelled((0, 0, 0, 0, 0)).joint().numpy()))


def test_the_scaling_is_where_the_likelihood_is_highest():
    generator = np.random.default_rng(0)
    logits, size = generator.normal(0, 2, (4000, 5)), 20_000
    chances = softmax(np.column_stack([0.5 * logits - 1.0, np.zeros(4000)]), 1)  # the last is none
    labels = np.stack([generator.multinomial(1, one)[:5] for one in chances]).ravel()
    question_of, never = torch.arange(size) // 5, torch.full((1, size), -50.0).double()
    none = torch.zeros(1, 4000).double()
    many = Labelled(torch.from_numpy(logits.ravel())[None], never, none, torch.from_numpy(labels), question_of)
    scaling = Scaling.fit(many)
    assert scaling.scale == pytest.approx(0.5, abs=0.06) and scaling.shift == pytest.approx(-1, abs=0.1)
    best = many.scaled(scaling).joint().mean()
    for other in (scaling._replace(scale=scaling.scale + 0.1), scaling._replace(shift=scaling.shift + 0.1)):
        assert many.scaled(other).joint().mean() < best


def test_no_question_keeps_its_h():
    h = torch.arange(7.0)[None, :, None]
    other = exchanged(h)
    assert (other != h).all() and sorted(other.flatten().tolist()) == h.flatten().tolist()


@pytest.mark.parametrize("latent_dim", [0, 3])
def test_a_part_says_what_the_ranker_says(latent_dim):
    small = {"vectors": "random", "embedding_dim": 4, "epochs": 1, "threads": 1, "questions": "all"}
    ranker = AnswerRanker("nasm_question", latent_dim, **small).fit(made_up(12, seed=0), made_up(4, seed=1))
    test = canonical_order(made_up(6, seed=2)).question_answers
    part = Part(ranker, test, samples=5)
    latents = part.latents()
    expected = logit(ranker.sample_proba(test, 5))
    np.testing.assert_allclose(part.given(latents.of_prior).logits.numpy(), expected, atol=1e-5)
    h, encodings = latents.of_prior, [ranker.fitted_.network.encode(batch) for batch in part.batches.in_order()]
    likelihood = ranker.fitted_.network.log_likelihood(h, *encodings).detach()  # one batch
    np.testing.assert_allclose(part.given(h).given_h().numpy(), likelihood.numpy(), atol=1e-5)
    assert latents.kl.shape == (6, latent_dim) and (latents.kl > 0).all()
    assert len(expected) == (5 if latent_dim else 1)
    if latent_dim:
        assert not torch.equal(part.given(exchanged(latents.of_prior)).logits, part.given(latents.of_prior).logits)


def test_the_table_by_hand():
    def record(latent_dim, seed, better):
        test = {"joint_nll": 1.5 - better, "none_log_loss": 0.6, "n_right": [0, 1, 3], "map": 0.6}
        test["joint_log_likelihood"] = [-1.0 + better, -1.5 + better, -2.0 + better]
        test |= {"nll_as_trained": 1.6, "log_likelihood_as_trained": [-1.0 + better / 2, -1.5, -2.0]}
        if latent_dim:
            test |= {"kl": 0.05, "active_units": 2, "cost_of_other_prior": 0.01, "cost_of_other_posterior": 0.1}
            test |= {"map_of_other_prior": 0.59, "exact_kl": 0.06, "log_odds_std": 0.4}
        result = {"test": test, "dev": {"joint_nll": 1.4}, "map": 0.6 + better, "mrr": 0.65, "dev_map": 0.7}
        result["average_precision"] = [0.5 + better, 0.7 + better]
        return {"settings": {"model": "nasm_question", "latent_dim": latent_dim, "seed": seed}, "result": result}

    records = [record(8, seed, 0.1) for seed in (0, 1)] + [record(0, seed, 0.0) for seed in (0, 1)]
    rows = [line for line in table(records).splitlines() if line.startswith("|")]
    assert "| KL, exact | 0.060 |" in rows and "| units above 0.01 nats | 2.0 |" in rows
    ours, baseline = (
        next(row for row in rows if row.startswith(f"| {name}")) for name in ("question-level", "without h")
    )
    assert "| 1.4000 ± 0.0000 |" in ours and "| 1.5000 ± 0.0000 |" in baseline and "| 0.7000 ± 0.0000 |" in ours
    joint = next(row for row in rows if "nats | all" in row)
    assert "| 3 | +0.1000 | +0.1000 to +0.1000 | 0.250 |" in joint  # three questions, all the same way: 2 of 8 signs
    assert any(row.startswith("| as trained | all | 3 | +0.0167 |") for row in rows)
    assert any("three or more | 1 | +0.1000" in row for row in rows) and not any("two" in row for row in rows)
    assert "With h against without" not in table(records[:3])
