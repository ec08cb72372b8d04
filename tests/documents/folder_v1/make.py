"""Writes the model folder beside this file, and what it gives, once: version 1 of the format stays loadable.

    PYTHONPATH=src python tests/documents/folder_v1/make.py

A folder here is never written again. A new version of the format gets a folder of its own.
"""

import json
from pathlib import Path

from varitext import DocumentModel

HERE = Path(__file__).parent
TEXTS = ["orbit moon rocket launch", "goal match team ball", "bread oven flour yeast"] * 8
QUERIES = ["rocket launch moon", "oven bread bread", "team goal orbit"]

if __name__ == "__main__":
    settings = {
        "latent_dim": 2,
        "epochs": 30,
        "learning_rate": 0.05,
        "n_topics": 3,
        "threads": 1,
        "network": {"hidden_dim": 8},
    }
    model = DocumentModel(**settings, seed_topics={"baking": ["bread", "oven"]}).fit(TEXTS).rename_topic(1, "first")
    model.save(HERE / "model")
    posterior = model.posterior(QUERIES)
    record = model.perplexity_record(QUERIES)
    expected = {
        "mean": posterior.mean.tolist(),
        "std": posterior.std.tolist(),
        "memberships": model.topic_memberships(QUERIES).tolist(),
        "perplexity": record.per_document_perplexity,
        "topics": [[topic.number, topic.name, topic.documents, list(topic.words[:4])] for topic in model.topics()],
        "dimensions": [list(dimension.words[:4]) for dimension in model.latent_dimensions()],
    }
    (HERE / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
