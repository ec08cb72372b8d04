"""The lines of a package that each test runs, including shared fixtures, and its processor time."""

import hashlib
import json
import os
import sys
import threading
import time
import traceback
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest

from varitext.files import write_json

CACHE = Path("build") / "mutants"
Lines = dict[str, set[int]]


class Trace(NamedTuple):
    seconds: dict[str, float]
    lines: dict[str, Lines]  # of a test: file -> lines


class Tracing:
    """A pytest plugin that fills `trace` with all tests that pass."""

    def __init__(self, root: Path):
        self.root, self.trace = f"{root}/", Trace({}, {})
        self.by_fixture: dict[int, Lines] = {}
        self.current: Lines = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[Any]:
        self.current, started = defaultdict(set), time.process_time()
        threading.settrace(self._call)
        sys.settrace(self._call)
        try:
            result = yield
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]  # the stub does not know that this is allowed
        self.trace.seconds[item.nodeid] = time.process_time() - started
        fixtures = [one for many in item._fixtureinfo.name2fixturedefs.values() for one in many]  # type: ignore[attr-defined]
        self.trace.lines[item.nodeid] = _union([self.current, *(self.by_fixture.get(id(one), {}) for one in fixtures)])
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[Any]:
        """The lines of a shared fixture count for every test that uses it, not only for the first."""
        outer, self.current = self.current, defaultdict(set)
        try:
            return (yield)
        finally:
            self.by_fixture[id(fixturedef)] = self.current
            self.current = _union([outer, self.current])

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith(self.root):
            return None
        self.current[frame.f_code.co_filename.removeprefix(self.root)].add(frame.f_lineno)
        return self._line

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            self.current[frame.f_code.co_filename.removeprefix(self.root)].add(frame.f_lineno)
        return self._line


def _union(many: list[Lines]) -> Lines:
    found: Lines = defaultdict(set)
    for lines in many:
        for path, numbers in lines.items():
            found[path] |= numbers
    return found


def trace_of(items: list[pytest.Item], package: Path) -> Trace:
    """The trace of all tests, each module in its own process; cached while tests and package are unchanged."""
    source = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(package.rglob("*.py")))).hexdigest()
    whole = Trace({}, {})
    for module in dict.fromkeys(item.path for item in items):
        own = [item for item in items if item.path == module]
        digest = hashlib.sha256(source.encode() + module.read_bytes()).hexdigest()[:16]
        cached = CACHE / f"{module.stem}-{digest}.json"
        names = [one.nodeid for one in own]
        found = json.loads(cached.read_text()) if cached.exists() else {"seconds": {}}
        if not found["seconds"].keys() >= set(names):  # some were excluded as slow then
            if not (child := os.fork()):
                _trace_into(cached, own, package)
            assert os.waitpid(child, 0)[1] == 0, f"tests of {module} fail without a mutant"
            found = json.loads(cached.read_text())
        whole.seconds.update({name: found["seconds"][name] for name in names})
        whole.lines.update({name: {path: set(ran) for path, ran in found["lines"][name].items()} for name in names})
    return whole


def _trace_into(cached: Path, items: list[pytest.Item], package: Path) -> None:
    """In a child, so that the process from which mutants are forked has run no test."""
    try:
        tracing, manager = Tracing(package), items[0].config.pluginmanager
        manager.register(tracing)
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        failed = manager.get_plugin("terminalreporter").stats.get("failed", [])
        if not failed:
            cached.parent.mkdir(parents=True, exist_ok=True)
            lines = {test: {path: sorted(ran) for path, ran in of.items()} for test, of in tracing.trace.lines.items()}
            write_json(cached, {"seconds": tracing.trace.seconds, "lines": lines})
        os._exit(len(failed) > 0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
