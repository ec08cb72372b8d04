"""Boilerplate: what repeats in the texts of a corpus and does not say what they are about.

A fit learns it from a sample of its texts, and the model folder keeps it, so that new texts are treated as those of the
fit were. Some kinds have a known form: the header of a mail, quoted replies, signatures, HTML, fields such as
Signed-off-by, addresses, hashes and uuencoded files. All but the last three are removed only if a share of the
documents has them. What has no known form is found by repetition: lines, and runs of words, that many documents share.

A document of which nothing would be left keeps its text.
"""

import html
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from varitext.records import record_from_dict
from varitext.text.counting import CHUNK_SIZE, in_chunks
from varitext.text.spans import JoinedTexts, Spans

MAX_SAMPLE = 20_000  # texts that it is learned from
MIN_SHARE = 0.01  # of the documents that have a kind of boilerplate, for it to be removed
RUN_WORDS = 8
SHORT_LINE = 25  # letters: shorter lines, such as those of a menu, must be in more documents
MIN_DOCUMENTS, MIN_SHORT_DOCUMENTS, MIN_SHORT_SHARE = 5, 10, 0.03  # that share a line
MIN_RUN_DOCUMENTS, MIN_RUN_SHARE = 20, 0.01  # that share a run of words
MAX_COPIED = 0.5  # share of a document's letters in lines of few others: above, it is a copy of them
COMMON_SHARE = 0.1  # of the documents: text that this share has is boilerplate even where there is little else
MAX_SIGNATURE = 12  # lines
MIN_TAGS = 3  # for a text to be HTML

HEADERS = (
    "approved|bcc|cc|content-[a-z-]+|date|distribution|errors-to|expires|followup-to|from|in-reply-to|keywords|lines|list-[a-z]+"
    "|message-id|mime-version|newsgroups|nntp-posting-host|organization|originator|path|precedence|received|references"
    "|reply-to|return-path|sender|sent|status|subject|summary|supersedes|to|x-[a-z-]+|xref"
)  # fmt: skip
_HEADER_LINE = re.compile(rf"(?:{HEADERS}):.*\n?(?:[ \t]+\S.*\n?)*", re.IGNORECASE)
_SUBJECTS = re.compile(
    r"^(?:subject|keywords|summary):[ \t]*(?:(?:re|fwd?|aw):[ \t]*)*(.*)$", re.IGNORECASE | re.MULTILINE
)
# of a whole line, but found by its first letters: a pattern that starts with ^ is tried at every character
_FORWARDED = re.compile(r"--(?<![^\n]--)-* ?Original Message ?-{2,}[ \t]*$[\s\S]*", re.MULTILINE | re.IGNORECASE)
_SIGNATURE = re.compile(r"--(?<![^\n]--)[ \t]*$", re.MULTILINE)
_TAG = re.compile(
    r"</?(?:a|body|br|div|h[1-6]|html|img|li|link|meta|p|script|span|table|td|tr|ul)\b[^<>]*>", re.IGNORECASE
)
_UNREAD = re.compile(
    r"<(script|style|nav|header|footer|aside|form|button|select|noscript|svg)\b.*?</\1\s*>|<!--.*?-->",
    re.IGNORECASE | re.DOTALL,
)
_ANY_TAG = re.compile(r"</?[a-z!][^<>]*>", re.IGNORECASE)


class Form(NamedTuple):
    """What is found from the start of a line, or in a run without spaces; tried only where there is a sign of it."""

    pattern: re.Pattern[str]
    sign: re.Pattern[str]  # in every match; starts with few characters, so that the search for it is fast
    of_lines: bool

    def matches(self, text: str) -> Iterator[re.Match[str]]:
        """The same as the pattern's `finditer`."""
        end = 0
        while sign := self.sign.search(text, end):
            start = max(end, text.rfind("\n", end, sign.start()) + 1)
            if self.of_lines:
                stop = text.find("\n", sign.end())
                match = self.pattern.match(text, start, len(text) if stop < 0 else stop)
            else:
                start = max(start, text.rfind(" ", start, sign.start()) + 1)
                stop = space.start() if (space := _SPACE.search(text, sign.end())) else -1
                match = self.pattern.search(text, start, len(text) if stop < 0 else stop)
            if match is None and stop < 0:
                return
            end = match.end() if match else stop
            if match:
                yield match

    def removed_from(self, text: str, tally: Counter[str], kind: str) -> str:
        kept, end = [], 0
        for match in self.matches(text):
            kept.append(text[end : match.start()])
            end = match.end()
        tally[kind] += len(kept)
        return " ".join([*kept, text[end:]]) if kept else text


def _of_lines(pattern: str, sign: str) -> Form:
    return Form(re.compile(pattern, re.MULTILINE), re.compile(sign, re.MULTILINE), of_lines=True)


def _of_words(pattern: str, sign: str) -> Form:
    return Form(re.compile(pattern, re.IGNORECASE), re.compile(sign), of_lines=False)


_SPACE = re.compile(r"\s")
_LETTER = "[a-zA-Z\u0130\u0131\u017f\u212a]"  # what re.IGNORECASE takes for a letter from a to z
_QUOTED = _of_lines(r"^[ \t]*(?:[A-Za-z]{0,4}[|:]?>|In (?:article|message|<)).*$", ">|In ")
_ATTRIBUTION = _of_lines(
    r"^(?:.*(?:writes|wrote|schrieb|a écrit)"
    r"|[ \t]*In a previous (?:article|message|post(?:ing)?),.*(?:says|said)) ?: *$",
    ": *$",
)
_FIELD = _of_lines(r"^[ \t]*([A-Za-z]+(?:-[A-Za-z]+)+):[ \t]", "-[A-Za-z]+:[ \t]")
_MAIL = _of_words(r"<?[\w.%+=!-]+@[\w-]+(?:\.[\w-]+)*>?", "@")
_WEB = _of_words(
    r"\b(?:https?|ftp)://\S+|\bwww\.\S+"
    r"|\b(?:[a-z0-9-]+\.)+(?:com|org|net|edu|gov|mil|info|biz)\b(?:/\S*)?|\b(?:[a-z0-9-]{2,}\.){2,}[a-z]{2}\b(?:/\S*)?",
    rf"\.(?:{_LETTER}{_LETTER}|(?<=[wW][wW][wW]\.))|://",
)
_HASH = _of_words(
    r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b(?:0x)?(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{7,}\b",
    "[0-9](?:(?<=[a-fA-F][0-9])|(?=[a-fA-F]|-[0-9a-fA-F]{4}))",
)
_ENCODED = re.compile(r"\nM[ -`]{60}\r?(?=\n|\Z)")  # a full line of a file in uuencode

KEEP = "To keep it: keep_boilerplate=True, --keep-boilerplate"
NAMES = {  # for the note
    "header": "header lines",
    "html": "HTML tags",
    "quoted": "quoted lines",
    "signature": "signature lines",
    "field": "fields such as {}",
    "line": "repeated lines",
    "run": "repeated passages",
    "mail": "e-mail addresses",
    "web": "web addresses",
    "hash": "hashes",
    "encoded": "lines of encoded files",
}


@dataclass(frozen=True)
class Boilerplate:
    """What is removed from texts before their words are counted."""

    kinds: tuple[str, ...] = ()  # header, html, quoted, signature
    fields: tuple[str, ...] = ()  # the names before a colon
    lines: str = ""  # hashes of lines, in hexadecimal
    runs: str = ""  # of runs of words

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Boilerplate":
        return record_from_dict(cls, {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()})

    def clean(self, texts: Iterable[str], tally: Counter[str] | None = None, has_forms: bool = True) -> Iterator[str]:
        """The texts without boilerplate; `tally` counts what was removed, by kind, and characters.

        `has_forms`: whether the texts may have what has a known form, or have been cleaned of it.
        """
        for chunk in in_chunks(texts, CHUNK_SIZE):
            found: Counter[str] = Counter()
            formed = [self._without_forms(text, found) for text in chunk] if has_forms else chunk
            for text, cleaned in zip(chunk, self._without_repeats(formed, found), strict=True):
                whole = _size(text) if tally is not None else 0
                found["characters"] += whole
                if cleaned is not text and any(map(str.isalpha, cleaned)):
                    found["removed"] += whole - _size(cleaned) if tally is not None else 0
                    text = cleaned
                yield text
            if tally is not None:
                tally.update(found)

    # Forms

    def _without_forms(self, text: str, tally: Counter[str]) -> str:
        text = _without_encoded(text, tally) if "\nM" in text else text
        text = _without_html(text, tally) if "html" in self.kinds and "<" in text else text
        text = _without_header(text, tally) if "header" in self.kinds else text
        if "quoted" in self.kinds:
            text = _without_forwarded(text, tally) if "-Or" in text or "- O" in text else text
            text = _ATTRIBUTION.removed_from(_QUOTED.removed_from(text, tally, "quoted"), tally, "quoted")
        text = _without_signature(text, tally) if "signature" in self.kinds and "\n--" in text else text
        text = self._field.removed_from(text, tally, "field") if self.fields else text
        for kind, form in (("mail", _MAIL), ("web", _WEB), ("hash", _HASH)):
            text = form.removed_from(text, tally, kind)
        return text

    @cached_property
    def _field(self) -> Form:
        return _of_lines(rf"^[ \t]*(?:{'|'.join(map(re.escape, self.fields))}):.*$", ":")

    # Repetition

    @cached_property
    def _line_hashes(self) -> np.ndarray:
        return np.sort(np.frombuffer(bytes.fromhex(self.lines), "<u8"))

    @cached_property
    def _run_hashes(self) -> np.ndarray:
        return np.sort(np.frombuffer(bytes.fromhex(self.runs), "<u8"))

    def _without_repeats(self, texts: list[str], tally: Counter[str]) -> list[str]:
        """Remove repeats until none is found: what has become adjacent may be boilerplate, too."""
        cleaned, open_texts = list(texts), np.arange(len(texts))
        while len(open_texts) and (self.lines or self.runs):
            joined = JoinedTexts.of([cleaned[place] for place in open_texts])
            every = [("line", joined.lines(), self._line_hashes)] if self.lines else []
            every += [("run", joined.runs(RUN_WORDS), self._run_hashes)] if self.runs else []
            found = [(kind, spans.only(_is_among(spans.hashes, known))) for kind, spans, known in every]
            blanked = _blanked(joined, [spans for _, spans in found])
            for kind, spans in found:
                tally[kind] += _number_of_passages(spans)
            changed = np.unique(np.concatenate([spans.texts for _, spans in found]))
            starts = np.concatenate([np.zeros(1, np.int64), joined.ends])
            for place in changed:
                codes = blanked[starts[place] : starts[place + 1] - 1]
                cleaned[open_texts[place]] = codes.tobytes().decode("utf-32-le", "surrogatepass")
            open_texts = open_texts[changed]
        return cleaned


def _is_among(hashes: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Whether each hash is among the `known` ones, which are sorted."""
    if not len(known):
        return np.zeros(len(hashes), bool)
    return np.asarray(known[np.minimum(np.searchsorted(known, hashes), len(known) - 1)] == hashes)


def _blanked(joined: JoinedTexts, found: list[Spans]) -> np.ndarray:
    """The characters, with spaces in the place of spans."""
    edges = np.zeros(len(joined.codes) + 1, np.int32)
    for spans in found:
        np.add.at(edges, spans.starts, 1)
        np.add.at(edges, spans.ends, -1)
    inside = np.cumsum(edges[:-1]) > 0
    return np.where(inside & (joined.codes != ord("\n")), np.uint32(ord(" ")), joined.codes)


def _number_of_passages(spans: Spans) -> int:
    """Overlapping runs are one passage."""
    return int((spans.starts[1:] >= spans.ends[:-1]).sum()) + 1 if len(spans.starts) else 0


def _size(text: str) -> int:
    """The number of characters that are not spaces."""
    return len("".join(text.split()))


def _without_html(text: str, tally: Counter[str]) -> str:
    if len(_TAG.findall(text)) < MIN_TAGS:
        return text
    text, number = _ANY_TAG.subn("\n", _UNREAD.sub("\n", text))
    tally["html"] += number
    return html.unescape(text)


def _without_header(text: str, tally: Counter[str]) -> str:
    """Remove two or more lines such as `From: ...` at the start, but keep the text of subject, keywords and summary."""
    end = number = 0
    while line := _HEADER_LINE.match(text, end):
        end, number = line.end(), number + 1
    if number < 2:
        return text
    tally["header"] += number
    return "\n".join(_SUBJECTS.findall(text[:end])) + "\n" + text[end:]


def _without_encoded(text: str, tally: Counter[str]) -> str:
    text, number = _ENCODED.subn("", text)
    tally["encoded"] += number
    return text


def _without_forwarded(text: str, tally: Counter[str]) -> str:
    text, number = _FORWARDED.subn(" ", text)
    tally["quoted"] += number
    return text


def _without_signature(text: str, tally: Counter[str]) -> str:
    """Remove what follows a line `--`, if it is short, searching from the end."""
    for match in reversed(list(_SIGNATURE.finditer(text))):
        if (number := text.count("\n", match.start())) > MAX_SIGNATURE:
            break
        tally["signature"] += number + 1
        text = text[: match.start()].rstrip("\n")
    return text


# Learning


def learn_boilerplate(texts: Sequence[str]) -> Boilerplate:
    """Learn from at most 20,000 texts, at equal distances; of texts with the same letters only one counts."""
    places = np.linspace(0, len(texts) - 1, min(len(texts), MAX_SAMPLE)).astype(int)
    sample = _distinct([texts[place] for place in places])
    forms = Boilerplate(_kinds(sample), _fields(sample))
    sample = _distinct(list(forms.clean(sample)))
    lines = _repeated_lines(_every(JoinedTexts.lines, sample), len(sample))
    with_lines = replace(forms, lines=lines)
    runs = _every(lambda joined: joined.runs(RUN_WORDS), with_lines.clean(sample, has_forms=False))
    return replace(with_lines, runs=_repeated_runs(runs, len(sample)))


def _every(spans_of: Callable[[JoinedTexts], Spans], texts: Iterable[str]) -> Spans:
    """The spans of all texts, found in a chunk at a time; their places are those in the chunks."""
    found, before = [], 0
    for chunk in in_chunks(texts, CHUNK_SIZE):
        spans = spans_of(JoinedTexts.of(chunk))
        found.append(spans._replace(texts=spans.texts + before))
        before += len(chunk)
    return Spans(*map(np.concatenate, zip(*found, strict=True)))


def _distinct(texts: list[str]) -> list[str]:
    hashes = _every(JoinedTexts.whole, texts).hashes.tolist()
    return list(dict(zip(reversed(hashes), reversed(texts), strict=True)).values())[::-1]


def _kinds(texts: list[str]) -> tuple[str, ...]:
    counts: Counter[str] = Counter()
    for text in texts:
        counts["header"] += _without_header(text, Counter()) is not text
        counts["html"] += "<" in text and len(_TAG.findall(text)) >= MIN_TAGS
        counts["quoted"] += any(_ATTRIBUTION.matches(text)) or _FORWARDED.search(text) is not None
        counts["signature"] += "\n--" in text and _without_signature(text, Counter()) is not text
    return tuple(kind for kind, documents in sorted(counts.items()) if documents >= _fewest(len(texts), 2, MIN_SHARE))


def _fields(texts: list[str]) -> tuple[str, ...]:
    counts = Counter(name for text in texts for name in {match[1] for match in _FIELD.matches(text)})
    fewest = _fewest(len(texts), MIN_DOCUMENTS, MIN_SHARE)
    return tuple(sorted(name for name, documents in counts.items() if documents >= fewest))


def _repeated_lines(lines: Spans, documents: int) -> str:
    """Hashes of repeated lines; a text's only line is the text, and does not count."""
    lines = lines.only(np.bincount(lines.texts, minlength=documents)[lines.texts] > 1)
    short, long = _fewest(documents, MIN_SHORT_DOCUMENTS, MIN_SHORT_SHARE), _fewest(documents, MIN_DOCUMENTS, 0)
    return _repeated(lines, lambda some: np.where(some.letters < SHORT_LINE, short, long), long, documents)


def _repeated_runs(runs: Spans, documents: int) -> str:
    fewest = _fewest(documents, MIN_RUN_DOCUMENTS, MIN_RUN_SHARE)
    return _repeated(runs, lambda some: np.full(len(some.texts), fewest), fewest, documents)


def _repeated(spans: Spans, fewest_of: Callable[[Spans], np.ndarray], least: float, documents: int) -> str:
    """Hashes of spans in enough documents; copies of a few others do not count, or all that they share would."""
    letters = np.bincount(spans.texts, spans.letters, documents)
    spans = spans.only(_is_among(spans.hashes, _frequent(spans.hashes, math.ceil(least))))  # nearly all occur once
    fewest, shared = fewest_of(spans), _documents_with(spans)
    repeated = shared >= fewest
    rarely = repeated & (shared < COMMON_SHARE * documents)
    copied = np.bincount(spans.texts, spans.letters * rarely, documents)
    is_copy = (copied > MAX_COPIED * letters)[spans.texts]
    again = _documents_with(spans.only(~is_copy)) >= fewest[~is_copy]
    kept = {*spans.hashes[~is_copy][again].tolist(), *spans.hashes[repeated & ~rarely].tolist()}
    return np.array(sorted(kept), "<u8").tobytes().hex()


def _frequent(hashes: np.ndarray, least: int) -> np.ndarray:
    """The hashes that occur `least` times or more, sorted."""
    ordered = np.sort(hashes)
    first, last = ordered[: max(0, len(ordered) - least + 1)], ordered[least - 1 :]
    return np.unique(last[first == last])


def _documents_with(spans: Spans) -> np.ndarray:
    """The number of documents that have each span."""
    order = np.argsort(spans.hashes, kind="stable")  # spans are in the order of the texts, and stay so
    hashes, texts = spans.hashes[order], spans.texts[order]
    is_new = np.diff(hashes, prepend=~hashes[:1]) != 0
    number = np.cumsum(is_new) - 1
    in_another = is_new | (np.diff(texts, prepend=-1) != 0)
    found = np.empty(len(order), np.int64)
    found[order] = np.bincount(number, in_another)[number] if len(order) else 0
    return found


def _fewest(documents: int, least: int, share: float) -> float:
    return max(least, share * documents)


def boilerplate_note(boilerplate: Boilerplate, tally: Counter[str]) -> str | None:
    """One line on what was removed, and how much of the text; None if it was nothing."""
    named = [(tally[kind], NAMES[kind].format(", ".join(boilerplate.fields[:3]))) for kind in NAMES if tally[kind]]
    if not named:
        return None
    said = ", ".join(f"{number:,} {name}" for number, name in sorted(named, reverse=True))
    share = tally["removed"] / max(tally["characters"], 1)
    return f"removed boilerplate, {100 * share:.1f} % of the text: {said}. {KEEP}"
