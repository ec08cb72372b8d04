"""NASM's attention under samples of h (paper, sections 4 and 6): is it multi-modal, and does it follow the mean of h?

On the right answers of WikiQA's test part: how many different words get the most attention in 20 samples of p(h | q),
and how far the weights move from sample to sample, beside how far they move with the mean of another question's p(h).
"""

from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from varitext.answers.ranker import AnswerRanker
from varitext.batches.pairs import PairBatches
from varitext.models.answers.network import AnswerNetwork
from varitext.reproduce import ABOUT
from varitext.reproduce.answer_fits import fitted_ranker, questions_for_testing, titles
from varitext.reproduce.document_fits import short
from varitext.reproduce.engine import Experiment, Plan, Record, grid_of_models, markdown_table, mean, results
from varitext.runtime.randomness import seeded, stream

CORPUS = "wikiqa"
SEEDS = {"nasm": 3, "nasm_question": 3}
SAMPLES = 20
COLUMNS = {
    "top_words": "words that get the most attention in some sample",
    "over_samples": "change with the sample of h",
    "over_questions": "with another question's mean",
    "from_equal": "distance from equal weights",
}


def measure(model: str, seed: int, plan: Plan) -> dict[str, Any]:
    ranker = fitted_ranker(CORPUS, model, seed, plan)
    test = questions_for_testing(CORPUS, plan)
    batches = PairBatches(test, ranker.fitted_.vocabulary, 512).in_order()
    with torch.no_grad(), seeded(stream(seed, "evaluation noise"), torch.device("cpu")):
        parts = [attention_changes(_network(ranker), batch) for batch in batches]
    found = {name: float(np.concatenate([part[name] for part in parts]).mean()) for name in COLUMNS}
    return short(found | {"n_answers": sum(len(part["top_words"]) for part in parts)})


def _network(ranker: AnswerRanker) -> AnswerNetwork:
    network = ranker.fitted_.network
    assert isinstance(network, AnswerNetwork)  # a scorer has no latent
    return network


def attention_changes(network: AnswerNetwork, batch: Any) -> dict[str, np.ndarray]:
    """Changes for every right answer with several words; distances are half the sum of absolute differences."""
    encoding = network.encode(batch)
    means = network.prior_by_question(encoding).mean  # [Q, K]
    others = means.roll(max(1, len(means) // 2), 0)  # half a batch away: neighbours are often similar
    drawn = network.attention_given(network.prior_samples(encoding, SAMPLES), encoding)  # [S, P, T]
    at_mean, at_other = (
        network.attention_given(each.index_select(0, batch.question_of)[None], encoding) for each in (means, others)
    )
    assert drawn is not None and at_mean is not None and at_other is not None
    mask = encoding.answers.mask
    kept = (batch.labels == 1) & (mask.sum(1) > 1)
    equal = mask / mask.sum(1, keepdim=True)  # [P, T]
    top = drawn.argmax(-1)[:, kept]  # [S, P]
    found = {
        "top_words": torch.tensor([len(words.unique()) for words in top.T], dtype=torch.float),
        "over_samples": distance(drawn, at_mean)[kept],
        "over_questions": distance(at_other, at_mean)[kept],
        "from_equal": distance(at_mean, equal[None])[kept],
    }
    return {name: values.double().numpy() for name, values in found.items()}


def distance(first: Tensor, second: Tensor) -> Tensor:
    """Total variation, [P], a mean over samples."""
    return 0.5 * (first - second).abs().sum(-1).mean(0)


def table(records: list[Record]) -> str:
    rows = []
    for model in SEEDS:
        if found := results(records, model=model):
            rows.append([titles()[model], *(mean(found, name, ".3g") for name in COLUMNS), str(len(found))])
    return markdown_table(["", *COLUMNS.values(), "seeds"], rows)


RUNS = partial(grid_of_models, measure, SEEDS)
EXPERIMENT = Experiment("stochastic-attention", ABOUT["stochastic-attention"], RUNS, table)
