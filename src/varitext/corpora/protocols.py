"""Which questions of a corpus count when a ranking is measured. Papers differ in this more than in their models."""

from typing import NamedTuple

import numpy as np

from varitext.errors import InputError


class Protocol(NamedTuple):
    """Which questions count, and the factor on their values."""

    questions: str  # in words
    needs_right: bool
    needs_wrong: bool
    scale: float = 1.0

    def counts(self, n_right: np.ndarray, n_candidates: np.ndarray) -> np.ndarray:
        """Whether each question counts, from its numbers of right answers and of candidates."""
        enough_right = (n_right > 0) | (not self.needs_right)
        return enough_right & ((n_right < n_candidates) | (not self.needs_wrong))


PROTOCOLS = {
    "answerable": Protocol("questions with a right answer (WikiQA test: 243)", needs_right=True, needs_wrong=False),
    "both": Protocol(
        "questions with a right and a wrong answer (WikiQA test: 237; QASent test: 68, called clean)",
        needs_right=True,
        needs_wrong=True,
    ),
    "all": Protocol(
        "every question, 0 for one without a right answer, as trec_eval does (WikiQA test: 633; QASent raw test: 95)",
        needs_right=False,
        needs_wrong=False,
    ),
    # The early QASent script took 72 test questions, of which no system could get 4 right; so does the paper, it seems
    "paper-qasent": Protocol(
        "as `both`, times 68/72: 4 of 72 questions always count as wrong",
        needs_right=True,
        needs_wrong=True,
        scale=68 / 72,
    ),
}
PROTOCOLS |= {"clean": PROTOCOLS["both"], "raw": PROTOCOLS["all"]}  # as they are called for QASent


def protocol_named(name: str) -> Protocol:
    if name not in PROTOCOLS:
        raise InputError(f"no protocol is called {name!r}; there are {', '.join(PROTOCOLS)}")
    return PROTOCOLS[name]
