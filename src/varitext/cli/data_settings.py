"""What a user says about a table of texts and its words: options of `varitext fit`, and the records they become."""

import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from varitext.errors import InputError
from varitext.records import DATA, Option, setting

if TYPE_CHECKING:  # none of this is loaded before it is needed
    from varitext.corpora import Columns, QuestionColumns
    from varitext.text import TokenRules, VocabularyRules


@dataclass(frozen=True)
class DataSettings:
    """None: not typed; the rules for words, and the file itself, decide."""

    text_column: str | None = setting(
        None, Option("Column of the text; else 'text', or the only one with words.", DATA, "NAME")
    )
    id_column: str | None = setting(None, Option("Column that names each document.", DATA, "NAME"))
    label_column: str | None = setting(None, Option("Column of labels; else 'label', if there is one.", DATA, "NAME"))
    date_column: str | None = setting(None, Option("Column of dates, such as 2026-01-31.", DATA, "NAME"))
    encoding: str | None = setting(None, Option("Encoding of the file, if it is not UTF-8.", DATA, "NAME"))
    vocabulary_size: int | None = setting(
        None, Option("Keep at most this many words, for corpora of text.", DATA, "N", minimum=2)
    )
    min_documents: int | None = setting(
        None, Option("A word must be in this many documents, or 1 of 100 if that is less.", DATA, "N", minimum=1)
    )
    max_share: float | None = setting(
        None, Option("A word must not be in a larger share of the documents; 0.5 if left out.", DATA, "SHARE")
    )
    stop_words: str | None = setting(
        None,
        Option("Languages, or files with a word a line: english, german,own.txt, none; else english.", DATA, "LIST"),
    )
    ngrams: str | None = setting(None, Option("Words and pairs of words: 1-2.", DATA, "N-M"))
    phrases: bool = setting(False, Option("Find pairs that belong together, and count each as one word.", DATA))
    strip_html: bool = setting(False, Option("Leave out tags of HTML.", DATA))
    strip_urls: bool = setting(False, Option("Leave out addresses of web pages.", DATA))
    segmenter: str | None = setting(
        None,
        Option(
            "Who cuts text without spaces into words; else whichever the text needs.",
            DATA,
            choices=("auto", "chinese", "japanese", "thai", "none"),
        ),
    )

    def columns(self) -> "Columns":
        from varitext.corpora import Columns

        return Columns(self.text_column, self.id_column, self.label_column, self.date_column, self.encoding)

    def token_rules(self) -> "TokenRules | None":
        """None if nothing about tokens was typed."""
        from varitext.text import TokenRules

        shortest, longest = _ngrams(self.ngrams)
        rules = TokenRules(
            strip_html=self.strip_html,
            strip_urls=self.strip_urls,
            segmenter=self.segmenter or "auto",
            shortest_ngram=shortest,
            longest_ngram=longest,
            phrases=self.phrases,
        )
        return None if rules == TokenRules(segmenter="auto") else rules

    def vocabulary_rules(self) -> "VocabularyRules | None":
        """None if nothing about the vocabulary was typed."""
        from varitext.text import VocabularyRules

        typed: dict[str, Any] = {
            "size": self.vocabulary_size,
            "minimum_documents": self.min_documents,
            "maximum_document_share": self.max_share,
            "stop_words": None if self.stop_words is None else _stop_words(self.stop_words),
        }
        values = {name: value for name, value in typed.items() if value is not None}
        return VocabularyRules(**values) if values else None


@dataclass(frozen=True)
class QuestionSettings:
    """The same for a table of questions."""

    question_column: str | None = setting(None, Option("Column of the question; else 'question'.", DATA, "NAME"))
    answer_column: str | None = setting(None, Option("Column of the answer; else 'answer'.", DATA, "NAME"))
    label_column: str | None = setting(None, Option("Column of right (1) or wrong (0); else 'label'.", DATA, "NAME"))
    id_column: str | None = setting(
        None, Option("Column that names each question; else 'question_id', or its text.", DATA, "NAME")
    )
    min_relevance: float | None = setting(
        None, Option("Labels are grades: answers of this grade or higher are right.", DATA, "GRADE")
    )

    def columns(self) -> "QuestionColumns":
        from varitext.corpora import QuestionColumns

        return QuestionColumns(**vars(self))


COLUMN_OPTIONS = ("text_column", "id_column", "label_column", "date_column", "encoding")
WORD_OPTIONS = tuple(field.name for field in fields(DataSettings) if field.name not in COLUMN_OPTIONS)


def _ngrams(typed: str | None) -> tuple[int, int]:
    match = re.fullmatch(r"([1-5])(?:-([1-5]))?", (typed or "1").strip())
    if not match:
        raise InputError(f"--ngrams is 1-2, 2 or the like, with numbers from 1 to 5, not {typed!r}")
    return int(match[1]), int(match[2] or match[1])


def _stop_words(typed: str) -> str | tuple[str, ...]:
    """Languages by their names; with a file among them the words themselves, which the model folder then keeps."""
    from varitext.text.stop_words import is_language, read_stop_words, stop_words_of

    names = [name.strip() for name in typed.split(",")]
    if all(map(is_language, names)):
        return ",".join(names)
    found: set[str] = set()
    for name in names:
        found |= stop_words_of(name) if is_language(name) else read_stop_words(Path(name))
    return tuple(sorted(found))
