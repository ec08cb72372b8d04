"""The sixty-second tour on the real 20 Newsgroups: from text to topics, nearest words, perplexity and a report."""

import sys
import time
from pathlib import Path

from varitext.cli.inputs import load_documents
from varitext.corpora import Documents
from varitext.documents.model import DocumentModel
from varitext.documents.topic_records import TopicInfo
from varitext.errors import InputError
from varitext.evaluation.perplexity import PerplexityRecord
from varitext.files import check_can_write
from varitext.text import VocabularyRules
from varitext.training.progress import show_progress

WORDS = ("weapons", "medical", "companies", "define", "israel", "book")  # those of the paper's Table 1b
VOCABULARY = VocabularyRules(size=5_000)  # the tour's size: names and jargon in, typing errors out
TOPICS_SHOWN = 12


def run_demo(out: Path, threads: int | None = None, data_dir: Path | None = None) -> None:
    """Fit, show, and write `out/model` and `out/report.html`; an earlier tour's are replaced."""
    started = time.monotonic()
    check_can_write(out / "model")
    print("1. Documents")
    train, test = (load_documents("20newsgroups", part, data_dir, None) for part in ("train", "test"))
    print(f"   20 Newsgroups: {len(train):,} articles to learn from, {len(test):,} held out")
    print("2. Fit NVDM: 50 topics, on the CPU")
    model = DocumentModel(vocabulary_rules=VOCABULARY, processes=2, threads=threads)
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
    report = _report(model, test, record, out / "report.html")
    print(f"6. Yours to keep\n   {out / 'model'}: the model folder, {report}")
    print(f"   {time.monotonic() - started:.0f} s in all. Next: varitext similar {out / 'model'} --word hockey")


def _print_topics(topics: list[TopicInfo]) -> None:
    print(f"3. Topics: the {TOPICS_SHOWN} largest of {len(topics)}")
    for topic in topics[:TOPICS_SHOWN]:
        print(f"   {topic.number:3}  {' '.join(topic.words)}")


def _print_neighbours(model: DocumentModel) -> None:
    print("4. Nearest words")
    for word in WORDS:
        if word in model.fitted_.vocabulary.index:
            print(f"   {word:10}  {' '.join(name for name, _ in model.similar_words(word))}")


def _print_perplexity(record: PerplexityRecord) -> None:
    low, high = record.per_document_interval_95
    print(f"5. Held-out perplexity, {record.n_documents:,} test documents, {record.n_samples} samples")
    print(f"   unigram model        {record.unigram_per_document_perplexity:8.0f}")
    print(f"   NVDM                 {record.per_document_perplexity:8.0f}   95 % interval {low:.0f} to {high:.0f}")
    print(f"   importance-weighted  {record.iwae_per_document_perplexity:8.0f}")


def _report(model: DocumentModel, test: Documents, record: PerplexityRecord, path: Path) -> str:
    try:
        from varitext.report import write_document_report

        write_document_report(model, test, path, record=record, folder=path.parent / "model")
    except InputError as error:  # the drawing libraries are an extra; the tour goes on without pictures
        print(error, file=sys.stderr)
        return "and no report"
    return f"and {path}: the report, open it in a browser"
