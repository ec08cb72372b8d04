"""Documents on a map: t-SNE of directions, or principal components."""

from types import SimpleNamespace

import numpy as np
import openTSNE
import pytest

from varitext.evaluation import map_layout
from varitext.evaluation.map_layout import lay_out, place_among, towards_topics


def directions_of(documents, seed=0, width=4):
    vectors = np.random.default_rng(seed).normal(size=(documents, width)) + np.arange(width)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture
def asked(monkeypatch):
    """What openTSNE is asked for; nothing is laid out."""
    found = []

    class Recorder:
        def __init__(self, **options):
            self.options = options

        def fit(self, vectors):
            found.append(SimpleNamespace(**self.options, vectors=vectors))
            return np.zeros((len(vectors), 2))

    monkeypatch.setattr(openTSNE, "TSNE", Recorder)
    return found


def test_it_is_the_map_that_opentsne_makes_with_these_settings():
    """Neighbourhoods of a third of the others, and a run of 120 and 250 steps: enough for the maps of the page."""
    vectors = 7.0 * directions_of(31)
    given = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)  # the same bits: steps of t-SNE spread any other
    theirs = openTSNE.TSNE(
        perplexity=10, early_exaggeration_iter=120, n_iter=250, initialization=map_layout._start(given, 3),
        neighbors="exact", negative_gradient_method="bh", n_jobs=1, random_state=3,
    ).fit(given)  # fmt: skip
    found = lay_out(vectors, 3)
    np.testing.assert_allclose(found, np.asarray(theirs), rtol=1e-5)
    assert found.dtype == np.float32


def test_lengths_of_vectors_do_not_count_however_small(asked):
    given = directions_of(12)
    lengths = np.geomspace(1e-6, 1e6, 12)[:, None]
    lay_out(np.vstack([given * lengths, np.zeros((1, 4))]), 0)
    np.testing.assert_allclose(asked[0].vectors, np.vstack([given, np.zeros((1, 4))]), rtol=1e-9)
    assert asked[0].vectors.dtype == np.float64


@pytest.mark.parametrize(
    ("documents", "perplexity", "method"), [(10, 3, "bh"), (91, 30, "bh"), (1000, 30, "bh"), (1001, 30, "fft")]
)
def test_settings_follow_the_number_of_documents(asked, documents, perplexity, method):
    assert lay_out(directions_of(documents), 7).shape == (documents, 2)
    (used,) = asked
    assert (used.perplexity, used.negative_gradient_method) == (perplexity, method)
    assert (used.neighbors, used.n_jobs, used.random_state) == ("exact", 1, 7)


@pytest.mark.parametrize("documents", [9, 10])
def test_few_documents_and_a_missing_library_make_do_with_principal_components(asked, monkeypatch, documents):
    lay_out(directions_of(documents), 0)
    assert len(asked) == (documents >= 10)
    monkeypatch.setattr(map_layout, "find_spec", lambda name: None)
    places = lay_out(directions_of(documents), 0)
    assert len(asked) == (documents >= 10)
    np.testing.assert_allclose(np.abs(places), np.abs(components(directions_of(documents))), rtol=1e-4, atol=1e-6)


def components(vectors):
    """By the eigenvectors of the covariance; the sign of each is open."""
    centred = vectors - vectors.mean(0)
    _, axes = np.linalg.eigh(centred.T @ centred)
    return centred @ axes[:, ::-1][:, :2]


def test_documents_that_are_the_same_begin_apart():
    found = map_layout._start(np.tile([0.6, 0.8], (12, 1)), 0)
    assert len(np.unique(found, axis=0)) == 12 and found.std(0).max() == pytest.approx(0.9e-4)
    nothing = map_layout._start(np.zeros((12, 2)), 0)
    assert np.isfinite(nothing).all() and len(np.unique(nothing, axis=0)) == 12


def test_no_documents_have_no_places():
    assert lay_out(np.zeros((0, 3)), 0).shape == (0, 2)


@pytest.mark.parametrize("documents", [4, 40])
def test_a_map_keeps_neighbours_together_and_repeats(documents):
    """Two directions far apart, of lengths that do not count: principal components, or t-SNE."""
    generator = np.random.default_rng(0)
    kinds = np.arange(documents) % 2
    vectors = np.where(kinds[:, None] == 0, [5.0, 0.0, 0.0], [0.0, 5.0, 0.0]) + generator.normal(0, 0.2, (documents, 3))
    vectors *= generator.uniform(1, 9, (documents, 1))
    places = lay_out(vectors, seed=1)
    assert places.shape == (documents, 2) and np.array_equal(places, lay_out(vectors, seed=1))
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    same = kinds[:, None] == kinds[None]
    assert apart[same].mean() < 0.5 * apart[~same].mean()


def test_a_map_of_few_documents_is_their_principal_components():
    vectors = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -3.0]])
    places = lay_out(vectors, 0)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    expected = np.linalg.norm(unit[:, None] - unit[None], axis=2)
    np.testing.assert_allclose(np.linalg.norm(places[:, None] - places[None], axis=2), expected, atol=1e-6)
    np.testing.assert_allclose(places.mean(0), 0, atol=1e-6)
    assert lay_out(np.zeros((3, 2)), 0).tolist() == [[0, 0]] * 3 and lay_out(np.ones((2, 1)), 0).shape == (2, 2)


def topics_of(documents=300, topics=6, width=20, seed=0):
    """Noisy directions around centres, and how probable each centre is."""
    generator = np.random.default_rng(seed)
    centres = generator.normal(size=(topics, width))
    topic = np.arange(documents) % topics
    vectors = centres[topic] + generator.normal(0, 2.2, (documents, width))
    memberships = np.full((documents, topics), 0.2 / (topics - 1))
    memberships[np.arange(documents), topic] = 0.8
    return vectors, memberships, centres, topic


def purity(places, topic, neighbours=5):
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    return (topic[np.argsort(apart, axis=1)[:, :neighbours]] == topic[:, None]).mean()


def test_a_step_towards_topics_parts_them_on_the_map():
    vectors, memberships, centres, topic = topics_of()
    moved = towards_topics(vectors, memberships, centres)
    assert purity(lay_out(moved, 0), topic) > purity(lay_out(vectors, 0), topic) + 0.1
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    unit_centres = centres / np.linalg.norm(centres, axis=1, keepdims=True)
    np.testing.assert_allclose(moved, unit + 0.5 * memberships @ unit_centres, rtol=1e-6)


def test_the_layout_is_seen_while_it_is_made():
    seen = []
    found = lay_out(directions_of(40), 0, seen.append)
    assert len(seen) >= 10 and all(one.shape == (40, 2) and np.isfinite(one).all() for one in seen)
    np.testing.assert_array_equal(found, lay_out(directions_of(40), 0))  # watching changes nothing


def test_further_documents_join_their_neighbours_and_stay_there():
    vectors, memberships, centres, topic = topics_of(360)
    moved = towards_topics(vectors, memberships, centres)
    places = lay_out(moved[:240], 0)
    added = place_among(moved[240:], moved[:240], places, seed=0)
    np.testing.assert_array_equal(added, place_among(moved[240:], moved[:240], places, seed=0))
    apart = np.linalg.norm(added[:, None] - places[None], axis=2)
    nearest = topic[:240][np.argsort(apart, axis=1)[:, :5]]
    assert (nearest == topic[240:, None]).mean() > 0.8
    assert place_among(moved[:0], moved[:240], places, 0).shape == (0, 2)
    assert np.isfinite(place_among(moved[:3], moved[:1], places[:1], 0)).all()
