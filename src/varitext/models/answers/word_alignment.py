"""WA: alignment by vector similarity and a linear classifier on its features (Wang and Ittycheriah 2015).

There is no latent variable. Each word of the question is aligned to the most similar word of the candidate. Four groups
of features describe the alignment:

    similarity    of aligned words: the mean, and the mean of the candidate's words to the question
    idf           the same weighted by idf; the idf of words without a counterpart
    categories    how many words, and how much idf, are aligned by same word, stem, near or far vector, or not at all
    dispersion    distance in the candidate between the counterparts of neighbouring words of the question

The original uses parts of speech for its sparse categories; here words are stop words or not.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from varitext.corpora.question_answers import QuestionAnswers
from varitext.models.answers.features.alignment import NO_WORD, AlignedCorpus, QuestionPairs, unit_vectors
from varitext.models.answers.scorer import AnswerScorer, chosen
from varitext.text import Vocabulary

if TYPE_CHECKING:
    from varitext.models.answers.vocabulary import AnswerWords

NEAR, FAR = 0.6, 0.35  # cosines of centred vectors; below the second a word has no counterpart
CATEGORIES = ("same", "stem", "near", "far", "none")
GROUPS = {
    "similarity": ("similarity", "similarity_content", "similarity_back"),
    "idf": ("idf_similarity", "idf_similarity_content", "idf_similarity_back", "idf_missed", "idf_missed_most"),
    "categories": (
        *(f"{what}_{name}" for what in ("count", "idf") for name in CATEGORIES),
        "count_same_stop",
        "log_length",
    ),
    "dispersion": ("dispersion", "span"),
}


class WordAlignment(AnswerScorer):
    """Logistic regression on the features of an alignment; `features` names groups of them."""

    feature_names = tuple(GROUPS)
    reads_word_vectors = True
    word_vectors: np.ndarray  # [V, E]

    def __init__(self, vocabulary: Vocabulary, embedding_dim: int = 50, features: Sequence[str] | str | None = None):
        groups = chosen(features, self.feature_names, self.feature_names)
        super().__init__(vocabulary, [name for group in groups for name in GROUPS[group]])
        self.groups = self.named_features = groups
        self.declare("word_vectors", (len(vocabulary), embedding_dim), np.float16)

    def learn_words(self, train: QuestionAnswers, dev: QuestionAnswers, words: "AnswerWords", seed: int) -> None:
        self.assign(word_vectors=unit_vectors(words.vectors, self.word_vectors.shape))

    def features(self, question_answers: QuestionAnswers) -> np.ndarray:
        corpus = AlignedCorpus.of(question_answers, self.overlap, self.word_vectors.astype(np.float32))
        return np.concatenate([self._of_question(corpus, pairs) for pairs in corpus.questions()])

    def _of_question(self, corpus: AlignedCorpus, pairs: QuestionPairs) -> np.ndarray:
        if not len(pairs.asked):
            return np.zeros((len(pairs.answers), len(self.columns)))
        return np.concatenate([_MAKERS[group](corpus, pairs) for group in self.groups], 1)  # [C, F]


def _share(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The weighted mean over the words of the question: values [n, C], weights [n] or [n, C]."""
    weights = np.broadcast_to(weights.reshape(len(values), -1), values.shape)
    return np.asarray((values * weights).sum(0) / np.maximum(weights.sum(0), 1e-12))  # [C]


def _content(corpus: AlignedCorpus, words: np.ndarray) -> np.ndarray:
    return np.asarray(~corpus.is_stop[words], float)


def _similarity(corpus: AlignedCorpus, pairs: QuestionPairs) -> np.ndarray:
    best = pairs.similarity.max(2)  # [n, C]
    return np.column_stack(
        [best.mean(0), _share(best, _content(corpus, pairs.asked)), _back(corpus, pairs, np.ones_like(corpus.idf))]
    )


def _back(corpus: AlignedCorpus, pairs: QuestionPairs, weight: np.ndarray) -> np.ndarray:
    """Mean similarity of the candidate's words to the question's."""
    best = pairs.similarity.max(0)  # [C, T]
    weights = weight[pairs.answers] * ((pairs.answers != NO_WORD) & corpus.is_word[pairs.answers])
    return _share(best.T, weights.T)


def _idf(corpus: AlignedCorpus, pairs: QuestionPairs) -> np.ndarray:
    best, rare = pairs.similarity.max(2), corpus.idf[pairs.asked]
    missed = rare[:, None] * (best < FAR)
    content = _content(corpus, pairs.asked)
    parts = [_share(best, rare), _share(best, rare * content), _back(corpus, pairs, corpus.idf)]
    return np.column_stack([*parts, missed.sum(0), missed.max(0)])


def _categories(corpus: AlignedCorpus, pairs: QuestionPairs) -> np.ndarray:
    best, content = pairs.similarity.max(2), _content(corpus, pairs.asked)
    steps = [pairs.same.any(2), pairs.same_stem.any(2), best >= NEAR, best >= FAR, np.ones_like(best, bool)]
    first = np.argmax(steps, 0)  # [n, C] the first that holds
    of_category = first == np.arange(len(steps))[:, None, None]  # [categories, n, C]
    counts = np.einsum("knc,n->ck", of_category, content)
    rare = np.einsum("knc,n->ck", of_category, content * corpus.idf[pairs.asked])
    stop = ((first == 0) * (1 - content)[:, None]).sum(0)
    lengths = (pairs.answers != NO_WORD).sum(1)
    return np.column_stack([counts, rare, stop, np.log1p(lengths)])


def _dispersion(corpus: AlignedCorpus, pairs: QuestionPairs) -> np.ndarray:
    """Logarithms of the mean squared gap between neighbours, and of the span from first to last place."""
    best, place = pairs.similarity.max(2), pairs.similarity.argmax(2)  # [n, C]
    aligned = (best >= FAR) & (_content(corpus, pairs.asked) > 0)[:, None]
    gaps, last = np.zeros(best.shape), np.full(best.shape[1], -1)
    for word in range(len(best)):
        neighbours = aligned[word] & (last >= 0)
        gaps[word] = np.where(neighbours, np.maximum(np.abs(place[word] - last) - 1, 0) ** 2, 0)
        last = np.where(aligned[word], place[word], last)
    number = np.maximum(aligned.sum(0) - 1, 1)
    highest = np.where(aligned, place, 0).max(0)
    lowest = np.where(aligned, place, highest).min(0)
    return np.asarray(np.log1p(np.column_stack([gaps.sum(0) / number, highest - lowest])))  # [C, 2]


_MAKERS = {"similarity": _similarity, "idf": _idf, "categories": _categories, "dispersion": _dispersion}
