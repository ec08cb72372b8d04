"""The commands, all in one list: plain typed functions, one each, whose docstrings are the help.

Heavy modules are imported inside the commands, so that `--help` answers at once.
"""

import dataclasses
from typing import Annotated

import typer

import varitext
from varitext.cli.answer_commands import compare
from varitext.cli.document_commands import demo, similar, transform
from varitext.cli.evaluating import evaluate
from varitext.cli.fit_options import FitCommand
from varitext.cli.fitting import fit
from varitext.cli.options import AsJson, DataDir
from varitext.cli.preparing import prepare
from varitext.cli.printing import print_corpus, print_json
from varitext.cli.ranking import rank
from varitext.cli.reporting import figures, report
from varitext.cli.reproduce import reproduce
from varitext.cli.serving import serve
from varitext.cli.topic_commands import assign, topics

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

MODEL_COMMANDS = (prepare, fit, evaluate, transform, topics, assign, similar, rank, compare, report, figures, serve)
PAPER_COMMANDS = (reproduce, demo)
for command in (*MODEL_COMMANDS, *PAPER_COMMANDS):
    app.command(cls=FitCommand if command is fit else None)(command)


@app.callback(invoke_without_command=True)
def varitext_command(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
) -> None:
    if version:
        print(f"varitext {varitext.__version__}")
    elif context.invoked_subcommand is None:
        print(context.get_help())


@data_app.callback(invoke_without_command=True)
def data(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


@data_app.command("list")
def data_list(data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List the known corpora, where each was found, and its checksum. Uses no network.

    \b
    Example:
      varitext data list --json
    """
    from varitext.corpora import describe

    corpora = describe(data_dir)
    if as_json:
        return print_json({"corpora": [dataclasses.asdict(entry) for entry in corpora]})
    for entry in corpora:
        print_corpus(entry)


@data_app.command("fetch")
def data_fetch(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name from the list.")], data_dir: DataDir = None
) -> None:
    """Find or download a corpus, check it, and keep it in the cache.

    \b
    Example:
      varitext data fetch 20newsgroups
    """
    from varitext.corpora import fetch

    print_corpus(fetch(name, data_dir))
