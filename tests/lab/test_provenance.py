"""Where a value comes from, and what has changed since."""

import json
import subprocess
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from command_line import varitext

from lab.experiments import experiment_named
from lab.outdated import ROOMS, Ages, _reason, ages, is_old, rests_on, summary
from varitext.reproduce.engine import Plan, Run, moved, reproduce
from varitext.reproduce.provenance import _code_differs, changed_since, code_fingerprint, commit, provenance


def git(folder, *arguments):
    named = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    done = subprocess.run(["git", *named, "-C", folder, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path):
    git(tmp_path, "init", "-q")
    (tmp_path / "latent").mkdir()
    (tmp_path / "latent" / "bound.py").write_text("1\n")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "first")
    return tmp_path


def test_a_commit_is_named_and_marked_when_files_differ(repository, tmp_path_factory):
    first = git(repository, "rev-parse", "HEAD")
    assert commit(repository) == first and changed_since(first, ["latent"], repository) == []
    (repository / "latent" / "bound.py").write_text("2\n")
    assert commit(repository) == f"{first}+"
    assert changed_since(f"{first}+", ["latent"], repository) == ["latent/bound.py"]
    assert (
        changed_since(first, ["models"], repository) == [] and changed_since("0" * 40, ["latent"], repository) is None
    )
    assert commit(tmp_path_factory.mktemp("no repository")) is None


def test_a_record_says_versions_and_processor():
    found = provenance()
    assert set(found) == {"commit", "versions", "cpu"} and found["cpu"]
    assert {"varitext", "torch", "numpy", "scipy", "python"} == set(found["versions"])


def test_results_without_a_commit_or_of_another_one_are_listed(tmp_path, monkeypatch):
    _reason.cache_clear()
    changed = {"old": ["latent/bound.py"], "new": [], "gone": None}
    monkeypatch.setattr("lab.outdated.changed_since", lambda commit, paths: changed[commit])
    for name in (*changed, "none"):
        (tmp_path / f"{name}.json").write_text(json.dumps({"commit": name} if name in changed else {"result": 1}))
    assert [one.path.stem for one in ages(tmp_path) if one.reason] == ["gone", "none", "old"]
    _reason.cache_clear()
    outcome = varitext("reproduce", "none", "--outdated", "--out", tmp_path)
    assert outcome.code == 0 and "none.json: does not say" in outcome.out and "old.json" not in outcome.out
    assert "3 of 4 results" in outcome.err
    _reason.cache_clear()


def test_a_fresh_seed_vouches_for_the_others_of_its_row(tmp_path, monkeypatch):
    _reason.cache_clear()
    monkeypatch.setattr("lab.outdated.changed_since", lambda commit, paths: ["a"] * (commit == "old"))
    for model, seed, commit_ in (("lda", 0, "new"), ("lda", 1, "old"), ("rsm", 0, "old"), ("rsm", 1, "old")):
        record = {"experiment": "table1a", "settings": {"model": model, "seed": seed}, "commit": commit_}
        (tmp_path / f"{model}{seed}.json").write_text(json.dumps(record))
    assert summary(ages(tmp_path)) == {"table1a": Ages(of_today=1, vouched_for=1, older=2)}
    _reason.cache_clear()


@pytest.mark.parametrize(
    ("record", "old"),
    [
        ({"a": {"commit": "new"}, "b": {"commit": "new"}}, False),
        ({"a": {"commit": "new"}, "b": {"commit": "old"}}, True),
        ({"a": {"commit": "new"}, "b": {"seconds": 1}}, True),
        ({"a": {"inner": {"commit": "new", "outcomes": {"fine": 3}}}}, False),
        ({}, True),
    ],
)
def test_a_file_of_many_parts_is_as_old_as_the_oldest(record, old, tmp_path, monkeypatch):
    _reason.cache_clear()
    monkeypatch.setattr("lab.outdated.changed_since", lambda commit, paths: ["a"] * (commit == "old"))
    (tmp_path / "parts.json").write_text(json.dumps(record))
    assert [bool(one.reason) for one in ages(tmp_path)] == [old]
    _reason.cache_clear()


def test_every_script_that_writes_a_result_says_where_it_comes_from():
    folder = Path(__file__).resolve().parents[2] / "benchmarks"
    scripts = {path.stem: path.read_text() for path in (*folder.glob("*.py"), folder / "fault_kinds" / "tally.py")}
    writers = {name for name, text in scripts.items() if "json" in text and "__main__" in text} - {"faults"} | {"tally"}
    assert len(writers) > 10  # `faults` has its cases written by `tally`
    assert [name for name in sorted(writers) if "provenance()" not in scripts[name]] == []


def test_words_that_are_only_read_make_no_result_old(repository):
    path = repository / "latent" / "bound.py"
    path.write_text("def f(x):\n    return x\n")
    git(repository, "commit", "-qam", "second")
    second = git(repository, "rev-parse", "HEAD")
    path.write_text('"""Why."""\n\n\ndef f(x: int) -> int:\n    """Itself."""\n    return x  # as it is\n')
    assert changed_since(second, ["latent"], repository) == []
    git(repository, "commit", "-qam", "third")
    path.write_text("def f(x):\n    return -x\n")
    third = git(repository, "rev-parse", "HEAD")
    assert changed_since(third, ["latent"], repository) == ["latent/bound.py"]


def test_types_of_variables_make_no_result_old_but_fields_do(repository):
    path = repository / "latent" / "bound.py"
    path.write_text("class A:\n    n = 1\n    def f(self, x):\n        if x:\n            y = x\n        return y\n")
    git(repository, "commit", "-qam", "without types")
    first = git(repository, "rev-parse", "HEAD")
    source = "class A:\n    n{} = 1\n    def f(self, x):\n        if x:\n            y: int = {}\n        return y\n"
    path.write_text(source.format("", "x"))
    assert changed_since(first, ["latent"], repository) == []
    for field, value in ((": int", "x"), ("", "-x")):
        git(repository, "commit", "-qam", "another", "--allow-empty")
        path.write_text(source.format(field, value))
        _code_differs.cache_clear()
        assert changed_since(first, ["latent"], repository) == ["latent/bound.py"]


def test_nor_do_comments_in_c(repository):
    path = repository / "latent" / "kernels.c"
    path.write_text("int f(int x) { return x; }\n")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "in C")
    first = git(repository, "rev-parse", "HEAD")
    path.write_text("/* Itself,\n * as it is */\nint f(int x) {\n    return x;  /* so */\n}\n")
    assert changed_since(first, ["latent"], repository) == []
    git(repository, "commit", "-qam", "with comments")
    path.write_text("int f(int x) { return -x; }\n")
    second = git(repository, "rev-parse", "HEAD")
    assert changed_since(second, ["latent"], repository) == ["latent/kernels.c"]


def test_what_moved_is_said_figure_by_figure():
    before = {"map": 0.7, "parts": {"mrr": 0.8}, "n": 3, "average_precision": [1.0]}
    assert moved(before, {"map": 0.71, "parts": {"mrr": 0.8}, "n": 3}) == "map 0.7 -> 0.71; parts mrr 0.8 -> 0.8"
    assert moved(before, before) == "nothing moved" and moved({"n": 3}, {"n": 4}) == "no figure in common with before"


def test_a_result_rests_on_its_experiment_and_its_model_only():
    lda, nvdm = (rests_on({"experiment": "table1a", "settings": {"model": model}}) for model in ("lda", "nvdm"))
    assert {"experiments/table1a.py", "models/documents/nvdm.py", "latent/bound.py"} <= set(nvdm)
    assert "models/documents/nvdm.py" not in lda and "models/documents/lda.py" in lda
    assert not [path for path in (*lda, *nvdm) if path.startswith(("answers/", "models/answers/", "cli/"))]
    named = set(rests_on({"experiment": "topics", "settings": {"kind": "regions"}}))
    assert {f"models/documents/{model}.py" for model in ("lda", "nvdm", "nvdm_dcm")} <= named
    assert "documents/mixture.py" in named and "models/documents/rsm.py" not in named  # which topics does not name
    assert "models/answers/nasm.py" in rests_on({"experiment": "complexity", "settings": {}})
    assert "models/answers/nasm.py" in rests_on({"experiment": "table4", "settings": {"model": "nasm"}})
    assert rests_on({}) == ROOMS


def test_other_results_rest_on_what_their_script_or_command_imports():
    assert "models/documents/rsm.py" in rests_on({}, "topics_cost")  # which names no model: it may be any
    counting, peers = rests_on({}, "counting"), rests_on({"task": {"system": "gensim"}}, "benchmark")
    assert "text/counting.py" in counting and not [path for path in counting if path.startswith("models/")]
    assert {"benchmarking/systems/gensim_lda.py", "models/documents/lda.py", "latent/bound.py"} <= set(peers)
    assert not [path for path in peers if path.startswith(("answers/", "benchmarking/growth"))]
    growth = rests_on({"curve": "words"}, "benchmark")
    assert "benchmarking/growth_point.py" in growth and "benchmarking/systems/gensim_lda.py" not in growth
    assert rests_on({}, "mutations") == ROOMS == rests_on({}, "no such script")  # these run all of it


def test_every_result_of_a_script_has_its_name():
    root = Path(__file__).resolve().parents[2]
    scripts = {path.stem for path in (root / "benchmarks").glob("*.py")}
    assert {path.stem for path in (root / "results").glob("*.json")} <= scripts


def test_a_fingerprint_tells_code_from_other_code(repository):
    first = code_fingerprint(repository)
    assert first == code_fingerprint.__wrapped__(repository) and len(first) == 12
    (repository / "latent" / "kernels.c").write_text("int x;\n")
    with_c = code_fingerprint.__wrapped__(repository)
    (repository / "latent" / "bound.py").write_text("2\n")
    assert len({first, with_c, code_fingerprint.__wrapped__(repository)}) == 3
    (repository / "latent" / "notes.txt").write_text("not code\n")
    (repository / "latent" / "bound.py").write_text("1\n")
    assert code_fingerprint.__wrapped__(repository) == with_c


def test_only_what_is_old_is_measured_once_more(tmp_path, monkeypatch):
    _reason.cache_clear()
    monkeypatch.setattr("lab.outdated.changed_since", lambda commit, paths: ["a"] * (commit == "old"))
    (tmp_path / "table3").mkdir()
    counts = {"questions": 1, "pairs": 2, "judged_correct": 0.5}
    for part, measured_at in (("train", "old"), ("dev", "new"), ("test", "old")):
        record = {"experiment": "table3", "settings": {"corpus": "wikiqa", "part": part}, "commit": measured_at}
        (tmp_path / "table3" / f"wikiqa-{part}.json").write_text(json.dumps(record | {"result": counts}))
    measured = []
    experiment = replace(
        experiment_named("table3"),
        runs=lambda plan: [
            Run({"corpus": "wikiqa", "part": part}, partial(_counted, part, measured, counts))
            for part in ("train", "dev", "test")
        ],
        table=lambda records: str(len(records)),
    )
    assert reproduce(experiment, Plan(again=is_old), tmp_path, lambda line: None) == "3"
    assert measured == ["train", "test"]
    _reason.cache_clear()


def _counted(part, measured, counts):
    measured.append(part)
    return counts
