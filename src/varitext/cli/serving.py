"""The command that serves models."""

from pathlib import Path
from typing import Annotated

import typer

from varitext.cli.options import DataDir, Threads


def serve(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Model folders, of documents or answers.")],
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen. Another than this machine's own needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="0 takes a free one.")] = 8000,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="VARITEXT_TOKEN",
            show_envvar=True,
            metavar="SECRET",
            help="Every request must carry it; made up and printed where one is needed.",
        ),
    ] = None,
    threads: Threads = None,
    data_dir: DataDir = None,
) -> None:
    """Serve models: a page to explore them, and a JSON API.

    Listens on this machine only, unless --host says otherwise. Nothing is written and nothing fetched. If the documents
    that a model was fitted on are here, similar ones are found among them. Needs the extra: pip install
    'varitext[serve]'.

    \b
    Examples:
      varitext serve models/news models/answers
      varitext serve models/news --port 8080
      varitext serve models/news --host 0.0.0.0 --token "$(openssl rand -hex 24)"
    """
    from varitext.serve import run_service

    run_service(folders, host, port, token, threads, data_dir)
