"""`rcv1`: Reuters RCV1-v2 from the official token files, 10,000 words, 794,414 training and 10,000 test documents.

The token files hold stemmed words without stop words (Lewis and others 2004). The paper tests on a random sample that
it does not specify; ours is drawn with numpy's generator and seed 2016, and the words are the most frequent ones of the
other documents. No checksums of these files are published: results record those found.
"""

import hashlib
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from varitext.corpora.documents import Documents
from varitext.corpora.sources import LocalFile, SourceFile, find, not_found, open_content
from varitext.errors import InputError
from varitext.text import VocabularyRules, choose_vocabulary, count_tokens

NAME = "rcv1"
DESCRIPTION = "Reuters RCV1-v2: counts of 10,000 words, 794,414 training and 10,000 test documents"
PARTS = ("train", "test")
ADDRESS = "http://jmlr.csail.mit.edu/papers/volume5/lewis04a/a12-token-files/"
FILES = ("lyrl2004_tokens_train.dat", *(f"lyrl2004_tokens_test_pt{number}.dat" for number in range(4)))

DOCUMENTS = 804_414
TEST_DOCUMENTS = 10_000
SEED = 2016
ALL_WORDS = VocabularyRules(size=10**9, minimum_documents=1, maximum_document_share=1.0, stop_words="none")
MOST_FREQUENT = VocabularyRules(size=10_000, minimum_documents=1, maximum_document_share=1.0, stop_words="none")


def locate(data_dir: Path | None) -> list[LocalFile]:
    """The token files that are there, in rcv1/ of a data folder or in the folder itself."""
    found = [find(f"rcv1/{name}", data_dir) or find(name, data_dir) for name in FILES]
    return [file for file in found if file]


def fetch(data_dir: Path | None) -> list[LocalFile]:
    if found := locate(data_dir):
        return found
    wanted = "lyrl2004_tokens_train.dat.gz and lyrl2004_tokens_test_pt0.dat.gz to pt3"
    raise not_found(NAME, f"Download {wanted} from {ADDRESS} into a folder rcv1 in one of these.", data_dir)


def load(part: str, data_dir: Path | None = None) -> Documents:
    sources: list[SourceFile] = []
    documents = (tokens for file in fetch(data_dir) for tokens in read_tokens(file, sources))
    every_word = count_tokens(documents, vocabulary_rules=ALL_WORDS)
    is_test = choose_test(every_word.counts.shape[0])
    words = every_word.vocabulary.words
    chosen = choose_vocabulary(every_word.counts, words, MOST_FREQUENT, np.flatnonzero(~is_test))
    rows = np.flatnonzero(is_test if part == "test" else ~is_test)
    return Documents(NAME, part, tuple(sources), counts=chosen.counts[rows], vocabulary=chosen.vocabulary)


def choose_test(documents: int) -> np.ndarray:
    """Which documents are for testing: always the same 10,000, or the same share if files are missing."""
    if documents != DOCUMENTS:
        warnings.warn(f"{NAME} has {documents:,} documents here, not {DOCUMENTS:,}", stacklevel=2)
    chosen = max(1, round(documents * TEST_DOCUMENTS / DOCUMENTS))
    is_test = np.zeros(documents, bool)
    is_test[np.random.default_rng(SEED).permutation(documents)[:chosen]] = True
    return is_test


def read_tokens(file: LocalFile, sources: list[SourceFile]) -> Iterator[list[str]]:
    """Documents `.I number`, `.W`, lines of tokens, an empty line; the file is added to `sources` at its end."""
    digest = hashlib.sha256()
    tokens: list[str] | None = None
    with open_content(file.path) as lines:
        for number, line in enumerate(lines, start=1):
            digest.update(line)
            words = line.decode("latin-1").split()
            if words[:1] == [".I"]:
                if tokens is not None:
                    yield tokens
                tokens = []
            elif words and tokens is None:
                raise InputError(f"{file.path}, line {number}: expected .I and the number of a document")
            elif tokens is not None and words != [".W"]:
                tokens.extend(words)
    if tokens is None:
        raise InputError(f"{file.path} has no documents")
    yield tokens
    sources.append(SourceFile(file.name, digest.hexdigest()))
