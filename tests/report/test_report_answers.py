"""The report of an answer model: the figures of `evaluate`, honest plots, other people's text as text."""

import dataclasses

import numpy as np
import pytest
from report_page import (
    HOSTILE,
    Page,
    check_nothing_is_fetched,
    check_only_our_tags,
    check_the_policy_allows_exactly_the_scripts,
)
from scipy.stats import binomtest

pytest.importorskip("plotly")
pytest.importorskip("openTSNE")

from varitext.answers.ranker import AnswerRanker
from varitext.answers.settings import AnswerRecipe
from varitext.charts.plotly_figures import plotly_figure
from varitext.charts.records import ANSWER_CURVES, training_curves
from varitext.corpora.question_answers import Candidate, Question, QuestionAnswers
from varitext.corpora.sources import SourceFile
from varitext.errors import InputError
from varitext.report import write_answer_report
from varitext.report.answers import (
    FIRST_ANSWERS,
    EvaluatedAnswers,
    attention_heat,
    baselines,
    calibration_charts,
    compared,
    comparison,
    evaluate_answers,
    is_best,
    paper_rows,
    reliability_of_best,
    reliability_of_right,
    results_by_word,
    risk_curve,
    wilson_interval,
)
from varitext.report.attention import first_log_std, prior_log_std

KINDS = {"who": "king queen author", "where": "city river lake", "when": "year month day"}


def questions(number: int, seed: int, part: str, hostile: bool = False) -> QuestionAnswers:
    """The question's word decides what kind of word a right answer has; one of four is right."""
    generator, made = np.random.default_rng(seed), []
    for place in range(number):
        asked, right = str(generator.choice(list(KINDS))), int(generator.integers(4))
        others = " ".join(words for kind, words in KINDS.items() if kind != asked).split()
        listed = []
        for row in range(4):
            word = str(generator.choice(KINDS[asked].split() if row == right else others))
            text = f"the old {word} was number {row} of {place}"
            text += f" {HOSTILE[(place + row) % len(HOSTILE)]}" if hostile else ""
            listed.append(Candidate(f"a{row}", tuple(text.split()), text, int(row == right), row))
        text = f"{asked} was the {place}" + (f" {HOSTILE[place % len(HOSTILE)]}" if hostile else "")
        made.append(Question(f"q{place}", tuple(text.split()), text, tuple(listed)))
    return QuestionAnswers("asked", part, (SourceFile(f"{part}.jsonl", "cd" * 32),), tuple(made))


def fit(model: str, hostile: bool = False) -> AnswerRanker:
    small = {
        "embedding_dim": 6,
        "batch_size": 40,
        "prediction_samples": 4,
        "recipe": AnswerRecipe(hidden_dim=6, layers=1),
    }
    ranker = AnswerRanker(model, latent_dim=3, epochs=2, vectors="random", threads=1, **small)
    return ranker.fit(questions(30, 0, "train", hostile), questions(9, 1, "dev", hostile))


@pytest.fixture(scope="module")
def ranker() -> AnswerRanker:
    return fit("nasm", hostile=True)


@pytest.fixture(scope="module")
def test_part() -> QuestionAnswers:
    return questions(24, 2, "test", hostile=True)


@pytest.fixture(scope="module")
def evaluated(ranker, test_part) -> EvaluatedAnswers:
    return evaluate_answers(ranker, test_part, "answerable")


@pytest.fixture(scope="module")
def hostile_page(ranker, test_part, tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("answers")
    ranker.save(folder / "model")
    named = dataclasses.replace(test_part, name=f"asked {HOSTILE[0]}", part=HOSTILE[1])
    write_answer_report(ranker, named, folder / "report.html", folder=folder / "model")
    return (folder / "report.html").read_text(encoding="utf-8")


def test_nothing_is_fetched_and_hostile_text_stays_text(hostile_page):
    check_nothing_is_fetched(hostile_page)
    check_the_policy_allows_exactly_the_scripts(hostile_page)
    check_only_our_tags(hostile_page)
    text = Page(hostile_page).text
    assert HOSTILE[0] in text and sum(one in text for one in HOSTILE) >= 3


def test_the_figures_are_those_of_evaluate(ranker, test_part, evaluated, hostile_page):
    evaluation = ranker.evaluate(test_part, baselines=False)
    assert evaluated.evaluation.as_dict() == evaluation.as_dict()
    text = Page(hostile_page).text
    for value in (*evaluation.ranking.map_interval_95, *evaluation.ranking.mrr_interval_95):
        assert f"{value:.3f}" in text
    for value in (evaluation.ranking.map, evaluation.ranking.mrr, evaluation.calibration.log_loss):
        assert f"{value:.4f}" in text
    for fact in ("answerable", test_part.sha256, "cd" * 32, "weights.safetensors", "setting: learning_rate"):
        assert fact in text


def test_baselines_are_measured_on_the_same_questions(evaluated):
    found = baselines(evaluated)
    one_of_four = np.mean([1, 1 / 2, 1 / 3, 1 / 4])
    assert found["random order"].map == pytest.approx(one_of_four)
    assert set(found) == {"random order", "word overlap", "word overlap, idf-weighted", "position in the document"}
    first = np.mean(
        [1 / (1 + next(c.position for c in q.candidates if c.label)) for q in evaluated.questions.questions]
    )
    assert found["position in the document"].map == pytest.approx(first)
    assert all(one.n_questions == evaluated.evaluation.ranking.n_questions for one in found.values())


def test_without_positions_there_is_no_baseline_by_place(ranker, test_part):
    without = tuple(
        question._replace(candidates=tuple(one._replace(position=None) for one in question.candidates))
        for question in test_part.questions
    )
    evaluated = evaluate_answers(ranker, dataclasses.replace(test_part, questions=without), "answerable")
    assert "position in the document" not in baselines(evaluated)


def test_the_paper_stands_beside_on_its_own_questions_alone(evaluated):
    def on(corpus: str, part: str = "test", protocol: str = "answerable") -> dict:
        ranking = dataclasses.replace(evaluated.evaluation.ranking, protocol=protocol)
        evaluation = dataclasses.replace(evaluated.evaluation, corpus=corpus, part=part, ranking=ranking)
        return paper_rows(dataclasses.replace(evaluated, evaluation=evaluation))

    assert on("wikiqa") == {"NASM": (0.6705, 0.6914), "NASM + Cnt": (0.6886, 0.7069)}
    assert on("wikiqa", "dev") == on("wikiqa", protocol="all") == on("asked") == {}
    assert on("qasent", protocol="paper-qasent")["NASM"] == (0.6501, 0.7324)
    assert on("qasent", protocol="clean")["NASM"] == pytest.approx((0.6501 * 72 / 68, 0.7324 * 72 / 68))
    assert [row.name for row in compared(evaluated)][-1] == "NASM"


def test_intervals_are_drawn_where_they_are(evaluated):
    rows = compared(evaluated)
    chart = comparison(rows, "MRR")
    *lines, points = plotly_figure(chart).data
    assert list(points.x) == [row.values[1] for row in rows] and list(points.y) == [*range(len(rows))][::-1]
    ends = [row.intervals[1] for row in rows]
    assert np.array_equal(np.stack([chart.low, chart.high], 1), ends)
    drawn = {line.y: tuple(line.x) for line in lines}
    wide = {(y, y): end for y, end in zip(points.y, ends, strict=True) if end[0] < end[1]}
    assert drawn == wide and len(wide) >= 3


def test_the_best_is_the_most_probable_right_one():
    """Three questions: two right answers, equal right ones, none."""
    labels = ((1, 1, 0), (0, 1, 1), (0, 0))
    made = tuple(
        Question(str(q), (), "", tuple(Candidate(str(a), (), "", label) for a, label in enumerate(of)))
        for q, of in enumerate(labels)
    )
    corpus = QuestionAnswers("asked", "test", (), made)
    probability = np.array([0.2, 0.6, 0.9, 0.9, 0.3, 0.3, 0.5, 0.1])
    evaluated = EvaluatedAnswers(None, corpus, None, corpus.groups, probability, probability)
    assert is_best(evaluated).tolist() == [0, 1, 0, 0, 1, 0, 0, 0]
    assert (
        reliability_of_best(evaluated).count.sum() == 6
    )  # the question without a right answer says nothing of the best one


def test_calibration_plots_hold_every_pair_once(evaluated):
    curves = (reliability_of_right(evaluated), reliability_of_best(evaluated))
    for curve, chart in zip(curves, calibration_charts(evaluated), strict=True):
        (points,) = plotly_figure(chart).data
        assert curve.count.sum() == evaluated.questions.n_pairs
        assert curve.count @ np.array(points.y) / curve.count.sum() == pytest.approx(0.25)
    assert np.bincount(evaluated.questions.groups, evaluated.best) == pytest.approx(np.ones(24))


@pytest.mark.parametrize("right, number", [(0, 5), (3, 7), (40, 40), (1, 1000)])
def test_wilson_interval_is_scipys(right, number):
    low, high = wilson_interval(np.array([right / number]), np.array([number]))
    expected = binomtest(right, number).proportion_ci(method="wilson")
    assert (low[0], high[0]) == pytest.approx((expected.low, expected.high), abs=1e-4)


def test_risk_ends_at_the_share_of_wrong_first_answers(evaluated):
    line = risk_curve(evaluated)
    assert line.x[-1] == 1 and line.y[-1] == pytest.approx(evaluated.evaluation.calibration.risk)
    assert line.x[0] == pytest.approx(10 / 24)  # below ten answers a single one decides


def test_results_by_word_are_those_of_evaluate(evaluated):
    found = {one.question_word: one for one in results_by_word(evaluated)}
    for group in evaluated.evaluation.by_question_word:
        one = found[group.question_word]
        assert (one.n_questions, one.average_precision.mean) == (group.n_questions, pytest.approx(group.map))
        assert one.average_precision.low <= group.map <= one.average_precision.high
    assert sum(one.n_questions for one in found.values()) == 24


def test_questions_are_chosen_by_the_rule(evaluated):
    heats = attention_heat(evaluated, number=3)
    confidence = {evaluated.question_by_id[i].text: c for i, c in zip(*evaluated.top[:2], strict=True)}
    shown = [confidence[heat.question] for heat in heats]
    assert shown == sorted(shown, reverse=True)
    assert shown[0] == max(confidence.values()) and shown[-1] == min(confidence.values())
    for heat in heats:
        ranks = [answer.candidate.rank for answer in heat.answers]
        assert ranks == sorted(ranks) and len(ranks) >= FIRST_ANSWERS
        assert any(answer.right for answer in heat.answers)
        for answer in heat.answers:
            assert sum(answer.candidate.attention_mean) == pytest.approx(1)


def test_questions_of_unknown_words_have_no_attention(ranker):
    strange = Question("q", ("zzz",), "zzz", tuple(Candidate(str(n), ("qqq",), "qqq", n) for n in range(2)))
    corpus = dataclasses.replace(questions(3, 5, "test"), questions=(strange, *questions(3, 5, "test").questions))
    assert len(attention_heat(evaluate_answers(ranker, corpus, "answerable"))) == 3


def test_hinton_rows_are_the_first_questions_of_each_word(ranker, test_part):
    log_std = prior_log_std(ranker, test_part)
    assert log_std.shape == (24, 3)
    first_word = [question.text.split()[0] for question in test_part.questions]
    for group, values in first_log_std(ranker, test_part).items():
        rows = [row for row, word in enumerate(first_word) if word == group][:10]
        assert np.array_equal(values, log_std[rows])


def test_curves_are_those_of_the_history(ranker):
    curves = training_curves(ranker.fitted_.history, ANSWER_CURVES)
    assert [list(curve.y) for curve in curves] == [
        [record[name] for record in ranker.fitted_.history]
        for name in ("dev_map", "dev_log_loss", "dev_kl", "posterior_prior_gap")
    ]
    kept = curves[0].note
    assert kept.y == max(record["dev_map"] for record in ranker.fitted_.history) == ranker.fitted_.dev_map


def test_the_round_that_was_kept_is_marked_also_where_it_is_not_the_best():
    history = [{"epoch": epoch, "dev_map": value} for epoch, value in enumerate((0.1, 0.7, 0.5, 0.6))]
    (best,) = training_curves(history, ANSWER_CURVES)
    (smoothed,) = training_curves(history, ANSWER_CURVES, 0.6)
    assert (best.note.x, best.note.y) == (1, 0.7)
    assert (smoothed.note.x, smoothed.note.text) == (3, "kept: 0.6000")


@pytest.mark.parametrize(
    "model, said, figures",
    [
        ("lstm_attention", ["Highlighted words get more than an equal share"], 8),
        ("lstm", ["lstm has no attention"], 8),
        ("overlap", ["overlap has no attention", "is not trained in epochs"], 6),
    ],
)
def test_models_without_a_latent_show_what_they_have(model, said, figures, tmp_path):
    write_answer_report(fit(model), questions(12, 3, "test"), tmp_path / "report.html")
    page = Page((tmp_path / "report.html").read_text())
    assert all(text in page.text for text in said) and "Prior variance by question" not in page.text
    assert len(page.figures) == figures


def test_a_latent_that_carries_nothing_is_not_drawn(ranker, test_part, tmp_path):
    ranker.fitted_.history[:] = [one | {"active_units": 0} for one in ranker.fitted_.history]
    assert not ranker.fitted_.latent_carries
    write_answer_report(ranker, test_part, tmp_path / "silent.html")
    page = Page((tmp_path / "silent.html").read_text())
    assert "Posterior collapse" in page.text and "The bar under a word" not in page.text
    ranker.fitted_.history[:] = [one | {"active_units": 1} for one in ranker.fitted_.history]
    write_answer_report(ranker, test_part, tmp_path / "alive.html")
    ranker.fitted_.history[:] = [one | {"active_units": 0} for one in ranker.fitted_.history]
    assert "Posterior collapse" not in Page((tmp_path / "alive.html").read_text()).text


def test_an_error_leaves_the_old_file(ranker, test_part, tmp_path):
    path = tmp_path / "report.html"
    path.write_text("before")
    with pytest.raises(InputError, match="unknown protocol 'most'"):
        write_answer_report(ranker, test_part, path, protocol="most")
    assert path.read_text() == "before" and list(tmp_path.iterdir()) == [path]
