"""The options of `varitext topics`, with their help."""

from pathlib import Path
from typing import Annotated

import typer

CHANGED, GROUPED = "What to change, kept in the model folder", "Topics by column"

TopicWords = Annotated[int, typer.Option(min=1, max=30, metavar="N", help="Words per topic.")]
TableFile = Annotated[Path | None, typer.Option(metavar="FILE", help="Also write the table: .csv, .json or .parquet.")]
Tree = Annotated[bool, typer.Option("--tree", help="Which topics are most alike, in place of the topics.")]
Source = Annotated[
    str | None,
    typer.Option("--from", metavar="CORPUS", help="Documents to look at; else those that the model was fitted on."),
]
NumberOfTopics = Annotated[
    int | None, typer.Option("--topics", min=1, metavar="N", help="Find so many topics anew.", rich_help_panel=CHANGED)
]
SeedFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help='Find topics anew, some of them from words: {"space": ["orbit", "nasa"]}.',
        rich_help_panel=CHANGED,
    ),
]
Merge = Annotated[list[str] | None, typer.Option(metavar="4,7", help="Make one of several.", rich_help_panel=CHANGED)]
MergeTo = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Merge those most alike until N are left.", rich_help_panel=CHANGED),
]
Split = Annotated[
    list[int] | None,
    typer.Option(metavar="5", help="Undo a merge, or divide a topic in two.", rich_help_panel=CHANGED),
]
Rename = Annotated[
    list[str] | None, typer.Option(metavar="3=NAME", help="Give a topic a name.", rich_help_panel=CHANGED)
]
Drop = Annotated[list[int] | None, typer.Option(metavar="9", help="Leave a topic out.", rich_help_panel=CHANGED)]
By = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Shares by the values of a column.", rich_help_panel=GROUPED)
]
OverTime = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Shares over a column of dates.", rich_help_panel=GROUPED)
]
Bins = Annotated[str, typer.Option(metavar="NAME", help="day, week, month, quarter or year.", rich_help_panel=GROUPED)]
