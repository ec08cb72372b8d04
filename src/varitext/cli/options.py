"""Arguments and options that several commands share, with their help."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

Corpus = Annotated[
    str,
    typer.Argument(metavar="CORPUS", help="A known corpus (see `varitext data list`), or a file or folder of yours."),
]
ModelFolder = Annotated[Path, typer.Argument(metavar="DIR", help="A model folder, as `varitext fit --out` writes it.")]
DataDir = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Folder of corpora; else $VARITEXT_DATA, then the cache.")
]
TextColumn = Annotated[
    str | None, typer.Option(metavar="NAME", help="Which column of a .jsonl, .csv or .parquet file has the text.")
]
Part = Annotated[
    str | None, typer.Option(metavar="NAME", help="train, dev or test, if the corpus is divided; test if left out.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print exactly one JSON object and nothing else.")]
Threads = Annotated[int | None, typer.Option(min=1, max=1024, metavar="N", help="CPU threads; all cores if left out.")]
Device = Annotated[str, typer.Option(metavar="NAME", help="cpu or cuda.")]
OnRay = Annotated[
    bool, typer.Option("--ray", help="On Ray, over all cores of this machine. Needs: pip install 'varitext[ray]'.")
]
RayAddress = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="On the Ray cluster there: HOST:6379, ray://HOST:10001 or auto.")
]
Protocol = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Answers: which questions count: answerable (a right answer), both or clean (a wrong one too), all or "
        "raw, paper-qasent; else clean for qasent and answerable for others.",
    ),
]


class Updates(StrEnum):
    joint = "joint"
    alternating = "alternating"
