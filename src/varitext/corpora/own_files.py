"""The user's own files: a file of texts or counts, or a folder of them.

A folder is a `train` and a `test` part (sub-folders, or files such as train.jsonl), or .txt files, of which those in
sub-folders have the sub-folder's name for a label; or the shards that `varitext prepare` wrote.
"""

import hashlib
import sys
from dataclasses import replace
from pathlib import Path

from varitext.corpora.counts import numbered_words, parse_feat, read_npz, vocabulary_beside
from varitext.corpora.documents import ANY_COLUMNS, Columns, Documents, Texts
from varitext.corpora.encodings import decode
from varitext.corpora.sharded_counts import ShardedCounts
from varitext.corpora.shards import ShardFolder, is_shard_folder
from varitext.corpora.sources import SourceFile, combined_sha256, read_bytes, source_file
from varitext.corpora.text_files import PARSERS, parse_unnamed, suffix_of
from varitext.errors import InputError
from varitext.files import sha256_of

KINDS = (*PARSERS, ".feat", ".npz")
WHOLE = "all"  # the part of a file or folder that is not divided
PARTS = ("train", "test")
STANDARD_INPUT = "-"


def parts(path: Path) -> tuple[str, ...]:
    found = tuple(part for part in PARTS if path.is_dir() and _part_of_folder(path, part))
    return found or (WHOLE,)


def load(path: Path, part: str, columns: Columns = ANY_COLUMNS) -> Documents:
    """The part of `path`; a path that is not divided is loaded whole when asked for its training part."""
    documents = load_whole(*folder_or_file(path, part), columns)
    return replace(documents, path=path.absolute(), read_as=columns)


def load_standard_input(columns: Columns) -> Documents:
    """What is typed or piped in: it has no file that could be found again."""
    content, where = sys.stdin.buffer.read(), "standard input"
    if not content.strip():
        raise InputError(f"{where} is empty")
    return _of_texts(parse_unnamed(content, where, columns), where, WHOLE, source_file(where, content))


def folder_or_file(path: Path, part: str) -> tuple[Path, str]:
    """Where that part of `path` is, and its name."""
    known = parts(path)
    if known == (WHOLE,):
        if part not in ("train", WHOLE):
            raise InputError(f"{path} is not divided into parts, so it has no {part!r} part")
        return path, WHOLE
    found = _part_of_folder(path, part) if part in known else None
    if found is None:
        raise InputError(f"{path} has no part {part!r}; it has {', '.join(known)}")
    return found, part


def _part_of_folder(folder: Path, part: str) -> Path | None:
    if (folder / part).is_dir():
        return folder / part
    files = [file for file in sorted(folder.glob(f"{part}.*")) if file.is_file() and suffix_of(file) in KINDS]
    if len(files) > 1:
        raise InputError(f"{folder} has more than one file for {part}: {', '.join(file.name for file in files)}")
    return files[0] if files else None


def load_whole(path: Path, part: str, columns: Columns) -> Documents:
    """A file or folder that is not divided."""
    if is_shard_folder(path):
        documents = _open_shards(path, part)
    elif path.is_dir():
        documents = _load_folder(path, part, columns)
    elif suffix_of(path) == ".npz":
        documents = _load_npz(path, part)
    elif suffix_of(path) == ".feat":
        documents = _load_feat(path, part)
    elif suffix_of(path) in PARSERS:
        documents = _load_texts(path, part, columns)
    else:
        raise InputError(f"{path} is not of a known kind; known are {', '.join(KINDS)} and folders of .txt")
    if not len(documents):
        raise InputError(f"{path} has no documents")
    return documents


def _load_texts(path: Path, part: str, columns: Columns) -> Documents:
    content = read_bytes(path)
    if not content.strip():
        raise InputError(f"{path} is empty")
    texts = PARSERS[suffix_of(path)](content, str(path), columns)
    return _of_texts(texts, str(path), part, source_file(path.name, content))


def _of_texts(read: Texts, name: str, part: str, file: SourceFile) -> Documents:
    return Documents(
        name, part, (file,), texts=read.texts, labels=read.labels, ids=read.ids, dates=read.dates, columns=read.columns
    )


def _load_feat(path: Path, part: str) -> Documents:
    content = read_bytes(path)
    if not content.strip():
        raise InputError(f"{path} is empty")
    vocabulary = vocabulary_beside(path, None)
    counts, labels = parse_feat(content, str(path), None if vocabulary is None else len(vocabulary))
    vocabulary = vocabulary or numbered_words(counts.shape[1])
    file = source_file(path.name, content)
    return Documents(str(path), part, (file,), counts=counts, vocabulary=vocabulary, labels=labels)


def _load_npz(path: Path, part: str) -> Documents:
    counts = read_npz(path)
    words = counts.shape[1]
    vocabulary = vocabulary_beside(path, words) or numbered_words(words)
    file = SourceFile(path.name, sha256_of(path))
    return Documents(str(path), part, (file,), counts=counts, vocabulary=vocabulary)


def _open_shards(folder: Path, part: str) -> Documents:
    """Nothing is read but the list of shards: the counts stay on disk."""
    shards = ShardFolder.open(folder)
    file = SourceFile("config.json", shards.sha256)
    counts = ShardedCounts(shards, shards.vocabulary)
    return Documents(str(folder), part, (file,), counts=counts, vocabulary=shards.vocabulary)


def _load_folder(folder: Path, part: str, columns: Columns) -> Documents:
    paths = sorted(path for path in folder.rglob("*.txt") if path.is_file())
    if not paths:
        raise InputError(f"{folder} has no .txt files")
    texts, files = [], []
    for path in paths:
        content = read_bytes(path)
        texts.append(decode(content, str(path), columns.encoding))
        files.append(SourceFile(path.relative_to(folder).as_posix(), hashlib.sha256(content).hexdigest()))
    labels = [path.relative_to(folder).parent.as_posix() for path in paths]
    # One line for the folder: a record of a hundred thousand file names helps nobody.
    whole = SourceFile(folder.name, combined_sha256(files))
    return Documents(
        str(folder), part, (whole,), texts=tuple(texts), labels=None if set(labels) == {"."} else tuple(labels)
    )
