"""What the columns of a user's table of questions are, and from which grade on an answer is right."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

_LABELS = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "false": 0, "true": 1}  # as JSON, csv and pandas write them


@dataclass(frozen=True)
class QuestionColumns:
    """None: it has its usual name, `question`, `answer`, `label`, `question_id`; the last two need not be there."""

    question_column: str | None = None
    answer_column: str | None = None
    label_column: str | None = None
    id_column: str | None = None  # of the question; rows of one question share it
    min_relevance: float | None = None  # labels are grades, and those of this grade or higher are right

    @property
    def question(self) -> str:
        return self.question_column or "question"

    @property
    def answer(self) -> str:
        return self.answer_column or "answer"

    @property
    def label(self) -> str:
        return self.label_column or "label"

    @property
    def question_id(self) -> str:
        return self.id_column or "question_id"

    def as_dict(self) -> dict[str, str | float]:
        """What was said, for the model folder."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def recorded(cls, corpus: Mapping[str, Any]) -> "QuestionColumns":
        """Those that a model folder has recorded of its corpus."""
        return cls(**{name: corpus.get(name) for name in asdict(cls())})

    def is_right(self, value: object) -> int | None:
        """1 for a label that says right, 0 for one that says wrong, None for what is neither."""
        if self.min_relevance is None:
            return _LABELS.get(str(value).strip().lower())
        try:
            grade = float(str(value))
        except ValueError:
            return None
        return None if math.isnan(grade) else int(grade >= self.min_relevance)


USUAL_COLUMNS = QuestionColumns()
