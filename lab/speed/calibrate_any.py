"""Calibration with 50 questions of another domain, and stated against observed coverage and precision for any ranker.

transfer     a ranker fitted on one set, calibrated with 50 random questions of the other, measured on its other
             questions; QASent also with the right answers of a quarter of its questions removed
any_ranker   `CalibratedRanker` on scores of BM25, of untrained MiniLM and of a ranker fitted on the other set: random
             halves of dev and training questions, and test questions by a fit on all of these

Needs the extra `minilm`.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from varitext import AnswerRanker, CalibratedRanker
from varitext.answers.baselines import corpus_bm25
from varitext.answers.prediction import log_odds
from varitext.answers.recalibration import LabelledScores, ProbabilityQuality, ScoreModel
from varitext.corpora import load_questions
from varitext.corpora.question_answers import QuestionAnswers, canonical_order, choose_questions
from varitext.errors import InputError

TRAIN = {"wikiqa": "train", "qasent": "train-all"}
FITTED = "overlap"
DRAWS, SPLITS = 20, 10
LABELLED = 50
COVERAGES, PRECISIONS = (0.8, 0.9, 0.95), (0.5, 0.7, 0.8, 0.9)
CONFIDENCE = 0.9
ROBBED = 0.25


def measure(quick: bool) -> dict[str, Any]:
    fitted = {name: fitted_on(name, quick) for name in TRAIN}
    scale = 0.2 if quick else 1.0
    return {
        "fitted": FITTED,
        "n_labelled": LABELLED,
        "transfer": dict(transfers(fitted, scale, DRAWS if not quick else 2)),
        "any_ranker": dict(rankers(fitted, scale, SPLITS if not quick else 2)),
    }


def fitted_on(name: str, quick: bool) -> AnswerRanker:
    train, dev = sample(name, TRAIN[name], 200 if quick else 2000), load_questions(name, "dev")
    return AnswerRanker(FITTED).fit(train, dev=dev)


def sample(name: str, part: str, number: int) -> QuestionAnswers:
    """Questions at random, in canonical order."""
    found = canonical_order(load_questions(name, part)).question_answers
    chosen = np.random.default_rng(0).permutation(found.n_questions)[:number]
    return choose_questions(found, np.isin(np.arange(found.n_questions), chosen))


def labelled(questions: QuestionAnswers, score: Callable[[QuestionAnswers], np.ndarray]) -> LabelledScores:
    return LabelledScores(score(questions), questions.labels, questions.groups)


def halves(n_questions: int, first: int, seed: int) -> np.ndarray:
    """Whether each question is among `first` randomly chosen ones."""
    return np.isin(np.arange(n_questions), np.random.default_rng(seed).permutation(n_questions)[:first])


# Transfer


def transfers(fitted: dict[str, AnswerRanker], scale: float, draws: int) -> Iterator[tuple[str, dict[str, Any]]]:
    for source, target, number in (("wikiqa", "qasent", 300), ("qasent", "wikiqa", 1000)):
        ranker = fitted[source]
        data = labelled(sample(target, TRAIN[target], int(scale * number)), by(ranker))
        yield f"{source} to {target}", transfer(data, ranker, draws)
        if target == "qasent":
            yield f"{source} to {target}, a quarter without answer", transfer(robbed(data), ranker, draws)


def by(ranker: AnswerRanker) -> Callable[[QuestionAnswers], np.ndarray]:
    return lambda questions: log_odds(ranker.predict_proba(questions))


def robbed(data: LabelledScores) -> LabelledScores:
    """Remove the right answers of some questions; questions without any candidate left are dropped."""
    losers = np.random.default_rng(0).random(len(data.answerable)) < ROBBED
    kept = ~(losers[data.question_of] & (data.labels == 1))
    scores, labels, question_of = (column[kept] for column in data)
    return LabelledScores(scores, labels, np.unique(question_of, return_inverse=True)[1])


def transfer(data: LabelledScores, ranker: AnswerRanker, draws: int) -> dict[str, Any]:
    joint, found = ranker.fitted_.joint, []
    for seed in range(draws):
        chosen = halves(len(data.answerable), LABELLED, seed)
        given, others = data.of(chosen), data.of(~chosen)
        model = ScoreModel.fit(given, joint.parameters)
        before = ProbabilityQuality.of(joint.posterior(others.scores, others.question_of), others)
        after = ProbabilityQuality.of(model.posterior(others.scores, others.question_of), others)
        by_share = abs(given.answerable.mean() - others.answerable.mean())  # an error that no method can avoid
        found.append((before.ece, after.ece, before.none_ece, after.none_ece, by_share))
    names = ("ece_before", "ece", "none_ece_before", "none_ece", "share_error")
    means = dict(zip(names, np.mean(found, 0).tolist(), strict=True))
    return means | {"draws": draws, "share_without_answer": float((~data.answerable).mean())}


# Any ranker


def rankers(fitted: dict[str, AnswerRanker], scale: float, splits: int) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, other, number in (("wikiqa", "qasent", 200), ("qasent", "wikiqa", 150)):
        parts = [sample(name, TRAIN[name], int(scale * number)), sample(name, "dev", int(scale * 1000))]
        test = sample(name, "test", int(scale * 1000))
        for ranker, score in scorers(fitted[other]).items():
            pool = together([labelled(part, score) for part in parts])
            seeds = [halves(len(pool.answerable), len(pool.answerable) // 2, seed) for seed in range(splits)]
            yield (
                f"{ranker} on {name}",
                {
                    "n_questions": len(pool.answerable),
                    "halves": observed([(pool.of(chosen), pool.of(~chosen)) for chosen in seeds]),
                    "test": observed([(pool, labelled(test, score))]),
                },
            )


def scorers(fitted: AnswerRanker) -> dict[str, Callable[[QuestionAnswers], np.ndarray]]:
    return {"bm25": corpus_bm25, "minilm": by(AnswerRanker("minilm")), f"{FITTED} fitted on the other": by(fitted)}


def together(parts: list[LabelledScores]) -> LabelledScores:
    first, second = parts
    columns = zip(first[:2], second[:2], strict=True)
    numbers = np.concatenate([first.question_of, second.question_of + len(first.answerable)])
    return LabelledScores(*map(np.concatenate, columns), numbers)


def observed(pairs: list[tuple[LabelledScores, LabelledScores]]) -> dict[str, Any]:
    """Observed coverage and precision on questions outside the fit, averaged over pairs of fit and measurement."""
    found = [once(CalibratedRanker().fit_scores(*given), others) for given, others in pairs]
    return {name: average([one[name] for one in found]) for name in found[0]}


def average(values: list[float | None]) -> float | None:
    known = [one for one in values if one is not None]
    return float(np.mean(known)) if known else None


def once(ranker: CalibratedRanker, others: LabelledScores) -> dict[str, float | None]:
    right, none = others.labels == 1, ~others.answerable
    found: dict[str, float | None] = {}
    for coverage in COVERAGES:
        predicted = ranker.predict(others.scores, others.question_of, coverage=coverage)
        held = np.bincount(others.question_of, predicted.in_set & right) > 0
        found[f"coverage_{coverage}"] = float(held[~none].mean())
        found[f"set_size_{coverage}"] = float(predicted.in_set.sum() / len(none))
    top = predicted.rank == 1
    for precision in PRECISIONS:
        for kind, confidence in (("precision", None), ("tested_precision", CONFIDENCE)):
            answered = top & (predicted.right >= threshold(ranker, precision, confidence))
            found[f"{kind}_{precision}"] = float(right[answered].mean()) if answered.any() else None
            found[f"reached_{kind}_{precision}"] = float(answered.any())
            found[f"answered_{kind}_{precision}"] = len(np.unique(others.question_of[answered])) / len(none)
    posterior = ranker.fitted_.model.posterior(ranker.fitted_.standardise(others.scores), others.question_of)
    quality = ProbabilityQuality.of(posterior, others)
    return found | {"ece": quality.ece, "none_ece": quality.none_ece, "top_right": float(right[top].mean())}


def threshold(ranker: CalibratedRanker, precision: float, confidence: float | None) -> float:
    try:
        return ranker.abstention_threshold(precision, confidence)
    except InputError:  # not reached: nothing is answered
        return 1.1
