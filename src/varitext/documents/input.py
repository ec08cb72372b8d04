"""Turn documents of any form into counts over the words of a model, for fitting, transforming and updating."""

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse

from varitext.corpora.counts import check_counts, numbered_words
from varitext.corpora.document_input import (
    DocumentInput,
    count_words,
    kind_of,
    translate_counts,
    unwrap,
)
from varitext.corpora.document_vectors import VectorOrigin
from varitext.corpora.documents import Documents
from varitext.corpora.sharded_counts import Counts, ShardedCounts
from varitext.documents.settings import DocumentSettings
from varitext.errors import InputError
from varitext.text import TokenRules, Vocabulary, VocabularyRules, checked_texts
from varitext.text.boilerplate import Boilerplate, boilerplate_note, learn_boilerplate
from varitext.text.duplicates import first_copies
from varitext.text.language import detect_languages
from varitext.text.passages import Passages, split_passages
from varitext.text.stop_words import AUTO
from varitext.text.tokens import resolve_segmenter
from varitext.text.vocabulary import DEFAULT_VOCABULARY_RULES

MIN_DISTINCT = 100  # documents; with fewer, copies are learned from, too
KEEP = "To keep them: keep_{0}=True, --keep-{0}"

Validate = Callable[[Any, bool], scipy.sparse.csr_matrix]
"""scikit-learn's checks of counts without words; the second argument: whether to learn the number of columns."""


@dataclass(frozen=True)
class TrainingDocuments:
    """The documents that a model learns from."""

    counts: Counts  # [D, V], no document is empty
    vocabulary: Vocabulary
    token_rules: TokenRules
    vocabulary_rules: VocabularyRules
    n_empty: int  # documents that were left out
    corpus: dict[str, str] | None  # name, part and sha256
    rows: np.ndarray | None = None  # the row of each document in the input, if some were left out
    copies: np.ndarray | None = None  # how many input documents each stands for, if some are copies
    boilerplate: Boilerplate | None = None  # what was removed from texts
    notes: tuple[str, ...] = ()  # what a user should know
    excerpts: Sequence[str] | None = None  # the texts of the documents, if they are passages
    passage_words: int | None = None
    vectors: VectorOrigin | None = None  # of the sentence vectors beside the counts


def corpus_of(X: DocumentInput) -> dict[str, str] | None:
    """Which corpus this is, for the model folder; other commands use it to find the corpus again."""
    return X.recorded() if isinstance(X, Documents) else None


def documents_to_learn(
    X: DocumentInput, settings: DocumentSettings, validate: Validate, words: Sequence[str] | None = None
) -> TrainingDocuments:
    """Count all documents that have words; `words` is the vocabulary, or the names of the columns of counts."""
    (content, named), corpus = unwrap(X), corpus_of(X)
    token_rules = settings.token_rules or TokenRules(segmenter="auto")
    vocabulary_rules = settings.vocabulary_rules or VocabularyRules()
    prepared = PreparedTexts()
    if kind_of(content) == "texts" and settings.tokeniser is None:
        texts = list(checked_texts(content))
        token_rules = resolve_segmenter(token_rules, texts)
        prepared = prepare_texts(texts, settings, vocabulary_rules)
        vocabulary_rules, X = prepared.vocabulary_rules, prepared.texts
    elif token_rules.segmenter == "auto":
        token_rules = replace(token_rules, segmenter="none")
    if vocabulary_rules.stop_words == AUTO:
        vocabulary_rules = replace(vocabulary_rules, stop_words="english")
    asked = None if words is None else Vocabulary(tuple(map(str, words)))
    counted = count_words(X, token_rules, asked, vocabulary_rules, settings.processes, settings.tokeniser)
    named = named if asked is None else asked
    counts: Counts
    if counted is not None:
        counts, vocabulary = counted.counts, counted.vocabulary
    elif isinstance(content, ShardedCounts):  # already checked
        counts, vocabulary = content, content.vocabulary
    else:
        counts = validate(content, True)
        vocabulary = named or _column_names(content, counts.shape[1])
    if counts.shape[1] != len(vocabulary):
        raise InputError(f"the counts have {counts.shape[1]} columns for a vocabulary of {len(vocabulary)} words")
    kept = _checked_size(counts, settings.latent_dim)
    n_empty = counts.shape[0] - kept.shape[0]
    rows = np.flatnonzero(counts.getnnz(1)) if n_empty and not isinstance(counts, ShardedCounts) else slice(None)
    given = None if prepared.rows is None else prepared.rows[rows]
    passage_words = settings.passages if prepared.texts else None
    return TrainingDocuments(
        counts=kept,
        vocabulary=vocabulary,
        token_rules=token_rules,
        vocabulary_rules=vocabulary_rules,
        n_empty=n_empty,
        corpus=corpus,
        rows=given if given is not None or isinstance(rows, slice) else rows,
        copies=None if prepared.copies is None else prepared.copies[rows],
        boilerplate=prepared.boilerplate,
        notes=prepared.notes,
        excerpts=None if passage_words is None else [prepared.texts[row] for row in np.arange(counts.shape[0])[rows]],
        passage_words=passage_words,
    )


@dataclass(frozen=True)
class PreparedTexts:
    """Texts ready for counting their words, and what was done to them."""

    texts: list[str] = field(default_factory=list)
    vocabulary_rules: VocabularyRules = DEFAULT_VOCABULARY_RULES
    boilerplate: Boilerplate | None = None
    rows: np.ndarray | None = None  # of the texts in the input, if copies were left out
    copies: np.ndarray | None = None  # how many texts each stands for
    notes: tuple[str, ...] = ()


def prepare_texts(texts: list[str], settings: DocumentSettings, rules: VocabularyRules) -> PreparedTexts:
    """Remove boilerplate and copies from texts, and find the stop words of their languages."""
    notes: list[str | None] = []
    boilerplate = rows = copies = None
    if not settings.keep_boilerplate:
        boilerplate, tally = learn_boilerplate(texts), Counter[str]()
        texts = list(boilerplate.clean(texts, tally))
        notes.append(boilerplate_note(boilerplate, tally))
    if rules.stop_words == AUTO:
        languages = detect_languages(texts)
        rules = replace(rules, stop_words=languages.stop_words)
        notes.append(languages.note)
    if not settings.keep_duplicates:
        first = first_copies(texts)
        rows = np.flatnonzero(first == np.arange(len(texts)))
        if MIN_DISTINCT <= len(rows) < len(texts):
            copies = np.bincount(first)[rows]
            notes.append(f"copies of documents count once: {len(texts) - len(rows):,}. {KEEP.format('duplicates')}")
            texts = [texts[row] for row in rows]
        else:
            rows = None
    if settings.passages is not None:
        passages = split_passages(texts, settings.passages)
        notes.append(f"{len(texts):,} documents are read as {len(passages.texts):,} passages")
        texts = passages.texts
        rows = passages.owners if rows is None else rows[passages.owners]
        copies = None if copies is None else copies[passages.owners]
    return PreparedTexts(texts, rules, boilerplate, rows, copies, tuple(filter(None, notes)))


def without_boilerplate(X: DocumentInput, boilerplate: Boilerplate | None) -> DocumentInput:
    """Texts without the boilerplate that the fit removed; counts and lists of words unchanged."""
    content, _ = unwrap(X)
    if boilerplate is None or kind_of(content) != "texts":
        return X
    return list(boilerplate.clean(checked_texts(content)))


def passages_of(X: DocumentInput, words: int | None, boilerplate: Boilerplate | None) -> Passages | None:
    """The passages of texts; None if texts are read whole, and for counts and lists of words."""
    if words is None or kind_of(unwrap(X)[0]) != "texts":
        return None
    content, _ = unwrap(without_boilerplate(X, boilerplate))
    return split_passages(checked_texts(content), words)


def texts_of(X: DocumentInput) -> Sequence[str] | None:
    """The texts if X holds texts, otherwise None."""
    content, _ = unwrap(X)
    is_texts = isinstance(content, (list, tuple)) and len(content) > 0 and isinstance(content[0], str)
    return content if is_texts else None


def ids_of(X: DocumentInput) -> Sequence[str] | None:
    return X.ids if isinstance(X, Documents) else None


def _column_names(X: Any, width: int) -> Vocabulary:
    """The column names of a data frame, as scikit-learn reads them; otherwise numbers."""
    names = getattr(X, "columns", ())
    is_named = len(names) > 0 and all(isinstance(name, str) for name in names)
    return Vocabulary(tuple(names)) if is_named else numbered_words(width)


def _checked_size(counts: Counts, latent_dim: int) -> Counts:
    """Drop empty documents from the counts, and check that enough is left to learn from."""
    documents, words = counts.shape
    if words < 2:
        raise InputError(
            f"Nothing to learn from {words} feature(s): only {words} word{'s' * (words != 1)} left after the "
            "vocabulary rules. Try minimum_documents=1 or maximum_document_share=1 (--min-documents 1, --max-share 1)"
        )
    kept = without_empty(counts)
    if n_empty := documents - kept.shape[0]:
        left_out = f"{n_empty} empty {'documents were' if n_empty > 1 else 'document was'} left out"
        warnings.warn(left_out, UserWarning, stacklevel=4)  # where the user calls `fit`
    if kept.shape[0] < 2:
        raise InputError(f"{kept.shape[0]} sample(s) with known words: fitting needs at least 2 documents")
    if latent_dim < 1:
        raise InputError(f"latent_dim={latent_dim} must be at least 1")
    if latent_dim > words:
        few = f"only {words} words remain after the vocabulary rules; using {words} latent dimensions"
        warnings.warn(few, UserWarning, stacklevel=4)
    return kept


def count_documents(
    X: DocumentInput,
    vocabulary: Vocabulary,
    token_rules: TokenRules,
    settings: DocumentSettings,
    validate: Validate,
    boilerplate: Boilerplate | None = None,
) -> Counts:
    """Count words of a vocabulary; other words are ignored."""
    X = without_boilerplate(X, boilerplate)
    counted = count_words(X, token_rules, vocabulary, processes=settings.processes, tokeniser=settings.tokeniser)
    if counted is not None:
        return counted.counts
    content, named = unwrap(X)
    if isinstance(content, ShardedCounts):
        return content.over(vocabulary)
    if named is None:
        return validate(content, False)
    counts = check_counts(content, allow_fractional=settings.fractional_counts)
    same = named.words == vocabulary.words and counts.shape[1] == len(named)
    return counts if same else translate_counts(counts, named, vocabulary)


def widened_vocabulary(
    X: DocumentInput,
    vocabulary: Vocabulary,
    token_rules: TokenRules,
    vocabulary_rules: VocabularyRules,
    settings: DocumentSettings,
    boilerplate: Boilerplate | None = None,
) -> Vocabulary:
    """The words of a model, followed by those that new documents add under its rules."""
    X = without_boilerplate(X, boilerplate)
    counted = count_words(X, token_rules, None, vocabulary_rules, settings.processes, settings.tokeniser)
    content, named = unwrap(X)
    if counted is not None:
        named = counted.vocabulary
    elif isinstance(content, ShardedCounts):
        named = content.vocabulary
    if named is None:
        raise InputError("new words cannot be learned from counts without column names")
    return Vocabulary(vocabulary.words + tuple(word for word in named.words if word not in vocabulary.index))


def without_empty(counts: Counts) -> Counts:
    if isinstance(counts, ShardedCounts):
        return counts.without_empty()
    kept = np.flatnonzero(np.asarray(counts.sum(1)).ravel() > 0)
    if not len(kept):
        raise InputError(f"none of the {counts.shape[0]} documents has a word of the vocabulary")
    return counts[kept] if len(kept) < counts.shape[0] else counts
