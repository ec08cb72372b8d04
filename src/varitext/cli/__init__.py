"""The command line. `commands` has one function per command; here is what surrounds them all.

Exit codes: 0 done; 2 bad input, with one line that says what and where; 130 interrupted (the best model is kept);
1 if whoever read the output went away.
"""

import io
import os
import signal
import sys
import warnings
from types import FrameType

import typer

import varitext.runtime.interruption  # noqa: F401   notes the parent process before anything slow is imported
from varitext.cli.commands import app
from varitext.cli.printing import log
from varitext.errors import InputError

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line; everything a user can put right is one line on standard error and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a word that the terminal cannot show must not end a run
            stream.reconfigure(errors="backslashreplace")
    signal.signal(signal.SIGTERM, _asked_to_stop)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("default", UserWarning)
        warnings.simplefilter("default", RuntimeWarning)
        warnings.showwarning = lambda message, *_, **__: log(f"note: {message}")
        sys.exit(_run())


def _run() -> int:
    """The exit code of the command that was typed."""
    try:
        code = app(standalone_mode=False, prog_name="varitext") or 0
        sys.stdout.flush()  # here, where a full disk can still be told
        return code
    except InputError as error:
        return _complain(str(error))
    except BrokenPipeError:  # whoever read the output has enough: `varitext topics DIR | head -3`
        _forget_output()
        return 1
    except OSError as error:
        if error.filename is None:
            _forget_output()
        return _complain(f"{error.filename or 'standard output'}: {error.strerror or error}")
    except MemoryError:
        return _complain("not enough memory; fewer documents or a smaller vocabulary may fit")
    except (KeyboardInterrupt, typer.Abort):
        return 130
    except Exception as error:
        if not hasattr(error, "format_message"):  # typer's own errors about the words of a command have it
            raise
        return _complain(error.format_message())


def _asked_to_stop(number: int, frame: FrameType | None) -> None:
    """What Ctrl-C would do, whoever asks; also where Ctrl-C is ignored, as in a script's background jobs."""
    on_interrupt = signal.getsignal(signal.SIGINT)
    (on_interrupt if callable(on_interrupt) else signal.default_int_handler)(number, frame)


def _forget_output() -> None:
    """What could not be written to standard output is not tried again when Python exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(message: str) -> int:
    log(f"varitext: {' '.join(message.split())}")
    return 2
