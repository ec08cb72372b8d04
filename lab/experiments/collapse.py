"""Attempts to prevent the posterior collapse of NASM's h, where the paper has it, on WikiQA's dev questions.

h is the query of the attention over the answer. Each attempt changes one thing, the last ones several. h is used if
ranking with the h of another question is worse; neither MAP alone nor the KL shows this.
"""

from functools import partial
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor

from varitext.latent import DiagonalGaussian
from varitext.layers.attention import LatentAttention, ScalingAttention
from varitext.layers.words import Sentences
from varitext.models.answers.nasm import NASM
from varitext.models.answers.network import Encoding
from varitext.report.drawing import drawing_style, svg_text
from varitext.reproduce.answer_fits import fit_ranker
from varitext.reproduce.engine import Experiment, Plan, Record, grid, markdown_table, mean, results, rounded

CORPUS, SEEDS = "wikiqa", 2
EPOCHS = 12
FREE_NATS = 2.0
SIZE = (9.0, 5.0)  # inches
LOWEST_KL = 1e-6  # drawn


class ContextAttention(LatentAttention):
    """z_a = tanh(W_a c): the answer is read through the attention alone."""

    def start_at_last_state(self) -> None:
        torch.nn.init.eye_(self.from_context.weight)

    def forward(self, query: Tensor, answers: Sentences) -> Tensor:
        weights = self.weights(query, answers)
        context = torch.bmm(weights.transpose(0, 1), answers.states).transpose(0, 1)  # [S, P, H]
        return torch.tanh(self.from_context(context))


class ScalingContextAttention(ContextAttention):
    """Both."""

    _together = ScalingAttention._together


class ScalingNASM(NASM):
    attention_kind = ScalingAttention


class ContextNASM(NASM):
    attention_kind = ContextAttention


class WidePriorNASM(NASM):
    def prior_by_question(self, encoding: Encoding) -> DiagonalGaussian:
        prior = super().prior_by_question(encoding)
        return prior._replace(log_std=prior.log_std.clamp(min=0))


class ImportanceWeightedNASM(NASM):
    estimator, training_samples = "importance_weighted", 8


class DReGNASM(NASM):
    estimator, training_samples = "dreg", 8


class ListNASM(NASM):
    """The posterior of a pair also sees the sum of the right answers of its question."""

    def posterior(self, encoding: Encoding) -> DiagonalGaussian:
        last, right = encoding.answers.last, encoding.labels[:, None] * encoding.answers.last  # [P, H]
        of_question = torch.zeros_like(encoding.question).index_add(0, encoding.question_of, right)  # [Q, H]
        label = self.read_label(encoding.labels[:, None]) + of_question.index_select(0, encoding.question_of)
        q: DiagonalGaussian = self.posterior_head(
            self.posterior_mlp(torch.cat([encoding.question_by_pair, last, label], 1))
        )
        return q  # [P, K]


class StrongNASM(ListNASM):
    """All changes together: h scales the attention, which alone reads the answer, and the posterior sees the list."""

    attention_kind = ScalingContextAttention


class StrongImportanceWeightedNASM(StrongNASM):
    estimator, training_samples = "importance_weighted", 8


ATTEMPTS: dict[str, tuple[type[NASM], dict[str, Any]]] = {
    "as in the paper": (NASM, {}),
    "KL warm-up over all epochs": (NASM, {"kl_warm_up": 1.0}),
    "2 free nats": (NASM, {"free_bits": FREE_NATS}),
    "prior std at least 1": (WidePriorNASM, {}),
    "h multiplied into the attention": (ScalingNASM, {}),
    "answer read through attention alone": (ContextNASM, {}),
    "importance-weighted, 8 samples": (ImportanceWeightedNASM, {}),
    "the same, doubly reparameterised gradients": (DReGNASM, {}),
    "posterior sees the labelled list": (ListNASM, {}),
    "multiplied, attention alone, list": (StrongNASM, {}),
    "the same, 2 free nats": (StrongNASM, {"free_bits": FREE_NATS}),
    "the same, importance-weighted": (StrongImportanceWeightedNASM, {}),
}


def measure(attempt: str, seed: int, plan: Plan) -> dict[str, Any]:
    kind, settings = ATTEMPTS[attempt]
    ranker = fit_ranker(CORPUS, kind, seed, plan, epochs=1 if plan.quick else EPOCHS, patience=EPOCHS, **settings)
    history = ranker.fitted_.history
    kept = next(record for record in history if record["dev_map"] == ranker.fitted_.dev_map)
    names = ("dev_map", "dev_map_shuffled_h", "dev_kl", "posterior_prior_gap", "active_units")
    curves = {name: rounded((record[name] for record in history), 7) for name in ("dev_kl", "dev_map")}
    return {name: round(float(kept[name]), 6) for name in names} | {"by_epoch": curves}


def table(records: list[Record]) -> str:
    rows = []
    for attempt in ATTEMPTS:
        if found := results(records, attempt=attempt):
            lost = [one["dev_map"] - one["dev_map_shuffled_h"] for one in found]
            exchanged = mean([{"lost": value} for value in lost], "lost", "+.4f")
            figures = [mean(found, "dev_kl", ".2g"), mean(found, "posterior_prior_gap"), mean(found, "dev_map")]
            rows.append([attempt, *figures, exchanged, str(len(found))])
    head = ["", "KL, nats", "posterior-prior gap, nats", "dev MAP", "lost with another question's h", "seeds"]
    return markdown_table(head, rows)


def figure(records: list[Record]) -> str:
    """The KL against epochs, a line for each attempt; seed 0."""
    with drawing_style():
        drawing = Figure(SIZE, layout="constrained", label="KL of NASM's h by epoch")
        axes = drawing.subplots()
        for number, attempt in enumerate(ATTEMPTS):
            for found in results(records, attempt=attempt, seed=0):
                kl = [max(value, LOWEST_KL) for value in found["by_epoch"]["dev_kl"]]
                style = "-" if number < 7 else "--"
                axes.semilogy(range(len(kl)), kl, style, color=f"C{number % 7}", label=attempt)
        axes.set(title="KL of h, nats per pair", xlabel="epoch")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.legend(fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return svg_text(drawing)


RUNS = partial(grid, measure, SEEDS, attempt=ATTEMPTS)
EXPERIMENT = Experiment("collapse", "attempts to keep NASM's h alive, by the exchange test", RUNS, table, figure)
