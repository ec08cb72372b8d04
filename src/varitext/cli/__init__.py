"""The command line: the list of commands, and what surrounds them all. Each command is one file.

Exit codes: 0 done; 2 bad input, with one line that reports what and where; 130 interrupted (the best model is kept);
1 if the reader of the output has gone away.
"""

import os
import signal
import sys
import warnings
from types import FrameType
from typing import Annotated

import typer

import varitext
import varitext.runtime.interruption  # notes the parent process before anything slow is imported
from varitext import compiled
from varitext.cli import (
    assign,
    calibrate,
    compare,
    data,
    demo,
    effects,
    evaluate,
    fit,
    index,
    prepare,
    rank,
    report,
    reproduce,
    serve,
    similar,
    topics,
    transform,
)
from varitext.cli.options import GroupedCommand, option
from varitext.cli.printing import log, printable_output
from varitext.errors import InputError

app = typer.Typer(
    name="varitext",
    help="Neural variational inference for text: topics, document vectors with uncertainty, held-out perplexity, and "
    "answers ranked with the probability of being best.",
    epilog="Start with: varitext demo",
    rich_markup_mode=None,  # plain help keeps the examples as they are written
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.add_typer(data.data_app, name="data")
COMMANDS = (
    *(prepare.prepare, fit.fit, evaluate.evaluate, transform.transform, topics.topics, assign.assign, similar.similar),
    effects.effects,
    *(rank.rank, index.index, calibrate.calibrate, compare.compare, report.report, report.figures, serve.serve),
    *(reproduce.reproduce, demo.demo),
)
for command in COMMANDS:  # heavy modules are imported inside them, so that `--help` answers at once
    app.command(cls=GroupedCommand)(command)


@app.callback(invoke_without_command=True)
def varitext_command(
    context: typer.Context, version: Annotated[bool, option("Print the version.", None, "--version")] = False
) -> None:
    if version:
        kernels = f"in use: {compiled.registers()}-bit" if compiled.available() else "not in use: torch does their work"
        print(f"varitext {varitext.__version__} (compiled kernels {kernels})")
    elif context.invoked_subcommand is None:
        print(context.get_help())


def main() -> None:
    """Run the command line; whatever a user can correct is one line on standard error and exit code 2."""
    signal.signal(signal.SIGTERM, _on_terminate)
    with printable_output(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("default", UserWarning)
        warnings.simplefilter("default", RuntimeWarning)
        warnings.showwarning = lambda message, *_, **__: log(f"note: {message}")
        sys.exit(_run())


def _run() -> int:
    """The exit code of the command that was typed."""
    try:
        code = app(standalone_mode=False, prog_name="varitext") or 0
        sys.stdout.flush()  # here, where a full disk can still be reported
        return code
    except InputError as error:
        return _complain(str(error))
    except BrokenPipeError:  # the reader has enough: `varitext topics DIR | head -3`
        _forget_output()
        return 1
    except OSError as error:
        if error.filename is None:
            _forget_output()
        return _complain(f"{error.filename or 'standard output'}: {error.strerror or error}")
    except MemoryError:
        return _complain("not enough memory: try fewer documents or a smaller vocabulary (--vocabulary-size)")
    except (KeyboardInterrupt, typer.Abort):
        return 130
    except Exception as error:
        if not hasattr(error, "format_message"):  # typer's own errors about options and arguments have it
            raise
        return _complain(error.format_message())


def _on_terminate(number: int, frame: FrameType | None) -> None:
    """Treat SIGTERM like Ctrl-C, even where Ctrl-C is ignored, as in a script's background jobs."""
    on_interrupt = signal.getsignal(signal.SIGINT)
    (on_interrupt if callable(on_interrupt) else signal.default_int_handler)(number, frame)


def _forget_output() -> None:
    """Do not try again, when Python exits, to write what could not be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(message: str) -> int:
    log(f"varitext: {' '.join(message.split())}")
    return 2
