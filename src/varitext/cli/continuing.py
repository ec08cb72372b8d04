"""`varitext fit --continue`: more documents for a model that is there, and more words if asked."""

from functools import partial
from pathlib import Path
from typing import Any

from varitext.cli.checks import check_device, check_place_for_model, given, refuse_many_processes, refuse_options
from varitext.cli.inputs import load_documents
from varitext.cli.running_fit import Lesson, fit_and_save, update_learned
from varitext.errors import InputError
from varitext.loading import load_document_model

OF_A_FIRST_FIT = ("latent_dim", "preset", "updates", "estimator", "vocabulary_size")
ON_RAY = ("ray_workers", "ray_address")
OF_THE_MODEL = ("batch_size", "threads", "device", "seed", "processes")


def continue_fit(
    folder: Path,
    corpus: str,
    part: str,
    data_dir: Path | None,
    out: Path | None,
    new_words: bool,
    typed: dict[str, Any],
    resume: bool,
) -> None:
    """Go on from the model in `folder`; it stays as it is if there is an `out`, else the new one takes its place."""
    from varitext.documents.updating import refuse_if_it_cannot_go_on
    from varitext.store import checkpoints

    refuse_options({name: typed[name] for name in OF_A_FIRST_FIT}, "the model was fitted with its own")
    refuse_many_processes("--continue")
    refuse_options({name: typed[name] for name in ON_RAY}, "--continue learns in one process")
    check_device(typed["device"])
    in_place = out is None or out == folder
    if not in_place:
        check_place_for_model(out, resume)
    elif checkpoints(folder) and not resume:
        raise InputError(f"{folder} holds an unfinished run: add --resume to go on, or remove its checkpoint first")
    model = load_document_model(folder)
    refuse_if_it_cannot_go_on(model)
    # the clock belongs to one run: that of the first fit does not count here
    model.set_params(**given({name: typed[name] for name in OF_THE_MODEL}), time_limit=typed["time_limit"])
    documents = load_documents(corpus, part, data_dir, typed["text_column"])
    learn = partial(
        model.partial_fit, new_words=new_words, epochs=typed["epochs"], learning_rate=typed["learning_rate"]
    )
    lesson = Lesson(model, documents, None, {}, "word", True, update_learned, learn, keeps_unfinished=not in_place)
    fit_and_save(lesson, out or folder, resume)
