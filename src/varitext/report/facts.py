"""What stands at the top of every report: one figure that counts, tiles around it, and where it all comes from."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from varitext.corpora.documents import Documents
from varitext.corpora.question_answers import QuestionAnswers
from varitext.files import sha256_of
from varitext.report.escaping import for_html

if TYPE_CHECKING:
    from varitext.answers.ranker import AnswerRanker
    from varitext.documents.model import DocumentModel

MOST_FILES = 20
LONGEST_VALUE = 2000  # characters of a value in a table
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
    """Every value to the last digit, for those who compare; nothing where there are none."""
    if not values:
        return ""
    rows = "".join(
        f'<tr><th scope="row">{for_html(name)}</th><td>{for_html(value, LONGEST_VALUE)}</td></tr>'
        for name, value in values.items()
    )
    return f"<details><summary>{for_html(summary)}</summary><table>{rows}</table></details>"


def fingerprint(source: Documents | QuestionAnswers | None) -> list[tuple[str, str]]:
    """The SHA-256 of the corpus, as `varitext evaluate` gives it."""
    return [] if source is None else [("SHA-256", f'<span class="hash">{for_html(source.sha256)}</span>')]


def file_hashes(source: Documents | QuestionAnswers | None, folder: Path | None) -> dict[str, str]:
    """The SHA-256 of every file that the corpus was read from, if they are few, and of the model's own."""
    files = [] if source is None or len(source.files) > MOST_FILES else source.files
    paths = [folder / name for name in MODEL_FILES] if folder else []
    hashes = {f"corpus: {file.name}": file.sha256 for file in files}
    return hashes | {f"model: {path.name}": sha256_of(path) for path in paths if path.is_file()}


def settings_of(model: "DocumentModel | AnswerRanker") -> dict[str, Any]:
    """All that was set, and what training and the network were given in the end."""
    from varitext.answers.ranker import AnswerRanker

    chosen = model.settings.flat() if isinstance(model, AnswerRanker) else model.get_params(deep=False)
    named = {"setting": chosen, "training": model.training_, "network": model.architecture_}
    return {f"{kind}: {name}": value for kind, values in named.items() for name, value in values.items()}


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
