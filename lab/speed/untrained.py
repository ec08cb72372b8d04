"""The rankers that need no fit: their constants, from WikiQA's and QASent's training questions, and how well they rank.

`WEIGHTS` and `SHIFT` of `models/answers/minilm.py`, `SCALE` and `SHIFT` of `models/answers/bm25.py` and
`UNTRAINED_JOINT` of `answers/fitting.py` are these values, rounded; a test compares them with the file. Needs the
extra `minilm`.

Weights minimise a listwise loss on 500 and 250 questions, in their own lists and among candidates of other questions,
near weights that are plausible anywhere (`PLAUSIBLE`). The joint model is fitted to questions with and without an
answer: own lists, and the 50 best that BM25 finds among all sentences of the part.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from varitext.answers.fitted import NO_FREQUENCIES
from varitext.answers.index import CandidateIndex
from varitext.answers.joint import JointModel
from varitext.answers.training_data import mixed_lists
from varitext.corpora import load_questions
from varitext.corpora.question_answers import (
    Candidate,
    Question,
    QuestionAnswers,
    canonical_order,
    choose_questions,
    sentence_words,
)
from varitext.evaluation.ranking import ranking_record
from varitext.models.answers.bm25 import bm25_share
from varitext.models.answers.features.carried import PLAUSIBLE
from varitext.models.answers.minilm import SIMILARITIES, WEIGHTS, General
from varitext.models.answers.scorer import listwise_weights
from varitext.text import Vocabulary

TRAINING = (("wikiqa", "train", 500), ("qasent", "train-all", 250))
CALIBRATION = (("wikiqa", "train", 600), ("qasent", "train", 94))
SIMILAR = 4.0  # the prior weight of whole and by_word
STRENGTH = 0.075
HELD = ("year_missing", "negation")  # too rare in these corpora to be learned, but obviously plausible
FOUND = 50


def measure(quick: bool) -> dict[str, Any]:
    weights = general_weights(20 if quick else 1)
    return constants(weights, 20 if quick else 1) | {"map": dev_maps(weights)}


def general_weights(part: int) -> np.ndarray:
    """Of the columns of `WEIGHTS`, before they are scaled to log odds; from 1/part of the questions."""
    lists = []
    for corpus, name, n in TRAINING:
        chosen = draw(load_questions(corpus, name), n // part, answerable=True)
        lists += [chosen, replace(chosen, questions=mixed_lists(chosen, 0))]
    columns = np.concatenate([general_columns_of(one) for one in lists])
    labels, ends = np.concatenate([one.labels for one in lists]), np.cumsum([one.n_questions for one in lists])
    groups = np.concatenate([one.groups + begin for one, begin in zip(lists, [0, *ends[:-1]], strict=True)])
    prior = dict.fromkeys(SIMILARITIES[:2], SIMILAR) | PLAUSIBLE
    strength = np.array([1e4 if name in HELD else STRENGTH for name in WEIGHTS])
    return listwise_weights(columns, labels, groups, np.array([prior.get(name, 0.0) for name in WEIGHTS]), strength)


def constants(weights: np.ndarray, part: int) -> dict[str, Any]:
    """From scores to log odds by logistic regression, and from these to probabilities by the joint model."""
    parts = [load_questions(corpus, name) for corpus, name, _ in CALIBRATION]
    own = [draw(one, n // part) for one, (_, _, n) in zip(parts, CALIBRATION, strict=True)]
    indexes = [index_of(one) for one in parts]
    searched = [search_lists(index, one) for index, one in zip(indexes, own, strict=True)]
    every = replace(own[0], questions=tuple(question for one in (*own, *searched) for question in one.questions))
    shares = [bm25_share(one, NO_FREQUENCIES) for one in own]
    for index, one in zip(indexes, searched, strict=True):
        shares += [
            bm25_share(replace(one, questions=(question,)), index.overlap(question.text)) for question in one.questions
        ]
    found: dict[str, Any] = {"n_questions": every.n_questions}
    for name, score in (("minilm", general_columns_of(every) @ weights), ("bm25", np.concatenate(shares))):
        regression = LogisticRegression(C=np.inf).fit(score[:, None], every.labels)
        scale, shift = float(regression.coef_[0, 0]), float(regression.intercept_[0])
        joint = JointModel.fit(scale * score + shift, every.labels, every.groups)
        kept = ("parameters", "n_questions", "n_without_answer", "typical_length")
        found[name] = {"scale": scale, "shift": shift, "joint": {one: getattr(joint, one) for one in kept}}
    return found | {"weights": dict(zip(WEIGHTS, (found["minilm"]["scale"] * weights).tolist(), strict=True))}


def dev_maps(weights: np.ndarray) -> dict[str, dict[str, float]]:
    """Of dev questions, which no weight was fitted to: own lists, and the first hit among all sentences of the part."""
    found: dict[str, dict[str, float]] = {}
    for corpus in ("wikiqa", "qasent"):
        dev = canonical_order(load_questions(corpus, "dev")).question_answers
        columns = general_columns_of(dev)
        scores = {
            "whole": columns[:, 0],
            "whole and by_word": columns[:, :2].sum(1),
            "minilm": columns @ weights,
            "bm25": bm25_share(dev, NO_FREQUENCIES),
        }
        found[corpus] = {name: ranking_record(one, dev.labels, dev.groups).map for name, one in scores.items()}
    return found


def general_columns_of(question_answers: QuestionAnswers) -> np.ndarray:
    return General(Vocabulary(())).features(question_answers)


def draw(question_answers: QuestionAnswers, n: int, answerable: bool = False) -> QuestionAnswers:
    """n questions at random, of those with a right and a wrong answer if they must be `answerable`."""
    ordered = canonical_order(question_answers).question_answers
    fit = [(one.has_right and one.has_wrong) or not answerable for one in ordered.questions]
    drawn = np.random.default_rng(0).permutation(np.flatnonzero(fit))[:n]
    return choose_questions(ordered, np.isin(np.arange(ordered.n_questions), drawn))


def index_of(part: QuestionAnswers) -> CandidateIndex:
    return CandidateIndex(list(dict.fromkeys(one.text for question in part.questions for one in question.candidates)))


def search_lists(index: CandidateIndex, asked: QuestionAnswers) -> QuestionAnswers:
    """The questions with the candidates that BM25 finds in the index; those of other questions count as wrong."""
    return replace(asked, questions=tuple(_searched(question, index) for question in asked.questions))


def _searched(question: Question, index: CandidateIndex) -> Question:
    right = {one.text for one in question.candidates if one.label}
    found = [index[place].text for place in index.search(question.text, FOUND).tolist()]
    listed = (Candidate(str(place), sentence_words(text), text, int(text in right)) for place, text in enumerate(found))
    return question._replace(id=f"search {question.id}", candidates=tuple(listed) or question.candidates)
