"""DocumentModel: what a user holds. Texts, tokens or counts in; topics, vectors with uncertainty and perplexity out."""

import dataclasses
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, check_non_negative, validate_data

from varitext.batches.counts import CountBatches
from varitext.corpora.count_files import numbered_words
from varitext.corpora.document_input import (
    Counts,
    DocumentInput,
    count_known_words,
    learn_from_words,
    translate_counts,
    unwrap,
)
from varitext.corpora.documents import Documents, check_counts
from varitext.corpora.sharded_counts import ShardedCounts, blocks_of, some_rows
from varitext.documents.fitting import build_network, choose_recipe, choose_trainer, hold_out, without_empty
from varitext.documents.folder import KIND, restore_document_model, save_document_model
from varitext.documents.updating import go_on
from varitext.errors import InputError
from varitext.evaluation.perplexity import PerplexityRecord, merge_records, perplexity_record
from varitext.evaluation.topics import Neighbour, Topic, nearest, rank_topics
from varitext.models.documents.base import DocumentVectors
from varitext.models.documents.recipe import Recipe
from varitext.runtime.devices import check_device
from varitext.runtime.processes import ALONE, World
from varitext.runtime.threads import running_on
from varitext.store import StoredModel, load_as
from varitext.text import TokenRules, Vocabulary, VocabularyRules
from varitext.training.settings import Progress, TrainingState

BLOCK = 256  # documents per matrix product when encoding; fixed, so that results do not depend on the batch
PREDICTION_SAMPLES = 20  # the paper's
AXES_FROM = 4000  # documents from which readable axes are found, and what each of them carries


class Posterior(NamedTuple):
    """Where each document lies and how sure that is: of q(h | X), or with a std of 0 where a model knows no doubt."""

    mean: np.ndarray  # [D, K]
    std: np.ndarray  # [D, K]


class DocumentModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A latent-variable model of documents, with scikit-learn's manners.

    Documents are raw texts, lists of tokens, sparse or dense counts, or a corpus record, whose counts may lie in shards
    on disk: memory then does not grow with the corpus. Settings left at None are chosen from the preset and the size of
    the corpus.

    >>> model = DocumentModel(latent_dim=50).fit(texts)          # doctest: +SKIP
    >>> model.topics()[0].words, model.similar_words("space")    # doctest: +SKIP
    >>> model.posterior(["a new text"]).std                      # doctest: +SKIP
    """

    def __init__(
        self,
        model: str = "nvdm",
        latent_dim: int = 50,
        *,
        preset: str = "recommended",
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        samples: int | None = None,
        updates: str | None = None,
        estimator: str | None = None,
        softmax: str | None = None,
        time_limit: float | None = None,
        dev_share: float = 0.05,
        token_rules: TokenRules | None = None,
        vocabulary_rules: VocabularyRules | None = None,
        processes: int = 1,
        fractional_counts: bool = False,
        threads: int | None = None,
        device: str = "cpu",
        seed: int = 0,
    ):
        self.model = model
        self.latent_dim = latent_dim
        self.preset = preset
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.samples = samples
        self.updates = updates
        self.estimator = estimator
        self.softmax = softmax
        self.time_limit = time_limit
        self.dev_share = dev_share
        self.token_rules = token_rules
        self.vocabulary_rules = vocabulary_rules
        self.processes = processes
        self.fractional_counts = fractional_counts
        self.threads = threads
        self.device = device
        self.seed = seed

    # Learning

    def fit(
        self,
        X: DocumentInput,
        y: object = None,
        *,
        dev: DocumentInput | None = None,
        progress: Progress | None = None,
        checkpoint: Path | None = None,
        resume: bool = False,
        world: World = ALONE,
    ) -> "DocumentModel":
        """Learn from documents. `dev` documents choose when to stop; without them a share of X is held out.

        Each process of a `world` calls this with the same documents, and ends with the same model; see docs/scaling.md.

        Ctrl-C ends the fit at the next safe moment with a KeyboardInterrupt; the best model so far is kept.
        """
        self.corpus_ = _corpus_of(X)
        counts = self._learn_vocabulary(X)
        if dev is None:
            train, held_out = hold_out(counts, self.dev_share, self.seed)
        else:
            train, held_out = counts, without_empty(self.count(dev))
        recipe = choose_recipe(self, train)
        with running_on(self.threads):
            self.network_ = build_network(self.model, recipe, train, self.seed, self.device)
            trainer = choose_trainer(self.network_, recipe, train, held_out, self.device, checkpoint, progress, world)
            try:
                trainer.train(resume)
            finally:  # also when training gave up: the best weights so far are in place
                self._record(trainer.state, train, held_out, recipe)
        if self.stopped_ == "interrupted":
            raise KeyboardInterrupt("training was interrupted; the model holds the best weights so far")
        return self

    def partial_fit(
        self,
        X: DocumentInput,
        y: object = None,
        *,
        dev: DocumentInput | None = None,
        new_words: bool = False,
        epochs: int | None = None,
        learning_rate: float | None = None,
        progress: Progress | None = None,
        checkpoint: Path | None = None,
        resume: bool = False,
    ) -> "DocumentModel":
        """Go on with new documents; topics stay where they are, and words, to which `new_words` adds: `updating.py`.

        The documents of before are not needed. What the update did is the last record of `updates_`.
        """
        if not hasattr(self, "network_"):
            return self.fit(X, dev=dev, progress=progress, checkpoint=checkpoint, resume=resume)
        go_on(
            self,
            X,
            dev,
            new_words,
            epochs,
            learning_rate,
            progress=progress,
            checkpoint=checkpoint,
            resume=resume,
        )
        return self

    def move_to(self, device: str) -> "DocumentModel":
        """Compute there from now on."""
        check_device(device)
        self.device = device
        self.network_.to(device)
        return self

    # Using what was learned

    def count(self, X: DocumentInput) -> scipy.sparse.csr_matrix | ShardedCounts:
        """Counts over the fitted vocabulary, [D, V]; words that it does not have are left out. Shards stay on disk."""
        check_is_fitted(self)
        if (counts := count_known_words(X, self.vocabulary_, self.token_rules_, self.processes)) is not None:
            return counts
        X, given = unwrap(X)
        if isinstance(X, ShardedCounts):
            return X.over(self.vocabulary_)
        if given is not None and given.words != self.vocabulary_.words:
            return translate_counts(self._checked(X, reset=None), given, self.vocabulary_)
        return self._checked(X, reset=False)

    def transform(self, X: DocumentInput, refine: bool = True) -> np.ndarray:
        """One vector per document: the posterior mean."""
        return self.posterior(X, refine=refine).mean

    def posterior(self, X: DocumentInput, block: int = BLOCK, refine: bool = True) -> Posterior:
        """Mean and standard deviation of every document's latent vector.

        `block` documents go through the model at a time, filled up if there are fewer; a smaller one answers sooner.

        Without `refine` a model that refines its posterior in prediction leaves it as the inference network says:
        several times faster, and a little less sharp.

        A document without any known word gets the prior: mean 0, standard deviation 1 where h is Gaussian.
        """
        blocks = list(self.posterior_blocks(X, block, refine))
        if not blocks:
            return Posterior(*np.zeros((2, 0, self.network_.vector_dim), np.float32))
        return Posterior(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))

    def posterior_blocks(self, X: DocumentInput, block: int = BLOCK, refine: bool = True) -> Iterator[Posterior]:
        """The same a few documents at a time, so that the vectors of a large corpus can go to a file as they come."""
        for batch, real in CountBatches(self.count(X), self.network_.device).in_equal_blocks(block):
            with running_on(self.threads), torch.no_grad(), self.network_.refining(refine):
                vectors = torch.stack(self.network_.document_vectors(batch))[:, :real].cpu().numpy()
            yield Posterior(*vectors)

    def perplexity_record(self, X: DocumentInput, samples: int = PREDICTION_SAMPLES) -> PerplexityRecord:
        """Held-out perplexity in full: which kind of figure it is, bounds, KL apart, unigram, interval."""
        blocks = enumerate(blocks_of(self.count(X)), self.seed)  # with noise of its own for each
        with running_on(self.threads):
            return merge_records([perplexity_record(self.network_, block, samples, seed) for seed, block in blocks])

    def perplexity(self, X: DocumentInput, samples: int = PREDICTION_SAMPLES) -> float:
        """Per-document perplexity, the paper's figure; of the bound, unless the model has better. Lower is better."""
        return float(np.exp(-self.score(X, samples=samples)))

    def score(self, X: DocumentInput, y: object = None, samples: int = PREDICTION_SAMPLES) -> float:
        """Mean over documents of the bound per word; higher is better. `perplexity == exp(-score)`."""
        counts = without_empty(self.count(X))
        score = 0.0
        with running_on(self.threads):
            for seed, block in enumerate(blocks_of(counts), self.seed):
                bounds = self.network_.judge(block, samples, seed)
                score += block.shape[0] / counts.shape[0] * float((bounds.elbo / bounds.lengths).mean())
        return score

    def topics(self, words: int = 10) -> list[Topic]:
        """The latent dimensions as ranked words, those that carry most first.

        Ranked are the frequent words that make up four fifths of the text: rare ones have the largest weights, and
        say least.
        """
        check_is_fitted(self)
        frequencies = self.network_.word_log_frequencies.double().exp().cpu().numpy()
        return rank_topics(self.word_vectors_, frequencies, self.vocabulary_.words, self.kl_per_dimension_, words)

    def similar_words(self, word: str, n: int = 5) -> list[tuple[str, float]]:
        """The words nearest in the semantic space (rows of R), by cosine."""
        check_is_fitted(self)
        if word not in self.vocabulary_.index:
            raise InputError(f"{word!r} is not among the {len(self.vocabulary_)} words of the model")
        row = self.vocabulary_.index[word]
        neighbours = nearest(self.word_vectors_, self.word_vectors_[row], n + 1)
        return [(self.vocabulary_.words[i], similarity) for i, similarity in neighbours if i != row][:n]

    def similar_documents(
        self,
        X: DocumentInput,
        among: DocumentInput,
        n: int = 5,
    ) -> list[list[Neighbour]]:
        """For each document of X the nearest ones in `among`, by the cosine of their vectors."""
        vectors = self.transform(among)
        return [nearest(vectors, vector, n) for vector in self.transform(X)]

    @property
    def word_vectors_(self) -> np.ndarray:
        """R of the paper, [V, K]: one vector per word."""
        check_is_fitted(self)
        return self.network_.word_vectors.cpu().numpy()

    # Keeping it

    def save(self, folder: str | Path, overwrite: bool = False) -> None:
        """Write the model folder, whole or not at all; plain files that are safe to load."""
        check_is_fitted(self)
        save_document_model(self, Path(folder), overwrite)

    @classmethod
    def load(cls, folder: str | Path) -> "DocumentModel":
        return load_as(Path(folder), KIND, cls.from_stored)

    @classmethod
    def from_stored(cls, stored: StoredModel, folder: Path) -> "DocumentModel":
        """The model in a model folder that was read already."""
        return restore_document_model(cls, stored, folder)

    # Inside

    def _learn_vocabulary(self, X: DocumentInput) -> scipy.sparse.csr_matrix | ShardedCounts:
        """Counts for fitting, without empty documents; sets `vocabulary_`."""
        self.token_rules_ = self.token_rules or TokenRules()
        self.vocabulary_rules_ = self.vocabulary_rules or VocabularyRules()
        if (counted := learn_from_words(X, self.token_rules_, self.vocabulary_rules_, self.processes)) is not None:
            counts, self.vocabulary_ = counted.counts, counted.vocabulary
            self.n_features_in_ = len(self.vocabulary_)
        else:
            X, given = unwrap(X)
            counts = self._checked(X, reset=True)
            names = getattr(self, "feature_names_in_", None)
            given = X.vocabulary if isinstance(X, ShardedCounts) else given
            self.vocabulary_ = given or (numbered_words(counts.shape[1]) if names is None else Vocabulary(tuple(names)))
        if counts.shape[1] < 2:
            raise InputError(f"{counts.shape[1]} feature(s): with so small a vocabulary there is nothing to learn")
        self.n_empty_documents_ = counts.shape[0]
        counts = without_empty(counts)
        self.n_empty_documents_ -= counts.shape[0]
        if self.n_empty_documents_:
            many = "documents were" if self.n_empty_documents_ > 1 else "document was"
            said = f"{self.n_empty_documents_} empty {many} left out"
            warnings.warn(said, UserWarning, stacklevel=3)
        if counts.shape[0] < 2:
            raise InputError(f"{counts.shape[0]} sample(s) with known words: fitting needs at least 2 documents")
        if not 1 <= self.latent_dim <= counts.shape[1]:
            raise InputError(
                f"latent_dim={self.latent_dim} must lie between 1 and the vocabulary's {counts.shape[1]} words"
            )
        return counts

    def _checked(self, X: Counts | ShardedCounts, reset: bool | None) -> scipy.sparse.csr_matrix | ShardedCounts:
        """Valid counts in canonical form; `reset` as in scikit-learn, None to leave the number of words open."""
        if isinstance(X, ShardedCounts):  # which checks itself
            self.n_features_in_ = X.shape[1]
            return X
        if reset is not None:
            X = validate_data(self, X, accept_sparse="csr", dtype=(np.float32, np.float64), reset=reset)
            check_non_negative(X, "DocumentModel")
        return check_counts(X, "the counts", allow_fractional=self.fractional_counts)

    def _record(self, state: TrainingState, train: Counts, held_out: Counts, recipe: Recipe) -> None:
        """Keep what the fit learned about itself."""
        self.network_.eval().requires_grad_(False)
        self.architecture_ = recipe.architecture
        self.training_ = dataclasses.asdict(recipe.training) | dataclasses.asdict(recipe.objective)
        self.history_ = state.history
        self.stopped_ = state.stopped
        self.fit_seconds_ = state.seconds
        self.n_training_documents_, self.n_dev_documents_ = train.shape[0], held_out.shape[0]
        self.dev_perplexity_ = state.best
        self.updates_ = []
        self._look_at_dimensions(train)

    def _look_at_dimensions(self, train: scipy.sparse.csr_matrix | ShardedCounts) -> None:
        """Choose the axes that topics and vectors are shown on, if the model leaves a choice; see what each carries."""
        sample = train[some_rows(np.random.default_rng((self.seed, 2)), train.shape[0], AXES_FROM)]
        if self.network_.free_axes:
            self.network_.turn_axes(self.posterior(sample).mean)
        self.kl_per_dimension_ = self.carried(sample)

    def carried(self, counts: scipy.sparse.csr_matrix) -> np.ndarray:
        """Nats that each dimension carries on average over these documents, [K]."""
        vectors = DocumentVectors(*(torch.from_numpy(part).to(self.network_.device) for part in self.posterior(counts)))
        lengths = torch.from_numpy(np.asarray(counts.sum(1)).ravel()).to(self.network_.device)
        return self.network_.carried(vectors, lengths).double().cpu().numpy()

    @property
    def _n_features_out(self) -> int:
        return self.network_.vector_dim

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def _corpus_of(X: DocumentInput) -> dict[str, str] | None:
    """Which corpus, for the model folder: so that `evaluate` finds its test part."""
    return {"name": X.name, "part": X.part, "sha256": X.sha256} if isinstance(X, Documents) else None
