"""Questions whose right answers follow a rule, so that tests know what is to be learned."""

import inspect

import numpy as np
import torch

from varitext.batches.pairs import PairBatch, PairBatches
from varitext.corpora.question_answers import Candidate, Question, QuestionAnswers
from varitext.corpora.word_vectors import WordVectors
from varitext.models.answers import model_class
from varitext.runtime.randomness import seeded
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


# Questions by hand


def question(asked: str, *answers: str, positions: list[int | None] | None = None) -> Question:
    """The first answer is right."""
    places = positions or [None] * len(answers)
    candidates = [
        Candidate(str(n), tuple(text.split()), text, int(n == 0), place)
        for n, (text, place) in enumerate(zip(answers, places, strict=True))
    ]
    return Question("1", tuple(asked.split()), asked, tuple(candidates))


def labelled(number: str, asked: str, *answers: tuple[str, int]) -> Question:
    """Answers with their labels, each at its place in a document."""
    candidates = tuple(
        Candidate(f"{number}-{place}", tuple(text.split()), text, label, place)
        for place, (text, label) in enumerate(answers)
    )
    return Question(number, tuple(asked.split()), asked, candidates)


def corpus(*questions: Question) -> QuestionAnswers:
    return QuestionAnswers("by hand", "train", (), questions)


NAMED_KINDS = KINDS | {"when": "1914 1945 month day"}
_NAMED_WORDS = tuple(sorted({*FILLERS, *NAMED_KINDS, *" ".join(NAMED_KINDS.values()).split()}))
VECTORS = WordVectors(_NAMED_WORDS, np.random.default_rng(0).normal(size=(len(_NAMED_WORDS), 6)).astype(np.float32))


def named_answers(questions: int, seed: int) -> QuestionAnswers:
    """The right answer has the question's name, which no other question has, and a word of the kind asked for."""
    generator = np.random.default_rng(seed)
    made = []
    for number in range(questions):
        asked, right = str(generator.choice(list(NAMED_KINDS))), int(generator.integers(4))
        answers = []
        for place in range(4):
            kind = asked if place == right else str(generator.choice(list(NAMED_KINDS)))
            words = [*map(str, generator.choice(FILLERS, int(generator.integers(1, 5))))]
            words.append(str(generator.choice(NAMED_KINDS[kind].split())))
            if place == right or generator.random() < 0.3:
                words.insert(0, f"Name{seed}x{number}")
            answers.append((" ".join(words), int(place == right)))
        made.append(labelled(str(number), f"{asked} was name{seed}x{number} ?", *answers))
    return corpus(*made)


# Networks


def random_weights(model: torch.nn.Module) -> torch.nn.Module:
    """In double precision, in prediction, every weight and bias of a size that shows."""
    with seeded(1):
        model = model.double()
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.4)
    return model.eval().requires_grad_(False)


def logits_of(model: torch.nn.Module, batch: PairBatch) -> torch.Tensor:
    return model.logits(torch.zeros(2, len(batch), 0), model.encode(batch))
