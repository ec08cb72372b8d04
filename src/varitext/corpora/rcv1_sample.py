"""`rcv1-sample`: a sample of Reuters RCV1-v2, counts of 10,000 words in 20,737 training and 5,000 test documents.

The documents are from public subsets of its tf-idf vectors; their counts were recovered from the weights. It is not
the paper's split: train and test are a random cut without dates. The spellings of the words are not public, so words
are the term ids of LYRL2004. A document has several topics, which are in the column "topics".
"""

from pathlib import Path

from varitext.corpora.counts import parse_feat
from varitext.corpora.documents import Documents
from varitext.corpora.sources import LocalFile, SourceFile, find_all, not_found, put, read_checked
from varitext.text import Vocabulary

NAME = "rcv1-sample"
DESCRIPTION = "A sample of Reuters RCV1-v2: counts of 10,000 words, 20,737 training and 5,000 test documents"
PARTS = ("train", "test")
FILES = {
    "train": SourceFile("rcv1/train.feat", "e001ecdc37651bae70d1f65d60c3d225e0f4ed57300f2cff14e16b31438c0b56"),
    "test": SourceFile("rcv1/test.feat", "45a6d2d8656f6e100ea1e6dbd3edab4cafe45e22abf087dc532375f49dc85ffc"),
    "train topics": SourceFile("rcv1/train.topics", "0aa7307b2be45126b6b71bb36a59cd7fe1643ccec3ce1812b51de17853af0955"),
    "test topics": SourceFile("rcv1/test.topics", "c98fa60248adffb8be7b3625cd2ba7f9d50f64ce2aa46b73fb0a572ed80f7380"),
    "words": SourceFile("rcv1/vocab.termids", "bd328514404f6e88c94496ca9c547ea4d8816efd3e4e06d15e44c59458f023d8"),
}
NEEDED = "rcv1/train.feat, test.feat, train.topics, test.topics and vocab.termids"


def locate(data_dir: Path | None) -> list[LocalFile]:
    return find_all([file.name for file in FILES.values()], data_dir)


def fetch(data_dir: Path | None) -> list[LocalFile]:
    if found := locate(data_dir):
        return found
    raise not_found(NAME, put(NEEDED), data_dir)


def load(part: str, data_dir: Path | None = None) -> Documents:
    located = dict(zip(FILES, fetch(data_dir), strict=True))
    keys = (part, f"{part} topics", "words")
    lines, topics, words = (read_checked(located[key], FILES[key].sha256) for key in keys)
    vocabulary = Vocabulary(tuple(words.decode("ascii").split()))
    counts = parse_feat(lines, FILES[part].name, len(vocabulary)).counts
    columns = {"topics": tuple(topics.decode("ascii").splitlines())}
    sources = tuple(FILES[key] for key in keys)
    return Documents(NAME, part, sources, counts=counts, vocabulary=vocabulary, columns=columns)
