"""What commands do on Ray: `transform --ray` and `fit --ray-workers`."""

from pathlib import Path
from typing import Any

from varitext.cli.printing import say
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
    from varitext.loading import load_document_model
    from varitext.on_ray.cluster import LOCAL
    from varitext.on_ray.transforming import transform_on_ray
    from varitext.store import refuse_to_overwrite

    refuse_to_overwrite(out)
    width = load_document_model(folder).network_.vector_dim  # which also says what is wrong with the folder
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
        say(f"note: {found.unknown} documents have no known word: they get the prior")
    say(f"{found.documents} vectors of {width} dimensions in {out}, {found.files} file{'s'[: found.files != 1]}")


def fit_on_ray(lesson: tuple[str, str, Path | None, str, dict[str, Any]], out: Path) -> None:
    """Learn in processes that Ray Train starts; `lesson` are the arguments of `document_lesson`."""
    from varitext.cli.running_fit import documents_learned
    from varitext.corpora import CORPORA
    from varitext.documents.model import DocumentModel
    from varitext.on_ray.cluster import LOCAL
    from varitext.on_ray.training import run_in_workers

    corpus, part, data_dir, model, settings = lesson
    workers, address = settings["ray_workers"], settings["ray_address"]
    if workers is None:
        raise InputError("--ray-address needs --ray-workers: in how many processes to learn")
    corpus = corpus if corpus in CORPORA else str(Path(corpus).absolute())  # workers have a folder of their own
    typed = {"corpus": corpus, "part": part, "data_dir": data_dir and str(data_dir.absolute()), "model": model}
    passed = typed | {"settings": settings, "out": str(out.absolute())}
    out.absolute().parent.mkdir(parents=True, exist_ok=True)
    run_in_workers(_learn, passed, workers, out.absolute().parent, settings["device"], address or LOCAL)
    say(f"{documents_learned(DocumentModel.load(out))}; model in {out}")


def _learn(passed: dict[str, Any]) -> None:
    """In each worker; started again after another died, the run goes on from its checkpoint."""
    from varitext.cli.checks import is_finished_model
    from varitext.cli.fitting import document_lesson
    from varitext.cli.running_fit import fit_and_save

    out, data_dir = Path(passed["out"]), passed["data_dir"]
    if is_finished_model(out):
        return
    lesson = document_lesson(
        passed["corpus"], passed["part"], data_dir and Path(data_dir), passed["model"], passed["settings"]
    )
    fit_and_save(lesson, out, resume=True)
