"""A model that is not in the package, in about a hundred lines: what kind of answer does a question expect?

Questions x arrive as word sequences, their first answer's words y as counts. A latent h between the two stands for
what is being asked:

    prior       p(h | x)      an LSTM reads the question          (a learned conditional prior)
    posterior   q(h | x, y)   the same LSTM, and an MLP on the answer's counts
    likelihood  p(y | h)      a softmax over words, as in NVDM

The class below gives the four methods of the framework; the bound, the training loop and its checkpoints, early
stopping and rescue come from varitext. Run: python examples/sentence_model.py
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse
import torch
from torch import Tensor, nn

from varitext.batches.counts import CountBatch
from varitext.batches.pairs import FIRST_WORD
from varitext.batches.tokens import TokenBatch
from varitext.latent import DiagonalGaussian, elbo
from varitext.layers.counts import CountEncoder, multinomial_log_likelihood
from varitext.layers.dense import GaussianHead
from varitext.layers.lstm import SentenceLSTM
from varitext.layers.words import WordEmbedding
from varitext.training.settings import Score, StepLoss, TrainingSettings
from varitext.training.trainer import Trainer

TOPICS = {
    "who": "king queen author president actor born",
    "when": "year january century date until since",
    "where": "city river country north island capital",
    "how many": "million people number total percent hundred",
}
SUBJECTS = ["ruled", "wrote", "found", "built", "won", "crossed", "sold", "made", "saw", "left"]


class Pair(NamedTuple):
    question: TokenBatch
    answer: CountBatch


class Encoding(NamedTuple):
    question: Tensor  # [B, H]
    joint: Tensor  # [B, 2H]
    answer: CountBatch


class QuestionModel(nn.Module):
    def __init__(self, question_words: int, answer_words: int, hidden_dim: int = 32, latent_dim: int = 4):
        super().__init__()
        self.word_vectors = WordEmbedding(question_words, embedding_dim=16)
        self.read_words = SentenceLSTM(16, hidden_dim, layers=1, dropout=0.0)
        self.read_answer = CountEncoder(answer_words, hidden_dim, hidden_layers=1)
        self.prior_head = GaussianHead(hidden_dim, latent_dim)
        self.posterior_head = GaussianHead(2 * hidden_dim, latent_dim)
        self.decoder = nn.Linear(latent_dim, answer_words)

    def read_question(self, question: TokenBatch) -> Tensor:
        return self.read_words(question, self.word_vectors).last  # [B, H]

    def encode(self, pair: Pair) -> Encoding:
        question = self.read_question(pair.question)
        return Encoding(question, torch.cat([question, self.read_answer(pair.answer)], 1), pair.answer)

    def prior(self, encoding: Encoding) -> DiagonalGaussian:
        return self.prior_head(encoding.question)

    def posterior(self, encoding: Encoding) -> DiagonalGaussian:
        return self.posterior_head(encoding.joint)

    def log_likelihood(self, h: Tensor, encoding: Encoding) -> Tensor:
        return multinomial_log_likelihood(self.decoder(h), encoding.answer)


class QuestionTask:
    """Where batches come from, what their loss is, and how well held-out pairs are explained."""

    fingerprint = "made-up pairs"

    def __init__(self, questions: list[list[int]], answers: scipy.sparse.csr_matrix, settings: TrainingSettings):
        self.questions, self.answers, self.settings = questions, answers, settings
        self.held_out = len(questions) // 5
        self.steps_per_epoch = -(-(len(questions) - self.held_out) // settings.batch_size)

    def pairs(self, rows: np.ndarray) -> Pair:
        return Pair(TokenBatch.from_lists([self.questions[i] for i in rows]), CountBatch.from_rows(self.answers[rows]))

    def batches(self, epoch: int) -> Iterator[Pair]:
        order = np.random.default_rng((self.settings.seed, epoch)).permutation(len(self.questions) - self.held_out)
        for start in range(0, len(order), self.settings.batch_size):
            yield self.pairs(order[start : start + self.settings.batch_size] + self.held_out)

    def loss(self, model: QuestionModel, batch: Pair, kl_weight: float) -> StepLoss:
        bound = elbo(model, batch, self.settings.samples)
        loss = (kl_weight * bound.kl - bound.log_likelihood).mean()
        return StepLoss(loss, bound.elbo.mean(), bound.kl.mean())

    def score(self, model: QuestionModel) -> Score:
        bound = elbo(model, self.pairs(np.arange(self.held_out)), samples=20)
        value = -bound.elbo.mean().item()
        return Score(value, {"dev_loss": value, "dev_kl": bound.kl.mean().item()})


def made_up_pairs(number: int, seed: int) -> tuple[list[list[int]], scipy.sparse.csr_matrix, list[str]]:
    """Questions such as "who ruled", answers of six words of the matching kind with a little noise."""
    generator = np.random.default_rng(seed)
    kinds = list(TOPICS)
    question_words = sorted({word for kind in kinds for word in kind.split()} | set(SUBJECTS))
    answer_words = " ".join(TOPICS.values()).split()
    questions, answers = [], np.zeros((number, len(answer_words)), np.float32)
    for row in range(number):
        kind = kinds[generator.integers(len(kinds))]
        subject = SUBJECTS[generator.integers(len(SUBJECTS))]
        questions.append([FIRST_WORD + question_words.index(word) for word in (*kind.split(), subject)])
        for word in (*generator.choice(TOPICS[kind].split(), 5), answer_words[generator.integers(24)]):
            answers[row, answer_words.index(word)] += 1
    return questions, scipy.sparse.csr_matrix(answers), question_words


def main() -> None:
    questions, answers, question_words = made_up_pairs(2000, seed=0)
    settings = TrainingSettings(epochs=15, batch_size=64, learning_rate=5e-3)
    torch.manual_seed(0)
    model = QuestionModel(len(question_words), answers.shape[1])
    state = Trainer(model, QuestionTask(questions, answers, settings), settings).train()
    first, last = state.history[0]["dev_loss"], state.best
    print(f"held-out loss per answer: {first:.2f} nats before, {last:.2f} after {state.step} steps")
    asked = TokenBatch.from_lists([[FIRST_WORD + question_words.index(w) for w in ("where", "built")]])
    h = model.prior_head(model.read_question(asked)).mean
    likely = model.decoder(h)[0].topk(4).indices
    print("where built ... ->", " ".join(" ".join(TOPICS.values()).split()[i] for i in likely))


if __name__ == "__main__":
    main()
