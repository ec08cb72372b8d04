"""Guidance: words that a user wants to see in a topic of its own.

The seed words, read as a document, have a posterior mean; its direction is where a component starts, and a prior counts
it as a share of the documents. These may still draw the component elsewhere: `seeds_used` says what came of it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from varitext.documents.mixture import Mixture, Seeds, directions_of
from varitext.documents.posterior import posterior_of
from varitext.errors import InputError
from varitext.files import read_json
from varitext.models.documents.base import DocumentNetwork
from varitext.text import Vocabulary

PRIOR_DOCUMENTS = 0.02  # of all documents: what each seed counts
REPEATS = 5  # of each word in the document of seed words: one of a few words says little


class SeedTopic(NamedTuple):
    name: str
    words: tuple[str, ...]


def read_seed_topics(path: Path) -> list[SeedTopic]:
    """A JSON object of names, each with a list of words: {"space": ["orbit", "nasa"]}."""
    return seed_topics_of(read_json(path), str(path))


def seed_topics_of(given: Mapping[str, Sequence[str]], where: str = "seed_topics") -> list[SeedTopic]:
    if not isinstance(given, Mapping) or not given:
        raise InputError(f'{where}: names with lists of words are expected, such as {{"space": ["orbit", "nasa"]}}')
    for name, words in given.items():
        if isinstance(words, str) or not all(isinstance(word, str) for word in words) or not words:
            raise InputError(f"{where}: {name!r} needs a list of words")
    return [SeedTopic(name, tuple(words)) for name, words in given.items()]


def known_words(topics: Sequence[SeedTopic], vocabulary: Vocabulary) -> list[list[int]]:
    """The columns of each topic's seed words; at least one of them must be known."""
    found = []
    for topic in topics:
        found.append([vocabulary.index[word] for word in topic.words if word in vocabulary.index])
        if not found[-1]:
            raise InputError(f"none of the seed words of {topic.name!r} is among the words of the model")
    return found


def seed_directions(
    network: DocumentNetwork, vocabulary: Vocabulary, topics: Sequence[SeedTopic], documents: int
) -> Seeds | None:
    if not topics:
        return None
    counts = np.zeros((len(topics), len(vocabulary)), np.float32)
    for row, known in enumerate(known_words(topics, vocabulary)):
        counts[row, known] = REPEATS
    posterior = posterior_of(network, scipy.sparse.csr_matrix(counts))
    return Seeds(directions_of(posterior).unit, max(1.0, PRIOR_DOCUMENTS * documents))


def seeds_used(
    topics: Sequence[SeedTopic], vocabulary: Vocabulary, seeds: Seeds | None, mixture: Mixture, top: np.ndarray
) -> tuple[dict[str, Any], ...]:
    """For each seeded topic: which words were known, which are among its first, how near it stayed to its seed."""
    if seeds is None:
        return ()
    found = []
    for number, topic in enumerate(topics):
        shown = {vocabulary.words[column] for column in top[number]}
        centre = mixture.centres[number]
        found.append(
            {
                "number": number,
                "name": topic.name,
                "unknown_words": [word for word in topic.words if word not in vocabulary.index],
                "words_shown": [word for word in topic.words if word in shown],
                "cosine_to_seed": float(centre @ seeds.directions[number] / max(np.linalg.norm(centre), 1e-12)),
            }
        )
    return tuple(found)
