"""What pandas users, generators and tokenisers of one's own bring."""

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from varitext import DocumentModel, InputError

TEXTS = ["orbit moon rocket launch", "goal match team ball", "bread oven flour yeast"] * 12
SMALL = {"latent_dim": 2, "epochs": 1, "threads": 1, "n_topics": 2}


def words_of(text: str) -> list[str]:
    return text.upper().split()


@pytest.fixture(scope="module")
def fitted() -> DocumentModel:
    return DocumentModel(**SMALL).fit(TEXTS)


@pytest.mark.parametrize(
    "documents",
    [
        pd.Series(TEXTS, index=range(7, 7 + len(TEXTS))),
        pd.DataFrame({"stars": range(len(TEXTS)), "body": TEXTS}),
        pd.DataFrame({"title": TEXTS[::-1], "text": TEXTS}),
        (text for text in TEXTS),
        iter(TEXTS),
        np.array(TEXTS),
    ],
    ids=["series", "frame", "frame with text", "generator", "iterator", "array"],
)
def test_texts_in_any_container(fitted, documents):
    model = DocumentModel(**SMALL).fit(documents)
    assert model.fitted_.vocabulary == fitted.fitted_.vocabulary
    np.testing.assert_array_equal(model.transform(TEXTS), fitted.transform(TEXTS))


def test_a_data_frame_with_two_texts_asks_which(fitted):
    frame = pd.DataFrame({"title": TEXTS[::-1], "body": TEXTS})
    with pytest.raises(InputError, match="Columns: title, body"):
        DocumentModel(**SMALL).fit(frame)
    model = DocumentModel(**SMALL, text_column="body").fit(frame)
    assert (model.count(frame) != fitted.count(TEXTS)).nnz == 0


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA])
def test_a_series_with_gaps_first(fitted, missing):
    series = pd.Series([missing, *TEXTS], dtype=object)
    with pytest.warns(UserWarning) as said:
        model = DocumentModel(**SMALL).fit(series)
    assert [str(one.message) for one in said] == [
        "1 document has no text (a missing value)",
        "1 empty document was left out",
    ]
    assert model.fitted_.vocabulary == fitted.fitted_.vocabulary
    with pytest.warns(UserWarning, match="no text"):
        assert model.transform(series).shape == (len(TEXTS) + 1, 2)


@pytest.mark.parametrize("nothing", [[], (), iter([])])
def test_no_documents_are_refused_in_one_line(fitted, nothing):
    with pytest.raises(InputError, match="The list of documents is empty"):
        DocumentModel(**SMALL).fit(nothing)
    with pytest.raises(InputError, match="The list of documents is empty"):
        fitted.transform([])


def test_counts_come_with_the_names_of_their_columns():
    vectorizer = CountVectorizer()
    counts = vectorizer.fit_transform(TEXTS)
    model = DocumentModel(**SMALL).fit(counts, vocabulary=vectorizer.get_feature_names_out())
    assert model.fitted_.vocabulary.words == tuple(vectorizer.get_feature_names_out())
    assert (model.count(TEXTS[:3]) != counts[:3]).nnz == 0
    with pytest.raises(InputError, match="12 columns for a vocabulary of 2 words"):
        DocumentModel(**SMALL).fit(counts, vocabulary=["moon", "goal"])
    chosen = DocumentModel(**SMALL).fit(TEXTS, vocabulary=["moon", "goal", "bread"])
    assert chosen.fitted_.vocabulary.words == ("moon", "goal", "bread")


def test_a_tokeniser_of_ones_own_is_named_in_the_folder_and_needed_again(tmp_path):
    model = DocumentModel(**SMALL, tokeniser=words_of).fit(TEXTS)
    assert "MOON" in model.fitted_.vocabulary.words
    model.save(tmp_path / "m")
    again = DocumentModel.load(tmp_path / "m")
    with pytest.raises(InputError, match="fitted with your own tokeniser, words_of"):
        again.transform(TEXTS)
    assert again.transform([["MOON", "ORBIT"]]).shape == (1, 2)  # lists of words need none
    again.save(tmp_path / "n")
    whole = DocumentModel.load(tmp_path / "n", tokeniser=words_of)
    np.testing.assert_array_equal(whole.transform(TEXTS), model.transform(TEXTS))
    with pytest.raises(InputError, match=r"document 0 .from 0. must be a list of words"):
        DocumentModel(**SMALL, tokeniser=str.upper).fit(TEXTS)


def test_what_is_not_documents_is_one_line():
    for wrong, said in (
        ([1, 2, 3], "document 0 is int"),
        ([{"text": "a"}], "document 0 is dict"),
        ([None], "document 0 is None"),
        (None, "not None"),
        ({"text": "a"}, "not dict"),
        (["moon", None], r"document 1 .from 0. must be text, not None"),
        ([["moon", 2]], "document 0 mixes words with int"),
    ):
        with pytest.raises(InputError, match=said) as caught:
            DocumentModel(**SMALL).fit(wrong)
        assert "\n" not in str(caught.value)


MAILS = [f"{text}\nIn article <{n}@x.edu> Jo writes:\n> quoted rubbish\nregards" for n, text in enumerate(TEXTS * 4)]


def test_new_texts_are_read_as_those_of_the_fit(tmp_path):
    """What a fit removes is removed later, also after saving; counts know nothing of it."""
    model = DocumentModel(**SMALL).fit(MAILS)
    assert not {"quoted", "writes"} & set(model.fitted_.vocabulary.words)
    assert "quoted lines" in model.fitted_.notes[0] and "--keep-boilerplate" in model.fitted_.notes[0]
    model.save(tmp_path / "m")
    again = DocumentModel.load(tmp_path / "m")
    assert again.fitted_.boilerplate == model.fitted_.boilerplate and again.fitted_.notes == model.fitted_.notes
    reply = "moon\n> orbit orbit\n"
    assert again.count([reply]).sum() == model.count(["moon"]).sum() == 1
    kept = DocumentModel(**SMALL, keep_boilerplate=True).fit(MAILS)
    assert kept.fitted_.boilerplate is None and kept.count([reply]).sum() == 3


def test_copies_count_once_and_sizes_count_all():
    rng = np.random.default_rng(0)
    words = [f"{a}{b}{c}" for a in "bdk" for b in "aeo" for c in "lmnr"]
    texts = [" ".join(rng.choice(words, 12)) for _ in range(120)]
    given = [*texts, *texts[:30], "", texts[5].upper() + "!"]
    with pytest.warns(UserWarning, match="1 empty document"):
        model = DocumentModel(**SMALL).fit(given)
    fitted = model.fitted_
    assert fitted.n_training_documents + fitted.n_dev_documents == 120 and "once: 31" in fitted.notes[-1]
    assert sum(topic.documents for topic in model.topics()) == 151
    every = [one for topic in model.topics() for one in topic.typical]
    assert all(given[one.row].startswith(one.text[:20]) for one in every)
    with pytest.warns(UserWarning, match="1 empty document"):
        kept = DocumentModel(**SMALL, keep_duplicates=True).fit(given).fitted_
    assert kept.n_training_documents + kept.n_dev_documents == 151


def test_passages_of_a_document_share_its_words():
    """Books whose passages are of two kinds, three of one to one of the other."""
    rng = np.random.default_rng(0)
    kinds = [["orbit", "moon", "rocket", "crew"], ["bread", "oven", "flour", "yeast"]]
    books = [" ".join(" ".join(rng.choice(kinds[(b + (p == 3)) % 2], 40)) for p in range(4)) for b in range(30)]
    settings = {**SMALL, "epochs": 30, "learning_rate": 0.05, "n_topics": 2, "passages": 40}
    model = DocumentModel(**settings).fit(books)
    assert model.fitted_.passages == 40 and sum(topic.documents for topic in model.topics()) == 120
    shares = model.topic_memberships(books)
    assert shares.shape == (30, 2)
    np.testing.assert_allclose(shares.max(1), 0.75, atol=0.02)
    info = model.document_info(books)
    assert [one.row for one in info] == list(range(30)) and info[0].topic != info[1].topic
    np.testing.assert_allclose([one.probability for one in info], shares.max(1))
    assert {one.known_words for one in info} == {160}


def test_words_of_a_pipeline_are_named_after_the_fit():
    pipeline = make_pipeline(CountVectorizer(), DocumentModel(**SMALL)).fit(TEXTS)
    pipeline[-1].name_words(pipeline[:-1].get_feature_names_out())
    assert "moon" in pipeline[-1].fitted_.vocabulary.words
    assert {word for topic in pipeline[-1].topics() for word in topic.words} <= set(
        pipeline[-1].fitted_.vocabulary.words
    )
    with pytest.raises(InputError, match="2 words for a model of"):
        pipeline[-1].name_words(["moon", "orbit"])
