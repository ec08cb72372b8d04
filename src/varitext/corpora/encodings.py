"""Bytes as text: UTF-8, with or without a byte order mark, UTF-16 with one, or the encoding that the user names."""

import codecs
import io
from collections.abc import Iterator

from varitext.errors import InputError

HINT = (
    "if it is in another encoding, name that (--encoding, encoding=): cp1252 (Windows, Western Europe), "
    "cp1251 (Cyrillic), gb18030 (Chinese), shift_jis (Japanese)"
)


def decode(content: bytes, where: str, encoding: str | None = None) -> str:
    name = _name(content[:2], encoding)
    try:
        return content.decode(name)
    except UnicodeDecodeError as error:
        raise _wrong(where, content.count(b"\n", 0, error.start) + 1, error.start, encoding) from None


def text_lines(stream: io.BufferedReader, where: str, encoding: str | None = None) -> Iterator[str]:
    """The lines of a stream as they come, each with its end."""
    if (name := _name(stream.peek(2)[:2], encoding)) != "utf-8-sig":
        yield from _wrapped_lines(stream, where, name, encoding)
        return
    before = 0
    for number, line in enumerate(stream, start=1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise _wrong(where, number, before + error.start, None) from None
        before += len(line)


def _wrapped_lines(stream: io.BufferedReader, where: str, name: str, encoding: str | None) -> Iterator[str]:
    number = 1
    try:
        for line in io.TextIOWrapper(stream, encoding=name, newline="\n"):
            yield line
            number += 1
    except UnicodeError as error:
        byte = error.start if isinstance(error, UnicodeDecodeError) else 0
        raise _wrong(where, number, byte, encoding) from None


def _name(start: bytes, encoding: str | None) -> str:
    if encoding is None:
        return "utf-16" if start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig"
    try:
        found = codecs.lookup(encoding)
    except (LookupError, ValueError):
        raise InputError(f"no encoding is called {encoding!r}; {HINT.partition(': ')[2]} are some") from None
    if not found._is_text_encoding:
        raise InputError(f"{encoding!r} is not an encoding of text")
    return "utf-8-sig" if found.name == "utf-8" else encoding


def _wrong(where: str, line: int, byte: int, encoding: str | None) -> InputError:
    if encoding is not None:
        return InputError(f"{where}, line {line}: byte {byte} is not {encoding} text; name another encoding")
    return InputError(f"{where}, line {line}: byte {byte} is not UTF-8 text; {HINT}")
