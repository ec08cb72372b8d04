"""`fit --seeds` and `compare` of document models: tables by hand, the same held-out documents, resume, refusals."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from command_line import MODEL_FILES, TOPIC_FILES, contents, fit, refused, varitext

from varitext import DocumentModel
from varitext.cli.fit_seeds import seed_scores
from varitext.evaluation.perplexity import compare_documents
from varitext.evaluation.significance import seed_interval

GROUPS = ("moon orbit rocket launch", "goal team league match", "bread oven flour yeast")
SMALL = ("--latent-dim", 3, "--epochs", 3, "--learning-rate", 0.02, "--threads", 1, "--topics", 3)


def rows(documents: int, seed: int) -> str:
    generator = np.random.default_rng(seed)
    words = [" ".join(generator.choice(GROUPS[generator.integers(3)].split(), 12)) for _ in range(documents)]
    return "".join(json.dumps({"text": text}) + "\n" for text in words)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("corpus") / "stories"
    folder.mkdir()
    (folder / "train.jsonl").write_text(rows(90, 0))
    (folder / "test.jsonl").write_text(rows(30, 1))
    return folder


@pytest.fixture(scope="module")
def seeds(corpus) -> Path:
    """Three fits; tests only read them."""
    folder = corpus.parent / "seeds"
    (corpus.parent / "said").write_text(fit(corpus, folder, "--seeds", 3, "--seed", 4, *SMALL))
    return folder


@pytest.fixture(scope="module")
def dreg(corpus) -> Path:
    fit(corpus, corpus.parent / "dreg", "--estimator", "dreg", "--samples", 4, *SMALL)
    return corpus.parent / "dreg"


def test_the_best_seed_is_the_model_and_the_table_has_mean_and_interval(seeds):
    table = json.loads((seeds / "seeds.json").read_text())
    fits = {seed: DocumentModel.load(seeds / f"seed-{seed}") for seed in (4, 5, 6)}
    scores = {seed: model.fitted_.dev_perplexity for seed, model in fits.items()}
    assert len(set(scores.values())) == 3 and {model.seed for model in fits.values()} == set(scores)
    values = list(scores.values())
    interval = scipy.stats.t.interval(0.95, 2, np.mean(values), scipy.stats.sem(values))
    assert table["scores"] == {str(seed): score for seed, score in scores.items()}
    assert table["mean"] == pytest.approx(np.mean(values)) and table["interval_95"] == pytest.approx(interval)
    best = min(scores, key=scores.get)
    assert table["best_seed"] == best == DocumentModel.load(seeds).seed
    assert sorted(path.name for path in seeds.iterdir()) == sorted(
        [*MODEL_FILES, *TOPIC_FILES, "seeds.json", "seed-4", "seed-5", "seed-6"]
    )
    said = (seeds.parent / "said").read_text()
    assert (
        f"{best:>4}  {scores[best]:19.1f}  best\n" in said and f"\nmean  {table['mean']:19.1f}  95 % interval" in said
    )


def test_every_seed_holds_out_the_same_documents(seeds):
    """The word frequencies of the others are stored."""
    frequencies = [DocumentModel.load(seeds / f"seed-{seed}").fitted_.network.word_log_frequencies for seed in (4, 5)]
    assert frequencies[0].equal(frequencies[1])
    other = DocumentModel.load(seeds / "seed-5")
    assert (other.seed, other.dev_seed) == (5, 4)


def test_an_interrupted_run_resumes_with_the_seeds_that_are_missing(corpus, seeds, tmp_path):
    shutil.copytree(seeds, tmp_path / "model")
    for name in (*MODEL_FILES, *TOPIC_FILES, "seeds.json"):
        (tmp_path / "model" / name).unlink()
    shutil.rmtree(tmp_path / "model" / "seed-6")
    typed = ("--seeds", 3, "--seed", 4, *SMALL)
    assert "exists already" in refused(tmp_path, "fit", corpus, "--out", tmp_path / "model", *typed)
    other = refused(tmp_path, "fit", corpus, "--out", tmp_path / "model", *typed, "--resume", "--batch-size", 8)
    assert "seed-4 was fitted with other settings (batch_size None, now 8)" in other
    said = fit(corpus, tmp_path / "model", *typed, "--resume")
    assert said.startswith("seed 4: finished before\nseed 5: finished before\nseed 6\n")
    again = json.loads((tmp_path / "model" / "seeds.json").read_text())
    assert again == json.loads((seeds / "seeds.json").read_text())
    assert "exists already" in refused(tmp_path, "fit", corpus, "--out", tmp_path / "model", *typed, "--resume")


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("--seeds", 1), "--seeds"),
        (("--seeds", 2, "--ray-workers", 2), "--ray-workers does not apply: --seeds fits one model after another"),
        (("--seeds", 2, "--estimator", "dreg", *SMALL), "dreg compares samples"),
    ],
)
def test_what_was_typed_is_refused_in_one_line(typed, said, corpus, tmp_path):
    assert said in refused(tmp_path, "fit", corpus, "--out", tmp_path / "model", *typed)


def test_seeds_of_a_ranker_are_scored_by_dev_map(tmp_path):
    pairs = [
        {"question": f"who is {number}", "answer": f"{answer} {number}", "label": int(answer == "king")}
        for number in range(30)
        for answer in ("king", "lake")
    ]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    options = ("--model", "nasm", "--latent-dim", 3, "--embedding-dim", 6, "--vectors", "random", "--epochs", 1)
    said = fit(tmp_path / "pairs.jsonl", tmp_path / "model", "--seeds", 2, *options, "--threads", 1)
    table = json.loads((tmp_path / "model" / "seeds.json").read_text())
    assert table["measure"] == "dev MAP" and "seed  dev MAP\n" in said
    assert table["scores"][str(table["best_seed"])] == max(table["scores"].values())
    refusal = refused(tmp_path, "fit", tmp_path / "pairs.jsonl", "--model", "overlap", "--out", "new", "--seeds", 2)
    assert "--seeds does not apply: overlap does not depend on the seed" in refusal


def test_the_best_is_the_lowest_perplexity_and_the_highest_map():
    scores = {0: 0.5, 1: 0.7, 2: 0.6}
    assert (seed_scores(scores, "held-out perplexity").best_seed, seed_scores(scores, "dev MAP").best_seed) == (0, 1)


def test_the_interval_over_seeds_by_hand():
    found = seed_interval([1.0, 2.0, 6.0])
    half = 4.302652729911275 * np.sqrt(7.0) / np.sqrt(3)  # t of 2 degrees of freedom; variance 7
    assert found.bounds == pytest.approx((3 - half, 3 + half)) and found.mean == 3


# Compare


def test_models_are_compared_document_by_document(seeds, dreg, corpus):
    outcome = varitext("compare", seeds / "seed-4", dreg, "--json")
    record = json.loads(outcome.out)
    first, second = record["models"]
    bounds = [DocumentModel.load(folder).bounds_per_word(_test_texts(corpus)) for folder in (seeds / "seed-4", dreg)]
    expected = compare_documents(*bounds)
    assert (record["part"], record["n_documents"], second["n_documents"]) == ("test", 30, 30)
    assert first["per_document_perplexity"] == pytest.approx(np.exp(-bounds[0].mean()))
    assert second["difference"] == pytest.approx(expected.difference) == pytest.approx((bounds[1] - bounds[0]).mean())
    assert second["interval_95"] == pytest.approx(list(expected.interval_95))
    assert second["interval_95"][0] < second["difference"] < second["interval_95"][1]
    assert second["p_value"] == expected.p_value and "difference" not in first
    shown = varitext("compare", seeds / "seed-4", dreg).out
    assert f"{second['difference']:+.4f}" in shown and "30 documents" in shown and "positive is better" in shown


def _test_texts(corpus: Path) -> list[str]:
    return [json.loads(line)["text"] for line in (corpus / "test.jsonl").read_text().splitlines()]


def test_all_seeds_of_a_folder_are_compared_by_their_mean(seeds, dreg, corpus):
    record = json.loads(varitext("compare", dreg, seeds, dreg, corpus, "--json").out)
    _, second, third = record["models"]
    bounds = [DocumentModel.load(seeds / f"seed-{seed}").bounds_per_word(_test_texts(corpus)) for seed in (4, 5, 6)]
    own = DocumentModel.load(dreg).bounds_per_word(_test_texts(corpus))
    assert second["n_seeds"] == 3 and second["difference"] == pytest.approx((np.mean(bounds, 0) - own).mean())
    assert (third["difference"], third["p_value"], third["interval_95"]) == (0.0, 1.0, [0.0, 0.0])
    assert f"{seeds} (3 seeds)" in varitext("compare", dreg, seeds).out


def test_a_difference_that_all_documents_share_is_found_and_noise_is_not():
    generator = np.random.default_rng(0)
    first = generator.normal(-7, 1, 200)
    better = compare_documents(first, first + 0.05 + 0.1 * generator.normal(size=200))
    assert better.p_value < 1e-3 and 0.02 < better.interval_95[0] < better.difference < better.interval_95[1] < 0.08
    same = compare_documents(first, first + 0.1 * generator.normal(size=200))
    assert same.p_value > 0.01 and same.interval_95[0] < 0 < same.interval_95[1]


def test_the_bounds_of_documents_have_the_score_as_their_mean(dreg, corpus):
    model = DocumentModel.load(dreg)
    texts = [*_test_texts(corpus), "nothing known"]
    assert len(model.bounds_per_word(texts)) == 30
    assert model.score(texts) == pytest.approx(model.bounds_per_word(texts).mean())


def test_what_cannot_be_compared_is_refused_in_one_line(dreg, corpus, tmp_path):
    assert "needs two models" in refused(tmp_path, "compare", dreg)
    assert "--protocol does not apply" in refused(tmp_path, "compare", dreg, dreg, "--protocol", "all")
    assert "nowhere" in refused(tmp_path, "compare", dreg, dreg, "nowhere")
    assert "bm25 is not a folder" in refused(tmp_path, "compare", dreg, "bm25")
    assert "3 rankers: two are compared at a time" in refused(tmp_path, "compare", "bm25", "bm25", "bm25")
    (tmp_path / "few.jsonl").write_text((corpus / "train.jsonl").read_text())
    fit(tmp_path / "few.jsonl", tmp_path / "few", "--vocabulary-size", 6, *SMALL)
    assert "few has another vocabulary (6 words)" in refused(tmp_path, "compare", dreg, tmp_path / "few", corpus)
    shutil.copytree(corpus, tmp_path / "elsewhere")
    fit(tmp_path / "elsewhere", tmp_path / "other", *SMALL)
    assert f"name documents, varitext compare {dreg}" in refused(tmp_path, "compare", dreg, tmp_path / "other")


def test_training_documents_are_noted(dreg, corpus):
    assert "these are not held-out documents" in varitext("compare", dreg, dreg, corpus, "--part", "train").err


def test_nothing_changes_in_the_folders(seeds, dreg):
    before = contents(seeds)
    varitext("compare", seeds, dreg)
    assert contents(seeds) == before
