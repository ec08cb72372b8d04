"""The report of an answer model: what its template, `answers.html`, shows."""

from pathlib import Path

from markupsafe import Markup

from varitext.corpora.question_answers import QuestionAnswers
from varitext.report.answers.attention import RULE, attention_heat
from varitext.report.answers.calibration import calibration_charts, risk_curve
from varitext.report.answers.comparison import MEASURES, compared, comparison, paper_rows
from varitext.report.answers.evaluated import EvaluatedAnswers
from varitext.report.answers.headline import answer_facts, answer_tiles
from varitext.report.answers.hinton import PER_GROUP, first_log_std, hinton_figure
from varitext.report.answers.question_words import question_word_chart, results_by_word
from varitext.report.drawing.saving import svg_text
from varitext.report.drawing.training_curves import answer_measures, training_curves
from varitext.report.facts import provenance
from varitext.report.page import render


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
