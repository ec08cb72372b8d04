"""Fault injection: a few cases of every kind, and that a fault is noticed."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from varitext.errors import InputError

pytest.importorskip("fastapi", reason="the service is an extra")
from lab.faults import corpora, disk, folders, inputs, kills, races, strangers
from lab.faults.damage import WAYS, damage
from lab.faults.tally import Fault, Tally


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("faults")


@pytest.fixture(scope="module")
def fit(place):
    return kills.uninterrupted(place, corpora.write_documents(place / "documents.jsonl"), corpora.DOCUMENT_OPTIONS)


def outcomes(tally: Tally) -> dict[str, dict[str, int]]:
    assert not [fault for part in tally.parts.values() for fault in part["faults"]]
    return {name: part["outcomes"] for name, part in tally.parts.items()}


def test_a_tally_goes_on_where_it_stopped_and_keeps_faults(tmp_path):
    def case(number: int) -> str:
        tried.append(number)
        if number == 3:
            raise Fault("broken")
        return "whole"

    tried: list[int] = []
    for times in (2, 5):
        Tally("kind", tmp_path / "faults.json").run("part", times, case)
    Tally("another", tmp_path / "faults.json").run("part", 1, case)
    assert tried == [0, 1, 2, 3, 4, 0]
    record = json.loads((tmp_path / "faults.json").read_text())
    assert record["kind"]["part"]["outcomes"] == {"whole": 4, "fault": 1}
    assert record["kind"]["part"]["faults"] == ["case 3: broken"] and set(record) == {"kind", "another"}


def test_a_fit_survives_kills(fit, place):
    found = {kills.killed_at_operation(fit, place, np.array([2, 30, 55]), number) for number in range(3)}
    assert len(found) > 1 and kills.ENDED not in found
    assert kills.killed_at_random(fit, place, 0) != kills.ENDED


def test_other_bytes_after_a_kill_are_a_fault(fit, place):
    other = fit._replace(reference=fit.reference | {"files": {}})
    with pytest.raises(Fault, match="other bytes"):
        kills.killed_at_operation(other, place, np.array([30]), 0)


def test_damaged_folders_are_refused_or_equal(tmp_path):
    tally = Tally("folders", None)
    folders.measure(tally, 12, tmp_path)
    assert all("refused in one line" in part for part in outcomes(tally).values()) and len(tally.parts) == 4


def test_strangers_folders_are_refused_or_used_within_limits(tmp_path):
    tally = Tally("strangers", None)
    strangers.measure(tally, 16, tmp_path)
    found = outcomes(tally)
    assert found.keys() == {"documents", "rankers"} and all("refused in one line" in part for part in found.values())


def test_a_folder_beyond_the_limits_is_a_fault(tmp_path, monkeypatch):
    fitted = folders.fitted_documents(0)
    fitted.save(tmp_path / "model")
    (tmp_path / "texts.txt").write_text("rocket" + " " * (40 << 20))  # more than malloc keeps for later
    monkeypatch.setattr(strangers, "changed", lambda *_: "nothing")
    commands = (("evaluate", "{model}", "{folder}/texts.txt", "--threads", "1"),)
    assert strangers.used([tmp_path / "model"], commands, tmp_path, 0) == "used"
    monkeypatch.setattr(strangers, "MAX_MEMORY", -(1 << 20))
    with pytest.raises(Fault, match="evaluate, nothing"):
        strangers.used([tmp_path / "model"], commands, tmp_path, 0)


@pytest.mark.parametrize("way", WAYS)
def test_every_way_does_damage(way, tmp_path):
    for name in ("mine", "other"):
        (tmp_path / name).mkdir()
        for file in ("a.json", "b.json"):
            (tmp_path / name / file).write_text(json.dumps({"value": f"{name} {file}", "list": [1, 2]}))
    before = {path.name: path.read_text() for path in (tmp_path / "mine").iterdir()}
    for number in range(8):  # a swap with itself, or a value put where it was, does none
        way(tmp_path / "mine" / "a.json", tmp_path / "other", np.random.default_rng(number))
        after = {path.name: path.read_bytes().decode("latin-1") for path in (tmp_path / "mine").iterdir()}
        if after != before:
            return
    pytest.fail("nothing changed")


def test_what_is_taken_with_other_results_is_a_fault(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file.txt").write_text("right")
    read = lambda folder: [path.read_bytes() for path in folder.iterdir()]  # noqa: E731
    subject = folders.Subject(tmp_path / "folder", tmp_path, read)
    with pytest.raises(Fault, match="different results"):
        folders.damaged(subject, [b"right"], 0)
    broken = subject._replace(ask=lambda folder: 1 / 0)
    with pytest.raises(Fault, match="ZeroDivisionError"):
        folders.damaged(broken, [b"right"], 0)


def test_hostile_input_is_answered_or_refused(tmp_path):
    tally = Tally("inputs", None)
    inputs.measure(tally, 400, tmp_path)
    assert all({"answered", "refused"} <= set(part) for part in outcomes(tally).values()) and len(tally.parts) == 3


def test_bad_disks_are_told(place, fit):
    command = disk.Command("fit", fit.arguments, "--out", "model")
    assert disk.limited(command, place, [2000], 0) == "refused in one line, nothing left"
    assert disk.limited(command, place, [10_000_000], 0) == "written whole"


def test_what_is_left_on_a_bad_disk_is_a_fault(tmp_path):
    (tmp_path / "half").touch()
    with pytest.raises(Fault, match="left behind"):
        disk.left(disk.Outcome(2, "", "varitext: no space\n", 0.0), tmp_path)
    with pytest.raises(Fault, match="Traceback"):
        disk.left(disk.Outcome(1, "", "Traceback (most recent call last)", 0.0), tmp_path)


def test_one_of_two_fits_is_refused_and_clocks_do_not_matter(place, fit):
    assert races.raced(fit._replace(seconds=0.05), place, 0).startswith("one succeeds")
    assert {races.fitted_with_jumps(fit, place, seconds, 1) for seconds in (-3600, 86_400)} == {"identical bytes"}


def test_damage_is_the_same_for_the_same_number(tmp_path):
    (tmp_path / "file.json").write_text('{"a": 1}')
    said = set()
    for _ in range(2):
        said.add(damage(tmp_path, tmp_path, np.random.default_rng(5)))
        (tmp_path / "file.json").write_text('{"a": 1}')
    assert len(said) == 1


def test_an_input_error_of_more_than_a_line_is_a_fault(tmp_path):
    def ask(folder: Path) -> None:
        raise InputError("one\ntwo")

    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").touch()
    with pytest.raises(Fault, match="more than a line"):
        partial(folders.damaged, folders.Subject(tmp_path / "folder", tmp_path, ask))([], 0)
