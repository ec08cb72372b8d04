"""Whatever a user has, as sparse counts: texts, lists of tokens, counts, or a corpus record."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse

from varitext.corpora.counts import check_counts
from varitext.corpora.documents import Documents
from varitext.corpora.sharded_counts import ShardedCounts
from varitext.errors import InputError
from varitext.text import Counted, TokenRules, Vocabulary, VocabularyRules, count_texts, count_tokens

Texts = Sequence[str]
TokenLists = Sequence[Sequence[str]]
CountMatrix = scipy.sparse.spmatrix | np.ndarray
DocumentInput = Texts | TokenLists | CountMatrix | ShardedCounts | Documents


def learn_from_words(
    X: DocumentInput, token_rules: TokenRules, vocabulary_rules: VocabularyRules, processes: int
) -> Counted | None:
    """Vocabulary and counts of texts or token lists; None if X is counts already."""
    documents, _ = unwrap(X)
    match kind_of(documents):
        case "texts":
            return count_texts(documents, token_rules, vocabulary_rules=vocabulary_rules, processes=processes)
        case "tokens":
            return count_tokens(documents, vocabulary_rules=vocabulary_rules, processes=processes)
    return None


def count_known_words(
    X: DocumentInput, vocabulary: Vocabulary, token_rules: TokenRules, processes: int
) -> scipy.sparse.csr_matrix | None:
    """Counts of texts or token lists over a vocabulary; None if X is counts already."""
    documents, _ = unwrap(X)
    match kind_of(documents):
        case "texts":
            return count_texts(documents, token_rules, vocabulary, processes=processes).counts
        case "tokens":
            return count_tokens(documents, vocabulary, processes=processes).counts
    return None


def unwrap(X: DocumentInput) -> tuple[Any, Vocabulary | None]:
    """A corpus record's texts, or its counts with their vocabulary."""
    if not isinstance(X, Documents):
        return X, None
    return (X.texts, None) if X.texts is not None else (X.counts, X.vocabulary)


def kind_of(X: Any) -> str:
    """texts, tokens or counts."""
    if isinstance(X, str):
        raise InputError("expected a list of documents, not one string: put the text into a list")
    if scipy.sparse.issparse(X) or isinstance(X, ShardedCounts):
        return "counts"
    if getattr(X, "ndim", 1) != 1 or not hasattr(X, "__len__") or not len(X):
        return "counts"
    first = next(iter(X))
    if isinstance(first, str):
        return "texts"
    is_tokens = isinstance(first, (list, tuple)) and all(isinstance(token, str) for token in first)
    return "tokens" if is_tokens else "counts"


def translate_counts(counts: scipy.sparse.csr_matrix, given: Vocabulary, wanted: Vocabulary) -> scipy.sparse.csr_matrix:
    """Counts over another vocabulary, word by word; words that it does not have are left out."""
    if counts.shape[1] != len(given):
        raise InputError(f"the counts have {counts.shape[1]} columns for a vocabulary of {len(given)} words")
    shared = [(column, wanted.index[word]) for column, word in enumerate(given.words) if word in wanted.index]
    rows, columns = np.array(shared, np.int64).reshape(-1, 2).T
    ones = np.ones(len(rows), np.float32)
    translation = scipy.sparse.csr_matrix((ones, (rows, columns)), shape=(len(given), len(wanted)))
    return check_counts(counts @ translation, "the counts", allow_fractional=True)
