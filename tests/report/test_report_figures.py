"""Saved figures: the same data as on the page, text as text, no browser and no network."""

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from command_line import refused
from command_line import varitext as varitext_command
from hypothesis import given
from hypothesis import strategies as st
from report_page import HOSTILE

pytest.importorskip("plotly")
pytest.importorskip("openTSNE")
pytest.importorskip("matplotlib")

import test_report
import test_report_answers
from PIL import Image

from varitext.charts.records import Axis, Bars, Curve, Group, Intervals, Map
from varitext.documents.charts import breakdown
from varitext.documents.fitting import ACTIVE
from varitext.documents.model import DocumentModel
from varitext.errors import InputError
from varitext.report import ColumnValues, save_answer_figures, save_document_figures
from varitext.report.answers import ANSWER_FIGURES
from varitext.report.documents import DOCUMENT_FIGURES
from varitext.report.drawing import canvas, chart_figure, drawing_style, shortened, svg_text, text_width, write_figure

SVG = "{http://www.w3.org/2000/svg}"
LINK = "{http://www.w3.org/1999/xlink}href"
SHAPES = {f"{SVG}{name}" for name in ("svg", "title", "g", "defs", "clipPath", "rect", "path", "use", "text")}


@pytest.fixture(scope="module")
def model() -> DocumentModel:
    words = (*HOSTILE, *(f"word{number}" for number in range(40 - len(HOSTILE))))
    return DocumentModel(latent_dim=4, epochs=2, batch_size=64, threads=1).fit(test_report.corpus(60, words))


def read(path) -> ElementTree.Element:
    """The root; only shapes that show something, and none that fetches or runs."""
    root = ElementTree.parse(path).getroot()
    for element in root.iter():
        assert element.tag in SHAPES
        assert not [name for name in element.attrib if name.startswith("on") or name == "href"]
        assert element.get(LINK, "#").startswith("#")  # a shape of this file
    assert "nan" not in path.read_text(encoding="utf-8")
    return root


def painted(path) -> Image.Image:
    with Image.open(path) as picture:
        return picture.convert("RGB")


def texts(root: ElementTree.Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{SVG}text")]


# Files


def test_all_figures_of_documents_with_hostile_words(model, tmp_path):
    documents = test_report.corpus(40, model.fitted_.vocabulary.words)
    labels = [HOSTILE[row % 3] for row in range(40)]
    paths = save_document_figures(model, documents, tmp_path, labels=labels)
    columns = {"by-class", "over-time"}  # which were not given
    assert {path.stem for path in paths} | {"posteriors"} == set(DOCUMENT_FIGURES) - columns  # it may be all uncertain
    found = {path.stem: read(path) for path in paths}
    assert set(HOSTILE[:3]) <= set(texts(found["labels"]))
    for name in ("map", "labels"):
        dots = [
            path.attrib["d"] for path in found[name].iter(f"{SVG}path") if "linecap: round" in path.get("style", "")
        ]
        assert "".join(dots).count("M") == 40  # each document once
    assert len(list(found["labels"].iter(f"{SVG}use"))) == 3  # the legend
    bars = [path for path in found["dimensions"].iter(f"{SVG}path") if path.get("style") == "fill: #3f7cd6"]
    assert len(bars) == sum(topic.kl > ACTIVE for topic in model.latent_dimensions())
    for topic in model.topics():
        assert any(f"({topic.share:.1%})" in text for text in texts(found["topics"]))
        assert set(topic.words) & set(texts(found["topics"]))


def test_topics_by_class_and_over_time_with_hostile_values(model, tmp_path):
    documents = test_report.corpus(60, model.fitted_.vocabulary.words)
    columns = [
        ColumnValues("kind", [HOSTILE[row % 3] for row in range(60)]),
        ColumnValues("when", [None, *(f"2026-0{1 + row % 4}" for row in range(59))], over_time=True),
    ]
    paths = save_document_figures(model, documents, tmp_path, ["by-class", "over-time"], columns=columns)
    by_class, over_time = map(read, paths)
    assert set(HOSTILE[:3]) <= set(texts(by_class))
    assert {"2026-01", "2026-04"} <= set(texts(over_time)) and "none" not in texts(over_time)
    nothing = [ColumnValues("kind", ["only"] * 60)]
    with pytest.raises(InputError, match="nothing to show in figure 'by-class'"):
        save_document_figures(model, documents, tmp_path / "other", ["by-class"], columns=nothing)


def test_a_breakdown_is_the_models_own_shares(model):
    documents, kinds = test_report.corpus(60, model.fitted_.vocabulary.words), ["even", "odd"] * 30
    found = breakdown(model, documents, ColumnValues("kind", kinds))
    shares = model.topic_shares(documents, kinds)
    first = max(model.topics(), key=lambda topic: sum(one.documents for one in shares if one.topic == topic.number))
    drawn = dict(zip(found.charts[0].names, found.charts[0].values, strict=True))
    assert drawn == {one.value: one.share for one in shares if one.topic == first.number}
    assert [one.value for one in found.words] == ["even", "odd"]
    rare = breakdown(model, documents, ColumnValues("id", list(range(60))))
    assert "all others" in {one.value for one in rare.words} and len(rare.words) == 30


def test_all_figures_of_answers_with_hostile_text(tmp_path):
    ranker = test_report_answers.fit("nasm", hostile=True)
    ranker.fitted_ = replace(
        ranker.fitted_, history=[one | {"active_units": 1} for one in ranker.fitted_.history]
    )  # else there is nothing of h to draw
    asked = test_report_answers.questions(12, 2, "test", hostile=True)
    paths = save_answer_figures(ranker, asked, tmp_path)
    assert paths == [tmp_path / f"{name}.svg" for name in ANSWER_FIGURES]
    found = {path.stem: read(path) for path in paths}
    shown = " ".join(texts(found["attention"]))
    assert any(question.text in shown for question in asked.questions) and any(
        hostile in shown for hostile in test_report_answers.HOSTILE
    )
    assert len(texts(found["hinton"])) == 4  # who, where, when, and the key
    with pytest.raises(InputError, match=r"No figure is called 'map'\. This model has comparison, calibration"):
        save_answer_figures(ranker, asked, tmp_path, ["map"])


def test_what_a_model_does_not_have_is_left_out_or_refused(tmp_path):
    ranker, asked = test_report_answers.fit("overlap"), test_report_answers.questions(12, 2, "test")
    paths = save_answer_figures(ranker, asked, tmp_path)
    assert {path.stem for path in paths} == set(ANSWER_FIGURES) - {"attention", "hinton", "training"}
    with pytest.raises(InputError, match="nothing to show in figure 'hinton'"):
        save_answer_figures(ranker, asked, tmp_path / "other", ["hinton"])
    assert not (tmp_path / "other").exists()


def test_all_files_are_written_or_none(model, tmp_path):
    documents, wanted = test_report.corpus(20, model.fitted_.vocabulary.words), ["dimensions", "training"]
    (tmp_path / "training.svg").mkdir()  # nothing can take its place
    (tmp_path / "training.svg" / "mine").touch()
    with pytest.raises(IsADirectoryError):
        save_document_figures(model, documents, tmp_path, wanted)
    assert [path.name for path in tmp_path.iterdir()] == ["training.svg"]


def test_png_is_drawn_as_the_svg_is_and_repeats(model, tmp_path):
    documents = test_report.corpus(20, model.fitted_.vocabulary.words)
    for folder in ("one", "two"):
        save_document_figures(model, documents, tmp_path / folder, ["dimensions"], "png")
    (vector,) = save_document_figures(model, documents, tmp_path, ["dimensions"])
    picture = painted(tmp_path / "one" / "dimensions.png")
    width, height = (float(value) for value in read(vector).attrib["viewBox"].split()[2:])
    assert picture.size == pytest.approx((2 * width, 2 * height), abs=2)
    assert len(picture.getcolors(1 << 20)) > 10
    assert (tmp_path / "one" / "dimensions.png").read_bytes() == (tmp_path / "two" / "dimensions.png").read_bytes()


def test_svg_is_the_same_bytes_each_time_and_small(model, tmp_path):
    documents = test_report.corpus(20, model.fitted_.vocabulary.words)
    for folder in ("one", "two"):
        save_document_figures(model, documents, tmp_path / folder)
    paths = sorted((tmp_path / "one").iterdir())
    assert {"map", "topics", "dimensions"} <= {path.stem for path in paths}
    for path in paths:
        assert (
            path.read_bytes() == (tmp_path / "two" / path.name).read_bytes() and b"matplotlib" not in path.read_bytes()
        )
    many = np.random.default_rng(0).normal(size=(1000, 2))
    assert len(svg_text(chart_figure("dots", [Map(many, [Group("all", np.arange(1000), "#ff0000")])]))) < 20_000


@pytest.mark.parametrize("package", ["matplotlib", "plotly", "jinja2"])
def test_without_a_package_one_line_says_what_to_install(package, model, tmp_path, monkeypatch):
    monkeypatch.setattr("varitext.report.find_spec", lambda name: None if name == package else name)
    documents = test_report.corpus(12, model.fitted_.vocabulary.words)
    with pytest.raises(InputError, match=rf"needs {package}: pip install 'varitext\[report\]'"):
        save_document_figures(model, documents, tmp_path)
    assert not list(tmp_path.iterdir())


def test_text_is_no_formula_and_any_script_is_taken(tmp_path):
    with drawing_style():
        figure, axes = canvas(200, 60, "漢字 <b>")
        for place, words in enumerate(("$x^2$ and $", "漢字", "_a" * 200)):
            axes.text(5, 15 + 15 * place, words)
    for ending in ("png", "svg"):
        write_figure(figure, tmp_path / f"text.{ending}")
    assert painted(tmp_path / "text.png").size == (400, 120)
    assert texts(read(tmp_path / "text.svg")) == ["$x^2$ and $", "漢字", "_a" * 200]
    assert read(tmp_path / "text.svg").find(f"{SVG}title").text == "漢字 <b>"


def test_names_that_matplotlib_would_hide_or_read_as_formulas_are_shown(tmp_path):
    names = ["_hidden", "$x$", "\u202eturned \x00"]
    groups = [Group(name, np.array([place]), "#ff0000") for place, name in enumerate(names)]
    write_figure(chart_figure("names", [Map(np.eye(3)[:, :2], groups)]), tmp_path / "names.svg")
    assert texts(read(tmp_path / "names.svg"))[-3:] == ["_hidden", "$x$", " turned  "]


# The command


def test_the_help_names_every_figure():
    shown = " ".join(varitext_command("figures", "--help").out.split())
    assert f"Documents: {', '.join(DOCUMENT_FIGURES)}." in shown
    assert f"Answers: {', '.join(ANSWER_FIGURES)}." in shown


def test_the_command_saves_what_is_named(tmp_path):
    texts = ["the cat sat on the warm mat", "a dog ran in the green park", "cats like warm mats"] * 6
    DocumentModel(latent_dim=2, epochs=1, threads=1).fit(texts).save(tmp_path / "model")
    stories, strange = tmp_path / "stories.txt", tmp_path / "strange.txt"
    stories.write_text("\n".join(texts))
    strange.write_text("zzz\nqqq\n")
    typed = ("figures", tmp_path / "model", "--corpus", stories, "--threads", 1)
    outcome = varitext_command(*typed, "dimensions", "topics", "--out", tmp_path / "figures")
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err.splitlines()[-2:] == [
        f"figure in {tmp_path}/figures/{name}.svg" for name in ("dimensions", "topics")
    ]
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == ["dimensions.svg", "topics.svg"]
    assert "No figure is called 'hinton'" in refused(tmp_path, *typed, "hinton", "--out", tmp_path / "figures")
    unknown = refused(tmp_path, *typed, "--corpus", strange, "--out", tmp_path / "figures")
    assert "No document has a word that the model knows" in unknown


# Charts


def panel(chart):
    return chart_figure("one panel", [chart]).axes[0]


def test_points_lie_where_their_values_are():
    axis = Axis("value", (0, 10))
    values = np.array([1.0, 5.0, 9.0])
    drawn = panel(Intervals("abc", values, values - 1, values + np.array([1, 2, 0]), ["#ff0000"] * 3, [""] * 3, axis))
    assert [tuple(line.get_xydata()[0]) for line in drawn.lines] == [(1, 0), (5, 1), (9, 2)]
    assert [segment[:, 0].tolist() for segment in drawn.collections[0].get_segments()] == [[0, 2], [4, 7], [8, 9]]
    assert drawn.yaxis_inverted() and drawn.get_xlim() == (0, 10)  # the first row is on top
    assert [label.get_text() for label in drawn.get_yticklabels()] == ["a", "b", "c"]


def test_curves_have_their_limits_and_references():
    x, y = np.array([0.0, 1, 2]), np.array([3.0, 1, 2])
    axes = (Axis("epoch"), Axis("KL", from_zero=True))
    drawn = panel(Curve(x, y, axes, [""] * 3, interval=(y - 0.5, y + 1), reference=((0, 2), (2, 2)), shaded_until=1))
    reference, line = drawn.lines
    assert np.array_equal(line.get_xydata(), np.stack([x, y], 1))
    assert reference.get_xydata().tolist() == [[0, 2], [2, 2]]
    assert drawn.get_ylim()[0] == 0 and drawn.get_ylim()[1] > 4
    below = panel(Curve(x, y - 2, axes, [""] * 3))
    assert below.get_ylim()[0] < -1  # from zero, unless a value is below


def test_bars_are_as_long_as_their_values():
    drawn = panel(Bars([2.0, 4.0, 0.0], ["#00ff00"] * 3, [""] * 3, (Axis("unit"), Axis("KL"))))
    assert [bar.get_height() for bar in drawn.patches] == [2, 4, 0]
    assert {bar.get_y() for bar in drawn.patches} == {0}


@given(st.text(max_size=60), st.floats(20, 300))
def test_shortened_words_fit(words, width):
    short = shortened(words, 12, width)
    assert text_width(short, 12) <= width
    assert short == words or short.endswith("…")
