"""Questions whose right answers follow a rule, so that tests know what is to be learned."""

import inspect

import numpy as np
import torch

from varitext.batches.pairs import PairBatch, PairBatches
from varitext.corpora.question_answers import Candidate, Question, QuestionAnswers
from varitext.models.answers import model_class
from varitext.text import Vocabulary

KINDS = {"who": "king queen author actor", "where": "city river island lake", "when": "year month century day"}
FILLERS = ["the", "of", "a", "was", "and", "near", "old"]
WORDS = Vocabulary((*KINDS, *" ".join(KINDS.values()).split(), *FILLERS))


def made_up(questions: int, seed: int, candidates: int = 5) -> QuestionAnswers:
    """The question's word decides what kind of word a right answer has."""
    generator = np.random.default_rng(seed)
    made = []
    for number in range(questions):
        asked = str(generator.choice(list(KINDS)))
        right = int(generator.integers(candidates))
        others = [kind for kind in KINDS if kind != asked]
        answers = []
        for place in range(candidates):
            kind = asked if place == right else str(generator.choice(others))
            words = list(map(str, generator.choice(FILLERS, int(generator.integers(1, 7)))))
            words.insert(int(generator.integers(len(words) + 1)), str(generator.choice(KINDS[kind].split())))
            answers.append(Candidate(f"{number}-{place}", tuple(words), " ".join(words), int(place == right)))
        asked_words = (asked, *map(str, generator.choice(FILLERS, int(generator.integers(0, 3)))))
        made.append(Question(str(number), asked_words, " ".join(asked_words), tuple(answers)))
    return QuestionAnswers("made up", "train", (), tuple(made))


def some_pairs(questions: int = 4, seed: int = 0) -> PairBatch:
    return PairBatches(made_up(questions, seed), WORDS).batch(range(questions))


def built(name: str, **sizes) -> torch.nn.Module:
    """With those of the sizes that the network has."""
    known = inspect.signature(model_class(name)).parameters
    return model_class(name)(len(WORDS), **{size: value for size, value in sizes.items() if size in known})
