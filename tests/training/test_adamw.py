"""Our AdamW is torch's fused one, without what torch imports around it."""

import subprocess
import sys

import pytest
import torch
from torch import nn

from varitext.training.optimizer import AdamW


def parameters():
    generator = torch.Generator().manual_seed(3)
    return [nn.Parameter(torch.randn(size, generator=generator)) for size in ((4, 3), (5,), (2, 2))]


def gradients(step):
    generator = torch.Generator().manual_seed(step)
    drawn = [torch.randn(size, generator=generator) for size in ((4, 3), (5,), (2, 2))]
    return drawn if step % 3 else [drawn[0], None, drawn[2]]  # one of them has none now and then


def put(parameters, step):
    for parameter, gradient in zip(parameters, gradients(step), strict=True):
        parameter.grad = gradient


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_it_takes_torchs_steps_to_the_bit(weight_decay):
    ours, theirs = parameters(), parameters()
    mine, reference = AdamW(ours, weight_decay), torch.optim.AdamW(theirs, 0.1, weight_decay=weight_decay, fused=True)
    for step in range(7):
        rate = 0.1 / (1 + step)
        for group in (ours, theirs):
            put(group, step)
        reference.param_groups[0]["lr"] = rate
        reference.step()
        mine.step(rate)
        assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))
    assert not torch.equal(ours[1], parameters()[1])


def test_what_it_remembers_goes_on_to_the_same_bits_and_is_a_copy():
    whole, first, second = parameters(), parameters(), parameters()
    uninterrupted, before, after = AdamW(whole, 0.1), AdamW(first, 0.1), AdamW(second, 0.1)
    for step in range(1, 5):
        put(whole, step)
        uninterrupted.step(0.1)
    for step in range(1, 3):
        put(first, step)
        before.step(0.1)
    after.restore(before.tensors())
    with torch.no_grad():
        for old, new in zip(first, second, strict=True):
            new.copy_(old)
    put(first, 9)
    before.step(0.1)  # must not move what the other remembers
    for step in range(3, 5):
        put(second, step)
        after.step(0.1)
    assert all(torch.equal(a, b) for a, b in zip(whole, second, strict=True))


def test_nothing_moves_without_gradients_and_none_are_left_after_zero_grad():
    some = parameters()
    optimizer = AdamW(some, 0.1)
    optimizer.step(0.1)
    assert optimizer.tensors() == {} and all(torch.equal(a, b) for a, b in zip(some, parameters(), strict=True))
    put(some, 1)
    optimizer.zero_grad()
    assert all(parameter.grad is None for parameter in some)


def test_what_it_remembered_of_other_parameters_is_forgotten_with_a_restore():
    some, other = parameters(), parameters()
    put(some, 3)  # the second parameter has no gradient
    put(other, 1)
    before, after = AdamW(some, 0.1), AdamW(other, 0.1)
    before.step(0.1)
    after.step(0.1)
    assert {name.split(".")[0] for name in after.tensors()} == {"0", "1", "2"}
    after.restore(before.tensors())
    assert after.tensors().keys() == before.tensors().keys()
    assert {name.split(".")[0] for name in after.tensors()} == {"0", "2"}


def test_steps_are_counted_as_torch_counts_them_whatever_the_default_type():
    """The count is a 32-bit number in a checkpoint; a process may have another default."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        some = parameters()
        put(some, 1)
        optimizer = AdamW(some)
        optimizer.step(0.1)
    finally:
        torch.set_default_dtype(before)
    found = optimizer.tensors()
    assert found["0.step"].dtype == torch.float32 and found["0.step"].item() == 1
    assert found["0.exp_avg"].dtype == torch.float64


def test_a_fit_imports_no_compiler():
    code = (
        "import sys, numpy\n"
        "from varitext import DocumentModel\n"
        "counts = numpy.random.default_rng(0).poisson(1.0, (60, 20))\n"
        "DocumentModel(latent_dim=2, epochs=1, threads=1).fit(counts)\n"
        "print('torch._dynamo' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.split() == ["False"]
