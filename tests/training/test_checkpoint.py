"""Checkpoint files: read back bit-for-bit; any change is detected."""

import json
import warnings

import pytest
import torch
from safetensors.torch import load_file, save_file

from varitext import DocumentModel
from varitext.errors import InputError
from varitext.training.trainer import Snapshot, _sha256, circumstances, load_checkpoint, save_checkpoint

WEIGHT = torch.arange(6.0).reshape(2, 3)
TENSORS = {"model.weight": WEIGHT, "model.steps": torch.tensor(3), "random": torch.arange(8, dtype=torch.uint8)}
STATE, SETTINGS = {"step": 3, "history": [{"step": 0}]}, {"epochs": 2, "fingerprint": "data", "time_limit": None}


def metadata(**changes):
    return {"state": json.dumps(STATE), "settings": json.dumps(SETTINGS)} | changes


def test_a_checkpoint_is_read_back_bit_for_bit(tmp_path):
    given = TENSORS | {"model.turned": WEIGHT.T}  # not contiguous
    save_checkpoint(tmp_path / "file", Snapshot(given, STATE, SETTINGS))
    found = load_checkpoint(tmp_path / "file")
    assert (found.state, found.settings) == (STATE, SETTINGS) and found.tensors.keys() == given.keys()
    for name, tensor in given.items():
        assert torch.equal(found.tensors[name], tensor) and found.tensors[name].dtype == tensor.dtype


@pytest.mark.parametrize("given", [None, {"state": "{}"}, {"state": "{", "settings": "{}"}, metadata()])
def test_another_file_of_tensors_is_refused(tmp_path, given):
    save_file(TENSORS, tmp_path / "file", given)
    for name in ("file", "nowhere"):
        with pytest.raises(InputError, match="not a checkpoint that can be read"):
            load_checkpoint(tmp_path / name)


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
def test_a_changed_tensor_is_detected(tmp_path, change):
    save_checkpoint(tmp_path / "file", Snapshot(TENSORS, STATE, SETTINGS))
    summed = _sha256(TENSORS, metadata())
    save_file(load_file(tmp_path / "file") | change, tmp_path / "file", metadata(sha256=summed))
    with pytest.raises(InputError, match="damaged or was changed"):
        load_checkpoint(tmp_path / "file")
    save_file(TENSORS, tmp_path / "file", metadata(sha256=summed))
    assert load_checkpoint(tmp_path / "file").state == STATE


def test_a_changed_state_is_detected_and_order_does_not_matter(tmp_path):
    summed = _sha256(TENSORS, metadata())
    assert summed == _sha256(dict(reversed(TENSORS.items())), dict(reversed(metadata().items())))
    save_file(TENSORS, tmp_path / "file", metadata(sha256=summed, state=json.dumps(STATE | {"step": 4})))
    with pytest.raises(InputError, match="damaged or was changed"):
        load_checkpoint(tmp_path / "file")


def test_only_the_time_limit_may_differ_on_resume():
    snapshot = Snapshot(TENSORS, STATE, SETTINGS)
    snapshot.refuse_another_run({"epochs": 2, "time_limit": 60.0}, "data")
    with pytest.raises(InputError, match=r"other settings \(epochs 2, now 3\)"):
        snapshot.refuse_another_run({"epochs": 3, "time_limit": None}, "data")
    with pytest.raises(InputError, match="other data"):
        snapshot.refuse_another_run({"epochs": 2}, "others")


def test_resuming_under_other_circumstances_says_so_and_another_major_version_is_refused(tmp_path):
    def written_under(**changes: object) -> Snapshot:
        save_checkpoint(tmp_path / "file", Snapshot(TENSORS, STATE, SETTINGS, circumstances() | changes))
        return load_checkpoint(tmp_path / "file")

    assert written_under().differing_circumstances() == ""
    threads = torch.get_num_threads()
    assert f"(threads 77, now {threads})" in written_under(threads=77).differing_circumstances()
    assert "torch 1.0, now" in written_under(torch="1.0").differing_circumstances()
    for other in ({"varitext": "7.2.0"}, {"checkpoint": 2}):
        with pytest.raises(InputError, match="resume with that version, or start again without --resume"):
            written_under(**other).differing_circumstances()
    assert "earlier version" in Snapshot(TENSORS, STATE, SETTINGS).differing_circumstances()


def test_a_resumed_fit_warns_of_another_number_of_threads(tmp_path):
    """And of nothing under the same circumstances."""
    texts, checkpoint = ["moon rocket orbit", "goal match team"] * 20, tmp_path / "checkpoint.safetensors"
    model = DocumentModel("nvdm", 2, epochs=1, threads=1)
    model.fit(texts, checkpoint=checkpoint)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(texts, checkpoint=checkpoint, resume=True)
    snapshot = load_checkpoint(checkpoint)
    save_checkpoint(checkpoint, snapshot._replace(written_under=snapshot.written_under | {"threads": 8}))
    with pytest.warns(UserWarning, match=r"threads 8, now 1\); the result may differ"):
        model.fit(texts, checkpoint=checkpoint, resume=True)
