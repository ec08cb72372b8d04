"""`model.plot`: figures for notebooks that hold what the model says, and show hostile text as text."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("plotly")
pytest.importorskip("openTSNE")

from varitext.documents.mixture import Choice
from varitext.documents.model import DocumentModel
from varitext.errors import InputError

KINDS = ("orbit moon rocket launch nasa", "goal team league hockey players", "bread oven flour salt yeast")
YEARS = ("2001", "2002", "2005")


def texts(number: int = 120) -> list[str]:
    generator = np.random.default_rng(0)
    return [" ".join(generator.choice(KINDS[row % 3].split(), 12)) for row in range(number)]


@pytest.fixture(scope="module")
def model() -> DocumentModel:
    fitted = DocumentModel(latent_dim=4, epochs=15, threads=1, n_topics=3, seed=1).fit(texts())
    return fitted.rename_topic(0, "<b>bold</b>")


def test_the_map_has_every_document_once_in_the_colour_of_its_topic(model):
    figure = model.plot.map(texts())
    assert sum(len(trace.x) for trace in figure.data) == 120
    assert len({trace.marker.color for trace in figure.data}) == len(figure.data)
    written = {note.text for note in figure.layout.annotations}
    assert "&lt;b&gt;bold&lt;/b&gt;" in written and len(written) == len(figure.data)
    assert not [text for trace in figure.data for text in trace.customdata if "<b>bold" in text]
    labels = model.plot.map(texts(), labels=[KINDS[row % 3] for row in range(120)])
    assert {trace.name for trace in labels.data} == set(KINDS)


def test_a_map_without_documents_needs_a_corpus(model):
    with pytest.raises(InputError, match=r"pass them, as in model.plot.map\(texts\)"):
        model.plot.map()


def test_topics_hierarchy_and_similarity_show_every_topic(model):
    names = {topic.name for topic in model.topics()} - {"<b>bold</b>"}
    titles = " ".join(note.text for note in model.plot.topics().layout.annotations)
    assert all(name in titles for name in names) and "&lt;b&gt;bold" in titles
    tree = model.plot.hierarchy()
    assert len(tree.data) == 2 and set(tree.layout.yaxis.ticktext) > names  # merges of three topics
    assert max(tree.data[-1].x) == pytest.approx(model.topic_tree()[-1].distance)
    cosines = np.asarray(model.plot.similarity().data[0].z)
    np.testing.assert_allclose(cosines, cosines.T, atol=1e-6)
    np.testing.assert_allclose(np.diag(cosines), 1, atol=1e-6)


def test_years_without_documents_are_gaps(model):
    figure = model.plot.over_time(texts(), [YEARS[row % 3] for row in range(120)], bins="year")
    for trace in figure.data:
        assert len(trace.y) == 5 and np.isnan(np.asarray(trace.y, float)[[2, 3]]).all()
    shares = model.topic_shares(texts(), [YEARS[row % 3] for row in range(120)])
    drawn = sorted(round(float(value), 6) for trace in figure.data for value in trace.y if value == value)
    assert drawn == sorted(round(one.share, 6) for one in shares)


def test_shares_by_class_and_by_bins(model):
    figure = model.plot.by(texts(), np.arange(120), bins=4)
    shown = {name for axis in figure.select_yaxes() for name in axis.ticktext or ()}
    assert shown == {"0 to 29.75", "29.75 to 59.5", "59.5 to 89.25", "89.25 to 119"}


def test_the_curve_over_numbers_of_topics(model, monkeypatch):
    with pytest.raises(InputError, match="was not searched for"):
        model.plot.k_curve()
    choice = Choice(3, "chosen", ((2, -3.0), (3, -2.0), (5, -2.5)))
    monkeypatch.setattr("varitext.documents.plot.regions_of", lambda _: SimpleNamespace(choice=choice))
    (line,) = model.plot.k_curve().data
    assert list(line.x) == [2, 3, 5] and list(line.y) == [-3.0, -2.0, -2.5]


def test_effects_are_drawn_by_term(model):
    rows = [SimpleNamespace(topic=n, name=f"<i>{n}", term=term, estimate=0.1 * n, low=-0.1, high=0.3, p=0.04)
            for term in ("Intercept", "party", "date") for n in range(3)]  # fmt: skip
    figure = model.plot.effects(SimpleNamespace(rows=rows), n=2)
    points = [trace for trace in figure.data if trace.mode == "markers"]
    assert [list(trace.x) for trace in points] == [[0.2, 0.1]] * 2
    assert list(figure.layout.yaxis.ticktext) == ["&lt;i&gt;2", "&lt;i&gt;1"]
    with pytest.raises(InputError, match="no effects"):
        model.plot.effects(SimpleNamespace(rows=[]))


def test_without_plotly_one_line_says_what_to_install(model, monkeypatch):
    monkeypatch.setattr("varitext.documents.plot.find_spec", lambda name: None)
    plot = model.plot
    draws = (
        plot.topics,
        plot.hierarchy,
        plot.similarity,
        plot.map,
        lambda: plot.by(None, ()),
        lambda: plot.over_time(None, ()),
    )
    for draw in draws:
        with pytest.raises(InputError, match=r"figures need plotly: pip install 'varitext\[report\]'"):
            draw()


def test_tables_in_notebooks_are_escaped(model):
    for table in (model.topics(), model.document_info(texts(5)), model.topic_shares(texts(6), ["<i>"] * 6)):
        shown = table._repr_html_()
        assert shown.startswith("<table>") and "<b>bold" not in shown and "<i>" not in shown
    assert "and 70 more" in model.document_info(texts())._repr_html_()


def test_saving_over_a_folder_names_the_parameter(model, tmp_path):
    model.save(tmp_path / "model")
    with pytest.raises(InputError, match=r"replace it: save\(folder, overwrite=True\)"):
        model.rename_topic(1, "renamed").save(tmp_path / "model")
    model.save(tmp_path / "model", overwrite=True)
    assert "renamed" in {topic.name for topic in DocumentModel.load(tmp_path / "model").topics()}
