"""Gradients and q(h | X) of the default document model in C, against autograd and torch."""

import ctypes
import shutil
import subprocess
import time
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
import torch

from varitext import compiled
from varitext.batches.counts import CountBatch
from varitext.models.documents import nvdm_dcm
from varitext.models.documents.dcm_compiled import CompiledDCM
from varitext.models.documents.nvdm_dcm import NVDMDCM
from varitext.runtime.devices import running_on

WORDS, K = 61, 7
BUILDS = {"lanes": [], "no lanes": ["-DVARITEXT_NO_LANES"]}  # as Microsoft's compiler sees it
if compiled.available() and compiled.registers() >= 256:
    BUILDS["wide lanes"] = ["-mavx2", "-mfma"]
needs_kernels = pytest.mark.skipif(not compiled.available(), reason="no C compiler when varitext was installed")


def documents(number: int, seed: int = 0) -> CountBatch:
    """Some are empty, some words occur often."""
    generator = np.random.default_rng(seed)
    dense = generator.poisson(0.4, (number, WORDS)) * (generator.random((number, 1)) < 0.9)
    dense[0, 0], dense[-1] = 40, 0
    return CountBatch.from_rows(scipy.sparse.csr_matrix(dense.astype(np.float32)))


def network(**settings) -> NVDMDCM:
    """Random weights of every kind; some means and log stds are so large that they are clamped."""
    torch.manual_seed(3)
    made = NVDMDCM(WORDS, K, **({"groups": 9, "hidden_dim": 11} | settings))
    made.decoder.group_of_word.copy_(torch.randint(0, 8, (WORDS,)))  # the last group is empty
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
        made.head.log_std.bias[:2] = torch.tensor([3.0, -9.0])
        made.head.mean.bias[2] = 12.0
    return made


def step_of(network: NVDMDCM) -> CompiledDCM:
    return CompiledDCM(network.encoder, network.head, network.step_gates, network.decoder)


@pytest.fixture(scope="module", params=BUILDS)
def in_double(request, tmp_path_factory):
    """The library in double precision."""
    if not shutil.which("gcc"):
        pytest.skip("no gcc")
    sources = [str(path) for path in compiled.HERE.glob("*.c")]
    path = tmp_path_factory.mktemp("library") / "kernels.so"
    flags = ["-O1", "-shared", "-fPIC", "-DVARITEXT_DOUBLE", *BUILDS[request.param]]
    subprocess.run(["gcc", *flags, "-o", path, *sources, "-lm"], check=True)
    return compiled.load_library(path, ctypes.c_double)


@pytest.fixture
def double(in_double, monkeypatch):
    monkeypatch.setattr(compiled, "_library", lambda: in_double)


def by_autograd(network: NVDMDCM, batch: CountBatch, weights, samples, kl_weight):
    estimate = network.objective(batch, samples, kl_weight)
    parameters = step_of(network).parameters
    return estimate.bound, torch.autograd.grad((weights * estimate.surrogate).sum(), parameters)


def compare(network: NVDMDCM, batch: CountBatch, samples: int, tolerance: float) -> None:
    weights, step = batch.lengths.clamp(min=1).pow(-0.3) / len(batch), step_of(network)
    torch.manual_seed(5)
    bound, expected = by_autograd(network, batch, weights, samples, kl_weight=0.7)
    torch.manual_seed(5)
    found = step.set_gradients(batch, weights, samples, 0.7, network._sample_words(batch))
    torch.testing.assert_close(found.log_likelihood, bound.log_likelihood, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(found.kl, bound.kl, rtol=tolerance, atol=10 * tolerance)
    for parameter, gradient in zip(step.parameters, expected, strict=True):
        scale = float(gradient.abs().max())
        torch.testing.assert_close(parameter.grad, gradient, rtol=0, atol=tolerance * max(scale, 1e-3))


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("layers", [0, 1, 3])
@pytest.mark.parametrize("samples", [1, 3])
@pytest.mark.parametrize("number", [2, 37])
def test_gradients_in_double_precision_are_those_of_autograd(layers, samples, number):
    batch = documents(number)
    batch = replace(batch, counts=batch.counts.double(), lengths=batch.lengths.double())
    size = {"hidden_layers": layers} if layers else {"hidden_layers": 0, "hidden_dim": K + 2}
    compare(network(**size).double(), batch, samples, tolerance=1e-10)


@pytest.mark.usefixtures("double")
def test_gradients_with_some_words_for_all_are_those_of_autograd():
    dense = np.zeros((40, WORDS), np.float32)
    dense[np.arange(40), np.arange(40) % 9] = 2  # few of the words occur
    batch = CountBatch.from_rows(scipy.sparse.csr_matrix(dense))
    batch = replace(batch, counts=batch.counts.double(), lengths=batch.lengths.double())
    made = network(word_share=0.2).double()
    assert 9 < len(made._sample_words(batch).words) < WORDS
    compare(made, batch, samples=2, tolerance=1e-10)


@needs_kernels
@pytest.mark.parametrize("number", [1, 16, 53])
def test_gradients_in_single_precision_are_those_of_autograd(number):
    compare(network(), documents(number + 1), samples=1, tolerance=1e-5)


@needs_kernels
def test_parts_add_up_to_the_batch():
    """Two workers, and this thread alone; and the same bits once more."""
    batch, found = documents(90), []
    for threads in (1, 2, 2):
        made = network()
        with running_on(threads, parallel_jobs=True):
            torch.manual_seed(1)
            bound = made.set_gradients(batch, -batch.lengths / 1000, 1, 1.0)
        found.append([bound.log_likelihood, bound.kl, *(each.grad.clone() for each in made.parameters())])
    for alone, both, again in zip(*found, strict=True):
        torch.testing.assert_close(both, alone, rtol=1e-4, atol=1e-5 * float(alone.abs().max()))
        assert torch.equal(both, again)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("refinement_steps", [0, 3])
def test_inference_in_double_precision_is_that_of_torch(refinement_steps, monkeypatch):
    batch = documents(70)
    batch = replace(batch, counts=batch.counts.double(), lengths=batch.lengths.double())
    made = network(refinement_steps=refinement_steps).double().eval()
    with torch.no_grad():
        step, steps = step_of(made), 1 + refinement_steps
        q, means = step.infer(batch, steps), step.infer_means(batch, steps if refinement_steps else 0)
        monkeypatch.setattr(nvdm_dcm, "usable", lambda *tensors: False)
        expected = made.posterior(made.encode(batch))
        for one, other in zip(q, expected, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)
        means = torch.where(batch.lengths[:, None] > 0, means, 0.0)
        torch.testing.assert_close(means, made.document_means(batch), rtol=1e-9, atol=1e-9)


@needs_kernels
def test_a_document_does_not_depend_on_its_neighbours():
    made, rows = network().eval(), documents(70)
    with torch.no_grad():
        whole = step_of(made).infer(rows, 3)
        alone = step_of(made).infer(_only(rows, 41), 3)
    assert all(torch.equal(one[41:42], other) for one, other in zip(whole, alone, strict=True))


def _only(batch: CountBatch, row: int) -> CountBatch:
    dense = torch.zeros(len(batch), WORDS).index_put((batch.documents, batch.words), batch.counts)
    return CountBatch.from_rows(scipy.sparse.csr_matrix(dense[row : row + 1].numpy()))


@needs_kernels
@pytest.mark.parametrize(
    "made",
    [
        lambda: network(activation="tanh"),
        lambda: network(estimator="importance_weighted"),
        lambda: network().double(),
        lambda: network().requires_grad_(False),
    ],
)
def test_what_c_does_not_compute_is_left_to_autograd(made):
    batch = documents(5)
    assert made().set_gradients(batch, batch.lengths, 1, 1.0) is None


@needs_kernels
def test_c_takes_less_time_than_autograd():
    """On any CPU: vectors wider than its registers once took ten times as long as they should."""
    made = NVDMDCM(2000, 50, groups=300)
    counts = scipy.sparse.random(128, 2000, 0.03, "csr", np.float32, rng=np.random.default_rng(0))
    counts.data[:] = 1
    batch, weights = CountBatch.from_rows(counts), torch.ones(128)
    actions = (
        lambda: made.set_gradients(batch, weights, 1, 1.0),
        lambda: torch.autograd.backward(made.objective(batch, 1, 1.0).surrogate.sum()),
    )
    seconds = [min(_seconds(action) for _ in range(5)) for action in actions]
    assert seconds[0] < seconds[1]


def _seconds(action) -> float:
    started = time.thread_time()
    action()
    return time.thread_time() - started
