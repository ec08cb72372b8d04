"""Word ids for a corpus of any size: a table that lets go of the rarest words when it gets too large.

Zipf's law makes this safe: most words that a large corpus ever shows stand in it once or twice, and none of those can
be among the most frequent. When the table is full, the rarer half goes, with all words that are as rare as the most
frequent of them: t times so far. A word that comes back starts anew with a new id, so a drop costs a word at most t of
its count. Hence, for every word,

    count - (t_1 + t_2 + ...)  <=  what the table says  <=  count

and a word that stands in the corpus more often than t_1 + t_2 + ... is in the table at the end.
"""

from collections import defaultdict
from itertools import compress, count

import numpy as np

from varitext.errors import InputError
from varitext.text.counting import ChunkCounts
from varitext.text.vocabulary import WordStatistics

MAX_TABLE = 1 << 20  # words; about 200 MB
MAX_ID = (1 << 31) - 1


class BoundedIds(defaultdict[str, int]):
    """A word's id is a number that no other word ever has; ids ascend in the order of the table."""

    def __init__(self, largest: int = MAX_TABLE) -> None:
        super().__init__(count().__next__)
        self.largest = largest
        self.undercount = 0  # t_1 + t_2 + ...: what any word's count may lack
        self.drops = 0
        self._old = np.zeros(0, np.int64)  # ids of the words that survived the last drop; those after it follow on
        self._first_new = 0
        self._tokens = np.zeros(0, np.int64)  # [table]
        self._documents = np.zeros(0, np.int64)  # [table]

    def of(self, words: list[str]) -> np.ndarray:
        return np.fromiter(map(self.__getitem__, words), np.int64, len(words))

    def add(self, chunk: ChunkCounts) -> None:
        """Remember how frequent the words of these documents are; then make room, if there is none."""
        grown = len(self) - len(self._tokens)
        self._tokens, self._documents = (np.pad(array, (0, grown)) for array in (self._tokens, self._documents))
        places = self._places(chunk.word_ids.astype(np.int64))
        np.add.at(self._tokens, places, chunk.counts.astype(np.int64))
        np.add.at(self._documents, places, 1)
        while len(self) > self.largest:
            self._drop()

    @property
    def ids(self) -> np.ndarray:
        """Ids in the order of the table."""
        return np.concatenate([self._old, np.arange(self._first_new, self._next_id())])

    def statistics(self) -> WordStatistics:
        return WordStatistics(list(self), self._documents, self._tokens)

    def _next_id(self) -> int:
        return self._first_new + len(self) - len(self._old)

    def _places(self, ids: np.ndarray) -> np.ndarray:
        is_new = ids >= self._first_new
        return np.where(is_new, ids - self._first_new + len(self._old), np.searchsorted(self._old, ids))

    def _drop(self) -> None:
        threshold = int(np.partition(self._tokens, len(self) // 2)[len(self) // 2])
        kept = self._tokens > threshold
        words, ids, following = list(compress(self, kept)), self.ids[kept], self._next_id()
        if following > MAX_ID - 2 * self.largest:
            raise InputError("the corpus has more than two thousand million different words: is it text?")
        self.clear()
        self.update(zip(words, ids.tolist(), strict=True))
        self._old, self._first_new = ids, following
        self._tokens, self._documents = self._tokens[kept], self._documents[kept]
        self.undercount += threshold
        self.drops += 1
