"""What a user can set of an answer ranker: the records that fitting reads, and the options of `varitext fit`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from varitext.records import DATA, MODEL, TRAINING, Option, record_from_dict, setting
from varitext.training.options import DEVICE, EPOCHS, LATENT_DIM, LEARNING_RATE, SEED, THREADS, TIME_LIMIT

if TYPE_CHECKING:  # the command line reads this record before anything heavy is loaded
    from varitext.models.answers.vocabulary import VectorSource

PREDICTION_SAMPLES = 20  # the paper's
DEFAULT_MODEL = "compare"


@dataclass(frozen=True)
class AnswerRecipe:
    """How the networks are built and trained, for those who want to change that."""

    hidden_dim: int | None = None  # this and the next two: as the model has it
    layers: int | None = None
    dropout: float | None = None
    weight_decay: float = 0.0
    averaging: float = 0.97
    most_wrong: int | None = 10
    kl_warm_up: float = setting(
        0.2, Option("Share of the steps in which the weight of the KL rises to 1.", TRAINING, "SHARE")
    )
    free_bits: float = setting(
        0.0, Option("KL per pair that costs nothing, against posterior collapse.", TRAINING, "NATS")
    )
    patience: int = 5
    smoothing: int = 3
    samples: int | None = None  # as the model has it
    folds: int = 3
    dev_share: float = 0.1
    initialization: str | None = None  # of lstm, lstm_attention and nasm: a name of `recurrent.py::INITIALIZATIONS`


@dataclass(frozen=True)
class AnswerSettings:
    """The arguments of `AnswerRanker`. None: the model decides, by the size of the corpus."""

    model: str = DEFAULT_MODEL
    latent_dim: int | None = setting(None, LATENT_DIM)
    ensemble: int = setting(
        1,
        Option("Networks to train, each from a seed of its own; their mean ranks.", MODEL, "N", minimum=1, maximum=100),
    )
    counts: bool = setting(False, Option("Combine the model with counts of shared words (paper: +Cnt).", MODEL))
    position: bool = setting(
        False, Option("Combine it with the sentence's place in its document and its length.", MODEL)
    )
    features: Sequence[str] | str | None = setting(
        None,
        Option(
            "What overlap, word_alignment or lclr reads, else all; `overlap` adds counts to deep_cnn.",
            MODEL,
            "NAME,NAME",
        ),
    )
    questions: str | None = None
    longest_answer: int | None = setting(
        None, Option("Leave out training candidates with more words.", DATA, "N", minimum=1)
    )
    vectors: "VectorSource" = setting(
        None, Option("word2vec or GloVe file, or `random`; else those of the data folder.", DATA, "FILE")
    )
    embedding_dim: int | None = setting(
        None, Option("Reduce word vectors to this width; else they keep theirs.", MODEL, "N", minimum=1)
    )
    unseen_words: int = setting(
        50_000, Option("Keep at most this many words that only the vectors have.", DATA, "N", minimum=0)
    )
    tune_word_vectors: bool = setting(
        False, Option("Learn the vectors of all words, not only of new ones.", TRAINING, name="tune_vectors")
    )
    epochs: int | None = setting(None, EPOCHS)
    batch_size: int = setting(128, Option("Pairs per update.", TRAINING, "N", minimum=1))
    learning_rate: float = setting(3e-3, LEARNING_RATE)
    prediction_samples: int = PREDICTION_SAMPLES
    time_limit: float | None = setting(None, TIME_LIMIT)
    threads: int | None = setting(None, THREADS)
    device: str = setting("cpu", DEVICE)
    seed: int = setting(0, SEED)
    recipe: AnswerRecipe = AnswerRecipe()

    def flat(self) -> dict[str, Any]:
        """Every setting by its name, those of the recipe among the others: so the model folder keeps them."""
        own = {name: value for name, value in vars(self).items() if name != "recipe"}
        return own | vars(self.recipe)

    @classmethod
    def from_flat(cls, values: Mapping[str, Any]) -> "AnswerSettings":
        """Settings by name, those of the recipe among the others; absent ones take their defaults."""
        names = {field.name for field in fields(AnswerRecipe)}
        recipe = record_from_dict(AnswerRecipe, {name: value for name, value in values.items() if name in names})
        own = {name: value for name, value in values.items() if name not in names}
        return record_from_dict(cls, own | {"recipe": recipe})
