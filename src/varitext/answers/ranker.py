"""AnswerRanker: questions with candidates in, rankings with calibrated probabilities out."""

import copy
import dataclasses
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import numpy as np

from varitext.answers.baselines import measured_baselines
from varitext.answers.familiarity import list_statistics
from varitext.answers.fitted import UNTRAINED, FittedAnswers, ranks_untrained, untrained
from varitext.answers.folder import restore, save
from varitext.answers.index import CandidateIndex
from varitext.answers.input import QuestionSource, as_corpus, as_questions, check_known, known_candidates
from varitext.answers.prediction import Prediction, joined_columns, log_odds
from varitext.answers.ranking import (
    AnswerEvaluation,
    AnswerSet,
    Ranking,
    RankingPosterior,
    answer_evaluation,
    answer_set,
    question_ids,
    ranking_posterior,
    rankings_of,
)
from varitext.answers.settings import AnswerSettings, check_samples
from varitext.corpora.own_questions import USUAL_COLUMNS, QuestionColumns
from varitext.corpora.question_answers import CanonicalOrder, QuestionAnswers, canonical_order, check_some_wrong
from varitext.errors import InputError
from varitext.models.answers import model_name
from varitext.models.answers.features.overlap import COUNTS
from varitext.runtime.devices import check_device, running_on
from varitext.store import ANSWER_RANKER, StoredModel, load_one_of
from varitext.text import Vocabulary
from varitext.training.settings import Progress

if TYPE_CHECKING:
    from varitext.training.optimizer import MakeOptimizer

MAX_SHOWN = 400  # characters of a setting: word vectors may have millions


class AnswerRanker(AnswerSettings):
    """Rank candidate sentences for a question, with a scikit-learn API.

    Parameters
    ----------
    model : str or class, default="compare"
        Name of a model in `varitext.models.answers.ANSWER_MODELS`, or a subclass of `AnswerNetwork` or `AnswerScorer`.
    latent_dim : int, default=None
        Latent dimensions, for models with a latent variable. None: the model's own default.
    network : dict, default=None
        Arguments of the network's constructor that differ from its defaults, for example ``{"hidden_dim": 100}``.
    ensemble : int, default=1
        Number of networks, trained from the seeds `seed`, `seed` + 1, ...; their mean log odds rank.
    counts : bool, default=False
        Combine the model's log odds with counts of shared words in a logistic regression. It is fitted on out-of-fold
        probabilities, so a fit trains one more network per fold. The default model reads counts itself.
    position : bool, default=False
        Likewise with the candidate's position in its document and its length.
    features : str or sequence of str, default=None
        Features of `compare`, `overlap`, `word_alignment` or `lclr` (None: all); "overlap" adds counts to `deep_cnn`.
    questions : {"answerable", "all", ...}, default=None
        Protocol that selects the training questions. None: the model's own, mostly those with a right answer.
    longest_answer : int, default=None
        Leave out training candidates with more words.
    vectors : str, Path or WordVectors, default=None
        Initial word vectors: a word2vec or GloVe file, "minilm" (input vectors of MiniLM's word pieces) or "random".
        None: GloVe vectors of the data folder or the cache, or else MiniLM's if installed, or else random ones.
    embedding_dim : int, default=None
        Reduce word vectors to this width by principal components. None: unchanged, or 50 for random vectors.
    unseen_words : int, default=50000
        Keep at most this many words that have a vector but are not in the training questions.
    tune_word_vectors : bool, default=False
        Train the vectors of all words; otherwise only those of words without a given vector.
    epochs : int, default=None
        Passes over the training pairs. None: enough for the number of updates that the model needs, 8 to 30.
    batch_size : int, default=128
        Pairs per update.
    learning_rate : float, default=0.003
        Highest learning rate of the schedule.
    prediction_samples : int, default=20
        Samples of h that a prediction averages.
    time_limit : float, default=None
        Seconds that training may take.
    threads : int, default=None
        CPU threads. None: all cores.
    device : str, default="cpu"
        Torch device of the networks.
    seed : int, default=0
        The same seed gives identical results on the same machine with the same number of threads.
    recipe : AnswerRecipe, default=AnswerRecipe()
        Further training settings (`varitext.answers.settings`).

    Attributes
    ----------
    fitted_ : FittedAnswers
        The fitted state: network, vocabulary, training history, dev MAP, joint model, ...

    Examples
    --------
    >>> import pandas
    >>> from varitext import AnswerRanker
    >>> rows = [("who wrote Ulysses", "Joyce wrote Ulysses", 1), ("who wrote Ulysses", "Dublin is a city", 0)]
    >>> rows += [("where is Oslo", "Oslo is in Norway", 1), ("where is Oslo", "she wrote a novel", 0)]
    >>> table = pandas.DataFrame(rows, columns=["question", "answer", "label"])
    >>> ranker = AnswerRanker("overlap", vectors="random").fit(table, dev=table)
    >>> ranker.rank("who wrote Emma", ["Oslo is a city", "Austen wrote Emma"]).candidates[0].text
    'Austen wrote Emma'
    """

    fitted_: FittedAnswers

    # Learning

    def fit(
        self,
        question_answers: QuestionSource,
        dev: QuestionSource | None = None,
        progress: Progress | None = None,
        checkpoint: Path | None = None,
        resume: bool = False,
        columns: QuestionColumns = USUAL_COLUMNS,
        optimizer: "MakeOptimizer | None" = None,
        schedule: Callable[[float], float] | None = None,
    ) -> "AnswerRanker":
        """Learn from labelled questions.

        Ctrl-C ends the fit at the next safe moment with a KeyboardInterrupt; the best model so far is kept. If the
        second stage was not yet fitted, that model ranks without counts and position.

        Parameters
        ----------
        question_answers : QuestionAnswers or DataFrame
            Training questions: a corpus, or a table with one row per candidate.
        dev : QuestionAnswers or DataFrame, default=None
            Questions that choose when to stop. None: a share of the training questions is held out.
        progress : Progress, default=None
            Receives the progress of training.
        checkpoint : Path, default=None
            File for checkpoints.
        resume : bool, default=False
            Continue from the checkpoint.
        columns : QuestionColumns, default=USUAL_COLUMNS
            Column names of a table.
        optimizer : callable, default=None
            Maps a list of parameters to a `torch.optim.Optimizer`, whose learning rate is the peak. None: AdamW with
            `learning_rate`. To resume, pass the same one.
        schedule : callable, default=None
            Maps the share of training that is done, 0 to 1, to a factor of the learning rate. None: warm-up, then a
            cosine to zero.

        Returns
        -------
        self : AnswerRanker
        """
        from varitext.answers.fitting import check_settings, fit_stages, training_threads  # imports torch
        from varitext.answers.training_data import TrainingRun, training_data
        from varitext.training.optimizer import Optimization

        check_settings(self)
        train = as_questions(question_answers, columns, labelled=True)
        data = training_data(self, train, None if dev is None else as_questions(dev, columns, labelled=True))
        with training_threads(self):
            fit_stages(
                self, data, TrainingRun(progress, checkpoint, resume, Optimization(optimizer, schedule)), self._take
            )
        return self

    def combined(self, counts: bool, position: bool) -> "AnswerRanker":
        """A ranker with the same network and another second stage, fitted on what this fit predicted out of fold.

        Parameters
        ----------
        counts, position : bool
            What the second stage adds. If both are False, there is no second stage.

        Returns
        -------
        AnswerRanker
            A new ranker that shares the network. P(best), P(none) and answer sets are fitted again. After a load the
            questions for that are missing; call `calibrate` to fit them.
        """
        self._check_fitted()
        other = copy.copy(self)
        other.counts, other.position, combination = counts, position, None
        if (counts, position) == (self.counts, self.position):
            return other
        if columns := joined_columns(other):
            if self.fitted_.out_of_fold is None:
                raise InputError("combined() needs a ranker that was just fitted with counts or position")
            combination = self.fitted_.out_of_fold.combination(columns)
        other.fitted_ = self.fitted_.with_combination(combination)
        return other

    def calibrate(self, questions: QuestionSource, columns: QuestionColumns = USUAL_COLUMNS) -> "AnswerRanker":
        """Refit the probabilities, P(none) and the thresholds of abstention for another domain.

        Some 50 labelled questions of that domain suffice. The network and the order of its rankings do not
        change. `fitted_.calibrated` records the gain, cross-validated over these questions.

        Parameters
        ----------
        questions : QuestionAnswers or DataFrame
            Labelled questions, at least 10, with and without a right answer as they occur in use.
        columns : QuestionColumns, default=USUAL_COLUMNS
            Column names of a table.

        Returns
        -------
        self : AnswerRanker
        """
        self._check_ready()
        labelled = canonical_order(as_questions(questions, columns, labelled=True)).question_answers
        with running_on(self.threads):
            self._take(self.fitted_.recalibrated(labelled, self))
        return self

    # Prediction

    def predict_proba(self, question_answers: QuestionAnswers, samples: int | None = None) -> np.ndarray:
        """The probability that each candidate is right, for each pair on its own; `rank` has the joint posterior.

        It is the mean over samples of the prior, combined with counts and position if so fitted. A candidate without a
        known word has probability 0, and candidates that differ only by rounding are equal. Labels are not read.

        Parameters
        ----------
        question_answers : QuestionAnswers
            Questions with candidates.
        samples : int, default=None
            Samples of h. None: `prediction_samples`.

        Returns
        -------
        ndarray of shape (pairs,)
            In the order of the corpus.
        """
        ordered = canonical_order(question_answers)
        return ordered.restore_order(self._predict(ordered.question_answers, samples).probability)

    def sample_proba(self, question_answers: QuestionAnswers, samples: int | None = None) -> np.ndarray:
        """`predict_proba` for every sample of the prior: each row is one ranking of the candidates.

        Parameters
        ----------
        question_answers, samples
            As for `predict_proba`.

        Returns
        -------
        ndarray of shape (samples, pairs)
            A model without a latent variable returns one row.
        """
        ordered = canonical_order(question_answers)
        return ordered.restore_order(self._predict(ordered.question_answers, samples).sampled)

    def evaluate(
        self,
        question_answers: QuestionSource,
        protocol: str = "answerable",
        samples: int | None = None,
        columns: QuestionColumns = USUAL_COLUMNS,
        baselines: bool = True,
    ) -> AnswerEvaluation:
        """Measure the ranking and the calibration of its probabilities on labelled questions.

        Parameters
        ----------
        question_answers : QuestionAnswers or DataFrame
            Labelled questions.
        protocol : str, default="answerable"
            Which questions count: a name in `varitext.corpora.protocols`.
        samples, columns
            As for `predict_proba` and `fit`.
        baselines : bool, default=True
            Whether to rank the same questions by word count, BM25 and untrained MiniLM as well.

        Returns
        -------
        AnswerEvaluation
            MAP, MRR, log loss, calibration errors, coverage of rank intervals, baselines.
        """
        given = as_questions(question_answers, columns, labelled=True)
        check_some_wrong(given)
        question_answers = canonical_order(given).question_answers  # sums, too, depend on the order of their terms
        found = self._predict(question_answers, samples)
        posterior = self._posterior(found, question_answers)
        record = answer_evaluation(question_answers, found, posterior, protocol, self.seed)
        if not baselines:
            return record
        itself = model_name(self.model) if self.fitted_.stopped == UNTRAINED else None
        ids = question_ids(question_answers)
        beside = measured_baselines(question_answers, ids, record.ranking, itself, self.seed)
        return dataclasses.replace(record, baselines=beside)

    def ranking_posterior(self, question_answers: QuestionAnswers, samples: int | None = None) -> RankingPosterior:
        """P(right), P(best), P(none) and rank intervals of many questions, as arrays in `canonical_order`.

        Parameters
        ----------
        question_answers, samples
            As for `predict_proba`.

        Returns
        -------
        RankingPosterior
        """
        question_answers = canonical_order(question_answers).question_answers
        found = self._predict(question_answers, samples)
        return self._posterior(found, question_answers)

    # Ranking

    def rank(
        self,
        question: str,
        candidates: Sequence[str],
        samples: int | None = None,
        positions: Sequence[int | None] | None = None,
        abstain: float | None = None,
    ) -> Ranking:
        """Rank the candidates of one question by the order of `predict_proba`.

        The posterior of the ranking comes from one joint model of which candidates are right (`joint.py`). Candidates
        of more than 100 words are read in overlapping windows, and the best window counts. Copies share one
        probability. Candidates without a known word come last.

        Parameters
        ----------
        question : str
            The question.
        candidates : sequence of str
            The sentences to rank.
        samples : int, default=None
            Samples of h. None: `prediction_samples`.
        positions : sequence of int or None, default=None
            Positions of the candidates in their document, from 0.
        abstain : float, default=None
            Probability of the first candidate below which the ranking is not `answered`; see `abstention_threshold`.

        Returns
        -------
        Ranking
            The candidates, best first.
        """
        self._check_ready(abstain)
        ordered = canonical_order(as_corpus(question, candidates, positions))
        known = self._known(ordered.question_answers)
        check_known(ordered.question_answers.questions[0], known, self._known_words)
        (ranking,) = self._rankings(ordered, known, samples, abstain, attention=True)
        return ranking

    def rank_many(
        self,
        questions: QuestionSource,
        samples: int | None = None,
        abstain: float | None = None,
        attention: bool = False,
        columns: QuestionColumns = USUAL_COLUMNS,
    ) -> list[Ranking]:
        """Rank the candidates of many questions; faster than one `rank` per question, with the same results.

        Parameters
        ----------
        questions : QuestionAnswers, DataFrame or iterable of (str, sequence of str)
            Questions with candidates; labels are not needed. If the model knows no candidate of a question, all its
            candidates have probability 0.
        attention : bool, default=False
            Whether to return the attention on each word.
        samples, abstain, columns
            As for `rank` and `fit`.

        Returns
        -------
        list of Ranking
            In the order of the questions.
        """
        self._check_ready(abstain)
        ordered = canonical_order(as_questions(questions, columns))
        if not ordered.question_answers.questions:
            return []
        return self._rankings(ordered, self._known(ordered.question_answers), samples, abstain, attention)

    def search(
        self,
        question: str,
        index: CandidateIndex,
        looked_at: int = 100,
        samples: int | None = None,
        abstain: float | None = None,
    ) -> Ranking:
        """Rank the documents of an index that BM25 finds for the question.

        Parameters
        ----------
        question : str
            The question.
        index : CandidateIndex
            The documents; a candidate has the `id` and the `metadata` of its document.
        looked_at : int, default=100
            Number of documents that BM25 finds and the model ranks.
        samples, abstain
            As for `rank`.

        Returns
        -------
        Ranking
            The documents found, best first. InputError if none shares a word with the question.
        """
        if looked_at < 1:
            raise InputError(f"looked_at must be at least 1, not {looked_at}")
        if not question.strip():
            raise InputError("the question is empty")
        found = index.search(question, looked_at).tolist()
        if not found:
            raise InputError("no document of the index has a word of the question")
        ranker, documents = self._with_frequencies_of(index, question), [index[place] for place in found]
        with self._states_beside(index):
            ranking = ranker.rank(question, [one.text for one in documents], samples, abstain=abstain)
        return dataclasses.replace(
            ranking,
            candidates=tuple(
                dataclasses.replace(
                    one,
                    place=found[one.place],
                    id=documents[one.place].id,
                    metadata=documents[one.place].metadata,
                    same_as=None if one.same_as is None else found[one.same_as],
                )
                for one in ranking.candidates
            ),
        )

    def abstention_threshold(self, precision: float) -> float:
        """The value of `abstain` at which the first candidate is right in a share `precision` of the answered dev
        questions: 0.5, 0.6, 0.7, 0.8, 0.9 or 0.95. InputError if no threshold reaches it.

        Returns
        -------
        float
        """
        self._check_fitted()
        thresholds = self.fitted_.joint.thresholds
        if str(precision) not in thresholds:
            raise InputError(f"there is no threshold for {precision}; there are: {', '.join(thresholds) or 'none'}")
        threshold = thresholds[str(precision)]
        if threshold is None:
            raise InputError(f"no threshold reaches a precision of {precision} on the dev questions")
        return threshold

    def answer_set(self, ranking: Ranking, coverage: float = 0.9) -> AnswerSet:
        """The first candidates of a ranking, as many as the coverage requires.

        Parameters
        ----------
        ranking : Ranking
            A ranking by this ranker.
        coverage : float, default=0.9
            The share of questions with a right answer whose set holds one.

        Returns
        -------
        AnswerSet
        """
        self._check_fitted()
        if self.fitted_.held_out is None:
            raise InputError("answer sets need labelled questions: call calibrate(questions) first")
        return answer_set(ranking, self.fitted_.held_out, coverage)

    @property
    def reads_positions(self) -> bool:
        """Whether the position of a candidate in its document matters."""
        self._check_ready()
        return self.fitted_.reads_positions

    # Model folders

    def save(self, folder: str | Path, overwrite: bool = False) -> None:
        """Write the model folder, completely or not at all: plain files that are safe to load.

        Parameters
        ----------
        folder : str or Path
            Folder to write.
        overwrite : bool, default=False
            Whether to replace an existing model.
        """
        self._check_fitted()
        if self.fitted_.stopped == UNTRAINED and self.fitted_.calibrated is None:
            raise InputError(f"{model_name(self.model)} was neither fitted nor calibrated: there is nothing to save")
        save(self, self.fitted_, Path(folder), overwrite)

    @classmethod
    def load(cls, folder: str | Path, trust: str | type | None = None) -> "AnswerRanker":
        """The fitted ranker in a model folder.

        Parameters
        ----------
        folder : str or Path
            A folder that `save` or `varitext fit` wrote.
        trust : str or class, default=None
            For a model from another package: its class, or "package.module:Class". Nothing else is imported.

        Returns
        -------
        AnswerRanker
        """
        return load_one_of(Path(folder), {ANSWER_RANKER: partial(cls.from_stored, trust=trust)})

    @classmethod
    def from_stored(cls, stored: StoredModel, folder: Path, trust: str | type | None = None) -> "AnswerRanker":
        """The ranker in a model folder whose files were already read.

        Parameters
        ----------
        stored, folder, trust
            The model that `varitext.store` read, its folder, and `trust` as for `load`.

        Returns
        -------
        AnswerRanker
        """
        settings, fitted = restore(stored, folder, trust)
        ranker = cls(**vars(settings))
        ranker._take(fitted)
        return ranker

    def move_to(self, device: str) -> "AnswerRanker":
        """Compute on another torch `device` from now on.

        Returns
        -------
        AnswerRanker
            The ranker itself.
        """
        check_device(device)
        self._check_ready()
        self.device = device
        self.fitted_.first_stage.move_to(device)
        return self

    # The API of a scikit-learn estimator. Its base class takes as long to import as torch, so it is not inherited.

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments of the constructor by name.

        Parameters
        ----------
        deep : bool, default=True
            No effect: no argument is an estimator.

        Returns
        -------
        dict
        """
        return {name: getattr(self, name) for name in sorted(field.name for field in dataclasses.fields(self))}

    def set_params(self, **params: Any) -> "AnswerRanker":
        """Change arguments of the constructor.

        Parameters
        ----------
        **params
            New values by name.

        Returns
        -------
        AnswerRanker
            The ranker itself.
        """
        known = self.get_params()
        if unknown := sorted(params.keys() - known):
            raise ValueError(f"AnswerRanker has no parameter {unknown[0]!r}; it has: {', '.join(known)}")
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        changed = (one.name for one in dataclasses.fields(self) if getattr(self, one.name) != one.default)
        return f"AnswerRanker({', '.join(f'{one}={shorten(repr(getattr(self, one)), MAX_SHOWN)}' for one in changed)})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.base import BaseEstimator

        return BaseEstimator().__sklearn_tags__()

    # Inside

    def _check_fitted(self) -> None:
        """Raise scikit-learn's NotFittedError before a fit."""
        if not hasattr(self, "fitted_"):
            from sklearn.utils.validation import check_is_fitted

            check_is_fitted(self)

    def _take(self, fitted: FittedAnswers) -> None:
        self.fitted_ = fitted

    def _states_beside(self, index: CandidateIndex) -> AbstractContextManager[None]:
        """Keep the states that a pretrained encoder reads beside an index that is in a folder."""
        if index.folder is None or not self.fitted_.network.reads_states:
            return nullcontext()
        from varitext.models.answers.pretrained import pretrained  # imports torch
        from varitext.models.answers.state_store import NAME

        return pretrained().states_kept_in(index.folder / NAME)

    def _with_frequencies_of(self, index: CandidateIndex, question: str) -> "AnswerRanker":
        """A ranker that was never fitted knows no document frequencies: it takes those of the index."""
        self._check_ready()
        if self.fitted_.stopped != UNTRAINED:
            return self
        other, own = copy.copy(self), untrained(self, index.overlap(question))
        other._take(dataclasses.replace(self.fitted_, first_stage=own.first_stage, overlap=own.overlap))
        return other

    def _check_ready(self, abstain: float | None = None) -> None:
        """Refuse a ranker that needs a fit and has none."""
        if not hasattr(self, "fitted_") and ranks_untrained(self):
            self._take(untrained(self))
        self._check_fitted()
        if abstain is not None and not 0 <= abstain <= 1:
            raise InputError(f"abstain is a probability, from 0 to 1, not {abstain}")

    def _predict(self, question_answers: QuestionAnswers, samples: int | None, attention: bool = False) -> Prediction:
        """What both stages predict for questions in canonical order."""
        self._check_ready()
        if samples is not None:
            check_samples(samples)
        with running_on(self.threads):
            found = self.fitted_.predict(question_answers, self, samples, attention)
        return found.with_zero(~self._known(question_answers))

    def _rankings(
        self, ordered: CanonicalOrder, known: np.ndarray, samples: int | None, abstain: float | None, attention: bool
    ) -> list[Ranking]:
        found = self._predict(ordered.question_answers, samples, attention)
        posterior = self._posterior(found, ordered.question_answers)
        return rankings_of(ordered, found, posterior, known, abstain)

    def _posterior(self, found: Prediction, question_answers: QuestionAnswers) -> RankingPosterior:
        """The posterior by the joint model; closer to chance for questions unlike those of the fit."""
        fitted = self.fitted_
        if fitted.familiarity is None:
            return ranking_posterior(fitted.joint, found, question_answers)
        statistics = list_statistics(question_answers, fitted.overlap, log_odds(found.probability))
        return ranking_posterior(fitted.joint, found, question_answers, fitted.familiarity.unfamiliar(statistics))

    def _known(self, question_answers: QuestionAnswers) -> np.ndarray:
        """Whether each candidate has a word that counts, [P]."""
        columns = () if self.fitted_.combination is None else self.fitted_.combination.columns
        shared = self.fitted_.network.counts_shared_words or not set(COUNTS).isdisjoint(columns)
        return known_candidates(question_answers, self._known_words, shared)

    @property
    def _known_words(self) -> Vocabulary | None:
        """None: every word is known."""
        return None if self.fitted_.network.knows_every_word else self.fitted_.vocabulary
