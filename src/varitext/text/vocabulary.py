"""Which words are counted: the rules that choose them, and the list that results."""

import difflib
from collections.abc import Sequence, Set
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from varitext.errors import InputError
from varitext.files import read_text, write_text
from varitext.records import check_at_least, check_types, record_from_dict
from varitext.text.stop_words import check_languages, stop_words_of
from varitext.text.tokens import SPACE

if TYPE_CHECKING:
    import numpy as np

SMALL_CORPUS = 20  # documents; below, "in more than half of them" says nothing about a word


@dataclass(frozen=True)
class VocabularyRules:
    """Which words are worth counting: of those that pass every rule, the `size` most frequent.

    A word must stand in `minimum_documents` documents, or in one of every hundred if that is less: a corpus of fewer
    than 200 documents keeps all its words. It must not stand in more than `maximum_document_share` of them, from 20
    documents on. `skip_most_frequent` leaves out that many of the most frequent words of all (the paper: 50).
    `stop_words` are scikit-learn's English ones, none, those of other languages by name ("german,french"), or words of
    one's own.
    """

    size: int = 10_000
    minimum_documents: int = 3
    maximum_document_share: float = 0.5
    skip_most_frequent: int = 0
    stop_words: str | tuple[str, ...] = "english"

    def __post_init__(self) -> None:
        if isinstance(self.stop_words, (list, set, frozenset)):
            object.__setattr__(self, "stop_words", tuple(self.stop_words))
        check_types(self)
        check_at_least("size", self.size, 1)
        check_at_least("minimum_documents", self.minimum_documents, 1)
        check_at_least("skip_most_frequent", self.skip_most_frequent, 0)
        if isinstance(self.stop_words, str):
            check_languages(self.stop_words)
        if not 0 < self.maximum_document_share <= 1:
            raise InputError(f"maximum_document_share must be above 0 and at most 1, not {self.maximum_document_share}")

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "VocabularyRules":
        return record_from_dict(cls, values)

    def stop_word_set(self) -> Set[str]:
        return stop_words_of(self.stop_words) if isinstance(self.stop_words, str) else frozenset(self.stop_words)

    def fewest_documents(self, documents: int) -> int:
        return min(self.minimum_documents, max(1, documents // 100))

    def most_documents(self, documents: int) -> float:
        return documents if documents < SMALL_CORPUS else self.maximum_document_share * documents


DEFAULT_VOCABULARY_RULES = VocabularyRules()


def is_line(word: Any) -> bool:
    """Whether `word` can stand in a vocabulary's file: one line, not empty, writable as UTF-8."""
    if not isinstance(word, str):
        return False
    if word.isalpha():  # nearly always, and much the faster question
        return True
    return word.splitlines() == [word] and not any("\ud800" <= character <= "\udfff" for character in word)


@dataclass(frozen=True)
class Vocabulary:
    """The words that are counted; a word's place is its column."""

    words: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", tuple(self.words))
        for number, word in enumerate(self.words, start=1):
            if not is_line(word):
                raise InputError(f"word {number} of the vocabulary, {word!r}, must be one non-empty line of text")
        if len(self.index) < len(self.words):
            twice = next(word for column, word in enumerate(self.words) if self.index[word] != column)
            raise InputError(f"the vocabulary has the word {twice!r} twice")

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def index(self) -> dict[str, int]:
        return {word: column for column, word in enumerate(self.words)}

    def spelling(self, word: str) -> str:
        """The word as it is spelled here, or an `InputError` that suggests a similar one."""
        if found := next((form for form in (word, word.lower()) if form in self.index), None):
            return found
        close = difflib.get_close_matches(word.lower(), self.index, 1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise InputError(f"{word!r} is not among the {len(self)} words of the model{hint}")

    def save(self, path: str | Path) -> None:
        """One word a line, UTF-8."""
        write_text(Path(path), "".join(f"{word}\n" for word in self.words))

    @classmethod
    def load(cls, path: str | Path) -> "Vocabulary":
        text = read_text(Path(path))
        try:
            return cls(tuple(text.removesuffix("\n").split("\n")) if text else ())
        except InputError as error:
            raise InputError(f"{path}: {error}") from None


@dataclass(frozen=True)
class WordStatistics:
    """What the rules ask of each word: in how many documents it stands, and how often in all."""

    words: Sequence[str]
    documents: "np.ndarray"
    tokens: "np.ndarray"

    def most_frequent(self, number: int, among: "np.ndarray") -> "np.ndarray":
        """The places of the `number` words with most tokens `among` the places given; ties by the word."""
        import numpy as np

        if number < len(among):  # sorting all words of a large corpus in Python would take longer than counting them
            fewest = np.partition(self.tokens[among], len(among) - number)[len(among) - number]
            among = among[self.tokens[among] >= fewest]
        among = np.array(sorted(among.tolist(), key=self.words.__getitem__), dtype=np.int64)
        return among[np.argsort(-self.tokens[among], kind="stable")][:number]


def choose_words(
    statistics: WordStatistics, corpus_size: int, rules: VocabularyRules, of_ngrams: bool = False
) -> "np.ndarray":
    """The places of the words that `rules` choose, most frequent first; no n-gram may have a stop word in it."""
    import numpy as np

    documents = statistics.documents
    suitable = documents >= rules.fewest_documents(corpus_size)
    suitable &= documents <= rules.most_documents(corpus_size)
    if rules.skip_most_frequent:
        suitable[statistics.most_frequent(rules.skip_most_frequent, np.arange(len(documents)))] = False
    stop_words = rules.stop_word_set()
    candidates = [
        place
        for place in np.flatnonzero(suitable).tolist()
        if (word := statistics.words[place]) not in stop_words
        and is_line(word)
        and not (of_ngrams and not stop_words.isdisjoint(word.split(SPACE)))
    ]
    return statistics.most_frequent(rules.size, np.array(candidates, dtype=np.int64))
