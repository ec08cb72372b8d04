"""Routes of document models, and the jobs they put into the model's queue."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
import scipy.sparse
from fastapi import APIRouter, Query

from varitext.corpora.sharded_counts import in_memory
from varitext.documents.mixture import directions_of
from varitext.documents.model import DocumentModel, Posterior
from varitext.documents.topic_records import Records, TopicInfo
from varitext.errors import InputError
from varitext.evaluation.keywords import keyword_columns
from varitext.evaluation.latent_dimensions import LatentDimension, nearest, words_towards
from varitext.evaluation.perplexity import per_corpus_perplexity, per_document_perplexity
from varitext.serve import schemas
from varitext.serve.corpus import CorpusIndex, CorpusMap, beginning
from varitext.serve.guards import WORD_CHARACTERS, Refusal
from varitext.serve.models import ServedModels
from varitext.serve.queue import SingleJob

# Routes


def document_routes(models: ServedModels, problems: dict[int | str, dict[str, Any]]) -> APIRouter:
    routes = APIRouter(prefix="/api/models/{model}", tags=["documents"], responses=problems)

    @routes.get("/similar-words", response_model=schemas.SimilarWords)
    async def similar_words(
        model: str,
        word: Annotated[str, Query(min_length=1, max_length=WORD_CHARACTERS, examples=["space"])],
        n: Annotated[int, Query(ge=1, le=50)] = 10,
    ) -> Any:
        """The words nearest to a word, by the cosine of their vectors."""
        served = models.of_documents(model)
        return await served.queue.ask(SingleJob(partial(_similar_words, served.model, word, n)))

    @routes.post("/transform", response_model=schemas.Vectors)
    async def transform(model: str, asked: schemas.TransformRequest) -> Any:
        """One vector per text with its uncertainty: mean and standard deviation of q(h | X)."""
        return await models.of_documents(model).queue.ask(Transform(asked.texts))

    @routes.post("/perplexity", response_model=schemas.Perplexity)
    async def perplexity(model: str, asked: schemas.PerplexityRequest) -> Any:
        """How surprised the model is by each text, per word; lower is better."""
        served = models.of_documents(model)
        return await served.queue.ask(SingleJob(partial(text_perplexity, served.model, asked.texts, asked.samples)))

    @routes.post("/explain", response_model=schemas.Explanation)
    async def explain(model: str, asked: schemas.ExplainRequest) -> Any:
        """The topics of a text, and the words that moved it there.

        A word's step is the posterior mean with all words less the mean without that word.
        """
        return await models.of_documents(model).queue.ask(Explain(asked.text, asked.topics, asked.words))

    @routes.post("/similar-documents", response_model=schemas.SimilarDocuments)
    async def similar_documents(model: str, asked: schemas.SimilarDocumentsRequest) -> Any:
        """The documents nearest to a text, by the cosine of their vectors."""
        served = models.of_documents(model)
        return await served.queue.ask(FindSimilar(asked.text, asked.among, asked.n, served.index))

    @routes.get("/map", response_model=schemas.Map)
    async def document_map(model: str) -> Any:
        """A map of the documents that the model was fitted on, or of a sample; it is drawn when first asked for."""
        return models.of_documents(model).map.shown()

    @routes.post("/place", response_model=schemas.PlaceOnMap)
    async def place(model: str, asked: schemas.PlaceRequest) -> Any:
        """Where a text lies on that map: at one of its nearest documents there."""
        served = models.of_documents(model)
        return await served.queue.ask(Place(asked.text, served.map))

    return routes


def _similar_words(model: DocumentModel, word: str, n: int) -> dict[str, Any]:
    known = model.fitted_.vocabulary.spelling(word)
    similar = [{"word": other, "similarity": cosine} for other, cosine in model.similar_words(known, n)]
    return {"word": known, "similar": similar}


def topic_routes(models: ServedModels, problems: dict[int | str, dict[str, Any]]) -> APIRouter:
    routes = APIRouter(prefix="/api/models/{model}", tags=["topics"], responses=problems)

    @routes.get("/topics", response_model=schemas.Topics)
    async def topics(model: str, words: Annotated[int, Query(ge=1, le=50)] = 10) -> Any:
        """The topics, each with its name, size, words and typical documents."""
        served = models.of_documents(model)
        return await served.queue.ask(SingleJob(partial(topic_table, served.model, words)))

    @routes.post("/assign", response_model=schemas.DocumentsAssigned)
    async def assign(model: str, asked: schemas.AssignRequest) -> Any:
        """What each text is about: its topic, how probable that is, and how surprising the text is."""
        served = models.of_documents(model)
        return await served.queue.ask(SingleJob(partial(document_table, served.model, asked.texts)))

    @routes.get("/topic-shares", response_model=schemas.TopicShares)
    async def topic_shares(model: str, by: Literal["label", "date"] = "label") -> Any:
        """Topics by label or over time, with intervals, in the documents that the model was fitted on."""
        index = models.of_documents(model).index
        check_is_read(index, "there are no labels and dates to look at")
        return index.shares(by)

    @routes.get("/latent-dimensions", response_model=schemas.Dimensions)
    async def latent_dimensions(model: str, words: Annotated[int, Query(ge=1, le=50)] = 10) -> Any:
        """The latent dimensions as ranked words, with the words at both ends."""
        served = models.of_documents(model)
        return await served.queue.ask(SingleJob(partial(all_dimensions, served.model, words)))

    return routes


# Jobs, which run in the thread of the models

MAX_LEFT_OUT = 200  # distinct words of a text that are left out in turn
NO_KNOWN_WORD = "the text has no word that the model knows"
WORDS_OF_A_TOPIC = 6
STILL_READING = 2  # seconds until it is worth asking again


@dataclass(frozen=True)
class Transform:
    texts: Sequence[str]

    @property
    def characters(self) -> int:
        return sum(map(len, self.texts))

    def counts(self, model: DocumentModel) -> scipy.sparse.csr_matrix:
        return in_memory(model.count(self.texts))

    def result(self, model: DocumentModel, counts: scipy.sparse.csr_matrix, posterior: Posterior) -> dict[str, Any]:
        lengths = np.asarray(counts.sum(1)).ravel()
        rows = zip(posterior.mean.tolist(), posterior.std.tolist(), lengths.tolist(), strict=True)
        return {"vectors": [{"mean": mean, "std": std, "known_words": int(words)} for mean, std, words in rows]}


@dataclass(frozen=True)
class Explain:
    """Where a text lies, and which of its words moved it there: the mean with all words less that without one."""

    text: str
    topics: int
    words: int

    @property
    def characters(self) -> int:
        return len(self.text)

    def counts(self, model: DocumentModel) -> scipy.sparse.csr_matrix:
        """The text, and below it the same once more without each of its most telling words."""
        whole = in_memory(model.count([self.text]))
        if not whole.nnz:
            raise InputError(NO_KNOWN_WORD)
        return leave_one_out(whole, keywords_of(whole, model)[:MAX_LEFT_OUT])

    def result(self, model: DocumentModel, counts: scipy.sparse.csr_matrix, posterior: Posterior) -> dict[str, Any]:
        whole = counts[0]
        mean, steps = posterior.mean[0], posterior.mean[0] - posterior.mean[1:]  # [K], [W, K]
        topics, nearer = _topics_of_text(model, posterior, self.topics)
        moved = np.linalg.norm(steps, axis=1)
        along = steps @ mean / max(float(np.linalg.norm(mean)), 1e-12)
        columns = keywords_of(whole, model)[:MAX_LEFT_OUT]
        order = np.argsort(-moved, kind="stable")[: self.words]
        return {
            "known_words": int(whole.sum()),
            "distinct_words": int(whole.nnz),
            "tried_words": len(columns),
            "topics": topics,
            "dimensions": _dimensions_of_text(model, posterior, self.topics),
            "words": [
                {
                    "word": model.fitted_.vocabulary.words[columns[row]],
                    "count": int(whole[0, columns[row]]),
                    "moved": float(moved[row]),
                    "along": float(along[row]),
                    "by_topic": nearer[row].tolist(),
                }
                for row in order
            ],
        }


@dataclass(frozen=True)
class FindSimilar:
    """The nearest of the documents in the request, or else of those that the model was fitted on."""

    text: str
    among: Sequence[str] | None
    n: int
    index: CorpusIndex

    @property
    def characters(self) -> int:
        return len(self.text) + sum(map(len, self.among or ()))

    def counts(self, model: DocumentModel) -> scipy.sparse.csr_matrix:
        if self.among is None:
            check_is_read(self.index, "give some, as `among`")
        counts = in_memory(model.count([self.text, *(self.among or ())]))
        if not counts[0].nnz:
            raise InputError(NO_KNOWN_WORD)
        return counts

    def result(self, model: DocumentModel, counts: scipy.sparse.csr_matrix, posterior: Posterior) -> dict[str, Any]:
        if self.among is None:
            return self.index.similar(posterior.mean[0], self.n)
        found = nearest(posterior.mean[1:], posterior.mean[0], self.n)
        similar = [
            {"index": i, "similarity": cosine, "label": None, "text": beginning(self.among[i])} for i, cosine in found
        ]
        return {"among": len(self.among), "similar": similar}


def check_is_read(index: CorpusIndex, otherwise: str) -> None:
    """Refuse what needs the documents of the corpus where there are none, or not yet."""
    if index.state == "reading":
        raise Refusal(503, "the documents of the corpus are still being read: try again shortly", STILL_READING)
    if index.state == "none":
        raise InputError(f"the documents that the model was fitted on are not here: {otherwise}")


@dataclass(frozen=True)
class Place:
    """Where a text lies on the map."""

    text: str
    map: CorpusMap

    @property
    def characters(self) -> int:
        return len(self.text)

    def counts(self, model: DocumentModel) -> scipy.sparse.csr_matrix:
        self.map.check()  # or else nothing needs to be computed
        counts = in_memory(model.count([self.text]))
        if not counts.nnz:
            raise InputError(NO_KNOWN_WORD)
        return counts

    def result(self, model: DocumentModel, counts: scipy.sparse.csr_matrix, posterior: Posterior) -> dict[str, Any]:
        return self.map.place(posterior.mean[0])


def leave_one_out(whole: scipy.sparse.csr_matrix, columns: np.ndarray) -> scipy.sparse.csr_matrix:
    """One row of counts, and below it for each of the columns the same without it, [1 + W, V]."""
    rows = np.repeat(np.arange(1 + len(columns)), whole.nnz)
    words = np.tile(whole.indices, 1 + len(columns))
    kept = words != np.concatenate(([-1], columns))[rows]
    values = np.tile(whole.data, 1 + len(columns))[kept]
    return scipy.sparse.csr_matrix((values, (rows[kept], words[kept])), shape=(1 + len(columns), whole.shape[1]))


def keywords_of(whole: scipy.sparse.csr_matrix, model: DocumentModel) -> np.ndarray:
    """The columns of one document's words, those first that set it apart most."""
    return next(keyword_columns(whole, model.fitted_.network.word_log_frequencies.cpu().numpy()))


def text_perplexity(model: DocumentModel, texts: Sequence[str], samples: int) -> dict[str, Any]:
    """The perplexity of each text, of all, and of the unigram model; by the model's own kind of estimate."""
    counts = in_memory(model.count(texts))
    lengths = np.asarray(counts.sum(1)).ravel()
    known = counts[lengths > 0]
    if not known.shape[0]:
        raise InputError("no text has a word that the model knows")
    bounds = model.fitted_.network.evaluate(known, samples, model.seed)
    unigram = known @ model.fitted_.network.word_log_frequencies.double().cpu().numpy()
    nats = -np.stack([bounds.elbo, unigram], 1) / bounds.lengths[:, None]
    each = iter(np.exp(np.minimum(nats, 700.0)).tolist())  # JSON knows no infinity
    rows = [(*(next(each) if words else (None, None)), int(words)) for words in lengths]
    return {
        "texts": [dict(zip(("perplexity", "unigram_perplexity", "known_words"), row, strict=True)) for row in rows],
        "per_document_perplexity": per_document_perplexity(bounds.elbo, bounds.lengths),
        "corpus_perplexity": per_corpus_perplexity(bounds.elbo, bounds.lengths),
        "unigram_per_document_perplexity": per_document_perplexity(unigram, bounds.lengths),
        "kind": model.fitted_.network.estimate_kind.kind,
        "figure": model.fitted_.network.estimate_kind.description,
        "samples": samples if bounds.drawn is None else bounds.drawn,
    }


@functools.lru_cache(maxsize=64)
def topics_of(model: DocumentModel) -> Records[TopicInfo]:
    """None of a model of an earlier version. A served model never changes, and ranking its whole vocabulary takes
    longer than placing a text."""
    return Records() if model.fitted_.regions is None else model.topics(WORDS_OF_A_TOPIC)


@functools.lru_cache(maxsize=64)
def dimensions_by_number(model: DocumentModel) -> dict[int, LatentDimension]:
    return {dimension.number: dimension for dimension in model.latent_dimensions(WORDS_OF_A_TOPIC)}


def topic_table(model: DocumentModel, words: int) -> dict[str, Any]:
    topics = model.topics(words)
    assert model.fitted_.regions is not None  # or there would have been an InputError
    return {"topics": topics.as_dicts(), "choice": model.fitted_.regions.choice.as_dict()}


def document_table(model: DocumentModel, texts: Sequence[str]) -> dict[str, Any]:
    return {"documents": model.document_info(texts).as_dicts()}


def all_dimensions(model: DocumentModel, words: int) -> dict[str, Any]:
    found = model.latent_dimensions(words)
    total = max(sum(dimension.kl for dimension in found), 1e-12)
    return {"dimensions": [_without_kl(one._asdict()) | {"share": max(one.kl, 0.0) / total} for one in found]}


def _without_kl(dimension: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in dimension.items() if name != "kl"}


def _topics_of_text(model: DocumentModel, posterior: Posterior, n: int) -> tuple[list[dict[str, Any]], np.ndarray]:
    """The most probable topics of the first row; and how much nearer to each the word left out in each other row
    brings it, in cosine.  [W, topics]"""
    if model.fitted_.regions is None:
        return [], np.zeros((len(posterior.mean) - 1, 0))
    directions, centres = directions_of(posterior), model.fitted_.regions.group_centres()  # [1 + W, K], [topics, K]
    probabilities = model.fitted_.regions.memberships(directions)[0]
    shown = np.argsort(-probabilities, kind="stable")[:n]
    centres = centres[shown] / np.maximum(np.linalg.norm(centres[shown], axis=1, keepdims=True), 1e-12)
    cosines = directions.unit @ centres.T  # [1 + W, topics]
    topics = [
        {"number": one.number, "name": one.name, "probability": float(probabilities[place]), "words": one.words}
        for place, one in ((place, topics_of(model)[place]) for place in shown)
    ]
    return topics, cosines[0] - cosines[1:]


def _dimensions_of_text(model: DocumentModel, posterior: Posterior, n: int) -> list[dict[str, Any]]:
    """Those on which it lies farthest out, and more than a standard deviation from zero."""
    mean, std, by_number = posterior.mean[0], posterior.std[0], dimensions_by_number(model)
    strongest = np.argsort(-np.abs(mean), kind="stable")[:n]
    return [
        {
            "number": int(k),
            "mean": float(mean[k]),
            "std": float(std[k]),
            "words": words_towards(by_number[k], mean[k]),
        }
        for k in strongest
        if abs(mean[k]) > std[k]
    ]
