"""AnswerRanker: what a user holds. Questions with candidates in; rankings that know how sure they are out."""

import copy
import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from varitext.answers.candidate_index import CandidateIndex
from varitext.answers.derived_settings import check_settings, joined_columns
from varitext.answers.fitting import FittedAnswers, fit_stages, training_threads
from varitext.answers.folder import KIND, restore, save
from varitext.answers.many import rankings_of
from varitext.answers.prediction import Prediction
from varitext.answers.question_input import QuestionSource, as_corpus, as_questions, check_known, known_candidates
from varitext.answers.ranking import AnswerEvaluation, Ranking, answer_evaluation
from varitext.answers.ranking_posterior import RankingPosterior, ranking_posterior
from varitext.answers.settings import DEFAULT_MODEL, PREDICTION_SAMPLES, AnswerRecipe, AnswerSettings
from varitext.answers.training_data import training_data
from varitext.answers.training_run import TrainingRun
from varitext.answers.untrained import ranks_untrained, untrained
from varitext.corpora.own_questions import USUAL_COLUMNS, QuestionColumns
from varitext.corpora.question_answers import CanonicalOrder, QuestionAnswers, canonical_order
from varitext.errors import InputError
from varitext.models.answers.features.overlap import COUNTS
from varitext.models.answers.vocabulary import VectorSource
from varitext.runtime.devices import check_device, running_on
from varitext.store import StoredModel, load_as
from varitext.text import Vocabulary
from varitext.training.settings import Progress


class AnswerRanker(BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """Ranks candidate sentences for a question, with scikit-learn's manners.

    It learns from the `questions` that have a right answer, or from "all" of them; these protocols are those of
    `corpora.PROTOCOLS`. Training candidates of more than `longest_answer` words are left out: where those to rank
    are short, they are of another kind.

    The vocabulary is that of the training part, words that stand there twice, or once and have a vector, and up to
    `unseen_words` others that have one, since what a question asks about is often new. `vectors` are where they begin:
    those of the data folder if they are there, else a random start; or a file, `WordVectors`, or "random". They keep
    their width, or are reduced to `embedding_dim` by their principal components. Words that have one keep it, unless
    `tune_word_vectors`, which leaves out unseen words; words that have none learn theirs. Numbers are read alike: 1969
    is 0000.

    Training makes about 700 updates of `batch_size` pairs, in 8 to 30 passes over them, unless `epochs` are given.

    `ensemble` networks are trained, from the seeds `seed`, `seed` + 1 and so on, and rank by their mean log odds.

    The default model, `compare`, reads counts and positions inside: `features` says which of these. Its probabilities
    are calibrated on the dev questions. To the other networks they can be joined:

    With `counts` (words shared) or `position` (place and length) a logistic regression joins these with the model's log
    odds. It is fitted on out-of-fold probabilities: the training questions are cut into folds, and a fold's pairs are
    predicted by a network that was trained on the others. So fitting costs as many networks more as there are folds.
    The same question asked twice is never in two folds.

    `features` names what a system of features uses: one column of `overlap` is a plain ranking by it, `word_alignment`
    and `lclr` have groups, and with "overlap" a `deep_cnn` reads counts inside. Without it they take what they have.

    `recipe` has the rest: how networks are built and trained (`AnswerRecipe`, of `varitext.answers.settings`).

    >>> ranker = AnswerRanker(counts=True).fit(train, dev)                  # doctest: +SKIP
    >>> ranker.rank("who wrote Ulysses?", sentences).candidates[0].text     # doctest: +SKIP
    """

    fitted_: FittedAnswers

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        latent_dim: int | None = None,
        *,
        ensemble: int = 1,
        counts: bool = False,
        position: bool = False,
        features: Sequence[str] | str | None = None,
        questions: str | None = None,
        longest_answer: int | None = None,
        vectors: VectorSource = None,
        embedding_dim: int | None = None,
        unseen_words: int = 50_000,
        tune_word_vectors: bool = False,
        epochs: int | None = None,
        batch_size: int = 128,
        learning_rate: float = 3e-3,
        prediction_samples: int = PREDICTION_SAMPLES,
        time_limit: float | None = None,
        threads: int | None = None,
        device: str = "cpu",
        seed: int = 0,
        recipe: AnswerRecipe | None = None,
    ):
        self.model = model
        self.latent_dim = latent_dim
        self.ensemble = ensemble
        self.counts = counts
        self.position = position
        self.features = features
        self.questions = questions
        self.longest_answer = longest_answer
        self.vectors = vectors
        self.embedding_dim = embedding_dim
        self.unseen_words = unseen_words
        self.tune_word_vectors = tune_word_vectors
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.prediction_samples = prediction_samples
        self.time_limit = time_limit
        self.threads = threads
        self.device = device
        self.seed = seed
        self.recipe = recipe

    @property
    def settings(self) -> AnswerSettings:
        """Its arguments, as the record that fitting reads and the model folder keeps."""
        return AnswerSettings(**self.get_params(deep=False) | {"recipe": self.recipe or AnswerRecipe()})

    # Learning

    def fit(
        self,
        question_answers: QuestionSource,
        dev: QuestionSource | None = None,
        progress: Progress | None = None,
        checkpoint: Path | None = None,
        resume: bool = False,
        columns: QuestionColumns = USUAL_COLUMNS,
    ) -> "AnswerRanker":
        """Learn from questions: a corpus, or a DataFrame with a row for every candidate and the `columns` named.

        `dev` questions choose when to stop; without them a share of the others is held out.

        Ctrl-C ends the fit at the next safe moment with a KeyboardInterrupt; the best model so far is kept. It ranks
        without counts and position if it was cut short before these were learned.
        """
        settings, run = self.settings, TrainingRun(progress, checkpoint, resume)
        check_settings(settings)
        train = as_questions(question_answers, columns, labelled=True)
        data = training_data(settings, train, None if dev is None else as_questions(dev, columns, labelled=True))
        with training_threads(settings):
            fit_stages(settings, data, run, self._take_over)
        return self

    def combined(self, counts: bool, position: bool) -> "AnswerRanker":
        """The same network with another second stage, or none; at once, from what this fit saw out of fold."""
        check_is_fitted(self)
        other = copy.copy(self)
        other.counts, other.position, combination = counts, position, None
        if columns := joined_columns(other.settings):
            if self.fitted_.out_of_fold is None:
                raise InputError("only a ranker that was just fitted with counts or position can be combined anew")
            combination = self.fitted_.out_of_fold.combination(columns)
        other.fitted_ = dataclasses.replace(self.fitted_, combination=combination)
        return other

    # Using what was learned

    def predict_proba(self, question_answers: QuestionAnswers, samples: int | None = None) -> np.ndarray:
        """The probability of each pair, in the order of the corpus, that the answer is right; labels are not looked at.

        Of each pair by itself: `rank` and `evaluate` have what a question's candidates make of each other (`joint.py`).
        It is the mean over samples of the prior, which all candidates of a question share; then, if so fitted, combined
        with counts and position. A candidate without a known word has 0, and those that only rounding tells apart
        are equal (`ties.py`).
        """
        arranged = canonical_order(question_answers)
        return arranged.restore_order(self._predict(arranged.question_answers, samples).probability)

    def sample_proba(self, question_answers: QuestionAnswers, samples: int | None = None) -> np.ndarray:
        """The same for every sample of the prior, [samples, pairs]: each row is one ranking of the candidates.

        A model without a latent has one row, whatever was asked for.
        """
        arranged = canonical_order(question_answers)
        return arranged.restore_order(self._predict(arranged.question_answers, samples).sampled)

    def evaluate(
        self,
        question_answers: QuestionSource,
        protocol: str = "answerable",
        samples: int | None = None,
        columns: QuestionColumns = USUAL_COLUMNS,
    ) -> AnswerEvaluation:
        """MAP and MRR of the questions that the protocol counts, the calibration of the same pairs and of rankings."""
        given = as_questions(question_answers, columns, labelled=True)
        question_answers = canonical_order(given).question_answers  # sums, too, depend on the order of their terms
        found = self._predict(question_answers, samples)
        posterior = self._ranking_posterior(found, question_answers)
        return answer_evaluation(question_answers, found, posterior, protocol, self.seed)

    def ranking_posterior(self, question_answers: QuestionAnswers, samples: int | None = None) -> RankingPosterior:
        """What `rank` says of each pair, for many questions; in the order of `canonical_order`."""
        question_answers = canonical_order(question_answers).question_answers
        return self._ranking_posterior(self._predict(question_answers, samples), question_answers)

    def rank(
        self,
        question: str,
        candidates: Sequence[str],
        samples: int | None = None,
        positions: Sequence[int | None] | None = None,
        abstain: float | None = None,
    ) -> Ranking:
        """The candidates, best first. `positions` are their places in a document, from 0, if the model uses these.

        They stand in the order of `predict_proba`. How sure that is comes from one joint model of which candidates are
        right (`joint.py`): P(right) and P(best) of each, P(none), and the ranks that each may have.
        Below the probability `abstain` that the first is right, the ranking says that it does not answer;
        `abstention_threshold` has those that dev questions chose. Sentences longer than 250 words are cut there, with
        a warning. Candidates without a known word come last.
        """
        self._check_ready()
        self._check_abstain(abstain)
        arranged = canonical_order(as_corpus(question, candidates, positions))
        known = self._known(arranged.question_answers)
        check_known(arranged.question_answers.questions[0], known, self._known_words)
        (ranking,) = self._rankings(arranged, known, samples, abstain, attention=True)
        return ranking

    def rank_many(
        self,
        questions: QuestionSource,
        samples: int | None = None,
        abstain: float | None = None,
        attention: bool = False,
        columns: QuestionColumns = USUAL_COLUMNS,
    ) -> list[Ranking]:
        """A ranking for each of many questions, in their order: as `rank` gives it, and faster.

        They are a corpus, a DataFrame with a row for every candidate, whose `columns` may have names of their own, or
        pairs of a question and its candidates. Labels are not needed. A question of which the model knows no candidate
        is ranked, too, with nothing to go by: all its candidates have probability 0.
        """
        self._check_ready()
        self._check_abstain(abstain)
        arranged = canonical_order(as_questions(questions, columns))
        return self._rankings(arranged, self._known(arranged.question_answers), samples, abstain, attention)

    def search(
        self,
        question: str,
        index: CandidateIndex,
        looked_at: int = 100,
        samples: int | None = None,
        abstain: float | None = None,
    ) -> Ranking:
        """The sentences of an indexed corpus, best first: of as many as are `looked_at`, which BM25 finds.

        A candidate's `place` is that in the corpus. An `InputError` if no sentence shares a word with the question.
        """
        if looked_at < 1:
            raise InputError(f"looked_at must be at least 1, not {looked_at}")
        found = index.search(question, looked_at).tolist()
        if not found:
            raise InputError("no sentence of the corpus has a word of the question")
        ranking = self.rank(question, [index.texts[place] for place in found], samples, abstain=abstain)
        placed = (dataclasses.replace(one, place=found[one.place]) for one in ranking.candidates)
        return dataclasses.replace(ranking, candidates=tuple(placed))

    def abstention_threshold(self, precision: float) -> float:
        """What `abstain` must be so that the first candidate is right in this share of answered dev questions."""
        check_is_fitted(self)
        thresholds = {} if self.fitted_.joint is None else self.fitted_.joint.thresholds
        if str(precision) not in thresholds:
            raise InputError(f"there is no threshold for {precision}; there are: {', '.join(thresholds) or 'none'}")
        threshold = thresholds[str(precision)]
        if threshold is None:
            raise InputError(f"no threshold reaches a precision of {precision} on the dev questions")
        return threshold

    @property
    def reads_positions(self) -> bool:
        """Whether the place of a candidate in its document counts."""
        self._check_ready()
        return self.fitted_.reads_positions

    # Keeping it

    def save(self, folder: str | Path, overwrite: bool = False) -> None:
        """Write the model folder, whole or not at all; plain files that are safe to load."""
        check_is_fitted(self)
        if self.fitted_.stopped == "untrained":
            raise InputError(f"{self.model} was not fitted: there is nothing to keep")
        save(self.settings, self.fitted_, Path(folder), overwrite)

    @classmethod
    def load(cls, folder: str | Path) -> "AnswerRanker":
        return load_as(Path(folder), KIND, cls.from_stored)

    @classmethod
    def from_stored(cls, stored: StoredModel, folder: Path) -> "AnswerRanker":
        """The ranker in a model folder that was read already."""
        restored = restore(stored, folder)
        ranker = cls(**vars(restored.settings))
        ranker._take_over(restored.learned)
        return ranker

    def move_to(self, device: str) -> "AnswerRanker":
        """Compute there from now on."""
        check_device(device)
        self.device = device
        self.fitted_.first_stage.move_to(device)
        return self

    # Inside

    def _check_ready(self) -> None:
        """It was fitted, or is of a kind that ranks without."""
        if not hasattr(self, "fitted_") and ranks_untrained(self.settings):
            self._take_over(untrained(self.settings))
        check_is_fitted(self)

    def _take_over(self, fitted: FittedAnswers) -> None:
        self.fitted_ = fitted

    def _predict(self, question_answers: QuestionAnswers, samples: int | None, attention: bool = False) -> Prediction:
        """What both stages say of arranged questions."""
        self._check_ready()
        if samples is not None and samples < 1:
            raise InputError(f"samples must be at least 1, not {samples}")
        with running_on(self.threads):
            found = self.fitted_.predict(question_answers, self.settings, samples, attention)
        return found.with_zero(~self._known(question_answers))

    def _rankings(
        self, arranged: CanonicalOrder, known: np.ndarray, samples: int | None, abstain: float | None, attention: bool
    ) -> list[Ranking]:
        found = self._predict(arranged.question_answers, samples, attention)
        posterior = self._ranking_posterior(found, arranged.question_answers)
        return rankings_of(arranged, found, posterior, known, abstain)

    def _ranking_posterior(self, found: Prediction, question_answers: QuestionAnswers) -> RankingPosterior:
        return ranking_posterior(
            None if self.fitted_.joint is None else self.fitted_.joint.model, found, question_answers
        )

    def _check_abstain(self, abstain: float | None) -> None:
        if abstain is not None and self.fitted_.joint is None:
            raise InputError("this model was fitted before rankers could abstain: fit it anew")
        if abstain is not None and not 0 <= abstain <= 1:
            raise InputError(f"abstain is a probability, from 0 to 1, not {abstain}")

    def _known(self, question_answers: QuestionAnswers) -> np.ndarray:
        """Whether each candidate has a word that counts, [P]."""
        columns = () if self.fitted_.combination is None else self.fitted_.combination.columns
        shared = self.fitted_.network.counts_shared_words or not set(COUNTS).isdisjoint(columns)
        return known_candidates(question_answers, self._known_words, shared)

    @property
    def _known_words(self) -> Vocabulary | None:
        """None: a pretrained encoder knows every word."""
        return None if self.fitted_.network.pretrained else self.fitted_.vocabulary
