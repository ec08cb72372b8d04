"""Made-up questions with tempting wrong candidates, in `examples/`: the files, and the recommended ranker on them."""

import pytest

from lab.experiments.by_eye import EXAMPLES, FILES, missed
from varitext.answers.ranker import AnswerRanker
from varitext.corpora import load_questions
from varitext.models.answers.pretrained import is_installed


@pytest.mark.parametrize("name", FILES)
def test_every_question_has_one_right_answer(name):
    questions = load_questions(EXAMPLES / f"{name}.csv", "all").questions
    assert len(questions) == 15
    for question in questions:
        assert sum(one.label for one in question.candidates) == 1 and 5 <= len(question.candidates) <= 8
        assert len({one.text for one in question.candidates}) == len(question.candidates)


@pytest.mark.skipif(not is_installed(), reason="the extra minilm is not installed")
def test_the_recommended_ranker_resists_most_temptations():
    assert len(missed(AnswerRanker("minilm"), EXAMPLES / "tempting_questions.csv")) <= 4  # measured: 3
