"""Figures that pages repeat in their prose are those of `results/`; `python -m lab pages --check` covers the tables."""

import json
from pathlib import Path

import numpy as np
import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


def mean(experiment: str, measure: str, **settings: object) -> float:
    records = map(json.loads, (REPOSITORY / "results" / f"{experiment}.jsonl").read_text().splitlines())
    found = [one["result"][measure] for one in records if settings.items() <= one["settings"].items()]
    return float(np.mean(found))


def bm25() -> float:
    records = map(json.loads, (REPOSITORY / "results" / "table4.jsonl").read_text().splitlines())
    (found,) = (one for one in records if one["settings"] == {"corpus": "wikiqa", "model": "overlap", "seed": 0})
    return float(found["result"]["rows"]["BM25"]["map"])


def ranker(variant: str) -> float:
    return mean("default-ranker", "map", corpus="wikiqa", variant=variant)


def vectors(change: str, measure: str) -> str:
    return f"{mean('recipes', measure, change=change):.3f}"


def nasm(row: str) -> str:
    records = map(json.loads, (REPOSITORY / "results" / "table4.jsonl").read_text().splitlines())
    asked = {"corpus": "wikiqa", "model": "nasm"}
    found = [one["result"]["rows"] for one in records if asked.items() <= one["settings"].items()]
    return f"{np.mean([rows[row]['map'] for rows in found]):.3f}"


def newsgroups(model: str, preset: str = "recommended") -> float:
    settings = {"corpus": "20newsgroups-nvdm", "model": model, "preset": preset, "latent_dim": 50}
    return mean("table1a", "per_document_perplexity", **settings)


@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        (
            "explanation/answer-ranker.md",
            lambda: (
                f"{ranker('one network'):.3f}, with an ensemble of five "
                f"{ranker('ensemble of 5'):.3f} (BM25: {bm25():.3f};"
            ),
        ),
        ("explanation/nasm.md", lambda: f"test questions: {nasm('NASM')} alone, {nasm('NASM + Cnt')} with counts ("),
        ("results/answers.md", lambda: f"| NASM + Cnt, the paper's model | {nasm('NASM + Cnt')} |"),
        ("results/documents.md", lambda: f"(`--preset paper`) | {newsgroups('nvdm', 'paper'):.0f} |"),
        ("explanation/nasm.md", lambda: f"reaches {ranker('one network'):.3f}."),
        (
            "tutorials/rank-answers.md",
            lambda: f"is {ranker('one network'):.3f} (higher is better; BM25: {bm25():.3f};",
        ),
        ("results/answers.md", lambda: f"BM25: {bm25():.3f};"),
        (
            "how-to/minilm.md",
            lambda: (
                f"frozen {mean('minilm', 'map', row='frozen'):.3f}, ensemble of five "
                f"{mean('minilm', 'map', row='frozen, ensemble of 5'):.3f}, "
                f"tuned {mean('minilm', 'map', row='tuned'):.3f} "
                f"(the default ranker without MiniLM: {ranker('one network'):.3f})"
            ),
        ),
        (
            "how-to/questions-and-answers.md",
            lambda: (
                f"a MAP of {vectors('recommended', 'alone')} with GloVe and {vectors('random vectors', 'alone')} with "
                f"random vectors; with counts of shared words beside it, {vectors('recommended', 'counts')} and "
                f"{vectors('random vectors', 'counts')} ("
            ),
        ),
        (
            "explanation/dcm-likelihood.md",
            lambda: (
                f"is {newsgroups('nvdm_dcm'):.0f} (lower is better; NVDM with the multinomial: "
                f"{newsgroups('nvdm'):.0f};"
            ),
        ),
    ],
)
def test_prose_repeats_the_results(page, sentence):
    text = " ".join((REPOSITORY / "docs" / page).read_text(encoding="utf-8").split())
    assert sentence() in text
