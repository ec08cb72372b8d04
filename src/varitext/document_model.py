"""DocumentModel: what a user holds. Texts, tokens or counts in; topics, vectors with uncertainty and perplexity out."""

import dataclasses
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, check_non_negative, validate_data

from varitext.batches import CountBatches
from varitext.corpora.count_files import numbered_words
from varitext.corpora.documents import Documents, check_counts
from varitext.document_input import (
    Counts,
    DocumentInput,
    count_known_words,
    learn_from_words,
    translate_counts,
    unwrap,
)
from varitext.document_task import DocumentObjective, DocumentTask, Recipe
from varitext.errors import InputError, TrainingDiverged
from varitext.evaluation.perplexity import PerplexityRecord, document_bounds, perplexity_record
from varitext.inspection import Neighbour, Topic, nearest, rank_topics
from varitext.latent import DiagonalGaussian, kl
from varitext.latent.rotation import readable_axes
from varitext.models import MODELS
from varitext.store import StoredModel, load_as, load_weights, save_model
from varitext.text import TokenRules, Vocabulary, VocabularyRules
from varitext.threads import running_on
from varitext.training import Progress, Trainer

KIND = "document-model"
BLOCK = 256  # documents per matrix product when encoding; fixed, so that results do not depend on the batch
PREDICTION_SAMPLES = 20  # the paper's
AXES_FROM = 4000  # documents from which readable axes are found


class Posterior(NamedTuple):
    """q(h | X) of each document: where it lies and how sure that is."""

    mean: np.ndarray  # [D, K]
    std: np.ndarray  # [D, K]


class DocumentModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A latent-variable model of documents, with scikit-learn's manners.

    Documents are raw texts, lists of tokens, sparse or dense counts, or a corpus record. Settings left at None are
    chosen from the preset and the size of the corpus.

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
    ) -> "DocumentModel":
        """Learn from documents. `dev` documents choose when to stop; without them a share of X is held out.

        Ctrl-C ends the fit at the next safe moment with a KeyboardInterrupt; the best model so far is kept.
        """
        self.corpus_ = _corpus_of(X)
        counts = self._learn_vocabulary(X)
        train, held_out = self._split(counts) if dev is None else (counts, self._without_empty(self.count(dev)))
        recipe = self._recipe(train)
        with running_on(self.threads):
            self.network_ = self._build(recipe, train)
            task = DocumentTask(train, held_out, recipe.training, self._objective(recipe), self.device)
            trainer = Trainer(self.network_, task, recipe.training, checkpoint, progress)
            try:
                trainer.train(resume)
            except TrainingDiverged:
                trainer.state.stopped = "diverged"
                raise
            finally:  # also when training gave up: the best weights so far are in place
                self._record(trainer, train, held_out, recipe)
        if self.stopped_ == "interrupted":
            raise KeyboardInterrupt("training was interrupted; the model holds the best weights so far")
        return self

    def partial_fit(self, X: DocumentInput, y: object = None) -> "DocumentModel":
        """One more pass over these documents alone, at a quarter of the learning rate; words and axes stay."""
        if not hasattr(self, "network_"):
            return self.fit(X)
        counts = self._without_empty(self.count(X))
        recipe = self._recipe(counts)
        settings = dataclasses.replace(
            recipe.training,
            epochs=1,
            learning_rate=recipe.training.learning_rate / 4,
            kl_warm_up=0,
            learning_rate_warm_up=0,
            batch_size=min(recipe.training.batch_size, counts.shape[0]),
            seed=self.seed + len(self.history_),  # fresh noise at every call
        )
        with running_on(self.threads):
            self.network_.train().requires_grad_(True)
            task = DocumentTask(counts, counts[:500], settings, self._objective(recipe), self.device)
            state = Trainer(self.network_, task, settings).train()
            self.network_.eval().requires_grad_(False)
        self.history_ = self.history_ + state.history[1:]
        return self

    # Using what was learned

    def count(self, X: DocumentInput) -> scipy.sparse.csr_matrix:
        """Counts over the fitted vocabulary, [D, V]; words that it does not have are left out."""
        check_is_fitted(self)
        if (counts := count_known_words(X, self.vocabulary_, self.token_rules_, self.processes)) is not None:
            return counts
        X, given = unwrap(X)
        if given is not None and given.words != self.vocabulary_.words:
            return translate_counts(self._checked(X, reset=None), given, self.vocabulary_)
        return self._checked(X, reset=False)

    def transform(self, X: DocumentInput) -> np.ndarray:
        """One vector per document: the posterior mean."""
        return self.posterior(X).mean

    def posterior(self, X: DocumentInput) -> Posterior:
        """Mean and standard deviation of every document's latent vector.

        A document without any known word gets the prior: mean 0, standard deviation 1.
        """
        counts = self.count(X)
        blocks = []
        with running_on(self.threads), torch.no_grad():
            for batch, real in CountBatches(counts, self.device).in_equal_blocks(BLOCK):
                q = self.network_.on_axes(self.network_.posterior(self.network_.encode(batch)))
                known = (batch.lengths > 0)[:, None]
                mean, std = torch.where(known, q.mean, 0.0), torch.where(known, q.std, 1.0)
                blocks.append(torch.stack([mean, std])[:, :real].cpu())
        if not blocks:
            return Posterior(*np.zeros((2, 0, self.latent_dim), np.float32))
        return Posterior(*torch.cat(blocks, 1).numpy())

    def perplexity_record(self, X: DocumentInput, samples: int = PREDICTION_SAMPLES) -> PerplexityRecord:
        """Held-out perplexity in full: bounds, KL apart, unigram, interval."""
        counts = self.count(X)
        frequencies = self.network_.word_log_frequencies.double().cpu().numpy()
        with running_on(self.threads):
            return perplexity_record(self.network_, counts, frequencies, samples, self.seed, self.device)

    def perplexity(self, X: DocumentInput, samples: int = PREDICTION_SAMPLES) -> float:
        """Per-document perplexity of the bound, the paper's figure; lower is better."""
        return float(np.exp(-self.score(X, samples=samples)))

    def score(self, X: DocumentInput, y: object = None, samples: int = PREDICTION_SAMPLES) -> float:
        """Mean over documents of the bound per word; higher is better. `perplexity == exp(-score)`."""
        counts = self._without_empty(self.count(X))
        with running_on(self.threads):
            bounds = document_bounds(self.network_, counts, samples, self.seed, self.device)
        return float((bounds.elbo / bounds.lengths).mean())

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
        config = {
            "model": self.model,
            "settings": {name: _plain(value) for name, value in self.get_params(deep=False).items()},
            "architecture": self.architecture_,
            "training": self.training_,
            "learned": {name: _plain(getattr(self, name)) for name in _LEARNED},
        }
        weights = self.network_.state_dict()
        save_model(Path(folder), StoredModel(KIND, config, weights, self.vocabulary_, self.history_), overwrite)

    @classmethod
    def load(cls, folder: str | Path) -> "DocumentModel":
        return load_as(Path(folder), KIND, cls._from_stored)

    @classmethod
    def _from_stored(cls, stored: StoredModel, folder: Path) -> "DocumentModel":
        config = stored.config
        settings = dict(config["settings"])
        for name, rules in (("token_rules", TokenRules), ("vocabulary_rules", VocabularyRules)):
            settings[name] = None if settings[name] is None else rules.from_dict(settings[name])
        model = cls(**settings)
        if config["model"] not in MODELS:
            raise InputError(f"{folder} holds a {config['model']!r}, which this varitext does not know")
        if len(stored.vocabulary) != config["architecture"]["vocabulary_size"]:
            raise InputError(f"{folder}: vocabulary.txt and the weights differ in size")
        model.architecture_, model.training_ = config["architecture"], config["training"]
        model.network_ = MODELS[config["model"]](**config["architecture"])
        load_weights(model.network_, stored.weights, folder)
        model.network_.eval().requires_grad_(False)
        model.vocabulary_, model.history_ = stored.vocabulary, stored.metrics
        for name in _LEARNED:
            setattr(model, name, config["learned"][name])
        model.kl_per_dimension_ = np.asarray(model.kl_per_dimension_, np.float64)
        model.token_rules_ = TokenRules.from_dict(model.token_rules_)
        model.vocabulary_rules_ = VocabularyRules.from_dict(model.vocabulary_rules_)
        return model

    # Inside

    def _learn_vocabulary(self, X: DocumentInput) -> scipy.sparse.csr_matrix:
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
            self.vocabulary_ = given or (numbered_words(counts.shape[1]) if names is None else Vocabulary(tuple(names)))
        if counts.shape[1] < 2:
            raise InputError(f"{counts.shape[1]} feature(s): with so small a vocabulary there is nothing to learn")
        self.n_empty_documents_ = counts.shape[0]
        counts = self._without_empty(counts)
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

    def _checked(self, X: Counts, reset: bool | None) -> scipy.sparse.csr_matrix:
        """Valid counts in canonical form; `reset` as in scikit-learn, None to leave the number of words open."""
        if reset is not None:
            X = validate_data(self, X, accept_sparse="csr", dtype=(np.float32, np.float64), reset=reset)
            check_non_negative(X, "DocumentModel")
        return check_counts(X, "the counts", allow_fractional=self.fractional_counts)

    def _without_empty(self, counts: scipy.sparse.csr_matrix) -> scipy.sparse.csr_matrix:
        kept = np.flatnonzero(np.asarray(counts.sum(1)).ravel() > 0)
        if not len(kept):
            raise InputError(f"none of the {counts.shape[0]} documents has a word of the vocabulary")
        return counts[kept] if len(kept) < counts.shape[0] else counts

    def _split(self, counts: scipy.sparse.csr_matrix) -> tuple[scipy.sparse.csr_matrix, scipy.sparse.csr_matrix]:
        """Hold out some documents at random: `dev_share` of them, at least 20 if that leaves enough, at most 2,000."""
        if not 0 < self.dev_share < 1:
            raise InputError(f"dev_share is a share of the documents, between 0 and 1, not {self.dev_share}")
        size = counts.shape[0]
        held_out = max(1, min(max(round(self.dev_share * size), min(20, size // 5)), 2000, size // 2))
        order = np.random.default_rng((self.seed, 1)).permutation(size)
        return counts[np.sort(order[held_out:])], counts[np.sort(order[:held_out])]

    def _recipe(self, counts: scipy.sparse.csr_matrix) -> Recipe:
        if self.model not in MODELS:
            raise InputError(f"no model is called {self.model!r}; there are: {', '.join(MODELS)}")
        documents, words = counts.shape
        recipe = MODELS[self.model].recipe(self.preset, documents, float(counts.sum() / documents))
        chosen = {name: getattr(self, name) for name in _OVERRIDES if getattr(self, name) is not None}
        settings = dataclasses.replace(recipe.training, seed=self.seed, **chosen)
        architecture = {"vocabulary_size": words, "latent_dim": self.latent_dim} | recipe.architecture
        return dataclasses.replace(recipe, architecture=architecture, training=settings)

    def _objective(self, recipe: Recipe) -> DocumentObjective:
        """Only whole counts can be thinned."""
        return dataclasses.replace(recipe.objective, thinning=0.0) if self.fractional_counts else recipe.objective

    def _build(self, recipe: Recipe, train: scipy.sparse.csr_matrix) -> torch.nn.Module:
        with torch.random.fork_rng():
            torch.manual_seed(self.seed)
            network = MODELS[self.model](**recipe.architecture)
        network.learn_frequencies(torch.from_numpy(np.asarray(train.sum(0), np.float64).ravel()))
        return network.to(self.device)

    def _record(self, trainer: Trainer, train: Counts, held_out: Counts, recipe: Recipe) -> None:
        """Keep what the fit learned about itself."""
        self.network_.eval().requires_grad_(False)
        self.architecture_ = recipe.architecture
        self.training_ = dataclasses.asdict(recipe.training) | dataclasses.asdict(self._objective(recipe))
        self.history_ = trainer.state.history
        self.stopped_ = trainer.state.stopped
        self.fit_seconds_ = trainer.state.seconds
        self.n_training_documents_, self.n_dev_documents_ = train.shape[0], held_out.shape[0]
        self.dev_perplexity_ = trainer.state.best
        self._turn_to_readable_axes(train)

    def _turn_to_readable_axes(self, train: scipy.sparse.csr_matrix) -> None:
        """Choose the axes on which topics and vectors are shown, and see what each carries."""
        chosen = np.random.default_rng((self.seed, 2)).permutation(train.shape[0])[:AXES_FROM]
        sample = train[np.sort(chosen)]
        self.network_.axes.copy_(torch.from_numpy(readable_axes(self.posterior(sample).mean)))
        seen = self.posterior(sample)
        marginals = DiagonalGaussian(torch.from_numpy(seen.mean), torch.from_numpy(seen.std).log())
        self.kl_per_dimension_ = kl(marginals, DiagonalGaussian.standard(marginals.mean)).mean(0).double().numpy()

    @property
    def _n_features_out(self) -> int:
        return self.latent_dim

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = []
        return tags


_OVERRIDES = ("epochs", "batch_size", "learning_rate", "samples", "updates", "time_limit")
_LEARNED = (
    "corpus_",
    "token_rules_",
    "vocabulary_rules_",
    "kl_per_dimension_",
    "dev_perplexity_",
    "n_features_in_",
    "n_training_documents_",
    "n_dev_documents_",
    "n_empty_documents_",
    "stopped_",
    "fit_seconds_",
)


def _corpus_of(X: DocumentInput) -> dict[str, str] | None:
    """Which corpus, for the model folder: so that `evaluate` finds its test part."""
    return {"name": X.name, "part": X.part, "sha256": X.sha256} if isinstance(X, Documents) else None


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    if dataclasses.is_dataclass(value):
        return dataclasses.asdict(value)
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
