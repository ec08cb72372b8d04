"""The report of an answer model: comparison with baselines and the paper, calibration, attention, page and figures."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from markupsafe import Markup

from varitext import paper
from varitext.answers.ranker import AnswerRanker
from varitext.answers.ranking import AnswerEvaluation, question_ids
from varitext.charts.colours import ACCENT, FAINT, WARM
from varitext.charts.records import ANSWER_CURVES, Axis, Curve, Intervals, training_curves
from varitext.corpora.question_answers import Question, QuestionAnswers, canonical_order, protocol_named, subset
from varitext.errors import InputError
from varitext.evaluation.calibration import ReliabilityCurve, TopAnswers, reliability_curve, risk_coverage, top_answers
from varitext.evaluation.columns import merge_ties
from varitext.evaluation.ranking import (
    QUESTION_WORDS,
    RankingRecord,
    counted_rows,
    question_words,
    ranking_record,
)
from varitext.evaluation.significance import Interval, bootstrap_interval
from varitext.models.answers import model_name
from varitext.paper import MapMrr
from varitext.report.attention import PER_GROUP, AnswerHeat, QuestionHeat, first_log_std, heat_figure, hinton_figure
from varitext.report.drawing import Figure, chart_figure, svg_text
from varitext.report.page import Tile, fitted_in, provenance, render, why_stopped


@dataclass(frozen=True, eq=False)
class EvaluatedAnswers:
    """One entry per pair, question after question, for the questions that count."""

    ranker: AnswerRanker
    questions: QuestionAnswers
    evaluation: AnswerEvaluation
    ids: np.ndarray  # [P] of the question, as in `evaluation.ranking`
    probability: np.ndarray  # [P] of being right
    best: np.ndarray  # [P] of being the best right answer, given that there is one

    @cached_property
    def question_by_id(self) -> dict[object, Question]:
        every = (self.questions.questions[group] for group in self.questions.groups)
        return dict(zip(self.ids.tolist(), every, strict=True))

    @cached_property
    def top(self) -> TopAnswers:
        return top_answers(self.probability, self.questions.labels, self.ids)

    @property
    def has_latent(self) -> bool:
        return self.ranker.fitted_.network.has_latent

    @cached_property
    def log_std(self) -> dict[str, np.ndarray]:
        """Log standard deviations for the Hinton diagram; empty if the latent variable has collapsed."""
        return first_log_std(self.ranker, self.questions) if self.ranker.fitted_.latent_carries else {}

    @cached_property
    def curves(self) -> list[Curve]:
        """Training curves; without a latent variable there is no KL."""
        measures = [one for one in ANSWER_CURVES if self.has_latent or not one.of_kl]
        return training_curves(self.ranker.fitted_.history, measures, self.ranker.fitted_.dev_map)


def evaluate_answers(ranker: AnswerRanker, question_answers: QuestionAnswers, protocol: str) -> EvaluatedAnswers:
    """Evaluate the ranker exactly as `AnswerRanker.evaluate` does."""
    ordered = canonical_order(question_answers).question_answers
    evaluation, posterior = ranker.evaluate(ordered, protocol, baselines=False), ranker.ranking_posterior(ordered)
    given = posterior.given_answer()
    said = given if protocol_named(protocol).needs_right else posterior
    rows = counted_rows(ordered.labels, ordered.groups, protocol)
    ids, counted = question_ids(ordered)[rows], subset(ordered, protocol)
    return EvaluatedAnswers(ranker, counted, evaluation, ids, said.right[rows], given.best[rows])


# Comparison

MEASURES = ("MAP", "MRR")


class Compared(NamedTuple):
    """One row: a value for each of `MEASURES`; the paper gives no intervals."""

    name: str
    values: tuple[float, float]
    intervals: tuple[tuple[float, float], tuple[float, float]] | None
    colour: str


def compared(evaluated: EvaluatedAnswers) -> list[Compared]:
    """Baselines first, then the model, then the paper."""
    measured = baselines(evaluated) | {system_name(evaluated.ranker): evaluated.evaluation.ranking}
    colours = [FAINT] * (len(measured) - 1) + [ACCENT]
    rows = [
        Compared(name, (one.map, one.mrr), (one.map_interval_95, one.mrr_interval_95), colour)
        for (name, one), colour in zip(measured.items(), colours, strict=True)
    ]
    return rows + [Compared(f"paper: {name}", values, None, WARM) for name, values in paper_rows(evaluated).items()]


def comparison(rows: list[Compared], measure: str) -> Intervals:
    """One line per row, with its 95 % interval over questions."""
    place = MEASURES.index(measure)
    values = [row.values[place] for row in rows]
    ends = [row.intervals[place] if row.intervals else (value, value) for row, value in zip(rows, values, strict=True)]
    hover = [
        f"{value:.4f}" + (f" ({low:.3f} to {high:.3f})" if row.intervals else "")
        for row, value, (low, high) in zip(rows, values, ends, strict=True)
    ]
    low, high = np.transpose(ends)
    names, colours = [row.name for row in rows], [row.colour for row in rows]
    return Intervals(names, np.array(values), low, high, colours, hover, Axis(measure))


def baselines(evaluated: EvaluatedAnswers) -> dict[str, RankingRecord]:
    """Rankings that do not read the sentences, on the same questions under the same protocol."""
    questions = evaluated.questions
    features = evaluated.ranker.fitted_.overlap.features(questions)
    column = dict(zip(features.columns, features.values.T, strict=True))
    scores = {
        "random order": np.zeros(questions.n_pairs),
        "word overlap": column["word_overlap_all"],
        "word overlap, idf-weighted": column["idf_overlap_all"],
        "position in the document": -column["log_position"],
    }
    protocol = evaluated.evaluation.ranking.protocol
    return {
        name: ranking_record(values, questions.labels, evaluated.ids, protocol)
        for name, values in scores.items()
        if np.isfinite(values).all()
    }


def system_name(ranker: AnswerRanker) -> str:
    """The name of the ranker's model in Table 4 of the paper."""
    joined = {} if ranker.fitted_.combination is None else {"Cnt": ranker.counts, "position": ranker.position}
    suffix = "".join(f" + {name}" for name, on in joined.items() if on)
    return paper.ANSWER_SYSTEMS.get(model_name(ranker.model), model_name(ranker.model)) + suffix


def paper_rows(evaluated: EvaluatedAnswers) -> dict[str, MapMrr]:
    """The paper's values for the same system, without and with counts, on the scale of this protocol, if it has any."""
    evaluation = evaluated.evaluation
    corpus, protocol = evaluation.corpus, evaluation.ranking.protocol
    if evaluation.part != "test" or protocol not in paper.ANSWER_PROTOCOLS.get(corpus, ()):
        return {}
    rows, name = paper.ANSWERS[corpus], paper.ANSWER_SYSTEMS.get(model_name(evaluated.ranker.model), "")
    same = [one for one in (name, f"{name} + Cnt") if one in rows] or ["NASM + Cnt"]
    scale = protocol_named(protocol).scale / paper.ANSWER_SCALE[corpus]
    return {one: MapMrr(scale * rows[one].map, scale * rows[one].mrr) for one in same}


# Calibration

BINS = 10
MIN_ANSWERS = 10  # at the first point of a curve: with fewer, a single answer decides
NORMAL_95 = 1.96


def reliability_of_right(evaluated: EvaluatedAnswers) -> ReliabilityCurve:
    """Reliability of the probability of being right, over all pairs."""
    return reliability_curve(evaluated.probability, evaluated.questions.labels, BINS, "equal-width")


def reliability_of_best(evaluated: EvaluatedAnswers) -> ReliabilityCurve:
    """Reliability of the probability of being best, given that some answer is right; other questions are left out."""
    questions = evaluated.questions
    has_right = (np.bincount(questions.groups, questions.labels) > 0)[questions.groups]
    return reliability_curve(evaluated.best[has_right], is_best(evaluated)[has_right], BINS, "equal-width")


def is_best(evaluated: EvaluatedAnswers) -> np.ndarray:
    """Whether each candidate is the most probable right answer to its question; ties go to the first."""
    labels, groups = evaluated.questions.labels, evaluated.questions.groups
    right = np.flatnonzero(labels)
    surest_first = right[np.lexsort((right, -evaluated.probability[right], groups[right]))]
    best = np.zeros(len(labels), np.int8)
    best[surest_first[np.unique(groups[surest_first], return_index=True)[1]]] = 1
    return best


def calibration_charts(evaluated: EvaluatedAnswers) -> list[Curve]:
    right, best = reliability_of_right(evaluated), reliability_of_best(evaluated)
    return [_calibration_chart(right, "right", ACCENT), _calibration_chart(best, "best", WARM)]


def _calibration_chart(curve: ReliabilityCurve, what: str, colour: str) -> Curve:
    predicted, found = curve.mean_probability, curve.share_right
    low, high = wilson_interval(found, curve.count)
    edge = min(1.05 * float(max(predicted.max(), high.max())), 1.03)
    limits = (-0.03 * edge, edge)
    rows = zip(predicted, found, curve.count, strict=True)
    return Curve(
        predicted,
        found,
        (Axis(f"predicted probability of being {what}", limits), Axis(f"share that is {what}", limits)),
        [f"predicted {x:.3f}, observed {y:.3f} in {count:,} pairs" for x, y, count in rows],
        colour,
        marker=8,
        interval=(low, high),
        reference=((0, 0), (edge, edge)),
        height=380,
    )


def wilson_interval(share: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's 95 % interval of a share of `count` draws, which is also valid near 0 and 1."""
    squared = NORMAL_95**2 / count
    middle = (share + squared / 2) / (1 + squared)
    half = NORMAL_95 * np.sqrt(share * (1 - share) / count + squared / (4 * count)) / (1 + squared)
    return middle - half, middle + half


def risk_curve(evaluated: EvaluatedAnswers) -> Curve:
    """The share of wrong first answers when only the questions with the highest confidence are answered."""
    curve = risk_coverage(evaluated.top.confidence, evaluated.top.right)
    first, risk = min(MIN_ANSWERS, len(curve.risk)) - 1, curve.at(1.0)
    coverage, wrong = curve.coverage[first:], curve.risk[first:]
    answered = Axis("questions answered, highest confidence first", (0, 1.02), percent=True)
    hover = [f"{x:.0%} of the questions answered: {y:.1%} wrong" for x, y in zip(coverage, wrong, strict=True)]
    axes = (answered, Axis("first answer is wrong", from_zero=True, percent=True))
    return Curve(coverage, wrong, axes, hover, reference=((0, risk), (1.02, risk)))


# Question words


class WordResult(NamedTuple):
    question_word: str
    n_questions: int
    average_precision: Interval


def results_by_word(evaluated: EvaluatedAnswers) -> list[WordResult]:
    """MAP and its interval over questions for each question word, the most frequent first."""
    ranking, seed = evaluated.evaluation.ranking, evaluated.ranker.seed
    words = question_words(evaluated.question_by_id[one].text for one in ranking.question_ids.tolist())
    values = {word: ranking.average_precision[words == word] for word in QUESTION_WORDS}
    found = [WordResult(word, len(one), bootstrap_interval(one, seed=seed)) for word, one in values.items() if len(one)]
    return sorted(found, key=lambda one: -one.n_questions)


def question_word_chart(results: list[WordResult]) -> Intervals:
    names = [f"{one.question_word} ({one.n_questions:,})" for one in results]
    values = [one.average_precision for one in results]
    mean, low, high = np.array([(value.mean, value.low, value.high) for value in values]).T
    hover = [f"MAP {value.mean:.4f} ({value.low:.3f} to {value.high:.3f})" for value in values]
    return Intervals(names, mean, low, high, [ACCENT] * len(results), hover, Axis("MAP", (0, 1.02)))


# Attention

QUESTIONS = 6
FIRST_ANSWERS = 3
RULE = (
    f"{QUESTIONS} questions, evenly spaced from the highest to the lowest probability of their first answer; "
    f"of each, the first {FIRST_ANSWERS} answers, and the first right one if it is not among them"
)


def attention_heat(evaluated: EvaluatedAnswers, number: int = QUESTIONS) -> list[QuestionHeat]:
    """Questions that count, chosen by `RULE`; none for a model without attention."""
    surest_first = np.argsort(-merge_ties(evaluated.top.confidence), kind="stable")
    places = np.unique(np.linspace(0, len(surest_first) - 1, min(number, len(surest_first))).round().astype(int))
    ids = evaluated.top.question_ids[surest_first[places]].tolist()
    return list(_heats(evaluated, [evaluated.question_by_id[one] for one in ids]))


def _heats(evaluated: EvaluatedAnswers, questions: Sequence[Question]) -> Iterator[QuestionHeat]:
    ranker = evaluated.ranker
    with_spread = ranker.fitted_.latent_carries or not evaluated.has_latent
    for question in questions:
        texts = [one.text for one in question.candidates]
        positions = [one.position for one in question.candidates] if ranker.reads_positions else None
        try:
            ranked = ranker.rank(question.text, texts, positions=positions).candidates
        except InputError:  # no word is known to the model, so there is no attention to show
            continue
        answers = [AnswerHeat(one, bool(question.candidates[one.place].label), with_spread) for one in ranked]
        first, others = answers[:FIRST_ANSWERS], answers[FIRST_ANSWERS:]
        if not any(answer.right for answer in first):
            first += [answer for answer in others if answer.right][:1]
        attended = tuple(answer for answer in first if answer.candidate.attention_mean)
        if attended:
            yield QuestionHeat(question.text, attended)


# Headline


def answer_tiles(evaluation: AnswerEvaluation) -> list[Tile]:
    """The tiles of the report; the first is shown large."""
    ranking, calibration, uncertainty = evaluation.ranking, evaluation.calibration, evaluation.uncertainty
    map_interval, mrr_interval = (
        f"95 % interval {low:.3f} to {high:.3f}" for low, high in (ranking.map_interval_95, ranking.mrr_interval_95)
    )
    half = f"{1 - calibration.risk_of_surer_half:.1%} in the half with the highest confidence"
    left_out = f"{ranking.n_questions_left_out:,} do not count" if ranking.n_questions_left_out else "all count"
    best = f"predicted for first answers; {uncertainty.top_is_right:.1%} of them are right"
    coverage = f"of true ranks; nominal coverage {uncertainty.nominal_coverage:.1%}"
    return [
        Tile("MAP", f"{ranking.map:.4f}", f"{map_interval}, over questions; higher is better"),
        Tile("MRR", f"{ranking.mrr:.4f}", mrr_interval),
        Tile("first answer is right", f"{1 - calibration.risk:.1%}", half),
        Tile("probability of being best", f"{uncertainty.top_probability_best:.1%}", best),
        Tile("coverage of rank intervals", f"{uncertainty.rank_interval_coverage:.1%}", coverage),
        Tile("log loss", f"{calibration.log_loss:.4f}", "nats per pair; lower is better"),
        Tile("calibration error", f"{calibration.ece:.4f}", f"expected, over {calibration.ece_binning} bins"),
        Tile("questions", f"{ranking.n_questions:,}", left_out),
        Tile("pairs", f"{ranking.n_pairs:,}", f"{calibration.share_right:.1%} are right"),
    ]


def answer_facts(ranker: AnswerRanker, evaluation: AnswerEvaluation, source: QuestionAnswers) -> dict[str, str]:
    fitted, ranking = ranker.fitted_, evaluation.ranking
    latent = f", {fitted.architecture['latent_dim']} latent dimensions" if fitted.network.has_latent else ""
    joined = "" if fitted.combination is None else f", combined with {', '.join(fitted.combination.columns[1:])}"
    pairs = f"{fitted.n_training_questions:,} questions with {fitted.n_training_pairs:,} pairs"
    dev = f"early stopping on {fitted.n_dev_questions:,} questions (dev MAP {fitted.dev_map:.4f})"
    facts = {
        "corpus": f"{evaluation.corpus} ({evaluation.part})",
        "SHA-256": source.sha256,
        "protocol": f"{ranking.protocol}: {ranking.questions}; ties: {ranking.ties}",
        "model": f"{model_name(ranker.model)}{latent}, {len(fitted.vocabulary.words):,} words{joined}",
        "fitted": f"on {pairs} {fitted_in(fitted.fit_seconds, ranker.seed)}; {dev}",
        "stopped": why_stopped(fitted.stopped, "dev MAP"),
    }
    return facts | ({"samples": f"{evaluation.n_samples:,} of h per question"} if fitted.network.has_latent else {})


# Page


def answer_page(evaluated: EvaluatedAnswers, source: QuestionAnswers, folder: Path | None = None) -> str:
    """The report as HTML; `folder` is the model folder, if there is one."""
    evaluation, ranker, rows = evaluated.evaluation, evaluated.ranker, compared(evaluated)
    log_std = evaluated.log_std
    return render(
        "answers.html",
        name=f"{evaluation.corpus} ({evaluation.part})",
        tiles=answer_tiles(evaluation),
        facts=answer_facts(ranker, evaluation, source),
        tables=provenance(evaluation.as_dict(), ranker, source, folder),
        ranking=evaluation.ranking,
        comparisons={measure: comparison(rows, measure) for measure in MEASURES},
        is_in_paper=bool(paper_rows(evaluated)),
        calibration=evaluation.calibration,
        calibration_charts=calibration_charts(evaluated),
        risk=risk_curve(evaluated),
        by_word=question_word_chart(results_by_word(evaluated)),
        heats=attention_heat(evaluated),
        rule=RULE,
        model=model_name(ranker.model),
        smoothing=ranker.recipe.smoothing,
        has_latent=evaluated.has_latent,
        latent_carries=ranker.fitted_.latent_carries,
        n_samples=evaluation.n_samples,
        per_word=PER_GROUP,
        largest_log_std=max((abs(array).max() for array in log_std.values()), default=0.0),
        hinton=Markup(svg_text(hinton_figure({"": log_std}), paper="none")) if log_std else "",
        curves=evaluated.curves,
    )


# Figures

WIDE = 760.0


def _comparison(evaluated: EvaluatedAnswers) -> Figure:
    rows = compared(evaluated)
    return chart_figure(f"On {_questions(evaluated)}", [comparison(rows, measure) for measure in MEASURES])


def _calibration(evaluated: EvaluatedAnswers) -> Figure:
    return chart_figure(f"Calibration on {_questions(evaluated)}", calibration_charts(evaluated))


def _risk_coverage(evaluated: EvaluatedAnswers) -> Figure:
    return chart_figure(f"Risk by coverage on {_questions(evaluated)}", [risk_curve(evaluated)], WIDE)


def _question_words(evaluated: EvaluatedAnswers) -> Figure:
    chart = question_word_chart(results_by_word(evaluated))
    return chart_figure(f"By question word, {_questions(evaluated)}", [chart], WIDE)


def _questions(evaluated: EvaluatedAnswers) -> str:
    evaluation = evaluated.evaluation
    number, protocol = evaluation.ranking.n_questions, evaluation.ranking.protocol
    return f"{number:,} questions of {evaluation.corpus} ({evaluation.part}, {protocol})"


ANSWER_FIGURES: dict[str, Callable[[EvaluatedAnswers], Figure | None]] = {
    "comparison": _comparison,
    "calibration": _calibration,
    "risk-coverage": _risk_coverage,
    "question-words": _question_words,
    "attention": lambda evaluated: heat_figure(attention_heat(evaluated)),
    "hinton": lambda evaluated: hinton_figure({"": evaluated.log_std}) if evaluated.log_std else None,
    "training": lambda evaluated: chart_figure("Training", evaluated.curves) if evaluated.curves else None,
}
"""A function returns None if the model has nothing to show."""
