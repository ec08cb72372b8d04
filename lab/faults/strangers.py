"""Hostile model folders: changed on purpose, with matching hashes, and used by a command.

Each must be refused in one line or used, within `MAX_MEMORY` and `MAX_SECONDS`, without a traceback, and without a
control character on the terminal.
"""

import hashlib
import io
import json
import re
import resource
import shutil
import struct
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from lab.faults import corpora, damage, hostile
from lab.faults.commands import refused, run
from lab.faults.folders import fitted_documents
from lab.faults.tally import Fault, Tally
from varitext import AnswerRanker, load_questions
from varitext.cli import main

Generator = np.random.Generator
MAX_MEMORY = 1 << 30  # bytes more than the process has before the command
MAX_SECONDS = 10  # of processor time
NO_MEMORY = ("not enough memory", "Cannot allocate memory")  # the second is the system's, within other messages
SIZES = (2, 7, 1000, 20_000, 10**6, 10**9, 10**12, 2**63, -1, 0.5)
WORDS = ("\x1b]0;owned\x07", "\x1b[2J", "\x9b31m", "go\u202eal", "\r", "x" * 100_000, "", "=cmd()", "\u2028", "moon")
RANKERS: dict[str, dict[str, Any]] = {
    "compare": {},
    "nasm": {"latent_dim": 2, "counts": True},
    "lstm": {"ensemble": 2},
    "overlap": {},
}


def measure(tally: Tally, times: int, folder: Path) -> None:
    documents = [_saved(fitted_documents(0, model=name), folder / name) for name in ("nvdm_dcm", "nvdm_gsm")]
    questions = load_questions(corpora.write_questions(folder / "questions.jsonl", 24))
    sizes: dict[str, Any] = {"embedding_dim": 4, "epochs": 1, "vectors": "random", "threads": 1}
    rankers = [
        _saved(
            AnswerRanker(name, **own, **(sizes if name != "overlap" else {})).fit(questions, questions), folder / name
        )
        for name, own in RANKERS.items()
    ]
    (folder / "texts.txt").write_text("\n".join(corpora.texts(4)))
    for model, commands in ((documents[0], DOCUMENT_COMMANDS), (rankers[0], ANSWER_COMMANDS)):
        for command in commands:
            _import_what_it_needs([one.format(model=model, folder=folder) for one in command])
            (folder / "out.json").unlink(missing_ok=True)
    tally.run("documents", times // 2, partial(used, documents, DOCUMENT_COMMANDS, folder))
    tally.run("rankers", times // 2, partial(used, rankers, ANSWER_COMMANDS, folder))


def used(models: list[Path], commands: tuple[tuple[str, ...], ...], folder: Path, number: int) -> str:
    generator = np.random.default_rng([7, number])
    copy = folder / "strange"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(models[generator.integers(len(models))], copy)
    how = changed(copy, generator)
    command = [one.format(model=copy, folder=folder) for one in commands[generator.integers(len(commands))]]
    (folder / "out.json").unlink(missing_ok=True)
    outcome = run(*command, first=_limited)
    what = f"{command[0]}, {how}"
    if controls := re.search(r"[^\n\t\x20-\x7e\xa0-\U0010ffff]|[\u2028-\u202e]", outcome.out + outcome.err):
        raise Fault(f"{what}: prints {controls[0]!r}")
    if outcome.code == 0:
        return "used"
    if outcome.code < 0 or any(message in outcome.err for message in NO_MEMORY):
        raise Fault(f"{what}: code {outcome.code}, {outcome.err[-200:]}")
    try:
        message = refused(outcome)
    except Fault as fault:
        raise Fault(f"{what}: {fault}") from None
    if len(message) > 2000:
        raise Fault(f"{what}: a message of {len(message)} characters")
    return "refused in one line"


DOCUMENT_COMMANDS = (
    ("topics", "{model}"),
    ("topics", "{model}", "--json"),
    ("similar", "{model}", "--word", "rocket"),
    ("topics", "{model}", "--tree"),
    ("assign", "{model}", "{folder}/texts.txt", "--threads", "1", "--out", "{folder}/out.json"),
    ("evaluate", "{model}", "{folder}/texts.txt", "--threads", "1"),
)
ASKED = ("--question", "who was the old king", "--candidates", "{folder}/texts.txt", "--threads", "1")
ANSWER_COMMANDS = (("rank", "{model}", *ASKED), ("rank", "{model}", "--json", *ASKED))


def _import_what_it_needs(command: list[str]) -> None:
    """Run the command here once, so that forked processes do not spend seconds on imports."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()), suppress(SystemExit):
        sys.argv = ["varitext", *command]
        main()


def _saved(model: Any, folder: Path) -> Path:
    model.save(folder)
    return folder


def _limited() -> None:
    """Limits for this process, which is about to run the command."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MAX_MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    spent = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(spent.ru_utime + spent.ru_stime) + MAX_SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))


# Changes


def changed(folder: Path, generator: Generator) -> str:
    """Change one to three things, and make the hashes match."""
    how = [WAYS[generator.integers(len(WAYS))](folder, generator) for _ in range(generator.integers(1, 4))]
    seal(folder)
    return "; ".join(how)[:400]


def seal(folder: Path) -> None:
    """Write the current hashes of the files into config.json, as an attacker would."""
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text())
        for name in config["sha256"]:
            config["sha256"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    except (ValueError, KeyError, TypeError, OSError):
        return
    config.pop("config_sha256", None)
    path.write_text(json.dumps(config))


def put_anything(name: str, folder: Path, generator: Generator) -> str:
    """A hostile value, or a size, at a place of a JSON file or of a safetensors header."""
    if not (path := folder / name).exists():
        return f"no {name}"
    choices: tuple[Any, ...] = (*damage.HOSTILE, *SIZES, *WORDS)
    value = choices[generator.integers(len(choices))]
    if generator.random() < 0.2:
        value = hostile.value(generator)

    def put(holder: Any, key: Any) -> None:
        holder[key] = value

    try:
        where = damage._change_json(path, generator, put)
    except (TypeError, ValueError, UnicodeError, struct.error):  # not a value of JSON, or no longer a JSON file
        return f"{name} unchanged"
    return f"{name} {where} set to {str(value)[:60]!r}"


def put_size(folder: Path, generator: Generator) -> str:
    """Another number for an argument of the network, or a new argument."""
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text())
        names = (*config["architecture"], *ARGUMENTS)
        name, size = names[generator.integers(len(names))], SIZES[generator.integers(len(SIZES))]
        config["architecture"][name] = size
    except (ValueError, KeyError, TypeError):
        return "no architecture"
    path.write_text(json.dumps(config))
    return f"architecture {name} = {size}"


ARGUMENTS = ("hidden_layers", "hidden_dim", "groups", "refinement_steps", "layers", "members", "maps", "embedding_dim")


def change_words(folder: Path, generator: Generator) -> str:
    path = folder / "vocabulary.txt"
    lines = path.read_text(errors="replace").split("\n")
    place, word = int(generator.integers(len(lines))), WORDS[generator.integers(len(WORDS))]
    lines[place] = (lines[place] + word, word, f"{word}\n{word}2")[generator.integers(3)]
    path.write_text("\n".join(lines))
    return f"word {place} with {word[:20]!r}"


def change_numbers(folder: Path, generator: Generator) -> str:
    """Other bytes in the tensors of the weights or topics: any float32, with NaN and infinities."""
    names = [path for path in sorted(folder.glob("*.safetensors"))]
    path = names[generator.integers(len(names))]
    content = bytearray(path.read_bytes())
    begin = 8 + min(struct.unpack("<Q", content[:8])[0], len(content))
    length = int(generator.integers(4, 64))
    place = begin + 4 * int(generator.integers(max(1, (len(content) - begin) // 4)))
    content[place : place + length] = generator.bytes(len(content[place : place + length]))
    path.write_bytes(content)
    return f"{length} bytes of {path.name}"


Way = Callable[[Path, Generator], str]
WAYS: tuple[Way, ...] = (
    partial(put_anything, "config.json"),
    partial(put_anything, "config.json"),
    partial(put_anything, "weights.safetensors"),
    partial(put_anything, "topics.json"),
    partial(put_anything, "topics.json"),
    partial(put_anything, "topics.safetensors"),
    partial(put_anything, "metrics.jsonl"),
    put_size,
    change_words,
    change_numbers,
)
