"""What systems without gradients have in common: features of a pair, and a logistic regression on them.

There is no latent variable. Scorers learn from the questions themselves, not from word numbers, since words that
training never saw are half of their evidence. What they learned is in numpy arrays, which the model folder stores: it
stores nothing else, and ranking needs no torch.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from varitext.corpora.question_answers import QuestionAnswers
from varitext.errors import InputError
from varitext.models.answers.features.overlap import Overlap
from varitext.models.answers.model import AnswerModel
from varitext.text import Vocabulary

if TYPE_CHECKING:
    from varitext.models.answers.vocabulary import AnswerWords

MIN_COEFFICIENT = 1e-6


class Standardisation(NamedTuple):
    """Mean and scale of each column, over its known values."""

    mean: np.ndarray  # [F]
    scale: np.ndarray  # [F]

    @classmethod
    def learn(cls, values: np.ndarray, known: np.ndarray, rounding: float = 0.0) -> "Standardisation":
        """Learn them; a column that does not vary, except by `rounding` relative to its mean, keeps a scale of one."""
        count = np.maximum(known.sum(0), 1)
        mean = np.where(known, values, 0).sum(0) / count
        scale = np.sqrt((np.where(known, values - mean, 0) ** 2).sum(0) / count)
        return cls(mean, np.where(scale > rounding * np.abs(mean), scale, 1))

    def __call__(self, values: np.ndarray) -> np.ndarray:
        standardised: np.ndarray = (values - self.mean) / self.scale
        return standardised  # [P, F]   NaN where a value is unknown


class Regression(NamedTuple):
    coefficients: np.ndarray  # [F]
    intercept: float

    @classmethod
    def fit(cls, columns: np.ndarray, labels: np.ndarray) -> "Regression":
        """Fit with the L2 penalty of standardised columns; every value must be known."""
        from sklearn.linear_model import LogisticRegression  # slow to import, and not needed to rank

        fitted = LogisticRegression(C=1.0, max_iter=1000).fit(columns, labels)
        return cls(fitted.coef_[0], float(fitted.intercept_[0]))

    def log_odds(self, columns: np.ndarray) -> np.ndarray:
        log_odds: np.ndarray = columns @ self.coefficients + self.intercept
        return log_odds  # [P]


def listwise_weights(
    columns: np.ndarray, labels: np.ndarray, question_of: np.ndarray, prior: np.ndarray, strength: float | np.ndarray
) -> np.ndarray:
    """The weights w, [F], that rank the candidates of each question by columns @ w.

    They minimise the mean over questions of -log softmax(columns @ w) of the right answers, plus strength times the
    squared distance from the prior, in standardised columns (one strength, or one for each). Questions without a right
    and a wrong answer carry no information.
    """
    from scipy.optimize import minimize  # slow to import, and not needed to rank

    n_right, n = np.bincount(question_of, labels), np.bincount(question_of)
    chosen = ((n_right > 0) & (n_right < n))[question_of]
    if not chosen.any():
        return prior
    _, group = np.unique(question_of[chosen], return_inverse=True)
    scale = np.maximum(columns[chosen].std(0), 1e-9)
    values, begin = columns[chosen] / scale, np.flatnonzero(np.diff(group, prepend=-1))
    share = labels[chosen] / np.bincount(group, labels[chosen])[group] / len(begin)  # [P] sums to one

    def objective(weights: np.ndarray) -> tuple[float, np.ndarray]:
        scores = values @ weights
        scores = scores - np.maximum.reduceat(scores, begin)[group]
        total = np.add.reduceat(np.exp(scores), begin)[group]
        gradient = values.T @ (np.exp(scores) / total / len(begin) - share)
        away = weights - prior * scale
        held = strength * away
        return float(held @ away - share @ (scores - np.log(total))), gradient + 2 * held

    found = minimize(objective, prior * scale, jac=True, method="L-BFGS-B")
    return np.asarray(found.x / scale)


class AnswerScorer(AnswerModel):
    """The base class; a system implements `learn_words` and `features`.

    The log odds of a pair are a linear function of its standardised features. A system with a single feature ranks by
    it, and the regression only turns its values into probabilities.
    """

    trained_by_gradient = reads_word_vectors = False
    counts_shared_words = True  # whether a word shared with the question counts even if it is not in the vocabulary
    named_features: tuple[str, ...] | None = None  # the features chosen, if there is a choice

    mean: np.ndarray  # [F]
    scale: np.ndarray  # [F]
    coefficients: np.ndarray  # [F]
    intercept: np.ndarray
    document_frequencies: np.ndarray  # [V]
    n_answers: np.ndarray

    def __init__(self, vocabulary: Vocabulary, columns: Sequence[str]):
        self.vocabulary, self.columns = vocabulary, tuple(columns)
        self.stored: list[str] = []  # the names of the arrays in the model folder
        for name in ("mean", "scale", "coefficients"):
            self.declare(name, (len(self.columns),))
        self.declare("intercept", ())
        self.declare("document_frequencies", (len(vocabulary),), np.int64)
        self.declare("n_answers", (), np.int64)

    # What is learned

    def declare(self, name: str, shape: tuple[int, ...], dtype: type[np.generic] = np.float64) -> None:
        """Add an attribute that is learned: zeros, which take no memory until `assign` replaces them."""
        self.stored.append(name)
        setattr(self, name, np.broadcast_to(np.zeros((), dtype), shape))

    def assign(self, **learned: Any) -> None:
        """Replace declared arrays by these values; a single number is repeated."""
        for name, values in learned.items():
            declared = getattr(self, name)
            setattr(self, name, np.broadcast_to(np.asarray(values).astype(declared.dtype), declared.shape).copy())

    def state_dict(self) -> dict[str, np.ndarray]:
        """All that was learned, by name."""
        return {name: getattr(self, name) for name in self.stored}

    def load_state_dict(self, learned: Mapping[str, np.ndarray]) -> None:
        """Take what another scorer of the same shapes has learned."""
        self.assign(**{name: learned[name] for name in self.stored})

    # Implemented by each system

    def learn_words(self, train: QuestionAnswers, dev: QuestionAnswers, words: "AnswerWords", seed: int) -> None:
        """Learn what the features need, except idf."""

    def features(self, question_answers: QuestionAnswers) -> np.ndarray:
        """The columns of every pair, [P, F], in the order of the corpus; NaN where one is unknown."""
        raise NotImplementedError

    # The same for all

    def learn(self, train: QuestionAnswers, dev: QuestionAnswers, words: "AnswerWords", seed: int = 0) -> None:
        self.use_frequencies(Overlap.learn(train, self.vocabulary))
        self.learn_words(train, dev, words, seed)
        self._fit_regression(self.features(train), train.labels)

    def use_frequencies(self, overlap: Overlap) -> None:
        """Take document frequencies, of training answers or of an index."""
        self.assign(document_frequencies=overlap.document_frequencies, n_answers=overlap.n_answers)

    def log_odds(self, question_answers: QuestionAnswers) -> np.ndarray:
        """The log odds that each answer is right, [P]. Labels are not read."""
        regression = Regression(self.coefficients, self.intercept.item())
        return regression.log_odds(self._standardised(self.features(question_answers)))  # [P]

    @property
    def overlap(self) -> Overlap:
        """Document frequencies of words among the training answers, or in an index."""
        return Overlap(self.vocabulary, self.document_frequencies, int(self.n_answers))

    def _fit_regression(self, values: np.ndarray, labels: np.ndarray) -> None:
        mean, scale = Standardisation.learn(values, np.isfinite(values))
        self.assign(mean=mean, scale=scale)
        coefficients, intercept = Regression.fit(self._standardised(values), labels)
        if len(coefficients) == 1:
            coefficients = np.maximum(coefficients, MIN_COEFFICIENT)
        self.assign(coefficients=coefficients, intercept=intercept)

    def _standardised(self, values: np.ndarray) -> np.ndarray:
        """An unknown value takes the mean."""
        standardise = Standardisation(self.mean, self.scale)
        return np.asarray(np.nan_to_num(standardise(values), nan=0.0))  # [P, F]


def chosen(names: Sequence[str] | str | None, known: Sequence[str], default: Sequence[str]) -> tuple[str, ...]:
    """The features named, in the order of `known`; a string may name several, separated by commas."""
    if names is None:
        return tuple(default)
    named = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    unknown = [name for name in named if name not in known]
    if unknown or not named:
        what = f"no feature of this model is called {unknown[0]!r}" if unknown else "features is empty"
        raise InputError(f"{what}; there are: {', '.join(known)}")
    return tuple(name for name in known if name in named)
