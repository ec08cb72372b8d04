"""The published systems: features by hand, alignments against brute force, order and padding, odd words, folders."""

import itertools
import math
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from varitext.answers.ranker import AnswerRanker
from varitext.answers.settings import AnswerRecipe
from varitext.batches.pairs import padded, reading_form
from varitext.corpora.question_answers import Candidate, Question, QuestionAnswers
from varitext.corpora.word_vectors import WordVectors
from varitext.errors import InputError
from varitext.layers.words import WordEmbedding
from varitext.models.answers import lclr as latent_alignment
from varitext.models.answers.convolutional import SentenceConvolution
from varitext.models.answers.features.alignment import AlignedCorpus, padded_candidates, unit_vectors
from varitext.models.answers.features.overlap import COUNTS, Overlap, WordTable, bm25
from varitext.models.answers.features.wordnet import WordNet, has_wordnet, known_wordnet
from varitext.models.answers.lclr import LCLR, AlignmentChoices, best_choices, loss_and_gradient, scores
from varitext.models.answers.overlap_regression import OverlapRegression
from varitext.models.answers.paragraph_vectors import NEGATIVE, ParagraphVectors
from varitext.models.answers.scorer import AnswerScorer, chosen
from varitext.models.answers.vocabulary import learn_words
from varitext.models.answers.word_alignment import GROUPS, WordAlignment
from varitext.text import Vocabulary
from varitext.text.tokens import stem

FILLERS = ["the", "of", "a", "was", "and", "near", "old"]
KINDS = {"who": "king queen author actor", "where": "city river island lake", "when": "1914 1945 month day"}
WORDS = sorted({*FILLERS, *KINDS, *" ".join(KINDS.values()).split()})
VECTORS = WordVectors(tuple(WORDS), np.random.default_rng(0).normal(size=(len(WORDS), 6)).astype(np.float32))


def question(number: str, asked: str, *answers: tuple[str, int]) -> Question:
    candidates = tuple(
        Candidate(f"{number}-{place}", tuple(text.split()), text, label, place)
        for place, (text, label) in enumerate(answers)
    )
    return Question(number, tuple(asked.split()), asked, candidates)


def corpus(*questions: Question) -> QuestionAnswers:
    return QuestionAnswers("made up", "train", (), questions)


def made_up(questions: int, seed: int) -> QuestionAnswers:
    """The right answer has the question's name, which no other question has, and a word of the kind asked for."""
    generator = np.random.default_rng(seed)
    made = []
    for number in range(questions):
        asked, right = str(generator.choice(list(KINDS))), int(generator.integers(4))
        answers = []
        for place in range(4):
            kind = asked if place == right else str(generator.choice(list(KINDS)))
            words = [*map(str, generator.choice(FILLERS, int(generator.integers(1, 5))))]
            words.append(str(generator.choice(KINDS[kind].split())))
            if place == right or generator.random() < 0.3:
                words.insert(0, f"Name{seed}x{number}")
            answers.append((" ".join(words), int(place == right)))
        made.append(question(str(number), f"{asked} was name{seed}x{number} ?", *answers))
    return corpus(*made)


TRAIN, DEV, TEST = made_up(60, 1), made_up(15, 2), made_up(30, 3)
ODD = corpus(
    question("1", "who ?", ("", 0), ("xyzzy plugh", 1), ("the king", 0)),
    question("2", "", ("a king", 1), ("", 0)),
    question("3", "wer schrieb „Straße“ 詩人 ?", ("Die STRASSE 詩人", 1), ("\u0130stanbul e\u0301", 0), ("… — !", 0)),
)
SYSTEMS = {
    "overlap": lambda words: OverlapRegression(words, position=True),
    "bm25": lambda words: OverlapRegression(words, "bm25"),
    "pv": lambda words: ParagraphVectors(words, 6, doc2vec_epochs=3),
    "word_alignment": lambda words: WordAlignment(words, 6),
    "lclr": lambda words: LCLR(words, 6, ("lexical", "vectors", "type", "length")),
}
for_every_system = pytest.mark.parametrize("name", SYSTEMS)


@pytest.fixture(scope="module")
def fitted() -> dict[str, AnswerScorer]:
    words = learn_words(TRAIN, VECTORS, 6, 0)
    made = {}
    for name, build in SYSTEMS.items():
        made[name] = build(words.vocabulary)
        made[name].learn(TRAIN, DEV, words, seed=0)
    return made


# What holds for all


@for_every_system
def test_learns(fitted, name):
    odds = fitted[name].log_odds(TEST)
    right = TEST.labels == 1
    assert odds.shape == (TEST.n_pairs,)
    if name == "pv":  # names that training never saw are all that tells answers apart, and it cannot read them
        assert np.isfinite(odds).all()
    else:
        assert odds[right].mean() > odds[~right].mean() + 0.5


@for_every_system
def test_odd_sentences_have_finite_odds(fitted, name):
    assert np.isfinite(fitted[name].log_odds(ODD)).all()


@for_every_system
def test_buffers_are_all_there_is(fitted, name):
    """Whatever was learned comes back from the tensors and the vocabulary, and all of it learns the same again."""
    again = SYSTEMS[name](fitted[name].vocabulary)
    again.load_state_dict(fitted[name].state_dict())
    assert np.array_equal(again.log_odds(TEST), fitted[name].log_odds(TEST))
    assert not list(again.parameters())
    relearned = SYSTEMS[name](fitted[name].vocabulary)
    relearned.learn(TRAIN, DEV, learn_words(TRAIN, VECTORS, 6, 0), seed=0)
    assert all(torch.equal(tensor, fitted[name].state_dict()[key]) for key, tensor in relearned.state_dict().items())


@for_every_system
def test_how_rare_words_are_is_learned_from_training_answers(fitted, name):
    expected = Overlap.learn(TRAIN, fitted[name].vocabulary)
    found = fitted[name].overlap
    assert np.array_equal(found.document_frequencies, expected.document_frequencies)
    assert expected.document_frequencies.any() and found.n_answers == expected.n_answers > 0


def test_the_source_of_vectors_is_named(tmp_path, monkeypatch):
    assert learn_words(TRAIN, VECTORS, 6, 0).source == "given" and learn_words(TRAIN, "random", 6, 0).source == "random"
    monkeypatch.setattr("varitext.models.answers.vocabulary._source_vectors", lambda *arguments: VECTORS)
    path = tmp_path / "glove.txt"
    assert [learn_words(TRAIN, source, 6, 0).source for source in (path, None)] == [str(path), "the data folder's"]


def test_features_are_named_or_refused():
    assert chosen("b, a", ("a", "b", "c"), ("c",)) == ("a", "b")
    assert chosen(None, ("a", "b"), ("b",)) == ("b",)
    with pytest.raises(InputError, match="no feature of this model is called 'x'; there are: a, b"):
        chosen(["x"], ("a", "b"), ())
    with pytest.raises(InputError, match="features is empty"):
        chosen([], ("a",), ())


# Words and overlap


def test_unknown_words_keep_their_identity():
    table = WordTable.of(corpus(question("1", "Who is Xyzzy", ("xyzzy is", 1), ("", 0), ("plugh", 0))))
    assert table.words == ("who", "is", "xyzzy", "plugh")
    (rows,) = table.questions
    assert rows.answers.tolist() == [2, 1, 3] and rows.lengths.tolist() == [2, 0, 1]
    assert rows.per_candidate(np.array([[1, 2, 4], [1, 1, 1]])).tolist() == [[3, 0, 4], [2, 0, 1]]
    assert table.columns_in(Vocabulary(("is",))).tolist() == [-1, 0, -1, -1]


def test_bm25_by_hand():
    """Three training answers: `lake` is in one, `old` in two, `xyzzy` in none; mean length 2."""
    train = corpus(question("1", "a", ("old lake", 1), ("old", 0), ("the near king", 0)))
    overlap = Overlap.learn(train, Vocabulary(("old", "lake", "the", "near", "king")))
    asked = corpus(question("2", "old lake lake xyzzy ?", ("lake lake old x", 1), ("xyzzy ?", 0), ("", 0)))
    found = bm25(WordTable.of(asked), overlap, 2.0)
    old, lake, xyzzy = (math.log(1 + (3 - df + 0.5) / (df + 0.5)) for df in (2, 1, 0))
    long, short = 1.2 * (0.25 + 0.75 * 4 / 2), 1.2 * (0.25 + 0.75 * 2 / 2)
    expected = [lake * 2 * 2.2 / (2 + long) + old * 2.2 / (1 + long), xyzzy * 2.2 / (1 + short), 0]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("column", [*COUNTS, "bm25"])
def test_one_column_ranks_by_itself_even_where_it_misleads(column):
    """Right answers share nothing with their question: the regression must not turn the ranking over."""
    misleading = made_up(20, 5)
    flipped = tuple(
        one._replace(candidates=tuple(pair._replace(label=1 - pair.label) for pair in one.candidates))
        for one in misleading.questions
    )
    words = learn_words(TRAIN, "random", 6, 0)
    system = OverlapRegression(words.vocabulary, column)
    system.learn(corpus(*flipped), DEV, words)
    values = system.features(TEST)[:, 0]
    order = np.argsort(values, kind="stable")
    assert (np.diff(system.log_odds(TEST)[order]) >= 0).all() and np.ptp(values) > 0


def test_position_counts_only_where_it_is_asked_for_and_known():
    words = learn_words(TRAIN, "random", 6, 0)
    without, with_it = OverlapRegression(words.vocabulary), OverlapRegression(words.vocabulary, position=True)
    assert set(with_it.columns) - set(without.columns) == {"log_position", "first_sentence"}
    with_it.learn(TRAIN, DEV, words)
    column = with_it.columns.index("first_sentence")
    assert with_it.features(TEST)[:4, column].tolist() == [1, 0, 0, 0]
    nowhere = corpus(question("1", "who", ("king", 1), ("lake", 0)))
    nowhere = corpus(
        *(
            one._replace(candidates=tuple(pair._replace(position=None) for pair in one.candidates))
            for one in nowhere.questions
        )
    )
    assert np.isnan(with_it.features(nowhere)[:, column]).all() and np.isfinite(with_it.log_odds(nowhere)).all()
    with_it.learn(nowhere, DEV, words)  # a column that nothing is known of has no say
    assert with_it.coefficients[column] == 0


@pytest.mark.parametrize(
    ("one", "other"),
    [("forms", "formed"), ("planned", "plan"), ("making", "make"), ("cities", "city"), ("caves", "cave")],
)
def test_stems(one, other):
    assert stem(one) == stem(other)


@given(st.text(max_size=12))
def test_a_stem_never_fails_and_never_grows(word):
    assert len(stem(word.lower())) <= len(word.lower())


# Word alignment


def test_alignment_features_by_hand():
    """Vectors on two axes: king and queen are near (0.8), lake is far from both."""
    words = Vocabulary(("king", "queen", "lake", "crowned"))
    vectors = np.array([[1, 0], [0.8, 0.6], [0, 1], [0, 0]], np.float32)
    asked = corpus(question("1", "king crowned the xyzzy ?", ("the queen crowns lake Xyzzy", 1), ("", 0)))
    overlap = Overlap(words, np.array([3, 1, 1, 1]), 7)
    (pairs,) = AlignedCorpus.of(asked, overlap, vectors).questions()
    assert pairs.similarity[0, 0] == pytest.approx([0, 0.8, 0, 0, 0])
    assert pairs.same[3, 0].tolist() == [False] * 4 + [True] and not pairs.same[:, 1].any()
    assert pairs.same_stem[1, 0].tolist() == [False, False, True, False, False]  # crowned, crowns
    system = WordAlignment(words, 2)
    system.document_frequencies.copy_(torch.from_numpy(overlap.document_frequencies))
    system.n_answers.fill_(7)
    system.word_vectors.copy_(torch.from_numpy(vectors))
    first, empty = (dict(zip(system.columns, row, strict=True)) for row in system.features(asked))
    idf = {"king": math.log(8 / 4), "crowned": math.log(8 / 2), "the": math.log(8), "xyzzy": math.log(8)}
    assert first["similarity"] == pytest.approx((0.8 + 0 + 1 + 1) / 4, abs=1e-3)
    assert first["similarity_content"] == pytest.approx((0.8 + 0 + 1) / 3, abs=1e-3)
    weighted = 0.8 * idf["king"] + idf["the"] + idf["xyzzy"]
    assert first["idf_similarity"] == pytest.approx(weighted / sum(idf.values()), abs=1e-3)
    assert [first[f"count_{name}"] for name in ("same", "stem", "near", "far", "none")] == [1, 1, 1, 0, 0]
    assert first["idf_stem"] == pytest.approx(idf["crowned"]) and first["count_same_stop"] == 1
    assert first["idf_missed"] == first["idf_missed_most"] == pytest.approx(idf["crowned"])
    assert first["log_length"] == pytest.approx(math.log(6))
    # king is at place 1, xyzzy at 4, crowned nowhere: one gap of two words
    assert first["dispersion"] == pytest.approx(math.log1p(4)) and first["span"] == pytest.approx(math.log1p(3))
    assert empty["count_none"] == 3 and empty["similarity"] == empty["span"] == empty["log_length"] == 0


def test_groups_of_features_can_be_left_out():
    words = learn_words(TRAIN, VECTORS, 6, 0)
    whole = WordAlignment(words.vocabulary, 6)
    whole.learn(TRAIN, DEV, words)
    for group, columns in GROUPS.items():
        part = WordAlignment(words.vocabulary, 6, group)
        part.learn(TRAIN, DEV, words)
        places = [whole.columns.index(name) for name in columns]
        np.testing.assert_array_equal(part.features(TEST), whole.features(TEST)[:, places])


def test_without_vectors_only_words_themselves_match():
    assert not unit_vectors(None, (3, 2)).any()
    words = learn_words(TRAIN, "random", 6, 0)
    system = WordAlignment(words.vocabulary, 6)
    system.learn(TRAIN, DEV, words)
    assert set(np.unique(system.features(TEST)[:, system.columns.index("count_near")])) == {0}


def test_padded_candidates():
    filled = padded_candidates(np.array([3, 4, 5]), np.array([2, 0, 1]), -1)
    assert filled.tolist() == [[3, 4], [-1, -1], [5, -1]]
    assert padded_candidates(np.array([], int), np.array([0]), -1).tolist() == [[-1]]


# Latent alignment


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
        loss_and_gradient(latent_alignment.learn(choices, labels, np.ones(4), 0.5, turns), choices, None, labels, 0.5)[
            0
        ]
        for turns in range(4)
    ]
    assert all(after <= before + 1e-9 for before, after in itertools.pairwise(losses)) and losses[1] < losses[0]


def test_choices_of_words_and_of_the_interrogative_by_hand():
    words = Vocabulary(("king", "crowned"))
    system = LCLR(words, 2, ("lexical", "type"))
    system.n_answers.fill_(9)
    asked = corpus(question("1", "when was the king crowned", ("The king crowns", 0), ("in 1914", 1), ("", 0)))
    found = system.choices(asked)
    names = list(system.names)
    first = found.features[found.pair_of == 0]
    assert sorted(names[column] for column in first.nonzero()[2]) == ["same", "same_stem", "same_stop"]
    idf = math.log(10)  # all words are as rare as can be, five of them
    assert first.sum() == pytest.approx(3 / 5) and idf > 0
    second = found.features[found.pair_of == 1]
    assert [names[column] for column in second.nonzero()[2]] == ["year"]  # 1914 is wanted: not just another number
    assert not (found.pair_of == 2).any() and found.n_pairs == 3


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


def test_relations_of_a_small_wordnet(tmp_path):
    write_wordnet(tmp_path)
    words = ["cars", "automobile", "vehicle", "taxis", "hotter", "hot", "cold", "invented", "inventor", "xyzzy", ""]
    found = related(WordNet(tmp_path), words)
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
        with pytest.raises(InputError, match=r"pip install 'varitext\[wordnet\]'"):
            LCLR(words.vocabulary, 6, "wordnet").learn(TRAIN, DEV, words)
    finally:
        known_wordnet.cache_clear()


# Paragraph vectors


def test_a_paragraph_vector_is_the_maximum_of_its_objective(fitted):
    system = fitted["pv"]
    words = TRAIN.questions[0].candidates[0].words
    known = system.vocabulary.index
    columns = [known[reading_form(word)] for word in words if reading_form(word) in known]
    rows, noise = system.word_rows.double()[columns], system.word_rows.double()[system.noise]
    kept = system.kept.double()[columns]

    def negative(vector: np.ndarray) -> float:
        at = torch.from_numpy(vector)
        inside = (kept * torch.nn.functional.logsigmoid(rows @ at)).sum()
        outside = NEGATIVE * kept.sum() * torch.nn.functional.logsigmoid(-(noise @ at)).mean()
        return -float(inside + outside - system.shrinkage / 2 * at @ at)

    best = scipy.optimize.minimize(negative, np.zeros(6), options={"gtol": 1e-8}, method="BFGS").x
    np.testing.assert_allclose(system.vectors([words])[0], best, atol=2e-3 * np.abs(best).max() + 1e-6)


def test_paragraph_vectors_need_gensim_for_fitting_only(fitted, monkeypatch):
    monkeypatch.setitem(sys.modules, "gensim.models.doc2vec", None)
    assert np.isfinite(fitted["pv"].log_odds(TEST)).all()
    words = learn_words(TRAIN, VECTORS, 6, 0)
    with pytest.raises(InputError, match=r"needs gensim: pip install 'varitext\[peers\]'"):
        ParagraphVectors(words.vocabulary, 6).learn(TRAIN, DEV, words)


def test_a_sentence_without_a_known_word_is_like_none(fitted):
    assert not fitted["pv"].vectors([(), ("xyzzy",)]).any()
    assert not fitted["pv"].features(corpus(question("1", "xyzzy", ("a king", 0), ("", 1)))).any()


# Convolutions


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=4), st.sampled_from([(2, False), (5, True)]))
def test_convolution_by_hand(lengths, shape):
    width, wide = shape
    with torch.random.fork_rng():
        torch.manual_seed(0)
        vectors, layer = WordEmbedding(9, 3).double(), SentenceConvolution(3, 4, width, wide).double()
        sentences = [np.random.default_rng(row).integers(1, 11, length) for row, length in enumerate(lengths)]
    batch = padded(sentences)
    batch.tokens[~batch.mask] = 7  # another word's number on padding must not matter either
    for row, sentence in enumerate(sentences):
        words = vectors.weight[torch.from_numpy(sentence)]
        before = torch.zeros(width - 1 if wide else 0, 3, dtype=torch.float64)
        outside = torch.cat([before, words, torch.zeros(width - 1, 3, dtype=torch.float64)])
        starts = range(len(sentence) + (width - 1 if wide else 0)) if len(sentence) else []
        windows = [
            torch.tanh(torch.einsum("weh,we->h", layer.weight, outside[at : at + width]) + layer.bias) for at in starts
        ]
        expected = torch.stack(windows) if windows else torch.zeros(1, 4, dtype=torch.float64)
        torch.testing.assert_close(layer.mean(batch, vectors)[row], expected.mean(0))
        torch.testing.assert_close(layer.maximum(batch, vectors)[row], expected.amax(0))


# In the ranker

QUICK = {
    "vectors": VECTORS,
    "embedding_dim": 6,
    "epochs": 2,
    "threads": 1,
    "recipe": AnswerRecipe(folds=2, dropout=0.1),
}


@pytest.mark.parametrize(
    ("model", "features"),
    [
        ("overlap", None),
        ("overlap", "bm25"),
        ("pv", None),
        ("word_alignment", ["idf", "dispersion"]),
        ("lclr", ["lexical", "type"]),
        ("bigram_cnn", None),
        ("deep_cnn", None),
        ("deep_cnn", "overlap"),
    ],
)
def test_every_system_is_a_ranker_with_a_folder(model, features, tmp_path, monkeypatch):
    ranker = AnswerRanker(model, features=features, counts=True, position=True, **QUICK).fit(TRAIN, DEV)
    expected = ranker.predict_proba(TEST)
    assert ((expected > 0) & (expected < 1)).all() and ranker.fitted_.history[-1]["dev_map"] >= 0
    assert (ranker.fitted_.combination is None) == (model == "overlap")
    ranker.save(tmp_path / "model")
    monkeypatch.setattr("varitext.models.answers.lclr.has_wordnet", lambda: False)  # what was chosen is in the folder
    loaded = AnswerRanker.load(tmp_path / "model")
    assert np.array_equal(loaded.predict_proba(TEST), expected)
    assert loaded.evaluate(TEST) == ranker.evaluate(TEST)
    ranking = loaded.rank("who was the king ?", ["a queen", "the lake 1914", "xyzzy"], positions=[0, 1, 2])
    assert sorted(one.place for one in ranking.candidates) == [0, 1, 2]
    assert ranking.candidates[0].probability >= ranking.candidates[2].probability


def test_counts_of_unknown_words_reach_the_network():
    """Names that training never saw are one number to it; which of them are shared, only counts can tell."""
    asked = corpus(question("1", "who was plugh ?", ("the plugh", 1), ("the xyzzy", 0)))
    settings = QUICK | {"learning_rate": 1e-2, "epochs": 4}
    without = AnswerRanker("deep_cnn", **settings).fit(TRAIN, DEV).predict_proba(asked)
    inside = AnswerRanker("deep_cnn", features="overlap", **settings).fit(TRAIN, DEV).predict_proba(asked)
    assert abs(without[0] - without[1]) < 1e-6 < 1e-3 < abs(inside[0] - inside[1])


def test_second_stage_learns_from_questions_that_a_system_has_not_seen(monkeypatch):
    seen: list[tuple[int, int]] = []
    learn = WordAlignment.learn

    def watched(self, train, dev, words, seed=0):
        seen.append((train.n_questions, len(self.vocabulary)))
        learn(self, train, dev, words, seed)

    monkeypatch.setattr(WordAlignment, "learn", watched)
    AnswerRanker("word_alignment", counts=True, **QUICK | {"recipe": AnswerRecipe(folds=3, dropout=0.1)}).fit(
        TRAIN, DEV
    )
    assert [questions for questions, _ in seen] == [60, 40, 40, 40] and len({size for _, size in seen}) == 1


def test_features_of_a_model_without_any_are_refused():
    with pytest.raises(InputError, match="lstm has no features to choose from"):
        AnswerRanker("lstm", features="bm25", **QUICK).fit(TRAIN, DEV)
    with pytest.raises(InputError, match="called 'bm26'; there are: word_overlap"):
        AnswerRanker("overlap", features="bm26", **QUICK).fit(TRAIN, DEV)
