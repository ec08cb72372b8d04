"""The default settings on corpora of many sizes: LDA, and NVDM with either likelihood.

All models get the same counts and the same held-out documents.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from varitext.corpora import load_documents, load_questions
from varitext.corpora.newsgroups import fetch_articles, read_articles
from varitext.corpora.repeats import without_repeats
from varitext.documents.model import DocumentModel
from varitext.reproduce.document_fits import QUICK_DOCUMENTS, QUICK_EPOCHS, is_here, samples_of, short
from varitext.reproduce.engine import Experiment, Plan, Record, Run, markdown_table
from varitext.text import VocabularyRules, count_texts

HELD_OUT = 0.2
SUBJECT = "Subject:"


class Split(NamedTuple):
    train: scipy.sparse.csr_matrix
    test: scipy.sparse.csr_matrix  # none of these is also a training document
    repeated: int  # held-out documents that were, and were dropped


@dataclass(frozen=True)
class MadeCorpus:
    texts: Callable[[Path | None], Sequence[str]]  # from the data folder
    words: int  # at most, in the vocabulary
    source: str  # the corpus that it is made from

    def split(self, data_dir: Path | None, most: int | None = None) -> Split:
        return split_texts(self.texts(data_dir)[:most], self.words)


def split_texts(texts: Sequence[str], words: int) -> Split:
    """A random fifth is held out; the vocabulary comes from the rest.

    Held-out documents that also occur in training, word for word, are dropped and counted.
    """
    order = np.random.default_rng(0).permutation(len(texts))
    cut = int(HELD_OUT * len(texts))
    train = count_texts([texts[i] for i in order[cut:]], vocabulary_rules=VocabularyRules(size=words))
    test = count_texts([texts[i] for i in order[:cut]], vocabulary=train.vocabulary)
    known, held_out = _without_empty(train.counts), _without_empty(test.counts)
    kept = without_repeats(held_out, known)
    return Split(known, kept, held_out.shape[0] - kept.shape[0])


def _without_empty(counts: scipy.sparse.csr_matrix) -> scipy.sparse.csr_matrix:
    return counts[np.flatnonzero(np.asarray(counts.sum(1)).ravel())]


def articles(data_dir: Path | None) -> Sequence[str]:
    return load_documents("20newsgroups", "train", data_dir).texts or ()


def titles(data_dir: Path | None) -> Sequence[str]:
    """The subject lines of the articles: four or five words each."""
    found, _ = read_articles(fetch_articles(data_dir)[0], "train")
    headers = (article.text.partition("\n\n")[0] for article in found)
    subjects = [line for header in headers for line in header.split("\n") if line.startswith(SUBJECT)]
    return [subject.removeprefix(SUBJECT).replace("Re:", "") for subject in subjects]


def paragraphs(data_dir: Path | None) -> Sequence[str]:
    return [part for text in articles(data_dir) for part in text.split("\n\n") if len(part.split()) >= 5]


def lines(data_dir: Path | None) -> Sequence[str]:
    return [line for text in articles(data_dir) for line in text.split("\n") if len(line.split()) >= 3]


def sentences(corpus: str, part: str) -> Callable[[Path | None], Sequence[str]]:
    def texts(data_dir: Path | None) -> Sequence[str]:
        questions = load_questions(corpus, part, data_dir).questions
        return [candidate.text for question in questions for candidate in question.candidates]

    return texts


MADE_CORPORA = {
    "300 articles": MadeCorpus(lambda data: articles(data)[::38][:300], 500, "20newsgroups"),
    "1,000 articles": MadeCorpus(lambda data: articles(data)[::11][:1000], 5000, "20newsgroups"),
    "titles": MadeCorpus(titles, 2000, "20newsgroups"),
    "WikiQA sentences": MadeCorpus(sentences("wikiqa", "train"), 10_000, "wikiqa"),
    "articles": MadeCorpus(articles, 10_000, "20newsgroups"),
    "paragraphs": MadeCorpus(paragraphs, 5000, "20newsgroups"),
    "QASent sentences": MadeCorpus(sentences("qasent", "train-all"), 20_000, "qasent"),
    "articles, all words": MadeCorpus(articles, 50_000, "20newsgroups"),
    "lines": MadeCorpus(lines, 10_000, "20newsgroups"),
}


MODELS = ("lda", "nvdm", "nvdm_dcm")


def runs(plan: Plan) -> Iterator[Run]:
    for corpus, made in MADE_CORPORA.items():
        if is_here(made.source, plan):
            for model in MODELS:
                yield Run({"corpus": corpus, "model": model}, partial(measure, corpus, model, plan))


def measure(corpus: str, model: str, plan: Plan) -> dict[str, Any]:
    train, test, repeated = _split(corpus, plan.data_dir, QUICK_DOCUMENTS["train"] if plan.quick else None)
    fitted = DocumentModel(model, epochs=QUICK_EPOCHS if plan.quick else None, threads=plan.threads)
    started = time.process_time()
    fitted.fit(train)
    spent = {"fit_seconds": fitted.fitted_.fit_seconds, "fit_cpu_seconds": time.process_time() - started}
    record = fitted.perplexity_record(test, samples_of(plan))
    return short(
        {
            "bound": record.per_document_perplexity,
            "importance_weighted": record.iwae_per_document_perplexity,
            "unigram": record.unigram_per_document_perplexity,
            "kl_per_document": record.kl_per_document,
            "documents": train.shape[0],
            "words": train.shape[1],
            "words_per_document": float(train.sum() / train.shape[0]),
            "test_documents": test.shape[0],
            "repeated": repeated,
            "stopped": fitted.fitted_.stopped,
            **spent,
        }
    )


@cache  # three models read the same documents
def _split(corpus: str, data_dir: Path | None, most: int | None) -> Split:
    return MADE_CORPORA[corpus].split(data_dir, most)


def table(records: list[Record]) -> str:
    head = ["", "documents", "words", "words per document", "held out", "duplicates dropped", "unigram"]
    head += ["LDA", "NVDM", "NVDM, DCM", "NVDM / LDA", "DCM / multinomial", "fit, CPU s"]
    found = {(each["settings"]["corpus"], each["settings"]["model"]): each["result"] for each in records}
    return markdown_table(head, list(_rows(found)))


def _rows(found: dict[tuple[str, str], dict[str, Any]]) -> Iterator[list[str]]:
    """Corpora that all models have been fitted to."""
    for corpus in MADE_CORPORA:
        if all((corpus, model) in found for model in MODELS):
            lda, nvdm, dcm = (found[corpus, model] for model in MODELS)
            sizes = [f"{lda[name]:,}" for name in ("documents", "words", "words_per_document", "test_documents")]
            bounds = [f"{value:.0f}" for value in (lda["unigram"], lda["bound"], nvdm["bound"], dcm["bound"])]
            ratios = [f"{nvdm['bound'] / lda['bound']:.2f}", f"{dcm['bound'] / nvdm['bound']:.3f}"]
            seconds = " / ".join(f"{each['fit_cpu_seconds']:.0f}" for each in (lda, nvdm, dcm))
            yield [corpus, *sizes, f"{lda['repeated']:,}", *bounds, *ratios, seconds]


EXPERIMENT = Experiment("generality", "LDA and NVDM with the defaults on corpora of many sizes", runs, table)
