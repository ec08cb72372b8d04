"""Which languages texts are in, so that the right stop words are left out.

py3langid names the language of each text of a sample. A language counts only if its texts also have its stop words:
made-up words and lists of names look like some language, too.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from varitext.errors import InputError
from varitext.text.stop_words import CODES, stop_words_of
from varitext.text.tokens import tokenise

SAMPLE, CHARACTERS = 1000, 500  # texts, and what is read of each
MIN_SHARE = 0.1  # of the texts, for a language to matter
MIN_STOP_WORDS = 0.15  # of the words of a language's texts
INSTALL = "pip install 'varitext[languages]'"


class Languages(NamedTuple):
    shares: dict[str, float]  # of the texts whose language is certain, most frequent first
    note: str | None  # None if there is nothing to tell: English, or nothing certain

    @property
    def stop_words(self) -> str:
        """The languages by name, as `VocabularyRules` takes them."""
        return ",".join(self.shares) or "english"


def detect_languages(texts: Sequence[str]) -> Languages:
    """The languages of texts, English if nothing else is certain."""
    from py3langid import classify  # here, because it loads its model

    places = np.linspace(0, len(texts) - 1, min(len(texts), SAMPLE)).astype(int)
    by_language: dict[str, list[str]] = defaultdict(list)
    for place in places:
        if text := texts[place][:CHARACTERS].strip():
            by_language[classify(text)[0]].append(text)
    names = {code: name for name, code in CODES.items()}
    total = sum(map(len, by_language.values()))
    found: dict[str, int] = {}
    missing = []
    for code, some in sorted(by_language.items(), key=lambda item: -len(item[1])):
        if code in names and len(some) >= MIN_SHARE * total:
            try:
                found |= {names[code]: len(some)} if _has_stop_words(some, names[code]) else {}
            except InputError:  # the list is not installed
                if not _has_stop_words(some, "english"):
                    missing.append(names[code])
    certain = sum(found.values())
    return Languages({name: number / certain for name, number in found.items()}, _note(found, missing, total))


def _has_stop_words(texts: list[str], language: str) -> bool:
    words = [word for text in texts for word in tokenise(text)]
    stop_words = stop_words_of(language)
    return sum(word in stop_words for word in words) >= MIN_STOP_WORDS * max(len(words), 1)


def _note(found: dict[str, int], missing: list[str], total: int) -> str | None:
    if missing:
        named = " and ".join(name.title() for name in missing)
        return f"the texts look {named}, but its stop words are not installed, so they will be topics: {INSTALL}"
    if not found or list(found) == ["english"]:
        return None
    shares = ", ".join(f"{100 * number / total:.0f} % {name.title()}" for name, number in found.items())
    return f"the texts are {shares}: the stop words of {'these' if len(found) > 1 else 'that language'} are left out"
