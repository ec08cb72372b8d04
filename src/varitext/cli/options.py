"""Arguments and options that several commands share, with their help."""

from pathlib import Path
from typing import Annotated

import typer

from varitext.records import DATA, WHERE_IT_RUNS
from varitext.training.settings import DEVICE, THREADS

Corpus = Annotated[
    str,
    typer.Argument(metavar="CORPUS", help="A known corpus (see `varitext data list`), or a file or folder of yours."),
]
ModelFolder = Annotated[Path, typer.Argument(metavar="DIR", help="A model folder, as `varitext fit --out` writes it.")]
DataDir = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Folder of corpora; else $VARITEXT_DATA, then the cache.", rich_help_panel=DATA),
]
TextColumn = Annotated[
    str | None, typer.Option(metavar="NAME", help="Which column of a .jsonl, .csv or .parquet file has the text.")
]
QuestionColumn = Annotated[
    str | None, typer.Option(metavar="NAME", help="Questions: which column has the question; else 'question'.")
]
AnswerColumn = Annotated[
    str | None, typer.Option(metavar="NAME", help="Questions: which column has the answer; else 'answer'.")
]
LabelColumn = Annotated[
    str | None, typer.Option(metavar="NAME", help="Questions: which column says right (1) or wrong (0); else 'label'.")
]
IdColumn = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Questions: which column names each; else 'question_id', or the question."),
]
RightFrom = Annotated[
    float | None,
    typer.Option(metavar="GRADE", help="Questions: labels are grades, and those of this grade or higher are right."),
]
Part = Annotated[
    str | None, typer.Option(metavar="NAME", help="train, dev or test, if the corpus is divided; test if left out.")
]
Samples = Annotated[
    int | None,
    typer.Option(min=1, max=10_000, metavar="N", help="Draws of h per document or question; 20 if left out."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print exactly one JSON object and nothing else.")]
Threads = Annotated[
    int | None,
    typer.Option(min=THREADS.minimum, max=THREADS.maximum, metavar=THREADS.metavar, help=THREADS.help),
]
Device = Annotated[str, typer.Option(metavar=DEVICE.metavar, help=DEVICE.help)]
OnRay = Annotated[
    bool, typer.Option("--ray", help="On Ray, over all cores of this machine. Needs: pip install 'varitext[ray]'.")
]
RayAddress = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="On the Ray cluster there: HOST:6379, ray://HOST:10001 or auto.",
        rich_help_panel=WHERE_IT_RUNS,
    ),
]
Protocol = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Answers: which questions count: answerable (a right answer), both or clean (a wrong one too), all or "
        "raw, paper-qasent; else clean for qasent and answerable for others.",
    ),
]
