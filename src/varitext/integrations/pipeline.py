"""A ranker in a pipeline: loaded from a folder or by name, used from any thread, its figures added to metadata."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from varitext.answers.ranker import AnswerRanker
from varitext.answers.ranking import RankedCandidate
from varitext.errors import InputError
from varitext.loading import load_ranker, untrained_ranker
from varitext.models.answers import ANSWER_MODELS

RankerSource = AnswerRanker | str | Path
"""A fitted ranker, a model folder, or the name of a model that needs no fit."""

ONE_AT_A_TIME = threading.Lock()  # torch has one random state and one number of threads per process


def ranker_from(source: RankerSource) -> AnswerRanker:
    """The ranker itself, the one in the folder, or the one of that name; a folder goes before a name."""
    if isinstance(source, AnswerRanker):
        return source
    if Path(source).exists():
        return load_ranker(Path(source))
    if str(source) in ANSWER_MODELS:
        return untrained_ranker(str(source))
    raise InputError(f"{source}: no such model folder. minilm and bm25 need none.")


def source_name(source: RankerSource) -> str:
    """What a pipeline that is written to a file says, to load the ranker again."""
    if isinstance(source, AnswerRanker):
        raise InputError("a ranker in memory cannot be part of a file: save it, and give the pipeline its folder")
    return str(source)


def check_limits(top: int | None, abstain: float | None) -> None:
    """The settings that all adapters share, checked before anything is loaded."""
    if top is not None and top < 1:
        raise InputError(f"at least 1 document must be kept, not {top}")
    if abstain is not None and not 0 <= abstain <= 1:
        raise InputError(f"abstain is a probability, from 0 to 1, not {abstain}")


class RankedTexts(NamedTuple):
    kept: tuple[RankedCandidate, ...]  # the best first; none if the ranker abstains
    probability_none: float
    answered: bool  # False if the ranker abstains

    def metadata(self, one: RankedCandidate) -> dict[str, Any]:
        """What a document's metadata gains beside its score, P(right); all of it is plain, for JSON."""
        return {
            "probability_best": one.probability_best,
            "probability_none": self.probability_none,
            "rank_interval": list(one.rank_interval),
        }


def rank(ranker: AnswerRanker, query: str, texts: Sequence[str], top: int | None, abstain: float | None) -> RankedTexts:
    """The best texts. Without a word that the ranker knows they have probability 0, which is no error in a pipeline."""
    if not texts:
        return RankedTexts((), probability_none=1.0, answered=not abstain)
    with ONE_AT_A_TIME:
        (ranking,) = ranker.rank_many([(query, texts)], abstain=abstain)
    kept = ranking.candidates[:top] if ranking.answered else ()
    return RankedTexts(kept, ranking.probability_none, ranking.answered)
