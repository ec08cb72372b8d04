"""README.md's table of varitext beside other tools. Numbers are from results/; yes and no are facts about the tools."""

import json
import statistics
from pathlib import Path

from lab.experiments import experiment_named
from varitext.reproduce.engine import markdown_table, read_records

HEAD = ["", "varitext", "BERTopic", "LDA (gensim, tomotopy)", "cross-encoders"]
NOTHING = "–"
FACTS = [
    ["held-out perplexity of new documents", "yes", "no", "gensim only", NOTHING],
    ["standard deviation of a document vector", "yes", "no", "no", NOTHING],
    ["identical results from the same seed", "yes", "no", "with one worker", "yes"],
    ["meaning of words that the corpus does not teach", "answers only", "yes", "no", "yes"],
    ["topic names by a language model, hierarchies on a map", "no", "yes", "no", NOTHING],
    ["calibrated P(correct), P(no answer), rank intervals", "yes", NOTHING, NOTHING, "no"],
    ["used on GPUs", "not yet", "yes", "no", "yes"],
]


def comparison_table(root: Path) -> str:
    topics = read_records(experiment_named("topics"), root / "results")
    lines = (root / "results" / "benchmark.jsonl").read_text().splitlines()
    peers = {record["settings"]["system"]: record["result"] for record in map(json.loads, lines)}
    map_of = {
        "default": _map(root, "default-ranker", {"corpus": "wikiqa", "variant": "all features"}),
        "tuned": _map(root, "minilm", {"row": "tuned"}),
    }
    ours, gensim, tomotopy = (
        f"{peers[name]['per_document_perplexity']:,.0f}" for name in ("varitext", "gensim", "tomotopy")
    )
    rows = [
        ["perplexity per document, 20 Newsgroups, 50 dimensions", ours, "none", f"{gensim}, {tomotopy}", NOTHING],
        ["coherence (NPMI) of 20 topics, raw articles", *_topics(topics, "npmi", 20, ".3f"), NOTHING],
        ["agreement with the newsgroups (NMI), 50 topics", *_topics(topics, "nmi", 50, ".3f"), NOTHING],
        [
            "processor seconds to 20 topics of 11,314 articles",
            *_topics(topics, "processor_seconds", 20, ".0f"),
            NOTHING,
        ],
        ["peak memory of that, MB", *_topics(topics, "peak_memory_mb", 20, ",.0f"), NOTHING],
        ["MAP on WikiQA", f"{map_of['default']:.3f}", NOTHING, NOTHING, f"{map_of['tuned']:.3f} (`minilm_tuned`)"],
    ]
    return markdown_table(HEAD, rows + FACTS)


def _map(root: Path, experiment: str, wanted: dict) -> float:
    records = read_records(experiment_named(experiment), root / "results")
    found = [one["result"]["map"] for one in records if wanted.items() <= one["settings"].items()]
    return statistics.mean(found)


def _topics(records: list[dict], measure: str, topics: int, form: str) -> list[str]:
    """Of the default model, BERTopic and tomotopy's LDA, means over seeds."""
    cells = []
    for system in ("regions_dcm", "bertopic", "lda"):
        wanted = {"corpus": "20newsgroups", "system": system, "topics": topics}
        found = [one["result"].get(measure) for one in records if wanted.items() <= one["settings"].items()]
        values = [value for value in found if value is not None]
        cells.append(f"{statistics.mean(values):{form}}" if values else "not measured")
    return cells
