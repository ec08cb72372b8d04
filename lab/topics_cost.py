"""What topics cost beside the fit: finding and naming them, and telling every training document its topic.

    python benchmarks/topics_cost.py --json results/topics_cost.json

All run in one process on one thread, one after the other, and seconds are those of the processor, which other programs
hardly change; the ratio to the rest of the fit is what counts. The goal: at most a tenth.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

from varitext.corpora import load_documents
from varitext.documents.model import DocumentModel
from varitext.reproduce.provenance import provenance

REPEATS = 3


def seconds_of(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def measure(corpus: str, epochs: int | None) -> dict[str, object]:
    documents = load_documents(corpus, "train")
    model = DocumentModel(threads=1, epochs=epochs)
    whole = seconds_of(lambda: model.fit(documents))
    topics = min(seconds_of(lambda: model.refit_topics(documents).topics()) for _ in range(REPEATS))
    assign = min(seconds_of(lambda: model.document_info(documents)) for _ in range(REPEATS))
    rest = whole - topics
    return {
        "corpus": corpus,
        "documents": model.fitted_.n_training_documents,
        "topics": len(model.topics()),
        "fit_seconds": whole,
        "topics_seconds": topics,
        "topics_to_rest_of_fit": topics / rest,
        "assign_all_training_documents_seconds": assign,
        "assign_to_rest_of_fit": assign / rest,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", default="20newsgroups-nvdm")
    parser.add_argument("--epochs", type=int, help="fewer than the recipe has, to try the script")
    parser.add_argument("--json", type=Path)
    typed = parser.parse_args()
    result = measure(typed.corpus, typed.epochs)
    text = json.dumps(result | provenance(), indent=1) + "\n"
    print(text, end="")
    if typed.json:
        typed.json.write_text(text, encoding="utf-8")
