"""AnswerRanker: what a user holds. Questions with candidates in; rankings that know how sure they are out."""

import copy
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from varitext.answers.first_stage import FirstStage, OneGo, build_stage
from varitext.answers.fitting import (
    Lesson,
    Unseen,
    architecture_for,
    check_settings,
    divide,
    epochs_for,
    joined_columns,
)
from varitext.answers.folder import KIND, restore_answer_ranker, save_answer_ranker
from varitext.answers.folds import check_positions, fold_progress, out_of_fold, question_folds
from varitext.answers.ranking import AnswerEvaluation, Ranking, answer_evaluation, as_corpus, check_known, ranked
from varitext.answers.task import PREDICTION_SAMPLES
from varitext.corpora.arranged import arrange
from varitext.corpora.question_answers import QuestionAnswers, check_both_labels
from varitext.errors import InputError
from varitext.models.answers import model_class
from varitext.models.answers.features.overlap import PLACE, Overlap, PairFeatures
from varitext.models.answers.network import AnswerNetwork
from varitext.models.answers.scorer import AnswerScorer
from varitext.models.answers.vocabulary import AnswerWords, VectorSource, learn_words
from varitext.runtime.devices import check_device
from varitext.runtime.threads import running_on
from varitext.store import StoredModel, load_as
from varitext.training.settings import Progress, TrainingState
from varitext.training.trainer import Trainer


class AnswerRanker(BaseEstimator):
    """Ranks candidate sentences for a question, with scikit-learn's manners.

    It learns from the `questions` that have a right answer, or from "all" of them; these protocols are those of
    `corpora/protocols.py`. Training candidates of more than `longest_answer` words are left out: where those to rank
    are short, they are of another kind.

    The vocabulary is that of the training part, words that stand there twice, or once and have a vector, and up to
    `unseen_words` others that have one, since what a question asks about is often new. `vectors` are where they begin:
    those of the data folder if they are there, else a random start; or a file, `WordVectors`, or "random". They keep
    their width, or are reduced to `embedding_dim` by their principal components. Words that have one keep it, unless
    `tune_word_vectors`, which leaves out unseen words; words that have none learn theirs. Numbers are read alike: 1969
    is 0000.

    Training makes about 700 updates of `batch_size` pairs, in 8 to 30 passes over them, unless `epochs` are given.

    With `counts` (words shared) or `position` (place and length) a logistic regression joins these with the model's log
    odds. It is fitted on out-of-fold probabilities: the training questions are cut into `folds`, and a fold's pairs are
    judged by a network that was trained on the other folds. So fitting costs `folds` more networks. The same question
    asked twice is never in two folds.

    `features` names what a system of features uses: one column of `overlap` is a plain ranking by it, `word_alignment`
    and `lclr` have groups, and with "overlap" a `deep_cnn` reads counts inside. Without it they take what they have.

    >>> ranker = AnswerRanker(counts=True).fit(train, dev)                  # doctest: +SKIP
    >>> ranker.rank("who wrote Ulysses?", sentences).candidates[0].text     # doctest: +SKIP
    """

    def __init__(
        self,
        model: str = "nasm",
        latent_dim: int = 50,
        *,
        counts: bool = False,
        position: bool = False,
        features: Sequence[str] | str | None = None,
        folds: int = 3,
        questions: str = "answerable",
        longest_answer: int | None = None,
        embedding_dim: int | None = None,
        hidden_dim: int = 50,
        layers: int = 3,
        dropout: float = 0.4,
        vectors: VectorSource = None,
        unseen_words: int = 50_000,
        tune_word_vectors: bool = False,
        epochs: int | None = None,
        batch_size: int = 128,
        learning_rate: float = 3e-3,
        weight_decay: float = 0.0,
        averaging: float = 0.97,
        most_wrong: int | None = 10,
        kl_warm_up: float = 0.2,
        free_bits: float = 0.0,
        patience: int = 5,
        smoothing: int = 3,
        samples: int = 1,
        prediction_samples: int = PREDICTION_SAMPLES,
        time_limit: float | None = None,
        dev_share: float = 0.1,
        threads: int | None = None,
        device: str = "cpu",
        seed: int = 0,
    ):
        self.model = model
        self.latent_dim = latent_dim
        self.counts = counts
        self.position = position
        self.features = features
        self.folds = folds
        self.questions = questions
        self.longest_answer = longest_answer
        self.embedding_dim = embedding_dim
        self.hidden_dim = hidden_dim
        self.layers = layers
        self.dropout = dropout
        self.vectors = vectors
        self.unseen_words = unseen_words
        self.tune_word_vectors = tune_word_vectors
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.averaging = averaging
        self.most_wrong = most_wrong
        self.kl_warm_up = kl_warm_up
        self.free_bits = free_bits
        self.patience = patience
        self.smoothing = smoothing
        self.samples = samples
        self.prediction_samples = prediction_samples
        self.time_limit = time_limit
        self.dev_share = dev_share
        self.threads = threads
        self.device = device
        self.seed = seed

    # Learning

    def fit(
        self,
        question_answers: QuestionAnswers,
        dev: QuestionAnswers | None = None,
        progress: Progress | None = None,
        checkpoint: Path | None = None,
        resume: bool = False,
    ) -> "AnswerRanker":
        """Learn from questions. `dev` questions choose when to stop; without them a share of the others is held out.

        Ctrl-C ends the fit at the next safe moment with a KeyboardInterrupt; the best model so far is kept. It ranks
        without counts and position if it was cut short before these were learned.
        """
        check_settings(self)
        check_both_labels(question_answers)
        if self.position:
            check_positions(question_answers)
        train, dev = divide(self, question_answers, dev)
        self.corpus_ = {name: getattr(question_answers, name) for name in ("name", "part", "sha256")}
        self.n_training_questions_, self.n_training_pairs_ = train.n_questions, train.n_pairs
        self.n_dev_questions_, self.epochs_ = dev.n_questions, epochs_for(self, train)
        lesson = Lesson(train, dev, self._learn_words(train), progress, checkpoint, resume)
        self.combination_ = None
        with self.running():
            self._fit_first_stage(lesson)
            if joined_columns(self):
                self._fit_second_stage(lesson)
        return self

    def trainer_for(self, train: QuestionAnswers, dev: QuestionAnswers) -> Trainer | OneGo:
        """The training of the first stage as `fit` runs it, before its first step: for benchmarks."""
        check_settings(self)
        self.epochs_ = epochs_for(self, train)
        lesson = Lesson(train, dev, self._learn_words(train))
        return self._build_stage(lesson.words).trainer(self, lesson)

    def running(self) -> AbstractContextManager[None]:
        """Its `threads`, used as suits the training of its model; for whoever calls a trainer themselves."""
        return running_on(self.threads, model_class(self.model).parallel_training)

    def combined(self, counts: bool, position: bool) -> "AnswerRanker":
        """The same network with another second stage, or none; at once, from what this fit saw out of fold."""
        check_is_fitted(self)
        other = copy.copy(self)
        other.counts, other.position, other.combination_ = counts, position, None
        columns = joined_columns(other)
        if columns and not hasattr(self, "_unseen"):
            raise InputError("only a ranker that was just fitted with counts or position can be combined anew")
        if columns:
            other.combination_ = self._unseen.combination(columns)
        return other

    # Using what was learned

    def predict_proba(self, question_answers: QuestionAnswers, samples: int | None = None) -> np.ndarray:
        """The probability of each pair, in the order of the corpus, that the answer is right; labels are not looked at.

        It is the mean over samples of the prior, which all candidates of a question share; then, if so fitted, combined
        with counts and position.
        """
        check_is_fitted(self)
        arranged = arrange(question_answers)
        return arranged.given_order(self._probability(arranged.question_answers, samples))

    def sample_proba(self, question_answers: QuestionAnswers, samples: int | None = None) -> np.ndarray:
        """The same for every sample of the prior, [samples, pairs]: each row is one ranking of the candidates.

        A model without a latent has one row, whatever was asked for.
        """
        check_is_fitted(self)
        arranged = arrange(question_answers)
        features = self._features(arranged.question_answers)
        sampled = self._sampled(arranged.question_answers, samples)
        return arranged.given_order(np.stack([self._combined(one, features) for one in sampled]))

    def evaluate(
        self, question_answers: QuestionAnswers, protocol: str = "answerable", samples: int | None = None
    ) -> AnswerEvaluation:
        """MAP and MRR of the questions that the protocol counts, the calibration of the same pairs and of rankings."""
        check_is_fitted(self)
        question_answers = arrange(question_answers).question_answers  # sums, too, depend on the order of their terms
        sampled, features = self._sampled(question_answers, samples), self._features(question_answers)
        probability = self._combined(sampled.mean(0), features)
        each = np.stack([self._combined(one, features) for one in sampled])
        return answer_evaluation(question_answers, probability, each, protocol, self.seed)

    def rank(
        self,
        question: str,
        candidates: Sequence[str],
        samples: int | None = None,
        positions: Sequence[int | None] | None = None,
    ) -> Ranking:
        """The candidates, best first. `positions` are their places in a document, from 0, if the model uses these.

        How sure that is comes from samples of the prior and of the labels given these: see `posterior_ranks.py`.
        Sentences longer than 250 words are cut there, with a warning. Probabilities are those of `predict_proba`.
        """
        check_is_fitted(self)
        arranged = arrange(as_corpus(question, candidates, positions))
        corpus = arranged.question_answers
        check_known(corpus, self.vocabulary_)
        sampled = self._sampled(corpus, samples)  # [S, P]
        features = self._features(corpus)
        probability = self._combined(sampled.mean(0), features)
        each = np.stack([self._combined(one, features) for one in sampled])
        return Ranking(question, ranked(arranged, probability, each, self._attention(corpus, samples)), len(sampled))

    @property
    def network_(self) -> AnswerNetwork | AnswerScorer:
        """The model itself, a torch module."""
        return self.first_stage_.model

    @property
    def reads_positions_(self) -> bool:
        """Whether the place of a candidate in its document counts."""
        columns = () if self.combination_ is None else self.combination_.columns
        return self.network_.reads_positions or PLACE[0] in columns

    # Keeping it

    def save(self, folder: str | Path, overwrite: bool = False) -> None:
        """Write the model folder, whole or not at all; plain files that are safe to load."""
        check_is_fitted(self)
        save_answer_ranker(self, Path(folder), overwrite)

    @classmethod
    def load(cls, folder: str | Path) -> "AnswerRanker":
        return load_as(Path(folder), KIND, cls.from_stored)

    @classmethod
    def from_stored(cls, stored: StoredModel, folder: Path) -> "AnswerRanker":
        return restore_answer_ranker(cls, stored, folder)

    def move_to(self, device: str) -> "AnswerRanker":
        """Compute there from now on."""
        check_device(device)
        self.device = device
        self.first_stage_.move_to(device)
        return self

    # Inside: learning

    def _learn_words(self, train: QuestionAnswers) -> AnswerWords:
        """Sets `vocabulary_`, `vectors_` and `overlap_`."""
        unseen = 0 if self.tune_word_vectors else self.unseen_words  # among tuned ones they would be out of place
        words = learn_words(train, self.vectors, self.embedding_dim, self.seed, unseen)
        self.vocabulary_, self.overlap_ = words.vocabulary, Overlap.learn(train, words.vocabulary)
        self.vectors_ = {"start": words.source, "n_known": words.n_known}
        return words

    def _build_stage(self, words: AnswerWords) -> FirstStage:
        """Sets `architecture_` and `training_`."""
        stage = build_stage(self.model, architecture_for(self, words), self.overlap_, self.device, self.seed)
        self.architecture_, self.training_ = stage.architecture, stage.training_record(self)
        return stage

    def _fit_first_stage(self, lesson: Lesson) -> None:
        if joined_columns(self):
            lesson = lesson._replace(progress=fold_progress(lesson.progress, None, self.folds))
        self.first_stage_ = self._build_stage(lesson.words)
        trainer = self.first_stage_.trainer(self, lesson)
        try:
            trainer.train(lesson.resume)
        finally:  # also when training gave up: the best weights so far are in place
            if trainer.state.stopped:
                self._record(trainer.state)
        _stop_if_interrupted(trainer.state)

    def _record(self, state: TrainingState) -> None:
        """Keep what the fit learned about itself."""
        self.network_.eval().requires_grad_(False)
        self.history_, self.stopped_ = state.history, state.stopped
        self.fit_seconds_, self.dev_map_ = state.seconds, state.best_record["dev_map"]

    def _fit_second_stage(self, lesson: Lesson) -> None:
        """Judge every training pair by a model that never saw its question, and learn how far to trust that."""
        train, judge = lesson.train, partial(self._judge_unseen, lesson)
        fold_of = question_folds(train, self.folds, self.seed)  # [questions]
        try:
            unseen = out_of_fold(train, fold_of, judge, lesson.progress, lesson.checkpoint)
        except KeyboardInterrupt:
            self.stopped_ = "interrupted"
            raise
        self._unseen = Unseen(unseen, self.overlap_.features(train), train.labels)
        self.combination_ = self._unseen.combination(joined_columns(self))

    def _judge_unseen(
        self,
        lesson: Lesson,
        seen: QuestionAnswers,
        unseen: QuestionAnswers,
        checkpoint: Path | None,
        progress: Progress | None,
    ) -> np.ndarray:
        stage = self._build_stage(lesson.words)
        lesson = lesson._replace(train=seen, checkpoint=checkpoint, progress=progress)
        state = stage.trainer(self, lesson).train(lesson.resume)
        _stop_if_interrupted(state)
        self.fit_seconds_ += state.seconds
        stage.model.eval()
        return stage.sampled(unseen, self._n_samples(None), self.seed).mean(0)

    # Inside: prediction

    def _sampled(self, question_answers: QuestionAnswers, samples: int | None) -> np.ndarray:
        """The first stage's probabilities for every sample of the prior, [S, P]."""
        with running_on(self.threads):
            return self.first_stage_.sampled(question_answers, self._n_samples(samples), self.seed)

    def _n_samples(self, samples: int | None) -> int:
        """How many are drawn: as many as asked for, or else set; without a latent all would be the same one."""
        samples = self.prediction_samples if samples is None else samples
        if samples < 1:
            raise InputError(f"samples must be at least 1, not {samples}")
        return samples if model_class(self.model).has_latent else 1

    def _probability(self, question_answers: QuestionAnswers, samples: int | None) -> np.ndarray:
        probability = self._sampled(question_answers, samples).mean(0)
        return self._combined(probability, self._features(question_answers))

    def _features(self, question_answers: QuestionAnswers) -> PairFeatures | None:
        return None if self.combination_ is None else self.overlap_.features(question_answers)

    def _combined(self, probability: np.ndarray, features: PairFeatures | None) -> np.ndarray:
        return probability if features is None else self.combination_.probability(probability, features)

    def _attention(self, question_answers: QuestionAnswers, samples: int | None) -> np.ndarray | None:
        with running_on(self.threads):
            return self.first_stage_.attention(question_answers, self._n_samples(samples), self.seed)


def _stop_if_interrupted(state: TrainingState) -> None:
    if state.stopped == "interrupted":
        raise KeyboardInterrupt("training was interrupted; the model holds the best weights so far")
