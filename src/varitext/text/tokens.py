"""What a word is: the rules that cut text into tokens, and how they are applied."""

import html
import re
import unicodedata
from dataclasses import asdict, dataclass
from typing import Any

from varitext.errors import InputError
from varitext.records import check_at_least, check_choice, check_types, record_from_dict
from varitext.text.phrases import ngrams
from varitext.text.segmenting import RUNS, SEGMENTERS, segment

ALPHABETS = ("unicode", "ascii")


@dataclass(frozen=True)
class TokenRules:
    """How text becomes words.

    A word is a run of letters; digits, punctuation and underscores end it. `alphabet="unicode"` knows the letters of
    every script, with the combining marks that follow them; `"ascii"` knows a to z only, as in the paper. Runs shorter
    than `minimum_length` or longer than `maximum_length` (encoded attachments, mostly) are no words.

    `strip_html` and `strip_urls` leave out tags and addresses. A `segmenter` (chinese, japanese, thai) cuts scripts
    that have no spaces between words; `auto` lets a fit choose the one that its texts need. From `shortest_ngram` to
    `longest_ngram` words in a row are counted, or, with `phrases`, the pairs that belong together as one word.
    """

    lowercase: bool = True
    alphabet: str = "unicode"
    minimum_length: int = 2
    maximum_length: int = 40
    strip_html: bool = False
    strip_urls: bool = False
    segmenter: str = "none"
    shortest_ngram: int = 1
    longest_ngram: int = 1
    phrases: bool = False

    def __post_init__(self) -> None:
        check_types(self)
        check_choice("alphabet", self.alphabet, ALPHABETS)
        check_at_least("minimum_length", self.minimum_length, 1)
        check_at_least("maximum_length", self.maximum_length, self.minimum_length)
        check_choice("segmenter", self.segmenter, SEGMENTERS)
        check_at_least("shortest_ngram", self.shortest_ngram, 1)
        check_at_least("longest_ngram", self.longest_ngram, self.shortest_ngram)
        if self.phrases and self.longest_ngram > 1:
            raise InputError("phrases and n-grams exclude each other: phrases are the pairs that belong together")

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "TokenRules":
        return record_from_dict(cls, values)


DEFAULT_TOKEN_RULES = TokenRules()


class _LettersAndMarks(dict[int, str]):
    """A table for `str.translate` that learns each character when it first sees it: kept, removed, or a space."""

    # A soft hyphen and the zero-width joiners stand inside words and are no part of them.
    INVISIBLE = "\u00ad\u200c\u200d"

    def __missing__(self, code: int) -> str:
        character = chr(code)
        self[code] = "" if character in self.INVISIBLE else " "
        if unicodedata.category(character)[0] in "LM":
            self[code] = character
        return self[code]


_LETTERS_AND_MARKS = _LettersAndMarks()
_SYMBOLS = re.compile(r"[^\w\x00-\x7f]+")  # beyond ASCII: not letters and numerals, so marks and all the rest
# A word starts at a letter, and takes in what it can of letters, marks and, for the moment, numerals such as a half.
# A stray mark, such as the one that colours an emoji, starts no word.
_TAGS = re.compile(r"<(script|style)\b.*?</\1\s*>|<!--.*?-->|</?[a-z!][^<>]*>", re.IGNORECASE | re.DOTALL)
_ADDRESSES = re.compile(r"\b(?:https?|ftp)://\S+|\bwww\.\S+", re.IGNORECASE)
_RUN = re.compile(r"[^\W\d_][a-zA-Z\x80-\U0010ffff]*")


def _ascii_table(lowercase: bool) -> bytes:
    """For `bytes.translate`: the letters a to z stay, in lower case if so wished, and all else becomes a space."""
    letters = (chr(byte) if chr(byte).isascii() and chr(byte).isalpha() else " " for byte in range(256))
    return "".join(character.lower() if lowercase else character for character in letters).encode("ascii")


_ASCII_TABLES = {lowercase: _ascii_table(lowercase) for lowercase in (True, False)}


def tokenise(text: str, rules: TokenRules = DEFAULT_TOKEN_RULES) -> list[str]:
    """The words of `text`, in order; n-grams after them. Which pairs are phrases, only a vocabulary can say."""
    if not isinstance(text, str):
        raise InputError(f"a text must be a string, not {type(text).__name__}")
    words = tokenise_simple(simplify(text, rules), rules)
    return words if rules.longest_ngram == 1 else ngrams(words, rules.shortest_ngram, rules.longest_ngram)


def simplify(text: str, rules: TokenRules) -> str:
    """The same words in a text that is mostly ASCII, if `text` is so but for its quotation marks and dashes."""
    if rules.strip_html or rules.strip_urls or rules.segmenter in RUNS:
        text = _prepared(text, rules)
    if is_plain(text, rules):
        return text
    text = text.lower() if rules.lowercase else text
    text = _SYMBOLS.sub(lambda symbols: symbols[0].translate(_LETTERS_AND_MARKS), text)
    return unicodedata.normalize("NFC", text)  # so that "é" is one letter however it was typed


def _prepared(text: str, rules: TokenRules) -> str:
    if rules.strip_html:
        text = html.unescape(_TAGS.sub(" ", text))
    if rules.strip_urls:
        text = _ADDRESSES.sub(" ", text)
    return segment(text, rules.segmenter) if rules.segmenter in RUNS else text


def is_plain(text: str, rules: TokenRules) -> bool:
    """Whether the words of `text` are those of its ASCII letters."""
    return rules.alphabet == "ascii" or text.isascii()


def tokenise_simple(text: str, rules: TokenRules) -> list[str]:
    runs = ascii_letters(text, rules).decode("ascii").split() if is_plain(text, rules) else unicode_runs(text)
    return [run for run in runs if rules.minimum_length <= len(run) <= rules.maximum_length]


def unicode_runs(text: str) -> list[str]:
    """The words of a text of any script; `ascii_letters` is the fast way to the same for ASCII text."""
    return [word for run in _RUN.findall(text) for word in ((run,) if run.isalpha() else _without_numerals(run))]


def _without_numerals(run: str) -> list[str]:
    return _RUN.findall(run.translate(_LETTERS_AND_MARKS))


def ascii_letters(text: str, rules: TokenRules) -> bytes:
    """`text` with a space in place of every character that is not a letter from a to z."""
    if rules.lowercase and not text.isascii():
        text = text.lower()  # here, because it can make ASCII letters of others: the Kelvin sign becomes k
    return text.encode("ascii", "replace").translate(_ASCII_TABLES[rules.lowercase])
