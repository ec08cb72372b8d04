"""Which words are counted: the rules that choose them, and the vocabulary."""

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

SMALL_CORPUS = 20  # documents; with fewer, a word in half of them is not unusual


@dataclass(frozen=True)
class VocabularyRules:
    """Which words are counted: the most frequent ones of those that pass every rule.

    Parameters
    ----------
    size : int, default=10_000
        Largest number of words.
    minimum_documents : int, default=3
        A word must occur in this many documents, or in 1 % of them if that is fewer: a corpus of fewer than 200
        documents keeps all words.
    maximum_document_share : float, default=0.5
        A word must not occur in a larger share of the documents. Applies from 20 documents on.
    skip_most_frequent : int, default=0
        Leave out the most frequent words of all (the paper: 50).
    stop_words : str or tuple of str, default="auto"
        Words to leave out: "auto", those of the languages that the texts of a fit are in, English if that is not
        certain; "none"; one or more languages ("german,french"); or the words themselves.

    Examples
    --------
    >>> from varitext import DocumentModel, VocabularyRules
    >>> model = DocumentModel(vocabulary_rules=VocabularyRules(size=2000, stop_words="german"))
    """

    size: int = 10_000
    minimum_documents: int = 3
    maximum_document_share: float = 0.5
    skip_most_frequent: int = 0
    stop_words: str | tuple[str, ...] = "auto"

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
        """The rules as a plain dictionary."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "VocabularyRules":
        """The rules from `values` that `as_dict` returned; missing ones have their defaults."""
        return record_from_dict(cls, values)

    def stop_word_set(self) -> Set[str]:
        """The words to leave out."""
        return stop_words_of(self.stop_words) if isinstance(self.stop_words, str) else frozenset(self.stop_words)


DEFAULT_VOCABULARY_RULES = VocabularyRules()


def is_line(word: Any) -> bool:
    """Whether `word` can be a line of a vocabulary file: not empty, and writable as UTF-8."""
    if not isinstance(word, str):
        return False
    if word.isalpha():  # nearly always, and much faster to check
        return True
    return word.splitlines() == [word] and not any("\ud800" <= character <= "\udfff" for character in word)


@dataclass(frozen=True)
class Vocabulary:
    """The words that are counted; a word's place is its column.

    Parameters
    ----------
    words : tuple of str
        Distinct words, each one non-empty line of text.

    Examples
    --------
    >>> from varitext import Vocabulary
    >>> Vocabulary(("moon", "goal")).index["goal"]
    1
    """

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
        """`word` as it is spelled in the vocabulary, or an `InputError` that suggests a similar one."""
        if found := next((form for form in (word, word.lower()) if form in self.index), None):
            return found
        close = difflib.get_close_matches(word.lower(), self.index, 1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise InputError(f"{word!r} is not among the {len(self):,} words of the model{hint}")

    def save(self, path: str | Path) -> None:
        """Write one word per line to `path`, in UTF-8."""
        write_text(Path(path), "".join(f"{word}\n" for word in self.words))

    @classmethod
    def load(cls, path: str | Path) -> "Vocabulary":
        """Read what `save` wrote to `path`."""
        text = read_text(Path(path))
        try:
            return cls(tuple(text.removesuffix("\n").split("\n")) if text else ())
        except InputError as error:
            raise InputError(f"{path}: {error}") from None


@dataclass(frozen=True)
class WordStatistics:
    """The number of documents each word occurs in, and its occurrences in all."""

    words: Sequence[str]
    documents: "np.ndarray"
    tokens: "np.ndarray"

    def most_frequent(self, number: int, among: "np.ndarray") -> "np.ndarray":
        """The places of the `number` most frequent words `among` the places given; ties in alphabetical order."""
        import numpy as np

        if number < len(among):  # sorting all words of a large corpus in Python would take longer than counting them
            fewest = np.partition(self.tokens[among], len(among) - number)[len(among) - number]
            among = among[self.tokens[among] >= fewest]
        among = np.array(sorted(among.tolist(), key=self.words.__getitem__), dtype=np.int64)
        return among[np.argsort(-self.tokens[among], kind="stable")][:number]


def choose_words(
    statistics: WordStatistics, corpus_size: int, rules: VocabularyRules, of_ngrams: bool = False
) -> "np.ndarray":
    """The places of the words that `rules` choose, most frequent first; n-grams with stop words are left out."""
    import numpy as np

    documents = statistics.documents
    fewest = min(rules.minimum_documents, max(1, corpus_size // 100))
    most = corpus_size if corpus_size < SMALL_CORPUS else rules.maximum_document_share * corpus_size
    suitable = (documents >= fewest) & (documents <= most)
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
    if not candidates:
        rare = f", in fewer than {fewest} documents" if fewest > 1 else ""
        common = f" or in more than {100 * rules.maximum_document_share:.0f} % of them" if most < corpus_size else ""
        raise InputError(
            f"No usable words in {corpus_size} documents: all are stop words{rare}{common}. "
            "Try minimum_documents=1, maximum_document_share=1 or stop_words='none' (--min-documents 1, --max-share 1, "
            "--stop-words none)."
        )
    return statistics.most_frequent(rules.size, np.array(candidates, dtype=np.int64))
