"""The generated parts of docs/topics.md, from results/."""

import json
from pathlib import Path

from lab.experiments import experiment_named
from varitext.documents.region_words import RELEVANCE
from varitext.reproduce.engine import markdown_table, read_records


def topic_blocks(root: Path) -> dict[str, str]:
    """By the name of the mark on the page."""
    experiment = experiment_named("topics")
    read = {
        name: json.loads((root / "results" / f"{name}.json").read_text()) for name in ("topics_cost", "topic_relevance")
    }
    return {
        "topics": experiment.table(read_records(experiment, root / "results")),
        "cost": cost_sentence(read["topics_cost"]),
        "relevance": relevance_table(read["topic_relevance"]["corpora"]),
    }


def cost_sentence(cost: dict) -> str:
    return (
        f"Every document model has topics, at the end of `fit`. On {cost['corpus']}, finding their number, the topics "
        f"and their names adds {100 * cost['topics_to_rest_of_fit']:.1f} % to the processor time of the rest of the "
        f"fit; `document_info` of all its training documents, surprise included, takes another "
        f"{100 * cost['assign_to_rest_of_fit']:.1f} % (`benchmarks/topics_cost.py`)."
    )


def relevance_table(corpora: dict[str, dict]) -> str:
    """NPMI, unique words and their product by lambda; the best of each corpus in bold."""
    first = next(iter(corpora.values()))
    rows = [
        [
            weight,
            *(
                _quality(found["by_lambda"][weight], float(weight) == found["best_lambda"])
                for found in corpora.values()
            ),
        ]
        for weight in first["by_lambda"]
    ]
    best = max(
        first["by_lambda"], key=lambda weight: sum(one["by_lambda"][weight]["quality"] for one in corpora.values())
    )
    said = (
        f"Topic quality by lambda: NPMI in training documents that the model has not seen, times unique words; "
        f"{first['topics']} topics, mean of {first['seeds']} seeds (`benchmarks/topic_relevance.py`). "
        f"The mean over both corpora is highest at {best}; the code has {RELEVANCE:g}."
    )
    return f"{said}\n\n{markdown_table(['lambda', *corpora], rows)}"


def _quality(found: dict[str, float], best: bool) -> str:
    mark = "**" if best else ""
    return f"{found['npmi']:.3f} x {found['unique_words']:.2f} = {mark}{found['quality']:.3f}{mark}"
