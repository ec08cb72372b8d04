"""Run tests against mutants: each in a process forked from one that has collected all tests and run none.

The mutated function gets its new code object in the child, wherever it is referenced (also behind decorators), so
nothing is imported twice and a mutant costs what its tests cost.
"""

import gc
import importlib
import itertools
import math
import os
import resource
import signal
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FunctionType
from typing import NamedTuple

import pytest
import torch
from _pytest.runner import runtestprotocol

from lab.mutants.tracing import Trace, trace_of

KILLED, SURVIVED, IMPOSSIBLE = 1, 0, 3
TIME_IS_UP = (-signal.SIGXCPU, -signal.SIGALRM)
OUTCOMES = {SURVIVED: "survived", IMPOSSIBLE: "impossible"} | dict.fromkeys(TIME_IS_UP, "timeout")
MEMORY = 4 * 2**30  # at most this much more than before the fork


class Outcome(NamedTuple):
    outcome: str  # killed, survived, timeout, no test, impossible
    tests: int
    killed_by: str
    seconds: float


class Session:
    """A pytest plugin that hands all collected tests to `work` and runs none itself."""

    def __init__(self, package: Path, files: set[str], work: Callable[["Session"], None], most_seconds: float):
        self.package, self.files, self.work, self.most_seconds = package, files, work, most_seconds
        self.items: dict[str, pytest.Item] = {}
        self.trace = Trace({}, {})
        self.functions: dict[str, list[FunctionType]] = {}

    def pytest_collection(self) -> None:
        """The same hypothesis examples for every mutant, none stored."""
        import hypothesis  # only now: pytest wants to see it first

        phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
        hypothesis.settings.register_profile(
            "mutants", deadline=None, database=None, derandomize=True, phases=phases, max_examples=30
        )
        hypothesis.settings.load_profile("mutants")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        assert not session.testsfailed, "not all tests can be collected"
        self.items = {item.nodeid: item for item in session.items}
        self.trace = trace_of(session.items, self.package)
        _warm_up()
        self.functions = _functions_by_file(self.package, self.files)
        gc.freeze()  # shared by all children without copying
        self.work(self)
        return True

    def concerned(self, path: str, lines: tuple[int, int]) -> list[str]:
        """Tests that run one of these lines, the most specific first: those that run the least of the package."""
        wanted = set(range(lines[0], lines[1] + 1))
        found = [name for name, ran in self.trace.lines.items() if wanted & ran.get(path, set())]
        found.sort(key=lambda name: (sum(map(len, self.trace.lines[name].values())), name))
        costs = itertools.accumulate(self.trace.seconds[name] for name in found)
        return [name for name, cost in zip(found, costs, strict=True) if cost < self.most_seconds or name == found[0]]

    def run(self, path: str, code: CodeType, lines: tuple[int, int]) -> Outcome:
        names, started = self.concerned(path, lines), time.monotonic()
        if not names:
            return Outcome("no test", 0, "", 0.0)
        limit = 2 + 2 * sum(self.trace.seconds[name] for name in names)
        with tempfile.TemporaryDirectory() as folder:
            told = Path(folder) / "killed_by"
            child = os.fork()
            if child == 0:
                _limit(limit)
                self._in_the_child(path, code, names, told)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            killed_by = told.read_text() if told.exists() else ""
        outcome = OUTCOMES.get(status, "killed")
        return Outcome(outcome, len(names), killed_by, round(time.monotonic() - started, 2))

    def _in_the_child(self, path: str, code: CodeType, names: list[str], told: Path) -> None:
        status = IMPOSSIBLE
        try:
            _silence()
            swap(self.functions[path], code)
            items = [self.items[name] for name in names]
            status = SURVIVED
            for item, following in zip(items, [*items[1:], None], strict=True):
                reports = runtestprotocol(item, nextitem=following, log=False)
                if any(report.failed for report in reports):
                    status = KILLED
                    told.write_text(item.nodeid)
                    break
        except NotPossible:
            status = IMPOSSIBLE
        except BaseException:  # an exit from within a test
            status = KILLED
        finally:
            os._exit(status)


class NotPossible(Exception):
    """The mutated function has different free variables."""


def swap(functions: list[FunctionType], code: CodeType) -> None:
    """Give the functions of a file their code objects from `code`, that of the whole file."""
    new = {_place(one): one for one in _functions(code)}
    changed = [one for one in functions if one.__code__ != new.get(_place(one.__code__), one.__code__)]
    if not changed or any(one.__code__.co_freevars != new[_place(one.__code__)].co_freevars for one in changed):
        raise NotPossible
    for function in changed:
        function.__code__ = new[_place(function.__code__)]


def _place(code: CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


def _functions_by_file(package: Path, files: set[str]) -> dict[str, list[FunctionType]]:
    """All functions of these files, also those that only a decorator references."""
    for path in sorted(files):
        importlib.import_module(".".join([package.name, *Path(path).with_suffix("").parts]))
    found: dict[str, list[FunctionType]] = defaultdict(list)
    for function in [one for one in gc.get_objects() if type(one) is FunctionType]:
        found[function.__code__.co_filename.removeprefix(f"{package}/")].append(function)
    return {path: found[path] for path in files}


def _functions(code: CodeType) -> list[CodeType]:
    """The functions of a module and of its classes, not nested ones."""
    inner = [one for one in code.co_consts if isinstance(one, CodeType)]
    found = [one for one in inner if one.co_flags & 0x1]  # optimised: a function, not the body of a class
    return found + [deep for one in inner if not one.co_flags & 0x1 for deep in _functions(one)]


def _warm_up() -> None:
    """Import what torch imports lazily, once for all children."""
    torch.testing.assert_close(torch.ones(1), torch.ones(1))
    weight = torch.nn.Parameter(torch.ones(1))
    weight.grad = torch.ones(1)
    torch.optim.AdamW([weight], fused=True).step()


def _limit(seconds: float) -> None:
    """Limit processor time, wall-clock time (twenty times as much) and memory."""
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds), math.ceil(seconds)))
    signal.alarm(math.ceil(20 * seconds))
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))


def _silence() -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
