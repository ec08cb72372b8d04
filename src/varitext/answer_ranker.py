"""AnswerRanker: what a user holds. Questions with candidates in; rankings that know how sure they are out."""

import copy
import dataclasses
import inspect
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.special import expit
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from varitext.answer_folds import check_positions, fold_progress, hold_out, out_of_fold, question_folds
from varitext.answer_task import (
    PREDICTION_PAIRS,
    PREDICTION_SAMPLES,
    AnswerObjective,
    AnswerTask,
    arrange,
    question_seeds,
    sampled_probabilities,
)
from varitext.answer_vectors import AnswerWords, VectorSource, learn_words
from varitext.combination import Combination
from varitext.corpora.question_answers import QuestionAnswers, check_both_labels, subset
from varitext.errors import InputError, TrainingDiverged
from varitext.evaluation.ranking import ranking_record
from varitext.models.answer_models import ANSWER_MODELS, SCORERS
from varitext.models.answer_network import AnswerNetwork
from varitext.models.answer_scorer import AnswerScorer
from varitext.overlap import COUNTS, PLACE, Overlap, PairFeatures
from varitext.pair_batches import PairBatches
from varitext.ranked_answers import AnswerEvaluation, Ranking, answer_evaluation, as_corpus, check_known, ranked
from varitext.store import StoredModel, load_as, load_weights, save_model
from varitext.threads import running_on
from varitext.training import Progress, Trainer, TrainingSettings
from varitext.word_vectors import WordVectors

KIND = "answer-ranker"
FIXED_VECTORS = "word_vectors.fixed"
EMBEDDING_DIM = 50  # the paper's; where there are no vectors to take it from
FREQUENCIES = "overlap.document_frequencies"


class _Lesson(NamedTuple):
    """What one fit learns from, and how it is watched."""

    train: QuestionAnswers
    dev: QuestionAnswers
    words: AnswerWords
    progress: Progress | None
    checkpoint: Path | None
    resume: bool


class _Unseen(NamedTuple):
    """Training pairs as the second stage sees them."""

    probability: np.ndarray  # out of fold
    features: PairFeatures
    labels: np.ndarray

    def combination(self, columns: tuple[str, ...]) -> Combination:
        return Combination.fit(self.probability, self.features.only(columns), self.labels)


class AnswerRanker(BaseEstimator):
    """Ranks candidate sentences for a question, with scikit-learn's manners.

    It learns from the `questions` that have a right answer, or from "all" of them; these protocols are those of
    `corpora/protocols.py`.

    The vocabulary is that of the training part: words that stand there twice, or once and have a vector. `vectors` are
    where word vectors begin: those of the data folder if they are there, else a random start; or a file, `WordVectors`,
    or "random". They keep their width, or are reduced to `embedding_dim` by their principal components. Words that have
    one keep it, unless `tune_word_vectors`; words that have none learn theirs. Numbers are read alike: 1969 is 0000.

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
        embedding_dim: int | None = None,
        hidden_dim: int = 50,
        layers: int = 3,
        dropout: float = 0.4,
        vectors: VectorSource = None,
        tune_word_vectors: bool = False,
        epochs: int = 15,
        batch_size: int = 256,
        learning_rate: float = 3e-3,
        weight_decay: float = 0.0,
        averaging: float = 0.0,
        most_wrong: int | None = 10,
        kl_warm_up: float = 0.2,
        free_bits: float = 0.0,
        patience: int = 5,
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
        self.embedding_dim = embedding_dim
        self.hidden_dim = hidden_dim
        self.layers = layers
        self.dropout = dropout
        self.vectors = vectors
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
        self._check_settings()
        check_both_labels(question_answers)
        if self.position:
            check_positions(question_answers)
        train = subset(arrange(question_answers).question_answers, self.questions)
        if dev is None:
            train, dev = hold_out(train, self.dev_share, self.seed)
        else:
            dev = subset(arrange(dev).question_answers, self.questions)
        check_both_labels(train)
        self.corpus_ = {name: getattr(question_answers, name) for name in ("name", "part", "sha256")}
        self.n_training_questions_, self.n_training_pairs_ = train.n_questions, train.n_pairs
        self.n_dev_questions_ = dev.n_questions
        lesson = _Lesson(train, dev, self._learn_words(train), progress, checkpoint, resume)
        self.combination_ = None
        with running_on(self.threads):
            self._fit_first_stage(lesson)
            if self._columns:
                self._fit_combination(lesson)
        return self

    def trainer_for(self, train: QuestionAnswers, dev: QuestionAnswers) -> Trainer:
        """The training of the network as `fit` runs it, before its first step: for benchmarks."""
        self._check_settings()
        return self._trainer(self._build(self._learn_words(train).start), train, dev)

    def combined(self, counts: bool, position: bool) -> "AnswerRanker":
        """The same network with another second stage, or none; at once, from what this fit saw out of fold."""
        check_is_fitted(self)
        other = copy.copy(self)
        other.counts, other.position, other.combination_ = counts, position, None
        if other._columns and not hasattr(self, "_unseen"):
            raise InputError("only a ranker that was just fitted with counts or position can be combined anew")
        if other._columns:
            other.combination_ = self._unseen.combination(other._columns)
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
        """The same for every sample of the prior, [samples, pairs]: each row is one ranking of the candidates."""
        check_is_fitted(self)
        arranged = arrange(question_answers)
        features = self._features(arranged.question_answers)
        sampled = self._sampled(arranged.question_answers, samples)
        return arranged.given_order(np.stack([self._combined(one, features) for one in sampled]))

    def evaluate(
        self, question_answers: QuestionAnswers, protocol: str = "answerable", samples: int | None = None
    ) -> AnswerEvaluation:
        """MAP and MRR of the questions that the protocol counts, and the calibration of the same pairs."""
        check_is_fitted(self)
        question_answers = arrange(question_answers).question_answers  # sums, too, depend on the order of their terms
        probability = self._probability(question_answers, samples)
        return answer_evaluation(question_answers, probability, protocol, samples or self.prediction_samples, self.seed)

    def rank(
        self,
        question: str,
        candidates: Sequence[str],
        samples: int | None = None,
        positions: Sequence[int | None] | None = None,
    ) -> Ranking:
        """The candidates, best first. `positions` are their places in a document, from 0, if the model uses these.

        Each sample of the prior is one ranking of all candidates: the share of samples that a candidate wins, and where
        it comes in the others. Sentences longer than 250 words are cut there, with a warning. Probabilities are those
        of `predict_proba`; more `samples` make the uncertainty finer.
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

    # Keeping it

    def save(self, folder: str | Path, overwrite: bool = False) -> None:
        """Write the model folder, whole or not at all; plain files that are safe to load."""
        check_is_fitted(self)
        settings = self.get_params(deep=False)
        settings["vectors"] = None if isinstance(self.vectors, (WordVectors, type(None))) else str(self.vectors)
        config = {
            "model": self.model,
            "settings": settings,
            "architecture": self.architecture_,
            "training": self.training_,
            "combination": None if self.combination_ is None else dataclasses.asdict(self.combination_),
            "learned": {name: getattr(self, name) for name in _LEARNED},
        }
        stored = StoredModel(KIND, config, self._stored_weights(), self.vocabulary_, self.history_)
        save_model(Path(folder), stored, overwrite)

    def _stored_weights(self) -> dict[str, torch.Tensor]:
        weights = self.network_.state_dict()
        if self.model not in SCORERS:
            weights[FIXED_VECTORS] = weights[FIXED_VECTORS].half()  # exact: they were rounded before training
        weights[FREQUENCIES] = torch.from_numpy(self.overlap_.document_frequencies.astype(np.int32))
        return weights

    @classmethod
    def load(cls, folder: str | Path) -> "AnswerRanker":
        return load_as(Path(folder), KIND, cls._from_stored)

    @classmethod
    def _from_stored(cls, stored: StoredModel, folder: Path) -> "AnswerRanker":
        config, weights = stored.config, dict(stored.weights)
        ranker = cls(**config["settings"])
        if config["model"] not in ANSWER_MODELS:
            raise InputError(f"{folder} holds a {config['model']!r}, which this varitext does not know")
        frequencies = weights.pop(FREQUENCIES).numpy().astype(np.int64)
        if not len(stored.vocabulary) == config["architecture"]["vocabulary_size"] == len(frequencies):
            raise InputError(f"{folder}: vocabulary.txt and the weights differ in size")
        for name in _LEARNED:
            setattr(ranker, name, config["learned"][name])
        if ranker.device.startswith("cuda") and not torch.cuda.is_available():
            ranker.device = "cpu"  # fitted on another machine
        ranker.architecture_, ranker.training_ = config["architecture"], config["training"]
        ranker.vocabulary_, ranker.history_ = stored.vocabulary, stored.metrics
        ranker._restore_network(config["model"], weights, folder)
        ranker.overlap_ = Overlap(stored.vocabulary, frequencies, ranker.n_training_pairs_)
        ranker.combination_ = _restored_combination(config["combination"])
        return ranker

    def _restore_network(self, model: str, weights: dict[str, torch.Tensor], folder: Path) -> None:
        if model in SCORERS:
            self.network_ = SCORERS[model](self.vocabulary_, **_without_size(self.architecture_))
            load_weights(self.network_, weights, folder)
            return
        self.network_ = ANSWER_MODELS[model](**self.architecture_)
        weights[FIXED_VECTORS] = weights[FIXED_VECTORS].float()
        load_weights(self.network_, weights, folder)
        self.network_.to(self.device).eval().requires_grad_(False)

    # Inside: learning

    @property
    def _columns(self) -> tuple[str, ...]:
        if self.model in SCORERS and not SCORERS[self.model].joins_columns:
            return ()
        return (COUNTS if self.counts else ()) + (PLACE if self.position else ())

    def _check_settings(self) -> None:
        if self.model not in ANSWER_MODELS:
            raise InputError(f"no model of answers is called {self.model!r}; there are: {', '.join(ANSWER_MODELS)}")
        if self.features is not None and "features" not in inspect.signature(ANSWER_MODELS[self.model]).parameters:
            raise InputError(f"{self.model} has no features to choose from: leave out features")
        for name in ("latent_dim", "embedding_dim", "hidden_dim", "layers", "prediction_samples"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.folds < 2:
            raise InputError(f"folds must be at least 2, not {self.folds}")
        if not 0 <= self.free_bits < np.inf:
            raise InputError(f"free_bits must be 0 or more nats, not {self.free_bits}")
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout is a share from 0 to below 1, not {self.dropout}")

    def _learn_words(self, train: QuestionAnswers) -> AnswerWords:
        """Sets `vocabulary_`, `vectors_` and `overlap_`.

        Vectors are rounded to 16 bits, which is how a model folder keeps those that are not tuned.
        """
        words = learn_words(train, self.vectors, self.embedding_dim, self.seed)
        self.vocabulary_ = words.vocabulary
        self.vectors_ = {"start": words.source, "n_known": words.n_known}
        self.overlap_ = Overlap.learn(train, self.vocabulary_)
        start = None if words.start is None else words.start.astype(np.float16).astype(np.float32)
        return words._replace(start=start)

    def _sizes(self, start: np.ndarray | None) -> dict[str, Any]:
        """The settings that the model itself is built with, besides its vocabulary."""
        parameters = inspect.signature(ANSWER_MODELS[self.model]).parameters
        sizes = {name: getattr(self, name) for name in _SIZES}
        sizes["embedding_dim"] = (self.embedding_dim or EMBEDDING_DIM) if start is None else start.shape[1]
        sizes["fixed_words"] = 0 if self.tune_word_vectors else self.vectors_["n_known"]
        return {name: value for name, value in sizes.items() if name in parameters}

    def _build(self, start: np.ndarray | None) -> AnswerNetwork:
        network = ANSWER_MODELS[self.model]
        self.architecture_ = {"vocabulary_size": len(self.vocabulary_)} | self._sizes(start)
        with torch.random.fork_rng():
            torch.manual_seed(self.seed)
            built = network(**self.architecture_)
        if start is not None:
            built.word_vectors.start_from(torch.from_numpy(start))
        return built.to(self.device)

    def _trainer(self, network: AnswerNetwork, train: QuestionAnswers, dev: QuestionAnswers, *watched: Any) -> Trainer:
        chosen = {name: getattr(self, name) for name in _TRAINING}
        if self.time_limit is not None and self._columns:
            chosen["time_limit"] = self.time_limit / (1 + self.folds)
        settings, objective = TrainingSettings(**chosen), AnswerObjective(self.free_bits, self.most_wrong)
        self.training_ = dataclasses.asdict(settings) | dataclasses.asdict(objective)
        columns = partial(self._pair_columns, network)
        task = AnswerTask(train, dev, self.vocabulary_, settings, objective, self.device, columns)
        return Trainer(network, task, settings, *watched)

    def _fit_first_stage(self, lesson: _Lesson) -> None:
        (self._fit_scorer if self.model in SCORERS else self._fit_network)(lesson)

    def _fit_scorer(self, lesson: _Lesson) -> None:
        started = time.monotonic()
        self.network_ = self._learned_scorer(lesson.train, lesson)
        ranking = ranking_record(self.network_.log_odds(lesson.dev), lesson.dev.labels, lesson.dev.groups)
        self.dev_map_, self.history_ = ranking.map, [{"dev_map": ranking.map, "dev_mrr": ranking.mrr}]
        self.training_, self.stopped_, self.fit_seconds_ = {}, "fitted", time.monotonic() - started

    def _learned_scorer(self, train: QuestionAnswers, lesson: _Lesson) -> AnswerScorer:
        scorer = SCORERS[self.model](self.vocabulary_, **self._sizes(lesson.words.start))
        named = {} if scorer.named_features is None else {"features": list(scorer.named_features)}
        self.architecture_ = {"vocabulary_size": len(self.vocabulary_)} | self._sizes(lesson.words.start) | named
        scorer.learn(train, lesson.dev, lesson.words, self.seed)
        return scorer

    def _fit_network(self, lesson: _Lesson) -> None:
        self.network_ = self._build(lesson.words.start)
        progress = fold_progress(lesson.progress, None, self.folds) if self._columns else lesson.progress
        trainer = self._trainer(self.network_, lesson.train, lesson.dev, lesson.checkpoint, progress)
        try:
            trainer.train(lesson.resume)
        except TrainingDiverged:
            trainer.state.stopped = "diverged"
            raise
        finally:  # also when training gave up: the best weights so far are in place
            self.network_.eval().requires_grad_(False)
            self.history_, self.stopped_ = trainer.state.history, trainer.state.stopped
            self.fit_seconds_, self.dev_map_ = trainer.state.seconds, -trainer.state.best
        self._stop_if_interrupted()

    def _fit_combination(self, lesson: _Lesson) -> None:
        """Judge every training pair by a network that never saw its question, and learn how far to trust that."""
        train = lesson.train
        features = self.overlap_.features(train)
        fold_of = question_folds(train, self.folds, self.seed)  # [questions]
        judge = partial(self._judge_unseen, lesson)
        unseen = out_of_fold(train, fold_of, judge, lesson.progress, lesson.checkpoint)
        self._unseen = _Unseen(unseen, features, train.labels)
        self.combination_ = self._unseen.combination(self._columns)

    def _judge_unseen(
        self,
        lesson: _Lesson,
        seen: QuestionAnswers,
        unseen: QuestionAnswers,
        checkpoint: Path | None,
        progress: Progress | None,
    ) -> np.ndarray:
        if self.model in SCORERS:
            return self._sampled(unseen, network=self._learned_scorer(seen, lesson)).mean(0)
        network = self._build(lesson.words.start)
        state = self._trainer(network, seen, lesson.dev, checkpoint, progress).train(lesson.resume)
        self.stopped_ = "interrupted" if state.stopped == "interrupted" else self.stopped_
        self._stop_if_interrupted()
        self.fit_seconds_ += state.seconds
        return self._sampled(unseen, network=network.eval()).mean(0)

    def _stop_if_interrupted(self) -> None:
        if self.stopped_ == "interrupted":
            raise KeyboardInterrupt("training was interrupted; the model holds the best weights so far")

    # Inside: prediction

    def _sampled(
        self,
        question_answers: QuestionAnswers,
        samples: int | None = None,
        network: AnswerNetwork | AnswerScorer | None = None,
    ) -> np.ndarray:
        """The first stage's probabilities for every sample of the prior, [S, P]; a scorer has but one."""
        samples, network = self._samples(samples), network or self.network_
        with running_on(self.threads):
            if isinstance(network, AnswerScorer):
                return expit(network.log_odds(question_answers))[None]
            batches = self._batches(network, question_answers, PREDICTION_PAIRS)
            return sampled_probabilities(network, batches, samples, self.seed)

    def _batches(self, network: AnswerNetwork, question_answers: QuestionAnswers, batch_size: int) -> PairBatches:
        columns = self._pair_columns(network, question_answers)
        return PairBatches(question_answers, self.vocabulary_, batch_size, self.device, features=columns)

    def _pair_columns(self, network: AnswerNetwork, question_answers: QuestionAnswers) -> np.ndarray | None:
        """The counts that the network reads beside the words, [P, F]."""
        if not network.pair_columns:
            return None
        return self.overlap_.features(question_answers).only(network.pair_columns).values

    def _samples(self, samples: int | None) -> int:
        samples = self.prediction_samples if samples is None else samples
        if samples < 1:
            raise InputError(f"samples must be at least 1, not {samples}")
        return samples

    def _probability(self, question_answers: QuestionAnswers, samples: int | None) -> np.ndarray:
        probability = self._sampled(question_answers, samples).mean(0)
        return self._combined(probability, self._features(question_answers))

    def _features(self, question_answers: QuestionAnswers) -> PairFeatures | None:
        return None if self.combination_ is None else self.overlap_.features(question_answers)

    def _combined(self, probability: np.ndarray, features: PairFeatures | None) -> np.ndarray:
        return probability if features is None else self.combination_.probability(probability, features)

    def _attention(self, question_answers: QuestionAnswers, samples: int | None) -> np.ndarray | None:
        """The weight of every word of one question's candidates under the same h as their probabilities, [S, P, T]."""
        if not hasattr(self.network_, "attention_weights"):
            return None
        batch = self._batches(self.network_, question_answers, PREDICTION_PAIRS).batch([0])
        with running_on(self.threads), torch.random.fork_rng():
            torch.manual_seed(question_seeds(batch, self.seed)[0])
            return self.network_.attention_weights(batch, self._samples(samples)).double().cpu().numpy()


_SIZES = ("latent_dim", "hidden_dim", "layers", "dropout", "features", "position")
_TRAINING = (
    "epochs",
    "batch_size",
    "learning_rate",
    "weight_decay",
    "averaging",
    "kl_warm_up",
    "patience",
    "samples",
    "time_limit",
    "seed",
)
_LEARNED = (
    "corpus_",
    "vectors_",
    "n_training_questions_",
    "n_training_pairs_",
    "n_dev_questions_",
    "dev_map_",
    "stopped_",
    "fit_seconds_",
)


def _without_size(architecture: dict[str, Any]) -> dict[str, Any]:
    """A scorer is given the vocabulary itself."""
    return {name: value for name, value in architecture.items() if name != "vocabulary_size"}


def _restored_combination(stored: dict[str, Any] | None) -> Combination | None:
    if stored is None:
        return None
    tuples = {name: tuple(value) for name, value in stored.items() if isinstance(value, list)}
    return Combination(**stored | tuples)
