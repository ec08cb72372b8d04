"""Where the sentences of a text begin and end."""

import re

_LINE = re.compile(r"[^\n]+")
_BETWEEN = re.compile(r"(?<=[.!?])[\"'”’)\]]*(\s+)(?=[\"'“‘(\[`]*[A-Z0-9À-ÖØ-Þ])")
_ABBREVIATED = re.compile(r"(?:^|[^\w.])(\w|\w[\w.]*\.\w|[A-Z][a-z]{1,4})\.$")
_ABBREVIATIONS = """
    Mr Mrs Ms Dr Prof Bros Maj Brig St Mt No vs Jr Sr Inc Co Corp Ltd Gen Col Lt Sgt Capt Sen Rep Gov Rev Hon Dept
    Univ Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec Fig Vol Ed Ph
"""
ABBREVIATIONS = frozenset(_ABBREVIATIONS.split())


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Begin and end of each sentence, in characters; a line break ends one, a full stop of an abbreviation does not."""
    spans: list[tuple[int, int]] = []
    for line in _LINE.finditer(text):
        begin = line.start()
        for found in _BETWEEN.finditer(text, begin, line.end()):
            if not _is_abbreviated(text[max(begin, found.start() - 12) : found.start(1)]):
                spans.append((begin, found.start(1)))
                begin = found.end()
        spans.append((begin, line.end()))
    return [_without_spaces(text, *span) for span in spans if not text[slice(*span)].isspace()]


def _without_spaces(text: str, begin: int, end: int) -> tuple[int, int]:
    sentence = text[begin:end]
    return end - len(sentence.lstrip()), begin + len(sentence.rstrip())


def _is_abbreviated(ending: str) -> bool:
    """Whether it ends with an initial, an abbreviation with dots inside, or a known one."""
    found = _ABBREVIATED.search(ending)
    return found is not None and (not found[1].isalpha() or len(found[1]) == 1 or found[1] in ABBREVIATIONS)
