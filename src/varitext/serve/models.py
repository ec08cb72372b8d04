"""The served models, by name, and the index that rankers search."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from varitext.answers.index import CandidateIndex
from varitext.answers.ranker import AnswerRanker
from varitext.documents.model import DocumentModel
from varitext.documents.topic_model import regions_of
from varitext.loading import load_any
from varitext.models.answers import model_name
from varitext.serve.corpus import CorpusIndex, CorpusMap
from varitext.serve.guards import Limits, Metrics, Refusal
from varitext.serve.queue import RETRY_AFTER, BatchQueue, SingleJob, Worker
from varitext.serve.schemas import ModelInfo


class ServedModel:
    """A model, its queue, and its training documents if they are on this machine."""

    def __init__(
        self, name: str, model: DocumentModel | AnswerRanker, worker: Worker, limits: Limits, metrics: Metrics
    ):
        self.name = name
        self.model = model
        self.is_ranker = isinstance(model, AnswerRanker)
        self.queue = BatchQueue(name, model, worker, limits, metrics)
        self.index = CorpusIndex(None if isinstance(model, AnswerRanker) else model)
        self.map = CorpusMap(self.index, model.seed)
        metrics.queue(name, self.queue.__len__)

    def info(self, index: "ServedIndex | None") -> ModelInfo:
        fitted = self.model.fitted_
        if isinstance(self.model, AnswerRanker):
            ranker: AnswerRanker = self.model
            name, dimensions = model_name(ranker.model), int(fitted.architecture.get("latent_dim", 0))
        else:
            name, dimensions = self.model.fitted_.model, self.model.latent_dim
        corpus = (fitted.corpus or {}).get("name")
        return ModelInfo(
            id=self.name,
            kind="answers" if self.is_ranker else "documents",
            model=name,
            corpus=None if corpus is None else Path(corpus).name,  # without the folder in which the user keeps it
            words=len(fitted.vocabulary),
            latent_dim=dimensions,
            documents=self.index.state,
            indexed=len(index.current()) if index is not None and self.is_ranker else None,
        )

    async def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call the function with the model and the arguments, as a job that has the model to itself."""
        return await self.queue.ask(SingleJob(partial(function, self.model, *arguments)))


class ServedIndex:
    """An index whose folder may change while it is served."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._index, self._stamp = CandidateIndex.open(folder), self._changed()

    def current(self) -> CandidateIndex:
        """The index as it is in the folder now."""
        if (stamp := self._changed()) != self._stamp:
            self._index, self._stamp = CandidateIndex.open(self._folder), stamp
        return self._index

    def _changed(self) -> int:
        return (self._folder / "config.json").stat().st_mtime_ns


class ServedModels:
    """Models by the names that clients use; a name is never part of a path.

    A server starts without models, so that it can be asked whether it is ready; `load` adds them.
    """

    def __init__(
        self, limits: Limits, metrics: Metrics, index: ServedIndex | None = None, data_dir: Path | None = None
    ):
        self.index = index
        self.state: Literal["loading", "ready", "stopping"] = "loading"
        self._limits, self._metrics, self._data_dir = limits, metrics, data_dir
        self._worker = Worker()
        self._models: dict[str, ServedModel] = {}
        self._serving: asyncio.Task[None] | None = None

    async def load(self, load: Callable[[], Mapping[str, DocumentModel | AnswerRanker]]) -> None:
        """Load in the thread of the models, so that the server answers meanwhile, then serve them."""
        self.serve(await asyncio.get_running_loop().run_in_executor(self._worker.thread, load))

    def serve(self, models: Mapping[str, DocumentModel | AnswerRanker]) -> None:
        for name, model in models.items():
            served = ServedModel(name, model, self._worker, self._limits, self._metrics)
            self._models[name] = served
            served.index.start(self._data_dir)
        self._serving = asyncio.create_task(self._worker.serve())
        if self.state == "loading":
            self.state = "ready"

    def stop(self) -> None:
        if self._serving is not None:
            self._serving.cancel()
        for served in self:
            served.index.stop()

    def check_loaded(self) -> None:
        if self.state == "loading":
            raise Refusal(503, "the models are still being loaded", RETRY_AFTER)

    def check_ready(self) -> None:
        self.check_loaded()
        if self.state == "stopping":
            raise Refusal(503, "the server is stopping", RETRY_AFTER)

    def begin_stop(self) -> None:
        self.state = "stopping"

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(self._models.values())

    def __len__(self) -> int:
        return len(self._models)

    def refuse_all(self) -> None:
        """Answer every waiting request with a 503: the server is stopping."""
        for served in self:
            served.queue.refuse_all()

    def named(self, name: str) -> ServedModel:
        self.check_loaded()
        if name not in self._models:
            raise Refusal(404, "no model of that name: /api/models lists the models")
        return self._models[name]

    def of_documents(self, name: str) -> ServedModel:
        if (found := self.named(name)).is_ranker:
            raise Refusal(404, "this model ranks answers: it has /rank, and no routes for documents")
        return found

    def of_answers(self, name: str) -> ServedModel:
        if not (found := self.named(name)).is_ranker:
            raise Refusal(404, "this is a document model: it does not rank answers")
        return found


def load_models(
    folders: Sequence[Path], threads: int | None, trust: str | None = None
) -> dict[str, DocumentModel | AnswerRanker]:
    """The models by the names of their folders; a repeated name gets a number."""
    models: dict[str, DocumentModel | AnswerRanker] = {}
    for folder in folders:
        model = load_any(folder, threads, trust=trust)
        if isinstance(model, DocumentModel):
            regions_of(model.fitted_)  # a model without topics, because its fit was interrupted, is refused here
            model.set_params(processes=1)  # a request is small and must not start processes
        base = name = folder.resolve().name or "model"
        number = 1
        while name in models:
            number += 1
            name = f"{base}-{number}"
        models[name] = model
    return models
