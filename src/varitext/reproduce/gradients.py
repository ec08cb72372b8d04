"""Stability of gradients in training (paper, section 6): LSTM + Att and NASM on WikiQA.

We record the gradient of a minibatch's loss with respect to a shift of what represents the question in the attention:
s_q in LSTM + Att, h in NASM; for NASM also with respect to the mean of q(h | q, a, y), which the KL adds to. Hooks
record it while both train without early stopping; they change nothing.
"""

from functools import partial
from typing import Any

import numpy as np
from torch import Tensor

from varitext.answers.fitting import new_trainer, training_threads
from varitext.answers.training_data import training_data
from varitext.charts.colours import PALETTE
from varitext.models.answers.nasm import NASM
from varitext.report.drawing import Line, line_figure, svg_text
from varitext.reproduce import ABOUT
from varitext.reproduce.answer_fits import load_part, ranker_settings
from varitext.reproduce.document_fits import short
from varitext.reproduce.engine import Experiment, Plan, Record, grid, markdown_table, results
from varitext.training.trainer import Trainer

CORPUS = "wikiqa"
MODELS = ("lstm_attention", "nasm")
SEEDS = 3
EPOCHS = 20
NAMES = {  # of what the gradient is with respect to
    "lstm_attention": {"query": "LSTM + Att: s_q"},
    "nasm": {"query": "NASM: h", "mean": "NASM: mean of q(h | q, a, y)"},
}
MEASURES = {
    "std": "std over minibatches",
    "noise_to_signal": "std relative to the mean gradient",
    "turn": "change from epoch to epoch, relative",
}


def measure(model: str, seed: int, plan: Plan) -> dict[str, Any]:
    epochs = {} if plan.quick else {"epochs": EPOCHS, "patience": EPOCHS}
    settings = ranker_settings(CORPUS, model, seed, plan, **epochs)
    data = training_data(settings, load_part(CORPUS, "train", plan), load_part(CORPUS, "dev", plan))
    with training_threads(settings):
        trainer = new_trainer(settings, data)
        recorded = record_gradients(trainer)
        trainer.train()
    steps = trainer.task.steps_per_epoch
    return {name: by_epoch(np.stack(found), steps) for name, found in recorded.items()}


def record_gradients(trainer: Trainer) -> dict[str, list[np.ndarray]]:
    """Lists that training fills, one gradient [K] per minibatch: its sum over samples and pairs."""
    network: Any = trainer.model
    recorded: dict[str, list[np.ndarray]] = {"query": []}

    def keep(name: str, gradient: Tensor) -> None:
        recorded[name].append(gradient.flatten(0, -2).sum(0).numpy())

    def watch(values: Tensor, name: str) -> None:
        if values.requires_grad:  # not in the evaluation of an epoch
            values.register_hook(partial(keep, name))  # type: ignore[no-untyped-call]

    network.attention.register_forward_pre_hook(lambda module, inputs: watch(inputs[0], "query"))
    if isinstance(network, NASM):
        recorded["mean"] = []
        network.posterior_head.register_forward_hook(lambda module, inputs, output: watch(output.mean, "mean"))
    return recorded


def by_epoch(gradients: np.ndarray, steps: int) -> dict[str, list[float]]:
    """The spread of gradients [minibatches, K] in each epoch, and how far their mean moves to the next epoch."""
    epochs = [gradients[start : start + steps] for start in range(0, len(gradients) - steps + 1, steps)]
    means = np.stack([epoch.mean(0) for epoch in epochs])
    lengths = np.linalg.norm(means, axis=1)
    std = np.array([np.sqrt(epoch.var(0).sum()) for epoch in epochs])
    turns = np.linalg.norm(np.diff(means, axis=0), axis=1) / lengths[:-1]
    found = {"std": std, "noise_to_signal": std / np.maximum(lengths, 1e-12), "turn": turns}
    return short({name: values.tolist() for name, values in found.items()})


def table(records: list[Record]) -> str:
    rows = []
    for model, names in NAMES.items():
        found = results(records, model=model)
        for name, title in names.items() if found else ():
            cells = [typical([one[name][each] for one in found]) for each in MEASURES]
            rows.append([title.replace("|", "\\|"), *cells, str(len(found))])
    return markdown_table(["median over epochs", *MEASURES.values(), "seeds"], rows)


def typical(by_seed: list[list[float]]) -> str:
    """The median over epochs, its mean over seeds; nothing if there is only one epoch to compare."""
    medians = [np.median(values) for values in by_seed if values]
    return f"{np.mean(medians):.3g}" if medians else ""


def figure(records: list[Record]) -> str:
    """Means over seeds, by epoch; what does not depend on the units of h."""
    panels = {MEASURES[each]: _lines(records, each) for each in ("noise_to_signal", "turn")}
    panels = {title: lines for title, lines in panels.items() if all(len(line.y) for line in lines)}
    return svg_text(line_figure("Gradients with respect to the question, by epoch", "epoch", panels))


def _lines(records: list[Record], measured: str) -> list[Line]:
    names = [(model, name, title) for model, found in NAMES.items() for name, title in found.items()]
    lines = []
    for (model, name, title), colour in zip(names, PALETTE, strict=False):
        if found := results(records, model=model):
            values = np.mean([one[name][measured] for one in found], 0)
            lines.append(Line(title, np.arange(1, len(values) + 1), values, colour))
    return lines


RUNS = partial(grid, measure, SEEDS, model=MODELS)
EXPERIMENT = Experiment("gradients", ABOUT["gradients"], RUNS, table, figure)
