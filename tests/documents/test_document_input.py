"""What pandas users, generators and tokenisers of one's own bring."""

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import CountVectorizer

from varitext import DocumentModel, InputError

TEXTS = ["orbit moon rocket launch", "goal match team ball", "bread oven flour yeast"] * 12
SMALL = {"latent_dim": 2, "epochs": 1, "threads": 1}


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
