"""`rcv1`: Reuters RCV1-v2, counts of 10,000 words, 794,414 training and 10,000 test documents.

Read from the official token files, which hold stemmed words without stop words (Lewis and others 2004), or from the
official vector files, the ones that scikit-learn's `fetch_rcv1` downloads. Those are tf-idf weights, from which
`tfidf.py` recovers the counts; documents that fail its checks are left out, and words are term ids.

The paper tests on a random sample that it does not specify; ours is drawn with numpy's generator and seed 2016, and the
words are the most frequent ones of the other documents. Both kinds of files list the same documents in the same order,
so the split is the same. No checksums of the token files are published: results record those found.
"""

import hashlib
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from varitext.corpora import sources
from varitext.corpora.documents import Documents
from varitext.corpora.sources import LocalFile, SourceFile, Unavailable, find, open_content
from varitext.corpora.tfidf import recover_counts, word_offsets
from varitext.errors import InputError, first_line
from varitext.text import VocabularyRules, choose_vocabulary, count_tokens

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

NAME = "rcv1"
DESCRIPTION = "Reuters RCV1-v2: counts of 10,000 words, 794,414 training and 10,000 test documents"
PARTS = ("train", "test")
HOME = "https://jmlr.csail.mit.edu/papers/volume5/lewis04a/"
TOKEN_FILES = ("lyrl2004_tokens_train.dat", *(f"lyrl2004_tokens_test_pt{number}.dat" for number in range(4)))
VECTOR_ADDRESS = "https://ndownloader.figshare.com/files/"
VECTOR_FILES = {  # number in that address: file, with the SHA-256 of the compressed file that scikit-learn publishes
    5976057: SourceFile(
        "rcv1/lyrl2004_vectors_train.dat.gz", "5468f656d0ba7a83afc7ad44841cf9a53048a5c083eedc005dcdb5cc768924ae"
    ),
    5976069: SourceFile(
        "rcv1/lyrl2004_vectors_test_pt0.dat.gz", "ed40f7e418d10484091b059703eeb95ae3199fe042891dcec4be6696b9968374"
    ),
    5976066: SourceFile(
        "rcv1/lyrl2004_vectors_test_pt1.dat.gz", "87700668ae45d45d5ca1ef6ae9bd81ab0f5ec88cc95dcef9ae7838f727a13aa6"
    ),
    5976063: SourceFile(
        "rcv1/lyrl2004_vectors_test_pt2.dat.gz", "48143ac703cbe33299f7ae9f4995db49a258690f60e5debbff8995c34841c7f5"
    ),
    5976060: SourceFile(
        "rcv1/lyrl2004_vectors_test_pt3.dat.gz", "dfcb0d658311481523c6e6ca0c3f5a3e1d3d12cde5d7a8ce629a9006ec7dbb39"
    ),
}
FETCH = "Run `varitext data fetch rcv1` (656 MB)."
BY_HAND = (
    f"Download lyrl2004_tokens_train.dat.gz and lyrl2004_tokens_test_pt0.dat.gz to pt3 from {HOME}a12-token-files/, or "
    f"lyrl2004_vectors_train.dat.gz and so on from {HOME}a13-vector-files/, into a folder rcv1 in one of these."
)

DOCUMENTS = 804_414
TEST_DOCUMENTS = 10_000
TERMS = 47_236
SEED = 2016
OFFSET_DOCUMENTS = 100_000  # at least this many; their weights show the idf of words
BLOCK = 50_000  # documents whose counts are recovered at a time
ALL_WORDS = VocabularyRules(size=10**9, minimum_documents=1, maximum_document_share=1.0, stop_words="none")
MOST_FREQUENT = VocabularyRules(size=10_000, minimum_documents=1, maximum_document_share=1.0, stop_words="none")


class AllDocuments(NamedTuple):
    """Every document in the order of the files, with all words."""

    counts: "csr_matrix"
    words: tuple[str, ...]
    kept: np.ndarray  # [documents]   whether its counts are known
    files: tuple[SourceFile, ...]


def locate(data_dir: Path | None) -> list[LocalFile]:
    """The token files that are there, in rcv1/ of a data folder or in the folder itself; or all vector files."""
    found = [find(f"rcv1/{name}", data_dir) or find(name, data_dir) for name in TOKEN_FILES]
    tokens = [file for file in found if file]
    return tokens or sources.find_all([file.name for file in VECTOR_FILES.values()], data_dir)


def fetch(data_dir: Path | None, note: Callable[[str], None] = lambda _: None) -> list[LocalFile]:
    """The same files, after downloading the vectors (656 MB) if none are here; `note` reports the download."""
    if found := locate(data_dir):
        return found
    try:
        return [_fetch_vectors(number, file, data_dir, note) for number, file in VECTOR_FILES.items()]
    except Unavailable as reason:
        raise sources.not_found(NAME, BY_HAND, data_dir, reason) from None


def _fetch_vectors(number: int, file: SourceFile, data_dir: Path | None, note: Callable[[str], None]) -> LocalFile:
    if found := find(file.name, data_dir):
        return found
    part = sources.download_file(f"{VECTOR_ADDRESS}{number}", file, None, note)
    return LocalFile(part.rename(part.with_suffix("")), file.name)


def load(part: str, data_dir: Path | None = None) -> Documents:
    if not (files := locate(data_dir)):
        raise sources.not_found(NAME, f"{FETCH} {BY_HAND}", data_dir)
    every = read_vectors(files) if files[0].name.endswith(".gz") else read_tokens(files)
    return part_of(every, part)


def part_of(every: AllDocuments, part: str) -> Documents:
    """The documents for training or for testing, and the most frequent words of those for training."""
    is_test = choose_test(len(every.kept))
    if not every.kept.all():
        _warn_of_documents_left_out(every.kept, is_test)
    training = np.flatnonzero(~is_test & every.kept)
    chosen = choose_vocabulary(every.counts, every.words, MOST_FREQUENT, training)
    rows = np.flatnonzero(is_test & every.kept) if part == "test" else training
    return Documents(NAME, part, every.files, counts=chosen.counts[rows], vocabulary=chosen.vocabulary)


def _warn_of_documents_left_out(kept: np.ndarray, is_test: np.ndarray) -> None:
    number, of_test = int((~kept).sum()), int((~kept & is_test).sum())
    warnings.warn(
        f"{NAME}: left out {number:,} of {len(kept):,} documents ({of_test:,} of them for testing), whose weights "
        "do not give whole counts",
        stacklevel=4,
    )


def choose_test(documents: int) -> np.ndarray:
    """Which documents are for testing: always the same 10,000, or the same share if files are missing."""
    if documents != DOCUMENTS:
        warnings.warn(f"{NAME} has {documents:,} documents here, not {DOCUMENTS:,}", stacklevel=2)
    chosen = max(1, round(documents * TEST_DOCUMENTS / DOCUMENTS))
    is_test = np.zeros(documents, bool)
    is_test[np.random.default_rng(SEED).permutation(documents)[:chosen]] = True
    return is_test


# Token files


def read_tokens(files: list[LocalFile]) -> AllDocuments:
    found: list[SourceFile] = []
    counted = count_tokens((tokens for file in files for tokens in tokens_of(file, found)), vocabulary_rules=ALL_WORDS)
    kept = np.ones(counted.counts.shape[0], bool)
    return AllDocuments(counted.counts, counted.vocabulary.words, kept, tuple(found))


def tokens_of(file: LocalFile, found: list[SourceFile]) -> Iterator[list[str]]:
    """Documents `.I number`, `.W`, lines of tokens, an empty line; the file is added to `found` at its end."""
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
    sources.check_first_seen(file, digest.hexdigest())
    found.append(SourceFile(file.name, digest.hexdigest()))


# Vector files


def read_vectors(files: list[LocalFile]) -> AllDocuments:
    from scipy.sparse import vstack  # slow to import, and a ranking needs none

    published = {file.name: file for file in VECTOR_FILES.values()}
    found = tuple(published[file.name] for file in files)
    return recovered(
        vstack([weights_of(file, known.sha256) for file, known in zip(files, found, strict=True)], "csr"), found
    )


def recovered(weights: "csr_matrix", files: tuple[SourceFile, ...]) -> AllDocuments:
    """The counts of all documents; 100,000 of them, spread over all files, show the idf of words."""
    from scipy.sparse import vstack  # slow to import, and a ranking needs none

    offsets = word_offsets(weights[:: max(1, weights.shape[0] // OFFSET_DOCUMENTS)])
    starts = range(0, weights.shape[0], BLOCK)
    blocks = [recover_counts(weights[start : start + BLOCK], offsets) for start in starts]
    counts, kept = vstack([block.counts for block in blocks], "csr"), np.concatenate([block.passed for block in blocks])
    return AllDocuments(counts, tuple(map(str, range(1, TERMS + 1))), kept, files)


def weights_of(file: LocalFile, sha256: str) -> "csr_matrix":
    """Lines `document term:weight term:weight ...`; terms go from 1 to 47,236."""
    from sklearn.datasets import load_svmlight_file

    sources.check_content(file, sources.stated_sha256(file), sha256)
    weights: csr_matrix
    with open_content(file.path) as lines:
        try:
            weights, _ = load_svmlight_file(lines, n_features=TERMS, dtype=np.float32, zero_based=False)
        except ValueError as error:
            raise InputError(f"{file.path} is not a file of vectors ({first_line(error)})") from None
    return weights
