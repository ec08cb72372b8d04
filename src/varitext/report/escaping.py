"""Other people's text stays text: what Jinja2 does not see to, for plotly, scripts and files."""

import html
import re
import textwrap

# Controls, lone surrogates (which no file can hold) and marks that turn the direction of the text after them.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029\u202a-\u202e\u2066-\u2069]+")


def printable(text: str) -> str:
    """Without what no file can hold or what would turn the direction of the text after it."""
    return _UNPRINTABLE.sub(" ", text)


def one_line(text: object, longest: int = 160) -> str:
    """Printable text on one line, cut at a word if it is long."""
    line = " ".join(printable(str(text)).split())
    if len(line) <= longest:
        return line
    start, space, _ = line[:longest].rpartition(" ")
    return (start if space else line[: longest - 1]) + "…"


def for_plotly(text: object) -> str:
    """Safe where plotly reads a little HTML (<b>, <br>, <a>): names, ticks, annotations, hover texts.

    Quotes stay: plotly knows `&lt;` and `&amp;` but would show `&quot;` as it stands.
    """
    return html.escape(one_line(text), quote=False)


def wrapped_for_plotly(text: object, width: int = 48, lines: int = 4) -> str:
    """The same on several lines: plotly does not wrap hover texts itself."""
    wrapped = textwrap.wrap(one_line(text), width, max_lines=lines, placeholder=" …")
    return "<br>".join(map(for_plotly, wrapped))


def for_script(json_text: str) -> str:
    """JSON inside a <script> element: without these three characters no tag or comment can begin or end in it."""
    return json_text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e")
