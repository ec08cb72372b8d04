"""Find words similar to a word in a model folder without loading the model, which would take seconds."""

from pathlib import Path

from varitext.errors import InputError
from varitext.evaluation.neighbours import nearest_words
from varitext.models.documents import DOCUMENT_MODELS
from varitext.store import DOCUMENT_MODEL, read_array, read_model_config
from varitext.text.vocabulary import Vocabulary


def similar_words_in_folder(folder: Path, word: str, n: int) -> list[tuple[str, float]] | None:
    """As `DocumentModel.similar_words`; None if no weight holds the word vectors, so that the model must be loaded."""
    config = read_model_config(folder)
    entry = DOCUMENT_MODELS.get(str(config.get("model")))
    if config.get("kind") != DOCUMENT_MODEL or entry is None or entry.plug_in or entry.word_weight is None:
        return None
    vectors, vocabulary = read_array(folder, config, entry.word_weight), Vocabulary.load(folder / "vocabulary.txt")
    if vectors.ndim != 2 or len(vectors) != len(vocabulary):
        raise InputError(f"{folder}: vocabulary.txt and the weights differ in size")
    return nearest_words(vocabulary, vectors, vocabulary.spelling(word), n)
