"""PV: cosine of the paragraph vectors (Le and Mikolov 2014) of question and candidate. No latent variable with a prior.

gensim's Doc2Vec learns a row u of the output matrix for each word (distributed bag of words, negative sampling). The
vector of a sentence is the v that maximises

    sum_w c_w [log sigmoid(v^T u_w) + k sum_j p_j log sigmoid(-v^T u_j)] - lambda/2 |v|^2

over its words w; noise words j have the probability p_j, and c_w is the share of occurrences that training keeps of a
word as frequent as w. This is concave in v: a few steps of gradient ascent from zero find its maximum. So a vector is a
deterministic function of its sentence, and gensim is needed for fitting only.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from varitext.corpora.question_answers import QuestionAnswers, reading_form
from varitext.errors import InputError
from varitext.layers.functions import expit
from varitext.models.answers.features.alignment import NO_WORD, padded_candidates
from varitext.models.answers.scorer import AnswerScorer
from varitext.text import Vocabulary

if TYPE_CHECKING:
    from varitext.models.answers.vocabulary import AnswerWords

NEGATIVE = 5  # k: noise words per word
NOISE_WORDS = 256  # a sum over the whole vocabulary would change little
NOISE_POWER = 0.75
SAMPLE = 1e-4  # words more frequent than this are subsampled
STEPS = 30
CHUNK = 256  # sentences at once


class ParagraphVectors(AnswerScorer):
    """Ranks by the cosine of paragraph vectors; a sentence without a known word has the cosine 0 with all others."""

    counts_shared_words = False
    word_rows: np.ndarray  # [V, D]   u
    kept: np.ndarray  # [V]   c
    noise: np.ndarray  # [noise]

    def __init__(
        self, vocabulary: Vocabulary, embedding_dim: int = 50, doc2vec_epochs: int = 40, shrinkage: float = 0.1
    ):
        super().__init__(vocabulary, ("cosine",))
        self.doc2vec_epochs, self.shrinkage = doc2vec_epochs, shrinkage
        self.declare("word_rows", (len(vocabulary), embedding_dim), np.float32)
        self.declare("kept", (len(vocabulary),), np.float32)
        self.declare("noise", (NOISE_WORDS,), np.int64)
        self.assign(kept=1.0)

    def learn_words(self, train: QuestionAnswers, dev: QuestionAnswers, words: "AnswerWords", seed: int) -> None:
        index = self.vocabulary.index
        read = (map(reading_form, sentence) for sentence in _sentences(train))
        texts = [[word for word in sentence if word in index] for sentence in read]
        trained = _train(texts, self.word_rows.shape[1], self.doc2vec_epochs, seed)
        columns = [index[word] for word in trained.wv.index_to_key]
        rows, counts = np.zeros(self.word_rows.shape, np.float32), np.zeros(len(self.vocabulary))
        rows[columns], counts[columns] = trained.syn1neg, trained.wv.expandos["count"]
        noise = _spread(counts**NOISE_POWER, NOISE_WORDS)
        self.assign(word_rows=rows, kept=_kept_share(counts), noise=noise)

    def features(self, question_answers: QuestionAnswers) -> np.ndarray:
        sentences = sorted(set(_sentences(question_answers)))  # equal sentences have equal vectors
        row_of = {words: row for row, words in enumerate(sentences)}
        vectors = self.vectors(sentences)
        vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        questions = [row_of[one.words] for one in question_answers.questions]
        answers = [row_of[answer.words] for one in question_answers.questions for answer in one.candidates]
        asked = vectors[questions][question_answers.groups]
        return np.asarray((asked * vectors[answers]).sum(1, keepdims=True))  # [P, 1]

    def vectors(self, sentences: Sequence[Sequence[str]]) -> np.ndarray:
        """The paragraph vector of each sentence, [B, D], zero for one without a known word."""
        index = self.vocabulary.index
        numbers = [[index[word] for word in map(reading_form, words) if word in index] for words in sentences]
        lengths = np.array([len(one) for one in numbers], np.int64)
        order = np.argsort(lengths, kind="stable")  # equal lengths need no padding
        found = np.empty((len(numbers), self.word_rows.shape[1]))
        for start in range(0, len(order), CHUNK):
            rows = order[start : start + CHUNK]
            known = np.array([number for row in rows for number in numbers[row]], np.int64)
            found[rows] = self._ascend(padded_candidates(known, lengths[rows], NO_WORD))
        return found

    def _ascend(self, numbers: np.ndarray) -> np.ndarray:
        """Nesterov's method with the step 1 / (largest curvature), for the words of sentences, [B, T]."""
        rows = np.maximum(numbers, 0)
        words, weight = self.word_rows[rows].astype(float), self.kept[rows] * (numbers != NO_WORD)  # [B, T, D], [B, T]
        noise = self.word_rows[self.noise].astype(float)  # [noise, D]
        pull = NEGATIVE * weight.sum(1, dtype=float)[:, None] / len(noise)  # [B, 1]
        curvature = ((words**2).sum(2) * weight).sum(1) + pull[:, 0] * (noise**2).sum()
        step = 1 / (self.shrinkage + curvature[:, None] / 4)
        vectors = ahead = np.zeros((len(words), words.shape[2]))
        for number in range(STEPS):
            missing = expit(-(words @ ahead[..., None])[..., 0]) * weight  # [B, T]
            gradient = (missing[:, None] @ words)[:, 0] - self.shrinkage * ahead
            gradient -= pull * (expit(ahead @ noise.T) @ noise)
            moved = ahead + step * gradient
            ahead, vectors = moved + number / (number + 3) * (moved - vectors), moved
        return vectors  # [B, D]


def _sentences(question_answers: QuestionAnswers) -> list[tuple[str, ...]]:
    every = question_answers.questions
    return [one.words for one in every] + [answer.words for one in every for answer in one.candidates]


def _train(texts: list[list[str]], dim: int, epochs: int, seed: int) -> Any:
    try:
        from gensim.models.doc2vec import Doc2Vec, TaggedDocument
    except ImportError:
        raise InputError("fitting paragraph vectors needs gensim: pip install gensim") from None
    documents = [TaggedDocument(text, [row]) for row, text in enumerate(texts) if text]
    # one worker: with more, the result would change from run to run
    learning = {"negative": NEGATIVE, "ns_exponent": NOISE_POWER, "sample": SAMPLE, "epochs": epochs}
    model = Doc2Vec(vector_size=dim, dm=0, min_count=1, seed=seed, workers=1, **learning)
    model.build_vocab(documents)
    model.train(documents, total_examples=model.corpus_count, epochs=model.epochs)
    return model


def _spread(weights: np.ndarray, number: int) -> np.ndarray:
    """`number` places in proportion to the weights: evenly spaced on the cumulative sum, not drawn."""
    running = np.cumsum(weights)
    return np.asarray(np.searchsorted(running, running[-1] * (np.arange(number) + 0.5) / number))


def _kept_share(counts: np.ndarray) -> np.ndarray:
    """The share of a word's occurrences that word2vec's subsampling keeps."""
    rarity = SAMPLE * counts.sum() / np.maximum(counts, 1e-12)
    return np.asarray(np.minimum(1, np.sqrt(rarity) + rarity))
