"""The kernels in C against the same work in torch, and that varitext does without them where it must."""

import math
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given
from hypothesis import strategies as st

from varitext import compiled
from varitext.batches.counts import CountBatch
from varitext.compiled import dcm as compiled_dcm
from varitext.layers import curvature, dcm
from varitext.layers.dcm import LOG_MASS_RANGE, effective_counts
from varitext.layers.grouped_counts import GroupedCounts, WordGroups

SINGLE = torch.zeros(1)
needs_kernels = pytest.mark.skipif(not compiled.usable(SINGLE), reason="no C compiler when varitext was installed")


@pytest.fixture
def in_torch(monkeypatch):
    """A way to have the same call done in torch."""

    def call(action, *arguments):
        with monkeypatch.context() as patch:
            patch.setattr(compiled, "usable", lambda *tensors: False)
            return action(*arguments)

    return call


def counted(documents: int, words: int, groups: int, seed: int = 0, largest: int = 4) -> GroupedCounts:
    """Made-up counts; some documents are empty, some groups have no word, one count is as large as asked."""
    generator = np.random.default_rng(seed)
    dense = generator.poisson(0.7, (documents, words)) * (generator.random((documents, 1)) < 0.8)
    dense[-1, 0] = largest
    batch = CountBatch.from_rows(scipy.sparse.csr_matrix(dense.astype(np.float32)))
    of_words = torch.from_numpy(generator.integers(0, max(1, groups - 1), words))
    return GroupedCounts(batch, WordGroups.of(of_words, groups))


def test_a_machine_with_a_compiler_has_the_kernels():
    if not shutil.which("gcc") or os.environ.get("VARITEXT_COMPILED") == "0":
        pytest.skip("no gcc, or not wanted")
    assert compiled.usable(SINGLE)


@needs_kernels
def test_the_library_is_that_for_the_registers_of_this_cpu():
    assert Path(compiled._library()._name).name.split(".")[0] == compiled.WIDER_BUILDS.get(
        compiled.registers(), "kernels"
    )


@needs_kernels
def test_without_a_wider_build_the_one_for_every_cpu_is_used(monkeypatch):
    monkeypatch.setattr(compiled, "WIDER_BUILDS", dict.fromkeys((256, 512), "kernels_that_were_not_built"))
    assert Path(compiled._library.__wrapped__()._name).name.split(".")[0] == "kernels"


def test_other_precision_is_torchs():
    assert not compiled.usable(SINGLE, SINGLE.double()) and not compiled.usable(SINGLE.to("meta"))


@needs_kernels
@given(st.integers(1, 150), st.integers(1, 30), st.integers(1, 9), st.integers(1, 3), st.integers(0, 99))
def test_urns_are_those_of_torch(documents, words, groups, samples, seed):
    counts = counted(documents, words, groups, seed, largest=seed * seed)
    torch.manual_seed(seed)
    weights, inputs, log_scales = torch.randn(words, 4), 2 * torch.randn(4, samples * documents), torch.randn(groups)
    found, exact = dcm.evaluate(weights, inputs, log_scales, counts), counted(documents, words, groups, seed, seed**2)
    exact.batch = _double(exact.batch)
    arguments = weights.double(), inputs.double(), log_scales.double(), exact
    expected = dcm.evaluate(*arguments)
    for name, one, other in zip(found._fields, found[:-1], expected[:-1], strict=False):
        torch.testing.assert_close(
            one.double(), other, rtol=1e-4, atol=1e-3 + 1e-6 * seed**2, msg=lambda text, name=name: name + text
        )
    in_logits = torch.cat(found.in_logits, 1).double()
    torch.testing.assert_close(in_logits, expected.in_logits[0], rtol=1e-3, atol=1e-3)
    value = dcm.value_of(weights, inputs, log_scales, counts)
    assert torch.equal(value, found.log_likelihood) and value.shape == (samples, documents)


def _double(batch: CountBatch) -> CountBatch:
    tensors = batch.words, batch.counts.double(), batch.documents, batch.starts, batch.lengths.double()
    return CountBatch(*tensors, batch.vocabulary_size)


@needs_kernels
@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 9), st.integers(0, 99))
def test_groups_are_counted_as_in_torch(documents, words, groups, seed):
    counts = counted(documents, words, groups, seed)
    in_c, exact = counts.groups, counted(documents, words, groups, seed)
    exact.batch = _double(exact.batch)
    for found, expected in zip(in_c, exact.groups, strict=True):
        assert found.tolist() == expected.tolist()
    masses = torch.rand(words) + 0.01
    sums = counts.layout.sums(masses[:, None])[:, 0] + 1e-6
    found = effective_counts(masses, 0.5 * sums, sums, counts)
    expected = effective_counts(masses.double(), 0.5 * sums.double(), sums.double(), exact)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-5, atol=1e-5)


@needs_kernels
def test_masses_are_held_within_their_range_and_what_is_no_number_stays_none():
    counts, arrays = counted(5, 4, 2), counted(5, 4, 2).arrays
    logits = torch.tensor([-1e30, 1e30, math.nan, 0.5])[:, None].expand(4, len(counts.batch)).contiguous()
    compiled_dcm.likelihood(logits, torch.ones(2), LOG_MASS_RANGE, arrays, gradient=False)
    expected = torch.tensor([math.exp(-60), math.exp(30), math.nan, math.exp(0.5)])
    torch.testing.assert_close(logits[:, 0], expected, rtol=5e-6, atol=0, equal_nan=True)


@needs_kernels
@pytest.mark.parametrize("logit", [-60.0, 30.0])
def test_products_of_many_masses_stay_numbers(logit):
    """A thousand words, each at an end of the range: their product is far beyond what a number can hold."""
    counts = CountBatch.from_rows(scipy.sparse.csr_matrix(np.ones((1, 1000), np.float32)))
    arrays = GroupedCounts(counts, WordGroups.of(torch.arange(1000) % 500, 500)).arrays
    found = compiled_dcm.likelihood(
        torch.full((1000, 1), logit), torch.ones(500), LOG_MASS_RANGE, arrays, gradient=False
    )
    groups = GroupedCounts(_double(counts), WordGroups.of(torch.arange(1000) % 500, 500))
    one = torch.ones(1, 1, dtype=torch.double)
    expected = dcm.value_of(torch.full((1000, 1), logit).double(), one, torch.zeros(500).double(), groups)
    torch.testing.assert_close(found.log_likelihood.double(), expected[0], rtol=1e-4, atol=1e-2)


@needs_kernels
@given(st.lists(st.floats(-60, 30), min_size=1, max_size=40))
def test_powers_are_exact_to_rounding(exponents):
    """Also where columns do not fill a vector."""
    counts = counted(len(exponents), 2, 1)
    logits = torch.tensor([exponents] * 2)
    masses = logits.clone()
    compiled_dcm.likelihood(masses, torch.ones(1), LOG_MASS_RANGE, counts.arrays, gradient=False)
    torch.testing.assert_close(masses.double(), logits.double().exp(), rtol=8e-6, atol=0)


@needs_kernels
@pytest.mark.parametrize(("documents", "size"), [(1, 1), (16, 3), (17, 8), (33, 50), (5, 64)])
def test_inverse_factors_are_those_of_torch(documents, size, in_torch):
    torch.manual_seed(size)
    vectors, weights = torch.randn(200, size), 5 * torch.rand(documents, 200)
    squares = curvature.outer_squares(vectors, 0.1 * torch.eye(size))
    torch.testing.assert_close(squares, in_torch(curvature.outer_squares, vectors, 0.1 * torch.eye(size)))
    arguments = squares @ weights.T, weights @ vectors, weights.sum(1)
    found = curvature.covariance_root(*arguments)
    torch.testing.assert_close(found, in_torch(curvature.covariance_root, *arguments), rtol=1e-4, atol=1e-5)
    exact = torch.einsum("bn,ni,nj->bij", weights.double(), vectors.double(), vectors.double())
    exact += 0.1 * weights.double().sum(1)[:, None, None] * torch.eye(size)
    mean = weights.double() @ vectors.double()
    exact += torch.eye(size) - mean[:, :, None] * (mean / weights.double().sum(1)[:, None])[:, None]
    identity = torch.eye(size, dtype=torch.double).expand(documents, -1, -1)
    torch.testing.assert_close(found.mT.double() @ found.double() @ exact, identity, rtol=1e-3, atol=1e-3)
    step = torch.randn(documents, size)
    expected = in_torch(curvature.covariance_times, found, step)
    torch.testing.assert_close(curvature.covariance_times(found, step), expected, rtol=1e-4, atol=1e-5)


@needs_kernels
def test_a_share_of_the_trace_is_added_to_the_diagonal():
    squares = torch.tensor([[2.0], [0.0], [4.0]])  # the diagonal matrix of 2 and 4
    found = compiled_dcm.inverse_cholesky(squares, torch.zeros(1, 2), torch.ones(1), jitter=0.5)
    expected = torch.tensor([[2 + 1 + 3.0, 0], [0, 4 + 1 + 3.0]]).rsqrt().nan_to_num(posinf=0.0)
    torch.testing.assert_close(found[0], expected)


@needs_kernels
def test_only_the_matrix_without_a_factor_is_no_number(in_torch):
    squares = torch.ones(6, 20)
    squares[0, 3], squares[2, 7] = -100, math.nan
    arguments = squares, torch.zeros(20, 3), torch.ones(20)
    for found in (curvature.covariance_root(*arguments), in_torch(curvature.covariance_root, *arguments)):
        faults = found.isnan()
        assert faults.flatten(1).all(1).nonzero()[:, 0].tolist() == faults.flatten(1).any(1).nonzero()[:, 0].tolist()
        assert faults.flatten(1).any(1).nonzero()[:, 0].tolist() == [3, 7]


@needs_kernels
def test_calls_from_several_threads_do_not_meet():
    counts = [counted(30, 40, 5, seed) for seed in range(8)]
    weights, inputs, log_scales = torch.randn(40, 3), torch.randn(3, 30), torch.randn(5)

    def values(each: GroupedCounts) -> list[float]:
        found = dcm.evaluate(weights, inputs, log_scales, each)
        return [*found.log_likelihood[0].tolist(), *found.in_inputs.flatten().tolist()]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(values, counts * 5))
    np.testing.assert_allclose(found, [values(each) for each in counts] * 5, rtol=1e-4, atol=1e-4)


@needs_kernels
def test_an_array_with_gaps_is_refused():
    with pytest.raises(ValueError, match="strides"):
        compiled.call("outer_squares", 2, 2, torch.ones(2, 4)[:, ::2], torch.ones(2, 2), torch.ones(3, 2))


@needs_kernels
@pytest.mark.parametrize(
    ("array", "place", "value"),
    [("words", 2, 3), ("groups", 0, 2), ("groups", 0, -1), ("starts", 1, 5), ("starts", 2, 4)],
)
def test_indices_that_are_not_there_are_refused(array, place, value):
    """As in a model folder that somebody has changed: nothing is read or written beyond an array."""
    starts, words, groups = torch.tensor([0, 2, 3]), torch.tensor([0, 1, 2]), torch.tensor([0, 1, 1])
    {"starts": starts, "words": words, "groups": groups}[array][place] = value
    with pytest.raises(IndexError, match="out of range"):
        compiled_dcm.count_groups(starts, words, torch.ones(3), groups, 2)


SAYS = "import torch; from varitext import compiled; print(compiled.usable(torch.zeros(1)))"


def test_without_them_everything_is_torchs(tmp_path, monkeypatch):
    """Switched off; and with a library of another version, of another machine, or of nothing at all."""
    off = {"VARITEXT_COMPILED": "0", "PATH": ""}
    assert subprocess.run([sys.executable, "-c", SAYS], env=off, capture_output=True, text=True).stdout == "False\n"
    monkeypatch.setattr(compiled, "HERE", Path(tmp_path))
    assert compiled._library.__wrapped__() is None
    library = tmp_path / f"kernels{compiled.EXTENSION_SUFFIXES[-1]}"
    library.write_bytes(b"not a library")
    assert compiled._library.__wrapped__() is None


@needs_kernels
def test_a_library_from_another_version_of_the_source_is_not_used(monkeypatch):
    monkeypatch.setattr(compiled, "VERSION", compiled.VERSION + 1)
    assert compiled._library.__wrapped__() is None
