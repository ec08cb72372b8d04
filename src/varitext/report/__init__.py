"""Reports: what a model learned, as one self-contained HTML file that opens without a network.

One picture per file; each is a plain function that gives a plotly figure or a piece of HTML. Plotly and openTSNE are
the extra `report`, so nothing here imports them before a report is asked for.
"""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from varitext.errors import InputError
from varitext.files import write_text

if TYPE_CHECKING:
    from varitext.corpora import Documents
    from varitext.document_model import DocumentModel
    from varitext.evaluation.perplexity import PerplexityRecord

__all__ = ["write_corpus_report", "write_document_report"]

DRAWING_PACKAGES = ("plotly", "openTSNE")


def write_document_report(
    model: "DocumentModel",
    documents: Any,
    path: Path,
    *,
    record: "PerplexityRecord",
    corpus_name: str,
    labels: Sequence[str] | None = None,
    titles: Sequence[str] | None = None,
) -> None:
    """Write the report of a fitted model on `documents`, whole or not at all.

    `documents` is whatever `DocumentModel.posterior` takes, and `record` what `perplexity_record` says of them.
    `labels` colour the map; `titles` name the documents in it.
    """
    path = Path(path)
    check_drawing_packages()
    if path.is_dir():
        raise InputError(f"{path} is a folder: the report is one file, such as {path / 'report.html'}")
    from varitext.corpora.documents import Documents
    from varitext.report.page import document_page
    from varitext.report.shown_documents import choose_documents

    shown = choose_documents(model, documents, labels, titles)
    source = documents if isinstance(documents, Documents) else None
    write_text(path, document_page(model, shown, record, corpus_name, source))


def write_corpus_report(
    model: "DocumentModel", documents: "Documents", path: Path, record: "PerplexityRecord | None" = None
) -> None:
    """The same for a corpus record, which brings its name, labels and texts."""
    write_document_report(
        model,
        documents,
        path,
        record=record or model.perplexity_record(documents),
        corpus_name=f"{documents.name} ({documents.part})",
        labels=documents.labels,
        titles=documents.texts,
    )


def check_drawing_packages() -> None:
    missing = [name for name in DRAWING_PACKAGES if find_spec(name) is None]
    if missing:
        raise InputError(f"a report needs {' and '.join(missing)}: pip install 'varitext[report]'")
