"""Routes for models of documents."""

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query

from varitext.documents.model import DocumentModel
from varitext.serve import bodies
from varitext.serve.batch_queue import SingleJob
from varitext.serve.document_jobs import Explain, FindSimilar, Place, Transform, text_perplexity
from varitext.serve.limits import WORD_CHARACTERS
from varitext.serve.served_models import ServedModels


def document_routes(models: ServedModels, problems: dict[int | str, dict[str, Any]]) -> APIRouter:
    routes = APIRouter(prefix="/api/models/{model}", tags=["documents"], responses=problems)

    @routes.get("/similar-words", response_model=bodies.SimilarWords)
    async def similar_words(
        model: str,
        word: Annotated[str, Query(min_length=1, max_length=WORD_CHARACTERS, examples=["space"])],
        n: Annotated[int, Query(ge=1, le=50)] = 10,
    ) -> Any:
        """The words nearest to a word, by the cosine of their vectors."""
        served = models.of_documents(model)
        return await served.queue.ask(SingleJob(partial(_similar_words, served.model, word, n)))

    @routes.post("/transform", response_model=bodies.Vectors)
    async def transform(model: str, asked: bodies.TransformRequest) -> Any:
        """One vector per text with its uncertainty: mean and standard deviation of q(h | X)."""
        return await models.of_documents(model).queue.ask(Transform(asked.texts))

    @routes.post("/perplexity", response_model=bodies.Perplexity)
    async def perplexity(model: str, asked: bodies.PerplexityRequest) -> Any:
        """How surprised the model is by each text, per word; lower is better."""
        served = models.of_documents(model)
        return await served.queue.ask(SingleJob(partial(text_perplexity, served.model, asked.texts, asked.samples)))

    @routes.post("/explain", response_model=bodies.Explanation)
    async def explain(model: str, asked: bodies.ExplainRequest) -> Any:
        """The topics of a text, and the words that moved it there.

        A word's step is the posterior mean with all words less the mean without that word.
        """
        return await models.of_documents(model).queue.ask(Explain(asked.text, asked.topics, asked.words))

    @routes.post("/similar-documents", response_model=bodies.SimilarDocuments)
    async def similar_documents(model: str, asked: bodies.SimilarDocumentsRequest) -> Any:
        """The documents nearest to a text, by the cosine of their vectors."""
        served = models.of_documents(model)
        return await served.queue.ask(FindSimilar(asked.text, asked.among, asked.n, served.index))

    @routes.get("/map", response_model=bodies.Map)
    async def document_map(model: str) -> Any:
        """A map of the documents that the model was fitted on, or of a sample; it is drawn when first asked for."""
        return models.of_documents(model).map.shown()

    @routes.post("/place", response_model=bodies.PlaceOnMap)
    async def place(model: str, asked: bodies.PlaceRequest) -> Any:
        """Where a text lies on that map: at one of its nearest documents there."""
        served = models.of_documents(model)
        return await served.queue.ask(Place(asked.text, served.map))

    return routes


def _similar_words(model: DocumentModel, word: str, n: int) -> dict[str, Any]:
    known = model.fitted_.vocabulary.spelling(word)
    similar = [{"word": other, "similarity": cosine} for other, cosine in model.similar_words(known, n)]
    return {"word": known, "similar": similar}
