"""PV: cosine of the paragraph vectors (Le and Mikolov 2014) of question and candidate. No latent variable with a prior.

gensim's Doc2Vec learns a row u of the output matrix for each word (distributed bag of words, negative sampling). The
vector of a sentence is the v that maximises

    sum_w c_w [log sigmoid(v^T u_w) + k sum_j p_j log sigmoid(-v^T u_j)] - lambda/2 |v|^2

over its words w; noise words j have the probability p_j, and c_w is the share of occurrences that training keeps of a
word as frequent as w. This is concave in v: a few steps of gradient ascent from zero find its maximum. So a vector is a
deterministic function of its sentence, and gensim is needed for fitting only.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from varitext.batches.pairs import FIRST_WORD, UNKNOWN, reading_form, word_numbers
from varitext.batches.tokens import TokenBatch
from varitext.corpora.question_answers import QuestionAnswers
from varitext.errors import InputError
from varitext.models.answers.scorer import AnswerScorer
from varitext.models.answers.vocabulary import AnswerWords
from varitext.text import Vocabulary

NEGATIVE = 5  # k: noise words per word
NOISE_WORDS = 256  # a sum over the whole vocabulary would change little
NOISE_POWER = 0.75
SAMPLE = 1e-4  # words more frequent than this are subsampled
STEPS = 30
CHUNK = 256  # sentences at once


class ParagraphVectors(AnswerScorer):
    """Ranks by the cosine of paragraph vectors; a sentence without a known word has the cosine 0 with all others."""

    counts_shared_words = False
    word_rows: Tensor  # [V, D]   u
    kept: Tensor  # [V]   c
    noise: Tensor  # [noise]

    def __init__(
        self, vocabulary: Vocabulary, embedding_dim: int = 50, doc2vec_epochs: int = 40, shrinkage: float = 0.1
    ):
        super().__init__(vocabulary, ("cosine",))
        self.doc2vec_epochs, self.shrinkage = doc2vec_epochs, shrinkage
        self.register_buffer("word_rows", torch.zeros(len(vocabulary), embedding_dim))
        self.register_buffer("kept", torch.ones(len(vocabulary)))
        self.register_buffer("noise", torch.zeros(NOISE_WORDS, dtype=torch.int64))

    def learn_words(self, train: QuestionAnswers, dev: QuestionAnswers, words: AnswerWords, seed: int) -> None:
        index = self.vocabulary.index
        read = (map(reading_form, sentence) for sentence in _sentences(train))
        texts = [[word for word in sentence if word in index] for sentence in read]
        trained = _train(texts, self.word_rows.shape[1], self.doc2vec_epochs, seed)
        columns = torch.tensor([index[word] for word in trained.wv.index_to_key])
        self.word_rows.zero_()[columns] = torch.from_numpy(np.array(trained.syn1neg, np.float32))
        counts = np.zeros(len(self.vocabulary))
        counts[columns.numpy()] = trained.wv.expandos["count"]
        self.kept.copy_(torch.from_numpy(_kept_share(counts)))
        self.noise.copy_(torch.from_numpy(_spread(counts**NOISE_POWER, NOISE_WORDS)))

    def features(self, question_answers: QuestionAnswers) -> np.ndarray:
        sentences = sorted(set(_sentences(question_answers)))  # equal sentences have equal vectors
        row_of = {words: row for row, words in enumerate(sentences)}
        vectors = functional.normalize(self.vectors(sentences), dim=1)
        questions = [row_of[one.words] for one in question_answers.questions]
        answers = [row_of[answer.words] for one in question_answers.questions for answer in one.candidates]
        asked = vectors[questions][torch.from_numpy(question_answers.groups)]
        return (asked * vectors[answers]).sum(1, keepdim=True).numpy()  # [P, 1]

    @torch.no_grad()
    def vectors(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """The paragraph vector of each sentence, [B, D], zero for one without a known word."""
        numbers = [word_numbers(words, self.vocabulary) for words in sentences]
        numbers = [one[one > UNKNOWN] for one in numbers]
        order = np.argsort([len(one) for one in numbers], kind="stable")  # equal lengths need no padding
        found = torch.empty(len(numbers), self.word_rows.shape[1], dtype=torch.float64)
        for start in range(0, len(order), CHUNK):
            rows = order[start : start + CHUNK]
            found[torch.from_numpy(rows)] = self._ascend(TokenBatch.from_lists([numbers[row] for row in rows]))
        return found

    def _ascend(self, batch: TokenBatch) -> Tensor:
        """Nesterov's method with the step 1 / (largest curvature)."""
        rows = (batch.tokens - FIRST_WORD).clamp(min=0)
        words, weight = self.word_rows[rows].double(), self.kept[rows].double() * batch.mask  # [B, T, D], [B, T]
        noise = self.word_rows[self.noise].double()  # [noise, D]
        pull = NEGATIVE * weight.sum(1, keepdim=True) / len(noise)  # [B, 1]
        curvature = (words.square().sum(2) * weight).sum(1) + pull[:, 0] * noise.square().sum()
        step = 1 / (self.shrinkage + curvature[:, None] / 4)
        vectors = ahead = words.new_zeros(len(words), words.shape[2])
        for number in range(STEPS):
            missing = torch.sigmoid(-torch.einsum("btd,bd->bt", words, ahead)) * weight  # [B, T]
            gradient = torch.einsum("bt,btd->bd", missing, words) - self.shrinkage * ahead
            gradient -= pull * (torch.sigmoid(ahead @ noise.T) @ noise)
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
