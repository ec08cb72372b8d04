"""`varitext demo`: the sixty-second tour on 20 Newsgroups."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from varitext.cli.input import load_documents
from varitext.cli.options import DataDir, Threads, option
from varitext.cli.printing import log
from varitext.errors import InputError
from varitext.files import check_can_write

if TYPE_CHECKING:
    from varitext.corpora import Documents
    from varitext.documents.model import DocumentModel
    from varitext.documents.topic_records import TopicInfo
    from varitext.evaluation.perplexity import PerplexityRecord

WORDS = ("weapons", "medical", "companies", "define", "israel", "book")  # those of the paper's Table 1b
VOCABULARY_SIZE = 5_000  # for the tour: keeps names and jargon, drops typing errors
TOPICS_SHOWN = 12


def demo(
    out: Annotated[Path, option("Folder for the model and the report.", "DIR")] = Path("demo"),
    threads: Threads = None,
    data_dir: DataDir = None,
) -> None:
    """Take the sixty-second tour on 20 Newsgroups.

    Fits a model, prints topics, nearest words and perplexity, and writes a report with pictures. Files of an earlier
    tour are replaced.

    \b
    Example:
      varitext demo --out demo
    """
    from varitext.documents.model import DocumentModel
    from varitext.text import VocabularyRules
    from varitext.training.progress import show_progress

    started = time.monotonic()
    check_can_write(out / "model")
    print("1. Documents")
    train, test = (load_documents("20newsgroups", part, data_dir) for part in ("train", "test"))
    print(f"   20 Newsgroups: {len(train):,} articles to learn from, {len(test):,} held out")
    print("2. Fit NVDM with 50 latent dimensions on the CPU")
    model = DocumentModel(vocabulary_rules=VocabularyRules(size=VOCABULARY_SIZE), threads=threads)
    with show_progress() as progress:
        model.fit(train, progress=progress)
    if model.fitted_.stopped == "interrupted":
        raise KeyboardInterrupt
    print(f"   {len(model.fitted_.vocabulary):,} words, {model.fitted_.fit_seconds:.0f} s")
    _print_topics(model.topics(8))
    _print_neighbours(model)
    record = model.perplexity_record(test)
    _print_perplexity(record)
    model.save(out / "model", overwrite=True)
    print(f"6. Files\n   {out / 'model'}: the model folder")
    _write_report(model, test, record, out / "report.html")
    print(f"   {time.monotonic() - started:.0f} s in all. Next: varitext similar {out / 'model'} --word hockey")


def _print_topics(topics: "list[TopicInfo]") -> None:
    print(f"3. Topics: the {TOPICS_SHOWN} largest of {len(topics)}")
    for topic in topics[:TOPICS_SHOWN]:
        print(f"   {topic.number:3}  {' '.join(topic.words)}")


def _print_neighbours(model: "DocumentModel") -> None:
    print("4. Nearest words")
    for word in WORDS:
        if word in model.fitted_.vocabulary.index:
            print(f"   {word:10}  {' '.join(name for name, _ in model.similar_words(word))}")


def _print_perplexity(record: "PerplexityRecord") -> None:
    low, high = record.per_document_interval_95
    print(f"5. Held-out perplexity, {record.n_documents:,} test documents, {record.n_samples} samples")
    print(f"   unigram model        {record.unigram_per_document_perplexity:8.0f}")
    print(f"   NVDM                 {record.per_document_perplexity:8.0f}   95 % interval {low:.0f} to {high:.0f}")
    print(f"   importance-weighted  {record.iwae_per_document_perplexity:8.0f}")


def _write_report(model: "DocumentModel", test: "Documents", record: "PerplexityRecord", path: Path) -> None:
    try:
        from varitext.report import write_document_report

        write_document_report(model, test, path, record=record, folder=path.parent / "model")
    except InputError as error:  # the drawing libraries are an extra; the tour continues without pictures
        return log(str(error))
    print(f"   {path}: the report; open it in a browser")
