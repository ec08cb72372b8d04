"""Systems of the paper's Table 4 from the command line: fit, rank, evaluate, compare, resume; what is refused."""

import json
import re
import shutil
from pathlib import Path
from unittest import mock

import pytest
from command_line import MODEL_FILES, contents, fit, refused, varitext

from varitext.answers.ranker import AnswerRanker
from varitext.models.answers import ANSWER_MODELS, model_class
from varitext.models.documents import DOCUMENT_MODELS

NAMES = ["anna", "boris", "clara", "dario", "emma", "felix", "greta", "hugo", "ida", "jonas", "karla", "leo"]
WORDS = ("--vectors", "random", "--embedding-dim", 8, "--threads", 1)
STEPS = ("--epochs", 1, "--batch-size", 40)


def rows(part: str, questions: int) -> list[dict]:
    """The right answer has the name that the question asks for, and no name stands in two parts."""
    made = []
    for number in range(questions):
        name = f"{NAMES[number % len(NAMES)]}{part}{chr(97 + number // len(NAMES))}"
        answers = [f"{name} sang a song", "nobody sang a song", f"a long walk of {NAMES[(number + 1) % 12]}"]
        made += [
            {"question": f"what did {name} do", "answer": answer, "label": int(place == 0), "position": place}
            for place, answer in enumerate(answers)
        ]
    return made


@pytest.fixture(scope="module")
def asked(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("systems") / "asked"
    folder.mkdir()
    for part, questions in (("train", 24), ("dev", 8), ("test", 12)):
        (folder / f"{part}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows(part, questions)))
    return folder


@pytest.fixture(scope="module")
def overlap(asked) -> Path:
    """A model folder; tests only read it."""
    fit(asked, asked.parent / "overlap", "--model", "overlap", *WORDS)
    return asked.parent / "overlap"


@pytest.fixture(scope="module")
def nasm(asked) -> Path:
    fit(asked, asked.parent / "nasm", "--model", "nasm", "--latent-dim", 2, *WORDS, *STEPS)
    return asked.parent / "nasm"


@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("overlap", ("--position",)),
        ("pv", ()),
        ("word_alignment", ("--features", "idf,categories", "--counts")),
        ("lclr", ("--features", "lexical", "--counts", "--position")),
        ("bigram_cnn", STEPS),
        ("deep_cnn", ("--features", "overlap", *STEPS)),
    ],
)
def test_every_system_is_fitted_evaluated_and_ranks(model, options, asked, tmp_path):
    said = fit(asked, tmp_path / "model", "--model", model, *options, *WORDS).splitlines()[-1]
    how = "all epochs" if ANSWER_MODELS[model].trained_by_gradient else "fitted without gradients"
    assert said.startswith("24 questions with 72 pairs, ") and f" s ({how}); dev MAP " in said
    assert sorted(contents(tmp_path / "model")) == MODEL_FILES
    record = json.loads(varitext("evaluate", tmp_path / "model", "--json").out)
    assert record["n_questions"] == 12 and record["n_samples"] == 1
    # names of test questions are new to networks and to pv
    assert record["map"] == 1 or ANSWER_MODELS[model].trained_by_gradient or model == "pv"
    assert "samples" not in varitext("evaluate", tmp_path / "model", "--samples", 7).out
    (tmp_path / "sentences.txt").write_text("a long walk\nanna sang a song\n")
    typed = ("rank", tmp_path / "model", "--question", "what did anna do", "--candidates", tmp_path / "sentences.txt")
    ranking = json.loads(varitext(*typed, "--samples", 7, "--json").out)
    assert ranking["n_samples"] == 1
    shares = [one["probability_best"] for one in ranking["candidates"]]
    assert ranking["joint"] and sum(shares) + ranking["probability_none"] == pytest.approx(1)
    shown = varitext(*typed).out
    assert "2 candidates\n" in shown and "sample" not in shown


def test_features_arrive_where_they_belong(asked, tmp_path):
    fit(asked, tmp_path / "model", "--model", "overlap", "--features", "bm25, log_length", *WORDS)
    assert AnswerRanker.load(tmp_path / "model").fitted_.network.columns == ("bm25", "log_length")


def test_places_count_if_they_were_chosen_by_name(asked, tmp_path):
    fit(asked, tmp_path / "model", "--model", "overlap", "--features", "log_position,log_length", *WORDS)
    (tmp_path / "same.txt").write_text("nobody sang a song\nanybody sang a song\nsomebody sang a song\n")
    typed = ("rank", tmp_path / "model", "--question", "what did anna do", "--candidates", tmp_path / "same.txt")
    found = json.loads(varitext(*typed, "--json").out)["candidates"]
    assert [one["place"] for one in found] == [0, 1, 2] and found[0]["probability"] > found[2]["probability"]
    unordered = json.loads(varitext(*typed, "--unordered", "--json").out)["candidates"]
    assert len({one["probability"] for one in unordered}) == 1


def test_vectors_are_tuned_if_asked(asked, tmp_path):
    (tmp_path / "names.vec").write_text("".join(f"{word} 1 2 3\n" for word in ("what", "did", "song", "walk")))
    options = ("--model", "lstm", "--vectors", tmp_path / "names.vec", "--threads", 1, *STEPS)
    for name, typed, fixed in (("fixed", (), 4), ("tuned", ("--tune-vectors",), 0)):
        fit(asked, tmp_path / name, *options, *typed)
        assert AnswerRanker.load(tmp_path / name).fitted_.architecture["fixed_words"] == fixed


def test_a_scorer_is_compared_with_a_network(overlap, nasm):
    record = json.loads(varitext("compare", overlap, nasm, "--samples", 5, "--json").out)
    assert record["n_samples"] == 5 and record["map"]["first"] == 1
    assert json.loads(varitext("compare", overlap, overlap, "--samples", 5, "--json").out)["n_samples"] == 1
    assert "5 samples" in varitext("evaluate", nasm, "--samples", 5).out


# Resume


def test_a_scorer_has_nothing_to_resume(asked, overlap, tmp_path):
    typed = ("fit", asked, "--model", "overlap", *WORDS, "--resume", "--out")
    shutil.copytree(overlap, tmp_path / "overlap")
    assert "holds a finished model: there is nothing to resume" in refused(tmp_path, *typed, tmp_path / "overlap")
    outcome = varitext(*typed, tmp_path / "new")
    assert outcome.code == 0
    assert outcome.err.startswith(
        "note: overlap is not trained in steps and keeps no checkpoint: --resume starts over\n"
    )
    assert contents(tmp_path / "new")["weights.safetensors"] == contents(overlap)["weights.safetensors"]


def test_a_scorer_interrupted_between_folds_keeps_what_it_has_and_resumes(asked, tmp_path):
    typed = ("fit", asked, "--out", tmp_path / "model", "--model", "word_alignment", "--counts", *WORDS)
    with mock.patch("varitext.answers.fitting.out_of_fold", side_effect=KeyboardInterrupt):
        outcome = varitext(*typed)
    assert outcome.code == 130 and "counts and position are not learned yet" in outcome.err
    assert AnswerRanker.load(tmp_path / "model").fitted_.combination is None
    assert varitext(*typed, "--resume").code == 0
    assert AnswerRanker.load(tmp_path / "model").fitted_.combination is not None


def test_a_scorer_interrupted_while_it_learns_leaves_nothing(asked, tmp_path):
    typed = ("fit", asked, "--out", tmp_path / "model", "--model", "overlap", *WORDS)
    with mock.patch.object(model_class("overlap"), "learn_words", side_effect=KeyboardInterrupt):
        assert varitext(*typed).code == 130
    assert not contents(tmp_path)
    assert varitext(*typed, "--resume").code == 0


# What was typed


@pytest.mark.parametrize(
    "typed, said",
    [
        ("--model overlap --counts", "--counts does not apply: overlap is made of counts already"),
        (
            "--model nasm --features bm25",
            "--features does not apply: nasm has no features to choose from. Models that do: compare,",
        ),
        ("--model pv --features idf", "--features does not apply: pv has no features to choose from"),
        ("--model nvdm --features idf", "--features does not apply: nvdm is a model of documents"),
        ("--model nvdm --tune-vectors", "--tune-vectors does not apply: nvdm is a model of documents"),
        ("--model lclr --tune-vectors", "--tune-vectors does not apply: lclr does not learn word vectors"),
        ("--model nasm --tune-vectors --unseen-words 9", "--unseen-words does not apply: --tune-vectors drops words"),
        ("--model nvdm --longest-answer 9", "--longest-answer does not apply: nvdm is a model of documents"),
        ("--model lclr --latent-dim 3", "--latent-dim does not apply: lclr has no latent variable; nasm has"),
        ("--model lstm --free-bits 1", "--free-bits does not apply: lstm has no latent variable; nasm has"),
        ("--model overlap --features bm26 --vectors random", "called 'bm26'; there are: word_overlap, idf_overlap,"),
        ("--model deep_cnn --features idf --vectors random", "no feature of this model is called 'idf'"),
        ("--model overlap --features= --vectors random", "no feature of this model is called ''"),
    ],
)
def test_what_does_not_apply_is_refused_in_one_line(typed, said, asked, tmp_path):
    assert said in refused(tmp_path, "fit", asked, "--out", tmp_path / "new", *typed.split())


def test_settings_of_steps_are_said_to_have_no_effect(asked, tmp_path):
    said = fit(asked, tmp_path / "model", "--model", "overlap", "--epochs", 1, "--learning-rate", 0.1, *WORDS)
    assert said.startswith("note: overlap is not trained in steps: --epochs, --learning-rate have no effect\n")


def test_help_lists_every_model():
    listed = re.search(r"--model NAME(.*?)\(default:", varitext("fit", "--help").out, re.DOTALL)[1]
    assert sorted(re.findall(r"\b[a-z_0-9]+\b", listed)) == sorted([*DOCUMENT_MODELS, *ANSWER_MODELS])
