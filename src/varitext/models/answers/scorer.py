"""What systems have in common that no gradient trains: features of a pair, and a logistic regression on them.

A network learns from batches of word numbers. These learn at once from the questions themselves, since words that
training never saw are half of what they go by. What they learned is in buffers: the model folder keeps nothing else.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from varitext.corpora.question_answers import QuestionAnswers
from varitext.errors import InputError
from varitext.models.answers.features.overlap import Overlap
from varitext.models.answers.regression import Regression, Standardisation
from varitext.models.answers.vocabulary import AnswerWords
from varitext.text import Vocabulary

MIN_COEFFICIENT = 1e-6


class AnswerScorer(nn.Module):
    """The base of such systems: `learn_words` and `features` are their own.

    The log odds of a pair are a linear function of its features, each standardised. A system with one feature ranks by
    it, and the regression only says what probability its values mean.
    """

    has_latent = False
    latent_of_question = False
    training_samples = 1
    learns_from = "answerable"  # the protocol of its training questions
    fewest_latent_dims = 1
    trained_by_gradient = False
    updates = 0
    joins_columns = True  # whether counts and position can be added: not to a system that is made of these
    parallel_training = False  # whether its training has jobs for several workers (`threads.py`)
    reads_positions = False  # whether the place of a candidate in its document counts inside
    counts_shared_words = True  # whether a word counts that the question has too, though the vocabulary has it not
    feature_names: tuple[str, ...] = ()  # what a user may choose of
    untrained: "type[AnswerScorer] | None" = None  # what ranks in its place before any fit
    pretrained = False  # whether it needs a pretrained encoder, which knows every word
    passes: int | None = None
    learning_rate_factor = 1.0
    batch_factor = 1.0
    reads_states = False  # whether words are looked at as states of a pretrained encoder
    named_features: tuple[str, ...] | None = None  # what was chosen of its features, where there is a choice

    mean: Tensor  # [F]
    scale: Tensor  # [F]
    coefficients: Tensor  # [F]
    intercept: Tensor
    document_frequencies: Tensor  # [V]
    n_answers: Tensor

    def __init__(self, vocabulary: Vocabulary, columns: Sequence[str]):
        super().__init__()
        self.vocabulary, self.columns = vocabulary, tuple(columns)
        for name in ("mean", "scale", "coefficients"):
            self.register_buffer(name, torch.zeros(len(self.columns), dtype=torch.float64))
        self.register_buffer("intercept", torch.zeros((), dtype=torch.float64))
        self.register_buffer("document_frequencies", torch.zeros(len(vocabulary), dtype=torch.int64))
        self.register_buffer("n_answers", torch.zeros((), dtype=torch.int64))

    # What a system says for itself

    def learn_words(self, train: QuestionAnswers, dev: QuestionAnswers, words: AnswerWords, seed: int) -> None:
        """Learn all that the features need, but for how rare words are."""

    def features(self, question_answers: QuestionAnswers) -> np.ndarray:
        """The columns of every pair, [P, F], in the order of the corpus; NaN where one is unknown."""
        raise NotImplementedError

    # What is the same for all

    def learn(self, train: QuestionAnswers, dev: QuestionAnswers, words: AnswerWords, seed: int = 0) -> None:
        overlap = Overlap.learn(train, self.vocabulary)
        self.document_frequencies.copy_(torch.from_numpy(overlap.document_frequencies))
        self.n_answers.fill_(overlap.n_answers)
        self.learn_words(train, dev, words, seed)
        self._fit_regression(self.features(train), train.labels)

    def log_odds(self, question_answers: QuestionAnswers) -> np.ndarray:
        """The log odds of every pair that the answer is right; labels are not looked at."""
        regression = Regression(self.coefficients.numpy(), self.intercept.item())
        return regression.log_odds(self._standardised(self.features(question_answers)))  # [P]

    @property
    def overlap(self) -> Overlap:
        """How rare words are among the training answers."""
        return Overlap(self.vocabulary, self.document_frequencies.numpy(), int(self.n_answers))

    def _fit_regression(self, values: np.ndarray, labels: np.ndarray) -> None:
        mean, scale = Standardisation.learn(values, np.isfinite(values))
        self.mean.copy_(torch.from_numpy(mean))
        self.scale.copy_(torch.from_numpy(scale))
        coefficients, intercept = Regression.fit(self._standardised(values), labels)
        if len(coefficients) == 1:
            coefficients = np.maximum(coefficients, MIN_COEFFICIENT)
        self.coefficients.copy_(torch.from_numpy(coefficients))
        self.intercept.fill_(intercept)

    def _standardised(self, values: np.ndarray) -> np.ndarray:
        """What is unknown says nothing: it stands at the mean."""
        standardise = Standardisation(self.mean.numpy(), self.scale.numpy())
        return np.asarray(np.nan_to_num(standardise(values), nan=0.0))  # [P, F]


def chosen(names: Sequence[str] | str | None, known: Sequence[str], default: Sequence[str]) -> tuple[str, ...]:
    """The features named, in the order of `known`; a text may name several, with commas."""
    if names is None:
        return tuple(default)
    named = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    unknown = [name for name in named if name not in known]
    if unknown or not named:
        what = f"no feature of this system is called {unknown[0]!r}" if unknown else "no feature is named"
        raise InputError(f"{what}; there are: {', '.join(known)}")
    return tuple(name for name in known if name in named)
