"""DocumentModel: from texts, tokens or counts to topics, vectors with uncertainty, and perplexity."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted, check_non_negative, validate_data

from varitext.corpora.counts import check_counts
from varitext.corpora.document_input import DocumentInput, Tokeniser, listed_documents
from varitext.corpora.document_vectors import is_known
from varitext.corpora.sharded_counts import Counts, ShardedCounts, in_memory
from varitext.documents import topic_model
from varitext.documents.cache import MAX_DOCUMENTS, DocumentCache, new_cache
from varitext.documents.effects import Effects, estimate_effects
from varitext.documents.fitting import DocumentFit, FittedDocuments
from varitext.documents.folder import Trust, restore_documents, save_documents
from varitext.documents.input import (
    corpus_of,
    count_documents,
    documents_to_learn,
    ids_of,
    passages_of,
    texts_of,
    widened_vocabulary,
    without_boilerplate,
    without_empty,
)
from varitext.documents.mixture import REFITS, directions_of, number_of_places, stability
from varitext.documents.plot import DocumentPlots
from varitext.documents.posterior import (
    BLOCK,
    FEW,
    Posterior,
    bounds_per_word,
    described_documents,
    fit_length_line,
    means_of,
    perplexity_of,
    posterior_blocks,
    posterior_of,
)
from varitext.documents.settings import DocumentSettings
from varitext.documents.topic_model import TopicMatrices, TreeMerge, regions_of
from varitext.documents.topic_records import WORDS, DocumentInfo, Records, TopicInfo, TopicShare, first_words
from varitext.documents.topics import (
    RegionDocuments,
    Regions,
    document_directions,
    find_regions,
    known_words,
    seed_topics_of,
)
from varitext.documents.updating import DocumentUpdate, UpdateSettings, check_can_update
from varitext.documents.vectors import VectorInput, vectors_to_learn, with_vectors
from varitext.errors import InputError
from varitext.evaluation.keywords import DistinctWords, distinct_words
from varitext.evaluation.latent_dimensions import LatentDimension, rank_dimensions
from varitext.evaluation.neighbours import Neighbour, nearest, nearest_words
from varitext.evaluation.perplexity import PerplexityRecord
from varitext.evaluation.shares import Bins
from varitext.records import check_at_least, check_choice
from varitext.runtime.devices import check_device, one_blas_thread, running_on
from varitext.runtime.memory import release_free_memory
from varitext.runtime.processes import ALONE, World
from varitext.store import DOCUMENT_MODEL, StoredModel, load_one_of
from varitext.text import TokenRules, Vocabulary
from varitext.text.boilerplate import Boilerplate
from varitext.text.passages import Passages
from varitext.training.optimizer import MakeOptimizer, Optimization
from varitext.training.settings import Progress

__all__ = ["DocumentModel", "LatentDimension", "Neighbour", "PerplexityRecord", "Posterior"]

PREDICTION_SAMPLES = 20  # as in the paper


class DocumentModel(
    DocumentSettings,  # the constructor
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]  # scikit-learn has no types
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """A latent-variable model of documents with a scikit-learn API.

    Wherever documents are expected, pass raw texts, lists of tokens, sparse or dense counts, a pandas Series or
    DataFrame, or a corpus record. Counts may lie in shards on disk: memory then does not grow with the corpus.

    Parameters
    ----------
    model : str, class or None, default=None
        Name of a model, see `varitext.models.documents.DOCUMENT_MODELS`, or a subclass of `DocumentNetwork`. None:
        "nvdm_dcm", NVDM with a Dirichlet-compound-multinomial likelihood, or "nvdm" where that does not apply.
    latent_dim : int, default=50
        Number of latent dimensions.
    preset : str, default="recommended"
        Name of a set of training settings; "nvdm" also has "paper".
    network : mapping or None, default=None
        Architecture arguments that override the preset's, for example `{"hidden_dim": 256}`.
    epochs : int or None, default=None
        Passes over the training documents. None here and below: chosen by the preset and the size of the corpus.
    batch_size : int or None, default=None
        Documents per update.
    learning_rate : float or None, default=None
        Highest learning rate of the fit.
    samples : int or None, default=None
        Draws of h per document in training.
    updates : {"joint", "alternating"} or None, default=None
        Whether encoder and decoder are updated jointly or in turn.
    estimator : str or None, default=None
        Gradient estimator, a key of `varitext.latent.ESTIMATORS`: "dreg" or "importance_weighted" for a Gaussian h,
        "nvil" or "vimco" for a discrete one.
    kl_schedule : {"linear", "cyclical", "none"} or None, default=None
        Weight of the KL in training: rises from 0.1 to 1 once, rises in each of four cycles (Fu et al. 2019), or is 1.
    kl_warm_up : float or None, default=None
        Share of the steps, or of each cycle, in which the weight rises. None: the preset's share; with a `kl_schedule`,
        0.2 of the steps or 0.5 of each cycle.
    free_bits : float, default=0.0
        Nats of KL per document and latent dimension that cost nothing (Kingma et al. 2016), against posterior collapse.
    softmax : str or None, default=None
        Softmax over the vocabulary, "full" or "sampled", for models that offer both.
    time_limit : float or None, default=None
        Seconds after which training ends; the training schedule adapts. None: no limit.
    dev_share : float, default=0.05
        Share of the documents held out to decide when to stop.
    dev_seed : int or None, default=None
        Seed for choosing the held-out documents. None: `seed`. Set it to fit several seeds with the same held-out
        documents.
    token_rules : TokenRules or None, default=None
        How texts become tokens. None: the default rules, with a segmenter if the language needs one.
    vocabulary_rules : VocabularyRules or None, default=None
        Which words are kept. None: the default rules.
    tokeniser : callable or None, default=None
        Your function from a text to a list of tokens.
    text_column : str or None, default=None
        Column of a DataFrame that holds the texts. None: "text", or the only text column.
    keep_boilerplate : bool, default=False
        Keep what a fit on texts otherwise removes: quoted replies, signatures, mail headers, HTML, addresses, hashes,
        and lines that many documents share. `fitted_.notes` lists what was removed.
    keep_duplicates : bool, default=False
        Learn from every copy of a text; otherwise copies count once, unless there are fewer than 100 distinct texts.
        Topic sizes count all copies.
    passages : int or None, default=None
        Split long texts, such as books, into passages of about this many words and find the topics of these. A
        document's topics are then shares of its words, `documents` of a topic counts passages, and `transform` reads
        documents whole.
    processes : int, optional
        Number of threads that count words, or of processes for n-grams and without the compiled counter (default: all
        cores, or one process).
    fractional_counts : bool, default=False
        Whether counts may be fractions.
    threads : int or None, default=None
        CPU threads. None: all cores.
    device : str, default="cpu"
        "cpu" or "cuda".
    seed : int, default=0
        The same seed gives identical results on the same machine with the same number of threads.
    n_topics : int or None, default=None
        Number of topics. None: chosen automatically.
    seed_topics : mapping or None, default=None
        Words that guide topics, by the name of the topic: `{"space": ["orbit", "nasa"]}`.
    min_topic_size : int or None, default=None
        Smallest number of documents of a topic; the documents of smaller ones go to their next most probable topic.
        None: no minimum.
    transform_to : {"vectors", "topics"}, default="vectors"
        What `transform` returns: posterior means or p(topic | document).
    verbose : bool, default=False
        Whether to show the progress of a fit on standard error.

    Attributes
    ----------
    fitted_ : FittedDocuments
        Everything that was learned: network, vocabulary, topics, training history.
    n_features_in_ : int
        Number of words in the vocabulary.
    word_vectors_ : ndarray of shape (n_words, latent_dim)
        One vector per word.

    Examples
    --------
    >>> from varitext import DocumentModel
    >>> texts = ["orbit moon rocket launch", "goal match team ball", "bread oven flour yeast"] * 12
    >>> model = DocumentModel(latent_dim=3, epochs=30, learning_rate=0.05, n_topics=3, threads=1).fit(texts)
    >>> sorted(sorted(topic.words[:4]) for topic in model.topics())[0]
    ['ball', 'goal', 'match', 'team']
    >>> space, similarity = model.find_topics("a rocket to the moon")[0]
    >>> [record.topic == space for record in model.document_info(["orbit launch rocket", "oven bread yeast"])]
    [True, False]
    >>> model.posterior(["a rocket to the moon"]).std.shape
    (1, 3)
    """

    fitted_: FittedDocuments
    n_features_in_: int
    _cache: DocumentCache | None = None  # what was already computed for documents

    # Learning

    def fit(
        self,
        X: DocumentInput,
        y: object = None,
        *,
        vectors: VectorInput | None = None,
        dev: DocumentInput | None = None,
        vocabulary: Sequence[str] | None = None,
        progress: Progress | None = None,
        checkpoint: Path | None = None,
        resume: bool = False,
        world: World = ALONE,
        optimizer: MakeOptimizer | None = None,
        schedule: Callable[[float], float] | None = None,
    ) -> Self:
        """Learn a model and its topics from documents.

        Ctrl-C ends the fit at the next safe moment with a KeyboardInterrupt; the best weights so far are kept.

        Parameters
        ----------
        X : documents
            Documents to learn from.
        y : ignored
        vectors : array of shape (n_documents, width), path, "minilm" or None, default=None
            Sentence vectors to learn from in addition to the words: your own, as a matrix or a .npy file, or "minilm"
            to encode the texts. The default model is then "nvdm_vectors".
        dev : documents or None, default=None
            Held-out documents that decide when to stop. None: a share of X is held out.
        vocabulary : sequence of str or None, default=None
            The words to count in texts, or the names of the columns of counts, such as
            `CountVectorizer.get_feature_names_out()`.
        progress : Progress or None, default=None
            Receives the progress of training.
        checkpoint : Path or None, default=None
            File to save the state of training in, every few seconds and at the end.
        resume : bool, default=False
            Whether to resume from the checkpoint.
        world : World, default=ALONE
            The processes that share the work. Each calls `fit` with the same documents and ends with the same model.
        optimizer : callable or None, default=None
            Function from a list of parameters to a `torch.optim.Optimizer`, whose learning rate is the peak. None:
            AdamW with `learning_rate`. To resume, pass the same one.
        schedule : callable or None, default=None
            Function from the share of training that is done, 0 to 1, to a factor of the learning rate. None: the
            preset's schedule.

        Returns
        -------
        self : DocumentModel
        """
        check_choice("transform_to", self.transform_to, ("vectors", "topics"))
        self._cache = self._cache and DocumentCache()  # its contents belong to other weights
        wanted = [] if self.seed_topics is None else seed_topics_of(self.seed_topics)
        X = listed_documents(X, self.text_column)
        documents = documents_to_learn(X, self, self._validated, vocabulary)
        if vectors is not None:
            documents = vectors_to_learn(documents, X, vectors)
        known_words(wanted, documents.vocabulary)  # unknown seed words are refused now, not after training
        self.n_features_in_ = len(documents.vocabulary)
        held_out = None
        if dev is not None:
            held_out = self._held_out(dev, documents.vocabulary, documents.token_rules, documents.boilerplate)
        with running_on(self.threads), one_blas_thread():
            with self._watched(progress) as shown:
                if shown is not None:
                    for note in documents.notes:
                        shown.note(f"note: {note}")
                run = DocumentFit(
                    self, documents, held_out, checkpoint, shown, world, Optimization(optimizer, schedule)
                )
                self._train(run, resume)
            network, words, held_out = self.fitted_.network, self.fitted_.vocabulary, run.held_out
            del run  # the optimizer, and copies of the weights
            release_free_memory()
            line = fit_length_line(network, held_out, self.seed)
            rules = None if self.tokeniser else documents.token_rules
            given = RegionDocuments(
                documents.counts, documents.rows, texts_of(X), rules, documents.copies, ids_of(X), documents.excerpts
            )
            given = given._replace(posterior=self._learned_posterior(given), boilerplate=documents.boilerplate)
            release_free_memory()
            return self._with(
                find_regions(network, words, given, self.n_topics, self.seed, line, wanted, self.min_topic_size)
            )

    def partial_fit(
        self,
        X: DocumentInput,
        y: object = None,
        *,
        vectors: VectorInput | None = None,
        dev: DocumentInput | None = None,
        new_words: bool = False,
        epochs: int | None = None,
        learning_rate: float | None = None,
        anchor: float = 1.0,
        progress: Progress | None = None,
        checkpoint: Path | None = None,
        resume: bool = False,
    ) -> Self:
        """Learn from new documents without the earlier ones; the topics stay where they are.

        The last record of `fitted_.updates` describes the update. An unfitted model is fitted.

        Parameters
        ----------
        X : documents
            New documents.
        y : ignored
        vectors
            As in `count`.
        dev : documents or None, default=None
            Held-out documents that decide when to stop. None: a share of X is held out.
        new_words : bool, default=False
            Whether to add the words of the new documents to the vocabulary.
        epochs : int or None, default=None
            Passes over the new documents. None: half as many as in a first fit.
        learning_rate : float or None, default=None
            Highest learning rate. None: half that of a first fit.
        anchor : float, default=1.0
            Weight of an earlier document relative to a new one; at 0 topics move freely.
        progress, checkpoint, resume
            As in `fit`.

        Returns
        -------
        self : DocumentModel
        """
        if not hasattr(self, "fitted_"):
            return self.fit(X, vectors=vectors, dev=dev, progress=progress, checkpoint=checkpoint, resume=resume)
        check_can_update(self.fitted_.model, self.fitted_.network)
        self._cache = None  # its contents belong to other weights
        X = listed_documents(X, self.text_column)
        rules, vocabulary, boilerplate = self.fitted_.token_rules, self.fitted_.vocabulary, self.fitted_.boilerplate
        if (passages := self._passages(X)) is not None:
            X = passages.texts
        if new_words:
            vocabulary = widened_vocabulary(X, vocabulary, rules, self.fitted_.vocabulary_rules, self, boilerplate)
        cleaned, counts = without_boilerplate(X, boilerplate), self._count(X, vocabulary, rules, boilerplate)
        counts = without_empty(with_vectors(counts, vectors, cleaned, self.fitted_.network, self.fitted_.vectors))
        held_out = None if dev is None else self._held_out(dev, vocabulary, rules, boilerplate)
        chosen, earlier = UpdateSettings(epochs, learning_rate, anchor), self.move_to(self.device).fitted_
        with running_on(self.threads), self._watched(progress) as shown:
            update = DocumentUpdate(
                self, chosen, earlier, vocabulary, counts, held_out, corpus_of(X), checkpoint, shown
            )
            self._train(update, resume)
        return self

    def move_to(self, device: str) -> Self:
        """Move the model to another `device`, "cpu" or "cuda".

        Returns
        -------
        DocumentModel
            The model itself.
        """
        check_device(device)
        self.device = device
        self.fitted_.network.to(device)
        return self

    # Vectors and likelihood

    def count(self, X: DocumentInput, vectors: VectorInput | None = None) -> scipy.sparse.csr_matrix | ShardedCounts:
        """Count the words of the vocabulary in the documents `X`; other words are left out.

        Parameters
        ----------
        X : documents
        vectors : array of shape (n_documents, width), path, "minilm" or None, default=None
            Sentence vectors to keep beside the counts, for a model that was fitted with sentence vectors. None: MiniLM
            vectors if X holds texts and the model was fitted with them, otherwise none. Counts with vectors can be
            passed wherever documents are expected.

        Returns
        -------
        csr_matrix of shape (n_documents, n_words)
            The counts; or sharded counts, which stay on disk.
        """
        check_is_fitted(self)
        X = listed_documents(X, self.text_column)
        texts = texts_of(X) if vectors is None and self.tokeniser is None else None
        if self._cache is not None and texts is not None:
            return self._cache.counts(texts, self._counted)
        return self._counted(X, vectors)

    def transform(self, X: DocumentInput, refine: bool = True, vectors: VectorInput | None = None) -> np.ndarray:
        """One vector per document.

        Parameters
        ----------
        X : documents
        refine : bool, default=True
            Whether to refine the vectors, for models that can. Otherwise they come straight from the inference network:
            several times faster, but less accurate.
        vectors
            As in `count`.

        Returns
        -------
        ndarray of shape (n_documents, latent_dim)
            Posterior means; or, with `transform_to="topics"`, p(topic | document), one column per topic.
        """
        if self.transform_to == "topics":
            return self.topic_memberships(self.posterior(X, refine=refine, vectors=vectors))
        counts = self.count(X, vectors)
        return means_of(self.fitted_.network, counts, refine=refine, threads=self.threads)

    def posterior(
        self, X: DocumentInput, block: int = BLOCK, refine: bool = True, vectors: VectorInput | None = None
    ) -> Posterior:
        """Mean and standard deviation of every document's latent vector.

        A document without a known word gets the prior: mean 0, standard deviation 1 where h is Gaussian.

        Parameters
        ----------
        X : documents
        block : int, default=256
            Documents per pass through the model. For a few documents a smaller block is faster.
        refine : bool, default=True
            Whether to refine the posterior, for models that can. Otherwise it is that of training.
        vectors
            As in `count`.

        Returns
        -------
        Posterior
            `mean` and `std`, each of shape (n_documents, latent_dim).
        """
        return self._posterior_of(self.count(X, vectors), block, refine)

    def posterior_blocks(self, X: DocumentInput, block: int = BLOCK, refine: bool = True) -> Iterator[Posterior]:
        """The posterior, one block of documents at a time: the vectors of a large corpus need not fit in memory.

        Parameters
        ----------
        X, block, refine
            As in `posterior`.

        Returns
        -------
        iterator of Posterior
        """
        counts = self.count(X)
        yield from posterior_blocks(self.fitted_.network, counts, block, refine, self.threads)

    def perplexity_record(self, X: DocumentInput, samples: int = PREDICTION_SAMPLES) -> PerplexityRecord:
        """Held-out perplexity in full: bound, importance-weighted bound, KL, unigram perplexity, interval.

        Parameters
        ----------
        X : documents
        samples : int, default=20
            Draws of h per document.

        Returns
        -------
        PerplexityRecord
        """
        counts = self._words_of(X)
        with running_on(self.threads):
            return perplexity_of(self.fitted_.network, counts, samples, self.seed)

    def perplexity(self, X: DocumentInput, samples: int = PREDICTION_SAMPLES) -> float:
        """Per-document perplexity as in the paper, from the bound or the model's better estimate. Lower is better.

        Parameters
        ----------
        X, samples
            As in `perplexity_record`.

        Returns
        -------
        float
        """
        return float(np.exp(-self.score(X, samples=samples)))

    def score(self, X: DocumentInput, y: object = None, samples: int = PREDICTION_SAMPLES) -> float:
        """Bound per word, averaged over documents; `perplexity == exp(-score)`. Higher is better.

        Parameters
        ----------
        X, samples
            As in `perplexity_record`.
        y : ignored

        Returns
        -------
        float
            Nats per word.
        """
        return float(self.bounds_per_word(X, samples).mean())

    def bounds_per_word(self, X: DocumentInput, samples: int = PREDICTION_SAMPLES) -> np.ndarray:
        """The bound per word of every document with a known word, for paired tests; `score` is its mean.

        Parameters
        ----------
        X, samples
            As in `perplexity_record`.

        Returns
        -------
        ndarray of shape (n_documents,)
            Nats per word; documents without a known word are left out.
        """
        counts = without_empty(self._words_of(X))
        with running_on(self.threads):
            return bounds_per_word(self.fitted_.network, counts, samples, self.seed)

    # Words and neighbours

    def latent_dimensions(self, words: int = WORDS) -> list[LatentDimension]:
        """The latent dimensions, each with its top `words`, as in the paper's Table 2; largest KL first.

        Only the frequent words that make up four fifths of the text are ranked: rare words have the largest weights
        but are the least informative.

        Returns
        -------
        list of LatentDimension
        """
        check_is_fitted(self)
        return rank_dimensions(*self.fitted_.latent_space(), words)

    def similar_words(self, word: str, n: int = 5) -> list[tuple[str, float]]:
        """The words nearest to a word by the cosine of their vectors.

        Parameters
        ----------
        word : str
        n : int, default=5

        Returns
        -------
        list of (str, float)
            Words and cosines, best first.
        """
        check_is_fitted(self)
        vocabulary = self.fitted_.vocabulary
        if word not in vocabulary.index:
            raise InputError(f"{word!r} is not among the {len(vocabulary)} words of the model")
        return nearest_words(vocabulary, self.word_vectors_, word, n)

    def similar_documents(self, X: DocumentInput, among: DocumentInput, n: int = 5) -> list[list[Neighbour]]:
        """The documents nearest to each document of X by the cosine of their vectors.

        Parameters
        ----------
        X : documents
            The queries.
        among : documents
            The documents to search.
        n : int, default=5

        Returns
        -------
        list of list of Neighbour
            For each query its neighbours (`index`, `similarity`), best first.
        """
        counts = [self.count(each) for each in (among, X)]
        vectors, queries = (means_of(self.fitted_.network, each, threads=self.threads) for each in counts)
        return [nearest(vectors, query, n) for query in queries]

    @property
    def word_vectors_(self) -> np.ndarray:
        """R of the paper, [V, K]: one vector per word."""
        check_is_fitted(self)
        return self.fitted_.network.word_vectors.cpu().numpy()

    # Topics: regions of the latent space in which documents lie

    def topics(self, words: int = WORDS) -> Records[TopicInfo]:
        """The topics, each with its name, size, first `words`, coherence and typical documents.

        Returns
        -------
        list of TopicInfo
            `to_frame()` converts it to a pandas DataFrame.
        """
        return first_words(self._regions().info(), words)

    def find_topics(self, query: str, n: int = 5) -> list[tuple[int, float]]:
        """The topics nearest to a query text.

        Parameters
        ----------
        query : str
            Words or a text; at least one word must be known to the model.
        n : int, default=5

        Returns
        -------
        list of (int, float)
            Topic numbers and cosines between the query's vector and the centre of the topic, best first.
        """
        counts = in_memory(self.count([query]))
        if not counts.sum():
            raise InputError(f"no word of the query {query!r} is among the {self.n_features_in_} words of the model")
        return topic_model.nearest_topics(self._regions(), self._posterior_of(counts), n)

    def topic_memberships(self, X: DocumentInput | Posterior, vectors: VectorInput | None = None) -> np.ndarray:
        """p(topic | document).

        Parameters
        ----------
        X : documents or Posterior
            Documents, or their posterior if it is known already.
        vectors
            As in `count`.

        Returns
        -------
        ndarray of shape (n_documents, n_topics)
            Rows sum to one; columns are in the order of `topics()`.
        """
        if isinstance(X, Posterior):
            return self._regions().memberships(directions_of(X))
        passages = self._passages(X)
        if passages is None:
            return self.topic_memberships(self._posterior_of(self.count(X, vectors)))
        counts = in_memory(self.count(passages.texts))
        return passages.averaged(self.topic_memberships(self._posterior_of(counts)), np.asarray(counts.sum(1)).ravel())

    def document_info(self, X: DocumentInput, vectors: VectorInput | None = None) -> Records[DocumentInfo]:
        """Topic, probability, uncertainty and surprise of each document.

        Parameters
        ----------
        X : documents
        vectors
            As in `count`.

        Returns
        -------
        list of DocumentInfo
            `to_frame()` converts it to a pandas DataFrame.
        """
        passages = self._passages(X)
        counts = in_memory(self.count(X, vectors) if passages is None else self.count(passages.texts))
        posterior, nats = self._described(counts, bounds=True)
        with running_on(self.threads):
            return topic_model.document_info(self.fitted_, counts, posterior, nats, self.seed, passages)

    def topic_shares(
        self, X: DocumentInput | Posterior, values: Sequence[object], bins: Bins = None
    ) -> Records[TopicShare]:
        """Share of each topic by class, month or any other value.

        Parameters
        ----------
        X : documents or Posterior
            Documents, or their posterior if it is known already.
        values : sequence
            One value per document.
        bins : int, str, sequence of float or None, default=None
            Groups numbers or dates: into this number of equally wide bins, by "day", "week", "month", "quarter" or
            "year", or between these edges, such as `range(0, 101, 10)`. None: each value is its own group.

        Returns
        -------
        list of TopicShare
            Shares with 95 % intervals; `to_frame()` converts them to a pandas DataFrame.
        """
        known = X.mean.any(1) if isinstance(X, Posterior) else is_known(in_memory(self.count(X)))
        return topic_model.topic_shares(self._regions(), self.topic_memberships(X), np.asarray(known), values, bins)

    def effects(self, formula: str, table: Any, X: DocumentInput | Posterior | None = None) -> Effects:
        """How the share of documents in each topic depends on covariates, with 95 % intervals.

        Needs `pip install 'varitext[effects]'`.

        Parameters
        ----------
        formula : str
            For example "topic ~ party + s(date)" or "topic ~ party * s(date)": `s` is a spline over numbers or dates.
        table : pandas.DataFrame or mapping
            Covariates of the documents: one column of values per covariate.
        X : documents, Posterior or None, default=None
            The documents, or their posterior if it is known already. None: the texts in `table`, a DataFrame.

        Returns
        -------
        Effects
            `rows` and `to_frame()` hold an estimate per topic and term; `contrast` and `predict` compare values.
        """
        posterior = X if isinstance(X, Posterior) else self._posterior_of(self.count(table if X is None else X))
        regions, directions = self._regions(), directions_of(posterior)
        topics = [(topic.number, topic.name) for topic in regions.info()]
        known = np.isfinite(directions.variance)
        return estimate_effects(formula, table, regions.memberships(directions), topics, known)

    def distinct_words(self, X: DocumentInput, values: Sequence[object], words: int = WORDS) -> list[DistinctWords]:
        """The words that distinguish the documents of each class, month or other value from all others.

        Parameters
        ----------
        X : documents
        values : sequence
            One value per document.
        words : int, default=10

        Returns
        -------
        list of DistinctWords
        """
        counts = in_memory(self.count(X))
        return distinct_words(counts, [str(value) for value in values], self.fitted_.vocabulary.words, words)

    def topic_tree(self) -> list[TreeMerge]:
        """The hierarchy of topics: merges of the most similar ones, from two topics up to all of them.

        Returns
        -------
        list of TreeMerge
        """
        return topic_model.topic_tree(self._regions())

    def topic_matrices(self, X: DocumentInput) -> TopicMatrices:
        """The topics and the documents `X` as pyLDAvis expects them; documents without a known word are left out.

        Returns
        -------
        TopicMatrices
        """
        return topic_model.topic_matrices(self.fitted_, in_memory(self.count(X)), self.threads)

    def refit_topics(
        self,
        X: DocumentInput,
        n_topics: int | None = None,
        seed_topics: Mapping[str, Sequence[str]] | None = None,
        min_topic_size: int | None = None,
        vectors: VectorInput | None = None,
    ) -> Self:
        """Find the topics again in these documents; the network does not change.

        Parameters
        ----------
        X : documents
        n_topics : int or None, default=None
            Number of topics. None: chosen automatically.
        seed_topics : mapping or None, default=None
            Words that guide topics, by the name of the topic; other topics are found as well.
        min_topic_size : int or None, default=None
            Smallest number of documents of a topic. None: the model's setting.
        vectors
            As in `count`.

        Returns
        -------
        self : DocumentModel
        """
        check_is_fitted(self)
        check_at_least("n_topics", 1 if n_topics is None else n_topics, 1)
        check_at_least("min_topic_size", 1 if min_topic_size is None else min_topic_size, 1)
        given, wanted = self._given(X, vectors), seed_topics_of(seed_topics) if seed_topics is not None else []
        fitted, earlier = self.fitted_, self.fitted_.regions
        with running_on(self.threads), one_blas_thread():
            line = earlier.line if earlier else fit_length_line(fitted.network, given.counts, self.seed)
            regions = find_regions(
                fitted.network,
                fitted.vocabulary,
                given,
                n_topics,
                self.seed,
                line,
                wanted,
                self.min_topic_size if min_topic_size is None else min_topic_size,
            )
            return self._with(regions)

    def update_words(
        self,
        X: DocumentInput | None = None,
        *,
        stop_words: Sequence[str] = (),
        ngrams: int = 1,
        relevance: float | None = None,
    ) -> Self:
        """Choose the words and names of the topics again; the topics and their numbers do not change.

        Parameters
        ----------
        X : documents or None, default=None
            Documents to count words and topic sizes in. None: the counts of the documents that the topics were found
            in.
        stop_words : sequence of str, default=()
            Words to hide from all topics.
        ngrams : {1, 2}, default=1
            2: topics also show two-word phrases.
        relevance : float or None, default=None
            Weight between 0, for words that only this topic has, and 1, for words that most of its documents have.
            None: 0.6.

        Returns
        -------
        self : DocumentModel
        """
        given = None if X is None else self._given(X)
        with running_on(self.threads):
            network = self.fitted_.network
            return self._with(topic_model.with_words(self._regions(), stop_words, ngrams, relevance, given, network))

    def rename_topic(self, number: int, name: str) -> Self:
        """Rename the topic with this number.

        Parameters
        ----------
        number : int
        name : str

        Returns
        -------
        DocumentModel
            The model itself.
        """
        return self._with(topic_model.renamed(self._regions(), number, name))

    def name_words(self, words: Sequence[str]) -> Self:
        """Name the columns of the counts that the model was fitted on, in their order.

        For a model at the end of a scikit-learn pipeline, which cannot pass names on:
        `pipeline[-1].name_words(pipeline[:-1].get_feature_names_out())`.

        Parameters
        ----------
        words : sequence of str

        Returns
        -------
        DocumentModel
            The model itself.
        """
        check_is_fitted(self)
        vocabulary = Vocabulary(tuple(map(str, words)))
        if len(vocabulary) != self.n_features_in_:
            raise InputError(f"{len(vocabulary)} words for a model of {self.n_features_in_} columns")
        regions = self.fitted_.regions
        named = None if regions is None else replace(regions, words=vocabulary.words)
        self.fitted_, self._cache = replace(self.fitted_, vocabulary=vocabulary, regions=named), None
        return self

    def merge_topics(self, numbers: Sequence[int], name: str | None = None) -> Self:
        """Merge topics into one, which keeps the lowest of their numbers.

        Parameters
        ----------
        numbers : sequence of int
        name : str or None, default=None
            Name of the merged topic. None: the name that a user gave to the part with more than half of the documents,
            if any, otherwise a name made of its words.

        Returns
        -------
        self : DocumentModel
        """
        return self._with(topic_model.merged(self._regions(), numbers, name))

    def reduce_topics(self, n_topics: int) -> Self:
        """Merge the most similar topics until `n_topics` are left.

        Returns
        -------
        DocumentModel
            The model itself.
        """
        check_at_least("n_topics", n_topics, 1)
        return self._with(topic_model.reduced(self._regions(), n_topics))

    def drop_topics(self, numbers: Sequence[int]) -> Self:
        """Remove the topics with these `numbers`; their documents go to the next most probable topic.

        Returns
        -------
        self : DocumentModel
        """
        return self._with(topic_model.dropped(self._regions(), numbers))

    def split_topic(self, number: int, X: DocumentInput | None = None, n_parts: int = 2) -> Self:
        """Undo a merge, or divide a topic; the other topics do not change.

        Parameters
        ----------
        number : int
        X : documents or None, default=None
            Documents to divide the topic by, if it was not merged from others.
        n_parts : int, default=2
            Number of parts for a topic that was not merged.

        Returns
        -------
        self : DocumentModel
        """
        return self._with(self._split(number, X, n_parts))

    def subtopics(self, number: int, X: DocumentInput, n_parts: int = 2) -> Records[TopicInfo]:
        """The topics within a topic, as `split_topic` would divide it. The model does not change.

        Parameters
        ----------
        number : int
        X : documents
            Documents to divide the topic by.
        n_parts : int, default=2
            Number of parts for a topic that was not merged.

        Returns
        -------
        list of TopicInfo
        """
        there = {group.number for group in self._regions().groups} - {number}
        return first_words((one for one in self._split(number, X, n_parts).info() if one.number not in there), WORDS)

    def undo_topics(self) -> Self:
        """Undo the last change of topics. The last five can be undone, even after saving and loading.

        Returns
        -------
        self : DocumentModel
        """
        regions = self._regions()
        if regions.before is None:
            raise InputError("there is no change of topics to undo")
        self.fitted_ = replace(self.fitted_, regions=regions.before)
        return self

    def topic_stability(self, X: DocumentInput, n_refits: int = REFITS) -> dict[int, float]:
        """How reliably each topic is found again when topics are refitted to resampled documents `X`.

        `topics()`, figures and reports show the result until the topics change.

        Parameters
        ----------
        X : documents
        n_refits : int, default=20
            Number of resamples of the documents.

        Returns
        -------
        dict of int to float
            By topic number: the Jaccard similarity, 0 to 1, of its documents with those of the most similar new topic,
            averaged over resamples. Above .75 a topic is stable, below .5 it may be an accident (Hennig 2007). NaN for
            a topic without documents.
        """
        check_at_least("n_refits", n_refits, 1)
        regions, given = self._regions(), self._given(X)
        with running_on(self.threads), one_blas_thread():
            directions = document_directions(self.fitted_.network, given, self.seed)
            labels, components = regions.memberships(directions).argmax(1), len(regions.mixture.weights)
            components = min(components, number_of_places(directions.unit))
            found = stability(directions.unit, labels, len(regions.groups), components, self.seed, n_refits)
        by_number = {group.number: float(one) for group, one in zip(regions.groups, found, strict=True)}
        known = tuple((number, value) for number, value in by_number.items() if np.isfinite(value))
        self.fitted_ = replace(self.fitted_, regions=replace(regions, stability=known))
        return by_number

    @property
    def plot(self) -> DocumentPlots:
        """Plotly figures of the fitted model for notebooks, such as `model.plot.map(texts)`: see `DocumentPlots`."""
        check_is_fitted(self)
        return DocumentPlots(self)

    # Saving and loading

    def save(self, folder: str | Path, overwrite: bool = False) -> None:
        """Write a model folder of plain files that are safe to load. The folder is written completely or not at all.

        Parameters
        ----------
        folder : str or Path
        overwrite : bool, default=False
            Whether to replace an existing folder.
        """
        check_is_fitted(self)
        save_documents(Path(folder), self, self.fitted_, overwrite)

    def use_cache(self, folder: str | Path | None = None) -> Self:
        """Cache what is computed for documents, so that nothing is computed twice; results stay the same.

        Parameters
        ----------
        folder : str, Path or None, default=None
            Model folder whose cache is also used.

        Returns
        -------
        self : DocumentModel
        """
        self._cache = new_cache(None if folder is None else Path(folder))
        return self

    def save_cache(self, folder: str | Path) -> None:
        """Write what `use_cache` has cached to the model's `folder`; does nothing if the folder is not writable."""
        if self._cache is not None:
            self._cache.write(Path(folder))

    @classmethod
    def load(cls, folder: str | Path, tokeniser: Tokeniser | None = None, trust: Trust = None) -> Self:
        """Load a model folder. No code in it is executed.

        Parameters
        ----------
        folder : str or Path
            A folder that `save` or `varitext fit` wrote.
        tokeniser : callable or None, default=None
            Your tokeniser, if the model was fitted with one: the folder does not contain it.
        trust : str, class or None, default=None
            A network class of another package that the folder may use, as "package.module:Class". Without it, a folder
            that names such a class is refused.

        Returns
        -------
        DocumentModel
        """
        model = load_one_of(Path(folder), {DOCUMENT_MODEL: partial(cls.from_stored, trust=trust)})
        return model if tokeniser is None else model.set_params(tokeniser=tokeniser)

    @classmethod
    def from_stored(cls, stored: StoredModel, folder: Path, trust: Trust = None) -> Self:
        """The model that the files of a folder describe; users call `load` instead.

        Parameters
        ----------
        stored : StoredModel
        folder : Path
        trust : str, class or None, default=None

        Returns
        -------
        DocumentModel
        """
        settings, fitted = restore_documents(stored, folder, trust)
        model = cls(**vars(settings))
        model._take(fitted)
        return model

    # scikit-learn and notebooks

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        """Names of the columns that `transform` returns; `input_features` is ignored.

        They are "topic0: name", ... with `transform_to="topics"`, otherwise "documentmodel0", ...
        """
        if self.transform_to != "topics":
            return np.asarray(super().get_feature_names_out(input_features))
        return np.array([f"topic{topic.number}: {topic.name}" for topic in self.topics()], dtype=object)

    def _html_repr(self) -> str:
        """In notebooks: the settings, as scikit-learn shows them, and the topics of a fitted model."""
        shown: str = estimator_html_repr(self)
        has_topics = hasattr(self, "fitted_") and self.fitted_.regions is not None
        return f"{shown}{self.topics()._repr_html_()}" if has_topics else shown

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fitted_")

    @property
    def _n_features_out(self) -> int:
        return self.fitted_.network.vector_dim

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    # Inside

    def _take(self, fitted: FittedDocuments) -> None:
        self.fitted_ = fitted
        self.n_features_in_ = len(fitted.vocabulary)

    def _with(self, regions: Regions) -> Self:
        self.fitted_ = replace(self.fitted_, regions=regions.after(self.fitted_.regions))
        return self

    def _train(self, run: DocumentFit | DocumentUpdate, resume: bool) -> None:
        network = run.network
        try:
            with running_on(None, network.parallel_training and network.device.type == "cpu"):
                run.trainer.train(resume)
        finally:  # also when training gave up: the best weights so far are in place
            if run.trainer.state.stopped:
                self._take(run.result())
        if self.fitted_.stopped == "interrupted":
            raise KeyboardInterrupt("training was interrupted; the model holds the best weights so far")

    @contextmanager
    def _watched(self, progress: Progress | None) -> Iterator[Progress | None]:
        """The given progress; if there is none and `verbose` is set, a bar or lines on standard error."""
        if progress is not None or not self.verbose:
            yield progress
            return
        from varitext.training.progress import show_progress

        with show_progress() as shown:
            yield shown

    def _count(
        self, X: DocumentInput, vocabulary: Vocabulary, rules: TokenRules, boilerplate: Boilerplate | None
    ) -> Counts:
        X = listed_documents(X, self.text_column)
        return count_documents(X, vocabulary, rules, self, self._validated, boilerplate)

    def _words_of(self, X: DocumentInput) -> Counts:
        """Counts without sentence vectors: perplexity is of words, with h inferred from words."""
        check_is_fitted(self)
        return self._count(X, self.fitted_.vocabulary, self.fitted_.token_rules, self.fitted_.boilerplate)

    def _held_out(
        self, dev: DocumentInput, vocabulary: Vocabulary, rules: TokenRules, boilerplate: Boilerplate | None
    ) -> Counts:
        return without_empty(self._count(dev, vocabulary, rules, boilerplate))

    def _validated(self, X: Any, reset: bool) -> scipy.sparse.csr_matrix:
        """Check counts without words as scikit-learn does; `reset` stores the number of columns."""
        X = validate_data(self, X, accept_sparse="csr", dtype=(np.float32, np.float64), reset=reset)
        check_non_negative(X, "DocumentModel")
        return check_counts(X, "the counts", allow_fractional=self.fractional_counts)

    def _counted(self, X: DocumentInput, vectors: VectorInput | None = None) -> Counts:
        fitted, cleaned = self.fitted_, without_boilerplate(X, self.fitted_.boilerplate)
        counts = self._count(cleaned, fitted.vocabulary, fitted.token_rules, None)
        return with_vectors(counts, vectors, cleaned, fitted.network, fitted.vectors)

    def _posterior_of(self, counts: Counts, block: int = BLOCK, refine: bool = True) -> Posterior:
        if self._cache is None or not refine or isinstance(counts, ShardedCounts):
            return posterior_of(self.fitted_.network, counts, block, refine, self.threads)
        return self._described(counts)[0]

    def _described(self, counts: scipy.sparse.csr_matrix, bounds: bool = False) -> tuple[Posterior, np.ndarray | None]:
        """The posterior and, if `bounds`, nats per word; only what is missing from the cache is computed."""
        network, threads = self.fitted_.network, self.threads
        bounds = bounds and network.has_joint_bound and counts.shape[0] >= FEW

        def describe(counts: scipy.sparse.csr_matrix) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            if bounds:
                posterior, nats = described_documents(network, counts, self.seed, threads)
            else:
                posterior, nats = posterior_of(network, counts, threads=threads), None
            return *posterior, np.full(counts.shape[0], np.nan) if nats is None else nats

        found = describe(counts) if self._cache is None else self._cache.described(counts, describe, bounds)
        return Posterior(*found[:2]), found[2] if bounds else None

    def _learned_posterior(self, given: RegionDocuments) -> Posterior | None:
        """The posterior of a fit's documents, inferred once and cached; None if there are too many to keep."""
        if isinstance(given.counts, ShardedCounts) or given.counts.shape[0] > MAX_DOCUMENTS:
            return None
        if self._cache is None:
            return posterior_of(self.fitted_.network, given.counts, threads=self.threads)
        posterior, nats = described_documents(self.fitted_.network, given.counts, self.seed, self.threads)
        nats = np.full(given.counts.shape[0], np.nan) if nats is None else nats
        whole = given.texts is not None and given.token_rules is not None and given.excerpts is None
        texts = [given.texts[given.row(row)] for row in range(given.counts.shape[0])] if whole and given.texts else None
        self._cache.learn(texts, given.counts, (*posterior, nats))
        return posterior

    def _split(self, number: int, X: DocumentInput | None, n_parts: int) -> Regions:
        check_at_least("n_parts", n_parts, 2)
        given, network = None if X is None else self._given(X), self.fitted_.network
        with running_on(self.threads), one_blas_thread():
            return topic_model.split(self._regions(), number, network, given, self.seed, n_parts)

    def _passages(self, X: DocumentInput) -> Passages | None:
        check_is_fitted(self)
        return passages_of(listed_documents(X, self.text_column), self.fitted_.passages, self.fitted_.boilerplate)

    def _regions(self) -> Regions:
        check_is_fitted(self)
        return regions_of(self.fitted_)

    def _given(self, X: DocumentInput, vectors: VectorInput | None = None) -> RegionDocuments:
        """Documents that have words, and their rows in X."""
        counts = self.count(X, vectors)
        rows = None if isinstance(counts, ShardedCounts) else np.flatnonzero(counts.getnnz(1))
        rules = None if self.tokeniser else self.fitted_.token_rules
        boilerplate = self.fitted_.boilerplate
        given = RegionDocuments(without_empty(counts), rows, texts_of(X), rules, ids=ids_of(X), boilerplate=boilerplate)
        is_large = isinstance(counts, ShardedCounts) or counts.shape[0] > MAX_DOCUMENTS
        return given if self._cache is None or is_large else given._replace(posterior=self._posterior_of(given.counts))
