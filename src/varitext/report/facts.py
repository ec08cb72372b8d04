"""What stands at the top of every report: one figure that counts, tiles around it, and where it all comes from."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from varitext.corpora.documents import Documents
from varitext.corpora.question_answers import QuestionAnswers
from varitext.files import sha256_of
from varitext.report.escaping import for_html

MOST_FILES = 4
MODEL_FILES = ("config.json", "weights.safetensors", "vocabulary.txt")


class Tile(NamedTuple):
    """A small figure; the texts are HTML."""

    name: str
    figure: str
    note: str


def headline(hero: Tile, tiles: Iterable[Tile]) -> str:
    large = (
        f'<div class="hero"><p class="name">{hero.name}</p><p class="figure">{hero.figure}</p>'
        f'<p class="note">{hero.note}</p></div>'
    )
    return f'<div class="headline">{large}<dl class="tiles">{"".join(map(_tile, tiles))}</dl></div>'


def facts(named: Iterable[tuple[str, str]]) -> str:
    """A list that can be copied into a paper; the texts are HTML."""
    rows = "".join(f"<div><dt>{name}</dt><dd>{fact}</dd></div>" for name, fact in named)
    return f'<dl class="facts">{rows}</dl>'


def folded_table(summary: str, values: Mapping[str, Any]) -> str:
    """Every value to the last digit, for those who compare."""
    rows = "".join(
        f'<tr><th scope="row">{for_html(name)}</th><td>{for_html(value)}</td></tr>' for name, value in values.items()
    )
    return f"<details><summary>{for_html(summary)}</summary><table>{rows}</table></details>"


def fingerprints(source: Documents | QuestionAnswers | None) -> list[tuple[str, str]]:
    """The SHA-256 of the corpus, as `varitext evaluate` gives it, and of its files if they are few."""
    if source is None:
        return []
    files = [("file", f"{for_html(file.name)} {_hash(file.sha256)}") for file in source.files]
    return [("SHA-256", _hash(source.sha256)), *(files if len(files) <= MOST_FILES else [])]


def model_fingerprints(folder: Path | None) -> list[tuple[str, str]]:
    """The SHA-256 of what the model folder holds."""
    paths = [folder / name for name in MODEL_FILES] if folder else []
    return [("model file", f"{path.name} {_hash(sha256_of(path))}") for path in paths if path.is_file()]


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"


def why_stopped(stopped: str, measure: str) -> str:
    """As HTML; `measure` is what had stopped getting better."""
    reasons = {
        "finished": "it had made all its passes",
        "fitted": "it learns in one go",
        "early": f"{measure} had stopped getting better",
        "time": "the time limit was reached",
        "interrupted": "it was interrupted; the best model so far was kept",
        "diverged": "training diverged; the best model so far was kept",
    }
    return f"because {for_html(reasons.get(stopped, stopped))}"


def _tile(tile: Tile) -> str:
    return f'<div><dt>{tile.name}</dt><dd><b>{tile.figure}</b><span class="note">{tile.note}</span></dd></div>'


def _hash(sha256: str) -> str:
    return f'<span class="hash">{for_html(sha256)}</span>'
