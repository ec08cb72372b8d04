"""The page around a report: one file that holds its style, its scripts and the data of its figures.

The content security policy allows the two scripts of the page by their hash and no address at all, so that even a
mistake in escaping could neither run nor fetch anything.
"""

import base64
import hashlib
from importlib.resources import files as package_files

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

import varitext
from varitext.report.escaping import for_html, for_script


def report_page(name: str, top: str, sections: list[str]) -> str:
    """A whole report; `name` is text, `top` and `sections` are HTML."""
    header = f'<header class="top"><p class="kind">varitext report</p><h1 dir="auto">{for_html(name)}</h1></header>'
    return html_page(f"{for_html(name)} · varitext", f"{header}<section>{top}</section>\n{''.join(sections)}")


def html_page(title: str, body: str) -> str:
    """A whole page around `body`; plotly comes last, so that the text is there at once."""
    style, script = _own_file("page.css"), _own_file("page.js")
    plotly = get_plotlyjs().replace("\r\n", "\n").replace("\r", "\n")  # as the browser will read and hash it
    policy = (
        f"default-src 'none'; script-src {_source_hash(plotly)} {_source_hash(script)}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="color-scheme" content="light dark">\n<title>{title}</title>\n<style>\n{style}</style>\n</head>\n'
        f"<body>\n<main>\n{body}\n</main>\n<footer><p>Made by varitext {varitext.__version__}. "
        "This file holds all that it shows and fetches nothing.</p></footer>\n"
        f"<script>{plotly}</script>\n<script>{script}</script>\n</body>\n</html>\n"
    )


def drawn(figure: go.Figure, description: str) -> str:
    """A figure's place in the page, with its height kept free, and its data for the script to draw."""
    return (
        f'<div class="drawn" role="img" aria-label="{for_html(description)}" style="height:{figure.layout.height}px">'
        f'<script type="application/json">{for_script(figure.to_json())}</script></div>'
    )


def section(heading: str, reading: str, body: str) -> str:
    """A picture with a sentence that says how to read it."""
    return f'<section><h2>{heading}</h2><p class="reading">{reading}</p>{body}</section>\n'


def beside_each_other(figures: list[tuple[go.Figure, str]]) -> str:
    """Figures with what each shows, in pairs where the page is wide enough."""
    return f'<div class="pair">{"".join(drawn(figure, description) for figure, description in figures)}</div>'


def _own_file(name: str) -> str:
    return package_files("varitext.report").joinpath(name).read_text(encoding="utf-8")


def _source_hash(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
