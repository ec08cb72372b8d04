"""`varitext fit`: check what was typed, load the corpus, and fit a model of documents or a ranker of answers."""

from collections.abc import Collection
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from varitext.answers.settings import DEFAULT_MODEL as DEFAULT_RANKER
from varitext.answers.settings import AnswerSettings
from varitext.cli import options
from varitext.cli.fit_run import (
    answers_learned,
    check_place_for_model,
    documents_learned,
    fit_and_save,
    is_finished_model,
    lock_folder,
    update_learned,
)
from varitext.cli.fit_seeds import fit_seeds
from varitext.cli.options import option, refuse_options
from varitext.cli.printing import CountedLines, log
from varitext.documents.settings import DEFAULT_MODEL, VECTOR_MODEL, DocumentSettings, default_document_model
from varitext.errors import InputError
from varitext.loading import load_document_model
from varitext.models.answers import ANSWER_MODELS, model_class
from varitext.models.documents import DOCUMENT_MODELS, check_preset
from varitext.models.registry import check_name
from varitext.records import DATA, WHERE_IT_RUNS, options_of, record_from_options

RAY_OPTIONS = ("ray_workers", "ray_address")
ONLY_ANSWERS = options.ANSWER_OPTIONS.keys() - options.DOCUMENT_OPTIONS.keys()
ONLY_DOCUMENTS = (options.DOCUMENT_OPTIONS.keys() - options.ANSWER_OPTIONS.keys()) | set(RAY_OPTIONS)
LATENT_OPTIONS = ("latent_dim", "kl_warm_up", "free_bits")
WORD_VECTOR_OPTIONS = ("vectors", "embedding_dim", "tune_vectors", "unseen_words")
STEP_OPTIONS = ("epochs", "batch_size", "learning_rate")
COLUMN_OPTIONS = ("text_column", "id_column", "label_column", "date_column", "encoding", "vectors")
WORD_OPTIONS = tuple(field.name for field in fields(options.DataSettings) if field.name not in COLUMN_OPTIONS)
OBJECTIVE_OPTIONS = ("samples", "estimator", "kl_schedule", "kl_warm_up", "free_bits")
TEXT_OPTIONS = ("keep_boilerplate", "keep_duplicates", "passages")
FIRST_FIT_OPTIONS = ("latent_dim", "preset", "updates", *OBJECTIVE_OPTIONS, *WORD_OPTIONS, *TEXT_OPTIONS)
UPDATE_OPTIONS = ("batch_size", "threads", "seed", "processes")  # settings that --continue may change
COLUMNS_OF_ANSWERS = options_of(options.QuestionSettings).keys() - options.DOCUMENT_OPTIONS.keys()
DEV = "dev"

OutFolder = Annotated[Path | None, option("New folder for the model, for example models/my.", "DIR")]
ModelName = Annotated[
    str | None,
    option(
        f"Documents: {', '.join(DOCUMENT_MODELS)}. Answers: {', '.join(ANSWER_MODELS)} "
        f"(default: {DEFAULT_MODEL} for documents, {DEFAULT_RANKER} for questions).",
        "NAME",
        "--model",
    ),
]
Continued = Annotated[
    Path | None,
    option("Documents: continue training the model in DIR. With --out, DIR is left unchanged.", "DIR", "--continue"),
]
NewWords = Annotated[
    bool, option("With --continue: add words that are not in the model's vocabulary yet.", None, "--new-words")
]
Seeds = Annotated[
    int | None,
    option("Fit N seeds, from --seed on: mean and interval of their held-out scores, and the best model.", "N", min=2),
]
Resume = Annotated[bool, option("Resume an interrupted fit from the checkpoint in --out.", None, "--resume")]
TrainingPart = Annotated[str, option("Part to train on; qasent also has train-all.", "NAME", group=DATA)]
RayWorkers = Annotated[
    int | None, option("Documents: train in N processes started by Ray Train.", "N", group=WHERE_IT_RUNS, min=1)
]


@dataclass(frozen=True)
class FitRequest:
    """What was typed. Nothing is loaded yet: Ray sends it to its workers as it is."""

    corpus: str
    out: Path
    model: str | None  # None: the default for documents, which depends on the vocabulary
    part: str
    data_dir: Path | None
    typed: dict[str, Any]  # the options that were typed, by name
    resume: bool = False

    @property
    def device(self) -> str:
        return str(self.typed.get("device", DocumentSettings.device))

    def refuse(self, names: Collection[str], reason: str) -> None:
        refuse_options({name: value for name, value in self.typed.items() if name in names}, reason)


@options.with_settings
def fit(
    context: typer.Context,
    corpus: options.Corpus,
    out: OutFolder = None,
    model: ModelName = None,
    continued: Continued = None,
    new_words: NewWords = False,
    seeds: Seeds = None,
    resume: Resume = False,
    trust: options.Trust = None,
    part: TrainingPart = "train",
    data_dir: options.DataDir = None,
    ray_workers: RayWorkers = None,
    ray_address: options.RayAddress = None,
    **settings: Any,
) -> None:
    """Fit a model to a corpus and write the model folder.

    Without --model, questions are fitted by compare and documents by nvdm_dcm, or by nvdm with a preset of the paper,
    more than 30,000 words or more than 100 latent dimensions, or by nvdm_vectors with --vectors.

    Documents: a folder of .txt files; a .jsonl, .csv or .parquet file with a text column; or counts as .npz or .feat.
    All but .npz may be gzipped. A folder with train and test (sub-folders, or files such as train.jsonl) is read as a
    divided corpus.

    Questions: a .jsonl or .csv file with a question, an answer and a label (1 right, 0 wrong) per row, or a folder with
    train, dev and test files of that kind. Labels may be grades (--min-relevance) or counts of clicks (--count-column).
    Without labels every answer is right, and wrong ones are drawn from the other questions.

    Early stopping uses the dev part; without one, some of the training part is held out. Ctrl-C keeps the best model so
    far. The same command with --resume continues, and gives results identical to those of an uninterrupted run.

    \b
    Examples:
      varitext fit 20newsgroups --out models/news
      varitext fit articles.csv --text-column body --latent-dim 20 --out models/mine
      varitext fit titles.csv --vectors minilm --out models/titles
      varitext fit 20newsgroups-nvdm --seeds 5 --out models/seeds
      varitext fit wikiqa --ensemble 5 --out models/answers
      varitext fit wikiqa --model nasm --counts --position --out models/nasm
      varitext fit qasent --part train-all --longest-answer 40 --model nasm --counts --out models/trec
      varitext fit wikiqa --model overlap --features bm25 --out models/bm25
      varitext fit clicks.csv --question-column query --answer-column document --count-column clicks --out models/shop
      varitext fit pairs.jsonl --model lstm_attention --vectors glove.6B.50d.txt --out models/pairs
      varitext fit --continue models/mine march.csv --text-column body --new-words --out models/march
    """
    typed = options.typed_options(context)
    if continued is not None:
        request = FitRequest(corpus, out or continued, model, part, data_dir, typed, resume)
        return _continue_fit(request, continued)
    refuse_options({"new_words": new_words}, "it belongs to --continue")
    if out is None:
        raise InputError("Missing --out: name a folder for the model, for example --out models/my")
    if model is None and _holds_questions(corpus, typed):
        model = DEFAULT_RANKER
    _fit_new_model(FitRequest(corpus, out, model, part, data_dir, typed, resume))


def _fit_new_model(request: FitRequest) -> None:
    """Check everything that can be checked before the corpus is loaded; then load and fit."""
    from varitext.runtime.processes import rank_at_launch, restarts

    if restarts():  # torchrun starts all processes again when one died: continue from the checkpoint, if there is one
        if is_finished_model(request.out):
            return
        request = replace(request, resume=True)
    with lock_folder(request.out) if rank_at_launch() == 0 else nullcontext():
        if rank_at_launch() == 0 and "seeds" not in request.typed:
            check_place_for_model(request.out, request.resume, request.typed.get("trust"))
        _check_and_fit(request)


def _check_and_fit(request: FitRequest) -> None:
    from varitext.runtime.devices import check_device
    from varitext.runtime.processes import use_own_gpu

    of_answers = request.model is not None and _is_answer_model(request.model)
    (_check_answer_options if of_answers else _check_document_options)(request)
    if "seeds" in request.typed:
        request.refuse(RAY_OPTIONS, "--seeds fits one model after another, in one process")
        _refuse_many_processes("--seeds")
    use_own_gpu(request.device)
    check_device(request.device)
    if request.typed.keys() & RAY_OPTIONS:
        _fit_on_ray(request)
    else:
        (_fit_answers if of_answers else _fit_documents)(request)


# Loading and fitting


def _fit_documents(request: FitRequest) -> None:
    from varitext.corpora import load_as
    from varitext.documents.model import DocumentModel
    from varitext.documents.topics import read_seed_topics

    data = record_from_options(options.DataSettings, request.typed)
    seeds = request.typed.get("seed_topics")
    settings = replace(
        record_from_options(DocumentSettings, request.typed),
        seed_topics=seeds and {topic.name: topic.words for topic in read_seed_topics(Path(seeds))},
        model=request.model,
        token_rules=data.token_rules(),
        vocabulary_rules=data.vocabulary_rules(),
    )
    documents = load_as(request.corpus, request.part, request.data_dir, data.columns(), CountedLines())
    corpus = {} if request.corpus == "-" else {"name": request.corpus}

    def fit(model: DocumentModel, out: Path) -> None:
        model.use_cache()
        fit_and_save(
            model,
            lambda progress, checkpoint, world: model.fit(
                documents,
                vectors=data.vectors,
                progress=progress,
                checkpoint=checkpoint,
                resume=request.resume,
                world=world,
            ),
            documents_learned,
            out,
            corpus,
        )
        model.save_cache(out)

    if seeds := _seeds(request, settings.seed):  # all with the same held-out documents
        each = (replace(settings, seed=seed, dev_seed=settings.seed) for seed in seeds)
        models = (DocumentModel(**vars(one)) for one in each)
        return fit_seeds(request.out, request.resume, request.typed.get("trust"), models, fit)
    fit(DocumentModel(**vars(settings)), request.out)


def _fit_answers(request: FitRequest) -> None:
    from varitext.answers.ranker import AnswerRanker
    from varitext.corpora import load_questions, question_parts
    from varitext.corpora.word_vectors import known_word_vectors

    corpus, part, data_dir = request.corpus, request.part, request.data_dir
    columns = record_from_options(options.QuestionSettings, request.typed).columns()
    train = load_questions(corpus, part, data_dir, columns)
    has_dev = DEV in question_parts(corpus) and part != DEV
    dev = load_questions(corpus, DEV, data_dir, columns) if has_dev else None
    vectors = request.typed.get("vectors")
    if vectors is None and data_dir is not None:
        vectors = known_word_vectors(data_dir)
    settings = replace(record_from_options(AnswerSettings, request.typed), model=str(request.model), vectors=vectors)

    def fit(ranker: AnswerRanker, out: Path) -> None:
        fit_and_save(
            ranker,
            lambda progress, checkpoint, world: ranker.fit(train, dev, progress, checkpoint, request.resume),
            answers_learned,
            out,
            {"name": corpus} | columns.as_dict(),
        )

    if seeds := _seeds(request, settings.seed):
        recipe = replace(settings.recipe, dev_seed=settings.seed)
        rankers = (AnswerRanker(**vars(replace(settings, seed=seed, recipe=recipe))) for seed in seeds)
        return fit_seeds(request.out, request.resume, request.typed.get("trust"), rankers, fit)
    fit(AnswerRanker(**vars(settings)), request.out)


def _seeds(request: FitRequest, first: int) -> range:
    """The seeds of --seeds; none without it."""
    return range(first, first + request.typed.get("seeds", 0))


def _continue_fit(request: FitRequest, folder: Path) -> None:
    """Continue from the model in `folder`, which the new one replaces if both have the same folder."""
    from varitext.corpora import load_as
    from varitext.documents.updating import check_can_update
    from varitext.runtime.devices import check_device
    from varitext.store import checkpoints

    typed, in_place = request.typed, request.out == folder
    request.refuse({"model", *ONLY_ANSWERS}, "--continue goes on from a model of documents as it was fitted")
    request.refuse(FIRST_FIT_OPTIONS, "--continue keeps the setting of the first fit")
    _refuse_many_processes("--continue")
    request.refuse((*RAY_OPTIONS, "seeds"), "--continue trains one model in one process")
    check_device(request.device)
    is_missing = in_place and not folder.is_dir()  # loading the model reports it best
    with nullcontext() if is_missing else lock_folder(request.out):
        if not in_place:
            check_place_for_model(request.out, request.resume, request.typed.get("trust"))
        elif checkpoints(folder) and not request.resume:
            raise InputError(f"{folder} holds an unfinished run: add --resume to continue it, or remove its checkpoint")
        model = load_document_model(folder, device=request.device, trust=request.typed.get("trust"))
        check_can_update(model.fitted_.model, model.fitted_.network)
        changed = {name: typed[name] for name in UPDATE_OPTIONS if name in typed}
        model.set_params(**changed, time_limit=typed.get("time_limit"))  # the limit of the first fit is not kept
        columns = record_from_options(options.DataSettings, typed).columns()
        documents = load_as(request.corpus, request.part, request.data_dir, columns)
        fit_and_save(
            model,
            lambda progress, checkpoint, world: model.partial_fit(
                documents,
                vectors=typed.get("vectors"),
                new_words=typed.get("new_words", False),
                epochs=typed.get("epochs"),
                learning_rate=typed.get("learning_rate"),
                progress=progress,
                checkpoint=checkpoint,
                resume=request.resume,
            ),
            update_learned,
            request.out,
            corpus={},
            keeps_unfinished=not in_place,
        )


def _fit_on_ray(request: FitRequest) -> None:
    """Train in processes that Ray Train starts; each loads the corpus itself."""
    from varitext.corpora import CORPORA, parts
    from varitext.documents.model import DocumentModel
    from varitext.ray.cluster import LOCAL, run_in_workers

    typed, corpus = request.typed, request.corpus
    if "ray_workers" not in typed:
        raise InputError("--ray-address needs --ray-workers N, the number of training processes")
    parts(corpus)  # refuses a corpus that is not here, before Ray is started
    absolute = replace(  # workers have another working directory
        request,
        corpus=corpus if corpus in CORPORA else str(Path(corpus).absolute()),
        out=request.out.absolute(),
        data_dir=request.data_dir and request.data_dir.absolute(),
        resume=True,  # started again after a worker died, the run continues from its checkpoint
    )
    absolute.out.parent.mkdir(parents=True, exist_ok=True)
    address = typed.get("ray_address") or LOCAL
    run_in_workers(
        _fit_in_worker, {"request": absolute}, typed["ray_workers"], absolute.out.parent, request.device, address
    )
    log(f"{documents_learned(DocumentModel.load(request.out))}; model in {request.out}")


def _fit_in_worker(passed: dict[str, Any]) -> None:
    request: FitRequest = passed["request"]
    if not is_finished_model(request.out):
        _fit_documents(request)


# Checks, before anything is loaded


def _holds_questions(corpus: str, typed: dict[str, Any]) -> bool:
    """What cannot be read is taken for documents: loading it reports what is wrong."""
    from varitext.corpora import holds_questions

    if typed.keys() & COLUMNS_OF_ANSWERS:
        return True
    try:
        return "text_column" not in typed and holds_questions(
            corpus, record_from_options(options.QuestionSettings, typed).columns()
        )
    except InputError:
        return False


def _is_answer_model(name: str) -> bool:
    if name not in DOCUMENT_MODELS and name not in ANSWER_MODELS:
        raise InputError(
            f"no model is called {name!r}; there are: {', '.join(DOCUMENT_MODELS)} for documents, "
            f"{', '.join(ANSWER_MODELS)} for answers"
        )
    return name in ANSWER_MODELS


def _check_document_options(request: FitRequest) -> None:
    settings, has_vectors = record_from_options(DocumentSettings, request.typed), "vectors" in request.typed
    model = request.model or default_document_model(settings, vectors=has_vectors)
    if DOCUMENT_MODELS[model].reads_vectors and not has_vectors:
        raise InputError(f"{model} reads sentence vectors: add --vectors FILE.npy, or --vectors minilm to encode texts")
    if request.typed.keys() & RAY_OPTIONS:
        request.refuse(["vectors"], "Ray's workers do not read sentence vectors; torchrun's do")
    if not DOCUMENT_MODELS[model].reads_vectors:
        request.refuse(["vectors"], f"{model} does not read sentence vectors; {VECTOR_MODEL} does")
    request.refuse(ONLY_ANSWERS, f"{model} is a model of documents")
    check_preset(model, request.typed.get("preset", DocumentSettings.preset))
    if "estimator" in request.typed:
        if not DOCUMENT_MODELS[model].estimators:
            others = ", ".join(name for name, other in DOCUMENT_MODELS.items() if other.estimators)
            request.refuse(["estimator"], f"{model} has no choice of estimator. Models that do: {others}.")
        check_name(request.typed["estimator"], DOCUMENT_MODELS[model].estimators, f"estimator of {model}")


def _check_answer_options(request: FitRequest) -> None:
    """Refuse what the model cannot use, and note what has no effect."""
    model, typed = request.model or DEFAULT_RANKER, request.typed
    _refuse_many_processes(model)
    request.refuse(ONLY_DOCUMENTS, f"{model} is a model of answers")
    entry, kind = ANSWER_MODELS[model], model_class(model)
    if not entry.has_latent:
        request.refuse(LATENT_OPTIONS, f"{model} has no latent variable; nasm has")
    if not entry.has_features:
        others = ", ".join(name for name, other in ANSWER_MODELS.items() if other.has_features)
        request.refuse(["features"], f"{model} has no features to choose from. Models that do: {others}.")
    if kind.pretrained:
        request.refuse(WORD_VECTOR_OPTIONS, f"{model} starts from a pretrained encoder, not from word vectors")
        request.refuse(["counts", "position"], f"{model} computes its own features")
    if not kind.joins_columns:
        request.refuse(["counts"], f"{model} is made of counts already")
        if model == DEFAULT_RANKER:
            request.refuse(["position"], f"{model} uses positions automatically if they are known")
    if "tune_vectors" in typed:
        request.refuse(["unseen_words"], "--tune-vectors drops words that are not in the training part")
    if not entry.trained_by_gradient:
        request.refuse(["tune_vectors"], f"{model} does not learn word vectors")
        request.refuse(["ensemble", "seeds"], f"{model} does not depend on the seed")
        _note_what_has_no_effect(model, [name for name in STEP_OPTIONS if name in typed], request.resume)


def _note_what_has_no_effect(model: str, typed: list[str], resume: bool) -> None:
    if typed:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in typed)
        log(f"note: {model} is not trained in steps: {options} {'have' if len(typed) > 1 else 'has'} no effect")
    if resume:
        log(f"note: {model} is not trained in steps and keeps no checkpoint: --resume starts over")


def _refuse_many_processes(what: str) -> None:
    from varitext.runtime.processes import size_at_launch

    if size_at_launch() > 1:
        raise InputError(
            f"{what} trains in one process. torchrun works for the first fit of a model of documents only."
        )
