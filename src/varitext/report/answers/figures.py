"""The figures of a report on answers by name, each as a drawing: the same data as on the page."""

from collections.abc import Callable

from varitext.report.answers.attention import attention_heat, heat_drawing
from varitext.report.answers.calibration import reliability_of_best, reliability_of_right, risk_curve
from varitext.report.answers.comparison import MEASURES, compared, comparison
from varitext.report.answers.evaluated import JudgedAnswers
from varitext.report.answers.hinton import hinton_drawing, shown_log_std
from varitext.report.answers.question_words import question_word_plot, results_by_word
from varitext.report.drawing.plotting import plot
from varitext.report.drawing.shapes import Drawing
from varitext.report.drawing.training_curves import answer_measures, training_curves

WIDE = 760.0


def _comparison(judged: JudgedAnswers) -> Drawing:
    rows = compared(judged)
    return plot(f"On {_questions(judged)}", [comparison(rows, measure) for measure in MEASURES])


def _calibration(judged: JudgedAnswers) -> Drawing:
    return plot(f"Calibration on {_questions(judged)}", [reliability_of_right(judged), reliability_of_best(judged)])


def _risk_coverage(judged: JudgedAnswers) -> Drawing:
    return plot(f"Risk by coverage on {_questions(judged)}", [risk_curve(judged)], WIDE)


def _question_words(judged: JudgedAnswers) -> Drawing:
    return plot(f"By question word, {_questions(judged)}", [question_word_plot(results_by_word(judged))], WIDE)


def _attention(judged: JudgedAnswers) -> Drawing | None:
    heats = attention_heat(judged)
    return heat_drawing(heats) if heats else None


def _hinton(judged: JudgedAnswers) -> Drawing | None:
    values = shown_log_std(judged.ranker, judged.questions) if judged.has_latent else {}
    return hinton_drawing(values) if values else None


def _training(judged: JudgedAnswers) -> Drawing | None:
    curves = training_curves(judged.ranker.history_, answer_measures(judged.has_latent))
    return plot("How the fit went", curves) if curves else None


def _questions(judged: JudgedAnswers) -> str:
    evaluation = judged.evaluation
    number, protocol = evaluation.ranking.n_questions, evaluation.ranking.protocol
    return f"{number:,} questions of {evaluation.corpus} ({evaluation.part}, {protocol})"


ANSWER_FIGURES: dict[str, Callable[[JudgedAnswers], Drawing | None]] = {
    "comparison": _comparison,
    "calibration": _calibration,
    "risk-coverage": _risk_coverage,
    "question-words": _question_words,
    "attention": _attention,
    "hinton": _hinton,
    "training": _training,
}
"""A function gives nothing where the model has nothing to show."""
