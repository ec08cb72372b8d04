"""The figures of a report on answers by name, drawn for files from the data of the page."""

from collections.abc import Callable

from varitext.report.answers.attention import attention_heat
from varitext.report.answers.attention_figure import heat_figure
from varitext.report.answers.calibration import calibration_charts, risk_curve
from varitext.report.answers.comparison import MEASURES, compared, comparison
from varitext.report.answers.evaluated import EvaluatedAnswers
from varitext.report.answers.hinton import first_log_std, hinton_figure
from varitext.report.answers.question_words import question_word_chart, results_by_word
from varitext.report.drawing.canvas import Figure
from varitext.report.drawing.static import chart_figure
from varitext.report.drawing.training_curves import answer_measures, training_curves

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
    "calibration": _calibration,
    "risk-coverage": _risk_coverage,
    "question-words": _question_words,
    "attention": _attention,
    "hinton": _hinton,
    "training": _training,
}
"""A function gives nothing where the model has nothing to show."""
