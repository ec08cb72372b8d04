"""Docstrings and signatures as the API reference shows them."""

import re

from griffe import Class, Extension, Function, Object

EXAMPLE = re.compile(r"(?:^(?:>>>|\.\.\.).*\n?)+", re.MULTILINE)
DECLARED = re.compile(r"setting\(\s*([^,()]+)")


class Examples(Extension):
    def on_object(self, *, obj: Object, **_: object) -> None:
        """Examples that start with >>> become blocks of code; a declared setting shows its default."""
        if obj.docstring is not None:
            obj.docstring.value = EXAMPLE.sub(_fenced, obj.docstring.value)
        if isinstance(obj, Class) and isinstance(constructor := obj.all_members.get("__init__"), Function):
            for parameter in constructor.parameters:
                if declared := DECLARED.match(str(parameter.default)):
                    parameter.default = declared[1]


def _fenced(example: re.Match[str]) -> str:
    code = re.sub(r" *# doctest: \+SKIP", "", example[0]).rstrip()
    return f"```pycon\n{code}\n```\n"
