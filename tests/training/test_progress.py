"""What a run shows of itself: lines at most every few seconds, time left, whether the latent is alive."""

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
    assert said[0] == " 40%  epoch 1.5  bound -6.500/word  KL 10.00  dev perplexity 812.3  7 units alive  15 s left"
    assert said[1].endswith("  11 s left") and said[2].endswith("  0 s left")  # 10.5 s for .4 of it, .4 to come


def test_a_resumed_run_counts_the_time_of_its_own_part(clock, capsys):
    lines = LineProgress("pair", has_latent=False)
    lines.step(0.5, -1.0, 12.34)
    lines.step(0.5, -1.0, 12.34)
    clock[0] = 106.0
    lines.round(RECORD)  # nothing was gained yet: no time left can be told
    clock[0] = 120.0
    lines.step(0.75, -1.0, 12.34)
    lines.round(RECORD | {"dev_perplexity": 3.0})
    first, second = capsys.readouterr().err.splitlines()
    assert first == " 50%  epoch 1.5  bound -1.000/pair  KL 12.3  dev perplexity 812.3"
    assert second == " 75%  epoch 1.5  bound -1.000/pair  KL 12.3  dev perplexity 3  20 s left"


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({}, "latent dead"),
        ({"active_units": 0, "posterior_prior_gap": -0.0001}, "latent dead, leak 0.000"),
        ({"active_units": 3, "posterior_prior_gap": 0.0126}, "3 units alive, leak 0.013"),
    ],
)
def test_whether_the_latent_is_alive(record, said):
    assert progress._life_of_latent(record) == said


def test_nats_have_two_digits_below_ten():
    assert [progress._nats(kl) for kl in (0.0, 9.99, 10.0, 123.45)] == ["0.00", "9.99", "10.0", "123.5"]


def test_a_live_bar_has_the_figures_and_what_the_latent_does():
    bar, screen = BarProgress(has_latent=True), io.StringIO()
    (task,) = bar._bar.tasks
    assert bar._bar.console.stderr and (task.description, task.total, task.fields["figures"]) == ("counting", 1, "")
    bar.round(RECORD)
    bar.step(0.25, -6.5, 3.0)
    console = Console(file=screen, width=120)
    console.print(bar._bar.make_tasks_table(bar._bar.tasks))
    shown = screen.getvalue()
    assert re.match(r"fitting \S+ +25% bound -6.50 KL 3.00 dev 812.3", shown) and "7 units alive" in shown
    assert "left" in shown and bar._bar.tasks[0].total == 1


def test_lines_where_there_is_no_terminal(monkeypatch):
    assert isinstance(show_progress(), LineProgress)
    monkeypatch.setattr("sys.stderr", type("Terminal", (io.StringIO,), {"isatty": lambda self: True})())
    for term, kind in (("dumb", LineProgress), ("unknown", LineProgress), ("xterm", BarProgress)):
        monkeypatch.setenv("TERM", term)
        assert isinstance(show_progress(), kind)


def rendered(bar: BarProgress, width: int = 120) -> list[str]:
    """The lines of the table as a terminal of so many columns shows them."""
    screen = io.StringIO()
    Console(file=screen, width=width).print(bar._bar.make_tasks_table(bar._bar.tasks))
    return [line.rstrip() for line in screen.getvalue().splitlines()]


def test_a_bar_before_its_first_figures():
    bar = BarProgress(has_latent=True)
    bar.step(0.5, -6.5, 3.0)
    (line,) = rendered(bar)
    shown, bars, percent, *rest = line.split()
    assert (shown, percent) == ("fitting", "50%") and len(bars) <= 14
    assert rest[:-3] == ["bound", "-6.50", "KL", "3.00"] and rest[-1] == "left"
    times = rest[-3:-1]
    assert all(re.fullmatch(r"\d:\d\d:\d\d|-:--:--", one) for one in times)


def test_figures_and_bar_fit_on_a_terminal_of_80_columns():
    bar = BarProgress(has_latent=True)
    bar.round(RECORD)
    bar.step(1.0, -6.5, 10.0)  # done: the bar is full
    first, second = rendered(bar, 80)
    assert re.fullmatch(r"fitting \S{14} 100% bound -6\.50 KL 10\.0 dev 812\.3 \S+ \S+ left", first)
    assert second.split() == ["7", "units", "alive"]


def test_a_bar_without_a_latent_is_one_line():
    bar = BarProgress(has_latent=False)
    bar.round(RECORD)
    bar.step(0.25, -6.5, 10.0)
    (line,) = rendered(bar)
    assert re.fullmatch(r"fitting \S+ +25% bound -6\.50 KL 10\.0 dev 812\.3 \S+ \S+ left", line)


def test_a_bar_lives_as_long_as_its_block():
    bar = BarProgress(has_latent=True)
    assert not bar._bar.live.is_started
    with bar as entered:
        assert entered is bar and bar._bar.live.is_started
    assert not bar._bar.live.is_started


def test_a_note_beside_a_bar_is_printed_as_it_is():
    bar, screen = BarProgress(has_latent=True), io.StringIO()
    bar._bar.live.console = Console(file=screen, width=120, force_terminal=True, color_system="truecolor")
    bar.note("rolled back to step 12 of [bold]the run[/bold]")
    assert screen.getvalue() == "rolled back to step 12 of [bold]the run[/bold]\n"  # no colours, no markup


def test_a_line_is_seen_at_once(monkeypatch):
    """Standard error may be a pipe that is read while the run goes on."""
    written = io.BytesIO()
    monkeypatch.setattr("sys.stderr", io.TextIOWrapper(written, encoding="utf-8"))  # holds back what is not flushed
    LineProgress("word", has_latent=True).note("a line")
    assert written.getvalue() == b"a line\n"


def test_lines_are_the_same_within_a_block():
    lines = LineProgress("word", has_latent=True)
    with lines as entered:
        assert entered is lines


def test_the_headline_is_the_first_measure_of_held_out_examples():
    record = {"step": 1, "kl": 3.0, "dev_map_of_all": 0.5, "dev_mrr": 0.7}
    assert progress._headline(record) == ("dev map of all", 0.5)
