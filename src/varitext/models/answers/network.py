"""What every network of answers has: word vectors, and the framework's methods around `encode` and `logits`."""

from typing import TYPE_CHECKING, NamedTuple

from torch import Tensor, nn

from varitext.batches.pairs import PairBatch
from varitext.latent import DiagonalGaussian
from varitext.layers.words import Sentences, WordEmbedding

if TYPE_CHECKING:
    from varitext.models.answers.scorer import AnswerScorer


class Encoding(NamedTuple):
    question: Tensor  # [Q, H]   s_q(|q|), or what else stands for it; read once for all its candidates
    answers: Sentences  # [P, T, H]   s_a
    question_of: Tensor  # [P]
    labels: Tensor  # [P]   only the posterior and the likelihood look at them
    features: Tensor | None = None  # [P, F]   for networks that ask for `pair_columns`
    weights: Tensor | None = None  # [P]   how many candidates each stands for; for networks with one h a question

    @property
    def question_by_pair(self) -> Tensor:
        return self.question.index_select(0, self.question_of)  # [P, H]


class AnswerNetwork(nn.Module):
    """The base of networks: p(y = 1 | q, a, h) is the sigmoid of `logits(h, encoding)`.

    As it stands h has no dimensions: then the KL is zero and the bound is the log likelihood itself, which is all that
    a deterministic model needs. A latent model has `prior_by_question` and `posterior` of its own.

    An example, which the bound has a value for, is a pair. Where all candidates of a question share its h
    (`latent_of_question`), it is the question with all of them.
    """

    has_latent = False
    latent_of_question = False
    importance_weighted = False  # whether training maximises that bound in the place of the plain one
    training_samples = 1  # of h, for each example
    learns_from = "answerable"  # the protocol of its training questions: those with a right answer, or `all`
    fewest_latent_dims = 1
    trained_by_gradient = True
    updates = 700  # enough: about 13 passes over WikiQA; 25 were no better in trials on training questions
    joins_columns = True  # whether counts and position can be added to its probability
    parallel_training = False  # whether its training has jobs for several workers (`threads.py`)
    reads_positions = False  # whether the place of a candidate in its document counts inside
    feature_names: tuple[str, ...] = ()  # what a user may choose of
    pair_columns: tuple[str, ...] = ()  # of `overlap.py`, if the network reads any beside the words
    reads_word_features = False  # whether it reads those of `word_features.py`
    reads_likeness = False  # whether it reads how alike both sentences and their words are by `likeness.py`
    untrained: "type[AnswerScorer] | None" = None  # what ranks in its place before any fit
    pretrained = False  # whether it begins from a pretrained encoder, which knows every word and needs no word vectors
    reads_pieces = False  # whether it reads question and candidate as one sequence of word pieces
    passes: int | None = None  # over the pairs in training; None: as many as `updates` need
    learning_rate_factor = 1.0
    batch_factor = 1.0  # of the pairs per update
    reads_states = False  # whether words begin as states of a pretrained encoder, and word vectors are not looked at
    listwise = 0.0  # the weight of the listwise loss beside the bound: see `AnswerTask`
    cross_entropy = 1.0  # that of the bound

    def __init__(self, vocabulary_size: int, embedding_dim: int = 50, fixed_words: int = 0):
        super().__init__()
        self.word_vectors = WordEmbedding(vocabulary_size, embedding_dim, fixed_words)

    @property
    def counts_shared_words(self) -> bool:
        """Whether a word counts that the question has too, though the vocabulary has it not."""
        return bool(self.pair_columns)

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
        """log p(y | q, a, h) of each pair by itself, [S, P], for h of shape [S, P, K]."""
        logits = self.logits(h, encoding)
        return encoding.labels * logits - nn.functional.softplus(logits)  # [S, P]

    # Prediction

    def prior_by_question(self, encoding: Encoding) -> DiagonalGaussian:
        """p(h | q), one row per question."""
        return DiagonalGaussian.standard(encoding.question[:, :0])  # [Q, 0]

    def prior_samples(self, encoding: Encoding, samples: int) -> Tensor:
        """h of the prior, drawn once per question and shared by its candidates: a sample is then one ranking."""
        drawn = self.prior_by_question(encoding).rsample(samples)  # [S, Q, K]
        return drawn.index_select(1, encoding.question_of)  # [S, P, K]

    def attention_given(self, h: Tensor, encoding: Encoding) -> Tensor | None:
        """alpha on every word of every answer, [S, P, T]; None for a network without attention."""
        return None
