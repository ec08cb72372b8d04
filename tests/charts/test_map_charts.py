"""Maps: names that cover no other, at the densest places, and colours in which neighbours differ."""

import numpy as np
import pytest

from varitext.charts.colours import _colours, nearness, neighbour_colours
from varitext.charts.labels import CHARACTER_WIDTH, LINE_HEIGHT, densest_place, frame_of, place_names


def islands(groups: int, documents: int = 40, seed: int = 0):
    """Groups of documents around a circle: each touches its two neighbours."""
    generator = np.random.default_rng(seed)
    group = np.repeat(np.arange(groups), documents)
    angle = 2 * np.pi * group / groups
    width = 1.2 * np.pi / groups
    return np.stack([np.cos(angle), np.sin(angle)], 1) + generator.normal(0, width, (len(group), 2)), group


def contrast(one: str, other: str) -> float:
    """WCAG's."""
    values = []
    for colour in (one, other):
        rgb = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        values.append(linear @ [0.2126, 0.7152, 0.0722] + 0.05)
    return max(values) / min(values)


def test_fifty_topics_have_fifty_colours_that_show_on_light_and_dark_paper():
    places, group = islands(50)
    colours, _ = _colours()
    found = neighbour_colours(places, group, 50)
    assert len(set(found)) >= 40 and found == neighbour_colours(places, group, 50)
    for colour in colours:
        assert contrast(colour, "#ffffff") > 2.2 and contrast(colour, "#1a1d22") > 2.4


def test_neighbours_on_the_map_differ_more_than_others_also_for_the_colour_blind():
    places, group = islands(40)
    colours, distances = _colours()
    chosen = [colours.index(colour) for colour in neighbour_colours(places, group, 40)]
    apart = distances[np.ix_(chosen, chosen)]
    beside = [apart[place, (place + 1) % 40] for place in range(40)]
    assert min(beside) > 0.08 and np.mean(beside) > np.mean(apart[np.triu_indices(40, 1)])


def test_nearness_is_symmetric_and_counts_neighbours():
    places, group = islands(6)
    near = nearness(places, group, 6)
    np.testing.assert_allclose(near, near.T)
    assert near[0, 1] > 3 * near[0, 3] and (np.diag(near) > near[0, 1]).all()
    assert nearness(np.zeros((1, 2)), np.zeros(1, int), 2).tolist() == [[1, 0], [0, 0]]


def test_a_name_belongs_where_most_documents_are_not_in_their_middle():
    dense, stray = np.random.default_rng(0).normal([0, 0], 0.1, (80, 2)), np.full((40, 2), 9.0)
    places = np.concatenate([dense, stray, [[-9.0, -9.0]]])
    assert np.abs(densest_place(places[:120], frame_of(places))).max() < 0.3


@pytest.mark.parametrize("names", [1, 12, 50])
def test_no_name_covers_another_and_all_are_in_the_picture(names):
    generator = np.random.default_rng(names)
    places = generator.normal(size=(500, 2))
    anchors = 0.3 * generator.normal(size=(names, 2))  # all in the middle
    given = [f"first{number}, second, third" for number in range(names)]
    found = place_names(given, anchors, places)
    assert [one.name for one in found] == given
    frame = frame_of(places)
    boxes = [
        ((one.x - frame.left) / frame.height, (one.y - frame.bottom) / frame.height, len(one.name)) for one in found
    ]
    for place, (x, y, length) in enumerate(boxes):
        assert 0 <= x <= frame.width / frame.height and 0 <= y <= 1
        for other_x, other_y, other in boxes[:place]:
            wide = 0.5 * CHARACTER_WIDTH * (length + other)
            assert abs(x - other_x) >= wide - 1e-9 or abs(y - other_y) >= LINE_HEIGHT - 1e-9
    assert any(one.joined for one in found) == (names > 1)
    np.testing.assert_allclose([(one.at_x, one.at_y) for one in found], anchors)


def test_a_name_with_room_stays_at_its_place():
    (found,) = place_names(["alone"], np.array([[0.5, 0.5]]), np.array([[0.0, 0.0], [1.0, 1.0]]))
    assert (found.at_x, found.at_y) == (0.5, 0.5) == pytest.approx((found.x, found.y)) and not found.joined
