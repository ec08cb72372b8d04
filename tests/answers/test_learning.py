"""Learning from what people have: right answers only, grades, clicks; and which word vectors a fit starts from."""

import itertools
import signal
import time

import numpy as np
import pandas
import pytest
from command_line import forked

from varitext import AnswerRanker, QuestionColumns
from varitext.answers.settings import AnswerRecipe
from varitext.answers.training_data import training_data
from varitext.corpora import minilm, own_questions
from varitext.errors import InputError
from varitext.models.answers import pretrained, vocabulary
from varitext.models.answers.pretrained import SOURCE
from varitext.training.progress import LineProgress

KINDS = {"who": "king", "where": "city", "when": "year"}
MINILM_FILES = minilm.locate(None)
NAMES = [first + second for first in "abcdef" for second in "klmnop"]
SMALL = {
    **{"vectors": "random", "embedding_dim": 12, "epochs": 10, "batch_size": 40, "learning_rate": 2e-2, "threads": 1},
    "recipe": AnswerRecipe(hidden_dim=12, patience=50),
}
has_minilm = pytest.mark.skipif(
    not pretrained.is_installed(), reason="MiniLM is not installed: varitext data fetch minilm"
)


def right_answers() -> pandas.DataFrame:
    kinds = itertools.cycle(KINDS.items())
    rows = [
        (f"{asked} was {name}", f"{name} was the {kind}") for name, (asked, kind) in zip(NAMES, kinds, strict=False)
    ]
    return pandas.DataFrame(rows, columns=["question", "answer"])


def test_wrong_answers_are_drawn_where_all_are_right():
    table = right_answers()
    with pytest.warns(UserWarning, match="no column 'label'"), pytest.warns(UserWarning, match="are drawn from"):
        ranker = AnswerRanker(**SMALL).fit(table)
    fitted = ranker.fitted_
    assert fitted.n_training_pairs > 3 * fitted.n_training_questions and fitted.dev_map > 0.9  # by chance about .2
    ranked = ranker.rank("who was ak", ["bk was the king", "cl was the king", "ak was the king"])
    assert ranked.candidates[0].text == "ak was the king"


def test_drawn_answers_are_others_and_depend_on_the_seed_only():
    with pytest.warns(UserWarning):
        given = own_questions.from_table(right_answers())
        shuffled = own_questions.from_table(right_answers().sample(frac=1, random_state=0))
        found = [training_data(AnswerRanker(**SMALL), corpus, None) for corpus in (given, shuffled)]
    assert found[0].train.questions == found[1].train.questions and not found[0].mixed
    for question in (*found[0].train.questions, *found[0].dev.questions):
        right = {one.words for one in question.candidates if one.label}
        assert len(right) == 1 and question.has_wrong
        assert right.isdisjoint(one.words for one in question.candidates if not one.label)


def test_right_answers_that_are_all_the_same_are_refused():
    table = pandas.DataFrame({"question": ["who was it", "where was it"], "answer": "a king", "label": 1})
    with pytest.warns(UserWarning, match="are drawn from"), pytest.raises(InputError, match="all 2 pairs have label 1"):
        AnswerRanker(**SMALL).fit(table)


def graded(column: str) -> pandas.DataFrame:
    """Kings are the best of the right answers."""
    value = {"king": 3, "queen": 1, "lake": 0}
    rows = [(f"who was number {number}", f"the {word} of old", value[word]) for number in range(40) for word in value]
    return pandas.DataFrame(rows, columns=["question", "answer", column])


def labelled() -> pandas.DataFrame:
    table = graded("label")
    return table.assign(label=table["label"].clip(upper=1))


@pytest.mark.parametrize(
    "columns",
    [QuestionColumns(label_column="seen", min_relevance=1), QuestionColumns(count_column="seen")],
    ids=["grades", "clicks"],
)
def test_higher_grades_and_more_clicks_come_first(columns):
    ranker = AnswerRanker(**SMALL).fit(graded("seen"), columns=columns)
    ranked = ranker.rank("who was it", ["the lake of old", "the queen of old", "the king of old"])
    assert [one.text.split()[1] for one in ranked.candidates] == ["king", "queen", "lake"]
    record = ranker.evaluate(graded("seen"), columns=columns, baselines=False).ranking
    assert record.map == 1 and record.ndcg == pytest.approx(1)
    assert ranker.evaluate(labelled(), baselines=False).ranking.ndcg is None


# Word vectors


def noted(settings: dict, **others) -> list[str]:
    class Notes:
        def __init__(self):
            self.lines = []

        def step(self, *_): ...

        def round(self, *_): ...

        def note(self, message):
            self.lines.append(message)

    progress = Notes()
    AnswerRanker(**settings | {"epochs": 1} | others).fit(labelled(), progress=progress)
    return progress.lines


@pytest.fixture
def no_vectors(monkeypatch, tmp_path):
    monkeypatch.delenv("VARITEXT_DATA", raising=False)
    monkeypatch.setenv("VARITEXT_CACHE", str(tmp_path))


def test_a_fit_names_its_word_vectors_first(no_vectors, tmp_path):
    assert noted(SMALL) == []  # random, as requested
    (tmp_path / "mine.txt").write_text("king 1 0\nqueen 0 1\nNile 1 1\n")
    given = noted(SMALL, vectors=tmp_path / "mine.txt", embedding_dim=None)
    assert given[0] == "word vectors: mine.txt, 2 dimensions; 2 of the 11 words of the training questions have one"


def test_random_word_vectors_by_default_are_a_warning(no_vectors, monkeypatch):
    monkeypatch.setattr(vocabulary, "is_installed", lambda: False)
    with pytest.warns(UserWarning, match="no word vectors were found.*varitext data fetch glove"):
        assert noted(SMALL, vectors=None) == []
    assert AnswerRanker("overlap").fit(labelled()).fitted_.vectors == {}  # it does not read any


@has_minilm
def test_minilm_serves_where_there_are_no_other_vectors(no_vectors, tmp_path, monkeypatch):
    monkeypatch.setattr(minilm, "locate", lambda _: MINILM_FILES)
    assert noted(SMALL, vectors=None, embedding_dim=None)[0].startswith(f"word vectors: {SOURCE}, 100 dimensions; ")
    vectors = vocabulary.minilm_vectors(["astronaut", "lighthouse", "qwertyuiop", "\u200b"], 100)
    assert vectors.vectors.std() == pytest.approx(vocabulary.MINILM_STD) and "\u200b" not in vectors.index

    def cosine(first: str, second: str) -> float:
        one, two = (vectors.vectors[vectors.index[word]] for word in (first, second))
        return float(one @ two / np.linalg.norm(one) / np.linalg.norm(two))

    assert cosine("astronaut", "cosmonaut" if "cosmonaut" in vectors.index else "pilot") > cosine("astronaut", "butter")
    ranker = AnswerRanker(**SMALL | {"epochs": 1, "vectors": "minilm"}).fit(labelled())
    ranker.save(tmp_path / "model")
    record = AnswerRanker.load(tmp_path / "model").fitted_.vectors
    assert record["source"] == SOURCE and record["dim"] == 12 and len(record["sha256"]) == 64


# Progress and Ctrl-C


def test_progress_counts_what_follows_training(capsys):
    class Shares:
        def __init__(self):
            self.steps, self.at_last_round = [], 0.0

        def step(self, share_done, *_):
            self.steps.append(share_done)

        def round(self, _):
            self.at_last_round = (self.steps or [0.0])[-1]

        def note(self, _): ...

    progress = Shares()
    AnswerRanker(**SMALL | {"epochs": 2, "ensemble": 2}).fit(labelled(), progress=progress)
    assert progress.steps == sorted(progress.steps) and progress.steps[-1] == 1 and progress.at_last_round < 1
    with LineProgress("pair", has_latent=False) as lines:
        AnswerRanker(**SMALL | {"epochs": 2}).fit(labelled(), progress=lines)
        assert capsys.readouterr().err == ""
    assert capsys.readouterr().err.startswith("100%  epoch 2  bound")


def test_ctrl_c_in_the_first_network_of_an_ensemble_leaves_a_ranker(tmp_path):
    labelled().to_csv(tmp_path / "pairs.csv", index=False)
    settings = ("--ensemble", 3, "--epochs", 3000, "--vectors", "random", "--threads", 1)
    run = forked("fit", tmp_path / "pairs.csv", "--out", tmp_path / "model", *settings)
    deadline = time.monotonic() + 60
    while not (tmp_path / "model" / "checkpoint.safetensors").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    run.send_signal(signal.SIGINT)
    said = run.communicate(timeout=60)[1]
    assert run.returncode == 130 and "network 2 of 3" not in said and "--resume to continue" in said
    ranker = AnswerRanker.load(tmp_path / "model")
    assert ranker.fitted_.stopped == "interrupted"
    assert len(ranker.rank("who was it", ["the king of old", "the lake of old"]).candidates) == 2


def test_ctrl_c_after_training_keeps_the_network(tmp_path):
    class Impatient:
        rounds = 0

        def step(self, *_):
            if self.rounds == 3:  # before the first step, and after each of two epochs
                raise KeyboardInterrupt

        def round(self, _):
            self.rounds += 1

        def note(self, _): ...

    ranker = AnswerRanker(**SMALL | {"epochs": 2})
    with pytest.raises(KeyboardInterrupt, match="best weights"):
        ranker.fit(labelled(), progress=Impatient())
    ranker.save(tmp_path / "model")
    assert AnswerRanker.load(tmp_path / "model").rank("who was it", ["the king", "the lake"]).candidates
