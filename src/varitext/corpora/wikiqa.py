"""`wikiqa`: questions asked of a search engine, each with the sentences of one Wikipedia article's summary.

The data folder's files have the corpus's own tokens. The official tsv files do not; their sentences are split by
`sentence_words`, nearly always into the same words. Pairs and labels are the same.
"""

import io
import json
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from varitext.corpora import sources
from varitext.corpora.question_answers import Candidate, Pair, QuestionAnswers, group_pairs, sentence_words, split_words
from varitext.corpora.sources import LocalFile, SourceFile, Unavailable

NAME = "wikiqa"
DESCRIPTION = "WikiQA: 2,118 / 296 / 633 questions with 20,360 / 2,733 / 6,165 candidates (train, dev, test)"
PARTS = ("train", "dev", "test")
PROTOCOL = "answerable"  # what most papers count: 243 test questions
NEEDED = "wikiqa/train.jsonl, dev.jsonl and test.jsonl, or wikiqa/WikiQACorpus.zip"
FILES = {
    "train": SourceFile("wikiqa/train.jsonl", "c0e5c6ca70f671f08c89f46a44c962986c80595e9b3791427f3ed996c9c19c4b"),
    "dev": SourceFile("wikiqa/dev.jsonl", "e750384efde3fba0612c799ded33c3bc2d78e6d8539a71d2b070e627930a8290"),
    "test": SourceFile("wikiqa/test.jsonl", "b34b698074526251f882e0f7dd8d129eeb7a64b11aeba357001e87df38907e38"),
}
OFFICIAL = {
    "train": SourceFile("WikiQA-train.tsv", "295757943bc4df27f09763fc73b9f63063b13a577718b17805cbc9bb436f9dbe"),
    "dev": SourceFile("WikiQA-dev.tsv", "023c530e742caca2a760d48bd249e13259248c11f3b880a4c1842aa259a30a54"),
    "test": SourceFile("WikiQA-test.tsv", "3c3b66966cb183b71abf19510bc2302295c68dd7a25284ec9cf8b63d5b6929e3"),
}
OFFICIAL_FOLDERS = ("wikiqa", "wikiqa/WikiQACorpus", "WikiQACorpus")  # as kept here, or wherever the zip was unpacked
ADDRESS = "https://download.microsoft.com/download/E/5/F/E5FCFCEE-7005-4814-853D-DAA7C66507E0/WikiQACorpus.zip"
ARCHIVES = ("wikiqa/WikiQACorpus.zip", "WikiQACorpus.zip")
ARCHIVE_LARGEST = 50_000_000


def load(part: str, data_dir: Path | None = None) -> QuestionAnswers:
    file = fetch(data_dir)[PARTS.index(part)]
    if file.name == FILES[part].name:
        known, read = FILES[part], _read_jsonl
    else:
        known, read = SourceFile(f"wikiqa/{OFFICIAL[part].name}", OFFICIAL[part].sha256), _read_tsv
    content = sources.read_checked(file, known.sha256)
    questions = group_pairs(read(content.decode("utf-8"), str(file.path)))
    return QuestionAnswers(NAME, part, (SourceFile(known.name, known.sha256),), questions)


def locate(data_dir: Path | None) -> list[LocalFile]:
    if found := sources.find_all([file.name for file in FILES.values()], data_dir):
        return found
    for folder in OFFICIAL_FOLDERS:
        if found := sources.find_all([f"{folder}/{file.name}" for file in OFFICIAL.values()], data_dir):
            return found
    return []


def fetch(data_dir: Path | None) -> list[LocalFile]:
    if found := locate(data_dir):
        return found
    try:
        archive = next(filter(None, (sources.find(name, data_dir) for name in ARCHIVES)), None)
        # no SHA-256 of the zip is published; those of the files in it are checked
        return _unpack(sources.read_bytes(archive.path) if archive else sources.download(ADDRESS, ARCHIVE_LARGEST))
    except Unavailable as reason:
        raise sources.not_found(NAME, sources.put(NEEDED), data_dir, reason) from None


def _unpack(archive: bytes) -> list[LocalFile]:
    """Keep the tsv files of the official zip in the cache, all or none."""
    contents = {}
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as members:
            for file in OFFICIAL.values():
                contents[file.name] = members.read(f"WikiQACorpus/{file.name}")
    except (zipfile.BadZipFile, KeyError, EOFError, zlib.error, NotImplementedError, RuntimeError) as error:
        raise Unavailable(f"the WikiQA archive does not have the expected files ({error})") from None
    for file in OFFICIAL.values():
        if sources.source_file(file.name, contents[file.name]).sha256 != file.sha256:
            raise Unavailable(f"{file.name} in the WikiQA archive is not the expected file")
    return [sources.store(f"wikiqa/{name}", content) for name, content in contents.items()]


def _read_jsonl(text: str, where: str) -> Iterator[Pair]:
    for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
        row = json.loads(line)
        words = split_words(row["answer_tok"])
        yield _pair(row, split_words(row["question_tok"]), words, f"{where}, line {number}")


def _read_tsv(text: str, where: str) -> Iterator[Pair]:
    """The columns have no quoting: a quotation mark is text."""
    names = ("qid", "question", "document_id", "document_title", "candidate_id", "answer", "label")
    _, *lines = text.removesuffix("\r\n").split("\r\n")
    for number, line in enumerate(lines, start=2):
        row = dict(zip(names, line.split("\t"), strict=True))
        yield _pair(row, sentence_words(row["question"]), sentence_words(row["answer"]), f"{where}, line {number}")


def _pair(row: dict[str, Any], question_words: tuple[str, ...], words: tuple[str, ...], where: str) -> Pair:
    position = int(row["candidate_id"].rpartition("-")[2])  # D42-3 is the fourth sentence of article D42
    candidate = Candidate(row["candidate_id"], words, row["answer"], int(row["label"]), position)
    return Pair(row["qid"], row["question"], question_words, candidate, where)
