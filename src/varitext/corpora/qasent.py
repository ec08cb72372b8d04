"""`qasent`: the questions of TREC's question answering tracks, with sentences of newswire (Wang and others 2007).

The corpus is tokenised. Questions without candidates are left out (1 of train, 1 of dev, 5 of test); published counts
include them. All files list right candidates first, so the order is not a position in a document: `position` is None.
"""

import hashlib
import json
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

from varitext.corpora import sources
from varitext.corpora.question_answers import Candidate, Pair, QuestionAnswers, group_pairs, split_words
from varitext.corpora.sources import LocalFile, SourceFile, find, not_found, read_bytes, read_checked, source_file
from varitext.errors import InputError

NAME = "qasent"
DESCRIPTION = (
    "QASent (TREC QA): 1,229 / 94 / 82 / 100 questions with 53,417 / 4,718 / 1,148 / 1,517 candidates "
    "(train-all, train, dev, test)"
)
PROTOCOL = "clean"
FILES = {
    "train-all": SourceFile(
        "qasent/train-all.jsonl", "ac543a89741c3f273180e5e5213c8d01fa148a5b9e640f98f3a5f4f22b902823"
    ),
    "train": SourceFile("qasent/train.jsonl", "89ac7267ff6803a793e46b225b7bb666987733b282408b5679c2301c59450916"),
    "dev": SourceFile("qasent/dev.jsonl", "a9951266423cf01d4367e2e8bb6efe8298e97fb8a3e599d2d4fff8ec6dabfb5d"),
    "test": SourceFile("qasent/test.jsonl", "f9ba4c4b7f4808b7b7036e705ae3f6f0a06e33fc1d73453e6f82da934f7f1169"),
}
PARTS = tuple(FILES)
OFFICIAL_FOLDERS = ("qasent", "jacana-qa-naacl2013-data-results")
ADDRESS = "https://cs.jhu.edu/~xuchen/packages/jacana-qa-naacl2013-data-results.tar.bz2"
PUBLISHED = {  # questions with candidates, and pairs
    "train-all": (1_229, 53_417),
    "train": (93, 4_718),
    "dev": (81, 1_148),
    "test": (95, 1_517),
}
_OPENING = re.compile(r"<QApairs id=['\"](.+)['\"]>")
_LABELS = {"<positive>": 1, "<negative>": 0}


def load(part: str, data_dir: Path | None = None) -> QuestionAnswers:
    file = _find(part, data_dir)
    if file is None:
        raise _not_here(f"{NAME}'s part {part!r}", data_dir)
    if file.name == FILES[part].name:
        content = read_checked(file, FILES[part].sha256)
        questions = group_pairs(_read_jsonl(content.decode("utf-8"), str(file.path)))
        return QuestionAnswers(NAME, part, (source_file(file.name, content),), questions)
    content = read_bytes(file.path)  # no checksums of these files are published: results record those found
    sources.check_first_seen(file, hashlib.sha256(content).hexdigest())
    try:  # the files have a dozen non-ASCII letters, and no declaration
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    questions = group_pairs(parse_xml(text, str(file.path)))
    loaded = QuestionAnswers(NAME, part, (source_file(f"qasent/{part}.xml", content),), questions)
    if (found := (loaded.n_questions, loaded.n_pairs)) != PUBLISHED[part]:
        counts = "{:,} questions with {:,} candidates that have text, not {:,} with {:,}"
        warnings.warn(f"{file.path} has {counts.format(*found, *PUBLISHED[part])}", stacklevel=2)
    return loaded


def locate(data_dir: Path | None) -> list[LocalFile]:
    """The files that are there; the XML files often come without train-all."""
    return [file for part in PARTS if (file := _find(part, data_dir))]


def fetch(data_dir: Path | None) -> list[LocalFile]:
    if found := locate(data_dir):
        return found
    raise _not_here(NAME, data_dir)


def _find(part: str, data_dir: Path | None) -> LocalFile | None:
    names = [FILES[part].name, *(f"{folder}/{part}.xml" for folder in OFFICIAL_FOLDERS)]
    return next(filter(None, (find(name, data_dir) for name in names)), None)


def _not_here(what: str, data_dir: Path | None) -> InputError:
    files = ", ".join(f"{part}.xml" for part in PARTS)
    return not_found(what, f"Unpack {ADDRESS} there, or put its {files} into a folder qasent.", data_dir)


def _read_jsonl(text: str, where: str) -> Iterator[Pair]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line:
            row = json.loads(line)
            words = split_words(row["answer"])
            candidate = Candidate(row["candidate_id"], words, row["answer"], row["label"])
            yield Pair(row["qid"], row["question"], split_words(row["question"]), candidate, f"{where}, line {number}")


def parse_xml(text: str, where: str) -> Iterator[Pair]:
    """The pairs of a file of Yao and others (2013), which resembles XML but does not escape `&` and `<`.

    Elements are QApairs, question, positive and negative, each tag on its own line. The first line of a sentence has
    its words, separated by tabs; further lines annotate them. Some long sentences of train-all.xml have no text: they
    are left out, but counted in the ids of the others.
    """
    question: tuple[str, ...] = ()
    question_id, sentences, tag = "", 0, ""
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.strip("\r")
        if opening := _OPENING.fullmatch(line.strip()):
            question_id, question, sentences = opening[1], (), 0
        elif tag == "<question>":
            question = split_words(line)
            if not question or line == "</question>":
                raise InputError(f"{where}, line {number}: question {question_id} has no words")
        elif tag and line.strip() and not line.startswith("</"):
            words = split_words(line)
            candidate = Candidate(f"{question_id}-{sentences - 1}", words, " ".join(words), _LABELS[tag])
            yield Pair(question_id, " ".join(question), question, candidate, f"{where}, line {number}")
        tag = line.strip() if line.strip() in ("<question>", *_LABELS) else ""
        if (tag and not question_id) or (tag in _LABELS and not question):
            raise InputError(f"{where}, line {number}: {tag} outside a question's QApairs")
        sentences += tag in _LABELS
    if not question_id:
        raise InputError(f"{where} has no <QApairs id='...'>")
