"""The commands, all in one list: plain typed functions, one each, whose docstrings are the help.

Heavy modules are imported inside the commands, so that `--help` answers at once.
"""

import dataclasses
from typing import Annotated

import typer

import varitext
from varitext.cli.answer_commands import compare, rank
from varitext.cli.document_commands import demo, report, similar, topics, transform
from varitext.cli.evaluating import evaluate
from varitext.cli.fitting import fit
from varitext.cli.options import AsJson, DataDir
from varitext.cli.printing import print_corpus, print_json
from varitext.cli.reproducing import reproduce

app = typer.Typer(
    name="varitext",
    help="Neural variational inference for text: topics, document vectors with uncertainty, honest perplexity; "
    "answers ranked with the probability of being best.",
    epilog="Start with: varitext demo",
    rich_markup_mode=None,  # plain help keeps the examples as they are written
    pretty_exceptions_enable=False,
    add_completion=False,
)
data_app = typer.Typer(help="Which corpora are known, and where each was found.", rich_markup_mode=None)
app.add_typer(data_app, name="data")
