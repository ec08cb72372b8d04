"""`varitext data`: the known corpora, word vectors and encoder, where each was found, and how to get one."""

import dataclasses
from typing import TYPE_CHECKING, Annotated

import typer

from varitext.cli.options import AsJson, DataDir, GroupedCommand
from varitext.cli.printing import log, print_json

if TYPE_CHECKING:
    from varitext.corpora import CorpusStatus

data_app = typer.Typer(help="List the known corpora, word vectors and encoder, or download one.", rich_markup_mode=None)


@data_app.callback(invoke_without_command=True)
def data(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


@data_app.command("list", cls=GroupedCommand)
def data_list(data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List the known corpora, word vectors and encoder, where each was found, and its checksum. Works offline.

    \b
    Example:
      varitext data list --json
    """
    from varitext.corpora import describe

    corpora = describe(data_dir)
    if as_json:
        return print_json({"corpora": [dataclasses.asdict(entry) for entry in corpora]})
    for entry in corpora:
        _print_corpus(entry)


@data_app.command("fetch", cls=GroupedCommand)
def data_fetch(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name from `varitext data list`.")],
    data_dir: DataDir = None,
) -> None:
    """Find or download a corpus, word vectors or the encoder, and verify the checksum.

    A download is kept in the cache. A broken download of glove (862 MB, of which 347 MB are kept) or rcv1 (656 MB) is
    continued by the same command.

    \b
    Examples:
      varitext data fetch 20newsgroups
      varitext data fetch glove
      varitext data fetch minilm
    """
    from varitext.corpora import fetch

    _print_corpus(fetch(name, data_dir, log))


def _print_corpus(status: "CorpusStatus") -> None:
    print(f"{status.name}\n  {status.description}\n  {status.where}")
    if status.sha256:
        print(f"  sha256 {status.sha256}")
