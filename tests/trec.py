"""TREC files as tests read them."""

from pathlib import Path


def read_columns(path: Path) -> list[tuple[str, ...]]:
    """The columns of a run or qrels file."""
    return list(zip(*(line.split() for line in path.read_text(encoding="utf-8").split("\n") if line), strict=True))
