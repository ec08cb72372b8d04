"""Saved figures: the same data as on the page, text as text, no browser and no network."""

from itertools import pairwise
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

import plotly.graph_objects as go
import test_report
import test_report_answers
from PIL import Image

import varitext.report
from varitext.documents.model import DocumentModel
from varitext.errors import InputError
from varitext.report import save_answer_figures, save_document_figures
from varitext.report.answers.figures import ANSWER_FIGURES
from varitext.report.documents.figures import DOCUMENT_FIGURES
from varitext.report.drawing.axes import round_ticks
from varitext.report.drawing.painting import write_png
from varitext.report.drawing.plotting import plot
from varitext.report.drawing.shapes import Dots, Drawing, Rectangle, Text
from varitext.report.drawing.style import quiet_figure

SVG = "{http://www.w3.org/2000/svg}"
OUR_SHAPES = {f"{SVG}{name}" for name in ("svg", "title", "rect", "text", "path", "polyline")}


@pytest.fixture(scope="module")
def model() -> DocumentModel:
    words = (*HOSTILE, *(f"word{number}" for number in range(40 - len(HOSTILE))))
    return DocumentModel(latent_dim=4, epochs=2, batch_size=64, threads=1).fit(test_report.corpus(60, words))


def read(path) -> ElementTree.Element:
    """The root; only shapes that show something, and none that fetches or runs."""
    root = ElementTree.parse(path).getroot()
    for element in root.iter():
        assert element.tag in OUR_SHAPES
        assert not [name for name in element.attrib if name.startswith("on") or "href" in name]
    assert "nan" not in path.read_text(encoding="utf-8")
    return root


def painted(path) -> Image.Image:
    with Image.open(path) as picture:
        return picture.convert("RGB")


def texts(root: ElementTree.Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{SVG}text")]


# Files


def test_all_figures_of_documents_with_hostile_words(model, tmp_path):
    documents = test_report.corpus(40, model.vocabulary_.words)
    labels = [HOSTILE[row % 3] for row in range(40)]
    paths = save_document_figures(model, documents, tmp_path, labels=labels)
    assert paths == [tmp_path / f"{name}.svg" for name in DOCUMENT_FIGURES]
    found = {path.stem: read(path) for path in paths}
    assert set(HOSTILE[:3]) <= set(texts(found["map"]))
    dots = "".join(path.attrib["d"] for path in found["map"].iter(f"{SVG}path"))
    assert dots.count("M") == 40 + 3  # each document once, and the legend
    assert len(list(found["units"].iter(f"{SVG}rect"))) == 1 + 4  # paper and a bar each
    for topic in model.topics():
        assert f"Topic {topic.number}" in texts(found["topics"])


def test_all_figures_of_answers_with_hostile_text(tmp_path):
    ranker = test_report_answers.fit("nasm", hostile=True)
    asked = test_report_answers.questions(12, 2, "test", hostile=True)
    paths = save_answer_figures(ranker, asked, tmp_path)
    assert paths == [tmp_path / f"{name}.svg" for name in ANSWER_FIGURES]
    found = {path.stem: read(path) for path in paths}
    shown = " ".join(texts(found["attention"]))
    assert any(question.text in shown for question in asked.questions) and "<script>alert(1)</script>" in shown
    assert len(texts(found["hinton"])) == 3  # who, where, when
    with pytest.raises(InputError, match="no figure is called 'map'; this model has comparison, calibration"):
        save_answer_figures(ranker, asked, tmp_path, ["map"])


def test_what_a_model_does_not_have_is_left_out_or_refused(tmp_path):
    ranker, asked = test_report_answers.fit("overlap"), test_report_answers.questions(12, 2, "test")
    paths = save_answer_figures(ranker, asked, tmp_path)
    assert {path.stem for path in paths} == set(ANSWER_FIGURES) - {"attention", "hinton", "training"}
    with pytest.raises(InputError, match="nothing to show in the figure 'hinton'"):
        save_answer_figures(ranker, asked, tmp_path / "other", ["hinton"])
    assert not (tmp_path / "other").exists()


def test_png_is_painted_from_the_same_drawing_and_repeats(model, tmp_path):
    documents = test_report.corpus(20, model.vocabulary_.words)
    for folder in ("one", "two"):
        save_document_figures(model, documents, tmp_path / folder, ["units"], "png")
    (vector,) = save_document_figures(model, documents, tmp_path, ["units"])
    picture = painted(tmp_path / "one" / "units.png")
    width, height = (float(value) for value in read(vector).attrib["viewBox"].split()[2:])
    assert picture.size == pytest.approx((2 * width, 2 * height), abs=2)
    assert len(picture.getcolors(1 << 20)) > 10
    assert (tmp_path / "one" / "units.png").read_bytes() == (tmp_path / "two" / "units.png").read_bytes()


def test_without_matplotlib_one_line_says_what_to_install(model, tmp_path, monkeypatch):
    monkeypatch.setattr(varitext.report, "find_spec", lambda name: None if name == "matplotlib" else name)
    documents = test_report.corpus(12, model.vocabulary_.words)
    with pytest.raises(InputError, match=r"needs matplotlib: pip install 'varitext\[report\]'"):
        save_document_figures(model, documents, tmp_path, file_format="png")
    assert save_document_figures(model, documents, tmp_path, ["units"])


def test_painted_text_is_no_formula_and_any_script_is_taken(tmp_path):
    drawing = Drawing(200, 60, "text")
    for place, words in enumerate(("$x^2$ and $", "漢字 \u0000 \ud800", "a" * 400)):
        drawing.text(5, 15 + 15 * place, words, turned=place == 2, anchor="middle")
    write_png(drawing, tmp_path / "text.png")
    assert painted(tmp_path / "text.png").size == (400, 120)
    (tmp_path / "text.svg").write_text(drawing.svg(), encoding="utf-8")
    assert texts(read(tmp_path / "text.svg"))[0] == "$x^2$ and $"


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
    outcome = varitext_command(*typed, "units", "topics", "--out", tmp_path / "figures")
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err.splitlines()[-2:] == [f"figure in {tmp_path}/figures/{name}.svg" for name in ("units", "topics")]
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == ["topics.svg", "units.svg"]
    assert "no figure is called 'hinton'" in refused(tmp_path, *typed, "hinton", "--out", tmp_path / "figures")
    unknown = refused(tmp_path, *typed, "--corpus", strange, "--out", tmp_path / "figures")
    assert "no document has a word that the model knows" in unknown


# Plots


def test_points_lie_where_their_values_are():
    figure = quiet_figure([go.Scatter(x=[0, 5, 10], y=[1, 3, 2], mode="markers", marker={"color": "#ff0000"})], 300)
    figure.update_layout(xaxis={"range": [0, 10]}, yaxis={"range": [1, 3]})
    drawing = plot("three points", [figure])
    ((x0, y0), (x1, y1), (x2, y2)) = next(shape for shape in drawing.shapes if isinstance(shape, Dots)).points
    assert x1 - x0 == pytest.approx(x2 - x1) and x1 > x0
    assert y0 - y1 == pytest.approx(2 * (y0 - y2)) and y1 < y0  # up is less, in pixels
    labels = {shape.words: shape.x for shape in drawing.shapes if isinstance(shape, Text) and shape.anchor == "middle"}
    assert labels["10"] == pytest.approx(x2) and labels["0"] == pytest.approx(x0)


def test_bars_are_as_long_as_their_values():
    figure = quiet_figure([go.Bar(x=[1, 2, 3], y=[2.0, 4.0, 0.0], marker={"color": "#00ff00"})], 300)
    figure.update_layout(yaxis={"rangemode": "tozero"})
    bars = [one for one in plot("bars", [figure]).shapes if isinstance(one, Rectangle) and one.fill == "#00ff00"]
    assert bars[1].height == pytest.approx(2 * bars[0].height) and bars[2].height == 0
    assert bars[0].y + bars[0].height == pytest.approx(bars[1].y + bars[1].height)


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_ticks_are_round_and_inside(low, length):
    if low + length == low:
        return
    values = np.array([tick.value for tick in round_ticks(low, low + length)])
    step = max(abs(low), length) * 1e-9
    assert 1 <= len(values) <= 8 and (values >= low - step).all() and (values <= low + length + step).all()
    steps = [second - first for first, second in pairwise(values)]
    assert steps == pytest.approx([steps[0]] * len(steps), rel=1e-3) if steps else True
