"""The command line as people type it: what each command prints and leaves on disk, and one line for bad input."""

import contextlib
import csv
import gzip
import importlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import scipy.sparse
from command_line import (
    MODEL_FILES,
    TOPIC_FILES,
    Outcome,
    contents,
    files_no_larger_than,
    forked,
    process,
    refused,
    varitext,
)
from safetensors.numpy import load_file

from lab.faults.strangers import seal
from varitext.cli import blocks
from varitext.cli.fit_run import lock_folder
from varitext.documents.model import DocumentModel
from varitext.models.documents.nvdm import NVDM
from varitext.text.stop_words import stop_words_of

LEARNS = ("--epochs", 10, "--learning-rate", 0.02)
SMALL = ("--latent-dim", 4, "--threads", 1, "--batch-size", 32, "--topics", 4)
EVALUATE_KEYS = {
    *("per_document_perplexity", "corpus_perplexity", "iwae_per_document_perplexity"),
    *("unigram_per_document_perplexity", "kl_per_word", "n_documents", "n_tokens", "n_samples"),
    *("corpus", "corpus_sha256"),
}
TOPICS = [[a + b + c for a in first for b in "aeiou" for c in "nrs"] for first in ("bdf", "ghj", "klm", "ptv")]
WORDS = [word for topic in TOPICS for word in topic if word not in stop_words_of("english")]


def draw_texts(documents: int, seed: int) -> list[str]:
    """Short texts, each mostly of one topic's words."""
    generator = np.random.default_rng(seed)
    topics = [[word for word in topic if word in WORDS] for topic in TOPICS]
    return [
        " ".join([*generator.choice(topics[number % 4], 16), *generator.choice(WORDS, 4)])
        for number in range(documents)
    ]


def jsonl(texts: list[str], column: str = "text") -> bytes:
    rows = [json.dumps({column: text, "label": f"topic{number % 4}"}) + "\n" for number, text in enumerate(texts)]
    return "".join(rows).encode()


def write_jsonl(path: Path, texts: list[str], column: str = "text") -> Path:
    path.write_bytes(jsonl(texts, column))
    return path


def counts_of(texts: list[str]) -> scipy.sparse.csr_matrix:
    place = {word: column for column, word in enumerate(WORDS)}
    counts = np.zeros((len(texts), len(WORDS)), np.float32)
    for row, text in enumerate(texts):
        np.add.at(counts[row], [place[word] for word in text.split()], 1)
    return scipy.sparse.csr_matrix(counts)


def write_corpus(folder: Path, kind: str, texts: list[str]) -> Path:
    """The texts as a file, or a folder, of that kind."""
    path = folder / f"documents{kind}"
    if kind == ".jsonl":
        write_jsonl(path, texts)
    elif kind == ".jsonl.gz":
        path.write_bytes(gzip.compress(jsonl(texts), mtime=0))
    elif kind == ".csv":
        path.write_text("id,text\n" + "".join(f'{number},"{text}"\n' for number, text in enumerate(texts)))
    elif kind == ".parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(importlib.import_module("pyarrow").table({"text": texts}), path)
    elif kind == "folder":
        path.mkdir()
        for number, text in enumerate(texts):
            (path / f"{number:04}.txt").write_text(text)
    else:
        (folder / "vocabulary.txt").write_text("".join(f"{word}\n" for word in WORDS))
        counts = counts_of(texts)
        if kind == ".npz":
            scipy.sparse.save_npz(path, counts)
        else:
            lines = [" ".join(f"{w + 1}:{int(n)}" for w, n in zip(r.indices, r.data, strict=True)) for r in counts]
            path.write_text("".join(f"label {line}\n" for line in lines))
    return path


TEXTS, UNSEEN = draw_texts(240, seed=0), draw_texts(60, seed=1)


@pytest.fixture(scope="module")
def divided(tmp_path_factory) -> Path:
    """A corpus of one's own with a training and a test part."""
    folder = tmp_path_factory.mktemp("corpus") / "stories"
    folder.mkdir()
    write_jsonl(folder / "train.jsonl", TEXTS)
    write_jsonl(folder / "test.jsonl", UNSEEN)
    return folder


@pytest.fixture(scope="module")
def fitted(divided) -> Path:
    """A model folder; tests only read it."""
    folder = divided.parent / "model"
    assert varitext("fit", divided, "--out", folder, *LEARNS, *SMALL).code == 0
    return folder


@pytest.fixture
def own_model(fitted, tmp_path) -> Path:
    """A copy of the model folder to do harm to."""
    return Path(shutil.copytree(fitted, tmp_path / "model"))


# Help and errors in what was typed


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        (["--help"], "Commands:"),
        (["--version"], "varitext 0."),
        (["reproduce", "--help"], "Usage:"),
        (["reproduce"], "table1a"),
    ],
)
def test_help_version_and_experiments_come_without_heavy_modules(typed, shown):
    script = (
        f"import sys; sys.argv = ['varitext', *{typed}]\n"
        "from varitext.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert end.code == 0\n"
        "heavy = ('torch', 'numpy', 'scipy', 'sklearn', 'pandas', 'plotly', 'matplotlib')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert shown in printed and printed.endswith("[]\n")


@pytest.mark.parametrize(
    "command", ["fit", "evaluate", "transform", "topics", "similar", "report", "figures", "rank", "compare", "demo"]
)
def test_every_command_teaches_itself_with_an_example(command):
    outcome = varitext(command, "--help")
    assert (outcome.code, outcome.err) == (0, "")
    assert f"\n    varitext {command} " in outcome.out


def test_no_command_shows_the_help_and_version_the_version():
    assert varitext() == varitext("--help")
    assert "fetch" in varitext("data").out
    assert re.fullmatch(r"varitext \d.* \(compiled kernels (not )?in use.*\)\n", varitext("--version").out)


@pytest.mark.parametrize(
    "typed, said",
    [
        ("fitt", "fitt"),
        ("fit", "Missing argument"),
        ("fit stories", "Missing --out: name a folder for the model, for example --out models/my"),
        ("fit stories --out model --latent-dimension 3", "--latent-dim"),
        ("fit stories --out model --latent-dim few", "--latent-dim"),
        ("fit stories --out model --latent-dim 0", "--latent-dim"),
        ("fit stories --out model --seed -1", "--seed"),
        ("fit stories --out model --preset best", "no preset is called 'best'; there are: recommended, paper"),
        ("fit stories --out model --updates never", "'joint', 'alternating'"),
        ("fit stories --out model --model sbn --estimator best", "no estimator of sbn is called 'best'; there are: "),
        ("fit stories --out model --estimator nvil", "no estimator of nvdm_dcm is called 'nvil'; there are: reparam"),
        ("fit stories --out model --model lda --estimator nvil", "--estimator does not apply: lda has no choice of"),
        ("fit stories --out model --estimator dreg", "dreg compares samples of h: set samples to 2 or more"),
        ("fit stories --out model --model nasm --estimator nvil", "--estimator does not apply: nasm is a model of"),
        ("fit stories --out model --model lda2", "no model is called 'lda2'; there are: nvdm"),
        ("fit stories --out model --device banana", "'banana' is not a device: use cpu or cuda"),
        ("fit stories --out model --device cuda:99", "cuda:99 cannot be used here"),
        ("fit stories --out model --time-limit soon", "60s, 10m or 2h"),
        ("fit stories --out model --time-limit 0s", "60s, 10m or 2h"),
        ("fit stories --out model --time-limit=-5s", "60s, 10m or 2h"),
        ("fit stories --out model --learning-rate 0", "learning_rate must be above zero"),
        ("fit stories --out model --learning-rate nan", "learning_rate must be above zero"),
        ("fit stories --out stories", "stories exists already"),
        ("fit stories --out stories --resume", "stories exists already"),
        ("fit stories --out stories/train.jsonl", "train.jsonl exists already"),
        ("fit stories --out stories/train.jsonl/model", "train.jsonl is not a folder"),
        ("fit stories --out /proc/nowhere/model", "cannot write /proc/nowhere/model: no permission to write in /proc"),
        ("fit storie --out model", "'storie' is neither a file or folder nor a known corpus"),
        ("fit 20newsgroup --out model", "did you mean 20newsgroups?"),
        ("data fetch 20newsgroup", "did you mean 20newsgroups?"),
        ("data list --data-dir nowhere", "nowhere is not a folder"),
        ("evaluate nowhere", "nowhere is not a folder"),
        ("evaluate stories", "stories is not a model folder"),
        ("similar nowhere", "either --word or --text"),
        ("similar nowhere --word a --text b", "either --word or --text"),
        ("report nowhere --out report.pdf", ".html"),
        ("figures nowhere --format pdf", "'svg', 'png'"),
        ("figures nowhere --out stories/train.jsonl", "train.jsonl is a file: name a folder for the figures"),
        ("transform nowhere stories --out vectors.txt", ".npy, .csv, .parquet, not .txt"),
        ("transform nowhere stories --out stories", "a file without ending"),
    ],
)
def test_what_was_typed_is_refused_in_one_line(typed, said, divided, tmp_path, monkeypatch):
    shutil.copytree(divided, tmp_path / "stories")
    monkeypatch.chdir(tmp_path)
    assert said in refused(tmp_path, *typed.split())


# Corpora


def test_data_list(tmp_path):
    listed = json.loads(varitext("data", "list", "--json").out)["corpora"]
    assert {"20newsgroups-nvdm", "20newsgroups", "rcv1"} <= {corpus["name"] for corpus in listed}
    assert {corpus["where"] for corpus in listed if corpus["name"] != "minilm"} == {"not here"}  # may be installed
    shown = varitext("data", "list").out
    assert all(corpus["name"] in shown and corpus["description"] in shown for corpus in listed)


def test_data_list_says_where_a_corpus_is_and_its_checksum(data_dir):
    shown = varitext("data", "list", "--data-dir", data_dir).out
    listed = json.loads(varitext("data", "list", "--json", "--data-dir", data_dir).out)["corpora"]
    corpus = next(entry for entry in listed if entry["name"] == "20newsgroups-nvdm")
    assert corpus["where"].startswith(str(data_dir)) and corpus["where"] in shown
    assert len(corpus["sha256"]) == 64 and f"sha256 {corpus['sha256']}" in shown


@pytest.mark.parametrize("kind", [".jsonl", ".jsonl.gz", ".csv", ".parquet", "folder", ".feat", ".npz"])
def test_own_files_of_every_kind(kind, fitted, tmp_path):
    corpus = write_corpus(tmp_path, kind, UNSEEN)
    record = json.loads(varitext("evaluate", fitted, corpus, "--json").out)
    expected = json.loads(varitext("evaluate", fitted, "--json").out)
    same = ("n_documents", "n_tokens", "per_document_perplexity", "unigram_per_document_perplexity")
    assert [record[key] for key in same] == [expected[key] for key in same]
    assert (record["corpus"], record["part"]) == (str(corpus), "all")
    assert varitext("fit", corpus, "--out", tmp_path / "new", "--epochs", 1, *SMALL).code == 0
    assert set(DocumentModel.load(tmp_path / "new").fitted_.vocabulary.words) <= set(WORDS)


def counts_file(count: float) -> bytes:
    """An .npz with one bad count."""
    counts, content = counts_of(TEXTS).toarray().astype(np.float64), io.BytesIO()
    counts[3, 5] = count
    scipy.sparse.save_npz(content, scipy.sparse.csr_matrix(counts))
    return content.getvalue()


BAD_FILES = [
    ("empty.jsonl", b"", "has no documents"),
    ("one.jsonl", jsonl(TEXTS[:1]), "at least 2 documents"),
    ("word.jsonl", jsonl(["hello hello"] * 30), "or in more than 50 % of them"),
    (
        "numbers.jsonl",
        jsonl(["1 2 !", "the of"] * 30),
        "No usable words in 60 documents: all are stop words or in more",
    ),
    ("latin.csv", b"text\nna\xefve reader\n", "latin.csv, line 2: byte 7 is not UTF-8"),
    ("short.jsonl.gz", gzip.compress(jsonl(TEXTS), mtime=0)[:-100], "truncated"),
    ("bad.jsonl", jsonl(TEXTS[:2]) + b'{"text": "unfinished\n', "bad.jsonl, line 3: not valid JSON"),
    ("other.jsonl", jsonl(TEXTS, "body"), "no column 'text'. Columns: body, label."),
    ("letter.docx", b"hello", "unknown kind of file"),
    ("bad.feat", b"label 1:2 2:1\nlabel 1:-1 3:1\n", "line 2: '1:-1'"),
    ("bad.feat", b"label 1:2 2:1\nlabel 1:0.5 3:1\n", "line 2: '1:0.5'"),
    ("bad.feat", b"label 1:2 2:1\nlabel 1:nan 3:1\n", "line 2: '1:nan'"),
    ("bad.npz", counts_file(-1), "a negative count"),
    ("bad.npz", counts_file(0.5), "a fractional count"),
    ("bad.npz", counts_file(np.nan), "not finite"),
    ("bad.npz", counts_file(np.inf), "not finite"),
    ("short.npz", counts_file(1)[:-100], "truncated"),
]


@pytest.mark.parametrize("name, content, said", BAD_FILES, ids=[f"{name}: {said}" for name, _, said in BAD_FILES])
def test_bad_documents_are_refused_in_one_line(name, content, said, tmp_path):
    (tmp_path / name).write_bytes(content)
    typed = ("--out", tmp_path / "model", "--latent-dim", 2, "--threads", 1)
    assert said in refused(tmp_path, "fit", tmp_path / name, *typed)


def test_an_empty_folder_is_refused_in_one_line(tmp_path):
    (tmp_path / "nothing").mkdir()
    assert "has no .txt files" in refused(tmp_path, "fit", tmp_path / "nothing", "--out", tmp_path / "model")


def test_more_latent_dimensions_than_words_are_as_many_as_words(tmp_path):
    corpus = write_jsonl(tmp_path / "documents.jsonl", TEXTS)
    done = varitext("fit", corpus, "--out", tmp_path / "model", "--latent-dim", 1000, "--epochs", 1, "--threads", 1)
    assert f"only {len(WORDS)} words remain after the vocabulary rules; using {len(WORDS)}" in done.err


# Fit


def test_fit_writes_the_files_of_a_model_and_nothing_else(fitted):
    assert sorted(contents(fitted)) == sorted([*MODEL_FILES, *TOPIC_FILES])
    assert sorted(path.name for path in fitted.parent.iterdir()) == ["model", "stories"]
    assert {path.stat().st_mode & 0o777 for path in fitted.iterdir()} == {0o666 & ~current_umask()}


def current_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_fit_speaks_on_standard_error_and_says_how_many_documents_were_empty(tmp_path):
    corpus = write_jsonl(tmp_path / "documents.jsonl", [*TEXTS, "!!!", "1 2 3"])
    outcome = varitext("fit", corpus, "--out", tmp_path / "model", "--epochs", 2, *SMALL)
    assert (outcome.code, outcome.out) == (0, "")
    dropped, line, end = outcome.err.splitlines()
    assert dropped.startswith("note: 2 ") and "left out" in dropped
    assert line.startswith("100%  epoch 2") and "dev perplexity" in line
    assert f"{len(WORDS)} words" in end and "held-out perplexity" in end and end.endswith(f"model in {tmp_path}/model")


def test_same_seed_same_bytes_and_another_seed_others(divided, fitted, tmp_path):
    weights = [(fitted / "weights.safetensors").read_bytes()]
    for seed in (0, 1):
        out = tmp_path / str(seed)
        assert varitext("fit", divided, "--out", out, *LEARNS, "--seed", seed, *SMALL).code == 0
        weights.append((out / "weights.safetensors").read_bytes())
    assert weights[0] == weights[1] != weights[2]


def test_the_preset_of_the_paper_and_its_updates(divided, tmp_path):
    options = ("--preset", "paper", "--updates", "alternating", "--learning-rate", 0.001, "--epochs", 1)
    assert varitext("fit", divided, "--out", tmp_path / "model", *options, *SMALL).code == 0
    model = DocumentModel.load(tmp_path / "model")
    assert (model.preset, model.fitted_.training["updates"], model.fitted_.training["learning_rate"]) == (
        "paper",
        "alternating",
        0.001,
    )


def test_an_estimator_by_name(divided, tmp_path):
    options = ("--model", "sbn", "--estimator", "nvil", "--epochs", 1)
    assert varitext("fit", divided, "--out", tmp_path / "model", *options, *SMALL).code == 0
    assert DocumentModel.load(tmp_path / "model").fitted_.architecture["estimator"] == "nvil"


def test_vocabulary_size_and_text_column(tmp_path):
    corpus = write_jsonl(tmp_path / "documents.jsonl", TEXTS, column="body")
    options = ("--vocabulary-size", 30, "--text-column", "body", "--epochs", 1)
    assert varitext("fit", corpus, "--out", tmp_path / "model", *options, *SMALL).code == 0
    assert len(DocumentModel.load(tmp_path / "model").fitted_.vocabulary) == 30
    assert varitext("similar", tmp_path / "model", "--text", TEXTS[0]).code == 0  # the column is remembered


def test_a_time_limit_is_kept(divided, tmp_path):
    started = time.monotonic()
    outcome = varitext("fit", divided, "--out", tmp_path / "model", "--epochs", 10**6, "--time-limit", "0.5s", *SMALL)
    assert outcome.code == 0 and "time limit reached" in outcome.err
    assert time.monotonic() - started < 10
    assert sorted(contents(tmp_path / "model")) == sorted([*MODEL_FILES, *TOPIC_FILES])


def test_a_run_that_diverges_leaves_a_usable_model_and_says_what_to_change(divided, tmp_path):
    outcome = varitext("fit", divided, "--out", tmp_path / "model", "--learning-rate", "1e38", "--epochs", 5, *SMALL)
    assert outcome.code == 2 and outcome.out == ""
    assert "learning rate below" in outcome.err.splitlines()[-1]
    assert sorted(contents(tmp_path / "model")) == MODEL_FILES
    assert all(np.isfinite(tensor).all() for tensor in load_file(tmp_path / "model" / "weights.safetensors").values())


# Interruption


LONG = ("--model", "nvdm", "--epochs", 60, *SMALL)


@pytest.fixture(scope="module")
def uninterrupted(divided) -> bytes:
    """The weights of the long run."""
    folder = divided.parent.parent / f"uninterrupted{os.getpid()}"
    assert varitext("fit", divided, "--out", folder, *LONG).code == 0
    return (folder / "weights.safetensors").read_bytes()


def stop_in_the_middle(corpus: Path, out: Path, number: signal.Signals) -> Outcome:
    """Start the long run, and send a signal once its first checkpoint is there."""
    run = forked("fit", corpus, "--out", out, *LONG)
    try:
        deadline = time.monotonic() + 60
        while not (out / "checkpoint.safetensors").exists() and run.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        run.send_signal(number)
        printed = run.communicate(timeout=60)
    finally:
        run.kill()
    return Outcome(run.returncode, *printed)


def test_control_c_keeps_the_best_model_and_resume_gives_the_same_bytes(divided, uninterrupted, tmp_path):
    out = tmp_path / "model"
    outcome = stop_in_the_middle(divided, out, signal.SIGINT)
    assert outcome.code == 130 and outcome.out == "" and "Traceback" not in outcome.err
    assert "--resume" in outcome.err.splitlines()[-1]
    assert sorted(contents(out)) == sorted([*MODEL_FILES, "checkpoint.safetensors"])
    assert (out / "weights.safetensors").read_bytes() != uninterrupted
    assert varitext("evaluate", out, "--json").code == 0

    assert "add --resume" in refused(out, "fit", divided, "--out", out, *LONG)
    assert "other settings" in refused(out, "fit", divided, "--out", out, *LONG, "--learning-rate", 0.001, "--resume")
    other = write_jsonl(tmp_path / "other.jsonl", UNSEEN)
    assert "was written for other" in refused(out, "fit", other, "--out", out, *LONG, "--resume")
    with files_no_larger_than(64_000):
        assert "with --resume to continue" in refused(tmp_path, "fit", divided, "--out", out, *LONG, "--resume")

    assert varitext("fit", divided, "--out", out, *LONG, "--resume").code == 0
    assert sorted(contents(out)) == sorted([*MODEL_FILES, *TOPIC_FILES])
    assert (out / "weights.safetensors").read_bytes() == uninterrupted
    assert "nothing to resume" in refused(out, "fit", divided, "--out", out, *LONG, "--resume")


def test_a_killed_run_resumes_to_the_same_bytes(divided, uninterrupted, tmp_path):
    out = tmp_path / "model"
    assert stop_in_the_middle(divided, out, signal.SIGKILL).code == -signal.SIGKILL
    assert "unfinished run" in refused(out, "topics", out)
    assert varitext("fit", divided, "--out", out, *LONG, "--resume").code == 0
    assert sorted(contents(out)) == sorted([*MODEL_FILES, *TOPIC_FILES])
    assert (out / "weights.safetensors").read_bytes() == uninterrupted


def test_resume_starts_anew_where_nothing_is(divided, fitted, tmp_path):
    assert varitext("fit", divided, "--out", tmp_path / "model", *LEARNS, *SMALL, "--resume").code == 0
    assert contents(tmp_path / "model")["weights.safetensors"] == contents(fitted)["weights.safetensors"]


def test_resume_after_an_interruption_before_the_first_checkpoint(divided, fitted, own_model):
    config = json.loads((own_model / "config.json").read_text())
    config["learned"]["stopped"] = "interrupted"
    del config["config_sha256"]
    (own_model / "config.json").write_text(json.dumps(config))
    assert varitext("fit", divided, "--out", own_model, *LEARNS, *SMALL, "--resume").code == 0
    assert contents(own_model)["weights.safetensors"] == contents(fitted)["weights.safetensors"]


def test_resume_with_another_number_of_topics_is_refused(divided, tmp_path):
    out = tmp_path / "model"
    with mock.patch("varitext.documents.model.DocumentModel.save", side_effect=KeyboardInterrupt):
        assert varitext("fit", divided, "--out", out, "--epochs", 2, *SMALL).code == 130
    assert sorted(contents(out)) == ["checkpoint.safetensors"]
    refused(out, "fit", divided, "--out", out, "--epochs", 2, *SMALL, "--latent-dim", 5, "--resume")


def test_a_kill_within_the_first_checkpoint_is_resumed_and_nothing_is_left(divided, fitted, tmp_path):
    out = tmp_path / "model"
    out.mkdir()
    (out / ".checkpoint.safetensors.unfinished-abc.safetensors").write_text("half")
    (tmp_path / ".model.unfinished-abc").mkdir()
    assert varitext("fit", divided, "--out", out, *LEARNS, *SMALL, "--resume").code == 0
    assert sorted(contents(out)) == sorted([*MODEL_FILES, *TOPIC_FILES]) and list(tmp_path.iterdir()) == [out]
    assert contents(out)["weights.safetensors"] == contents(fitted)["weights.safetensors"]


def test_a_folder_that_another_run_writes_to_is_refused(divided, tmp_path):
    with lock_folder(tmp_path / "new" / "model"):
        said = refused(tmp_path, "fit", divided, "--out", tmp_path / "new" / "model", "--epochs", 1, *SMALL)
    assert "another run is writing" in said and not list(tmp_path.iterdir())


def test_control_c_before_training_is_quiet(divided, tmp_path):
    with mock.patch("varitext.corpora.load_as", side_effect=KeyboardInterrupt):
        assert varitext("fit", divided, "--out", tmp_path / "model") == Outcome(130, "", "")
    assert not contents(tmp_path)


# A full disk


def test_a_full_disk_while_fitting_leaves_nothing(divided, tmp_path):
    with files_no_larger_than(64_000):
        out = tmp_path / "new" / "folder" / "model"
        said = refused(tmp_path, "fit", divided, "--out", out, "--epochs", 2, *SMALL)
    assert said == f"varitext: {out}/checkpoint.safetensors: File too large\n"


@pytest.mark.parametrize("kind", [".npy", ".csv", ".parquet"])
def test_a_full_disk_while_transforming_leaves_nothing(kind, fitted, divided, tmp_path):
    if kind == ".parquet":
        pytest.importorskip("pyarrow")
    (tmp_path / "vectors.old").write_text("precious")
    out = tmp_path / "new" / f"vectors{kind}"
    with files_no_larger_than(500):
        assert f"{out}: " in refused(tmp_path, "transform", fitted, divided, "--out", out)


def test_a_full_disk_behind_standard_output():
    with open("/dev/full", "w") as full:
        run = process("--help", stdout=full)
    assert run.communicate()[1] == "varitext: standard output: No space left on device\n"
    assert run.returncode == 2


def test_a_reader_that_has_enough_is_no_error():
    reader, writer = os.pipe()
    os.close(reader)
    run = process("--help", stdout=writer)
    os.close(writer)
    assert run.communicate()[1] == ""
    assert run.returncode == 1


# Progress


def test_a_terminal_shows_a_live_bar_and_standard_output_stays_empty(divided, tmp_path, monkeypatch):
    import pty

    terminal, side = pty.openpty()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    typed = ("fit", divided, "--out", tmp_path / "model", "--model", "nvdm", "--epochs", 20, *SMALL)
    run = forked(*typed, stderr=side)
    os.close(side)
    shown = b""
    with contextlib.suppress(OSError):  # how Linux says that the other side is closed
        while block := os.read(terminal, 65536):
            shown += block
    os.close(terminal)
    assert run.communicate()[0] == "" and run.returncode == 0
    text = shown.decode()
    assert "\x1b[" in text and "fitting" in text and "100%" in text
    assert "bound -" in text and " KL " in text and " dev " in text and "left" in text
    assert f"model in {tmp_path}" in text.replace("\r\n", "")


# Evaluate


def test_evaluate_prints_one_json_object_and_nothing_else(fitted, divided):
    outcome = varitext("evaluate", fitted, "--json")
    assert (outcome.code, outcome.err, outcome.out.count("\n")) == (0, "", 1)
    record = json.loads(outcome.out)
    assert record.keys() >= EVALUATE_KEYS
    assert (record["part"], record["held_out"]) == ("test", True) and record["corpus"].startswith(str(divided))
    assert (record["n_documents"], record["n_tokens"], record["n_samples"]) == (60, 1200, 20)
    assert record["iwae_per_document_perplexity"] < record["per_document_perplexity"]
    assert record["per_document_perplexity"] < record["unigram_per_document_perplexity"]
    assert (
        record["per_document_perplexity"]
        == DocumentModel.load(fitted).perplexity_record(UNSEEN).per_document_perplexity
    )
    assert len(record["corpus_sha256"]) == 64


def test_the_real_command_prints_the_same_json(fitted):
    run = process("evaluate", fitted, "--json", "--threads", 1)
    printed, said = run.communicate()
    assert (run.returncode, said) == (0, "")
    assert json.loads(printed) == json.loads(varitext("evaluate", fitted, "--json", "--threads", 1).out)


def test_evaluate_for_people(fitted):
    outcome = varitext("evaluate", fitted, "--samples", 3)
    assert (outcome.code, outcome.err) == (0, "")
    for words in ("60 documents", "per-document perplexity", "95 % interval", "unigram", "3 samples", "KL"):
        assert words in outcome.out


def test_evaluate_in_full(fitted, divided):
    outcome = varitext("evaluate", fitted, "--full", "--json", "--threads", 1)
    assert (outcome.code, outcome.err, outcome.out.count("\n")) == (0, "", 1)
    record = json.loads(outcome.out)
    assert record["classification"]["accuracy"] > 0.9 and record["retrieval"]["n_queries"] == 60
    assert record["c_v"]["measure"] == "c_v" and record["perplexity"]["kind"] == "bound"
    assert (record["part"], len(record["corpus_sha256"]), len(record["train_sha256"])) == ("test", 64, 64)
    shown = varitext("evaluate", fitted, divided, "--full", "--samples", 3)
    assert (shown.code, shown.err) == (0, "")
    for words in ("per-document perplexity", "completion perplexity", "NPMI", "C_V", "unique words", "macro F1"):
        assert words in shown.out


def test_a_full_evaluation_needs_two_parts(fitted, divided, tmp_path):
    corpus = write_jsonl(tmp_path / "documents.jsonl", UNSEEN)
    assert "--full needs a corpus with a train part" in refused(tmp_path, "evaluate", fitted, corpus, "--full")
    typed = ("evaluate", fitted, divided, "--part", "train", "--full")
    assert "and another part to evaluate" in refused(tmp_path, *typed)


def test_evaluate_leaves_out_documents_without_a_known_word_and_says_so(fitted, tmp_path):
    corpus = write_jsonl(tmp_path / "documents.jsonl", [*UNSEEN, "zzz"])
    assert "60 documents (1 without a known word left out)" in varitext("evaluate", fitted, corpus).out
    nothing = write_jsonl(tmp_path / "nothing.jsonl", ["zzz", "yyy"])
    assert "no document has a word of the model" in refused(tmp_path, "evaluate", fitted, nothing, "--json")


def test_evaluate_counts_documents_that_training_has_too(fitted, divided, tmp_path):
    outcome = varitext("evaluate", fitted, "--json")
    assert outcome.code == 0 and isinstance(json.loads(outcome.out)["n_repeated_documents"], int)
    elsewhere = tmp_path / "unseen.txt"
    elsewhere.write_text("\n".join(draw_texts(5, seed=9)), encoding="utf-8")
    assert json.loads(varitext("evaluate", fitted, elsewhere, "--json").out)["n_repeated_documents"] is None


def test_evaluate_says_when_the_documents_are_not_held_out(fitted, divided):
    outcome = varitext("evaluate", fitted, divided, "--part", "train", "--json")
    assert json.loads(outcome.out)["held_out"] is False
    assert outcome.err.startswith("note: ") and "not a held-out perplexity" in outcome.err


def test_a_model_of_an_undivided_file_shows_what_it_was_fitted_on_and_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_jsonl(tmp_path / "documents.jsonl", TEXTS)
    write_jsonl(tmp_path / "unseen.jsonl", UNSEEN)
    assert varitext("fit", "documents.jsonl", "--out", "model", "--epochs", 2, *SMALL).code == 0
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")  # the file is found again
    shown = varitext("evaluate", "../model")
    first, second, *_ = shown.out.splitlines()
    assert first.startswith("held-out perplexity ") and second.startswith("documents.jsonl (fitted on these): ")
    assert "not a held-out perplexity" in shown.err
    record = json.loads(varitext("evaluate", "../model", "--json").out)
    assert not record["held_out"] and first.startswith(f"held-out perplexity {record['dev_perplexity']:.1f}, of ")
    monkeypatch.chdir(tmp_path)
    assert "no 'test' part" in refused(tmp_path, "evaluate", "model", "unseen.jsonl", "--part", "test")
    assert json.loads(varitext("evaluate", "model", "unseen.jsonl", "--json").out)["part"] == "all"
    assert "60 vectors" in varitext("transform", "model", "unseen.jsonl", "--out", "vectors.npy").err
    assert varitext("similar", "model", "--text", UNSEEN[0]).out.count("\n") == 5
    write_jsonl(tmp_path / "documents.jsonl", TEXTS[1:])
    assert "has changed since" in refused(tmp_path, "evaluate", "model")
    (tmp_path / "documents.jsonl").unlink()
    assert "is not here" in refused(tmp_path, "similar", "model", "--text", UNSEEN[0])
    assert "is not here" in refused(tmp_path, "evaluate", "model")


# Model folders that are not as they should be


def change_config(**changes: object):
    def change(folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        del config["config_sha256"]  # which would tell before anything else
        (folder / "config.json").write_text(json.dumps(config | changes))

    return change


def flip_a_bit_of_a_number(folder: Path) -> None:
    text = (folder / "config.json").read_text()
    (folder / "config.json").write_text(text.replace('"seed": 0', '"seed": 1'))


def cut(name: str):
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:-10])


def remove(name: str):
    return lambda folder: (folder / name).unlink()


def flip_a_byte(folder: Path) -> None:
    content = bytearray((folder / "weights.safetensors").read_bytes())
    content[-1] ^= 1
    (folder / "weights.safetensors").write_bytes(content)


@pytest.mark.parametrize(
    "harm, said",
    [
        (remove("config.json"), "no config.json"),
        (remove("weights.safetensors"), "weights.safetensors is missing"),
        (remove("vocabulary.txt"), "vocabulary.txt is missing"),
        (cut("config.json"), "config.json is not valid JSON"),
        (cut("weights.safetensors"), "weights.safetensors is damaged or was changed"),
        (cut("vocabulary.txt"), "vocabulary.txt is damaged or was changed"),
        (cut("metrics.jsonl"), "metrics.jsonl is damaged or was changed"),
        (flip_a_bit_of_a_number, "config.json is damaged or was changed"),
        (flip_a_byte, "weights.safetensors is damaged or was changed"),
        (change_config(format_version=99), "format version 99, but this varitext reads version 1"),
        (
            change_config(kind="answer-ranker"),
            "holds a ranker of answers, not a model of documents",
        ),
        (change_config(kind="something"), "holds a model of kind 'something'"),
        (change_config(format="something"), "does not belong to a varitext model"),
        (change_config(architecture={}), "config.json does not describe a model of kind"),
    ],
)
def test_a_damaged_model_folder_is_refused_in_one_line(harm, said, own_model):
    harm(own_model)
    assert said in refused(own_model, "similar", own_model, "--text", "kan")
    if "describe" not in said:  # no network is built to compare words
        assert said in refused(own_model, "similar", own_model, "--word", "kan")


class PlugIn(NVDM):
    """A model of another package."""


def test_a_folder_of_another_packages_class_must_be_trusted(tmp_path):
    DocumentModel(PlugIn, latent_dim=2, epochs=1, threads=1).fit(TEXTS).save(tmp_path / "model")
    typed, home = ("similar", tmp_path / "model", "--word", "kan"), f"{__name__}:PlugIn"
    assert f"(--trust {home})" in refused(tmp_path, *typed)
    assert "--trust" in refused(tmp_path, *typed, "--trust", "os:system")
    assert varitext(*typed, "--trust", home).code == 0


# Transform


@pytest.mark.parametrize("with_std", [False, True])
def test_transform_writes_the_same_values_in_every_format(with_std, fitted, tmp_path):
    pyarrow = pytest.importorskip("pyarrow.parquet")
    documents = write_jsonl(tmp_path / "documents.jsonl", [*UNSEEN, "zzz"])
    posterior = DocumentModel.load(fitted).posterior([*UNSEEN, "zzz"])
    expected = np.hstack(posterior) if with_std else posterior.mean
    for kind in (".npy", ".csv", ".parquet"):
        options = ["--with-std"] if with_std else []
        outcome = varitext("transform", fitted, documents, "--out", tmp_path / f"vectors{kind}", *options)
        assert (outcome.code, outcome.out) == (0, "")
        assert "1 document without a known word" in outcome.err and "61 vectors of 4 dimensions" in outcome.err
    names = [f"{what}_{k}" for what in (("mean", "std") if with_std else ("mean",)) for k in range(4)]
    table = pyarrow.read_table(tmp_path / "vectors.parquet")
    assert table.column_names == names == (tmp_path / "vectors.csv").read_text().split("\n")[0].split(",")
    assert np.array_equal(np.load(tmp_path / "vectors.npy"), expected)
    assert np.array_equal(np.column_stack([table[name] for name in names]), expected)
    read = np.loadtxt(tmp_path / "vectors.csv", delimiter=",", skiprows=1, dtype=np.float32)
    assert np.array_equal(read, expected)


def test_transform_does_not_overwrite(fitted, divided, tmp_path):
    (tmp_path / "vectors.npy").write_text("precious")
    assert "exists already" in refused(tmp_path, "transform", fitted, divided, "--out", tmp_path / "vectors.npy")
    assert "not a folder" in refused(
        tmp_path, "transform", fitted, divided, "--out", tmp_path / "vectors.npy" / "vectors.npy"
    )


# Topics, similar, report


def test_topics(fitted):
    found = json.loads(varitext("topics", fitted, "--json", "--words", 7).out)["topics"]
    assert found and all(1 <= len(topic["words"]) <= 7 for topic in found)
    assert [topic["documents"] for topic in found] == sorted((topic["documents"] for topic in found), reverse=True)
    shown = varitext("topics", fitted, "--words", 7).out.splitlines()
    assert [line.split(": ")[1].split() for line in shown] == [topic["words"] for topic in found]
    assert [line.split()[:2] for line in shown] == [[str(t["number"]), str(t["documents"])] for t in found]


def test_topics_do_not_wait_for_torch(fitted):
    """Printing what is on disk imports nothing heavy."""
    script = (
        "import sys; sys.argv = ['varitext', 'topics', sys.argv[1]]\n"
        "from varitext.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        "assert not {'torch', 'sklearn', 'scipy', 'numpy'} & set(sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", script, str(fitted)], capture_output=True, text=True, check=True)
    assert run.stdout == varitext("topics", fitted).out


@pytest.fixture
def table(tmp_path):
    rows = [
        f'd{number},"{text}",topic{number % 4},20{20 + number % 3}-02-0{1 + number % 9},x'
        for number, text in enumerate(UNSEEN)
    ]
    path = tmp_path / "table.csv"
    path.write_text("id,text,kind,when,topic\n" + "\n".join(rows) + "\n")
    return path


def test_topics_are_changed_in_the_folder(own_model):
    before = json.loads(varitext("topics", own_model, "--json").out)["topics"]
    assert len(before) > 2
    outcome = varitext("topics", own_model, "--merge", "0,2", "--rename", "1=mine", "--json")
    after = {topic["number"]: topic for topic in json.loads(outcome.out)["topics"]}
    assert outcome.code == 0 and len(after) == len(before) - 1 and after[1]["name"] == "mine"
    assert after[0]["documents"] == before[0]["documents"] + before[2]["documents"]
    split = json.loads(varitext("topics", own_model, "--split", 0, "--drop", 1, "--json").out)["topics"]
    assert [topic["words"] for topic in split if topic["number"] == 0] == [before[0]["words"]]
    parts = varitext("topics", own_model, "--split", "0=3", "--stability", 3)
    lines = parts.out.splitlines()
    assert parts.code == 0 and len(lines) == len(split) + 2 and all("stability " in line for line in lines)
    assert varitext("topics", own_model).out == parts.out  # it is saved
    assert "there is no topic 77" in refused(own_model, "topics", own_model, "--drop", 77)
    assert "n_parts must be at least 2" in refused(own_model, "topics", own_model, "--split", "0=1")
    assert "'x' is not the number of a topic" in refused(own_model, "topics", own_model, "--merge", "x,1")


def test_words_of_topics_are_changed_in_the_folder(own_model):
    hidden = json.loads(varitext("topics", own_model, "--json").out)["topics"][0]["words"][0]
    outcome = varitext("topics", own_model, "--stop-words", f"{hidden},german", "--relevance", 0.3, "--json")
    words = [word for topic in json.loads(outcome.out)["topics"] for word in topic["words"]]
    assert outcome.code == 0 and hidden not in words
    words = [
        word for line in varitext("topics", own_model, "--ngrams", "1-2").out.splitlines() for word in line.split()
    ]
    assert hidden in words  # what is not given is reset
    assert "relevance must lie between 0 and 1" in refused(own_model, "topics", own_model, "--relevance", 3)
    assert "no.txt" in refused(own_model, "topics", own_model, "--stop-words", "no.txt")
    assert "--min-topic-size needs --topics" in refused(own_model, "topics", own_model, "--min-topic-size", 3)


def test_small_topics_are_left_out(own_model):
    found = json.loads(varitext("topics", own_model, "--topics", 8, "--min-topic-size", 20, "--json").out)
    assert len(found["topics"]) < 8 and min(topic["documents"] for topic in found["topics"]) >= 20
    assert "with fewer than 20 documents" in found["choice"]["how"]


def test_topics_are_found_anew_with_words_to_start_from(own_model, tmp_path):
    seeds = tmp_path / "seeds.json"
    seeds.write_text(json.dumps({"first": ["ban", "dar", "zyzzyva"]}))
    outcome = varitext("topics", own_model, "--topics", 3, "--seed-topics", seeds, "--json")
    found = json.loads(outcome.out)
    assert [topic["name"] for topic in found["topics"]].count("first") == 1 and len(found["topics"]) == 3
    assert found["seed_topics"][0]["unknown_words"] == ["zyzzyva"] and "unknown: zyzzyva" in outcome.err
    seeds.write_text(json.dumps({"first": ["zyzzyva"]}))
    assert "none of the seed words of 'first'" in refused(own_model, "topics", own_model, "--seed-topics", seeds)


def test_a_fit_takes_seed_words(divided, tmp_path):
    seeds = tmp_path / "seeds.json"
    seeds.write_text(json.dumps({"first": ["ban", "dar", "zyzzyva"]}))
    typed = ("fit", divided, "--epochs", 1, "--topics", 3, "--threads", 1)
    outcome = varitext(*typed, "--seed-topics", seeds, "--out", tmp_path / "model")
    assert outcome.code == 0 and "unknown: zyzzyva" in outcome.err and "3 topics" in outcome.err
    found = json.loads(varitext("topics", tmp_path / "model", "--json").out)["topics"]
    assert len(found) == 3 and "first" in [topic["name"] for topic in found]
    seeds.write_text("[1]")
    assert "names with lists of words" in refused(tmp_path, *typed, "--seed-topics", seeds, "--out", tmp_path / "none")
    missing = refused(tmp_path, *typed, "--seed-topics", tmp_path / "no.json", "--out", tmp_path / "none")
    assert "no.json" in missing


def test_topics_by_column_and_over_time(own_model, table, tmp_path):
    found = json.loads(varitext("topics", own_model, "--by", "kind", "--from", table, "--json").out)["shares"]
    assert {one["value"] for one in found} == {f"topic{number}" for number in range(4)}
    assert all(one["low"] <= one["share"] <= one["high"] for one in found)
    shown = varitext("topics", own_model, "--by", "kind", "--from", table).out
    assert "Distinctive words:" in shown and "topic3 (15 documents): " in shown.split("Distinctive words:")[1]
    out = tmp_path / "years.csv"
    assert (
        varitext("topics", own_model, "--over-time", "when", "--bins", "year", "--from", table, "--out", out).code == 0
    )
    assert {line.split(",")[0] for line in out.read_text().splitlines()[1:]} == {"2020", "2021", "2022"}
    for wrong, said in (
        (("--over-time", "kind"), "column 'kind' has no readable date"),
        (("--by", "colour"), "has no column 'colour' beside its text. Columns: id, kind, when, topic"),
        (("--over-time", "when", "--bins", "decade"), "bins must be one of"),
        (("--over-time", "when", "--by", "kind"), "either --by or --over-time"),
    ):
        assert said in refused(own_model, "topics", own_model, "--from", table, *wrong)


def test_topics_by_column_are_drawn(own_model, table, tmp_path):
    pytest.importorskip("matplotlib")
    typed = ("figures", own_model, "by-class", "over-time", "--corpus", table, "--by", "kind", "--over-time", "when")
    assert varitext(*typed, "--out", tmp_path / "figures").code == 0
    assert "2020" in (tmp_path / "figures" / "over-time.svg").read_text()
    assert "topic3" in (tmp_path / "figures" / "by-class.svg").read_text()
    assert "has no column 'colour'" in refused(tmp_path, *typed[:6], "--by", "colour", "--out", tmp_path / "none")


@pytest.mark.parametrize("ending", [".csv", ".json", ".parquet"])
def test_documents_are_assigned_beside_their_columns(ending, own_model, table, tmp_path):
    pandas = pytest.importorskip("pandas")
    out = tmp_path / f"documents{ending}"
    assert varitext("assign", own_model, table, "--text-column", "text", "--out", out).code == 0
    read = {".csv": pandas.read_csv, ".json": pandas.read_json, ".parquet": pandas.read_parquet}[ending]
    frame, expected = read(out), DocumentModel.load(own_model).document_info(UNSEEN)
    assert list(frame["id"]) == [f"d{number}" for number in range(len(UNSEEN))] and set(frame["topic_of_file"]) == {"x"}
    assert list(frame["topic"]) == [record.topic for record in expected]
    np.testing.assert_allclose(frame["surprise"], [record.surprise for record in expected], rtol=1e-4, atol=1e-5)


def test_formulas_are_escaped_in_csv_alone(own_model, tmp_path):
    formulas = ["=cmd|'/C calc'!A0", "+1+cmd()", "@SUM(A1)", "\tx", "-2+3", "-2.5", "plain"]
    table, out = tmp_path / "table.csv", tmp_path / "documents.csv"
    with table.open("w", newline="") as stream:
        csv.writer(stream).writerows([("id", "text", "=1+1"), *((one, UNSEEN[0], "a") for one in formulas)])
    expected = {"documents.csv": [f"'{one}" for one in formulas[:5]] + formulas[5:], "documents.json": formulas}
    for name, ids in expected.items():
        out = tmp_path / name
        assert varitext("assign", own_model, table, "--text-column", "text", "--out", out).code == 0
        rows = (
            json.loads(out.read_text()) if out.suffix == ".json" else list(csv.DictReader(io.StringIO(out.read_text())))
        )
        assert [row["id"] for row in rows] == ids and ("'=1+1" in rows[0]) == (out.suffix == ".csv")
    raw = tmp_path / "raw.csv"
    assert varitext("assign", own_model, table, "--text-column", "text", "--raw-csv", "--out", raw).code == 0
    assert [row["id"] for row in csv.DictReader(io.StringIO(raw.read_text()))] == formulas


def test_foreign_words_cannot_command_the_terminal(own_model, tmp_path):
    folder = shutil.copytree(own_model, tmp_path / "strange")
    words = (folder / "vocabulary.txt").read_text().splitlines()
    (folder / "vocabulary.txt").write_text("".join(f"\x1b[2J{word}\x9b31m\u202e\n" for word in words))
    table = json.loads((folder / "topics.json").read_text())
    for topic in table["topics"]:
        topic["name"] = "\x1b]0;owned\x07\x9b"
    (folder / "topics.json").write_text(json.dumps(table))
    seal(folder)
    asked = f"\x1b[2J{words[0]}\x9b31m\u202e"
    for typed in (("topics", folder), ("topics", folder, "--json"), ("similar", folder, "--word", asked)):
        outcome = varitext(*typed)
        assert outcome.code == 0 and "\\u001b" in outcome.out, outcome
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", outcome.out + outcome.err)
    printed = json.loads(varitext("topics", folder, "--json").out)
    assert printed["topics"][0]["name"] == "\x1b]0;owned\x07\x9b"  # JSON loses nothing


def test_assign_reads_the_column_of_the_fit_and_keeps_all_columns(own_model, tmp_path):
    """The model was fitted on a column named body: a file with two columns of text needs no option."""
    table, folder, out = tmp_path / "table.csv", tmp_path / "other", tmp_path / "documents.csv"
    lines = [f"note {number},{text}" for number, text in enumerate(TEXTS)]
    table.write_text("remark,body\n" + "\n".join([*lines, "nothing known,zzz"]) + "\n")
    few = ("--latent-dim", 2, "--epochs", 1, "--threads", 1, "--topics", 2)
    assert varitext("fit", table, "--text-column", "body", *few, "--out", folder).code == 0
    assert varitext("assign", folder, table, "--out", out).code == 0
    header, *rows = csv.reader(io.StringIO(out.read_text()))
    assert header[:2] == ["remark", "body"] and rows[0][:2] == ["note 0", TEXTS[0]]
    topics, places = [row[header.index("topic")] for row in rows], [row[header.index("row")] for row in rows]
    assert set(topics) <= {"0", "1", ""} and topics[-1] == "" and places == [str(n) for n in range(len(rows))]
    pandas = pytest.importorskip("pandas")
    assert varitext("assign", folder, table, "--out", out.with_suffix(".parquet")).code == 0
    frame = pandas.read_parquet(out.with_suffix(".parquet"))
    assert str(frame["topic"].dtype) == "Int64" and frame["topic"].isna().sum() == 1
    assert str(DocumentModel.load(folder).document_info(["zzz", TEXTS[0]]).to_frame()["topic"].dtype) == "Int64"


@pytest.mark.parametrize("ending", [".csv", ".json", ".parquet"])
def test_assign_continues_after_a_kill(ending, own_model, table, tmp_path, monkeypatch):
    """Whatever ends the run keeps the blocks that are done, and the result is that of one run."""
    monkeypatch.setattr(blocks, "BLOCK", 7)
    whole, out = tmp_path / f"whole{ending}", tmp_path / f"documents{ending}"
    typed = ("assign", own_model, table, "--text-column", "text", "--out")
    assert varitext(*typed, whole).code == 0
    info, calls = DocumentModel.document_info, []

    def interrupted(model, *given):
        calls.append(given)
        if len(calls) > 2:
            raise KeyboardInterrupt
        return info(model, *given)

    monkeypatch.setattr(DocumentModel, "document_info", interrupted)
    assert varitext(*typed, out).code == 130
    assert not out.exists() and len(list((tmp_path / f"{out.name}.parts").glob("0*"))) == 2
    monkeypatch.setattr(DocumentModel, "document_info", info)
    again = varitext(*typed, out)
    assert again.code == 0 and "the first 2 blocks" in again.err and not (tmp_path / f"{out.name}.parts").exists()
    if ending == ".parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        assert parquet.read_table(out).equals(parquet.read_table(whole))
    else:
        assert out.read_bytes() == whole.read_bytes()


ODD_TABLES = {  # id, text, date, label of each row
    "repeated ids": [(n // 2, text, "2026-01-01", "x") for n, text in enumerate(UNSEEN)],
    "one label": [(n, text, f"2026-01-0{1 + n % 9}", "same") for n, text in enumerate(UNSEEN)],
    "some dates": [(n, text, "2026-01-01" if n % 2 else "soon", n % 3) for n, text in enumerate(UNSEEN)],
    "some labels": [(n, text, "2026-01-01", "a" if n % 2 else "") for n, text in enumerate(UNSEEN)],
    "two documents": [(n, text, "2026-01-01", "a") for n, text in enumerate(UNSEEN[:2])],
    "all alike": [(n, UNSEEN[0], "2026-01-01", "a") for n in range(30)],
}


@pytest.mark.parametrize("kind", ODD_TABLES)
def test_odd_tables_have_sensible_topics(kind, tmp_path):
    """Fit, topics, assign and figures as a new user would; 50 topics of whatever is there."""
    pytest.importorskip("matplotlib")
    rows, table, folder = ODD_TABLES[kind], tmp_path / "table.csv", tmp_path / "model"
    table.write_text("id,text,when,label\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    columns = ("--id-column", "id", "--date-column", "when", "--label-column", "label")
    typed = ("--latent-dim", 2, "--epochs", 1, "--threads", 1, "--topics", 50, "--max-share", 1, "--min-documents", 1)
    fitted = varitext("fit", table, *columns, *typed, "--out", folder)
    assert fitted.code == 0 and "Traceback" not in fitted.err, fitted.err
    topics = json.loads(varitext("topics", folder, "--json").out)["topics"]
    assert 1 <= len(topics) <= 50 and sum(topic["documents"] for topic in topics) == len(rows)
    assert varitext("assign", folder, table, "--out", tmp_path / "documents.json").code == 0
    assert len(json.loads((tmp_path / "documents.json").read_text())) == len(rows)
    assert varitext("topics", folder, "--by", "label").code == 0
    assert varitext("topics", folder, "--over-time", "when").code == 0
    assert varitext("figures", folder, "topics", "map", "--out", tmp_path / "figures").code == 0


def test_nonsense_for_dates_and_unknown_seed_words_are_one_line(tmp_path):
    table, seeds = tmp_path / "table.csv", tmp_path / "seeds.json"
    table.write_text("text,when\n" + "".join(f"{text},soon\n" for text in UNSEEN))
    seeds.write_text('{"odd": ["zyzzyva"]}')
    out = ("--latent-dim", 2, "--out", tmp_path / "model")
    assert "no readable date" in refused(tmp_path, "fit", table, "--date-column", "when", *out)
    assert "none of the seed words of 'odd'" in refused(tmp_path, "fit", table, "--seed-topics", seeds, *out)


def test_tables_of_unknown_kinds_are_refused(own_model, table, tmp_path):
    assert "tables are written as" in refused(tmp_path, "topics", own_model, "--out", tmp_path / "topics.txt")
    assert "exists already" in refused(tmp_path, "assign", own_model, table, "--out", table)


def test_similar_words(fitted):
    found = json.loads(varitext("similar", fitted, "--word", "kan", "-n", 3, "--json").out)["similar"]
    words, cosines = zip(*DocumentModel.load(fitted).similar_words("kan", 3), strict=True)
    assert tuple(entry["word"] for entry in found) == words
    assert [entry["similarity"] for entry in found] == pytest.approx(cosines, abs=1e-5)
    assert varitext("similar", fitted, "--word", "KAN", "-n", 3).out.split()[1::2] == [e["word"] for e in found]


def imported_after(module: str, *commands: tuple[object, ...]) -> list[bool]:
    """Whether the module is there after each of the commands, in one new process."""
    code = f"""import sys
from varitext.cli import main
for typed in {[[str(one) for one in command] for command in commands]!r}:
    sys.argv = ["varitext", *typed]
    try:
        main()
    except SystemExit as end:
        assert not end.code
    print({module!r} in sys.modules, file=sys.stderr)
"""
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return [line == "True" for line in run.stderr.splitlines() if line in ("True", "False")]


def test_what_needs_no_network_imports_no_torch(fitted):
    assert imported_after("torch", ("similar", fitted, "--word", "kan")) == [False]


def test_neither_a_search_nor_a_fit_imports_torchs_compiler(fitted, divided, tmp_path):
    """Two seconds more."""
    fit = ("fit", divided, "--out", tmp_path / "model", "--epochs", 1, *SMALL)
    assert imported_after("torch._dynamo", ("similar", fitted, "--text", "kan"), fit) == [False] * 2


def test_similar_documents(fitted, divided, tmp_path):
    found = json.loads(varitext("similar", fitted, "--text", TEXTS[0], "--json", "-n", 2).out)["similar"]
    assert found[0]["similarity"] == pytest.approx(1, abs=1e-5)
    assert found[0]["label"] == "topic0" and TEXTS[found[0]["index"]].startswith(found[0]["text"].removesuffix(" ..."))
    among = write_corpus(tmp_path, ".npz", UNSEEN)  # counts: neither texts nor labels
    found = json.loads(varitext("similar", fitted, "--text", TEXTS[0], "--among", among, "--json").out)["similar"]
    assert [set(entry) for entry in found] == [{"index", "similarity"}] * 5


def test_words_never_seen_are_refused_in_one_line(fitted, tmp_path):
    assert "'zzz' is not" in refused(tmp_path, "similar", fitted, "--word", "zzz")
    assert "did you mean kan?" in refused(tmp_path, "similar", fitted, "--word", "kanx")
    assert "no word that the model knows" in refused(tmp_path, "similar", fitted, "--text", "zzz, yyy!")
    assert "no word that the model knows" in refused(tmp_path, "similar", fitted, "--text", "")


def test_report(fitted, tmp_path):
    pytest.importorskip("plotly")
    pytest.importorskip("openTSNE")
    outcome = varitext("report", fitted, "--out", tmp_path / "report.html", "--threads", 1)
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err.splitlines()[-1] == f"report in {tmp_path}/report.html"
    assert list(contents(tmp_path)) == ["report.html"]
    assert "<html" in (tmp_path / "report.html").read_text()
