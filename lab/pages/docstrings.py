"""Docstrings as the API reference shows them: examples that start with >>> become blocks of code."""

import re

from griffe import Extension, Object

EXAMPLE = re.compile(r"(?:^(?:>>>|\.\.\.).*\n?)+", re.MULTILINE)


class Examples(Extension):
    def on_object(self, *, obj: Object, **_: object) -> None:
        if obj.docstring is not None:
            obj.docstring.value = EXAMPLE.sub(_fenced, obj.docstring.value)


def _fenced(example: re.Match[str]) -> str:
    code = re.sub(r" *# doctest: \+SKIP", "", example[0]).rstrip()
    return f"```pycon\n{code}\n```\n"
