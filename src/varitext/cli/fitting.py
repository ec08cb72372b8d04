"""`varitext fit`: one command for models of documents and of answers; the model's name decides which.

`fit_options.py` makes the options from the settings records; `fit_checks.py` refuses what does not fit together;
`fit_jobs.py` loads what is to be learned from; `running_fit.py` fits and writes the model folder. `continuing.py` does
the same for `--continue`.
"""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from varitext.cli.checks import refuse_options
from varitext.cli.claiming import claimed
from varitext.cli.continuing import continue_fit
from varitext.cli.fit_checks import (
    check_answer_options,
    check_document_options,
    check_place_for_model,
    default_model,
    is_answer_model,
    is_finished_model,
)
from varitext.cli.fit_jobs import FitRequest, answer_job, document_job
from varitext.cli.fit_options import (
    Continued,
    ModelName,
    NewWords,
    OutFolder,
    RayWorkers,
    Resume,
    TrainingPart,
    typed_options,
    with_settings,
)
from varitext.cli.options import Corpus, DataDir, RayAddress
from varitext.cli.ray_work import fit_on_ray
from varitext.cli.running_fit import fit_and_save
from varitext.errors import InputError


@with_settings
def fit(
    context: typer.Context,
    corpus: Corpus,
    out: OutFolder = None,
    model: ModelName = None,
    continued: Continued = None,
    new_words: NewWords = False,
    part: TrainingPart = "train",
    data_dir: DataDir = None,
    resume: Resume = False,
    ray_workers: RayWorkers = None,
    ray_address: RayAddress = None,
    **settings: Any,
) -> None:
    """Fit a model to a corpus and write the model folder.

    Without --model, questions are learned by compare and documents by nvdm_dcm; nvdm stands in for it where that
    does not apply: presets of the paper, more than 30,000 words or 100 dimensions.

    Documents of yours: a folder of .txt; a .jsonl, .csv or .parquet with a text column; counts as .npz or .feat. All
    but .npz may be gzipped. A folder with train and test (sub-folders, or files such as train.jsonl) is divided.

    Questions of yours: a .jsonl or .csv with question, answer and label (1 right, 0 wrong) a row; or a folder with
    train, dev and test files of that kind.

    The dev part chooses when to stop; without one a share is held out. Ctrl-C keeps the best model so far; the same
    command with --resume goes on, and ends with the same bits as a run that was never stopped.

    \b
    Examples:
      varitext fit 20newsgroups --out models/news
      varitext fit articles.csv --text-column body --latent-dim 20 --out models/mine
      varitext fit wikiqa --ensemble 5 --out models/answers
      varitext fit wikiqa --model nasm --counts --position --out models/nasm
      varitext fit qasent --part train-all --longest-answer 40 --model nasm --counts --out models/trec
      varitext fit wikiqa --model overlap --features bm25 --out models/bm25
      varitext fit pairs.jsonl --model lstm_attention --vectors glove.6B.50d.txt --out models/pairs
      varitext fit --continue models/mine march.csv --text-column body --new-words --out models/march
    """
    typed = typed_options(context)
    chosen = model or default_model(corpus, typed)
    request = FitRequest(corpus, part, data_dir, chosen, model is None, typed, resume)
    if continued is not None:
        return continue_fit(request, continued, out)
    refuse_options({"new_words": new_words}, "it belongs to --continue")
    if out is None:
        raise InputError("say with --out where the model folder goes")
    fit_new_model(request, out)


def fit_new_model(request: FitRequest, out: Path) -> None:
    """Check what was asked for, before anything is loaded; then load and fit."""
    from varitext.runtime.processes import rank_at_launch, restarts

    if restarts():  # by torchrun, because a process died: on from the checkpoint, if the run was not over by then
        if is_finished_model(out):
            return
        request = replace(request, resume=True)
    with claimed(out) if rank_at_launch() == 0 else nullcontext():
        if rank_at_launch() == 0:
            check_place_for_model(out, request.resume)
        _check_and_fit(request, out)


def _check_and_fit(request: FitRequest, out: Path) -> None:
    from varitext.runtime.devices import check_device
    from varitext.runtime.processes import use_own_gpu

    of_answers = is_answer_model(request.model)
    if of_answers:
        check_answer_options(request)
    else:
        check_document_options(request)
    use_own_gpu(request.device)
    check_device(request.device)
    if "ray_workers" in request.typed or "ray_address" in request.typed:
        return fit_on_ray(request, out)
    fit_and_save(answer_job(request) if of_answers else document_job(request), out, request.resume)
