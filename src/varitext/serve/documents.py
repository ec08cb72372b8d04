"""Routes of document models, and what they compute in the thread of the models."""

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Annotated, Any, Literal

import numpy as np
import scipy.sparse
from fastapi import APIRouter, Query

from varitext.corpora.sharded_counts import in_memory
from varitext.documents.mixture import directions_of
from varitext.documents.model import DocumentModel, Posterior
from varitext.documents.topic_model import document_info, regions_of
from varitext.documents.topic_records import Records, TopicInfo
from varitext.errors import InputError
from varitext.evaluation.keywords import keyword_columns
from varitext.evaluation.latent_dimensions import LatentDimension, words_towards
from varitext.evaluation.neighbours import nearest
from varitext.evaluation.perplexity import per_corpus_perplexity, per_document_perplexity
from varitext.serve import schemas
from varitext.serve.corpus import CorpusIndex, beginning
from varitext.serve.guards import WORD_CHARACTERS
from varitext.serve.models import ServedModels
from varitext.serve.queue import BatchJob

MAX_LEFT_OUT = 200  # distinct words of a text that are left out in turn
WORDS_OF_A_TOPIC = 6
Words = Annotated[int, Query(ge=1, le=50)]


def topic_routes(models: ServedModels, problems: dict[int | str, dict[str, Any]]) -> APIRouter:
    routes = APIRouter(prefix="/api/models/{model}", tags=["topics"], responses=problems)

    @routes.get("/topics", response_model=schemas.Topics)
    async def topics(model: str, words: Words = 10) -> Any:
        """The topics, each with its name, size, words and typical documents."""
        return await models.of_documents(model).run(topic_table, words)

    @routes.post("/assign", response_model=schemas.DocumentsAssigned)
    async def assign(model: str, asked: schemas.AssignRequest) -> Any:
        """The topic of each text with its probability, and how surprising the text is."""
        return await models.of_documents(model).queue.ask(BatchJob(asked.texts, _assigned))

    @routes.get("/topic-shares", response_model=schemas.TopicShares)
    async def topic_shares(model: str, by: Literal["label", "date"] = "label") -> Any:
        """Topics by label or over time, with intervals, in the training documents."""
        index = models.of_documents(model).index
        index.check_ready("no labels or dates to show")
        return index.shares(by)

    @routes.get("/latent-dimensions", response_model=schemas.Dimensions)
    async def latent_dimensions(model: str, words: Words = 10) -> Any:
        """The latent dimensions as ranked words, with the words at both ends."""
        return await models.of_documents(model).run(all_dimensions, words)

    return routes


def document_routes(models: ServedModels, problems: dict[int | str, dict[str, Any]]) -> APIRouter:
    routes = APIRouter(prefix="/api/models/{model}", tags=["documents"], responses=problems)

    @routes.get("/similar-words", response_model=schemas.SimilarWords)
    async def similar_words(
        model: str,
        word: Annotated[str, Query(min_length=1, max_length=WORD_CHARACTERS, examples=["space"])],
        n: Words = 10,
    ) -> Any:
        """The words nearest to a word, by the cosine of their vectors."""
        return await models.of_documents(model).run(nearest_words, word, n)

    @routes.post("/transform", response_model=schemas.Vectors)
    async def transform(model: str, asked: schemas.TransformRequest) -> Any:
        """One vector per text with its uncertainty: mean and standard deviation of q(h | X)."""
        return await models.of_documents(model).queue.ask(transform_job(asked.texts))

    @routes.post("/perplexity", response_model=schemas.Perplexity)
    async def perplexity(model: str, asked: schemas.PerplexityRequest) -> Any:
        """The perplexity of each text, per word. Lower is better."""
        return await models.of_documents(model).run(text_perplexity, asked.texts, asked.samples)

    @routes.post("/explain", response_model=schemas.Explanation)
    async def explain(model: str, asked: schemas.ExplainRequest) -> Any:
        """The topics of a text, and the effect of its words.

        The effect of a word is the posterior mean with all words minus the mean without that word.
        """
        return await models.of_documents(model).queue.ask(explain_job(asked.text, asked.topics, asked.words))

    @routes.post("/similar-documents", response_model=schemas.SimilarDocuments)
    async def similar_documents(model: str, asked: schemas.SimilarDocumentsRequest) -> Any:
        """The documents nearest to a text, by the cosine of their vectors."""
        served = models.of_documents(model)
        if asked.among is None:
            served.index.check_ready("send documents to search in `among`")
        found = partial(_similar_documents, among=asked.among, n=asked.n, index=served.index)
        return await served.queue.ask(BatchJob([asked.text, *(asked.among or ())], found, _with_known_word))

    @routes.get("/map", response_model=schemas.Map)
    async def document_map(model: str, known: int = 0) -> Any:
        """A map of the training documents, drawn when first requested; `known` is the version that the client has."""
        return models.of_documents(model).map.shown(known)

    @routes.post("/place", response_model=schemas.PlaceOnMap)
    async def place(model: str, asked: schemas.PlaceRequest) -> Any:
        """The position of a text on the map: that of one of its nearest documents."""
        served = models.of_documents(model)
        served.map.check_ready()
        found = lambda _model, _counts, posterior: served.map.place(posterior.mean[0])  # noqa: E731
        return await served.queue.ask(BatchJob([asked.text], found, _with_known_word))

    return routes


# Texts that share a call of the model


def transform_job(texts: Sequence[str]) -> BatchJob:
    return BatchJob(texts, _vectors)


def explain_job(text: str, topics: int, words: int) -> BatchJob:
    """The topics of a text and the effect of its words: the mean with all words minus the mean without each."""
    return BatchJob([text], partial(_explanation, n_topics=topics, n_words=words), _leave_words_out)


def _with_known_word(_: DocumentModel, counts: scipy.sparse.csr_matrix) -> scipy.sparse.csr_matrix:
    if not counts[0].nnz:
        raise InputError("the text has no word that the model knows")
    return counts


def _leave_words_out(model: DocumentModel, counts: scipy.sparse.csr_matrix) -> scipy.sparse.csr_matrix:
    """The text, and below it the same text without each of its keywords.  [1 + W, V]"""
    whole = _with_known_word(model, counts)
    columns = _keyword_columns(model, whole)
    rows = np.repeat(np.arange(1 + len(columns)), whole.nnz)
    words = np.tile(whole.indices, 1 + len(columns))
    kept = words != np.concatenate(([-1], columns))[rows]
    values = np.tile(whole.data, 1 + len(columns))[kept]
    return scipy.sparse.csr_matrix((values, (rows[kept], words[kept])), shape=(1 + len(columns), whole.shape[1]))


def _keyword_columns(model: DocumentModel, whole: scipy.sparse.csr_matrix) -> np.ndarray:
    """The columns of the words of one document, the most distinctive first."""
    frequencies = model.fitted_.network.word_log_frequencies.cpu().numpy()
    return next(keyword_columns(whole, frequencies))[:MAX_LEFT_OUT]


def _vectors(_: DocumentModel, counts: scipy.sparse.csr_matrix, posterior: Posterior) -> dict[str, Any]:
    lengths = np.asarray(counts.sum(1)).ravel()
    rows = zip(posterior.mean.tolist(), posterior.std.tolist(), lengths.tolist(), strict=True)
    return {"vectors": [{"mean": mean, "std": std, "known_words": int(words)} for mean, std, words in rows]}


def _assigned(model: DocumentModel, counts: scipy.sparse.csr_matrix, posterior: Posterior) -> dict[str, Any]:
    return {"documents": document_info(model.fitted_, counts, posterior, None, model.seed).as_dicts()}


def _similar_documents(
    _: DocumentModel,
    __: scipy.sparse.csr_matrix,
    posterior: Posterior,
    among: Sequence[str] | None,
    n: int,
    index: CorpusIndex,
) -> dict[str, Any]:
    """The nearest of the documents in the request, or of the training documents."""
    if among is None:
        return index.similar(posterior.mean[0], n)
    found = nearest(posterior.mean[1:], posterior.mean[0], n)
    similar = [{"index": i, "similarity": cosine, "label": None, "text": beginning(among[i])} for i, cosine in found]
    return {"among": len(among), "similar": similar}


def _explanation(
    model: DocumentModel, counts: scipy.sparse.csr_matrix, posterior: Posterior, n_topics: int, n_words: int
) -> dict[str, Any]:
    whole, columns = counts[0], _keyword_columns(model, counts[0])
    mean, steps = posterior.mean[0], posterior.mean[0] - posterior.mean[1:]  # [K], [W, K]
    topics, nearer = _topics_of_text(model, posterior, n_topics)
    moved = np.linalg.norm(steps, axis=1)
    along = steps @ mean / max(float(np.linalg.norm(mean)), 1e-12)
    words = [
        {
            "word": model.fitted_.vocabulary.words[columns[row]],
            "count": int(whole[0, columns[row]]),
            "moved": float(moved[row]),
            "along": float(along[row]),
            "by_topic": nearer[row].tolist(),
        }
        for row in np.argsort(-moved, kind="stable")[:n_words]
    ]
    return {
        "known_words": int(whole.sum()),
        "distinct_words": int(whole.nnz),
        "tried_words": len(columns),
        "topics": topics,
        "dimensions": _dimensions_of_text(model, posterior, n_topics),
        "words": words,
    }


def _topics_of_text(model: DocumentModel, posterior: Posterior, n: int) -> tuple[list[dict[str, Any]], np.ndarray]:
    """The most probable topics of the first row, and how much closer (cosine) each word brings it to them.

    The word is the one that is left out in each other row.  [W, topics]
    """
    regions, directions = regions_of(model.fitted_), directions_of(posterior)  # directions: [1 + W, K]
    probabilities = regions.memberships(directions)[0]
    shown = np.argsort(-probabilities, kind="stable")[:n]
    centres = regions.group_centres()[shown]  # [topics, K]
    centres = centres / np.maximum(np.linalg.norm(centres, axis=1, keepdims=True), 1e-12)
    cosines = directions.unit @ centres.T  # [1 + W, topics]
    topics = [
        {"number": one.number, "name": one.name, "probability": float(probabilities[place]), "words": one.words}
        for place, one in ((place, topics_of(model)[place]) for place in shown)
    ]
    return topics, cosines[0] - cosines[1:]


def _dimensions_of_text(model: DocumentModel, posterior: Posterior, n: int) -> list[dict[str, Any]]:
    """The dimensions farthest from zero, if they are more than a standard deviation from it."""
    mean, std, by_number = posterior.mean[0], posterior.std[0], _dimensions_by_number(model)
    strongest = [k for k in np.argsort(-np.abs(mean), kind="stable")[:n].tolist() if abs(mean[k]) > std[k]]
    return [
        {"number": k, "mean": float(mean[k]), "std": float(std[k]), "words": words_towards(by_number[k], mean[k])}
        for k in strongest
    ]


# Requests that have the model to themselves


def topic_table(model: DocumentModel, words: int) -> dict[str, Any]:
    return {"topics": model.topics(words).as_dicts(), "choice": regions_of(model.fitted_).choice.as_dict()}


def all_dimensions(model: DocumentModel, words: int) -> dict[str, Any]:
    found = model.latent_dimensions(words)
    total = max(sum(dimension.kl for dimension in found), 1e-12)
    return {"dimensions": [one._asdict() | {"share": max(one.kl, 0.0) / total} for one in found]}


def nearest_words(model: DocumentModel, word: str, n: int) -> dict[str, Any]:
    known = model.fitted_.vocabulary.spelling(word)
    similar = [{"word": other, "similarity": cosine} for other, cosine in model.similar_words(known, n)]
    return {"word": known, "similar": similar}


def text_perplexity(model: DocumentModel, texts: Sequence[str], samples: int) -> dict[str, Any]:
    """The perplexity of each text, of all texts, and of the unigram model, by the model's kind of estimate."""
    counts, network = in_memory(model.count(texts)), model.fitted_.network
    lengths = np.asarray(counts.sum(1)).ravel()
    known = counts[lengths > 0]
    if not known.shape[0]:
        raise InputError("no text has a word that the model knows")
    bounds = network.evaluate(known, samples, model.seed)
    unigram = known @ network.word_log_frequencies.double().cpu().numpy()
    nats = -np.stack([bounds.elbo, unigram], 1) / bounds.lengths[:, None]
    each = iter(np.exp(np.minimum(nats, 700.0)).tolist())  # JSON has no infinity
    rows = [(*(next(each) if words else (None, None)), int(words)) for words in lengths]
    return {
        "texts": [dict(zip(("perplexity", "unigram_perplexity", "known_words"), row, strict=True)) for row in rows],
        "per_document_perplexity": per_document_perplexity(bounds.elbo, bounds.lengths),
        "corpus_perplexity": per_corpus_perplexity(bounds.elbo, bounds.lengths),
        "unigram_per_document_perplexity": per_document_perplexity(unigram, bounds.lengths),
        "kind": network.estimate_kind.kind,
        "description": network.estimate_kind.description,
        "samples": samples if bounds.drawn is None else bounds.drawn,
    }


# A served model never changes, and ranking its whole vocabulary takes longer than placing a text.


@lru_cache(maxsize=64)
def topics_of(model: DocumentModel) -> Records[TopicInfo]:
    return model.topics(WORDS_OF_A_TOPIC)


@lru_cache(maxsize=64)
def _dimensions_by_number(model: DocumentModel) -> dict[int, LatentDimension]:
    return {dimension.number: dimension for dimension in model.latent_dimensions(WORDS_OF_A_TOPIC)}
