"""The served models, by name."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path

from varitext.answers.ranker import AnswerRanker
from varitext.documents.model import DocumentModel
from varitext.loading import load_any
from varitext.models.answers import model_name
from varitext.serve.corpus import CorpusIndex, CorpusMap
from varitext.serve.guards import Limits, Metrics, Refusal
from varitext.serve.queue import BatchQueue
from varitext.serve.schemas import ModelInfo


class ServedModel:
    """A model, the queue before it, and the documents that it was fitted on if they are here."""

    def __init__(
        self, name: str, model: DocumentModel | AnswerRanker, executor: Executor, limits: Limits, metrics: Metrics
    ):
        self.name = name
        self.model = model
        self.is_ranker = isinstance(model, AnswerRanker)
        self.queue = BatchQueue(name, model, executor, limits, metrics)
        self.index = CorpusIndex(None if self.is_ranker else model)
        self.map = CorpusMap(self.index, model.seed)
        metrics.queue(name, self.queue.__len__)

    def info(self) -> ModelInfo:
        return ModelInfo(
            id=self.name,
            kind="answers" if self.is_ranker else "documents",
            model=model_name(self.model.model) if isinstance(self.model, AnswerRanker) else self.model.fitted_.model,
            corpus=_last_part((self.model.fitted_.corpus or {}).get("name")),
            words=len(self.model.fitted_.vocabulary),
            latent_dim=_latent_dimensions(self.model),
            documents=self.index.state,
        )


def _latent_dimensions(model: DocumentModel | AnswerRanker) -> int:
    """0 for a ranker that has no latent."""
    return int(model.fitted_.architecture.get("latent_dim", 0)) if isinstance(model, AnswerRanker) else model.latent_dim


class ServedModels:
    """What clients name is looked up here and nowhere else: a name is never part of a path."""

    def __init__(self, models: dict[str, DocumentModel | AnswerRanker], limits: Limits, metrics: Metrics):
        # one thread: models draw from torch's one random generator, and two at once would spoil each other's draws
        thread = ThreadPoolExecutor(1, thread_name_prefix="varitext-models")
        self._models = {name: ServedModel(name, model, thread, limits, metrics) for name, model in models.items()}

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(self._models.values())

    def __len__(self) -> int:
        return len(self._models)

    def refuse_all(self) -> None:
        """Nobody waits any longer: the server stops."""
        for served in self:
            served.queue.refuse_all()

    def named(self, name: str) -> ServedModel:
        if name not in self._models:
            raise Refusal(404, "there is no model of that name; /api/models lists those there are")
        return self._models[name]

    def of_documents(self, name: str) -> ServedModel:
        if (found := self.named(name)).is_ranker:
            raise Refusal(404, "that model ranks answers: it has rank, and nothing for documents")
        return found

    def of_answers(self, name: str) -> ServedModel:
        if not (found := self.named(name)).is_ranker:
            raise Refusal(404, "that is a model of documents: it does not rank answers")
        return found


def load_models(folders: Sequence[Path], threads: int | None) -> dict[str, DocumentModel | AnswerRanker]:
    """The models by the names of their folders; a name that comes again gets a number."""
    models: dict[str, DocumentModel | AnswerRanker] = {}
    for folder in folders:
        model = load_any(folder, threads)
        if isinstance(model, DocumentModel):
            model.set_params(processes=1)  # a request is small, and must not start processes
        base = name = folder.resolve().name or "model"
        number = 1
        while name in models:
            number += 1
            name = f"{base}-{number}"
        models[name] = model
    return models


def _last_part(corpus: str | None) -> str | None:
    """Of a path only the name: where a user keeps files is nobody else's business."""
    return None if corpus is None else Path(corpus).name
