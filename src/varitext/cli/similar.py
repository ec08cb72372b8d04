"""`varitext similar`: words like a word, documents like a text."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from varitext.cli.input import documents_for
from varitext.cli.options import AsJson, DataDir, ModelFolder, TextColumn, Trust, option
from varitext.cli.printing import first_words, print_json
from varitext.errors import InputError
from varitext.loading import load_document_model

if TYPE_CHECKING:
    from varitext.corpora import Documents


def similar(
    folder: ModelFolder,
    word: Annotated[str | None, option("Find the words most similar to this word.", "WORD")] = None,
    text: Annotated[str | None, option("Find the documents most similar to this text.", "TEXT")] = None,
    among: Annotated[
        str | None, option("Documents to search (default: those the model was fitted on).", "CORPUS")
    ] = None,
    n: Annotated[int, option("Number of results.", "N", "-n", min=1)] = 5,
    trust: Trust = None,
    text_column: TextColumn = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Find words similar to a word, or documents similar to a text.

    The number is the cosine of their vectors: 1 is the same direction, 0 is unrelated.

    \b
    Examples:
      varitext similar models/news --word israel
      varitext similar models/news --text "the shuttle reached orbit" -n 3
      varitext similar models/mine --text "late delivery" --among complaints.jsonl --json
    """
    if (word is None) == (text is None):
        raise InputError("Name either --word or --text")
    if word is not None:
        found = _similar_words(folder, word, n, trust)
        return _print_neighbours([{"similarity": value, "word": name} for name, value in found], as_json)
    assert text is not None  # or else there is a word
    from varitext.corpora.sharded_counts import in_memory

    model = load_document_model(folder, trust=trust)
    if not in_memory(model.count([text])).nnz:
        raise InputError("the text has no word that the model knows")
    part = "train" if among is None else None
    documents = documents_for(model, among, part, data_dir, text_column, "--among FILE")
    neighbours = model.similar_documents([text], documents, n)[0]
    _print_neighbours([_document_entry(documents, entry.index, entry.similarity) for entry in neighbours], as_json)


def _similar_words(folder: Path, word: str, n: int, trust: str | None) -> list[tuple[str, float]]:
    from varitext.documents.stored_words import similar_words_in_folder

    if (found := similar_words_in_folder(folder, word, n)) is not None:
        return found
    model = load_document_model(folder, trust=trust)
    return model.similar_words(model.fitted_.vocabulary.spelling(word), n)


def _print_neighbours(neighbours: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        return print_json({"similar": neighbours})
    for entry in neighbours:
        similarity, *columns = entry.values()
        print(f"{similarity:6.3f}", *columns, sep="  ")


def _document_entry(documents: "Documents", index: int, similarity: float) -> dict[str, Any]:
    entry: dict[str, Any] = {"similarity": similarity, "index": index}
    if documents.ids is not None:
        entry["id"] = documents.ids[index]
    if documents.labels is not None:
        entry["label"] = documents.labels[index]
    if documents.texts is not None:
        entry["text"] = first_words(documents.texts[index])
    return entry
