"""Cost of the models (paper, section 6 and appendix C): NASM relative to LSTM + Att, NVDM by the size of its parts.

CPU seconds of the same batches in turn; only their ratios matter.
"""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import torch

from varitext.answers.fitting import new_trainer, training_threads
from varitext.answers.settings import AnswerSettings
from varitext.answers.training_data import learn_from
from varitext.batches.counts import CountBatch
from varitext.corpora.question_answers import subset
from varitext.latent import elbo
from varitext.models.answers.network import AnswerNetwork
from varitext.models.documents.nvdm import NVDM
from varitext.reproduce import ABOUT
from varitext.reproduce.answer_fits import DATA, OWN_MODELS, load_part, titles
from varitext.reproduce.document_fits import short
from varitext.reproduce.engine import Experiment, Plan, Record, Run, markdown_table, results
from varitext.runtime.devices import running_on

CORPUS = "wikiqa"
ROUNDS = 7
SAMPLES = 20


def runs(plan: Plan) -> Iterator[Run]:
    yield Run({"models": "answers"}, partial(measure_answers, plan))
    yield Run({"models": "documents"}, partial(measure_documents, plan))


def rounds_of(plan: Plan) -> int:
    return 2 if plan.quick else ROUNDS


def cpu_seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


# NASM relative to LSTM + Att


def measure_answers(plan: Plan) -> dict[str, Any]:
    steps = {model: Steps(model, plan) for model in OWN_MODELS}
    seconds: dict[str, dict[str, list[float]]] = {model: {"update": [], "predict": []} for model in OWN_MODELS}
    for _ in range(rounds_of(plan)):  # in turn: other work on the machine slows all alike
        for model, one in steps.items():
            with training_threads(one.settings):
                seconds[model]["update"].append(cpu_seconds(one.update) / one.n_pairs)
            with running_on(plan.threads):
                seconds[model]["predict"].append(cpu_seconds(one.predict) / one.n_pairs)
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


# NVDM: C_phi = O(L K^2) for the inference network, C_theta = O(K S V) for the generative model


class Size(NamedTuple):
    layers: int = 2  # L
    hidden_dim: int = 500  # K of the inference network
    latent_dim: int = 50  # K of the generative model
    length: int = 100  # S, words of a document
    vocabulary_size: int = 2000  # V


class Growth(NamedTuple):
    """Growth along one size; the others are as in `Size`."""

    part: str
    letter: str
    field: str
    sizes: tuple[int, ...]
    exponent: int  # by the paper's formula


INFERENCE, GENERATIVE = "inference network", "generative model"
GROWTHS = (
    Growth(INFERENCE, "L", "layers", (2, 4, 8, 16), 1),
    Growth(INFERENCE, "K", "hidden_dim", (500, 1000, 2000), 2),
    Growth(GENERATIVE, "K", "latent_dim", (100, 200, 400, 800), 1),
    Growth(GENERATIVE, "S", "length", (25, 50, 100, 200, 400), 1),
    Growth(GENERATIVE, "V", "vocabulary_size", (2000, 4000, 8000, 16000), 1),
)
DOCUMENTS = 128


class DocumentWork:
    """Forward and backward passes of an NVDM of this size over documents of random words."""

    def __init__(self, size: Size):
        torch.manual_seed(0)
        words = np.random.default_rng(0).integers(size.vocabulary_size, size=(DOCUMENTS, size.length))
        rows = np.repeat(np.arange(DOCUMENTS), size.length)
        shape = (DOCUMENTS, size.vocabulary_size)
        ones = np.ones(words.size, np.float32)
        self.batch = CountBatch.from_rows(scipy.sparse.csr_matrix((ones, (rows, words.ravel())), shape))
        self.network = NVDM(
            size.vocabulary_size, size.latent_dim, hidden_dim=size.hidden_dim, hidden_layers=size.layers, softmax="full"
        )
        with torch.no_grad():
            self.encoding = self.network.encode(self.batch)
        self.h = torch.randn(1, DOCUMENTS, size.latent_dim)

    def infer(self) -> None:
        q = self.network.posterior(self.network.encode(self.batch))
        torch.autograd.backward(q.mean.sum() + q.log_std.sum())

    def generate(self) -> None:
        torch.autograd.backward(self.network.log_likelihood(self.h, self.encoding).sum())

    def update(self) -> None:
        torch.autograd.backward(elbo(self.network, self.batch).elbo.sum())

    def update_without_noise(self) -> None:
        """The same as a deterministic auto-encoder: h is the mean, and there is no KL."""
        encoding = self.network.encode(self.batch)
        h = self.network.posterior(encoding).mean[None]
        torch.autograd.backward(self.network.log_likelihood(h, encoding).sum())


def measure_documents(plan: Plan) -> dict[str, Any]:
    with running_on(plan.threads):
        found = [growth_of(growth, plan) for growth in GROWTHS]
        work = DocumentWork(Size())
        variational, plain = in_turn([work.update, work.update_without_noise], 5 * rounds_of(plan))
    return short({"growth": found, "update": variational, "auto_encoder": plain})


def growth_of(growth: Growth, plan: Plan) -> dict[str, Any]:
    sizes = growth.sizes[:2] if plan.quick else growth.sizes
    works = [DocumentWork(Size()._replace(**{growth.field: size})) for size in sizes]
    seconds = in_turn([one.infer if growth.part == INFERENCE else one.generate for one in works], rounds_of(plan))
    exponent = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
    return {"part": growth.part, "letter": growth.letter, "sizes": sizes, "seconds": seconds, "exponent": exponent}


def in_turn(works: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """Median CPU seconds of each; the first round warms up."""
    times = [[cpu_seconds(work) for work in works] for _ in range(rounds + 1)]
    return [statistics.median(one) for one in zip(*times[1:], strict=True)]


# Tables


def table(records: list[Record]) -> str:
    tables = {"answers": answer_table, "documents": document_table}
    return "\n\n".join(make(one) for models, make in tables.items() for one in results(records, models=models))


def answer_table(found: dict[str, Any]) -> str:
    baseline = found["lstm_attention"]
    head = ["", "parameters besides word vectors", "update, relative", f"prediction with {SAMPLES} samples, relative"]
    rows = []
    for model in OWN_MODELS:
        relative = [f"{found[model][kind] / baseline[kind]:.2f}" for kind in ("update", "predict")]
        rows.append(
            [titles()[model], f"{found[model]['parameters']:,}", *relative, f"{1 / found[model]['update']:,.0f}"]
        )
    return markdown_table([*head, "pairs per CPU second, update"], rows)


def document_table(found: dict[str, Any]) -> str:
    formulas = {INFERENCE: "O(LK²)", GENERATIVE: "O(KSV)"}
    head = ["NVDM", "the paper's formula", "along", "cost relative to the smallest", "exponent", "by the formula"]
    rows = []
    for growth, one in zip(GROWTHS, found["growth"], strict=True):
        relative = ", ".join(f"{seconds / one['seconds'][0]:.1f}" for seconds in one["seconds"])
        sizes = ", ".join(map(str, one["sizes"]))
        cells = [growth.part, formulas[growth.part], f"{growth.letter} = {sizes}", relative]
        rows.append([*cells, f"{one['exponent']:.2f}", str(growth.exponent)])
    ratio = found["update"] / found["auto_encoder"]
    return (
        f"{markdown_table(head, rows)}\n\nAn update of NVDM takes {ratio:.2f} times as long as one of the same network "
        "as a deterministic auto-encoder."
    )


EXPERIMENT = Experiment("complexity", ABOUT["complexity"], runs, table)
