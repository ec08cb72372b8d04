"""The options of `varitext fit` are the settings of the two records: each said once, there."""

import re
from unittest import mock

import pytest
import typer
from command_line import varitext

from varitext.answers.settings import AnswerRecipe, AnswerSettings
from varitext.cli import app
from varitext.documents.model import DocumentModel
from varitext.documents.settings import DocumentSettings
from varitext.records import GROUPS, options_of, record_from_options

# what people and scripts type; an option that goes away or changes its name breaks them
OPTIONS = """
--out --model --continue --new-words --latent-dim --seed --epochs --batch-size --learning-rate --time-limit --threads
--device --resume --ray-workers --ray-address --part --data-dir --preset --updates --estimator --vocabulary-size
--processes --text-column --count-column --counts --position --features --vectors --embedding-dim --unseen-words
--tune-vectors --ensemble --longest-answer --kl-warm-up --free-bits --id-column --label-column --date-column --encoding
--min-documents --samples --keep-boilerplate --keep-duplicates --passages --kl-schedule --seeds
--max-share --stop-words --ngrams --phrases --strip-html --strip-urls --segmenter --topics --seed-topics
--min-topic-size --question-column --answer-column --min-relevance --trust
"""


def fit_command():
    return typer.main.get_command(app).commands["fit"]


def test_the_command_has_the_options_that_people_type():
    found = [name for one in fit_command().params for name in one.opts if name.startswith("--")]
    assert sorted(found) == sorted(OPTIONS.split())


@pytest.mark.parametrize("record", [DocumentSettings, AnswerSettings])
def test_every_setting_that_is_an_option_is_in_the_help_with_its_limits_and_default(record):
    shown = " ".join(varitext("fit", "--help").out.split())
    parameters = {one.name: one for one in fit_command().params}
    for name, field in options_of(record).items():
        option = field.metadata["option"]
        assert f"--{name.replace('_', '-')} " in shown
        assert option.help[1:].rstrip(".") in shown, name
        assert parameters[name].rich_help_panel == option.group
        other = options_of(AnswerSettings if record is DocumentSettings else DocumentSettings).get(name, field)
        assert parameters[name].default == (field.default if other.default == field.default else None)


def test_help_is_in_groups():
    headings = re.findall(r"^([A-Z].*):$", varitext("fit", "--help").out, re.MULTILINE)
    assert headings == ["Arguments", "Options", *GROUPS]


def test_a_setting_of_one_side_says_so():
    shown = " ".join(varitext("fit", "--help").out.split())
    assert (
        "Documents: threads or processes that count words (default: all cores" in shown
        and "Answers: KL per pair" in shown
    )
    assert "Documents: documents per update. Chosen by the model if omitted. Answers: pairs per update." in shown
    assert shown.count("Number of latent dimensions (default: 50") == 1


def test_typed_options_reach_their_record_also_under_another_name_and_within_a_recipe():
    typed = {"tune_vectors": True, "free_bits": 0.5, "seed": 3, "out": "ignored"}
    expected = AnswerSettings(tune_word_vectors=True, seed=3, recipe=AnswerRecipe(free_bits=0.5))
    assert vars(record_from_options(AnswerSettings, typed)) == vars(expected)


def test_a_fit_on_ray_leaves_loading_to_the_workers(tmp_path):
    """The corpus is read where it is learned from, and nowhere else."""
    (tmp_path / "texts.jsonl").write_text('{"text": "one two"}\n')
    with (
        mock.patch("varitext.corpora.load_as", side_effect=AssertionError("loaded")) as load,
        mock.patch("varitext.ray.cluster.run_in_workers", side_effect=KeyboardInterrupt) as started,
    ):
        options = ("--ray-workers", 2, "--latent-dim", 3, "--out", tmp_path / "model")
        assert varitext("fit", tmp_path / "texts.jsonl", *options).code == 130
    assert not load.called and started.call_args.args[2] == 2
    request = started.call_args.args[1]["request"]
    assert request.typed["latent_dim"] == 3 and request.resume


def test_config_is_read_once_for_each_load(tmp_path):
    DocumentModel(latent_dim=2, epochs=1, threads=1).fit(["moon orbit", "bread oven", "goal team"] * 20).save(
        tmp_path / "m"
    )
    from varitext import store

    with mock.patch.object(store, "read_config", wraps=store.read_config) as read:
        assert varitext("similar", tmp_path / "m", "--word", "moon").code == 0
    assert read.call_count == 1
