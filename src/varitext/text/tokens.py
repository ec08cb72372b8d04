"""From texts to words: the rules that split text into tokens, word segmentation, n-grams and phrases, and stems."""

import html
import importlib.util
import math
import re
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import islice
from typing import Any

import numpy as np

from varitext.compiled.words import INVISIBLE, MARK, RARE
from varitext.errors import InputError
from varitext.records import check_at_least, check_choice, check_types, record_from_dict

ALPHABETS = ("unicode", "ascii")
SEGMENTER_PACKAGES = {"chinese": "rjieba", "japanese": "janome", "thai": "pythainlp"}  # the extra `segment`
SEGMENTERS = ("none", "auto", *SEGMENTER_PACKAGES)
SPACE = " "  # between the words of an n-gram or phrase


@dataclass(frozen=True)
class TokenRules:
    """How text is split into words.

    A word is a run of letters; digits, punctuation and underscores end it. Change a rule by making a new record, for
    example ``DocumentModel(token_rules=TokenRules(strip_html=True))``.

    Parameters
    ----------
    lowercase : bool, default=True
        Convert words to lower case.
    alphabet : {"unicode", "ascii"}, default="unicode"
        "unicode" accepts letters of every script with their combining marks, "ascii" only a to z, as in the paper.
    minimum_length : int, default=2
        Shortest word, in letters.
    maximum_length : int, default=40
        Longest word, in letters. Longer runs are mostly encoded attachments.
    strip_html : bool, default=False
        Remove HTML tags and comments, and decode entities.
    strip_urls : bool, default=False
        Remove web addresses.
    segmenter : {"none", "auto", "chinese", "japanese", "thai"}, default="none"
        Word segmenter for scripts without spaces between words. "auto" lets a fit choose by its texts.
    shortest_ngram : int, default=1
        Shortest n-gram to count, in words.
    longest_ngram : int, default=1
        Longest n-gram to count, in words.
    phrases : bool, default=False
        Count pairs of words that belong together, such as "new york", as one word. Excludes n-grams.

    Examples
    --------
    >>> from varitext import TokenRules
    >>> from varitext.text import tokenise
    >>> tokenise("A <b>Rocket</b> to the moon!", TokenRules(strip_html=True))
    ['rocket', 'to', 'the', 'moon']
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
            raise InputError("phrases and n-grams cannot be combined. Use one of them.")

    def as_dict(self) -> dict[str, Any]:
        """The rules as a plain dictionary."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "TokenRules":
        """The rules from `values` that `as_dict` returned; missing ones have their defaults."""
        return record_from_dict(cls, values)


DEFAULT_TOKEN_RULES = TokenRules()


class _LettersAndMarks(dict[int, str]):
    """A table for `str.translate`, filled on first use: a character is kept, removed, or replaced by a space."""

    # soft hyphen and zero-width joiners, which occur inside words
    INVISIBLE = "\u00ad\u200c\u200d"

    def __missing__(self, code: int) -> str:
        character = chr(code)
        self[code] = "" if character in self.INVISIBLE else " "
        if unicodedata.category(character)[0] in "LM":
            self[code] = character
        return self[code]


_LETTERS_AND_MARKS = _LettersAndMarks()
_SYMBOLS = re.compile(r"[^\w\x00-\x7f]+")  # beyond ASCII: everything but letters and numerals
_TAGS = re.compile(r"<(script|style)\b.*?</\1\s*>|<!--.*?-->|</?[a-z!][^<>]*>", re.IGNORECASE | re.DOTALL)
_ADDRESSES = re.compile(r"\b(?:https?|ftp)://\S+|\bwww\.\S+", re.IGNORECASE)
# A word starts at a letter and takes in letters, marks and, for the moment, numerals such as a half. A stray mark, such
# as the one that colours an emoji, does not start a word.
_RUN = re.compile(r"[^\W\d_][a-zA-Z\x80-\U0010ffff]*")


def _ascii_table(lowercase: bool) -> bytes:
    """For `bytes.translate`: the letters a to z stay, all else becomes a space."""
    letters = (chr(byte) if chr(byte).isascii() and chr(byte).isalpha() else " " for byte in range(256))
    return "".join(character.lower() if lowercase else character for character in letters).encode("ascii")


_ASCII_TABLES = {lowercase: _ascii_table(lowercase) for lowercase in (True, False)}


def tokenise(text: str, rules: TokenRules = DEFAULT_TOKEN_RULES) -> list[str]:
    """The words of `text` in order, then its n-grams. Phrases are found by counting, not here."""
    if not isinstance(text, str):
        raise InputError(f"a text must be a string, not {type(text).__name__}")
    words = tokenise_simple(simplify(text, rules), rules)
    return words if rules.longest_ngram == 1 else ngrams(words, rules.shortest_ngram, rules.longest_ngram)


def simplify(text: str, rules: TokenRules) -> str:
    """`text` with the same words, and in ASCII if only its quotation marks and dashes are not."""
    text = without_markup(text, rules)
    if is_plain(text, rules):
        return text
    text = text.lower() if rules.lowercase else text
    text = _SYMBOLS.sub(lambda symbols: symbols[0].translate(_LETTERS_AND_MARKS), text)
    return unicodedata.normalize("NFC", text)  # so that "é" is one letter however it was typed


def without_markup(text: str, rules: TokenRules) -> str:
    """`text` without HTML and addresses, and with spaces between words, as the rules ask."""
    if rules.strip_html:
        text = html.unescape(_TAGS.sub(" ", text))
    if rules.strip_urls:
        text = _ADDRESSES.sub(" ", text)
    return segment(text, rules.segmenter) if rules.segmenter in RUNS else text


def is_plain(text: str, rules: TokenRules) -> bool:
    """Whether all letters of words in `text` are ASCII."""
    return rules.alphabet == "ascii" or text.isascii()


def tokenise_simple(text: str, rules: TokenRules) -> list[str]:
    runs = ascii_letters(text, rules).decode("ascii").split() if is_plain(text, rules) else unicode_runs(text)
    return [run for run in runs if rules.minimum_length <= len(run) <= rules.maximum_length]


def unicode_runs(text: str) -> list[str]:
    """The words of a text in any script; `ascii_letters` is faster for ASCII text."""
    runs = _RUN.findall(text)  # some with numerals in them
    cleaned = ((run,) if run.isalpha() else _RUN.findall(run.translate(_LETTERS_AND_MARKS)) for run in runs)
    return [word for words in cleaned for word in words]


def ascii_letters(text: str, rules: TokenRules) -> bytes:
    """`text` with a space in place of every character that is not a letter from a to z."""
    return ascii_bytes(text, rules).translate(_ASCII_TABLES[rules.lowercase])


def ascii_bytes(text: str, rules: TokenRules) -> bytes:
    """`text` and a space in ASCII; a question mark in place of every other character."""
    if rules.lowercase and not text.isascii():
        text = text.lower()  # here, because lower case can be ASCII: the Kelvin sign becomes k
    return f"{text} ".encode("ascii", "replace")


# Unicode for the compiled counter (`compiled/words.py`): what `simplify` and `unicode_runs` do to a text, character by
# character. Not every text can be read so: "é" may be two characters that become one.

TABLE_SIZE = 1 << 17  # code points; beyond are rare Han characters
JAMO = {*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)}  # Hangul vowels and final consonants, which become syllables


def utf32(text: str) -> bytes:
    return f"{text} ".encode("utf-32-le", "surrogatepass")


@cache
def character_table(lowercase: bool) -> np.ndarray:
    """For each code point what it becomes in a word: itself or its lower case, with MARK; INVISIBLE; RARE; or 0."""
    pairs = (unicodedata.decomposition(chr(code)).split() for code in range(TABLE_SIZE))
    joined = {int(parts[1], 16) for parts in pairs if len(parts) == 2 and not parts[0].startswith("<")} | JAMO
    return np.fromiter((_entry(chr(code), lowercase, joined) for code in range(TABLE_SIZE)), np.uint32, TABLE_SIZE)


def _entry(character: str, lowercase: bool, joined: Set[int]) -> int:
    """`joined`: characters that may become one with the character before them."""
    small = character.lower() if lowercase else character
    category = unicodedata.category(small) if len(small) == 1 else "L"
    if character in _LettersAndMarks.INVISIBLE:
        return INVISIBLE
    if category[0] not in "LM":
        return 0
    changes = len(small) > 1 or character == "Σ" or not unicodedata.is_normalized("NFC", small)
    if changes or ord(small) in joined or unicodedata.combining(small):
        return RARE
    return ord(small) | (MARK if category[0] == "M" else 0)


# Segmentation of scripts without spaces between words

HAN = "\u3005\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
KANA = "\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"
THAI = "\u0e00-\u0e7f"
RUNS = {"chinese": re.compile(f"[{HAN}]+"), "japanese": re.compile(f"[{HAN}{KANA}]+"), "thai": re.compile(f"[{THAI}]+")}
_KANA = re.compile(f"[{KANA}]")
INSTALL = "pip install 'varitext[segment]'"
SAMPLE_DOCUMENTS, SAMPLE_CHARACTERS = 200, 1000  # from which the script is detected
MIN_SHARE = 0.2  # of all letters, for a script to be the script of a text
KANA_SHARE = 0.1  # Japanese has far more, Chinese none


def segment(text: str, language: str) -> str:
    """The text with spaces between the words of that language; other scripts stay as they are."""
    return RUNS[language].sub(lambda run: f" {' '.join(_cutter(language)(run[0]))} ", text)


@cache
def _cutter(language: str) -> Callable[[str], Iterable[str]]:
    try:
        match language:
            case "chinese":
                import rjieba

                return rjieba.cut
            case "japanese":
                from janome.tokenizer import Tokenizer

                tokenizer = Tokenizer(wakati=True)
                return lambda run: tokenizer.tokenize(run)
        from pythainlp.tokenize import word_tokenize

        return lambda run: word_tokenize(run, keep_whitespace=False)
    except ImportError:
        raise InputError(
            f"splitting {language.title()} text into words needs {SEGMENTER_PACKAGES[language]}: {INSTALL}"
        ) from None


def language_without_spaces(texts: Iterable[str]) -> str | None:
    """chinese, japanese or thai, if the first documents are mostly in that script."""
    sample = " ".join(text[:SAMPLE_CHARACTERS] for text in islice(texts, SAMPLE_DOCUMENTS))
    letters = sum(character.isalpha() for character in sample) or 1
    of_script = {language: sum(map(len, run.findall(sample))) for language, run in RUNS.items()}
    if of_script["thai"] >= MIN_SHARE * letters:
        return "thai"
    if of_script["japanese"] < MIN_SHARE * letters:
        return None
    return "japanese" if len(_KANA.findall(sample)) >= KANA_SHARE * of_script["japanese"] else "chinese"


def resolve_segmenter(rules: TokenRules, texts: Iterable[str]) -> TokenRules:
    """The rules with the segmenter that `auto` selects, by the script of the first texts and what is installed."""
    needed = language_without_spaces(texts)
    is_installed = needed is not None and importlib.util.find_spec(SEGMENTER_PACKAGES[needed]) is not None
    segmenter = rules.segmenter
    if segmenter == "auto":
        segmenter = needed if needed and is_installed else "none"
    if needed and segmenter == "none":
        remedy = f"TokenRules(segmenter={needed!r}), --segmenter {needed}" if is_installed else INSTALL
        warnings.warn(
            f"the text looks {needed.title()}, which has no spaces between words, so whole clauses count as words. "
            f"To split it into words: {remedy}",
            UserWarning,
            stacklevel=5,
        )
    return replace(rules, segmenter=segmenter)


# N-grams and phrases

MIN_PAIRS = 5
MIN_NPMI = 0.5


def ngrams(words: Sequence[str], shortest: int, longest: int) -> list[str]:
    """All sequences of `shortest` to `longest` consecutive words."""
    lengths = range(shortest, longest + 1)
    return [SPACE.join(words[i : i + n]) for n in lengths for i in range(len(words) - n + 1)]


def join_phrases(words: Sequence[str], phrases: Set[str]) -> list[str]:
    """The words, with the two words of a phrase joined, from left to right."""
    joined: list[str] = []
    place = 0
    while place < len(words):
        pair = SPACE.join(words[place : place + 2])
        is_phrase = pair in phrases and place + 1 < len(words)
        joined.append(pair if is_phrase else words[place])
        place += 2 if is_phrase else 1
    return joined


def choose_phrases(terms: Sequence[str], tokens: np.ndarray, stop_words: Set[str]) -> frozenset[str]:
    """The pairs of high normalised PMI (Bouma 2009) without a stop word, from words and pairs with their counts.

    log (p(a b) / (p(a) p(b))) / -log p(a b): 1 if the two occur only together, 0 if they co-occur by chance.
    """
    number = dict(zip(terms, tokens.tolist(), strict=True))
    words = sum(count for term, count in number.items() if SPACE not in term)
    pairs = ((term, count) for term, count in number.items() if SPACE in term and count >= MIN_PAIRS)
    chosen = set()
    for pair, count in pairs:
        first, second = pair.split(SPACE)
        if stop_words.isdisjoint((first, second)):
            pmi = math.log(count * words / (number[first] * number[second]))
            if pmi / max(-math.log(count / words), 1e-9) >= MIN_NPMI:
                chosen.add(pair)
    return frozenset(chosen)


def phrases_among(words: Iterable[str]) -> frozenset[str]:
    return frozenset(word for word in words if SPACE in word)


# Stems

ENDINGS = (("ies", "y"), ("sses", "ss"), ("ing", ""), ("ied", "y"), ("ed", ""), ("ly", ""), ("es", ""), ("s", ""))
SHORTEST_STEM = 3  # letters


def stem(word: str) -> str:
    """The stem of a lower-case English word, by a few endings: forms and formed have the same stem."""
    if word.endswith(("ss", "us", "is")) or not word.isalpha():
        return word
    for ending, instead in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= SHORTEST_STEM:
            word = word[: len(word) - len(ending)] + instead
            break
    if len(word) > SHORTEST_STEM and word[-1] == word[-2] and word[-1] not in "lsz":
        word = word[:-1]  # planned, plan
    return word.removesuffix("e") if len(word) > SHORTEST_STEM else word  # making, make
