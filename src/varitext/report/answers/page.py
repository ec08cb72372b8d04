"""The report of an answer model: headline figures, then pictures, each with one sentence that says how to read it."""

from pathlib import Path

from varitext.corpora.question_answers import QuestionAnswers
from varitext.report.answers.attention import RULE, attention_heat, heat_cards
from varitext.report.answers.calibration import reliability_of_best, reliability_of_right, risk_curve
from varitext.report.answers.comparison import MEASURES, compared, comparison, paper_rows
from varitext.report.answers.evaluated import JudgedAnswers
from varitext.report.answers.headline import answer_facts, answer_headline
from varitext.report.answers.hinton import PER_GROUP, hinton_drawing, shown_log_std
from varitext.report.answers.question_words import question_word_plot, results_by_word
from varitext.report.drawing.training_curves import answer_measures, training_curves
from varitext.report.facts import file_hashes, folded_table, settings_of
from varitext.report.page import beside_each_other, drawn, report_page, section


def answer_page(judged: JudgedAnswers, source: QuestionAnswers, folder: Path | None = None) -> str:
    """The report as one HTML text; `folder` is where the model comes from, if known."""
    evaluation = judged.evaluation
    top = answer_headline(evaluation) + answer_facts(judged.ranker, evaluation, source)
    top += folded_table("The whole record", evaluation.as_dict())
    top += folded_table("All settings", settings_of(judged.ranker))
    top += folded_table("Files (SHA-256)", file_hashes(source, folder))
    sections = [
        _comparison_section(judged),
        _calibration_section(judged),
        _risk_section(judged),
        _question_words_section(judged),
        _attention_section(judged),
        _hinton_section(judged),
        _training_section(judged),
    ]
    return report_page(f"{evaluation.corpus} ({evaluation.part})", top, sections)


def _comparison_section(judged: JudgedAnswers) -> str:
    ranking, rows = judged.evaluation.ranking, compared(judged)
    reading = (
        f"On the {ranking.n_questions:,} questions of the protocol <b>{ranking.protocol}</b>, lines are 95 % intervals "
        "over questions. The grey rankings understand nothing: what a model learned is what it has beyond them."
    )
    if paper_rows(judged):
        reading += " The paper gives no intervals; where its scale is another, its figures are converted to this one."
    pictures = [(comparison(rows, measure), f"{measure} beside the floors and the paper") for measure in MEASURES]
    return section("Beside others", reading, beside_each_other(pictures))


def _calibration_section(judged: JudgedAnswers) -> str:
    reading = (
        "Candidates by the probability that the model gave them, a tenth at a time; on the dashed line a probability "
        "is what it says. Lines are 95 % intervals. First, of being a right answer; second, of being the best one of "
        "its question."
    )
    pictures = [
        (reliability_of_right(judged), "Calibration of the probability of being right"),
        (reliability_of_best(judged), "Calibration of the probability of being best"),
    ]
    return section("Do probabilities mean what they say?", reading, beside_each_other(pictures))


def _risk_section(judged: JudgedAnswers) -> str:
    calibration = judged.evaluation.calibration
    reading = (
        f"With every question answered, {calibration.risk:.1%} of the first answers are wrong (dashed). Where the "
        f"model may stay silent when it is least sure, fewer are: {calibration.risk_of_surer_half:.1%} with half of "
        "the questions answered."
    )
    return section("What silence buys", reading, drawn(risk_curve(judged), "Share of wrong answers by coverage"))


def _question_words_section(judged: JudgedAnswers) -> str:
    reading = (
        "MAP by the first question word of the question, the most frequent first; in brackets, how many there are. "
        "Lines are 95 % intervals: with few questions they are wide."
    )
    picture = drawn(question_word_plot(results_by_word(judged)), "MAP by question word")
    return section("By question word", reading, picture)


def _attention_section(judged: JudgedAnswers) -> str:
    heats = attention_heat(judged)
    if not heats:
        return section("Where it looks", f"{judged.ranker.model} has no attention: there is nothing to show.", "")
    reading = f"The darker a word, the more attention it gets. Chosen by rule, not by hand: {RULE}."
    if judged.has_latent:
        reading += (
            f" The bar under a word is the spread of its weight over {judged.evaluation.n_samples} samples of h, "
            "as a share of the weight; where there is none, all samples look at the same words."
        )
    return section("Where it looks", reading, heat_cards(heats))


def _hinton_section(judged: JudgedAnswers) -> str:
    if not judged.has_latent:
        return ""
    values = shown_log_std(judged.ranker, judged.questions)
    if not values:
        return section("What a question leaves open", "No question starts with a question word.", "")
    largest = max(abs(array).max() for array in values.values())
    reading = (
        f"How wide p(h | question) is: a row is a question (the first {PER_GROUP} that start with each word), a column "
        "a latent dimension. A square is as large as the log standard deviation is far from zero, white above and "
        f"black below; the largest is {largest:.2g}."
    )
    picture = f'<figure class="picture">{hinton_drawing(values).inline_svg()}</figure>'
    return section("What a question leaves open", reading, picture)


def _training_section(judged: JudgedAnswers) -> str:
    curves = training_curves(judged.ranker.history_, answer_measures(judged.has_latent))
    if not curves:
        return section("How the fit went", f"{judged.ranker.model} learns in one go: there is no curve.", "")
    rounds = judged.ranker.settings.recipe.smoothing
    chosen = "The round" if rounds == 1 else f"The last of the {rounds} rounds in a row"
    reading = f"Dev questions after each round. {chosen} with the highest {'' if rounds == 1 else 'mean '}MAP was kept."
    if len(curves) > 2:
        reading += (
            " The KL is what the posterior, which sees the label, knows beyond the prior, which does not; where the "
            "ground is shaded its weight was still rising. The last curve is what that knowledge is worth in log "
            "likelihood: large values would mean that training relies on what prediction does not have."
        )
    described = [(curve, f"By epoch: {curve.layout.yaxis.title.text}") for curve in curves]
    return section("How the fit went", reading, beside_each_other(described))
