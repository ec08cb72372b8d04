"""Checkpoint files: read back to the bit, also those of before, and whatever was changed in them is told."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from varitext.errors import InputError
from varitext.training.checkpoint import Snapshot, _sha256, load_checkpoint, save_checkpoint, with_prefix

TENSORS = {
    "model.weight": torch.arange(6.0).reshape(2, 3),
    "model.steps": torch.tensor(3),
    "random": torch.arange(8, dtype=torch.uint8),
}
STATE, SETTINGS = {"step": 3, "history": [{"step": 0}]}, {"epochs": 2, "fingerprint": "data", "time_limit": None}


def test_what_is_saved_is_read_to_the_bit(tmp_path):
    given = TENSORS | {"model.turned": TENSORS["model.weight"].T}  # not contiguous
    save_checkpoint(tmp_path / "file", Snapshot(given, STATE, SETTINGS))
    found = load_checkpoint(tmp_path / "file")
    assert (found.state, found.settings) == (STATE, SETTINGS) and found.tensors.keys() == given.keys()
    for name, tensor in given.items():
        assert torch.equal(found.tensors[name], tensor) and found.tensors[name].dtype == tensor.dtype


def metadata(**changes):
    return {"state": json.dumps(STATE), "settings": json.dumps(SETTINGS)} | changes


def test_a_checkpoint_of_before_there_were_sums_is_read(tmp_path):
    save_file(TENSORS, tmp_path / "file", metadata())
    found = load_checkpoint(tmp_path / "file")
    assert found.state == STATE and torch.equal(found.tensors["random"], TENSORS["random"])


@pytest.mark.parametrize("given", [None, {"state": "{}"}, {"state": "{", "settings": "{}"}])
def test_another_file_of_tensors_is_no_checkpoint(tmp_path, given):
    save_file(TENSORS, tmp_path / "file", given)
    with pytest.raises(InputError, match="not a checkpoint that can be read"):
        load_checkpoint(tmp_path / "file")


def test_a_file_that_is_not_there_is_said(tmp_path):
    with pytest.raises(InputError, match="not a checkpoint that can be read"):
        load_checkpoint(tmp_path / "nowhere")


WEIGHT = TENSORS["model.weight"]


@pytest.mark.parametrize(
    "change",
    [
        {"model.weight": WEIGHT + torch.tensor([[0, 0, 0], [0, 0, 1e-6]])},
        {"model.weight": WEIGHT.reshape(3, 2)},  # the same bytes in another shape
        {"model.weight": WEIGHT.view(torch.int32)},  # and as another type
        {"model.steps": torch.tensor(4)},
        {"another": torch.zeros(0)},  # no bytes at all
    ],
)
def test_a_changed_tensor_is_told(tmp_path, change):
    save_checkpoint(tmp_path / "file", Snapshot(TENSORS, STATE, SETTINGS))
    summed = _sha256(TENSORS, metadata())
    save_file(load_file(tmp_path / "file") | change, tmp_path / "file", metadata(sha256=summed))
    with pytest.raises(InputError, match="damaged or was changed"):
        load_checkpoint(tmp_path / "file")
    save_file(TENSORS, tmp_path / "file", metadata(sha256=summed))  # what was told is the change
    assert load_checkpoint(tmp_path / "file").state == STATE


def test_a_changed_state_is_told(tmp_path):
    changed = metadata(sha256=_sha256(TENSORS, metadata())) | {"state": json.dumps(STATE | {"step": 4})}
    save_file(TENSORS, tmp_path / "file", changed)
    with pytest.raises(InputError, match="damaged or was changed"):
        load_checkpoint(tmp_path / "file")


def test_the_order_in_which_a_file_gives_its_parts_does_not_count():
    turned = dict(reversed(metadata().items()))
    assert list(turned) != list(metadata())
    assert _sha256(TENSORS, metadata()) == _sha256(dict(reversed(TENSORS.items())), turned)


def test_names_lose_their_prefix_and_others_are_left():
    found = with_prefix({"model.a": WEIGHT, "best.a": WEIGHT, "model.model.b": WEIGHT}, "model.")
    assert list(found) == ["a", "model.b"]


def test_only_the_clock_may_differ_between_the_parts_of_a_run():
    snapshot = Snapshot(TENSORS, STATE, SETTINGS)
    snapshot.refuse_another_run({"epochs": 2, "time_limit": 60.0}, "data")
    with pytest.raises(InputError, match=r"other settings \(epochs 2, now 3\)"):
        snapshot.refuse_another_run({"epochs": 3, "time_limit": None}, "data")
    with pytest.raises(InputError, match="other data"):
        snapshot.refuse_another_run({"epochs": 2}, "others")
