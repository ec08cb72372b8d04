"""Table 1 (b): the five nearest words of some words, in the semantic spaces of NVDM and docNADE."""

from functools import partial
from typing import Any

from varitext.reproduce import ABOUT
from varitext.reproduce.document_fits import NEWSGROUPS, Setting, fitted_model, hashes
from varitext.reproduce.engine import Experiment, Plan, Record, grid, markdown_table, results

WORDS = ("weapons", "medical", "companies", "define", "israel", "book")
NEAREST = 5
PAPER = {  # as it spells them
    "nvdm": (
        "guns weapon gun militia armed",
        "medicine health treatment disease patients",
        "expensive industry company market buy",
        "defined definition printf int sufficient",
        "israeli arab arabs lebanon lebanese",
        "books reference guide writing pages",
    ),
    "docnade": (
        "weapon shooting firearms assault armed",
        "treatment medecine patients process studies",
        "demand commercial agency company credit",
        "defined definition refer make examples",
        "israeli israelis arab palestinian arabs",
        "reading read books relevent collection",
    ),
}


def measure(model: str, seed: int, plan: Plan) -> dict[str, Any]:
    fitted = fitted_model(NEWSGROUPS, Setting(model), seed, plan)
    known = [word for word in WORDS if word in fitted.fitted_.vocabulary.index]
    nearest = {word: [name for name, _ in fitted.similar_words(word, NEAREST)] for word in known}
    return {"nearest": nearest, **hashes(NEWSGROUPS, plan)}


def table(records: list[Record]) -> str:
    """A row per model and seed below the paper's, with the number of words in common."""
    rows = []
    for model, listed in PAPER.items():
        theirs = dict(zip(WORDS, map(str.split, listed), strict=True))
        rows.append([f"{model}, paper", *listed, ""])
        for seed, result in enumerate(results(records, model=model)):
            ours = result["nearest"]
            shared = sum(len(set(ours.get(word, ())) & set(theirs[word])) for word in WORDS)
            words = [" ".join(ours.get(word, ())) for word in WORDS]
            rows.append([f"{model}, ours, seed {seed}", *words, str(shared)])
    return markdown_table(["", *(f"**{word}**" for word in WORDS), "shared with the paper"], rows)


RUNS = partial(grid, measure, 1, model=PAPER)
EXPERIMENT = Experiment("table1b", ABOUT["table1b"], RUNS, table)
