"""What a user can set of an answer ranker: the records that fitting reads, and the options of `varitext fit`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from varitext.records import record_from_dict, setting

if TYPE_CHECKING:  # the command line reads this record before anything heavy is loaded
    from varitext.models.answers.vocabulary import VectorSource

PREDICTION_SAMPLES = 20  # the paper's


@dataclass(frozen=True)
class AnswerRecipe:
    """How the networks are built and trained, for those who want to change that."""

    hidden_dim: int = 50
    layers: int = 3
    dropout: float = 0.4
    weight_decay: float = 0.0
    averaging: float = 0.97
    most_wrong: int | None = 10
    kl_warm_up: float = setting(
        0.2, "Share of the steps in which the weight of the KL rises to 1.", "training", "SHARE"
    )
    free_bits: float = setting(0.0, "KL per pair that costs nothing; keeps h alive.", "training", "NATS")
    patience: int = 5
    smoothing: int = 3
    samples: int = 1
    folds: int = 3
    dev_share: float = 0.1


@dataclass(frozen=True)
class AnswerSettings:
    """The arguments of `AnswerRanker`. None: the model decides, by the size of the corpus."""

    model: str = "nasm"
    latent_dim: int = setting(50, "Latent dimensions.", "model", "N", minimum=1)
    counts: bool = setting(False, "Join the model with counts of shared words (paper: +Cnt).", "model")
    position: bool = setting(False, "Join the sentence's place in its document and its length.", "model")
    features: Sequence[str] | str | None = setting(
        None,
        "What overlap, word_alignment or lclr looks at, else all it has; `overlap` for deep_cnn.",
        "model",
        "NAME,NAME",
    )
    questions: str = "answerable"
    longest_answer: int | None = setting(None, "Leave out training candidates of more words.", "data", "N", minimum=1)
    vectors: "VectorSource" = setting(
        None, "word2vec or GloVe file, or `random`; else those of the data folder.", "data", "FILE"
    )
    embedding_dim: int | None = setting(
        None, "Numbers per word vector; wider ones are reduced.", "model", "N", minimum=1
    )
    unseen_words: int = setting(50_000, "Words that only the vectors have, kept at most.", "data", "N", minimum=0)
    tune_word_vectors: bool = setting(False, "Learn the vectors of all words, not only of new ones.", "training")
    epochs: int | None = setting(None, "Passes over the training part.", "training", "N", minimum=1)
    batch_size: int = setting(128, "Pairs per update.", "training", "N", minimum=1)
    learning_rate: float = setting(3e-3, "The highest of the run.", "training", "RATE")
    prediction_samples: int = PREDICTION_SAMPLES
    time_limit: float | None = setting(None, "For example 60s, 10m or 2h; the schedule adapts.", "training", "TIME")
    threads: int | None = setting(None, "CPU threads; all cores if left out.", "where it runs", "N", 1, 1024)
    device: str = setting("cpu", "cpu or cuda.", "where it runs", "NAME")
    seed: int = setting(
        0, "Same seed, same bits, on one machine and thread count.", "training", "N", minimum=0, maximum=2**32 - 1
    )
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
