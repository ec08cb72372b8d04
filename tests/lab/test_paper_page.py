"""docs/paper.md: the rules of its verdicts, and the command of every claim."""

import shlex

import pytest

from lab.pages import findings
from lab.pages.findings import EXCEEDED, IN_DIRECTION, NOT_MEASURED, NOT_REPRODUCED, REPRODUCED, Finding
from lab.pages.paper import SECTIONS, Claim
from varitext.errors import InputError
from varitext.reproduce import EXPERIMENTS, experiment_named
from varitext.reproduce.engine import Plan


@pytest.mark.parametrize(
    ("ours", "verdict"), [(0.70, EXCEEDED), (0.66, REPRODUCED), (0.64, REPRODUCED), (0.62, NOT_REPRODUCED)]
)
def test_a_value_is_reproduced_within_its_error(ours, verdict):
    assert findings.against_value(ours, 0.65, 0.02) == verdict
    assert findings.against_value(-ours, -0.65, 0.02, lower_is_better=True) == verdict


def test_an_order_holds_on_every_corpus_and_is_significant():
    assert findings.of_order([0.02, 0.01], [0.01, 0.04]) == REPRODUCED
    assert findings.of_order([0.02, 0.01], [0.01, 0.2]) == IN_DIRECTION
    assert findings.of_order([0.02, -0.01], [0.01, 0.9]) == NOT_REPRODUCED


def test_the_worst_verdict_counts():
    assert findings.worst([EXCEEDED, NOT_REPRODUCED, REPRODUCED]) == NOT_REPRODUCED


def test_what_has_no_results_is_not_measured():
    def nothing() -> Finding:
        raise InputError("no results")

    assert findings.finding_of(nothing).verdict == NOT_MEASURED


def claims() -> list[Claim]:
    return [claim for section in SECTIONS.values() for claim in section()]


def test_no_claim_is_listed_twice():
    texts = [claim.text for claim in claims()]
    assert len(texts) == len(set(texts)) > 50


def test_every_command_measures_something():
    names = {name: [run.name for run in experiment_named(name).runs(Plan())] for name in EXPERIMENTS}
    for command in {one for claim in claims() for one in claim.command.split("; ")}:
        match shlex.split(command):
            case ["varitext", "reproduce", name]:
                assert name in names
            case ["varitext", "reproduce", name, "--only", text]:
                assert text == findings.SAMPLE or any(text in run for run in names[name]), command
            case words:
                assert words[0] in ("pytest", "python") or words[:3] == ["varitext", "data", "fetch"], command
