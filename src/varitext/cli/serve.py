"""`varitext serve`: models as a web page and a JSON API."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from varitext.cli.options import DataDir, Threads, Trust, option


class LogLevel(StrEnum):
    info = "info"
    warning = "warning"
    error = "error"


def serve(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Model folders, of documents or answers; or minilm or bm25.")
    ],
    host: Annotated[
        str, option("Address to listen on. Any but this machine's own needs a token.", "ADDRESS")
    ] = "127.0.0.1",
    port: Annotated[int, option("Port; 0 takes a free one.", "N", min=0, max=65535)] = 8000,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="VARITEXT_TOKEN",
            show_envvar=True,
            metavar="SECRET",
            help="Token that every request must send. Generated and printed if needed.",
        ),
    ] = None,
    index: Annotated[
        Path | None, option("An index (`varitext index`) that rankers search if a request has no candidates.", "DIR")
    ] = None,
    public_metrics: Annotated[bool, option("Answer GET /metrics without the token.", None, "--public-metrics")] = False,
    log_level: Annotated[
        LogLevel | None,
        option(
            "info logs every request, warning those with a 5xx status, error only failures (default: warning if only "
            "this machine can reach the server, otherwise info)."
        ),
    ] = None,
    threads: Threads = None,
    trust: Trust = None,
    data_dir: DataDir = None,
) -> None:
    """Serve models as a web page and a JSON API.

    Listens on this machine only, unless --host names another address. Writes nothing and downloads nothing. Similar
    documents are searched among those the model was fitted on, if they are here. Needs the extra: pip install
    'varitext[serve]'.

    \b
    Examples:
      varitext serve models/news models/answers
      varitext serve models/news --port 8080
      varitext serve minilm --index articles.index
      varitext serve models/news --host 0.0.0.0 --token "$(openssl rand -hex 24)"
    """
    from varitext.serve import run_service

    run_service(folders, host, port, token, threads, data_dir, trust, index, public_metrics, log_level)
