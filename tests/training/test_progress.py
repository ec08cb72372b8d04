"""Progress of training: lines at most every few seconds, time left, active units."""

import io
import re

import pytest
from rich.console import Console

from varitext.training import progress
from varitext.training.progress import BarProgress, LineProgress, show_progress

RECORD = {"epoch": 1.5, "kl_weight": 1.0, "dev_perplexity": 812.345, "active_units": 7}


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_a_line_every_few_seconds_and_one_at_the_end(clock, capsys):
    lines = LineProgress("word", has_latent=True)
    lines.round(RECORD)  # the score before the first step
    for seconds, share in ((100, 0.2), (104.9, 0.3), (105, 0.4), (109, 0.5), (110.5, 0.6), (111, 1.0)):
        clock[0] = seconds
        lines.step(share, -6.5, 9.996)
        lines.round(RECORD)
    said = capsys.readouterr().err.splitlines()
    assert [line[:4] for line in said] == [" 40%", " 60%", "100%"]
    assert said[0] == " 40%  epoch 1.5  bound -6.500/word  KL 10.00  dev perplexity 812.3  7 active units  15 s left"
    assert said[1].endswith("  11 s left") and said[2].endswith("  0 s left")  # 10.5 s for .4 of it, .4 to come


def test_a_resumed_run_counts_the_time_of_its_own_part(clock, capsys):
    lines = LineProgress("pair", has_latent=False)
    lines.step(0.5, -1.0, 12.34)
    lines.step(0.5, -1.0, 12.34)
    clock[0] = 106.0
    lines.round(RECORD)  # no progress yet, so no estimate of the time left
    clock[0] = 120.0
    lines.step(0.75, -1.0, 12.34)
    lines.round(RECORD | {"dev_perplexity": 3.0})
    first, second = capsys.readouterr().err.splitlines()
    assert first == " 50%  epoch 1.5  bound -1.000/pair  KL 12.3  dev perplexity 812.3"
    assert second == " 75%  epoch 1.5  bound -1.000/pair  KL 12.3  dev perplexity 3  20 s left"


@pytest.mark.parametrize(
    ("record", "shown"),
    [
        ({}, "posterior collapse"),
        ({"active_units": 0, "posterior_prior_gap": -0.0001}, "posterior collapse, gap 0.000"),
        ({"active_units": 3, "posterior_prior_gap": 0.0126}, "3 active units, gap 0.013"),
    ],
)
def test_active_units_and_posterior_collapse(clock, capsys, record, shown):
    lines = LineProgress("word", has_latent=True)
    lines.step(1.0, -6.5, 9.0)
    lines.round({"step": 1, "epoch": 1, "dev_map_of_all": 0.5, "dev_mrr": 0.7} | record)
    assert f"KL 9.00  dev map of all 0.5  {shown}" in capsys.readouterr().err  # the first held-out metric


def rendered(bar: BarProgress, width: int = 120) -> list[str]:
    """The lines of the table on a terminal of `width` columns."""
    screen = io.StringIO()
    Console(file=screen, width=width).print(bar._bar.make_tasks_table(bar._bar.tasks))
    return [line.rstrip() for line in screen.getvalue().splitlines()]


def test_a_live_bar_before_and_after_the_first_round():
    bar = BarProgress(has_latent=True)
    assert bar._bar.console.stderr and rendered(bar)[0].startswith("counting")
    bar.step(0.5, -6.5, 3.0)
    (line,) = rendered(bar)
    shown, bars, percent, *rest = line.split()
    assert (shown, percent) == ("fitting", "50%") and len(bars) <= 14
    assert rest[:-3] == ["bound", "-6.50", "KL", "3.00"] and rest[-1] == "left"
    assert all(re.fullmatch(r"\d:\d\d:\d\d|-:--:--", one) for one in rest[-3:-1])
    bar.round(RECORD)
    bar.step(0.25, -6.5, 3.0)
    shown = "\n".join(rendered(bar))
    assert re.match(r"fitting \S+ +25% bound -6.50 KL 3.00 dev 812.3", shown) and "7 active units" in shown


@pytest.mark.parametrize("has_latent", [True, False])
def test_the_bar_fits_a_terminal_of_80_columns(has_latent):
    bar = BarProgress(has_latent)
    bar.round(RECORD)
    bar.step(1.0, -6.5, 10.0)  # done: the bar is full
    first, *rest = rendered(bar, 80)
    assert re.fullmatch(r"fitting \S{14} 100% bound -6\.50 KL 10\.0 dev 812\.3 \S+ \S+ left", first)
    assert [line.strip() for line in rest] == (["7 active units"] if has_latent else [])


def test_lines_without_a_terminal(monkeypatch):
    assert isinstance(show_progress(), LineProgress)
    monkeypatch.setattr("sys.stderr", type("Terminal", (io.StringIO,), {"isatty": lambda self: True})())
    for term, kind in (("dumb", LineProgress), ("unknown", LineProgress), ("xterm", BarProgress)):
        monkeypatch.setenv("TERM", term)
        assert isinstance(show_progress(), kind)


def test_progress_is_a_context():
    lines, bar = LineProgress("word", has_latent=True), BarProgress(has_latent=True)
    with lines as entered:
        assert entered is lines
    assert not bar._bar.live.is_started
    with bar as entered:
        assert entered is bar and bar._bar.live.is_started
    assert not bar._bar.live.is_started


def test_a_note_beside_a_bar_is_printed_without_markup():
    bar, screen = BarProgress(has_latent=True), io.StringIO()
    bar._bar.live.console = Console(file=screen, width=120, force_terminal=True, color_system="truecolor")
    bar.note("rolled back to step 12 of [bold]the run[/bold]")
    assert screen.getvalue() == "rolled back to step 12 of [bold]the run[/bold]\n"


def test_lines_are_flushed(monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr("sys.stderr", io.TextIOWrapper(written, encoding="utf-8"))
    LineProgress("word", has_latent=True).note("a line")
    assert written.getvalue() == b"a line\n"
