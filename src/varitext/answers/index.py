"""An in-memory index of candidate sentences: BM25 finds the few that a ranker then ranks.

The formula is that of `features/overlap.py`, with the document frequencies of the indexed sentences.
"""

from collections import Counter
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from scipy import sparse

from varitext.corpora.question_answers import sentence_words
from varitext.errors import InputError
from varitext.models.answers.features.overlap import Overlap, idf, saturated
from varitext.text import Vocabulary

MAX_SENTENCES = 5_000_000


class CandidateIndex:
    """Sentences that questions are answered from, for `AnswerRanker.search`.

    Parameters
    ----------
    texts : sequence of str
        The sentences.

    Examples
    --------
    >>> from varitext import CandidateIndex
    >>> CandidateIndex(["Joyce wrote Ulysses", "Oslo is in Norway"]).search("who wrote Emma?", 10).tolist()
    [0]
    """

    def __init__(self, texts: Sequence[str]):
        if not 0 < len(texts) <= MAX_SENTENCES:
            raise InputError(f"an index holds from 1 to {MAX_SENTENCES:,} sentences, not {len(texts):,}")
        self.texts = texts
        self.columns: dict[str, int] = {}
        self.weights, lengths = self._counted(texts)  # [V, N] counts; two lines below, BM25 terms without idf
        relative = lengths / max(1.0, lengths.mean())
        self.weights.data = saturated(self.weights.data, relative[self.weights.indices])
        self.idf = idf(len(texts), np.diff(self.weights.indptr))  # [V]

    @cached_property
    def overlap(self) -> Overlap:
        """Document frequencies of its words."""
        return Overlap(Vocabulary(tuple(self.columns)), np.diff(self.weights.indptr), len(self.texts))

    def search(self, question: str, n: int) -> np.ndarray:
        """The places of the sentences with the highest BM25, best first; those that share no word are left out.

        Parameters
        ----------
        question : str
            The question.
        n : int
            The maximum number of sentences.

        Returns
        -------
        array of int
        """
        asked = sorted({self.columns[word] for word in _words(question) if word in self.columns})
        scores = self.idf[asked] @ self.weights[asked] if asked else np.zeros(len(self.texts))  # [N]
        found = np.flatnonzero(scores)
        if len(found) > n:
            found = found[np.argpartition(-scores[found], n)[:n]]
        return np.asarray(found[np.lexsort((found, -scores[found]))])

    def _counted(self, texts: Sequence[str]) -> tuple[sparse.csr_array, np.ndarray]:
        """Counts of words, [V, N], and the number of words of every sentence, [N]."""
        rows, places, counts, lengths = [], [], [], np.empty(len(texts))
        for place, text in enumerate(texts):
            words = _words(text)
            lengths[place] = len(words)
            for word, count in Counter(words).items():
                rows.append(self.columns.setdefault(word, len(self.columns)))
                places.append(place)
                counts.append(count)
        shape = (len(self.columns), len(texts))
        return sparse.csr_array((np.array(counts, np.float64), (rows, places)), shape=shape), lengths


def _words(text: str) -> list[str]:
    """In lower case, without punctuation."""
    return [word.lower() for word in sentence_words(text) if any(map(str.isalnum, word))]
