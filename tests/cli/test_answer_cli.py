"""Answers from the command line: fit, evaluate, rank and compare, and one line for every bad input."""

import io
import json
import shutil
import signal
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from command_line import MODEL_FILES, contents, files_no_larger_than, fit, refused, varitext
from trec import read_columns

from varitext.answers import baselines
from varitext.answers.ranker import AnswerRanker
from varitext.answers.settings import flat_settings
from varitext.corpora import load_questions
from varitext.evaluation.attention import is_focused
from varitext.evaluation.ranking import ranking_record
from varitext.training.progress import BarProgress, LineProgress

KINDS = {"who": "king queen author", "where": "city river lake", "when": "year month day"}
SMALL = ("--threads", 1, "--embedding-dim", 8, "--batch-size", 40, "--learning-rate", 0.01, "--vectors", "random")
NASM = ("--model", "nasm", "--latent-dim", 4, *SMALL)
EVALUATE_KEYS = {
    *("map", "mrr", "protocol", "n_questions", "n_pairs", "log_loss", "brier", "ece", "corpus", "corpus_sha256"),
    *("ties", "risk", "risk_of_surer_half", "risk_coverage_area", "by_question_word", "part", "n_samples"),
}


def rows(questions: int, seed: int) -> list[dict]:
    """The question's word decides what kind of word a right answer has; right answers stand early."""
    generator, made = np.random.default_rng(seed), []
    for number in range(questions):
        asked, right = str(generator.choice(list(KINDS))), int(generator.integers(2))
        others = " ".join(words for kind, words in KINDS.items() if kind != asked).split()
        for place in range(4):
            word = generator.choice(KINDS[asked].split() if place == right else others)
            answer = f"the {generator.choice(['old', 'near', 'first'])} {word} was number {place} of {number}"
            made.append(
                {
                    "question": f"{asked} was the {number}",
                    "answer": answer,
                    "label": int(place == right),
                    "position": place,
                }
            )
    return made


def write(path: Path, pairs: list[dict]) -> Path:
    path.write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    return path


@pytest.fixture(scope="module")
def divided(tmp_path_factory) -> Path:
    """Questions of one's own in three parts."""
    folder = tmp_path_factory.mktemp("corpus") / "asked"
    folder.mkdir()
    for part, questions, seed in (("train", 40, 0), ("dev", 12, 1), ("test", 20, 2)):
        write(folder / f"{part}.jsonl", rows(questions, seed))
    return folder


@pytest.fixture(scope="module")
def fitted(divided) -> Path:
    """A model folder; tests only read it."""
    fit(divided, divided.parent / "model", "--epochs", 4, *NASM)
    return divided.parent / "model"


@pytest.fixture(scope="module")
def placed(divided) -> Path:
    """One that looks at shared words and at places, in addition."""
    fit(divided, divided.parent / "placed", "--epochs", 1, "--counts", "--position", *NASM)
    return divided.parent / "placed"


@pytest.fixture
def sentences(tmp_path) -> Path:
    path = tmp_path / "sentences.txt"
    path.write_text("the old lake\n\nthe first king was near\nxyzzy\n")
    return path


# Fit


def test_fit_writes_a_model_folder_and_shows_whether_the_latent_lives(divided, tmp_path):
    said = fit(divided, tmp_path / "model", "--epochs", 2, *NASM).splitlines()
    assert sorted(contents(tmp_path / "model")) == MODEL_FILES
    assert said[-2].startswith("100%  epoch 2  bound -") and "/pair  KL " in said[-2] and "  dev map 0." in said[-2]
    assert "active units, gap " in said[-2] or "posterior collapse, gap " in said[-2]
    assert said[-1].startswith("40 questions with 160 pairs, ") and said[-1].endswith(f"model in {tmp_path}/model")
    assert AnswerRanker.load(tmp_path / "model").fitted_.n_dev_questions == 12


def test_a_model_without_a_latent_says_nothing_about_one(divided, tmp_path):
    line, _ = fit(divided, tmp_path / "model", "--epochs", 1, "--model", "lstm", *SMALL).splitlines()
    assert "posterior_prior_gap" not in line and "latent" not in line and "KL 0.00  dev map" in line
    typed = ("fit", divided, "--out", tmp_path / "new", "--model", "lstm", "--latent-dim", 3)
    assert "lstm has no latent variable" in refused(tmp_path, *typed)


@pytest.mark.parametrize("show", [lambda: BarProgress(True), lambda: LineProgress("pair", True)])
def test_the_terminal_tells_a_living_latent_from_a_dead_one(show, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for units, said in ((3, "3 active units, gap 0.125"), (0, "posterior collapse, gap 0.000")):
        with show() as progress:
            progress.step(0.5, -0.25, 0.5)
            progress.round(
                {"epoch": 1, "dev_map": 0.5, "active_units": units, "posterior_prior_gap": units / 24 or -1e-5}
            )
            progress.step(1.0, -0.25, 0.5)
            progress.round(
                {"epoch": 2, "dev_map": 0.5, "active_units": units, "posterior_prior_gap": units / 24 or -1e-5}
            )
            progress.step(1.0, -0.25, 0.5)
        assert said in capsys.readouterr().err


def test_settings_arrive_where_they_belong(divided, tmp_path):
    options = ("--kl-warm-up", 0.5, "--free-bits", 0.25, "--seed", 3, "--epochs", 1, "--part", "dev")
    fit(divided, tmp_path / "model", *NASM, *options, "--unseen-words", 0, "--longest-answer", 90)
    ranker = AnswerRanker.load(tmp_path / "model")
    settings = flat_settings(ranker)
    names = ("kl_warm_up", "free_bits", "seed", "embedding_dim", "latent_dim", "batch_size", "learning_rate", "vectors")
    assert [settings[name] for name in names] == [0.5, 0.25, 3, 8, 4, 40, 0.01, "random"]
    assert (ranker.unseen_words, ranker.longest_answer) == (0, 90)
    assert (
        ranker.fitted_.corpus["part"] == "dev"
        and ranker.fitted_.n_training_questions + ranker.fitted_.n_dev_questions == 12
    )


def test_own_questions_are_found_again_only_if_they_are_the_same(divided, fitted, tmp_path):
    shutil.copytree(fitted, tmp_path / "model")
    moved = divided.rename(divided.with_name("moved"))
    try:
        shutil.copytree(moved, divided)
        assert varitext("evaluate", tmp_path / "model", "--json").code == 0
        write(divided / "train.jsonl", rows(30, 9))
        said = refused(tmp_path, "evaluate", tmp_path / "model")
        assert (
            f"the train part of {divided} is not what the model was fitted on, or has changed: name questions" in said
        )
        shutil.rmtree(divided)
        assert "is not here: name questions" in refused(tmp_path, "evaluate", tmp_path / "model")
    finally:
        shutil.rmtree(divided, ignore_errors=True)
        moved.rename(divided)


def test_a_file_of_pairs_has_some_questions_held_out_and_needs_others_to_be_evaluated_on(tmp_path):
    pairs = rows(30, 0)
    lines = ["question,answer,label", *(f'{one["question"]},"{one["answer"]}",{one["label"]}' for one in pairs)]
    (tmp_path / "pairs.csv").write_text("\n".join(lines))
    fit(tmp_path / "pairs.csv", tmp_path / "model", "--epochs", 1, *NASM)
    ranker = AnswerRanker.load(tmp_path / "model")
    assert (ranker.fitted_.n_training_questions, ranker.fitted_.n_dev_questions) == (27, 3)
    said = refused(tmp_path, "evaluate", tmp_path / "model")
    assert "has no test part: name questions that the model has not seen, varitext evaluate" in said
    outcome = varitext("evaluate", tmp_path / "model", tmp_path / "pairs.csv", "--json")
    assert json.loads(outcome.out)["held_out"] is False and outcome.err.startswith("note: the model was fitted on")


def stop_at(share: float, folds: bool = False):
    """Somebody who presses Ctrl-C when that much is done, or when the first fold begins."""

    class Impatient(LineProgress):
        def step(self, share_done: float, elbo: float, kl: float) -> None:
            if share_done >= share and not folds:
                signal.raise_signal(signal.SIGINT)

        def note(self, message: str) -> None:
            if folds and message.startswith("fold 2"):
                raise OSError(28, "No space left on device", "checkpoint-fold-2.safetensors")

    return mock.patch("varitext.training.progress.show_progress", lambda *_: Impatient("pair", True))


def test_control_c_keeps_the_best_model_and_resume_gives_the_same_bytes(divided, fitted, tmp_path):
    command = ("fit", divided, "--out", tmp_path / "model", "--epochs", 4, *NASM)
    with stop_at(0.6):
        outcome = varitext(*command)
    assert outcome.code == 130 and outcome.out == ""
    assert outcome.err.splitlines()[-1] == "run the same command with --resume to continue"
    assert sorted(contents(tmp_path / "model")) == sorted([*MODEL_FILES, "checkpoint.safetensors"])
    assert varitext("evaluate", tmp_path / "model", "--json").code == 0
    assert "add --resume" in refused(tmp_path, *command)
    assert "other settings" in refused(tmp_path, *command, "--resume", "--seed", 5)
    fit(divided, tmp_path / "model", *command[4:], "--resume")
    assert sorted(contents(tmp_path / "model")) == MODEL_FILES
    assert contents(tmp_path / "model")["weights.safetensors"] == contents(fitted)["weights.safetensors"]
    assert "nothing to resume" in refused(tmp_path, *command, "--resume")


def test_a_run_cut_short_between_folds_goes_on_where_it_was(divided, placed, tmp_path):
    command = ("fit", divided, "--out", tmp_path / "model", "--epochs", 1, "--counts", "--position", *NASM)
    with stop_at(2, folds=True):
        outcome = varitext(*command)
    assert outcome.code == 2 and outcome.err.endswith("run the same command with --resume to continue\n")
    kept = ["checkpoint-fold-1.safetensors", "checkpoint.safetensors"]
    assert sorted(contents(tmp_path / "model")) == kept
    with mock.patch("varitext.answers.fitting.out_of_fold", side_effect=KeyboardInterrupt):
        assert varitext(*command, "--resume").code == 130
    assert sorted(contents(tmp_path / "model")) == sorted([*MODEL_FILES, *kept])
    fit(divided, tmp_path / "model", *command[4:], "--resume")
    assert sorted(contents(tmp_path / "model")) == MODEL_FILES
    first, second = (AnswerRanker.load(folder) for folder in (tmp_path / "model", placed))
    assert first.fitted_.combination == second.fitted_.combination and first.fitted_.dev_map == second.fitted_.dev_map


def test_a_run_that_diverges_leaves_a_usable_model(divided, tmp_path):
    options = (*NASM, "--learning-rate", "1e38", "--epochs", 3)
    with mock.patch(
        "varitext.training.trainer.RESCUES", 0
    ):  # these models survive even that rate after a few roll-backs
        outcome = varitext("fit", divided, "--out", tmp_path / "model", *options)
    assert outcome.code == 2 and "learning rate below" in outcome.err.splitlines()[-1]
    assert sorted(contents(tmp_path / "model")) == MODEL_FILES
    assert varitext("evaluate", tmp_path / "model").code == 0


def test_a_full_disk_leaves_nothing(divided, tmp_path):
    with files_no_larger_than(64_000):
        said = refused(tmp_path, "fit", divided, "--out", tmp_path / "model", "--epochs", 1, *NASM)
    assert said == f"varitext: {tmp_path}/model/checkpoint.safetensors: File too large\n"


# Evaluate


def test_evaluate_prints_one_json_object_that_says_what_the_library_says(fitted, divided):
    outcome = varitext("evaluate", fitted, "--json")
    assert (outcome.code, outcome.err, outcome.out.count("\n")) == (0, "", 1)
    record = json.loads(outcome.out)
    assert record.keys() >= EVALUATE_KEYS
    expected = AnswerRanker.load(fitted).evaluate(load_questions(divided, "test"))
    assert (record["map"], record["log_loss"]) == (expected.ranking.map, expected.calibration.log_loss)
    assert (record["protocol"], record["n_questions"], record["n_pairs"]) == ("answerable", 20, 80)
    assert record["held_out"] is True and sum(one["n_questions"] for one in record["by_question_word"]) == 20
    weighed = sum(one["map"] * one["n_questions"] for one in record["by_question_word"]) / 20
    assert weighed == pytest.approx(record["map"])
    assert [one["name"] for one in record["baselines"]] == ["word_count", "bm25", "minilm"]
    assert record["baselines"] == [one.as_dict() for one in expected.baselines]


def test_evaluate_for_people(fitted):
    shown = varitext("evaluate", fitted, "--samples", 3, "--part", "dev").out
    for words in ("(dev): 12 questions, 48 pairs", "MAP  ", "MRR  ", "95 % interval", "expectation over all orders"):
        assert words in shown
    for words in ("P@1  ", "word count  ", "BM25  ", "difference  p"):
        assert words in shown
    for words in ("3 samples", "Brier", "calibration error", "more certain half", "by question word", "answerable"):
        assert words in shown


def test_protocols_count_different_questions(fitted, tmp_path):
    pairs = rows(3, 5)
    for pair in pairs[:4]:
        pair["label"] = 0  # a question without a right answer
    for pair in pairs[4:8]:
        pair["label"] = 1  # and one with right answers only
    corpus = write(tmp_path / "pairs.jsonl", pairs)
    for protocol, counted in (("answerable", 2), ("both", 1), ("all", 3)):
        record = json.loads(varitext("evaluate", fitted, corpus, "--protocol", protocol, "--json").out)
        assert (record["protocol"], record["n_questions"], record["n_questions_left_out"]) == (
            protocol,
            counted,
            3 - counted,
        )
    assert "2 questions (1 left out), 8 pairs" in varitext("evaluate", fitted, corpus).out


def test_trec_files_hold_the_ranking(fitted, tmp_path):
    files = ("--run", tmp_path / "answers.run", "--qrels", tmp_path / "answers.qrels")
    outcome = varitext("evaluate", fitted, "--json", *files)
    record = json.loads(outcome.out)
    (questions, _, documents, _, scores, _), judged = read_columns(files[1]), read_columns(files[3])
    grades = dict(zip(zip(judged[0], judged[2], strict=True), map(int, judged[3]), strict=True))
    labels = [grades[pair] for pair in zip(questions, documents, strict=True)]
    found = ranking_record(list(map(float, scores)), labels, questions)
    assert found.map == pytest.approx(record["map"], abs=1e-12)
    assert "exists already" in refused(tmp_path, "evaluate", fitted, *files[:2])


def test_qasent_has_its_own_protocol(fitted, data_dir, monkeypatch):
    monkeypatch.setattr(baselines, "MAX_NEW_SENTENCES", 0)  # MiniLM would read 1,500 of them for its baseline
    record = json.loads(varitext("evaluate", fitted, "qasent", "--data-dir", data_dir, "--json").out)
    assert (record["protocol"], record["n_questions"]) == ("clean", 68)


# Rank and compare


def test_rank_prints_what_the_library_says(fitted, sentences):
    outcome = varitext("rank", fitted, "--question", "who was the king", "--candidates", sentences, "--json")
    assert (outcome.code, outcome.err, outcome.out.count("\n")) == (0, "", 1)
    texts = ["the old lake", "the first king was near", "xyzzy"]
    expected = AnswerRanker.load(fitted).rank("who was the king", texts).as_dict()
    assert json.loads(outcome.out) == json.loads(json.dumps(expected)) | {"model": str(fitted)}
    shown = varitext("rank", fitted, "--question", "who was the king", "--candidates", sentences).out.splitlines()
    assert "none of these" in shown[-1] and "3 candidates, 20 samples" in shown[0]
    # "xyzzy" is not explained
    assert shown[-2].split() == ["3", "0.000", "0.000", "3", "(no", "known", "word)", "xyzzy"]
    best = expected["candidates"][0]
    assert shown[1].split()[:2] == ["1", f"{best['probability']:.3f}"] and shown[1].endswith(best["text"])
    if is_focused(best["attention_mean"]):
        assert shown[2].strip().startswith("attention: ")
        assert best["words"][int(np.argmax(best["attention_mean"]))] in shown[2]
    else:
        matched = [line.strip() for line in shown if "matches" in line]
        assert matched == ["matches: king 100%"]  # of "the first king was near"; the other has no word of the question


def test_long_candidates_and_copies_are_shown_as_such(tmp_path):
    right, filler = "James Joyce wrote Ulysses in Paris .", "Many people walk along the harbour in the evening . " * 10
    path = tmp_path / "passages.txt"
    path.write_text(f"{filler}{right} {filler}\nDublin is a city .\nDublin is a CITY !\n", encoding="utf-8")
    shown = varitext("rank", "bm25", "--question", "who wrote Ulysses ?", "--candidates", path).out
    first, passage, why, *_ = map(str.strip, shown.splitlines()[1:])
    assert first.endswith("...") and passage.startswith("passage: Many") and right in passage
    assert why.startswith("matches: ") and "ulysses" in why and "wrote" in why
    assert "(copy of candidate 2) Dublin is a CITY !" in shown


def test_candidates_of_every_kind(fitted, sentences, tmp_path, monkeypatch):
    question = ("rank", fitted, "--question", "who was", "--json")
    expected = json.loads(varitext(*question, "--candidates", sentences).out)
    lines = [line for line in sentences.read_text().split("\n") if line]
    write(tmp_path / "rows.jsonl", [{"sentence": line} for line in lines])
    (tmp_path / "rows.csv").write_text("number,sentence\n" + "".join(f"{n},{line}\n" for n, line in enumerate(lines)))
    for name in ("rows.jsonl", "rows.csv"):
        typed = ("--candidates", tmp_path / name, "--text-column", "sentence")
        assert json.loads(varitext(*question, *typed).out) == expected
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(sentences.read_bytes())))
    one = json.loads(varitext(*question, "--candidates", "-", "-n", 1).out)
    assert one["candidates"] == expected["candidates"][:1]
    assert "and 2 more: -n 3 shows all" in varitext(*question[:-1], "--candidates", sentences, "-n", 1).out


def test_lines_are_places_for_a_model_with_position_unless_they_are_unordered(placed, fitted, tmp_path):
    same = tmp_path / "same.txt"
    same.write_text("".join(f"the old lake was number 2 of 5 {word}\n" for word in ("xyzzy", "plugh", "plover")))
    question = ("--question", "where was the 5", "--candidates", same, "--json")

    def chances(folder: Path, *options: str) -> list[float]:
        found = json.loads(varitext("rank", folder, *question, *options).out)["candidates"]
        return [one["probability"] for one in sorted(found, key=lambda one: one["place"])]

    first, second, third = chances(placed)
    assert first > second > third  # early sentences were right more often
    assert len(set(chances(placed, "--unordered"))) == len(set(chances(fitted))) == 1


def test_compare(fitted, placed, divided, tmp_path):
    record = json.loads(varitext("compare", placed, fitted, "--json").out)
    first, second = (json.loads(varitext("evaluate", folder, "--json").out) for folder in (placed, fitted))
    assert record["map"]["first"] == first["map"] and record["mrr"]["second"] == second["mrr"]
    assert record["map"]["difference"] == pytest.approx(first["map"] - second["map"])
    assert 0 < record["map"]["p_value"] <= 1 and record["n_questions"] == 20
    shown = varitext("compare", fitted, fitted).out
    assert "+0.0000  1\n" in shown and "paired randomisation test" in shown
    other = shutil.copytree(divided, tmp_path / "other")
    fit(other, tmp_path / "model", "--epochs", 1, *NASM)
    assert f"name questions, varitext compare {fitted}" in refused(tmp_path, "compare", fitted, tmp_path / "model")
    assert varitext("compare", fitted, tmp_path / "model", other).code == 0


# Report


def test_report_and_figures(placed, tmp_path):
    """Of the test part of its own corpus; questions of that part are not there to be learned from."""
    pytest.importorskip("plotly")
    pytest.importorskip("openTSNE")
    outcome = varitext("report", placed, "--out", tmp_path / "report.html", "--threads", 1)
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err.splitlines()[-1] == f"report in {tmp_path}/report.html"
    shown = (tmp_path / "report.html").read_text()
    record = json.loads(varitext("evaluate", placed, "--json").out)
    assert f"{record['map']:.4f}" in shown and f"{record['mrr']:.4f}" in shown and record["corpus_sha256"] in shown
    typed = ("figures", placed, "comparison", "question-words", "--protocol", "both", "--out", tmp_path / "figures")
    assert varitext(*typed, "--threads", 1).code == 0
    assert list(contents(tmp_path / "figures")) == ["comparison.svg", "question-words.svg"]


# What was typed


@pytest.mark.parametrize(
    "typed, said",
    [
        (
            "topics model",
            "model holds a ranker of answers, not a model of documents. Use it with evaluate, rank, compare",
        ),
        ("report model --out report.html --text-column body", "holds a ranker of answers"),
        ("transform model asked --out vectors.npy", "holds a ranker of answers"),
        ("evaluate model --text-column answer", "--text-column does not apply: model holds a ranker of answers"),
        ("evaluate model --protocol most", "unknown protocol 'most'. Protocols: answerable, both"),
        ("evaluate model asked/nowhere", "neither a file or folder nor a known corpus"),
        ("rank model --question who --candidates nowhere.txt", "cannot read nowhere.txt: No such file"),
        ("rank model --question who --candidates asked/test.jsonl", "no column 'text'. Columns: question,"),
        ("rank model --question who --candidates letter.docx", "Texts are read from .txt, .jsonl"),
        ("rank model --question who --candidates one.txt --text-column a", "one.txt has one text per line"),
        ("rank model --candidates one.txt", "--question"),
        ("fit asked --model nasm --out new --preset paper", "--preset does not apply: nasm is a model of answers"),
        ("fit asked --model lstm --out new --vocabulary-size 9", "--vocabulary-size does not apply: lstm is"),
        ("fit asked --model nvdm --out new --counts", "--counts does not apply: nvdm is a model of documents"),
        ("fit asked --out new --free-bits 0.5", "--free-bits does not apply: compare has no latent variable"),
        ("fit asked --model nasm2 --out new", "swv for documents, lstm, lstm_attention, nasm, nasm_question, compare"),
        ("fit asked --model nasm --out new --kl-warm-up 2 --vectors random", "kl_warm_up is a share of the steps"),
        ("fit asked --model nasm --out new --free-bits=-1", "free_bits must be 0 or more nats"),
        ("fit asked --model nasm --out new --vectors nowhere.txt", "cannot read nowhere.txt"),
        ("fit asked --model nasm --out new --part valid", "asked has no part 'valid'"),
        ("fit asked/test.jsonl --model nasm --out new --part test", "is not divided into parts"),
        ("fit 20newsgroups --model nasm --out new --part dev", "20newsgroups has no part 'dev'"),
        ("fit empty --model nasm --out new", "empty has no part 'train'. Expected a file such as train.jsonl"),
        ("fit asked --model nasm --out model", "model exists already"),
    ],
)
def test_what_was_typed_is_refused_in_one_line(typed, said, fitted, divided, tmp_path, monkeypatch):
    for folder, name in ((fitted, "model"), (divided, "asked")):
        shutil.copytree(folder, tmp_path / name)
    (tmp_path / "empty").mkdir()
    (tmp_path / "one.txt").write_text("a king\n")
    (tmp_path / "letter.docx").write_text("a king\n")
    monkeypatch.chdir(tmp_path)
    assert said in refused(tmp_path, *typed.split())


def test_questions_are_no_documents_and_documents_no_questions(tmp_path, data_dir):
    said = refused(tmp_path, "fit", "wikiqa", "--model", "nvdm", "--out", tmp_path / "model", "--data-dir", data_dir)
    assert "wikiqa is a corpus of questions and answers, not of documents" in said
    typed = ("fit", "20newsgroups-nvdm", "--model", "nasm", "--out", tmp_path / "model", "--data-dir", data_dir)
    assert "20newsgroups-nvdm is a corpus of documents, not of questions and answers" in refused(tmp_path, *typed)


def test_a_model_of_documents_is_refused_where_a_ranker_is_needed(tmp_path, fitted, sentences):
    texts = write(
        tmp_path / "documents.jsonl", [{"text": "orbit moon rocket launch"}, {"text": "goal team league"}] * 20
    )
    options = ("--latent-dim", 2, "--epochs", 1, "--threads", 1)
    assert varitext("fit", texts, "--out", tmp_path / "documents", *options).code == 0
    said = refused(tmp_path, "rank", tmp_path / "documents", "--question", "who", "--candidates", sentences)
    assert "documents holds a model of documents, not a ranker of answers" in said
    assert "holds a model of documents" in refused(tmp_path, "compare", fitted, tmp_path / "documents")
    said = refused(tmp_path, "evaluate", tmp_path / "documents", texts, "--protocol", "both")
    assert "--protocol does not apply" in said


# Bad input: each kind, as a user meets it


@pytest.mark.parametrize(
    "question, candidates, said",
    [
        ("  ", "a king\n", "the question is empty"),
        ("who", "", "sentences.txt has no texts"),
        ("who", " \n\n", "sentences.txt has no texts"),
        ("xyzzy plugh", "a king\n", "the question has no word that the model knows"),
        ("who was", "xyzzy\nplugh\n", "no candidate has a word that the model knows"),
        ("who was", b"a king\nna\xefve king\n", "sentences.txt, line 2: byte 9 is not UTF-8"),
    ],
)
def test_what_cannot_be_ranked_is_refused_in_one_line(question, candidates, said, fitted, tmp_path):
    content = candidates if isinstance(candidates, bytes) else candidates.encode()
    (tmp_path / "sentences.txt").write_bytes(content)
    typed = ("rank", fitted, "--question", question, "--candidates", tmp_path / "sentences.txt")
    assert said in refused(tmp_path, *typed)


def test_a_candidate_of_ten_thousand_words_is_read_in_windows(fitted, tmp_path):
    (tmp_path / "long.txt").write_text("king " * 10_000 + "\nthe old lake\n")
    outcome = varitext("rank", fitted, "--question", "who was", "--candidates", tmp_path / "long.txt", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    windows = {one["place"]: one["window"] for one in json.loads(outcome.out)["candidates"]}
    assert windows[1] is None and windows[0][1] - windows[0][0] < 60 * 5


def changed(**values: object):
    """The training rows, the second of them changed."""
    made = rows(12, 0)
    made[1] |= values
    return made


def with_label(label: int) -> list[dict]:
    return [pair | {"label": label} for pair in rows(12, 0)]


@pytest.mark.parametrize(
    "pairs, said",
    [
        (changed(label=2), "pairs.jsonl, line 2: the label is '2'; it must be 1 (right) or 0 (wrong)"),
        (changed(label="yes"), "pairs.jsonl, line 2: the label is 'yes'"),
        (changed(label=None), "pairs.jsonl, line 2: the label is 'None'"),
        (changed(question="  "), "pairs.jsonl, line 2: the question is empty"),
        (changed(answer=5), "pairs.jsonl, line 2: the answer must be text, not int"),
        (changed(position="early"), "pairs.jsonl, line 2: the position is 'early'"),
        ([{"question": "who", "text": "a king"}], "pairs.jsonl, line 1: no field 'answer'. Fields: question, text."),
        ([], "pairs.jsonl has no questions"),
        (with_label(0), "all 48 pairs have label 0; learning needs right and wrong answers"),
        (rows(1, 0), "1 question(s) have right and wrong answers: fitting needs at least 2, or dev questions"),
        (
            [{"question": f"a{c}", "answer": f"{c}{'yz'[k]}", "label": k} for c in "defghijkl" for k in (0, 1)],
            "no word occurs twice or has a vector",
        ),
    ],
)
def test_what_cannot_be_learned_from_is_refused_in_one_line(pairs, said, tmp_path):
    corpus = write(tmp_path / "pairs.jsonl", pairs)
    assert said in refused(tmp_path, "fit", corpus, "--out", tmp_path / "model", *NASM)


def test_files_that_are_not_utf8_are_refused_in_one_line(fitted, divided, tmp_path):
    (tmp_path / "latin.csv").write_bytes(b"question,answer,label\nwho,na\xefve king,1\n")
    typed = ("fit", tmp_path / "latin.csv", "--out", tmp_path / "model", *NASM)
    assert "latin.csv, line 2: byte 28 is not UTF-8 text" in refused(tmp_path, *typed)
    assert "is not UTF-8 text" in refused(tmp_path, "evaluate", fitted, tmp_path / "latin.csv")
    (tmp_path / "latin.vec").write_bytes(b"king 1 2\nna\xefve 1 2\n")
    typed = ("--model", "nasm", "--vectors", tmp_path / "latin.vec", "--embedding-dim", 2)
    said = refused(tmp_path, "fit", divided, "--out", tmp_path / "model", *typed)
    assert "latin.vec, line 2: the word is not UTF-8 text" in said


def test_vectors_of_the_wrong_width_are_refused_in_one_line(divided, tmp_path):
    (tmp_path / "narrow.vec").write_text("king 1 2 3\nlake 1 2 4\n")
    typed = ("fit", divided, "--out", tmp_path / "model", "--model", "nasm", "--vectors")
    said = refused(tmp_path, *typed, tmp_path / "narrow.vec", "--embedding-dim", 50)
    assert "the word vectors have 3 dimensions: embedding_dim must not be above, but is 50" in said
    (tmp_path / "uneven.vec").write_text("king 1 2 3\nlake 1 2\n")
    assert "uneven.vec, line 2: expected a word and 3 numbers" in refused(tmp_path, *typed, tmp_path / "uneven.vec")


def test_a_pair_with_both_labels_is_said_and_kept(fitted, tmp_path):
    pairs = rows(2, 7)
    corpus = write(tmp_path / "pairs.jsonl", [*pairs, pairs[0] | {"label": 1 - pairs[0]["label"]}])
    outcome = varitext("evaluate", fitted, corpus, "--json")
    assert outcome.code == 0 and json.loads(outcome.out)["n_pairs"] == 9
    assert outcome.err.startswith("note: ") and "line 9: this pair occurs above with the other label" in outcome.err


def test_questions_of_which_none_counts_are_refused_in_one_line(fitted, tmp_path):
    wrong, right = (write(tmp_path / f"{label}.jsonl", with_label(label)) for label in (0, 1))
    said = refused(tmp_path, "evaluate", fitted, wrong)
    assert "none of 12 questions counts under the protocol 'answerable'" in said
    said = refused(tmp_path, "evaluate", fitted, right, "--protocol", "both")
    assert "all 48 answers are right; an evaluation needs wrong ones, too" in said


def test_questions_of_unknown_words_are_evaluated_as_such(fitted, tmp_path):
    pairs = [{"question": "xyzzy", "answer": answer, "label": label} for answer, label in (("plugh", 1), ("foo", 0))]
    record = json.loads(varitext("evaluate", fitted, write(tmp_path / "pairs.jsonl", pairs), "--json").out)
    assert record["map"] == 0.75  # a tie, in expectation
