"""AnswerRanker: what a user holds. Questions with candidates in; rankings that know how sure they are out."""

import dataclasses
import inspect
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import rankdata
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from varitext.answer_task import (
    PREDICTION_PAIRS,
    PREDICTION_SAMPLES,
    AnswerObjective,
    AnswerTask,
    Arranged,
    arrange,
    choose_questions,
    question_seeds,
    sampled_probabilities,
)
from varitext.corpora.question_answers import (
    Candidate,
    Question,
    QuestionAnswers,
    check_both_labels,
    sentence_words,
)
from varitext.errors import InputError, TrainingDiverged
from varitext.evaluation.calibration import CalibrationRecord, calibration_record
from varitext.evaluation.ranking import RankingRecord, counted_rows, ranking_record
from varitext.models.answer_models import ANSWER_MODELS
from varitext.models.answer_network import AnswerNetwork
from varitext.overlap import COUNTS, PLACE, Combination, Overlap, PairFeatures, question_folds
from varitext.pair_batches import UNKNOWN, PairBatches
from varitext.store import StoredModel, load_model, load_weights, save_model
from varitext.text import Vocabulary
from varitext.text.vocabulary import is_line
from varitext.training import Progress, Trainer, TrainingSettings
from varitext.word_vectors import WordVectors, known_word_vectors, load_word_vectors, vectors_for

KIND = "answer-ranker"
INTERVAL = 0.9  # of the sampled ranks
RANDOM = "random"  # as `vectors`: begin without any
WORD_VECTORS = "word_vectors.weight"
FREQUENCIES = "overlap.document_frequencies"


@dataclasses.dataclass(frozen=True)
class RankedCandidate:
    text: str
    place: int  # in the list that was given, from 0
    rank: int  # 1 is the best; tied candidates share one
    probability: float  # of being a right answer
    probability_best: float  # the share of samples in which it comes first; over all candidates these sum to one
    rank_interval: tuple[int, int]  # holds 90 % of its ranks over samples
    words: tuple[str, ...]
    attention_mean: tuple[float, ...] | None  # per word, over samples; None for a model without attention
    attention_std: tuple[float, ...] | None


@dataclasses.dataclass(frozen=True)
class Ranking:
    question: str
    candidates: tuple[RankedCandidate, ...]  # the most probable first
    n_samples: int

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True)
class AnswerEvaluation:
    """How good the ranking is and how honest the probabilities, on the questions that the protocol counts."""

    ranking: RankingRecord
    calibration: CalibrationRecord
    corpus: str
    part: str
    corpus_sha256: str
    n_samples: int

    def as_dict(self) -> dict[str, Any]:
        """For JSON, in one level."""
        named = {name: getattr(self, name) for name in ("corpus", "part", "corpus_sha256", "n_samples")}
        return self.ranking.as_dict() | self.calibration.as_dict() | named


class AnswerRanker(BaseEstimator):
    """Ranks candidate sentences for a question, with scikit-learn's manners.

    The vocabulary is that of the training part: words that stand there twice, or once and have a vector. `vectors` are
    where word vectors begin: those of the data folder if they are there, else a random start; or a file, `WordVectors`,
    or "random". Wider ones are reduced to `embedding_dim` by their principal components. Frozen ones are rounded to 16
    bits, which is how the model folder keeps them.

    With `counts` (words shared) or `position` (place and length) a logistic regression joins these with the model's log
    odds. It is fitted on out-of-fold probabilities: the training questions are cut into `folds`, and a fold's pairs are
    judged by a network that was trained on the other folds. So fitting costs `folds` more networks. The same question
    asked twice is never in two folds.

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
        folds: int = 3,
        embedding_dim: int = 50,
        hidden_dim: int = 50,
        layers: int = 3,
        dropout: float = 0.4,
        vectors: WordVectors | str | Path | None = None,
        freeze_word_vectors: bool = False,
        epochs: int = 15,
        batch_size: int = 128,
        learning_rate: float = 2e-3,
        weight_decay: float = 0.0,
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
        self.folds = folds
        self.embedding_dim = embedding_dim
        self.hidden_dim = hidden_dim
        self.layers = layers
        self.dropout = dropout
        self.vectors = vectors
        self.freeze_word_vectors = freeze_word_vectors
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
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
        self._check_positions(question_answers)
        train = arrange(question_answers).question_answers
        train, held_out = self._split(train) if dev is None else (train, arrange(dev).question_answers)
        check_both_labels(train)
        self.corpus_ = {name: getattr(question_answers, name) for name in ("name", "part", "sha256")}
        self.n_training_questions_, self.n_training_pairs_ = train.n_questions, train.n_pairs
        self.n_dev_questions_ = held_out.n_questions
        start = self._learn_words(train)
        self.combination_ = None
        with self._threads():
            self._fit_network(train, held_out, start, progress, checkpoint, resume)
            if self._columns:
                self._fit_combination(train, held_out, start, progress, checkpoint, resume)
        return self

    # Using what was learned

    def predict_proba(self, question_answers: QuestionAnswers, samples: int | None = None) -> np.ndarray:
        """The probability of each pair, in the order of the corpus, that the answer is right; labels are not looked at.

        It is the mean over samples of the prior, which all candidates of a question share; then, if so fitted, combined
        with counts and position.
        """
        check_is_fitted(self)
        arranged = arrange(question_answers)
        return arranged.given_order(self._probability(arranged.question_answers, samples))

    def evaluate(
        self, question_answers: QuestionAnswers, protocol: str = "answerable", samples: int | None = None
    ) -> AnswerEvaluation:
        """MAP and MRR of the questions that the protocol counts, and the calibration of the same pairs."""
        check_is_fitted(self)
        question_answers = arrange(question_answers).question_answers  # sums, too, depend on the order of their terms
        probability, labels = self._probability(question_answers, samples), question_answers.labels
        ids = _question_ids(question_answers)
        rows = counted_rows(labels, ids, protocol)
        return AnswerEvaluation(
            ranking_record(probability, labels, ids, protocol, self.seed),
            calibration_record(probability[rows], labels[rows], ids[rows]),
            question_answers.name,
            question_answers.part,
            question_answers.sha256,
            samples or self.prediction_samples,
        )

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
        asked = _as_corpus(question, candidates, positions)
        arranged = arrange(asked)
        corpus = arranged.question_answers
        self._check_known(corpus)
        sampled = self._sampled(corpus, samples)  # [S, P]
        features = self._features(corpus)
        probability = self._combined(sampled.mean(0), features)
        each = np.stack([self._combined(one, features) for one in sampled])
        return Ranking(question, _ranked(arranged, probability, each, self._attention(corpus, samples)), len(sampled))

    # Keeping it

    def save(self, folder: str | Path, overwrite: bool = False) -> None:
        """Write the model folder, whole or not at all; plain files that are safe to load."""
        check_is_fitted(self)
        settings = self.get_params(deep=False)
        settings["vectors"] = None if isinstance(self.vectors, (WordVectors, type(None))) else str(self.vectors)
        combination = None if self.combination_ is None else dataclasses.asdict(self.combination_)
        config = {
            "model": self.model,
            "settings": settings,
            "architecture": self.architecture_,
            "training": self.training_,
            "combination": combination,
            "learned": {name: getattr(self, name) for name in _LEARNED},
        }
        weights = self.network_.state_dict()
        if self.freeze_word_vectors:
            weights[WORD_VECTORS] = weights[WORD_VECTORS].half()  # exact: they were rounded before training
        weights[FREQUENCIES] = torch.from_numpy(self.overlap_.document_frequencies.astype(np.int32))
        save_model(Path(folder), StoredModel(KIND, config, weights, self.vocabulary_, self.history_), overwrite)

    @classmethod
    def load(cls, folder: str | Path) -> "AnswerRanker":
        folder = Path(folder)
        stored = load_model(folder, KIND)
        try:
            return cls._from_stored(stored, folder)
        except (AttributeError, KeyError, OverflowError, RuntimeError, TypeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{folder / 'config.json'} does not describe an answer ranker ({error!r})") from None

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
        ranker.network_ = ANSWER_MODELS[config["model"]](**config["architecture"])
        weights[WORD_VECTORS] = weights[WORD_VECTORS].float()
        load_weights(ranker.network_, weights, folder)
        ranker.network_.to(ranker.device).eval().requires_grad_(False)
        ranker.vocabulary_, ranker.history_ = stored.vocabulary, stored.metrics
        ranker.overlap_ = Overlap(stored.vocabulary, frequencies, ranker.n_training_pairs_)
        combination = config["combination"]
        if combination is not None:
            tuples = {name: tuple(value) for name, value in combination.items() if isinstance(value, list)}
            combination = Combination(**combination | tuples)
        ranker.combination_ = combination
        return ranker

    # Inside: learning

    @property
    def _columns(self) -> tuple[str, ...]:
        return (COUNTS if self.counts else ()) + (PLACE if self.position else ())

    def _check_settings(self) -> None:
        if self.model not in ANSWER_MODELS:
            raise InputError(f"no model of answers is called {self.model!r}; there are: {', '.join(ANSWER_MODELS)}")
        for name in ("latent_dim", "embedding_dim", "hidden_dim", "layers", "prediction_samples"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.folds < 2:
            raise InputError(f"folds must be at least 2, not {self.folds}")
        if not 0 <= self.free_bits < np.inf:
            raise InputError(f"free_bits must be 0 or more nats, not {self.free_bits}")
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout is a share from 0 to below 1, not {self.dropout}")

    def _check_positions(self, train: QuestionAnswers) -> None:
        known = any(one.position is not None for question in train.questions for one in question.candidates)
        if self.position and not known:
            raise InputError(
                f"{train.name} ({train.part}) does not tell where its candidates stand: leave out position"
            )

    def _split(self, train: QuestionAnswers) -> tuple[QuestionAnswers, QuestionAnswers]:
        """Hold out `dev_share` of the questions that can tell rankings apart: those with right and wrong answers."""
        if not 0 < self.dev_share < 1:
            raise InputError(f"dev_share is a share of the questions, between 0 and 1, not {self.dev_share}")
        telling = sorted({one.words for one in train.questions if one.has_right and one.has_wrong})
        if len(telling) < 2:
            raise InputError(
                f"{len(telling)} question(s) have right and wrong answers: fitting needs at least 2, or dev questions"
            )
        chosen = np.random.default_rng((self.seed, 1)).permutation(len(telling))
        held_out = {telling[place] for place in chosen[: max(1, round(self.dev_share * len(telling)))]}
        inside = np.array([one.words in held_out for one in train.questions])
        return choose_questions(train, ~inside), choose_questions(train, inside)

    def _learn_words(self, train: QuestionAnswers) -> np.ndarray | None:
        """Sets `vocabulary_`, `vectors_` and `overlap_`; returns where the word vectors begin, [V, E]."""
        tally: Counter[str] = Counter()
        for question in train.questions:
            for sentence in (question, *question.candidates):
                tally.update(word.lower() for word in sentence.words)
        words = sorted((word for word in tally if is_line(word)), key=lambda word: (-tally[word], word))
        vectors = self._starting_vectors(words)
        start = None if vectors is None else vectors_for(words, vectors, self.seed)
        known = np.zeros(len(words), bool) if start is None else start.is_known
        kept = known | np.array([tally[word] > 1 for word in words], bool)
        if not kept.any():
            raise InputError(
                f"{train.name} ({train.part}): no word stands twice or has a vector; nothing to learn from"
            )
        self.vocabulary_ = Vocabulary(tuple(word for word, keep in zip(words, kept, strict=True) if keep))
        given = "given" if isinstance(self.vectors, WordVectors) else str(self.vectors or "the data folder's")
        self.vectors_ = {"start": RANDOM if vectors is None else given, "n_known": int(known.sum())}
        self.overlap_ = Overlap.learn(train, self.vocabulary_)
        return None if start is None else start.matrix[kept]

    def _starting_vectors(self, words: Sequence[str]) -> WordVectors | None:
        if isinstance(self.vectors, WordVectors):
            vectors = self.vectors
        elif self.vectors is None:
            vectors = known_word_vectors()
        else:
            vectors = None if self.vectors == RANDOM else load_word_vectors(self.vectors, only=words)
        return None if vectors is None else reduce_vectors(vectors, self.embedding_dim)

    def _build(self, start: np.ndarray | None) -> AnswerNetwork:
        network = ANSWER_MODELS[self.model]
        sizes = {name: getattr(self, name) for name in _SIZES if name in inspect.signature(network).parameters}
        self.architecture_ = {"vocabulary_size": len(self.vocabulary_)} | sizes
        with torch.random.fork_rng():
            torch.manual_seed(self.seed)
            built = network(**self.architecture_)
        if start is not None:
            built.word_vectors.start_from(torch.from_numpy(start))
        if self.freeze_word_vectors:
            built.word_vectors.weight.copy_(built.word_vectors.weight.half())
        return built.to(self.device)

    def _trainer(self, network: AnswerNetwork, train: QuestionAnswers, dev: QuestionAnswers, *watched: Any) -> Trainer:
        chosen = {name: getattr(self, name) for name in _TRAINING}
        if self.time_limit is not None and self._columns:
            chosen["time_limit"] = self.time_limit / (1 + self.folds)
        settings, objective = TrainingSettings(**chosen), AnswerObjective(self.free_bits)
        self.training_ = dataclasses.asdict(settings) | dataclasses.asdict(objective)
        return Trainer(
            network, AnswerTask(train, dev, self.vocabulary_, settings, objective, self.device), settings, *watched
        )

    def _fit_network(
        self,
        train: QuestionAnswers,
        dev: QuestionAnswers,
        start: np.ndarray | None,
        progress: Progress | None,
        checkpoint: Path | None,
        resume: bool,
    ) -> None:
        self.network_ = self._build(start)
        trainer = self._trainer(self.network_, train, dev, checkpoint, progress)
        try:
            trainer.train(resume)
        except TrainingDiverged:
            trainer.state.stopped = "diverged"
            raise
        finally:  # also when training gave up: the best weights so far are in place
            self.network_.eval().requires_grad_(False)
            self.history_, self.stopped_ = trainer.state.history, trainer.state.stopped
            self.fit_seconds_, self.dev_map_ = trainer.state.seconds, -trainer.state.best
        self._stop_if_interrupted()

    def _fit_combination(
        self,
        train: QuestionAnswers,
        dev: QuestionAnswers,
        start: np.ndarray | None,
        progress: Progress | None,
        checkpoint: Path | None,
        resume: bool,
    ) -> None:
        """Judge every training pair by a network that never saw its question, and learn how far to trust that."""
        features = self.overlap_.features(train).only(self._columns)
        fold_of = question_folds(train, self.folds, self.seed)  # [questions]
        unseen = np.empty(train.n_pairs)
        for fold in range(fold_of.max() + 1):
            if progress:
                progress.note(f"fold {fold + 1} of {fold_of.max() + 1}: probabilities of questions that were not seen")
            rest = choose_questions(train, fold_of != fold)
            check_both_labels(rest)
            network = self._build(start)
            path = checkpoint and checkpoint.with_name(f"{checkpoint.stem}-fold-{fold + 1}{checkpoint.suffix}")
            state = self._trainer(network, rest, dev, path, None).train(resume)
            self.stopped_ = "interrupted" if state.stopped == "interrupted" else self.stopped_
            self._stop_if_interrupted()
            self.fit_seconds_ += state.seconds
            held_out = self._sampled(choose_questions(train, fold_of == fold), network=network.eval())
            unseen[fold_of[train.groups] == fold] = held_out.mean(0)
        self.combination_ = Combination.fit(unseen, features, train.labels)

    def _stop_if_interrupted(self) -> None:
        if self.stopped_ == "interrupted":
            raise KeyboardInterrupt("training was interrupted; the model holds the best weights so far")

    # Inside: prediction

    def _sampled(
        self, question_answers: QuestionAnswers, samples: int | None = None, network: AnswerNetwork | None = None
    ) -> np.ndarray:
        """The network's probabilities for every sample of the prior, [S, P]."""
        samples = self._samples(samples)
        with self._threads():
            batches = PairBatches(question_answers, self.vocabulary_, PREDICTION_PAIRS, self.device)
            return sampled_probabilities(network or self.network_, batches, samples, self.seed)

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
        batch = PairBatches(question_answers, self.vocabulary_, device=self.device).batch([0])
        with self._threads(), torch.random.fork_rng():
            torch.manual_seed(question_seeds(batch, self.seed)[0])
            return self.network_.attention_weights(batch, self._samples(samples)).double().cpu().numpy()

    def _check_known(self, question_answers: QuestionAnswers) -> None:
        batch = PairBatches(question_answers, self.vocabulary_).batch([0])
        if not (batch.questions.tokens > UNKNOWN).any():
            raise InputError("the question has no word that the model knows; the training questions had none of them")
        if not (batch.answers.tokens > UNKNOWN).any():
            raise InputError("no candidate has a word that the model knows")

    @contextmanager
    def _threads(self) -> Iterator[None]:
        """Run with `threads` threads, and leave the process as it was."""
        before = torch.get_num_threads()
        torch.set_num_threads(self.threads or before)
        try:
            yield
        finally:
            torch.set_num_threads(before)


_SIZES = ("latent_dim", "embedding_dim", "hidden_dim", "layers", "dropout", "freeze_word_vectors")
_TRAINING = (
    "epochs",
    "batch_size",
    "learning_rate",
    "weight_decay",
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


def reduce_vectors(vectors: WordVectors, dim: int) -> WordVectors:
    """The first `dim` principal components of all vectors given; those that have `dim` numbers stay as they are."""
    if vectors.dim < dim:
        raise InputError(
            f"the word vectors have {vectors.dim} numbers a word, and embedding_dim={dim} needs at least {dim}"
        )
    if vectors.dim == dim:
        return vectors
    centred = vectors.vectors.astype(np.float64) - vectors.vectors.mean(0, dtype=np.float64)
    _, axes = np.linalg.eigh(centred.T @ centred)  # rising eigenvalues
    axes = axes[:, ::-1][:, :dim]
    axes = axes * np.sign(axes[np.abs(axes).argmax(0), np.arange(dim)])  # a component's sign is arbitrary: fix it
    return WordVectors(vectors.words, (centred @ axes).astype(np.float32))


def _question_ids(question_answers: QuestionAnswers) -> np.ndarray:
    """The questions' own ids, to compare models question by question; their places where ids repeat."""
    ids = np.array([question.id for question in question_answers.questions])
    return ids[question_answers.groups] if len(set(ids.tolist())) == len(ids) else question_answers.groups


def _as_corpus(question: str, candidates: Sequence[str], positions: Sequence[int | None] | None) -> QuestionAnswers:
    """One question as a corpus, or one line that says what is wrong with it."""
    if not isinstance(question, str) or not (question_words := sentence_words(question)):
        raise InputError("the question is empty")
    if isinstance(candidates, str) or not all(isinstance(one, str) for one in candidates):
        raise InputError("candidates are a list of texts")
    if not len(candidates):
        raise InputError("there are no candidates")
    positions = [None] * len(candidates) if positions is None else positions
    if len(positions) != len(candidates):
        raise InputError(f"there are {len(candidates)} candidates and {len(positions)} positions")
    if any(one is not None and one < 0 for one in positions):
        raise InputError("positions count from 0: none is negative")
    listed = tuple(
        Candidate(str(place), sentence_words(text), text, 0, position)
        for place, (text, position) in enumerate(zip(candidates, positions, strict=True))
    )
    return QuestionAnswers("question", "all", (), (Question("0", question_words, question, listed),))


def _ranked(
    arranged: Arranged, probability: np.ndarray, sampled: np.ndarray, attention: np.ndarray | None
) -> tuple[RankedCandidate, ...]:
    candidates = arranged.question_answers.questions[0].candidates
    best = sampled == sampled.max(1, keepdims=True)  # [S, P]
    best_share = (best / best.sum(1, keepdims=True)).mean(0)  # those that tie for the first place share it
    tail = (1 - INTERVAL) / 2
    lowest = np.quantile(rankdata(-sampled, "min", axis=1), tail, axis=0, method="lower")
    highest = np.quantile(rankdata(-sampled, "max", axis=1), 1 - tail, axis=0, method="higher")
    ranks = rankdata(-probability, "min")
    found = []
    for row in np.lexsort((np.arange(len(ranks)), ranks)):
        words = candidates[row].words
        spread = [None, None]
        if attention is not None:
            over_samples = attention[:, row, : len(words)]  # [S, T]
            spread = [tuple(over_samples.mean(0).tolist()), tuple(over_samples.std(0).tolist())]
        found.append(
            RankedCandidate(
                candidates[row].text,
                int(arranged.place[row]),
                int(ranks[row]),
                float(probability[row]),
                float(best_share[row]),
                (int(lowest[row]), int(highest[row])),
                words,
                *spread,
            )
        )
    return tuple(found)
