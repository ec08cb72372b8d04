"""The base of all networks of answers: word vectors, and the framework's four methods around `encode` and `logits`.

Training maximises the bound of `latent/bound.py` (`answers/task.py`). Without a latent variable h has no dimensions, so
the KL is zero and the bound is the log-likelihood.
"""

from typing import NamedTuple

from torch import Tensor, nn

from varitext.batches.pairs import PairBatch, PairBatches
from varitext.corpora.question_answers import QuestionAnswers
from varitext.latent import DiagonalGaussian
from varitext.layers.words import Sentences, WordEmbedding
from varitext.models.answers.model import AnswerModel


class Encoding(NamedTuple):
    question: Tensor  # [Q, H]   s_q(|q|) or another encoding; read once for all its candidates
    answers: Sentences  # [P, T, H]   s_a
    question_of: Tensor  # [P]
    labels: Tensor  # [P]   used by the posterior and the likelihood only
    features: Tensor | None = None  # [P, F]   for networks that ask for `pair_columns`
    weights: Tensor | None = None  # [P]   how many candidates each stands for, if they share an h

    @property
    def question_by_pair(self) -> Tensor:
        return self.question.index_select(0, self.question_of)  # [P, H]


class AnswerNetwork(AnswerModel, nn.Module):
    """p(y = 1 | q, a, h) is the sigmoid of `logits(h, encoding)`.

    A deterministic model implements `encode` and `logits`; a latent model also `prior_by_question` and `posterior`. The
    bound has one value per pair or, with `latent_of_question`, per question.
    """

    estimator = "reparameterised"  # or "importance_weighted" or "dreg": the bound that training maximises
    listwise = 0.0  # the weight of the listwise loss beside the bound: see `AnswerTask`
    cross_entropy = 1.0  # the weight of the bound
    pair_columns: tuple[str, ...] = ()  # columns of `features/overlap.py` that it reads
    reads_word_features = False  # whether it reads those of `word_features.py`
    reads_likeness = False  # whether it reads the similarities of `minilm.py`
    reads_pieces = False  # whether it reads question and candidate as one sequence of word pieces

    def __init__(self, vocabulary_size: int, embedding_dim: int = 50, fixed_words: int = 0):
        super().__init__()
        self.word_vectors = WordEmbedding(vocabulary_size, embedding_dim, fixed_words)

    @property
    def counts_shared_words(self) -> bool:
        """Whether a word shared with the question counts even if it is not in the vocabulary."""
        return bool(self.pair_columns)

    def prepare(self, batches: PairBatches, train: QuestionAnswers) -> None:
        """Learn from the training pairs, before the first step, what is not learned by gradients."""

    def logits(self, h: Tensor, encoding: Encoding) -> Tensor:
        """The log odds that each answer is right, [S, P], for h of shape [S, P, K]."""
        raise NotImplementedError

    # The four methods of the framework

    def encode(self, batch: PairBatch) -> Encoding:
        raise NotImplementedError

    def prior(self, encoding: Encoding) -> DiagonalGaussian:
        by_question, question_of = self.prior_by_question(encoding), encoding.question_of
        return DiagonalGaussian(*(values.index_select(0, question_of) for values in by_question))  # [P, K]

    def posterior(self, encoding: Encoding) -> DiagonalGaussian:
        return self.prior(encoding)

    def log_likelihood(self, h: Tensor, encoding: Encoding) -> Tensor:
        return self.log_likelihood_of_pairs(h, encoding)  # [S, P]

    def log_likelihood_of_pairs(self, h: Tensor, encoding: Encoding) -> Tensor:
        """log p(y | q, a, h) of each pair on its own, [S, P], for h of shape [S, P, K]."""
        logits = self.logits(h, encoding)
        return encoding.labels * logits - nn.functional.softplus(logits)  # [S, P]

    # Prediction

    def prior_by_question(self, encoding: Encoding) -> DiagonalGaussian:
        """p(h | q), one row per question."""
        return DiagonalGaussian.standard(encoding.question[:, :0])  # [Q, 0]

    def prior_samples(self, encoding: Encoding, samples: int) -> Tensor:
        """h of the prior, drawn once per question and shared by its candidates: each sample is one ranking."""
        drawn = self.prior_by_question(encoding).rsample(samples)  # [S, Q, K]
        return drawn.index_select(1, encoding.question_of)  # [S, P, K]

    def attention_given(self, h: Tensor, encoding: Encoding) -> Tensor | None:
        """alpha on every word of every answer, [S, P, T]; None for a network without attention."""
        return None
