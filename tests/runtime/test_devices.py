"""Nothing in the way of a GPU: every network trains, evaluates and transforms on a device that is not the CPU."""

import copy
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from elsewhere import Elsewhere, ElsewhereTensor
from made_up_questions import WORDS, built, made_up
from synthetic import topic_documents

from varitext.answers.network_prediction import predict
from varitext.answers.task import AnswerObjective, AnswerTask
from varitext.batches.counts import CountBatch
from varitext.batches.pairs import PairBatches
from varitext.documents.fitting import DocumentTask
from varitext.documents.model import DocumentModel
from varitext.documents.updating import Anchor
from varitext.errors import InputError
from varitext.models.answers import ANSWER_MODELS
from varitext.models.documents import DOCUMENT_MODELS, model_class
from varitext.models.documents.base import DocumentObjective
from varitext.runtime.devices import check_device, usable_device
from varitext.runtime.randomness import random_states, seeded, set_random_states
from varitext.training.settings import TrainingSettings
from varitext.training.trainer import Trainer

COUNTS = topic_documents(40, 30, 3, 15)
NETWORKS = [name for name, entry in ANSWER_MODELS.items() if entry.trained_by_gradient and not entry.extra]
DOCUMENT_NETWORKS = {name: entry.load() for name, entry in DOCUMENT_MODELS.items() if name != "lda"} | {
    "nvdm, statistics": partial(model_class("nvdm"), inference="statistics", refinement_steps=2),
    "sbn, nvil": partial(model_class("sbn"), estimator="nvil", refinement_steps=2),
}
SETTINGS = TrainingSettings(epochs=2, batch_size=16, samples=2, averaging=0.9, seed=1)
LEARNS = replace(SETTINGS, epochs=4, learning_rate=0.01)
# RSM asks how many updates it has seen, NVIL whether this is the first; the DCM likelihood, how many words occur
# twice, three times ...; a sentence network, how long its sentences are
MAY_ASK = {"rsm", "sbn, nvil", "nvdm_dcm", "nvdm_vectors"} | set(NETWORKS)
close = partial(torch.testing.assert_close, rtol=1e-4, atol=1e-6)  # an LSTM has a kernel of its own on a CPU


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def document_network(name):
    with seeded(0):
        network = DOCUMENT_NETWORKS[name](vocabulary_size=30, latent_dim=4)
    network.learn_frequencies(torch.from_numpy(np.asarray(COUNTS.sum(0), np.float64).ravel()))
    return network


def document_task(device, settings=SETTINGS):
    return DocumentTask(COUNTS[:32], COUNTS[32:], settings, DocumentObjective(length_exponent=0.7), device)


def answer_task(device, settings=SETTINGS):
    return AnswerTask(made_up(8, 0), made_up(4, 1), WORDS, settings, AnswerObjective(), device)


def one_step(network, task):
    """The loss of a batch, with gradients in the network."""
    batch = next(task.batches(0))
    with seeded(3):
        found = task.loss(network.train(), batch, 0.5)
        if found.loss.requires_grad:  # otherwise the task has set the gradients
            found.loss.backward()
    return found


def check_step(name, network, make_task):
    """The same loss and gradients elsewhere, and nothing fetched that need not be."""
    there = copy.deepcopy(network)
    here = one_step(network, make_task("cpu"))
    with Elsewhere() as elsewhere:
        there = there.to("meta")
        assert all(isinstance(value, ElsewhereTensor) for value in there.state_dict().values())
        found = one_step(there, make_task("meta"))
        assert "cpu" not in elsewhere.fetched and (name in MAY_ASK or not elsewhere.fetched)
        close(found.loss.cpu(), here.loss)
        for one, other in zip(there.parameters(), network.parameters(), strict=True):
            assert (one.grad is None) == (other.grad is None)
            if other.grad is not None:
                close(one.grad.cpu(), other.grad)


@pytest.mark.parametrize("name", DOCUMENT_NETWORKS)
def test_a_step_of_every_document_network_stays_on_its_device(name):
    check_step(name, document_network(name), document_task)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_step_of_every_answer_network_stays_on_its_device(name):
    with seeded(0):
        check_step(name, built(name), answer_task)


@pytest.mark.parametrize("name", DOCUMENT_NETWORKS)
def test_documents_are_evaluated_and_transformed_on_the_device(name):
    network = document_network(name).eval().requires_grad_(False)
    here = network.evaluate(COUNTS, 4, 0)
    vectors = network.document_vectors(CountBatch.from_rows(COUNTS))
    with Elsewhere():
        there = copy.deepcopy(network).to("meta")
        # kernels in C are for the CPU alone: last bits differ
        np.testing.assert_allclose(there.evaluate(COUNTS, 4, 0).elbo, here.elbo, rtol=1e-5)
        found = there.document_vectors(CountBatch.from_rows(COUNTS, "meta"))
        close(found.mean.cpu(), vectors.mean)
        close(found.std.cpu(), vectors.std)


@pytest.mark.parametrize("name", NETWORKS)
def test_answers_are_evaluated_on_the_device(name):
    with seeded(0):
        network = built(name).eval()
    corpus = made_up(5, 2)
    here = predict(network, PairBatches(corpus, WORDS, 8), 3, 0).sampled
    with Elsewhere():
        there = copy.deepcopy(network).to("meta")
        found = predict(there, PairBatches(corpus, WORDS, 8, "meta"), 3, 0).sampled
    np.testing.assert_allclose(found, here, rtol=1e-5)


class KilledInRound:
    """Progress that goes as far as a round."""

    def __init__(self, number):
        self.left = number

    def step(self, share_done, elbo, kl): ...

    def round(self, record):
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt

    def note(self, message): ...


def scores(state):
    """All that was measured of the held-out examples, round by round."""
    timeless = ("seconds", "epoch", "step")
    return [value for record in state.history for name, value in record.items() if name not in timeless]


@pytest.mark.filterwarnings("ignore:for .* copying from a non-meta parameter")  # torch knows better what meta is
@pytest.mark.parametrize("make", ["documents", "answers"])
def test_a_whole_training_runs_on_the_device_with_checkpoint_and_resume(make, monkeypatch, tmp_path):
    plain = torch.optim.AdamW  # the fused one knows the devices that exist
    monkeypatch.setattr(torch.optim, "AdamW", lambda *given, fused, **named: plain(*given, **named, foreach=False))
    with seeded(0 if make == "documents" else 3):
        network = document_network("nvdm, statistics") if make == "documents" else built("nasm")
    settings = replace(LEARNS, seed=1 if make == "documents" else 2)
    make_task = partial(document_task if make == "documents" else answer_task, settings=settings)
    there, path = copy.deepcopy(network), tmp_path / "checkpoint"
    here = Trainer(network, make_task("cpu"), settings).train()
    assert here.best_step > 0  # otherwise equal weights would prove nothing
    with Elsewhere():
        there = there.to("meta")
        with pytest.raises(KeyboardInterrupt):
            Trainer(there, make_task("meta"), settings, path, KilledInRound(3)).train()
        resumed = Trainer(there, make_task("meta"), settings, path)
        assert scores(resumed.train(resume=True)) == pytest.approx(scores(here), rel=1e-4, abs=1e-5)
        for name, value in network.state_dict().items():  # within a hundredth of one update
            torch.testing.assert_close(resumed.model.state_dict()[name].cpu(), value.detach(), rtol=1e-4, atol=1e-4)


def test_the_pull_of_an_update_stays_on_the_device():
    with Elsewhere() as elsewhere:
        network = document_network("nvdm").to("meta")
        cost = Anchor(network, 2.0).cost(network)
        assert isinstance(cost, ElsewhereTensor) and not elsewhere.fetched


def test_a_leak_is_seen():
    """The test above could not fail if this did not."""
    with Elsewhere() as elsewhere:
        there = torch.ones(3).to("meta")
        with pytest.raises(AssertionError, match="two devices"):
            there + torch.ones(3)
        with pytest.raises((RuntimeError, TypeError)):
            there.numpy()
        kept, there.data = there.data, (2 * there).data  # as `WeightAverage` does: values go along
        there.sum().item()
        assert there.cpu().tolist() == [2.0] * 3
        there.data = kept
        assert there.cpu().tolist() == [1.0] * 3
        assert elsewhere.fetched == ["item", "cpu", "cpu"]


def test_batches_do_not_depend_on_the_default_device():
    with torch.device("meta"):
        batch = CountBatch.from_rows(COUNTS)
        pairs = PairBatches(made_up(3, 0), WORDS).batch([0, 1])
    assert batch.lengths.device.type == pairs.labels.device.type == pairs.answers.tokens.device.type == "cpu"


@pytest.mark.parametrize("device", ["banana", "meta", "cuda:99"])
def test_a_device_that_is_not_here_is_one_line(device):
    with pytest.raises(InputError, match="device") as caught:
        check_device(device)
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="device"):
        DocumentModel(latent_dim=2, device=device).fit(COUNTS)
    assert usable_device(device) == "cpu"


def test_a_model_of_another_machine_loads_on_the_cpu(tmp_path):
    model = DocumentModel(latent_dim=2, epochs=1).fit(COUNTS)
    model.set_params(device="cuda:99").save(tmp_path / "model")
    loaded = DocumentModel.load(tmp_path / "model")
    assert loaded.device == "cpu" and np.array_equal(loaded.transform(COUNTS), model.transform(COUNTS))


def test_random_states_come_back():
    with seeded(5):
        states = random_states("cpu")
        first = torch.rand(3)
        set_random_states(states, "cpu")
        assert torch.equal(torch.rand(3), first)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu():
    model = DocumentModel(latent_dim=2, epochs=2, device="cuda").fit(COUNTS)
    assert model.fitted_.network.device.type == "cuda" and model.transform(COUNTS).shape == (40, 2)
