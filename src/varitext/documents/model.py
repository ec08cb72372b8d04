"""DocumentModel: what a user holds. Texts, tokens or counts in; topics, vectors with uncertainty and perplexity out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.sparse
from sklearn.utils.validation import check_is_fitted

from varitext.corpora.document_input import DocumentInput, Tokeniser, listed_documents
from varitext.corpora.sharded_counts import ShardedCounts
from varitext.documents.fitting import DocumentFit
from varitext.documents.folder import KIND, restore_documents, save_documents
from varitext.documents.input import corpus_of, documents_to_learn, texts_of, widened_vocabulary, without_empty
from varitext.documents.perplexity import mean_bound_per_word, perplexity_of
from varitext.documents.posterior import BLOCK, Posterior, mean_blocks, means_of, posterior_blocks, posterior_of
from varitext.documents.regions import RegionDocuments, find_regions
from varitext.documents.seed_topics import known_words, seed_topics_of
from varitext.documents.surprise import fit_length_line
from varitext.documents.topics import TopicsOfDocuments
from varitext.documents.updating import DocumentUpdate, UpdateSettings, check_can_update
from varitext.errors import InputError
from varitext.evaluation.latent_dimensions import LatentDimension, LatentSpace, Neighbour, nearest, rank_dimensions
from varitext.evaluation.perplexity import PerplexityRecord
from varitext.records import check_choice
from varitext.runtime.devices import check_device, running_on
from varitext.runtime.processes import ALONE, World
from varitext.store import StoredModel, load_as
from varitext.text import TokenRules, VocabularyRules
from varitext.training.settings import Progress

__all__ = ["DocumentModel", "LatentDimension", "Neighbour", "PerplexityRecord", "Posterior"]

PREDICTION_SAMPLES = 20  # the paper's


class DocumentModel(TopicsOfDocuments):
    """A latent-variable model of documents, with scikit-learn's manners.

    Documents are raw texts, lists of tokens, sparse or dense counts, or a corpus record, whose counts may lie in shards
    on disk: memory then does not grow with the corpus. Settings left at None are chosen from the preset and the size of
    the corpus. So is the model: NVDM with words that come in bursts, "nvdm_dcm", or with a multinomial, "nvdm", where
    that does not apply; `model_` says which. `seed_topics` has a name and a few words for each topic that is wanted;
    `transform_to="topics"` makes `transform` give p(topic | document); `verbose` shows the progress of a fit on
    standard error.

    >>> model = DocumentModel(latent_dim=50).fit(texts)          # doctest: +SKIP
    >>> model.topics()[0].words, model.similar_words("space")    # doctest: +SKIP
    >>> model.posterior(["a new text"]).std                      # doctest: +SKIP
    """

    def __init__(
        self,
        model: str | None = None,
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
        tokeniser: Tokeniser | None = None,
        text_column: str | None = None,
        processes: int = 1,
        fractional_counts: bool = False,
        threads: int | None = None,
        device: str = "cpu",
        seed: int = 0,
        n_topics: int | None = None,
        seed_topics: Mapping[str, Sequence[str]] | None = None,
        transform_to: str = "vectors",
        verbose: bool = False,
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
        self.tokeniser = tokeniser
        self.text_column = text_column
        self.processes = processes
        self.fractional_counts = fractional_counts
        self.threads = threads
        self.device = device
        self.seed = seed
        self.n_topics = n_topics
        self.seed_topics = seed_topics
        self.transform_to = transform_to
        self.verbose = verbose

    # Learning

    def fit(
        self,
        X: DocumentInput,
        y: object = None,
        *,
        dev: DocumentInput | None = None,
        vocabulary: Sequence[str] | None = None,
        progress: Progress | None = None,
        checkpoint: Path | None = None,
        resume: bool = False,
        world: World = ALONE,
    ) -> "DocumentModel":
        """Learn from documents. `dev` documents choose when to stop; without them a share of X is held out.

        `vocabulary` names the columns of counts, as `CountVectorizer.get_feature_names_out()` does; texts are counted
        over it.

        Each process of a `world` calls this with the same documents, and ends with the same model; see docs/scaling.md.

        Ctrl-C ends the fit at the next safe moment with a KeyboardInterrupt; the best model so far is kept.
        """
        settings = self._settings()
        check_choice("transform_to", self.transform_to, ("vectors", "topics"))
        wanted = [] if self.seed_topics is None else seed_topics_of(self.seed_topics)
        X = listed_documents(X, self.text_column)
        documents = documents_to_learn(X, settings, self._validated, vocabulary)
        known_words(wanted, documents.vocabulary)  # or say so now, and not after training
        self.n_features_in_ = len(documents.vocabulary)
        held_out = None if dev is None else self._held_out(dev, documents.vocabulary, documents.token_rules)
        with running_on(self.threads):
            with self._watched(progress) as shown:
                run = DocumentFit(settings, documents, held_out, checkpoint, shown, world)
                self._train(run, resume)
            line = fit_length_line(self.fitted_.network, run.held_out, self.seed)
            given = RegionDocuments(documents.counts, documents.rows, texts_of(X))
            fitted = self.fitted_
            regions = find_regions(fitted.network, fitted.vocabulary, given, self.n_topics, self.seed, line, wanted)
            self.fitted_ = replace(fitted, regions=regions)
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
        anchor: float = 1.0,
        progress: Progress | None = None,
        checkpoint: Path | None = None,
        resume: bool = False,
    ) -> "DocumentModel":
        """Learn from new documents; topics stay where they are, and words, to which `new_words` adds: `updating.py`.

        The earlier documents are not needed; `anchor` is how much they count beside the new ones. What the update did
        is the last record of `updates_`.
        """
        if not hasattr(self, "fitted_"):
            return self.fit(X, dev=dev, progress=progress, checkpoint=checkpoint, resume=resume)
        check_can_update(self.fitted_.model, self.fitted_.network)
        X = listed_documents(X, self.text_column)
        rules, vocabulary = self.fitted_.token_rules, self.fitted_.vocabulary
        if new_words:
            vocabulary = widened_vocabulary(X, vocabulary, rules, self.fitted_.vocabulary_rules, self._settings())
        counts = without_empty(self._count(X, vocabulary, rules))
        held_out = None if dev is None else self._held_out(dev, vocabulary, rules)
        chosen, earlier = UpdateSettings(epochs, learning_rate, anchor), self.move_to(self.device).fitted_
        with running_on(self.threads), self._watched(progress) as shown:
            update = DocumentUpdate(
                self._settings(), chosen, earlier, vocabulary, counts, held_out, corpus_of(X), checkpoint, shown
            )
            self._train(update, resume)
        return self

    def move_to(self, device: str) -> "DocumentModel":
        """Compute there from now on."""
        check_device(device)
        self.device = device
        self.fitted_.network.to(device)
        return self

    # Using what was learned

    def count(self, X: DocumentInput) -> scipy.sparse.csr_matrix | ShardedCounts:
        """Counts over the fitted vocabulary, [D, V]; words that it does not have are left out. Shards stay on disk."""
        check_is_fitted(self)
        return self._count(X, self.fitted_.vocabulary, self.fitted_.token_rules)

    def transform(self, X: DocumentInput, refine: bool = True) -> np.ndarray:
        """One vector per document: the posterior mean; or p(topic | document), with `transform_to="topics"`."""
        if self.transform_to == "topics":
            return self.memberships_of(self.posterior(X, refine=refine))
        counts = self.count(X)
        return means_of(self.fitted_.network, counts, refine=refine, threads=self.threads)

    def posterior(self, X: DocumentInput, block: int = BLOCK, refine: bool = True) -> Posterior:
        """Mean and standard deviation of every document's latent vector.

        `block` documents go through the model at a time, filled up if there are fewer; a smaller one answers sooner.

        Without `refine` a model that refines its posterior in prediction leaves it as the inference network says:
        several times faster, and a little less sharp.

        A document without any known word gets the prior: mean 0, standard deviation 1 where h is Gaussian.
        """
        counts = self.count(X)
        return posterior_of(self.fitted_.network, counts, block, refine, self.threads)

    def posterior_blocks(self, X: DocumentInput, block: int = BLOCK, refine: bool = True) -> Iterator[Posterior]:
        """The same a few documents at a time, so that the vectors of a large corpus can go to a file as they come."""
        counts = self.count(X)
        yield from posterior_blocks(self.fitted_.network, counts, block, refine, self.threads)

    def mean_blocks(self, X: DocumentInput, block: int = BLOCK, refine: bool = True) -> Iterator[np.ndarray]:
        """The means alone, for less where the model is that of bursts."""
        counts = self.count(X)
        yield from mean_blocks(self.fitted_.network, counts, block, refine, self.threads)

    def perplexity_record(self, X: DocumentInput, samples: int = PREDICTION_SAMPLES) -> PerplexityRecord:
        """Held-out perplexity in full: what kind of estimate it is, bounds, KL apart, unigram, interval."""
        counts = self.count(X)
        with running_on(self.threads):
            return perplexity_of(self.fitted_.network, counts, samples, self.seed)

    def perplexity(self, X: DocumentInput, samples: int = PREDICTION_SAMPLES) -> float:
        """Per-document perplexity, the paper's; of the bound, unless the model has better. Lower is better."""
        return float(np.exp(-self.score(X, samples=samples)))

    def score(self, X: DocumentInput, y: object = None, samples: int = PREDICTION_SAMPLES) -> float:
        """Mean over documents of the bound per word; higher is better. `perplexity == exp(-score)`."""
        counts = without_empty(self.count(X))
        with running_on(self.threads):
            return mean_bound_per_word(self.fitted_.network, counts, samples, self.seed)

    def latent_dimensions(self, words: int = 10) -> list[LatentDimension]:
        """The latent dimensions as ranked words, those of the largest KL first; the paper's Table 2 shows some.

        Ranked are the frequent words that make up four fifths of the text: rare ones have the largest weights, and
        say least.
        """
        return rank_dimensions(*self.latent_space(), words)

    def latent_space(self) -> LatentSpace:
        """Word vectors, frequencies and KL, to compare the latent dimensions of two fits: `alignment_record`."""
        check_is_fitted(self)
        return self.fitted_.latent_space()

    def similar_words(self, word: str, n: int = 5) -> list[tuple[str, float]]:
        """The words nearest in the semantic space (rows of R), by cosine."""
        check_is_fitted(self)
        if word not in self.fitted_.vocabulary.index:
            raise InputError(f"{word!r} is not among the {len(self.fitted_.vocabulary)} words of the model")
        row = self.fitted_.vocabulary.index[word]
        neighbours = nearest(self.word_vectors_, self.word_vectors_[row], n + 1)
        return [(self.fitted_.vocabulary.words[i], similarity) for i, similarity in neighbours if i != row][:n]

    def similar_documents(self, X: DocumentInput, among: DocumentInput, n: int = 5) -> list[list[Neighbour]]:
        """For each document of X the nearest ones in `among`, by the cosine of their vectors."""
        counts = [self.count(each) for each in (among, X)]
        vectors, asked = (means_of(self.fitted_.network, each, threads=self.threads) for each in counts)
        return [nearest(vectors, vector, n) for vector in asked]

    @property
    def word_vectors_(self) -> np.ndarray:
        """R of the paper, [V, K]: one vector per word."""
        check_is_fitted(self)
        return self.fitted_.network.word_vectors.cpu().numpy()

    # Keeping it

    def save(self, folder: str | Path, overwrite: bool = False) -> None:
        """Write the model folder, whole or not at all; plain files that are safe to load."""
        check_is_fitted(self)
        save_documents(Path(folder), self._settings(), self.fitted_, overwrite)

    @classmethod
    def load(cls, folder: str | Path, tokeniser: Tokeniser | None = None) -> "DocumentModel":
        """The model in the folder. One that was fitted with a tokeniser of your own needs it again to read texts."""
        model = load_as(Path(folder), KIND, cls.from_stored)
        return model if tokeniser is None else model.set_params(tokeniser=tokeniser)

    @classmethod
    def from_stored(cls, stored: StoredModel, folder: Path) -> "DocumentModel":
        loaded = restore_documents(stored, folder)
        model = cls(**vars(loaded.settings))
        model._take(loaded.fitted)
        return model
