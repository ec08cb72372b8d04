"""The inside of `DocumentModel`: its state, which comes and goes as one record, and scikit-learn's manners."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_non_negative, validate_data

from varitext.corpora.counts import check_counts
from varitext.corpora.document_input import DocumentInput, listed_documents
from varitext.corpora.sharded_counts import Counts
from varitext.documents.fitted import FittedDocuments
from varitext.documents.fitting import DocumentFit
from varitext.documents.input import count_documents, without_empty
from varitext.documents.settings import DocumentSettings
from varitext.documents.updating import DocumentUpdate
from varitext.text import TokenRules, Vocabulary
from varitext.training.settings import Progress


class DocumentEstimator(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]  # scikit-learn has no types
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """What was learned is one record, `fitted_`; a fit, an update or a folder sets it as a whole."""

    fitted_: FittedDocuments
    n_features_in_: int

    def _settings(self) -> DocumentSettings:
        return DocumentSettings(**self.get_params(deep=False))

    def _take(self, fitted: FittedDocuments) -> None:
        self.fitted_ = fitted
        self.n_features_in_ = len(fitted.vocabulary)

    def _train(self, run: DocumentFit | DocumentUpdate, resume: bool) -> None:
        try:
            run.trainer.train(resume)
        finally:  # also when training gave up: the best weights so far are in place
            if run.trainer.state.stopped:
                self._take(run.result())
        if self.fitted_.stopped == "interrupted":
            raise KeyboardInterrupt("training was interrupted; the model holds the best weights so far")

    @contextmanager
    def _watched(self, progress: Progress | None) -> Iterator[Progress | None]:
        """Whoever watches a fit; with `verbose`, and nobody else, a bar or lines on standard error."""
        if progress is not None or not self._settings().verbose:
            yield progress
            return
        from varitext.training.progress import show_progress

        with show_progress() as shown:
            yield shown

    def _count(self, X: DocumentInput, vocabulary: Vocabulary, token_rules: TokenRules) -> Counts:
        settings = self._settings()
        X = listed_documents(X, settings.text_column)
        return count_documents(X, vocabulary, token_rules, settings, self._validated)

    def _held_out(self, dev: DocumentInput, vocabulary: Vocabulary, token_rules: TokenRules) -> Counts:
        return without_empty(self._count(dev, vocabulary, token_rules))

    def _validated(self, X: Any, reset: bool) -> scipy.sparse.csr_matrix:
        """Counts without words, as scikit-learn checks them; `reset` to learn how many columns there are."""
        X = validate_data(self, X, accept_sparse="csr", dtype=(np.float32, np.float64), reset=reset)
        check_non_negative(X, "DocumentModel")
        return check_counts(X, "the counts", allow_fractional=self._settings().fractional_counts)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fitted_")

    @property
    def _n_features_out(self) -> int:
        """Of vectors; topics have names of their own."""
        return self.fitted_.network.vector_dim

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = []
        return tags
