"""Regions as two files of the model folder, and back: topics.json, which people may read, and topics.safetensors."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from varitext.documents.mixture import Mixture
from varitext.documents.number_of_topics import Choice
from varitext.documents.region_words import DocumentShares
from varitext.documents.regions import Group, Regions
from varitext.documents.surprise import LengthLine
from varitext.documents.topic_records import TABLE_FILE, TENSOR_FILE, TypicalDocument
from varitext.documents.topic_tree import topic_tree
from varitext.errors import InputError
from varitext.text import Vocabulary


def stored_regions(regions: Regions) -> dict[str, bytes]:
    table = {
        "topics": [topic.as_dict() for topic in regions.info()],
        "choice": regions.choice.as_dict(),
        "tree": [merge._asdict() for merge in topic_tree(regions)],
        "length_line": regions.line and regions.line._asdict(),
        "seed_topics": regions.seeds,
        "groups": [group._asdict() for group in regions.groups],
        "components": [
            {"coherence": coherence, "typical": [asdict(one) for one in typical]}
            for coherence, typical in zip(regions.coherence, regions.typical, strict=True)
        ],
    }
    tensors = {
        **regions.mixture._asdict(),
        "word_probabilities": regions.word_probabilities,
        "frequencies": regions.frequencies,
        "document_shares": regions.shares.of_regions,
        "document_shares_of_all": regions.shares.of_all,
        "documents": regions.documents,
        "tokens": regions.tokens,
    }
    text = json.dumps(table, indent=1, ensure_ascii=False) + "\n"
    return {
        TABLE_FILE: text.encode(),
        TENSOR_FILE: save({name: np.ascontiguousarray(array) for name, array in tensors.items()}),
    }


def restored_regions(files: Mapping[str, bytes], vocabulary: Vocabulary, folder: Path) -> Regions | None:
    """None from a folder that was written before there were any."""
    if TABLE_FILE not in files or TENSOR_FILE not in files:
        return None
    try:
        table, tensors = json.loads(files[TABLE_FILE]), load(files[TENSOR_FILE])
    except (ValueError, SafetensorError) as error:
        raise InputError(f"{folder}: its topics cannot be read ({error})") from None
    line, choice = table["length_line"], table["choice"]
    return Regions(
        mixture=Mixture(*(tensors[name] for name in Mixture._fields)),
        word_probabilities=tensors["word_probabilities"],
        frequencies=tensors["frequencies"],
        shares=_shares(tensors),
        documents=tensors["documents"],
        tokens=tensors["tokens"],
        coherence=tuple(one["coherence"] for one in table["components"]),
        typical=tuple(_typical(one["typical"]) for one in table["components"]),
        groups=tuple(Group(one["number"], tuple(one["components"]), one["name"]) for one in table["groups"]),
        words=vocabulary.words,
        choice=Choice(choice["number"], choice["how"], tuple(map(tuple, choice["log_likelihoods"]))),
        line=line and LengthLine(**line),
        seeds=tuple(table["seed_topics"]),
    )


def _shares(tensors: dict[str, np.ndarray]) -> DocumentShares:
    """The first folders with topics ranked words by their probabilities."""
    if "document_shares" not in tensors:
        return DocumentShares(tensors["word_probabilities"], tensors["frequencies"])
    return DocumentShares(tensors["document_shares"], tensors["document_shares_of_all"])


def _typical(found: list[dict[str, Any]]) -> tuple[TypicalDocument, ...]:
    return tuple(TypicalDocument(**one) for one in found)
