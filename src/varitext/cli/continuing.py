"""`varitext fit --continue`: more documents for a model that is there, and more words if asked."""

from contextlib import nullcontext
from pathlib import Path

from varitext.cli.claiming import claimed
from varitext.cli.data_settings import WORD_OPTIONS, DataSettings
from varitext.cli.fit_checks import (
    ON_RAY,
    ONLY_ANSWERS,
    check_place_for_model,
    refuse_many_processes,
    refuse_typed,
)
from varitext.cli.fit_jobs import FitRequest
from varitext.cli.inputs import load_documents
from varitext.cli.running_fit import FitJob, fit_and_save, update_learned
from varitext.errors import InputError
from varitext.loading import load_document_model
from varitext.records import record_from_options

FIRST_FIT_OPTIONS = ("latent_dim", "preset", "updates", "estimator", *WORD_OPTIONS)
MODEL_OPTIONS = ("batch_size", "threads", "seed", "processes")


def continue_fit(request: FitRequest, folder: Path, out: Path | None) -> None:
    """Go on from the model in `folder`; it stays as it is if there is an `out`, else the new one takes its place."""
    from varitext.runtime.devices import check_device
    from varitext.store import checkpoints

    typed = request.typed
    refuse_typed(typed, {"model", *ONLY_ANSWERS}, "--continue goes on from a model of documents as it was fitted")
    refuse_typed(typed, FIRST_FIT_OPTIONS, "the model was fitted with its own")
    refuse_many_processes("--continue")
    refuse_typed(typed, ON_RAY, "--continue learns in one process")
    check_device(request.device)
    in_place = out in (None, folder)
    is_missing = in_place and not folder.is_dir()  # which the model's own loading tells best
    with nullcontext() if is_missing else claimed(out or folder):
        if not in_place:
            check_place_for_model(out or folder, request.resume)
        elif checkpoints(folder) and not request.resume:
            raise InputError(f"{folder} holds an unfinished run: add --resume to go on, or remove its checkpoint first")
        fit_and_save(_update_job(request, folder, in_place), out or folder, request.resume)


def _update_job(request: FitRequest, folder: Path, in_place: bool) -> FitJob:
    from varitext.documents.updating import check_can_update

    typed = request.typed
    model = load_document_model(folder, device=request.device)
    check_can_update(model.fitted_.model, model.fitted_.network)
    # the clock belongs to one run: that of the first fit does not count here
    changed = {name: typed[name] for name in MODEL_OPTIONS if name in typed}
    model.set_params(**changed, time_limit=typed.get("time_limit"))
    columns = record_from_options(DataSettings, typed).columns()
    documents = load_documents(request.corpus, request.part, request.data_dir, None, columns)
    return FitJob(
        model,
        lambda run: model.partial_fit(
            documents,
            new_words=typed.get("new_words", False),
            epochs=typed.get("epochs"),
            learning_rate=typed.get("learning_rate"),
            progress=run.progress,
            checkpoint=run.checkpoint,
            resume=run.resume,
        ),
        lambda: update_learned(model),
        typed_corpus={},
        keeps_unfinished=not in_place,
    )
