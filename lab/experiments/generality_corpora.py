"""Corpora of many sizes and lengths of documents, made from those that there are, each cut once into train and test."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse

from varitext.corpora import load_documents, load_questions
from varitext.corpora.newsgroups import fetch_articles, read_articles
from varitext.corpora.repeats import without_repeats
from varitext.text import VocabularyRules, count_texts

HELD_OUT = 0.2
SUBJECT = "Subject:"


class Split(NamedTuple):
    train: scipy.sparse.csr_matrix
    test: scipy.sparse.csr_matrix  # none of these is a training document, too
    repeated: int  # held-out documents that were, and were left out


@dataclass(frozen=True)
class MadeCorpus:
    texts: Callable[[Path | None], Sequence[str]]  # from the data folder
    words: int  # at most, in the vocabulary
    source: str  # the corpus that has to be here

    def split(self, data_dir: Path | None, most: int | None = None) -> Split:
        return split_texts(self.texts(data_dir)[:most], self.words)


def split_texts(texts: Sequence[str], words: int) -> Split:
    """A random fifth is held out, the vocabulary comes from the rest.

    Held-out documents that training has word for word are left out, and counted: of titles that is most of them.
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
    found = read_articles(fetch_articles(data_dir)[0], "train").articles
    headers = (article.text.partition("\n\n")[0] for article in found)
    subjects = [line for header in headers for line in header.split("\n") if line.startswith(SUBJECT)]
    return [subject.removeprefix(SUBJECT).replace("Re:", "") for subject in subjects]


def paragraphs(data_dir: Path | None) -> Sequence[str]:
    return [part for text in articles(data_dir) for part in text.split("\n\n") if len(part.split()) >= 5]


def lines(data_dir: Path | None) -> Sequence[str]:
    """A quarter of a million short documents."""
    return [line for text in articles(data_dir) for line in text.split("\n") if len(line.split()) >= 3]


def sentences(corpus: str, part: str) -> Callable[[Path | None], Sequence[str]]:
    """All candidate answers."""

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
