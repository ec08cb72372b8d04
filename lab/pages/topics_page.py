"""The table of topics beside other tools, from results/."""

from pathlib import Path

from lab.experiments import experiment_named
from varitext.reproduce.engine import read_records


def topic_blocks(root: Path) -> dict[str, str]:
    """By the name of the mark on the page."""
    experiment = experiment_named("topics")
    return {"topics": experiment.table(read_records(experiment, root / "results"))}
