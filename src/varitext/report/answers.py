"""The report of an answer model: evaluation, comparison with baselines and the paper, calibration, page and figures."""

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
from varitext.corpora.question_answers import Question, QuestionAnswers, canonical_order, protocol_named, subset
from varitext.errors import InputError
from varitext.evaluation.calibration import ReliabilityCurve, TopAnswers, reliability_curve, risk_coverage, top_answers
from varitext.evaluation.columns import merge_ties
from varitext.evaluation.ranking import QUESTION_WORDS, RankingRecord, counted_rows, question_words, ranking_record
from varitext.evaluation.significance import Interval, bootstrap_interval
from varitext.paper import MapMrr
from varitext.report.attention import PER_GROUP, AnswerHeat, QuestionHeat, first_log_std, heat_figure, hinton_figure
from varitext.report.charts import ACCENT, FAINT, WARM, Axis, Curve, Intervals, answer_measures, training_curves
from varitext.report.drawing import Figure, chart_figure, svg_text
from varitext.report.page import Fact, Tile, duration, fingerprint, provenance, render, why_stopped

# Evaluation


@dataclass(frozen=True, eq=False)
class EvaluatedAnswers:
    """One entry per pair of the questions that count, question after question."""

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


class Baseline(NamedTuple):
    """A ranking that reads no sentence."""

    name: str
    ranking: RankingRecord


def evaluate_answers(ranker: AnswerRanker, question_answers: QuestionAnswers, protocol: str) -> EvaluatedAnswers:
    """The evaluation is that of `AnswerRanker.evaluate`, to the bit."""
    arranged = canonical_order(question_answers).question_answers
    evaluation, posterior = ranker.evaluate(arranged, protocol), ranker.ranking_posterior(arranged)
    given = posterior.given_answer()
    said = given if protocol_named(protocol).needs_right else posterior
    counted, rows = subset(arranged, protocol), counted_rows(arranged.labels, arranged.groups, protocol)
    return EvaluatedAnswers(
        ranker, counted, evaluation, question_ids(arranged)[rows], said.right[rows], given.best[rows]
    )


def baselines(evaluated: EvaluatedAnswers) -> list[Baseline]:
    """What no ranking should fall below, on the same questions under the same protocol."""
    questions = evaluated.questions
    features = evaluated.ranker.fitted_.overlap.features(questions)
    column = dict(zip(features.columns, features.values.T, strict=True))
    scores = {
        "random order": np.zeros(questions.n_pairs),
        "word count": column["word_overlap_all"],
        "word count weighed by idf": column["idf_overlap_all"],
        "place in its document": -column["log_position"],
    }
    protocol = evaluated.evaluation.ranking.protocol
    return [
        Baseline(name, ranking_record(values, questions.labels, evaluated.ids, protocol))
        for name, values in scores.items()
        if np.isfinite(values).all()
    ]


def is_best(evaluated: EvaluatedAnswers) -> np.ndarray:
    """Whether each candidate is the most probable of the right ones of its question; of equal ones the first is."""
    labels, groups = evaluated.questions.labels, evaluated.questions.groups
    right = np.flatnonzero(labels)
    surest_first = right[np.lexsort((right, -evaluated.probability[right], groups[right]))]
    best = np.zeros(len(labels), np.int8)
    best[surest_first[np.unique(groups[surest_first], return_index=True)[1]]] = 1
    return best


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
    rows = [_measured(baseline.name, baseline.ranking, FAINT) for baseline in baselines(evaluated)]
    rows.append(_measured(system_name(evaluated), evaluated.evaluation.ranking, ACCENT))
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


def system_name(evaluated: EvaluatedAnswers) -> str:
    """As Table 4 calls it."""
    ranker = evaluated.ranker
    joined: dict[str, bool] = (
        {} if ranker.fitted_.combination is None else {"Cnt": ranker.counts, "position": ranker.position}
    )
    suffix = "".join(f" + {name}" for name, on in joined.items() if on)
    return paper.ANSWER_SYSTEMS.get(ranker.model, ranker.model) + suffix


def paper_rows(evaluated: EvaluatedAnswers) -> dict[str, MapMrr]:
    """Of the same system without and with counts, on the scale of this protocol; none for other data."""
    evaluation = evaluated.evaluation
    corpus, protocol = evaluation.corpus, evaluation.ranking.protocol
    if evaluation.part != "test" or protocol not in paper.ANSWER_PROTOCOLS.get(corpus, ()):
        return {}
    rows, name = paper.ANSWERS[corpus], paper.ANSWER_SYSTEMS.get(evaluated.ranker.model, "")
    same = [one for one in (name, f"{name} + Cnt") if one in rows] or ["NASM + Cnt"]
    scale = protocol_named(protocol).scale / paper.ANSWER_SCALE[corpus]
    return {one: MapMrr(scale * rows[one].map, scale * rows[one].mrr) for one in same}


def _measured(name: str, ranking: RankingRecord, colour: str) -> Compared:
    intervals = (ranking.map_interval_95, ranking.mrr_interval_95)
    return Compared(name, (ranking.map, ranking.mrr), intervals, colour)


# Calibration

BINS = 10
MIN_ANSWERS = 10  # of a curve's first point: below, a single answer decides
NORMAL_95 = 1.96


def reliability_of_right(evaluated: EvaluatedAnswers) -> ReliabilityCurve:
    """Of the probability of being right: all pairs, by tenths of the probability."""
    return reliability_curve(evaluated.probability, evaluated.questions.labels, BINS, "equal-width")


def reliability_of_best(evaluated: EvaluatedAnswers) -> ReliabilityCurve:
    """Of the probability of being best, which is given that an answer is right: questions without one are left out."""
    questions = evaluated.questions
    has_right = (np.bincount(questions.groups, questions.labels) > 0)[questions.groups]
    return reliability_curve(evaluated.best[has_right], is_best(evaluated)[has_right], BINS, "equal-width")


def calibration_charts(evaluated: EvaluatedAnswers) -> list[Curve]:
    return [
        _reliability(reliability_of_right(evaluated), "right", ACCENT),
        _reliability(reliability_of_best(evaluated), "best", WARM),
    ]


def risk_curve(evaluated: EvaluatedAnswers) -> Curve:
    """Wrong first answers among those that are kept, when the questions with the least sure ones are withheld."""
    curve = risk_coverage(evaluated.top.confidence, evaluated.top.right)
    first, risk = min(MIN_ANSWERS, len(curve.risk)) - 1, curve.at(1.0)
    coverage, wrong = curve.coverage[first:], curve.risk[first:]
    return Curve(
        coverage,
        wrong,
        (
            Axis("questions answered, surest first", (0, 1.02), percent=True),
            Axis("first answer is wrong", from_zero=True, percent=True),
        ),
        [f"surest {x:.0%} of the questions: {y:.1%} wrong" for x, y in zip(coverage, wrong, strict=True)],
        reference=((0, risk), (1.02, risk)),
    )


def wilson_interval(share: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """95 % interval of a share of `count` draws: honest near 0 and 1, where plus or minus is not."""
    squared = NORMAL_95**2 / count
    middle = (share + squared / 2) / (1 + squared)
    half = NORMAL_95 * np.sqrt(share * (1 - share) / count + squared / (4 * count)) / (1 + squared)
    return middle - half, middle + half


def _reliability(curve: ReliabilityCurve, what: str, colour: str) -> Curve:
    said, found = curve.mean_probability, curve.share_right
    low, high = wilson_interval(found, curve.count)
    edge = min(1.05 * float(max(said.max(), high.max())), 1.03)
    limits = (-0.03 * edge, edge)
    pairs = zip(said, found, curve.count, strict=True)
    return Curve(
        said,
        found,
        (Axis(f"probability of being {what}", limits), Axis(f"share that is {what}", limits)),
        [f"said {x:.3f}, found {y:.3f} in {count:,} pairs" for x, y, count in pairs],
        colour,
        marker=8,
        interval=(low, high),
        reference=((0, 0), (edge, edge)),
        height=380,
    )


# Question words


class WordResult(NamedTuple):
    question_word: str
    n_questions: int
    average_precision: Interval


def results_by_word(evaluated: EvaluatedAnswers) -> list[WordResult]:
    """MAP and its interval over questions, for every question word that is there, the most frequent first."""
    ranking = evaluated.evaluation.ranking
    words = question_words(evaluated.question_by_id[one].text for one in ranking.question_ids.tolist())
    found = [
        WordResult(
            word,
            int((words == word).sum()),
            bootstrap_interval(ranking.average_precision[words == word], seed=evaluated.ranker.seed),
        )
        for word in QUESTION_WORDS
        if (words == word).any()
    ]
    return sorted(found, key=lambda one: -one.n_questions)


def question_word_chart(results: list[WordResult]) -> Intervals:
    """One line per question word, with its 95 % interval."""
    values = [one.average_precision for one in results]
    return Intervals(
        [f"{one.question_word} ({one.n_questions:,})" for one in results],
        np.array([value.mean for value in values]),
        np.array([value.low for value in values]),
        np.array([value.high for value in values]),
        [ACCENT] * len(results),
        [f"MAP {value.mean:.4f} ({value.low:.3f} to {value.high:.3f})" for value in values],
        Axis("MAP", (0, 1.02)),
    )


# Attention

QUESTIONS = 6
FIRST_ANSWERS = 3
RULE = (
    f"{QUESTIONS} questions, evenly spaced from the one whose first answer is most probable to the one whose is least; "
    f"the first {FIRST_ANSWERS} answers of each, and the first right one if it is not among them"
)


def attention_heat(evaluated: EvaluatedAnswers, number: int = QUESTIONS) -> list[QuestionHeat]:
    """Questions that count, chosen by `RULE`; none for a model without attention."""
    surest_first = np.argsort(-merge_ties(evaluated.top.confidence), kind="stable")
    places = np.unique(np.linspace(0, len(surest_first) - 1, min(number, len(surest_first))).round().astype(int))
    ids = evaluated.top.question_ids[surest_first[places]].tolist()
    return list(_heats(evaluated, [evaluated.question_by_id[one] for one in ids]))


def _heats(evaluated: EvaluatedAnswers, questions: Sequence[Question]) -> Iterator[QuestionHeat]:
    for question in questions:
        texts = [one.text for one in question.candidates]
        positions = [one.position for one in question.candidates] if evaluated.ranker.reads_positions else None
        try:
            ranking = evaluated.ranker.rank(question.text, texts, positions=positions)
        except InputError:  # no word that the model knows: there is nothing to look at
            continue
        said = evaluated.ranker.fitted_.latent_carries or not evaluated.has_latent
        answers = [AnswerHeat(one, bool(question.candidates[one.place].label), said) for one in ranking.candidates]
        attended = [answer for answer in _first_ones(answers) if answer.candidate.attention_mean]
        if attended:
            yield QuestionHeat(question.text, tuple(attended))


def _first_ones(answers: list[AnswerHeat]) -> list[AnswerHeat]:
    first, others = answers[:FIRST_ANSWERS], answers[FIRST_ANSWERS:]
    if not any(answer.right for answer in first):
        first += [answer for answer in others if answer.right][:1]
    return first


# Headline


def answer_tiles(evaluation: AnswerEvaluation) -> list[Tile]:
    """The first is shown large."""
    ranking, calibration, uncertainty = evaluation.ranking, evaluation.calibration, evaluation.uncertainty
    half = f"{1 - calibration.risk_of_surer_half:.1%} among the surer half"
    right = f"what first answers say of themselves; {uncertainty.top_is_right:.1%} are right"
    promised = f"of true ranks; they promise {uncertainty.nominal_coverage:.1%}"
    left_out = f"{ranking.n_questions_left_out:,} do not count" if ranking.n_questions_left_out else "all count"
    return [
        Tile("MAP", f"{ranking.map:.4f}", f"{_interval(ranking.map_interval_95)}, over questions; higher is better"),
        Tile("MRR", f"{ranking.mrr:.4f}", _interval(ranking.mrr_interval_95)),
        Tile("first answer is right", f"{1 - calibration.risk:.1%}", half),
        Tile("probability of being best", f"{uncertainty.top_probability_best:.1%}", right),
        Tile(
            "rank intervals hold",
            f"{uncertainty.rank_interval_coverage:.1%}",
            promised,
        ),
        Tile("log loss", f"{calibration.log_loss:.4f}", "nats per pair; lower is better"),
        Tile("calibration error", f"{calibration.ece:.4f}", f"expected, over {calibration.ece_binning} bins"),
        Tile("questions", f"{ranking.n_questions:,}", left_out),
        Tile("pairs", f"{ranking.n_pairs:,}", f"{calibration.share_right:.1%} are right"),
    ]


def answer_facts(ranker: AnswerRanker, evaluation: AnswerEvaluation, source: QuestionAnswers) -> list[Fact]:
    """What was fitted on what, and which questions count."""
    ranking = evaluation.ranking
    samples = (
        [Fact("samples", f"{evaluation.n_samples:,} of h per question")] if ranker.fitted_.network.has_latent else []
    )
    return [
        Fact("corpus", f"{evaluation.corpus} ({evaluation.part})"),
        *fingerprint(source),
        Fact("protocol", f"{ranking.protocol}: {ranking.questions}; ties: {ranking.ties}"),
        Fact("model", _model_in_words(ranker)),
        Fact("fitted", _fit_in_words(ranker)),
        why_stopped(ranker.fitted_.stopped, "dev MAP"),
        *samples,
    ]


def _model_in_words(ranker: AnswerRanker) -> str:
    latent = f", {ranker.fitted_.architecture['latent_dim']} latent units" if ranker.fitted_.network.has_latent else ""
    joined = (
        ""
        if ranker.fitted_.combination is None
        else f", joined with {', '.join(ranker.fitted_.combination.columns[1:])}"
    )
    return f"{ranker.model}{latent}, {len(ranker.fitted_.vocabulary.words):,} words{joined}"


def _fit_in_words(ranker: AnswerRanker) -> str:
    pairs = f"{ranker.fitted_.n_training_questions:,} questions with {ranker.fitted_.n_training_pairs:,} pairs"
    dev = f"{ranker.fitted_.n_dev_questions:,} questions chose when to stop (dev MAP {ranker.fitted_.dev_map:.4f})"
    return f"on {pairs} in {duration(ranker.fitted_.fit_seconds)}, seed {ranker.seed}; {dev}"


def _interval(bounds: tuple[float, float]) -> str:
    return f"95 % interval {bounds[0]:.3f} to {bounds[1]:.3f}"


# Page


def answer_page(evaluated: EvaluatedAnswers, source: QuestionAnswers, folder: Path | None = None) -> str:
    """The report as one HTML text; `folder` is where the model comes from, if known."""
    evaluation, ranker, rows = evaluated.evaluation, evaluated.ranker, compared(evaluated)
    log_std = first_log_std(ranker, evaluated.questions) if ranker.fitted_.latent_carries else {}
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
        model=ranker.model,
        smoothing=ranker.settings.recipe.smoothing,
        has_latent=evaluated.has_latent,
        latent_carries=ranker.fitted_.latent_carries,
        n_samples=evaluation.n_samples,
        per_word=PER_GROUP,
        largest_log_std=max((abs(array).max() for array in log_std.values()), default=0.0),
        hinton=Markup(svg_text(hinton_figure(log_std), paper="none")) if log_std else "",
        curves=training_curves(ranker.fitted_.history, answer_measures(evaluated.has_latent), ranker.fitted_.dev_map),
    )


# Figures

WIDE = 760.0


def _comparison(evaluated: EvaluatedAnswers) -> Figure:
    rows = compared(evaluated)
    return chart_figure(f"On {_questions(evaluated)}", [comparison(rows, measure) for measure in MEASURES])


def _calibration_figure(evaluated: EvaluatedAnswers) -> Figure:
    return chart_figure(f"Calibration on {_questions(evaluated)}", calibration_charts(evaluated))


def _risk_coverage(evaluated: EvaluatedAnswers) -> Figure:
    return chart_figure(f"Risk by coverage on {_questions(evaluated)}", [risk_curve(evaluated)], WIDE)


def _question_words(evaluated: EvaluatedAnswers) -> Figure:
    chart = question_word_chart(results_by_word(evaluated))
    return chart_figure(f"By question word, {_questions(evaluated)}", [chart], WIDE)


def _attention(evaluated: EvaluatedAnswers) -> Figure | None:
    heats = attention_heat(evaluated)
    return heat_figure(heats) if heats else None


def _hinton(evaluated: EvaluatedAnswers) -> Figure | None:
    values = first_log_std(evaluated.ranker, evaluated.questions) if evaluated.ranker.fitted_.latent_carries else {}
    return hinton_figure(values) if values else None


def _training(evaluated: EvaluatedAnswers) -> Figure | None:
    curves = training_curves(
        evaluated.ranker.fitted_.history, answer_measures(evaluated.has_latent), evaluated.ranker.fitted_.dev_map
    )
    return chart_figure("Training", curves) if curves else None


def _questions(evaluated: EvaluatedAnswers) -> str:
    evaluation = evaluated.evaluation
    number, protocol = evaluation.ranking.n_questions, evaluation.ranking.protocol
    return f"{number:,} questions of {evaluation.corpus} ({evaluation.part}, {protocol})"


ANSWER_FIGURES: dict[str, Callable[[EvaluatedAnswers], Figure | None]] = {
    "comparison": _comparison,
    "calibration": _calibration_figure,
    "risk-coverage": _risk_coverage,
    "question-words": _question_words,
    "attention": _attention,
    "hinton": _hinton,
    "training": _training,
}
"""A function gives nothing where the model has nothing to show."""
