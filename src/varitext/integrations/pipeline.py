"""A ranker in a pipeline: loaded from a folder or by name, used from any thread, its figures added to metadata."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from varitext.answers.calibrated import CalibratedRanker
from varitext.answers.ranker import AnswerRanker
from varitext.answers.ranking import RankedCandidate, Ranking
from varitext.errors import InputError
from varitext.loading import load_ranker, untrained_ranker
from varitext.models.answers import ANSWER_MODELS

Ranker = AnswerRanker | CalibratedRanker
RankerSource = Ranker | str | Path
"""A fitted ranker, the folder of an AnswerRanker, or the name of a model that needs no fit."""

ONE_AT_A_TIME = threading.Lock()  # torch has one random state and one number of threads per process


def ranker_from(source: RankerSource) -> Ranker:
    """The ranker itself, the one in the folder, or the one of that name; a folder takes precedence over a name."""
    if isinstance(source, Ranker):
        return source
    if Path(source).exists():
        return load_ranker(Path(source))
    if str(source) in ANSWER_MODELS:
        return untrained_ranker(str(source))
    raise InputError(f"{source}: no such model folder. minilm and bm25 need none.")


def source_name(source: RankerSource) -> str:
    """The folder or name that a pipeline's file records, to load the ranker again."""
    if isinstance(source, CalibratedRanker):
        raise InputError("a score function cannot be part of a file: build pipelines with a CalibratedRanker in Python")
    if isinstance(source, AnswerRanker):
        raise InputError("a ranker in memory cannot be part of a file: save it, and give the pipeline its folder")
    return str(source)


def check_limits(top: int | None, abstain: float | None) -> None:
    """The settings that all adapters share, checked before anything is loaded."""
    if top is not None and top < 1:
        raise InputError(f"at least 1 document must be kept, not {top}")
    if abstain is not None and not 0 <= abstain <= 1:
        raise InputError(f"abstain is a probability, from 0 to 1, not {abstain}")


def rank(
    ranker: Ranker,
    query: str,
    texts: Sequence[str],
    abstain: float | None,
    samples: int | None = None,
    attention: bool = False,
) -> Ranking:
    """Rank as `AnswerRanker.rank`, but without an error if all words are unknown: such texts have probability 0."""
    if isinstance(ranker, CalibratedRanker):
        return ranker.rank(query, texts, abstain=abstain)
    with ONE_AT_A_TIME:
        return ranker.rank_many([(query, texts)], samples, abstain, attention)[0]


class BestTexts(NamedTuple):
    kept: tuple[RankedCandidate, ...]  # none if the ranker abstains
    probability_none: float
    answered: bool  # False if the ranker abstains
    unfamiliar: str | None = None  # as in `Ranking`

    def metadata(self, one: RankedCandidate) -> dict[str, Any]:
        """What a document's metadata gains besides its score, P(right); all of it is plain, for JSON."""
        added = {
            "probability_best": one.probability_best,
            "probability_none": self.probability_none,
            "rank_interval": list(one.rank_interval),
            "window": None if one.window is None else list(one.window),
            "unfamiliar": self.unfamiliar,
        }
        return {name: value for name, value in added.items() if value is not None}


def best_texts(ranker: Ranker, query: str, texts: Sequence[str], top: int | None, abstain: float | None) -> BestTexts:
    """The best `top` texts (None: all), or none if the ranker abstains."""
    if not texts:
        return BestTexts((), probability_none=1.0, answered=not abstain)
    ranking = rank(ranker, query, texts, abstain)
    kept = ranking.candidates[:top] if ranking.answered else ()
    return BestTexts(kept, ranking.probability_none, ranking.answered, ranking.unfamiliar)
