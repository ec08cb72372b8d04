"""Where a result comes from, and what has changed since."""

import json
import subprocess

import pytest

from lab import EXPERIMENTS, MEASUREMENTS, TOOLS, outdated
from lab.import_graph import ROOT, module_files
from lab.outdated import _reason, changed_since, depends_on, is_outdated, outdated_runs, results_in
from varitext.reproduce.provenance import code_fingerprint, commit, provenance


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


def test_every_source_of_the_compiled_library_belongs_to_a_module():
    named = {name for names in outdated.SOURCES.values() for name in names}
    assert sorted(named) == sorted(path.name for path in outdated.COMPILED.glob("*.[ch]"))
    assert "src/varitext/compiled/training.c" in depends_on("table1a", "nvdm_dcm")
    assert "src/varitext/compiled/training.c" not in depends_on("table4", "nasm")


def test_a_record_says_versions_and_processor():
    found = provenance()
    assert set(found) == {"commit", "versions", "cpu"} and found["cpu"]
    assert {"varitext", "torch", "numpy", "scipy", "python"} == set(found["versions"])


@pytest.fixture
def changes(monkeypatch):
    """What has changed since three commits; all others are unknown."""
    known = {"old": ["latent/bound.py"], "new": []}
    monkeypatch.setattr(outdated, "changed_since", lambda commit, paths: known.get(commit))
    _reason.cache_clear()
    yield
    _reason.cache_clear()


def test_results_of_changed_or_unknown_code_are_listed(tmp_path, changes, capsys):
    lines = [{"settings": {"corpus": "wikiqa", "part": name}, "commit": name} for name in ("old", "new", "gone")] + [
        {"settings": {"corpus": "wikiqa", "part": "none"}}
    ]
    (tmp_path / "table3.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert [one.run for one in results_in(tmp_path) if one.reason] == ["wikiqa-old", "wikiqa-gone", "wikiqa-none"]
    outdated.main(["--out", str(tmp_path)])
    assert "table3                      1          0         3\n3 of 4 results are outdated" in capsys.readouterr().out
    outdated.main(["table3", "--out", str(tmp_path)])
    listed = capsys.readouterr().out
    assert "table3, wikiqa-none: its commit is not recorded" in listed and "wikiqa-new" not in listed


def test_a_repeated_seed_confirms_the_others_that_were_measured_since(tmp_path, changes, monkeypatch, capsys):
    monkeypatch.setattr(outdated, "_is_ancestor", lambda revision, later: (revision, later) == ("earlier", "old"))
    settings = {"corpus": "wikiqa", "model": "lstm"}
    lines = [
        {"settings": settings | {"seed": 0}, "commit": "new", "confirms": "earlier"},
        {"settings": settings | {"seed": 1}, "commit": "old"},  # after "earlier"
        {"settings": settings | {"seed": 2}, "commit": "gone"},
        {"settings": settings | {"seed": 3}},
        {"settings": settings | {"model": "nasm", "seed": 1}, "commit": "old"},
    ]
    (tmp_path / "table4.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = {one.run: one for one in results_in(tmp_path)}
    assert [run for run, one in found.items() if one.confirmed] == ["wikiqa-lstm-1"]
    old = ["wikiqa-lstm-2", "wikiqa-lstm-3", "wikiqa-nasm-1"]
    assert sorted(outdated_runs("table4", tmp_path)) == sorted(run for run, one in found.items() if one.reason) == old
    outdated.main(["--out", str(tmp_path)])
    assert "table4                      1          1         3\n3 of 5 results" in capsys.readouterr().out


def test_a_confirmed_run_confirms_earlier_ones(tmp_path, changes, monkeypatch):
    order = ["gone", "old", "earlier", "new"]
    monkeypatch.setattr(outdated, "_is_ancestor", lambda one, later: order.index(one) <= order.index(later))
    settings = {"corpus": "wikiqa", "model": "lstm"}
    lines = [
        {"settings": settings | {"seed": 0}, "commit": "gone"},
        {"settings": settings | {"seed": 1}, "commit": "old", "confirms": "gone"},
        {"settings": settings | {"seed": 2}, "commit": "new", "confirms": "old"},
    ]
    (tmp_path / "table4.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert [one.confirmed for one in results_in(tmp_path)] == [True, True, False]
    (tmp_path / "table4.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines[:2]))
    assert not any(one.confirmed for one in results_in(tmp_path))  # no run of the current code


def test_one_commit_precedes_another(repository, monkeypatch):
    monkeypatch.setattr(outdated, "ROOT", repository)
    first = git(repository, "rev-parse", "HEAD")
    git(repository, "commit", "-q", "--allow-empty", "-m", "second")
    second = git(repository, "rev-parse", "HEAD")
    assert outdated._is_ancestor(first, f"{second}+") and outdated._is_ancestor(first, first)
    assert not outdated._is_ancestor(second, first) and not outdated._is_ancestor("0" * 40, first)


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
def test_a_file_of_many_parts_is_as_old_as_the_oldest(record, old, changes):
    assert is_outdated("faults", record) == old


def test_words_that_are_only_read_make_no_result_old(repository):
    path = repository / "latent" / "bound.py"
    path.write_text("def f(x):\n    return x\n")
    git(repository, "commit", "-qam", "second")
    second = git(repository, "rev-parse", "HEAD")
    path.write_text('"""Why."""\nimport math\n\n\ndef f(x):\n    """Itself."""\n    return x  # as it is\n')
    assert changed_since(second, ["latent"], repository) == []
    git(repository, "commit", "-qam", "third")
    path.write_text("def f(x):\n    return -x\n")
    third = git(repository, "rev-parse", "HEAD")
    assert changed_since(third, ["latent"], repository) == ["latent/bound.py"]


def test_the_form_of_an_import_makes_no_result_old_but_another_source_does():
    eager = "from scipy import sparse\n\ndef f(x: sparse.csr_matrix):\n    return sparse.csr_matrix(x).T\n"
    typed = "if TYPE_CHECKING:\n    from scipy.sparse import csr_matrix\n\nCounts = Union['csr_matrix', int]\n"
    lazy = 'def f(x: "csr_matrix") -> object:\n    from scipy.sparse import csr_matrix\n    return csr_matrix(x).T\n'
    assert outdated._statements(eager) == outdated._statements(f"from typing import Union\n{typed}{lazy}")
    assert outdated._statements(lazy) != outdated._statements(lazy.replace("scipy.sparse", "other"))
    assert outdated._statements(lazy) != outdated._statements(lazy.replace(".T", ".H"))


def test_an_unused_definition_makes_no_result_old(repository):
    path, used = repository / "latent" / "bound.py", "SIZE = 3\n\ndef f(x):\n    return x\n"
    path.write_text(used)
    git(repository, "commit", "-qam", "second")
    second, new = git(repository, "rev-parse", "HEAD"), "\nOTHER = 4\n\ndef g(x):\n    return OTHER\n"
    for written, changed in (
        (used + new, False),
        ("def f(x):\n    return x\n", False),
        (used.replace("return x", "return g(x)") + new, True),
        (used + "\ndef f(x):\n    return -x\n", True),
        (used + "\nf(3)\n", True),
        (used + "\nSIZE = 4\n", True),
    ):
        path.write_text(written)
        outdated._change_of.cache_clear()
        assert bool(changed_since(second, ["latent"], repository)) == changed, written


@pytest.mark.parametrize(("moved", "changed"), [("return x", []), ("return -x", ["latent/other.py"])])
def test_a_definition_may_move_if_its_code_does_not_change(repository, moved, changed):
    path = repository / "latent" / "bound.py"
    path.write_text("def f(x):\n    return x\n\ndef g(x):\n    return f(x)\n")
    git(repository, "commit", "-qam", "second")
    second = git(repository, "rev-parse", "HEAD")
    path.write_text("from varitext.latent.other import f\n\ndef g(x):\n    return f(x)\n")
    (repository / "latent" / "other.py").write_text(f"def f(x):\n    {moved}\n")
    git(repository, "add", ".")
    assert changed_since(second, ["latent"], repository) == changed


def test_a_result_depends_on_its_experiment_and_its_model_only():
    models = "src/varitext/models/documents"
    lda, nvdm = (depends_on("table1a", model) for model in ("lda", "nvdm"))
    assert {"src/varitext/reproduce/table1a.py", f"{models}/nvdm.py", "src/varitext/latent/bound.py"} <= set(nvdm)
    assert f"{models}/nvdm.py" not in lda and f"{models}/lda.py" in lda
    assert not [path for path in (*lda, *nvdm) if path.startswith(("src/varitext/answers", "src/varitext/cli"))]
    named = set(depends_on("topics"))
    assert {f"{models}/{model}.py" for model in ("lda", "nvdm", "nvdm_dcm")} <= named
    assert f"{models}/rsm.py" not in named and "lab/experiments/topic_systems.py" in named
    assert "src/varitext/models/answers/nasm.py" in depends_on("table4", "nasm")
    counting = depends_on("counting")
    assert "lab/speed/counting.py" in counting and not [path for path in counting if "/models/" in path]


def test_every_name_has_its_module_and_every_result_its_name():
    known = EXPERIMENTS | MEASUREMENTS | TOOLS
    assert set(known.values()) <= set(module_files())
    results = [path for ending in ("json", "jsonl", "svg") for path in (ROOT / "results").glob(f"*.{ending}")]
    assert {path.stem for path in results} <= set(known)


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
