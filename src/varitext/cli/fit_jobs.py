"""From what was typed to what a fit needs: the estimator with its settings, and what it learns from."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from varitext.answers.settings import AnswerSettings
from varitext.cli.answer_input import training_questions, vector_source
from varitext.cli.data_settings import DataSettings, QuestionSettings
from varitext.cli.inputs import load_documents
from varitext.cli.running_fit import FitJob, answers_learned, documents_learned
from varitext.documents.settings import DocumentSettings
from varitext.models.answers import ANSWER_MODELS
from varitext.records import record_from_options


@dataclass(frozen=True)
class FitRequest:
    """What was asked for. Nothing is loaded yet: on Ray it goes to the workers as it is."""

    corpus: str
    part: str
    data_dir: Path | None
    model: str
    model_is_default: bool  # for documents the vocabulary's size may yet change it: `documents/settings.py`
    typed: dict[str, Any]  # the options that were typed, by name
    resume: bool = False

    @property
    def device(self) -> str:
        return str(self.typed.get("device", DocumentSettings.device))


def document_job(request: FitRequest) -> FitJob:
    from varitext.documents.model import DocumentModel

    data = record_from_options(DataSettings, request.typed)
    settings = record_from_options(DocumentSettings, request.typed)
    settings = replace(
        settings,
        seed_topics=_seed_topics(request.typed.get("seed_topics")),
        model=None if request.model_is_default else request.model,
        token_rules=data.token_rules(),
        vocabulary_rules=data.vocabulary_rules(),
    )
    documents = load_documents(request.corpus, request.part, request.data_dir, None, data.columns())
    model = DocumentModel(**vars(settings))
    return FitJob(
        model,
        lambda run: model.fit(
            documents, progress=run.progress, checkpoint=run.checkpoint, resume=run.resume, world=run.world
        ),
        lambda: documents_learned(model),
        typed_corpus={} if request.corpus == "-" else {"name": request.corpus},
    )


def _seed_topics(file: str | None) -> dict[str, tuple[str, ...]] | None:
    from varitext.documents.topics import read_seed_topics

    return None if file is None else {topic.name: topic.words for topic in read_seed_topics(Path(file))}


def answer_job(request: FitRequest) -> FitJob:
    from varitext.answers.ranker import AnswerRanker

    columns = record_from_options(QuestionSettings, request.typed).columns()
    train, dev = training_questions(request.corpus, request.part, request.data_dir, columns)
    settings = record_from_options(AnswerSettings, request.typed)
    vectors = vector_source(request.typed.get("vectors"), request.data_dir)
    settings = replace(settings, model=request.model, vectors=vectors)
    ranker = AnswerRanker(**vars(settings))
    return FitJob(
        ranker,
        lambda run: ranker.fit(train, dev, run.progress, run.checkpoint, run.resume),
        lambda: answers_learned(ranker),
        typed_corpus={"name": request.corpus} | columns.as_dict(),
        unit="pair",
        has_latent=ANSWER_MODELS[request.model].has_latent,
    )
