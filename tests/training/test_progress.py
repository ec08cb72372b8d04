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
        ({"active_units": 0, "leak": -0.0001}, "latent dead, leak 0.000"),
        ({"active_units": 3, "leak": 0.0126}, "3 units alive, leak 0.013"),
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
