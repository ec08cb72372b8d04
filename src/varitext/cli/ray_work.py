"""What commands do on Ray: `transform --ray` and `fit --ray-workers`."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from varitext.cli.fit_checks import is_finished_model
from varitext.cli.fit_jobs import FitRequest, document_job
from varitext.cli.printing import log
from varitext.cli.running_fit import documents_learned, fit_and_save
from varitext.errors import InputError


def transform_corpus_on_ray(
    folder: Path,
    corpus: str,
    out: Path,
    part: str | None,
    text_column: str | None,
    with_std: bool,
    address: str | None,
) -> None:
    from varitext.cli.preparing import CountedLines
    from varitext.corpora import parts
    from varitext.files import refuse_to_overwrite
    from varitext.loading import load_document_model
    from varitext.ray.cluster import LOCAL
    from varitext.ray.transforming import transform_on_ray

    refuse_to_overwrite(out)
    width = load_document_model(folder).fitted_.network.vector_dim  # which also says what is wrong with the folder
    if part is None:
        part = "test" if "test" in parts(corpus) else parts(corpus)[0]
    found = transform_on_ray(
        folder,
        corpus,
        out,
        part=part,
        text_column=text_column,
        with_std=with_std,
        address=address or LOCAL,
        progress=CountedLines(),
    )
    if found.unknown:
        log(f"note: {found.unknown} documents have no known word: they get the prior")
    log(f"{found.documents} vectors of {width} dimensions in {out}, {found.files} file{'s'[: found.files != 1]}")


def fit_on_ray(request: FitRequest, out: Path) -> None:
    """Learn in processes that Ray Train starts; each loads the corpus for itself."""
    from varitext.corpora import CORPORA, parts
    from varitext.documents.model import DocumentModel
    from varitext.ray.cluster import LOCAL
    from varitext.ray.fitting import run_in_workers

    typed = request.typed
    if "ray_workers" not in typed:
        raise InputError("--ray-address needs --ray-workers: in how many processes to learn")
    parts(request.corpus)  # refuses a corpus that is not here, before Ray is started
    corpus, data_dir = request.corpus, request.data_dir
    absolute = replace(  # workers have a folder of their own
        request,
        corpus=corpus if corpus in CORPORA else str(Path(corpus).absolute()),
        data_dir=data_dir and data_dir.absolute(),
        resume=True,  # started again after another worker died, the run goes on from its checkpoint
    )
    beside, address = out.absolute().parent, typed.get("ray_address") or LOCAL
    beside.mkdir(parents=True, exist_ok=True)
    passed = {"request": absolute, "out": out.absolute()}
    run_in_workers(_learn, passed, typed["ray_workers"], beside, request.device, address)
    log(f"{documents_learned(DocumentModel.load(out))}; model in {out}")


def _learn(passed: dict[str, Any]) -> None:
    """In each worker."""
    request, out = passed["request"], passed["out"]
    if not is_finished_model(out):
        fit_and_save(document_job(request), out, request.resume)
