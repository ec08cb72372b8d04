"""What stands at the top of every report: one number that counts, tiles around it, and where it all comes from."""

from pathlib import Path
from typing import Any, NamedTuple

from varitext.answers.ranker import AnswerRanker
from varitext.corpora.documents import Documents
from varitext.corpora.question_answers import QuestionAnswers
from varitext.documents.model import DocumentModel
from varitext.files import sha256_of

MAX_FILES = 20
MODEL_FILES = ("config.json", "weights.safetensors", "vocabulary.txt")


class Tile(NamedTuple):
    """A number with its name and what to know about it."""

    name: str
    value: str
    note: str


class Fact(NamedTuple):
    name: str
    value: str


class Table(NamedTuple):
    """Every value to the last digit, for those who compare."""

    summary: str
    values: dict[str, Any]


def provenance(
    record: dict[str, Any],
    model: DocumentModel | AnswerRanker,
    source: Documents | QuestionAnswers | None,
    folder: Path | None,
) -> list[Table]:
    """The whole record, all that was set, and the hashes of corpus and model files."""
    tables = [
        Table("The whole record", record),
        Table("All settings", _settings(model)),
        Table("Files (SHA-256)", _file_hashes(source, folder)),
    ]
    return [table for table in tables if table.values]


def fingerprint(source: Documents | QuestionAnswers | None) -> list[Fact]:
    """The SHA-256 of the corpus, as `varitext evaluate` gives it."""
    return [] if source is None else [Fact("SHA-256", source.sha256)]


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"


def why_stopped(stopped: str, measure: str) -> Fact:
    """`measure` is what had stopped getting better."""
    reasons = {
        "finished": "it had made all its passes",
        "fitted": "it is fitted without epochs",
        "early": f"{measure} had stopped getting better",
        "time": "the time limit was reached",
        "interrupted": "it was interrupted; the best model so far was kept",
        "diverged": "training diverged; the best model so far was kept",
    }
    return Fact("stopped", f"because {reasons.get(stopped, stopped)}")


def _file_hashes(source: Documents | QuestionAnswers | None, folder: Path | None) -> dict[str, str]:
    """Of every file that the corpus was read from, if they are few, and of the model's own."""
    files = () if source is None or len(source.files) > MAX_FILES else source.files
    paths = [folder / name for name in MODEL_FILES] if folder else []
    hashes = {f"corpus: {file.name}": file.sha256 for file in files}
    return hashes | {f"model: {path.name}": sha256_of(path) for path in paths if path.is_file()}


def _settings(model: DocumentModel | AnswerRanker) -> dict[str, Any]:
    """All that was set, and what training and the network were given in the end."""
    named = {
        "setting": model.get_params(deep=False),
        "training": model.fitted_.training,
        "network": model.fitted_.architecture,
    }
    return {f"{kind}: {name}": value for kind, values in named.items() for name, value in values.items()}
