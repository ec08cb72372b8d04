"""`glove`: GloVe vectors of 400,000 words in 100 dimensions, from the data folder, the cache or the official archive.

The archive of Stanford NLP holds four widths; only the file of 100 dimensions is kept. Both checksums are those that
many projects publish, among them torchtext and Embeddings.jl (archive).
"""

import hashlib
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

from varitext.corpora import sources
from varitext.corpora.sources import LocalFile, SourceFile, Unavailable
from varitext.corpora.word_vectors import GLOVE
from varitext.files import atomic_file

NAME = "glove"
DESCRIPTION = "GloVe word vectors: 400,000 words, 100 dimensions, from 6 billion words of Wikipedia and Gigaword"
PARTS: tuple[str, ...] = ()
ADDRESSES = (  # the first one redirects to the second
    "https://nlp.stanford.edu/data/glove.6B.zip",
    "https://downloads.cs.stanford.edu/nlp/data/glove.6B.zip",
)
ARCHIVE = SourceFile("embeddings/glove.6B.zip", "617afb2fe6cbd085c235baf7a465b96f4112bd7f7ccb2b2cbd649fed9cbcf2fb")
ARCHIVE_SIZE = 862_182_613
MEMBER = "glove.6B.100d.txt"
NEEDED = f"{GLOVE.name}, or the official glove.6B.zip as {ARCHIVE.name},"
BLOCK = 1 << 20


def locate(data_dir: Path | None) -> list[LocalFile]:
    return sources.find_all([GLOVE.name], data_dir)


def fetch(data_dir: Path | None, note: Callable[[str], None] = lambda _: None) -> list[LocalFile]:
    """The file, after downloading and unpacking the archive if it is not here; `note` reports the download."""
    if found := locate(data_dir):
        return found
    reasons = []
    if archive := sources.find(ARCHIVE.name, data_dir):
        return [_unpack(archive.path)]
    for address in ADDRESSES:
        try:
            path = sources.download_file(address, ARCHIVE, ARCHIVE_SIZE, note)
            found = [_unpack(path)]
            path.unlink()
            return found
        except Unavailable as reason:
            reasons.append(reason)
    raise sources.not_found(NAME, sources.put(NEEDED), data_dir, *reasons)


def _unpack(archive: Path) -> LocalFile:
    """Keep the file of 100 dimensions in the cache, if its checksum is right."""
    path, digest = sources.cache_folder() / GLOVE.name, hashlib.sha256()
    try:
        with zipfile.ZipFile(archive) as members, members.open(MEMBER) as content, atomic_file(path) as temporary:
            with temporary.open("wb") as stream:
                while block := content.read(BLOCK):
                    digest.update(block)
                    stream.write(block)
            if digest.hexdigest() != GLOVE.sha256:
                raise Unavailable(f"{MEMBER} in {archive} is not the expected file")
    except (zipfile.BadZipFile, KeyError, EOFError, zlib.error, NotImplementedError) as error:
        raise Unavailable(f"{archive} is not the expected archive ({error})") from None
    return LocalFile(path, GLOVE.name)
