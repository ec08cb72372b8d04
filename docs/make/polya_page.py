"""The tables of docs/polya.md: the experiment `likelihoods`, and the corpora of benchmarks/likelihoods.py."""

import json
from pathlib import Path

from varitext.experiments import experiment_named
from varitext.experiments.runs import markdown_table, read_records


def polya_parts(root: Path) -> dict[str, str]:
    """By the names of the marks on the page."""
    experiment = experiment_named("likelihoods")
    corpora = json.loads((root / "results" / "likelihoods_corpora.json").read_text())
    return {
        "likelihoods": experiment.table(read_records(experiment, root / "results")),
        "corpora": corpora_table(corpora),
    }


def corpora_table(results: list[dict]) -> str:
    head = ["corpus", "documents", "words", "words per document", "unigram", "multinomial", "Polya", "ratio"]
    head += ["importance-weighted ratio", "fit, CPU s"]
    return markdown_table(head, [_row(result) for result in results])


def _row(result: dict) -> list[str]:
    none, bursts = result["nvdm"], result["nvdm_polya"]
    sizes = [f"{result['documents']:,}", f"{result['words']:,}", str(result["words_per_document"])]
    bounds = [f"{value:.0f}" for value in (none["unigram"], none["bound"], bursts["bound"])]
    ratios = [f"{bursts[name] / none[name]:.3f}" for name in ("bound", "importance_weighted")]
    seconds = f"{none['fit_cpu_seconds']:.0f} / {bursts['fit_cpu_seconds']:.0f}"
    return [result["corpus"], *sizes, *bounds, *ratios, seconds]
