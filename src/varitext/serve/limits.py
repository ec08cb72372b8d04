"""How much one request may ask for, and what is said to one that asks for more."""

from dataclasses import dataclass

# Part of the documented API: the schema carries them.
TEXT_CHARACTERS = 100_000
TEXTS = 64
QUESTION_CHARACTERS = 2_000
CANDIDATE_CHARACTERS = 5_000
CANDIDATES = 200
SAMPLES = 100
WORD_CHARACTERS = 200


@dataclass(frozen=True)
class Limits:
    """What the machine bears, whatever is asked."""

    body_bytes: int = 2_000_000
    seconds: float = 30.0  # for one answer, waiting included
    queue: int = 256  # requests that wait for one model


class Refusal(Exception):
    """An answer other than 200, in one line for people."""

    def __init__(self, status: int, message: str, retry_after: int | None = None):
        super().__init__(message)
        self.status = status
        self.message = message
        self.retry_after = retry_after  # seconds
