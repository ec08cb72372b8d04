"""Effects of covariates on topics, against effects that are known."""

from datetime import date, timedelta

import numpy as np
import pytest

from varitext import DocumentModel, InputError
from varitext.documents.effects import corrected_memberships, estimate_effects, regress

pandas = pytest.importorskip("pandas")
pytest.importorskip("formulaic")

TOPICS = [(4, "space"), (7, "sport"), (9, "trade")]


def drawn(documents: int = 900, noise: float = 0.7, seed: int = 0) -> tuple[dict, np.ndarray]:
    """Covariates, and calibrated memberships of documents whose topics depend on them.

    Party b has .2 more of the first topic and .2 less of the second; the third does not change.
    """
    generator = np.random.default_rng(seed)
    party = generator.choice(["a", "b"], documents)
    shares = np.array([0.3, 0.5, 0.2]) + np.outer(party == "b", [0.2, -0.2, 0.0])
    topic = (generator.random(documents)[:, None] > shares.cumsum(1)).sum(1)
    seen = np.eye(3)[topic] + noise * generator.standard_normal((documents, 3))
    log_joint = np.log(shares.mean(0)) - np.square(seen[:, None] - np.eye(3)).sum(2) / (2 * noise**2)
    joint = np.exp(log_joint)
    days = [date(2020, 1, 1) + timedelta(days=int(day)) for day in generator.integers(0, 900, documents)]
    table = {
        "party": party,
        "year": generator.integers(2000, 2020, documents),
        "day": [f"{day:%d.%m.%Y}" for day in days],
    }
    return table, joint / joint.sum(1, keepdims=True)


def test_certain_memberships_give_differences_of_shares():
    party = np.array(["a"] * 40 + ["b"] * 60)
    memberships = np.eye(2)[[0] * 10 + [1] * 30 + [0] * 30 + [1] * 30]
    effects = estimate_effects("topic ~ party", {"party": party}, memberships, TOPICS[:2])
    assert [(row.topic, row.term) for row in effects.rows] == [
        (4, "Intercept"), (4, "party[T.b]"), (7, "Intercept"), (7, "party[T.b]"),
    ]  # fmt: skip
    assert [row.estimate for row in effects.rows] == pytest.approx([0.25, 0.25, 0.75, -0.25])
    error = np.sqrt(0.25 * 0.75 / 39 * 40 / 39 + 0.5 * 0.5 / 59 * 60 / 59)  # HC3: residuals over 1 - 1/n
    assert effects.rows[1].standard_error == pytest.approx(error, rel=1e-6)
    assert list(effects.to_frame().columns)[:4] == ["topic", "name", "term", "estimate"]


def test_uncertain_documents_do_not_pull_effects_to_zero():
    table, memberships = drawn()
    raw = [memberships[table["party"] == party].mean(0) for party in "ab"]
    assert raw[1][0] - raw[0][0] < 0.15  # of .2
    space, sport, trade = estimate_effects("party", table, memberships, TOPICS).contrast("party", "b", "a")
    assert space.low < 0.2 < space.high and sport.low < -0.2 < sport.high and trade.low < 0 < trade.high
    assert space.low > 0.05 and space.p < 0.01 and space.estimate == pytest.approx(0.2, abs=0.06)
    np.testing.assert_allclose(corrected_memberships(memberships).sum(1), 1)


def test_intervals_cover_what_is_true():
    hits = []
    for seed in range(250):
        table, memberships = drawn(300, seed=seed)
        design = np.stack([np.ones(300), table["party"] == "b", table["year"] - 2010.0], 1)
        rows = regress(design, corrected_memberships(memberships)).combined(np.array([0.0, 1.0, 0.0]))
        hits += [low <= true <= high for (_, _, low, high, _), true in zip(rows, (0.2, -0.2, 0.0), strict=True)]
    assert 0.93 <= np.mean(hits) <= 0.97


def test_memberships_that_say_little_are_not_corrected():
    _, memberships = drawn()
    vague = 0.9 * memberships.mean(0) + 0.1 * memberships
    with pytest.warns(UserWarning, match="topics overlap too much .* effects are understated"):
        np.testing.assert_array_equal(corrected_memberships(vague), vague)


def test_regression_is_least_squares():
    generator = np.random.default_rng(0)
    design, shares = generator.random((50, 3)), generator.random((50, 2))
    found = regress(design, shares)
    np.testing.assert_allclose(found.coefficients, np.linalg.lstsq(design, shares, rcond=None)[0])
    hat = design @ np.linalg.inv(design.T @ design) @ design.T
    residuals = (shares - hat @ shares) / (1 - np.diag(hat))[:, None]
    bread = np.linalg.inv(design.T @ design) @ design.T
    np.testing.assert_allclose(found.covariances[1], bread @ np.diag(residuals[:, 1] ** 2) @ bread.T)


def test_curves_over_dates_by_class():
    table, memberships = drawn()
    effects = estimate_effects("topic ~ party * s(day, 4)", table, memberships, TOPICS)
    curve = effects.predict("day", by="party", points=5)
    assert len(curve) == 3 * 2 * 5 and [one.topic for one in curve[::10]] == [4, 7, 9]
    assert [one.by for one in curve[:10]] == ["a"] * 5 + ["b"] * 5
    assert curve[0].value == "2020-01-01" and curve[0].value < curve[1].value
    by_value = np.reshape([one.estimate for one in curve], (3, 10))
    np.testing.assert_allclose(by_value.sum(0), 1)  # shares of all topics
    assert all(one.low < one.estimate < one.high for one in curve)
    at = effects.contrast("party", "b", "a", at={"day": "2021-01-01"})
    assert at[0].standard_error > effects.contrast("party", "b", "a")[0].standard_error


def test_rows_without_covariates_are_left_out():
    table, memberships = drawn()
    table["year"] = [None, *table["year"][1:]]
    with pytest.warns(UserWarning, match="1 of 900 documents lack a covariate"):
        assert estimate_effects("topic ~ year", table, memberships, TOPICS).documents == 899


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("topic ~ nothing", "the table has no column 'nothing'. Columns: party, year, day"),
        ("sport ~ party", "must begin with 'topic ~'"),
        ("topic ~", "the formula has no terms"),
        ("topic ~ party + (", "cannot be read"),
        ("topic ~ day", "column 'day' has .* different texts"),
        ("topic ~ year + I(year * 2)", "say the same"),
        ("topic ~ s(party)", "has no readable date"),
    ],
)
def test_formulas_that_do_not_fit_are_refused(formula, message):
    table, memberships = drawn()
    with pytest.raises(InputError, match=message):
        estimate_effects(formula, table, memberships, TOPICS)


@pytest.mark.parametrize(
    "term",
    [
        "{__import__('os').mkdir('made')}",
        "I(__import__('os').mkdir('made') or year)",
        "I(open('made', 'w') and year)",
        "log(contr.__init__.__globals__['numpy'].save('made', year))",
        "I(year.to_pickle('made'))",
        "I([os.mkdir('made') for os in [year]])",
        "I((lambda: year)())",
        "np.load('made')",
        "C(party, contr.sum)(year)",
        "I(f'{year.to_pickle(1)}')",
    ],
)
def test_a_formula_runs_no_code(term, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table, memberships = drawn()
    with pytest.raises(InputError, match=r"it may have log, log2|cannot be read"):
        estimate_effects(f"topic ~ party + {term}", table, memberships, TOPICS)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "formula", ["C(party, contr.sum)", "log(year) + C(party, contr.treatment('b'))", "{year - 2000} + center(year**2)"]
)
def test_a_formula_calls_the_functions_of_formulaic(formula):
    table, memberships = drawn()
    assert estimate_effects(formula, table, memberships, TOPICS).documents == 900


def test_values_that_are_not_there_are_refused():
    table, memberships = drawn()
    effects = estimate_effects("topic ~ party", table, memberships, TOPICS)
    with pytest.raises(InputError, match="no document has 'c' in 'party'; there are a, b"):
        effects.contrast("party", "a", "c")
    with pytest.raises(InputError, match="column must be one of party, not 'year'"):
        effects.predict("year")
    with pytest.raises(InputError, match="column 'party' has 2 rows for 900 documents"):
        estimate_effects("topic ~ party", {"party": ["a", "b"]}, memberships, TOPICS)


def test_a_model_finds_the_effect_in_texts():
    """End to end: party b writes about space in .6 of its texts, party a in .3."""
    generator = np.random.default_rng(0)
    party = np.array(["a", "b"] * 200)
    space = generator.random(400) < np.where(party == "b", 0.6, 0.3)
    words = np.array([["orbit", "moon", "rocket", "launch", "nasa"], ["goal", "team", "league", "hockey", "season"]])
    texts = [" ".join(generator.choice(words[1 - one], 8)) for one in space.astype(int)]
    model = DocumentModel(latent_dim=2, epochs=20, threads=1, n_topics=2).fit(texts)
    effects = model.effects("topic ~ party", pandas.DataFrame({"party": party, "text": texts}))
    about_space = model.find_topics("orbit moon")[0][0]
    row = next(row for row in effects.contrast("party", "b", "a") if row.topic == about_space)
    true = space[party == "b"].mean() - space[party == "a"].mean()
    # the model's probabilities are less sure than they could be, so that the correction goes a little too far
    assert row.estimate == pytest.approx(true, abs=0.05) and row.low < 0.3 < row.high
    same = model.effects("topic ~ party", {"party": party}, model.posterior(texts))
    assert same.rows == effects.rows
