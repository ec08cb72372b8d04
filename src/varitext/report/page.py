"""The report's page: one HTML file from a template, with its tiles and tables, and charts drawn by plotly.

The content security policy allows the two scripts of the page by their hashes, and no addresses at all, so even an
escaping bug could neither run nor fetch anything.
"""

import base64
import hashlib
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
from markupsafe import Markup
from plotly.offline import get_plotlyjs

import varitext
from varitext.answers.ranker import AnswerRanker
from varitext.charts.plotly_figures import plotly_figure
from varitext.charts.records import one_line, printable
from varitext.corpora import Documents, QuestionAnswers
from varitext.documents.model import DocumentModel
from varitext.files import sha256_of


def render(template: str, **context: object) -> str:
    """The whole page; every text of the context is escaped and stripped of control characters."""
    plotly = get_plotlyjs().replace("\r\n", "\n").replace("\r", "\n")  # as the browser will read and hash it
    script = _own_file("page.js")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_own_file),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "line": one_line,
        "plotly": lambda chart: Markup(for_script(plotly_figure(chart).to_json())),
    }
    return environment.get_template(template).render(
        **context,
        version=varitext.__version__,
        style=Markup(_own_file("page.css")),
        scripts=[Markup(plotly), Markup(script)],
        hashes=[_source_hash(plotly), _source_hash(script)],
    )


def _printable(value: object) -> object:
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def for_script(json_text: str) -> str:
    """JSON for a `<script>` element: three characters are escaped, so that no tag or comment can begin or end in it."""
    return json_text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e")


def _own_file(name: str) -> str:
    return files("varitext.report").joinpath("templates", name).read_text(encoding="utf-8")


def _source_hash(script: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


# Tiles and tables

MAX_FILES = 20
MODEL_FILES = ("config.json", "weights.safetensors", "vocabulary.txt")


class Tile(NamedTuple):
    """A number with its name and an explanation."""

    name: str
    value: str
    note: str


def provenance(
    record: dict[str, Any],
    model: DocumentModel | AnswerRanker,
    source: Documents | QuestionAnswers | None,
    folder: Path | None,
) -> dict[str, dict[str, Any]]:
    """Tables by heading: the whole record, all settings, and the hashes of corpus and model files."""
    kinds = {
        "setting": model.get_params(deep=False),
        "training": model.fitted_.training,
        "network": model.fitted_.architecture,
    }
    settings = {f"{kind}: {name}": value for kind, values in kinds.items() for name, value in values.items()}
    sources = () if source is None or len(source.files) > MAX_FILES else source.files
    paths = [folder / name for name in MODEL_FILES] if folder else []
    hashes = {f"corpus: {file.name}": file.sha256 for file in sources}
    hashes |= {f"model: {path.name}": sha256_of(path) for path in paths if path.is_file()}
    tables = {"Evaluation record": record, "Settings": settings, "Files (SHA-256)": hashes}
    return {heading: values for heading, values in tables.items() if values}


def fitted_in(seconds: float, seed: int) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"in {f'{minutes} min {rest} s' if minutes else f'{seconds:.1f} s'}, seed {seed}"


def why_stopped(stopped: str, measure: str) -> str:
    """Why training stopped; `measure` is what early stopping monitored."""
    reasons = {
        "finished": "all epochs completed",
        "fitted": "not trained in epochs",
        "early": f"{measure} no longer improved",
        "time": "time limit reached",
        "interrupted": "interrupted; the best model so far was kept",
        "diverged": "training diverged; the best model so far was kept",
    }
    return reasons.get(stopped, stopped)
