"""LCLR: latent word alignment with features of meaning, under a max-margin classifier (Yih and others 2013).

The alignment is a latent variable that is maximised over, not inferred: no prior, no posterior, no KL.
Each word of a question is aligned to one of the candidate's words, or to none: to whichever scores best,

    score(q, a) = max_h theta^T Phi(q, a, h) = bias + sum_words max(0, max_choices theta^T phi(word, choice))

since the words choose independently. Learning minimises 1/2 |theta|^2 + C sum_i max(0, 1 - y_i score_i)^2 (Chang and
others 2010). For wrong pairs the loss is convex in theta. For right ones it is not, so their alignments are fixed at
the best under the current theta, which bounds the loss from above, and the convex rest is minimised. These two
steps alternate; no turn increases the loss. A choice is described by groups of features, and each can be left out:

    lexical    the same word (stop words apart), the same stem
    wordnet    a synonym, an antonym, a hyponym, a hypernym, a word of the same root
    vectors    how far the cosine of word vectors exceeds that of unrelated words
    type       the question's interrogative may choose a word that looks like an answer to it: a year for when, a
               number for how many, a name for who and where
    length     the candidate's length, which needs no choice

Each is weighted by the word's share of the question's idf. The original has named entities, and vectors and antonyms of
other models; here `type` takes the place of the first, by digits and capitals alone.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from varitext.corpora.question_answers import Question, QuestionAnswers
from varitext.models.answers.features.alignment import (
    NO_WORD,
    AlignedCorpus,
    QuestionPairs,
    padded_candidates,
    unit_vectors,
)
from varitext.models.answers.features.wordnet import WordSenses, has_wordnet, needed_wordnet
from varitext.models.answers.scorer import AnswerScorer, chosen
from varitext.text import Vocabulary

if TYPE_CHECKING:
    from varitext.models.answers.vocabulary import AnswerWords

GROUPS = {
    "lexical": ("same", "same_stop", "same_stem"),
    "wordnet": ("synonym", "antonym", "kind", "kind_of", "same_root"),
    "vectors": ("similarity",),
    "type": ("year", "number", "name", "other_number", "other_name"),
    "length": ("length",),
}
UNRELATED = 0.35  # cosines up to this count as none; otherwise a long sentence would gain by its length alone
MAX_CHOICES = 5  # per word of the question: those with most in common, nearest vectors first
MONTHS = {"January", "February", "March", "April", "May", "June", "July", "August", "September"}
MONTHS |= {"October", "November", "December"}


STEPS = 30  # of each turn


class AlignmentChoices(NamedTuple):
    """The words of all questions, each with its possible alignments; a choice of zeros means none."""

    features: np.ndarray  # [words, choices, F]
    pair_of: np.ndarray  # [words] rising: which pair each word belongs to
    n_pairs: int

    def per_pair(self, values: np.ndarray) -> np.ndarray:
        """Sums over the words of each pair: [words] gives [P]."""
        return np.bincount(self.pair_of, values, self.n_pairs)


def scores(choices: AlignmentChoices, theta: np.ndarray) -> np.ndarray:
    """max_h theta^T Phi of every pair; the last number of theta is the bias."""
    found: np.ndarray = choices.per_pair(np.maximum(_values(choices, theta), 0).max(1)) + theta[-1]
    return found  # [P]


def _values(choices: AlignmentChoices, theta: np.ndarray) -> np.ndarray:
    found: np.ndarray = choices.features @ theta[:-1].astype(choices.features.dtype)
    return found  # [words, choices]


def best_choices(choices: AlignmentChoices, theta: np.ndarray) -> np.ndarray:
    """phi of the best choice of every word, zero if that is none, [words, F]."""
    found = _values(choices, theta)
    best = found.argmax(1)
    rows = np.arange(len(best))
    described: np.ndarray = choices.features[rows, best] * (found[rows, best] > 0)[:, None]
    return described


def loss_and_gradient(
    theta: np.ndarray, choices: AlignmentChoices, fixed: np.ndarray | None, labels: np.ndarray, cost: float
) -> tuple[float, np.ndarray]:
    """The loss with words of right pairs aligned as in `fixed`, [words, F], and those of wrong pairs at their best.

    Without `fixed`, all are aligned at their best, which gives the loss itself.
    """
    best = best_choices(choices, theta)
    if fixed is not None:
        best = np.where(labels[choices.pair_of, None] == 1, fixed, best)
    sign = np.where(labels == 1, 1.0, -1.0)
    found = choices.per_pair(best @ theta[:-1]) + theta[-1]  # [P]
    missing = np.maximum(0, 1 - sign * found)
    slope = -2 * cost * missing * sign  # [P]
    gradient = np.append(slope[choices.pair_of] @ best, slope.sum()) + np.append(theta[:-1], 0)
    return float(0.5 * theta[:-1] @ theta[:-1] + cost * (missing**2).sum()), gradient


def learn(choices: AlignmentChoices, labels: np.ndarray, initial: np.ndarray, cost: float, turns: int) -> np.ndarray:
    """theta after `turns` turns, or as soon as the loss no longer falls."""
    from scipy.optimize import minimize  # slow to import, and not needed to rank

    theta, before = initial, np.inf
    for _ in range(turns):
        fixed = best_choices(choices, theta)
        solved = minimize(
            loss_and_gradient, theta, (choices, fixed, labels, cost), "L-BFGS-B", jac=True, options={"maxiter": STEPS}
        )
        now = loss_and_gradient(solved.x, choices, None, labels, cost)[0]
        if now >= before - 1e-4 * abs(before):
            break
        theta, before = solved.x, now
    return theta


class LCLR(AnswerScorer):
    """Ranks by the score of the best alignment; `features` names groups. Those of WordNet need its files.

    `cost` is C, divided by the number of pairs.
    """

    feature_names = tuple(GROUPS)
    reads_word_vectors = True
    word_vectors: np.ndarray  # [V, E]
    theta: np.ndarray  # [F + 1]

    def __init__(
        self,
        vocabulary: Vocabulary,
        embedding_dim: int = 50,
        features: Sequence[str] | str | None = None,
        cost: float = 100.0,
        turns: int = 5,
    ):
        super().__init__(vocabulary, ("score",))
        present = [group for group in GROUPS if group != "wordnet" or has_wordnet()]
        self.groups = self.named_features = chosen(features, self.feature_names, present)
        self.names = tuple(name for group in self.groups for name in GROUPS[group])
        self.cost, self.turns = cost, turns
        self.declare("word_vectors", (len(vocabulary), embedding_dim), np.float16)
        self.declare("theta", (len(self.names) + 1,))

    def learn_words(self, train: QuestionAnswers, dev: QuestionAnswers, words: "AnswerWords", seed: int) -> None:
        self.assign(word_vectors=unit_vectors(words.vectors, self.word_vectors.shape))
        # positive at first: otherwise no choice would ever be made
        initial = np.append(np.ones(len(self.names)), -1.0)
        choices = self.choices(train)
        self.assign(theta=learn(choices, train.labels, initial, self.cost / train.n_pairs, self.turns))

    def features(self, question_answers: QuestionAnswers) -> np.ndarray:
        return scores(self.choices(question_answers), self.theta)[:, None]  # [P, 1]

    def choices(self, question_answers: QuestionAnswers) -> AlignmentChoices:
        """The possible alignments of the words of all questions."""
        corpus = AlignedCorpus.of(question_answers, self.overlap, self.word_vectors.astype(np.float32))
        senses = needed_wordnet().senses(corpus.table.words) if "wordnet" in self.groups else None
        found, pair_of, n_pairs = [], [], 0
        for question, pairs in zip(question_answers.questions, corpus.questions(), strict=True):
            described = self._described(question, corpus, pairs, senses)  # [C, words, choices, F]
            candidate, word = np.nonzero(described.any((2, 3)))  # words with a choice
            found.append(described[candidate, word])
            pair_of.append(n_pairs + candidate)
            n_pairs += len(described)
        return AlignmentChoices(np.concatenate(found), np.concatenate(pair_of), n_pairs)

    def _described(
        self, question: Question, corpus: AlignedCorpus, pairs: QuestionPairs, senses: WordSenses | None
    ) -> np.ndarray:
        """The choices of every word of one question, of its interrogative, and of no word at all (the length)."""
        n, (n_candidates, _) = len(pairs.asked), pairs.answers.shape
        described = np.zeros((n_candidates, n + 2, MAX_CHOICES, len(self.names)), np.float32)
        self._describe_words(described, corpus, pairs, senses)
        if "type" in self.groups:
            _put(described[:, n], self._columns("type"), _answer_types(question, corpus, pairs))
        if "length" in self.groups:
            lengths = np.array([len(candidate.words) for candidate in question.candidates])
            described[:, n + 1, 0, self._columns("length")] = np.log1p(lengths)[:, None] / 4
        return described

    def _describe_words(
        self, described: np.ndarray, corpus: AlignedCorpus, pairs: QuestionPairs, senses: WordSenses | None
    ) -> None:
        stop = corpus.is_stop[pairs.asked][:, None, None]
        lexical = np.stack([pairs.same & ~stop, pairs.same & stop, pairs.same_stem & ~pairs.same & ~stop])
        content_cosine = np.maximum(pairs.similarity - UNRELATED, 0) * ~stop * ~pairs.same
        parts = {"lexical": lexical, "vectors": content_cosine[None]}
        if senses is not None:
            parts["wordnet"] = _relations(senses, pairs) & ~stop & ~pairs.same
        relations = [parts[group] for group in ("lexical", "wordnet") if group in parts]
        order = 10 * np.concatenate(relations).sum(0) + content_cosine  # [n, C, T]
        best = np.argsort(-order, 2, kind="stable")[:, :, :MAX_CHOICES]  # [n, C, choices]
        weight = np.maximum(corpus.idf[pairs.asked], 1e-3)
        weight = (weight / max(weight.sum(), 1e-12))[:, None, None]
        for group, values in parts.items():
            if group in self.groups:
                taken = np.take_along_axis(values, best[None], 3) * weight  # [F, n, C, choices]
                target = described[:, : len(pairs.asked), : best.shape[2]]
                target[..., self._columns(group)] = taken.transpose(2, 1, 3, 0)

    def _columns(self, group: str) -> list[int]:
        return [self.names.index(name) for name in GROUPS[group]]


def _put(described: np.ndarray, columns: list[int], types: np.ndarray) -> None:
    """One choice for each type that a candidate has a word of: [C, choices, F] from [C, types]."""
    for choice, column in enumerate(columns):
        described[:, choice, column] = types[:, choice]


def _relations(senses: WordSenses, pairs: QuestionPairs) -> np.ndarray:
    """WordNet's five relations for every word of the question and of the candidates, [5, n, C, T]."""
    different, place = np.unique(pairs.answers, return_inverse=True)
    asked = WordSenses(*(matrix[pairs.asked] for matrix in senses))
    answers = WordSenses(*(matrix[np.maximum(different, 0)] for matrix in senses))
    products = (
        asked.meant @ answers.meant.T,
        asked.opposite @ answers.meant.T,
        asked.meant @ answers.above.T,
        asked.above @ answers.meant.T,
        asked.derived @ answers.meant.T,
    )
    found = np.stack([(product.toarray() > 0) & (different != NO_WORD) for product in products])  # [5, n, different]
    return found[:, :, place.reshape(pairs.answers.shape)]


def _answer_types(question: Question, corpus: AlignedCorpus, pairs: QuestionPairs) -> np.ndarray:
    """Whether each candidate has a new word of the type that the question asks for, or of another type."""
    wanted = _wanted([word.lower() for word in question.words])
    lengths = np.array([len(candidate.words) for candidate in question.candidates])
    of_words = [_look(word, place) for one in question.candidates for place, word in enumerate(one.words)]
    looks = padded_candidates(np.array(of_words, bool).reshape(-1, 3), lengths, False)  # [C, T, 3]
    new = np.logical_not(np.any(pairs.same, axis=0))[..., None]  # [C, T, 1]
    year, number, name = (looks & new).any(1).T  # [C]
    right = (wanted == "when") & year, (wanted == "how many") & number, (wanted in ("who", "where")) & name
    others = (wanted not in ("when", "how many")) & number, (wanted not in ("who", "where")) & name
    return np.stack([*right, *others], 1)


def _wanted(words: Sequence[str]) -> str:
    joined = " ".join(words)
    if "when" in words or "what year" in joined or "what date" in joined or "what day" in joined:
        return "when"
    if any(f"how {much}" in joined for much in ("many", "much", "old", "long", "tall", "big", "far", "large", "high")):
        return "how many"
    if "who" in words or "whom" in words or "whose" in words or "what is the name" in joined:
        return "who"
    places = ("where", "what city", "what country", "what state", "which country", "which city")
    return "where" if any(place in joined for place in places) else "what"


def _look(word: str, place: int) -> tuple[bool, bool, bool]:
    """Year or month, number, name: by digits and capitals alone."""
    digits = any(map(str.isdigit, word))
    year = (word.isdigit() and len(word) == 4) or word in MONTHS
    return year, digits, place > 0 and word[:1].isupper()
