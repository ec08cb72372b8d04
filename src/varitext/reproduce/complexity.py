"""Cost of the latent variable: time and parameters of NASM relative to LSTM + Att (paper, section 6)."""

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from varitext.answers.fitting import new_trainer, training_threads
from varitext.answers.settings import AnswerSettings
from varitext.answers.training_data import learn_from
from varitext.corpora.question_answers import subset
from varitext.models.answers.network import AnswerNetwork
from varitext.reproduce.answer_fits import DATA, OWN_MODELS, load_part, titles
from varitext.reproduce.engine import Experiment, Plan, Record, Run, markdown_table
from varitext.runtime.devices import running_on

CORPUS = "wikiqa"
ROUNDS = 7
SAMPLES = 20


def runs(plan: Plan) -> Iterator[Run]:
    yield Run({}, lambda: measure(plan))


def measure(plan: Plan) -> dict[str, Any]:
    steps = {model: Steps(model, plan) for model in OWN_MODELS}
    seconds: dict[str, dict[str, list[float]]] = {model: {"update": [], "predict": []} for model in OWN_MODELS}
    for _ in range(2 if plan.quick else ROUNDS):  # in turn: other work on the machine slows all alike
        for model, one in steps.items():
            with training_threads(one.settings):
                seconds[model]["update"].append(_seconds(one.update) / one.n_pairs)
            with running_on(plan.threads):
                seconds[model]["predict"].append(_seconds(one.predict) / one.n_pairs)
    return {
        model: {kind: statistics.median(times[1:]) for kind, times in seconds[model].items()}
        | {"parameters": steps[model].n_parameters}
        for model in OWN_MODELS
    }


class Steps:
    """The work of one model on the same batches: an update, and a prediction."""

    def __init__(self, model: str, plan: Plan):
        train = subset(load_part(CORPUS, "train", plan), DATA[CORPUS].protocol)
        self.settings = AnswerSettings(model, threads=plan.threads)
        self.trainer = new_trainer(self.settings, learn_from(self.settings, train, train))
        assert isinstance(self.trainer.model, AnswerNetwork)
        self.network, self.task = self.trainer.model, self.trainer.task
        self.batches = list(self.task.batches(0))[:6]
        self.n_pairs = sum(map(len, self.batches))
        learned = (name for name in self.network.named_parameters() if not name[0].startswith("word_vectors"))
        self.n_parameters = sum(parameter.numel() for _, parameter in learned)

    def update(self) -> None:
        self.network.train()
        optimizer = self.trainer.optimizers[0]
        for batch in self.batches:
            torch.autograd.backward(self.task.loss(self.network, batch, 1.0).loss)
            optimizer.step(self.trainer.settings.learning_rate)
            optimizer.zero_grad()

    @torch.no_grad()
    def predict(self) -> None:
        self.network.eval()
        for batch in self.batches:
            encoding = self.network.encode(batch)
            self.network.logits(self.network.prior_samples(encoding, SAMPLES), encoding)


def _seconds(work: Callable[[], None]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def table(records: list[Record]) -> str:
    found = records[0]["result"]
    baseline = found["lstm_attention"]
    head = ["", "parameters besides word vectors", "update, relative", f"prediction with {SAMPLES} samples, relative"]
    rows = []
    for model in OWN_MODELS:
        relative = [f"{found[model][kind] / baseline[kind]:.2f}" for kind in ("update", "predict")]
        rows.append(
            [titles()[model], f"{found[model]['parameters']:,}", *relative, f"{1 / found[model]['update']:,.0f}"]
        )
    return markdown_table([*head, "pairs per second, update"], rows)


EXPERIMENT = Experiment("complexity", "cost of NASM relative to LSTM + Att (section 6)", runs, table)
