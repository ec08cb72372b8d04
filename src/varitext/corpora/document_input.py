"""Documents in any form as sparse counts: texts, token lists, counts, DataFrames, or a corpus record."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from varitext.corpora.counts import check_counts
from varitext.corpora.documents import Documents, choose_column, is_missing
from varitext.corpora.sharded_counts import ShardedCounts
from varitext.errors import InputError
from varitext.text import Counted, TokenRules, Vocabulary, VocabularyRules, count_texts, count_tokens, kind_name
from varitext.text.vocabulary import DEFAULT_VOCABULARY_RULES

Texts = Sequence[str]
TokenLists = Sequence[Sequence[str]]
CountMatrix = scipy.sparse.spmatrix | np.ndarray
Tokeniser = Callable[[str], Sequence[str]]  # written by the user
EXPECTED = "documents are texts, lists of words, or rows of counts"
DocumentInput = Texts | TokenLists | CountMatrix | ShardedCounts | Documents


def count_words(
    X: DocumentInput,
    token_rules: TokenRules,
    vocabulary: Vocabulary | None,
    vocabulary_rules: VocabularyRules = DEFAULT_VOCABULARY_RULES,
    processes: int | None = None,
    tokeniser: Tokeniser | None = None,
) -> Counted | None:
    """Counts of texts or token lists over a vocabulary, or one that is learned here; None if X is counts already."""
    documents, _ = unwrap(X)
    kind = kind_of(documents)
    if kind == "texts" and tokeniser is None:
        return count_texts(documents, token_rules, vocabulary, vocabulary_rules, processes)
    if kind == "counts":
        return None
    tokens = documents if kind == "tokens" or tokeniser is None else map(tokeniser, documents)
    return count_tokens(tokens, vocabulary, vocabulary_rules, processes)


def unwrap(X: DocumentInput) -> tuple[Any, Vocabulary | None]:
    """A corpus record's texts, or its counts with their vocabulary."""
    if not isinstance(X, Documents):
        return X, None
    return (X.texts, None) if X.texts is not None else (X.counts, X.vocabulary)


def listed_documents(X: Any, text_column: str | None = None) -> Any:
    """Generators, data frames and their columns as plain lists of texts; missing values become empty texts."""
    if isinstance(X, Iterator):
        X = list(X)
    if isinstance(X, (list, tuple)) and not X:
        raise InputError("The list of documents is empty")
    if hasattr(X, "columns") and hasattr(X, "iloc"):  # a data frame; if it has only numbers, they are counts
        names = [name for name in X.columns if isinstance(name, str)]
        if text_column is None and not any(_is_text(X[name]) for name in names):
            return X
        X = X[choose_column(names, lambda name: _is_text(X[name]), text_column, "the data frame")]
    if not (hasattr(X, "iloc") and _is_text(X)):
        return X
    values = X.tolist()
    if gaps := sum(map(is_missing, values)):
        many = "documents have" if gaps > 1 else "document has"
        warnings.warn(f"{gaps:,} {many} no text (a missing value)", UserWarning, stacklevel=3)
    return ["" if is_missing(value) else value for value in values]


def _is_text(column: Any) -> bool:
    """Whether a column of a data frame holds only texts and missing values."""
    values = [value for value in column.tolist() if not is_missing(value)] if column.dtype.kind not in "biufcmM" else []
    return bool(values) and all(isinstance(value, str) for value in values)


def kind_of(X: Any) -> str:
    if isinstance(X, str):
        raise InputError("Expected a list of documents, not one string. Put the text into a list.")
    if scipy.sparse.issparse(X) or isinstance(X, ShardedCounts):
        return "counts"
    if (not hasattr(X, "__len__") and not hasattr(X, "__array__")) or isinstance(X, (bytes, Mapping)):
        raise InputError(f"Expected a list of documents, not {kind_name(X)}: {EXPECTED}")
    if getattr(X, "ndim", 1) != 1 or not hasattr(X, "__len__") or not len(X):
        return "counts"
    first = next(iter(X))
    if isinstance(first, str):
        return "texts"
    if isinstance(X, (list, tuple)) and (not hasattr(first, "__len__") or isinstance(first, (bytes, Mapping))):
        raise InputError(f"document 0 is {kind_name(first)}: {EXPECTED}")
    if not isinstance(first, (list, tuple)) or (first and not any(isinstance(token, str) for token in first)):
        return "counts"
    if odd := next((token for token in first if not isinstance(token, str)), ""):
        raise InputError(f"document 0 mixes words with {kind_name(odd)}: {EXPECTED}")
    return "tokens"


def translate_counts(counts: scipy.sparse.csr_matrix, given: Vocabulary, wanted: Vocabulary) -> scipy.sparse.csr_matrix:
    """Counts over another vocabulary; words that it does not have are left out."""
    if counts.shape[1] != len(given):
        raise InputError(f"the counts have {counts.shape[1]} columns, but the vocabulary has {len(given)} words")
    shared = [(column, wanted.index[word]) for column, word in enumerate(given.words) if word in wanted.index]
    rows, columns = np.array(shared, np.int64).reshape(-1, 2).T
    ones = np.ones(len(rows), np.float32)
    translation = scipy.sparse.csr_matrix((ones, (rows, columns)), shape=(len(given), len(wanted)))
    return check_counts(counts @ translation, "the counts", allow_fractional=True)
