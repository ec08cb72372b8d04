"""Public names are documented: every class, function and method has a summary, every parameter an entry (numpydoc)."""

import contextlib
import dataclasses
import doctest
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import varitext
from varitext import latent

REPOSITORY = Path(__file__).resolve().parents[1]
PUBLIC = [getattr(varitext, name) for name in varitext.__all__ if name != "__version__"]
PUBLIC += [getattr(latent, name) for name in latent.__all__]
ADAPTERS = {"langchain": "VaritextCompressor", "llama_index": "VaritextRerank", "haystack": "VaritextRanker"}
for module, adapter in ADAPTERS.items():
    with contextlib.suppress(ImportError):  # without its framework
        PUBLIC.append(getattr(importlib.import_module(f"varitext.integrations.{module}"), adapter))
SECTION = re.compile(r"^(\w[\w ]*)\n-+\n", re.MULTILINE)


def documented(thing: object) -> Iterator[tuple[str, object]]:
    """A public name, and its public methods if it is a class."""
    name = f"{thing.__module__}.{thing.__qualname__}"
    yield name, thing
    if inspect.isclass(thing):
        for method, member in vars(thing).items():
            function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            is_ours = inspect.isfunction(function) and function.__module__ == thing.__module__  # not pydantic's
            if not method.startswith("_") and is_ours:
                yield f"{name}.{method}", function


NAMES = dict(sorted(pair for thing in PUBLIC if callable(thing) for pair in documented(thing)))


def parameters_of(thing: object) -> list[str]:
    """What a caller may pass; NamedTuples and dataclasses are called with their fields."""
    if isinstance(thing, type) and issubclass(thing, Exception):
        return []
    if isinstance(thing, type) and getattr(thing, "_is_protocol", False):
        return []
    if dataclasses.is_dataclass(thing):
        return [field.name for field in dataclasses.fields(thing) if field.init]
    called = vars(thing).get("__init__", thing) if isinstance(thing, type) else thing  # also below a metaclass
    return [name for name in inspect.signature(called).parameters if name not in ("self", "cls")]


def entries(docstring: str, section: str) -> set[str]:
    """The names that a section of a numpydoc docstring describes: lines `name : type`, `first, second : type`."""
    pieces = SECTION.split(docstring)
    text = dict(zip(pieces[1::2], pieces[2::2], strict=True)).get(section, "")
    heads = re.findall(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: :.*)?$", text, re.MULTILINE)
    return {name.strip("* ") for head in heads for name in head.split(",")}


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_is_documented(name):
    thing = NAMES[name]
    own = vars(thing).get("__doc__") if isinstance(thing, type) else thing.__doc__
    assert own and not own.startswith(f"{getattr(thing, '__name__', '')}("), f"{name} has no docstring"
    docstring = inspect.cleandoc(own)
    found, needed = entries(docstring, "Parameters") | entries(docstring, "Attributes"), parameters_of(thing)
    if not isinstance(thing, type) and len(needed) == 1:  # the summary may describe it
        found |= set(re.findall(r"`(\w+)`", docstring))
    assert not [one for one in needed if one not in found], f"{name}: parameters without an entry"
    returned = None if isinstance(thing, type) else inspect.signature(thing).return_annotation
    if "Parameters\n---" in docstring and returned not in (None, inspect.Signature.empty):
        assert re.search(r"^(Returns|Yields)\n---", docstring, re.MULTILINE), f"{name}: nothing about what it returns"


@pytest.mark.parametrize("name", [name for name in NAMES if ">>>" in (NAMES[name].__doc__ or "")])
def test_the_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    thing = NAMES[name]
    module = importlib.import_module(thing.__module__)
    found = doctest.DocTestFinder(recurse=False).find(thing, name, module)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    failed = sum(runner.run(test).failed for test in found)
    assert not failed


def test_public_names_are_those_for_type_checkers():
    """`__init__` names each home twice: for `import varitext`, which imports nothing, and for type checkers."""
    source = Path(varitext.__file__).read_text(encoding="utf-8")
    typed = dict.fromkeys(
        f"{module}:{name}"
        for module, names in re.findall(r"^    from (varitext[\w.]*) import \(?([^()]*?)\)?$", source, re.MULTILINE)
        for name in re.findall(r"(\w+) as \1\b", names)
    )
    assert sorted(typed) == sorted(f"{module}:{name}" for name, module in varitext._MODULES.items())


def test_the_citation_has_the_version():
    cited = re.search(r"^version: (\S+)$", (REPOSITORY / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert cited and cited[1] == varitext.__version__
