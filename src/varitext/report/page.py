"""A report from its template: one file that holds its style, its scripts and the data of its charts.

The content security policy allows the two scripts of the page by their hash and no address at all, so that even a
mistake in escaping could neither run nor fetch anything.
"""

import base64
import hashlib
from importlib.resources import files

import jinja2
from markupsafe import Markup
from plotly.offline import get_plotlyjs

import varitext
from varitext.report.drawing.charts import Chart
from varitext.report.drawing.interactive import plotly_figure
from varitext.report.escaping import for_script, one_line, printable


def render(template: str, **context: object) -> str:
    """The whole page; every text of the context is escaped and printed without control characters."""
    plotly = get_plotlyjs().replace("\r\n", "\n").replace("\r", "\n")  # as the browser will read and hash it
    script = _own_file("page.js")
    return (
        _environment()
        .get_template(template)
        .render(
            **context,
            version=varitext.__version__,
            style=Markup(_own_file("page.css")),
            scripts=[Markup(plotly), Markup(script)],
            hashes=[_source_hash(plotly), _source_hash(script)],
        )
    )


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_own_file),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"line": one_line, "plotly": _plotly_json}
    return environment


def _printable(value: object) -> object:
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _plotly_json(chart: Chart) -> Markup:
    return Markup(for_script(plotly_figure(chart).to_json()))


def _own_file(name: str) -> str:
    return files("varitext.report").joinpath("templates", name).read_text(encoding="utf-8")


def _source_hash(script: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"
