"""What a `DocumentModel` says and lets users change about topics; `regions.py` has what a topic is."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, Self

import numpy as np
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from varitext.corpora.document_input import DocumentInput
from varitext.corpora.sharded_counts import ShardedCounts, in_memory
from varitext.documents import topic_editing
from varitext.documents.estimator import DocumentEstimator
from varitext.documents.input import texts_of, without_empty
from varitext.documents.mixture import directions_of
from varitext.documents.posterior import Posterior, posterior_of
from varitext.documents.regions import RegionDocuments, Regions, find_regions
from varitext.documents.seed_topics import seed_topics_of
from varitext.documents.surprise import fit_length_line, surprises
from varitext.documents.topic_html import topics_html
from varitext.documents.topic_records import WORDS, DocumentInfo, Records, TopicInfo, TopicShare, first_words
from varitext.documents.topic_tree import TreeMerge, merges_to, topic_tree
from varitext.errors import InputError
from varitext.evaluation.keywords import DistinctWords, distinct_words
from varitext.evaluation.shares import shares_by_value
from varitext.runtime.devices import running_on


class TopicMatrices(NamedTuple):
    """What pyLDAvis takes: `pyLDAvis.prepare(**matrices._asdict(), sort_topics=False, start_index=0)`."""

    topic_term_dists: np.ndarray  # [topics, V]
    doc_topic_dists: np.ndarray  # [D, topics]
    doc_lengths: np.ndarray  # [D]
    vocab: list[str]
    term_frequency: np.ndarray  # [V]


class TopicsOfDocuments(DocumentEstimator):
    """Topics are regions of the latent space in which documents lie."""

    # Looking at them

    def topics(self, words: int = WORDS) -> Records[TopicInfo]:
        """The topics, each with its name, size, words, coherence and typical documents; `to_frame()` for pandas."""
        return first_words(self._regions().info(), words)

    def topic_info(self, words: int = WORDS) -> Records[TopicInfo]:
        """The same, by the name that other tools have for it."""
        return self.topics(words)

    def topic_memberships(self, X: DocumentInput) -> np.ndarray:
        """p(topic | document); a row sums to one, columns are in the order of `topics()`.  [D, topics]"""
        counts = self._count(X, self.fitted_.vocabulary, self.fitted_.token_rules)
        return self.memberships_of(posterior_of(self.fitted_.network, counts, threads=self.threads))

    def memberships_of(self, posterior: Posterior) -> np.ndarray:
        """The same where the vectors are known already.  [D, topics]"""
        return self._regions().memberships(directions_of(posterior))

    def document_info(self, X: DocumentInput) -> Records[DocumentInfo]:
        """What each document is about, how sure that is, and how surprising the document; see `DocumentInfo`."""
        regions = self._regions()
        counts = in_memory(self._count(X, self.fitted_.vocabulary, self.fitted_.token_rules))
        posterior = posterior_of(self.fitted_.network, counts, threads=self.threads)
        memberships = self.memberships_of(posterior)
        with running_on(self.threads):
            line = regions.line
            surprise = None if line is None else surprises(self.fitted_.network, counts, line, self.seed)
        spread = np.sqrt(np.square(posterior.std, dtype=np.float64).mean(1))
        known = np.asarray(counts.sum(1)).ravel()
        names = [(topic.number, topic.name) for topic in regions.info()]
        return Records(
            _document(row, memberships[row], names, float(spread[row]), surprise, int(known[row]))
            for row in range(len(memberships))
        )

    def topic_tree(self) -> list[TreeMerge]:
        """Which topics are most alike: merges from two topics up to all, for `merge_topics` to follow."""
        return topic_tree(self._regions())

    def topic_shares(self, X: DocumentInput, values: Sequence[object]) -> Records[TopicShare]:
        """How many documents of each topic there are by class, month or any other value, one value a document."""
        regions, counts = self._regions(), in_memory(self._count(X, self.fitted_.vocabulary, self.fitted_.token_rules))
        memberships = self.memberships_of(posterior_of(self.fitted_.network, counts, threads=self.threads))
        most_probable = [regions.groups[place].number for place in memberships.argmax(1)]
        assigned = [topic if words else None for topic, words in zip(most_probable, counts.getnnz(1), strict=True)]
        names = {topic.number: topic.name for topic in self.topics()}
        found = shares_by_value(assigned, [str(value) for value in values], list(names))
        return Records(TopicShare(one.value, one.category, names[one.category], *one[2:]) for one in found)

    def distinct_words(self, X: DocumentInput, values: Sequence[object], words: int = WORDS) -> list[DistinctWords]:
        """For each class, month or other value, the words that tell its documents from all others."""
        check_is_fitted(self)
        counts = in_memory(self._count(X, self.fitted_.vocabulary, self.fitted_.token_rules))
        return distinct_words(counts, [str(value) for value in values], self.fitted_.vocabulary.words, words)

    def topic_matrices(self, X: DocumentInput) -> TopicMatrices:
        """Topics and documents as pyLDAvis takes them; documents without a known word are left out."""
        regions = self._regions()
        counts = in_memory(self._count(X, self.fitted_.vocabulary, self.fitted_.token_rules))
        counts = counts[np.flatnonzero(counts.getnnz(1))]
        memberships = self.memberships_of(posterior_of(self.fitted_.network, counts, threads=self.threads))
        lengths, frequency = (np.asarray(counts.sum(axis), np.float64).ravel() for axis in (1, 0))
        probabilities = regions.group_probabilities()
        new_words = len(self.fitted_.vocabulary) - probabilities.shape[1]  # which an update has added
        probabilities = np.pad(probabilities / probabilities.sum(1, keepdims=True), ((0, 0), (0, new_words)))
        return TopicMatrices(probabilities, memberships, lengths, list(self.fitted_.vocabulary.words), frequency)

    # Changing them

    def refit_topics(
        self,
        X: DocumentInput,
        n_topics: int | None = None,
        seed_topics: Mapping[str, Sequence[str]] | None = None,
    ) -> Self:
        """Find the topics anew in these documents: another number of them, or guided by words.

        `seed_topics` has a name and a few words for each topic that is wanted; other topics are found beside them.
        The network stays as it is.
        """
        check_is_fitted(self)
        if n_topics is not None and n_topics < 1:
            raise InputError(f"n_topics must be at least 1, not {n_topics}")
        given, wanted = self._given(X), seed_topics_of(seed_topics) if seed_topics is not None else []
        with running_on(self.threads):
            earlier = self.fitted_.regions
            line = earlier.line if earlier else fit_length_line(self.fitted_.network, given.counts, self.seed)
            network, vocabulary = self.fitted_.network, self.fitted_.vocabulary
            regions = find_regions(network, vocabulary, given, n_topics, self.seed, line, wanted)
        return self._change(regions)

    def rename_topic(self, number: int, name: str) -> Self:
        return self._change(topic_editing.renamed(self._regions(), number, name))

    def merge_topics(self, numbers: Sequence[int], name: str | None = None) -> Self:
        """One topic of several, under the lowest of their numbers."""
        return self._change(topic_editing.merged(self._regions(), numbers, name))

    def reduce_topics(self, n_topics: int) -> Self:
        """Merge the topics that are most alike until so many are left."""
        if n_topics < 1:
            raise InputError(f"n_topics must be at least 1, not {n_topics}")
        for numbers in merges_to(self._regions(), n_topics):
            self.merge_topics(numbers)
        return self

    def drop_topics(self, numbers: Sequence[int]) -> Self:
        """Leave topics out; their documents go to the next most probable one."""
        return self._change(topic_editing.dropped(self._regions(), numbers))

    def split_topic(self, number: int, X: DocumentInput | None = None) -> Self:
        """Undo a merge; a topic that was not merged is divided in two by the documents X."""
        given = None if X is None else self._given(X)
        with running_on(self.threads):
            return self._change(topic_editing.split(self._regions(), number, self.fitted_.network, given, self.seed))

    # scikit-learn's and notebooks' manners

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        """Names of the columns of `transform`: of topics, or numbered ones of latent dimensions."""
        if self._settings().transform_to != "topics":
            return np.asarray(super().get_feature_names_out(input_features))
        return np.array([f"topic{topic.number}: {topic.name}" for topic in self.topics()], dtype=object)

    def _html_repr(self) -> str:
        """In notebooks: the settings, as scikit-learn shows them, and the topics of a fitted model."""
        shown = estimator_html_repr(self)
        return (
            shown
            if not hasattr(self, "fitted_") or self.fitted_.regions is None
            else f"{shown}{topics_html(self.topics())}"
        )

    # Inside

    def _regions(self) -> Regions:
        check_is_fitted(self)
        regions = self.fitted_.regions
        if regions is None:
            raise InputError(
                "the model has no topics yet, being of an earlier version or an interrupted fit: "
                "refit_topics(documents), or `varitext topics DIR --from CORPUS`, finds them"
            )
        return regions

    def _change(self, regions: Regions) -> Self:
        self.fitted_ = replace(self.fitted_, regions=regions)
        return self

    def _given(self, X: DocumentInput) -> RegionDocuments:
        """Documents that have words, and where they stand in X."""
        counts = self._count(X, self.fitted_.vocabulary, self.fitted_.token_rules)
        rows = None if isinstance(counts, ShardedCounts) else np.flatnonzero(counts.getnnz(1))
        return RegionDocuments(without_empty(counts), rows, texts_of(X))


def _document(
    row: int,
    memberships: np.ndarray,
    names: list[tuple[int, str]],
    spread: float,
    surprise: np.ndarray | None,
    known_words: int,
) -> DocumentInfo:
    if not known_words:
        return DocumentInfo(row, None, None, None, None, None, spread, None, 0)
    first, *others = np.argsort(-memberships, kind="stable")[:2]
    number, name = names[first]
    second = others[0] if others else None
    return DocumentInfo(
        row=row,
        topic=number,
        name=name,
        probability=float(memberships[first]),
        second_topic=None if second is None else names[second][0],
        second_probability=None if second is None else float(memberships[second]),
        spread=spread,
        surprise=None if surprise is None else float(surprise[row]),
        known_words=known_words,
    )
