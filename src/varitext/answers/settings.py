"""The arguments of `AnswerRanker`, declared once: its constructor, the options of `varitext fit` and the model folder.

The command line reads this module for its help, so it imports neither torch nor a model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from numbers import Integral
from typing import TYPE_CHECKING, Any

from varitext.errors import InputError
from varitext.records import DATA, MODEL, TRAINING, Option, record_from_dict, setting
from varitext.training.settings import DEVICE, EPOCHS, LATENT_DIM, LEARNING_RATE, SEED, THREADS, TIME_LIMIT

if TYPE_CHECKING:
    from varitext.models.answers.model import AnswerModel
    from varitext.models.answers.vocabulary import VectorSource

DEFAULT_MODEL = "compare"
PREDICTION_SAMPLES = 20  # as in the paper
MAX_SAMPLES = 10_000


@dataclass(frozen=True)
class AnswerRecipe:
    """How the networks are built and trained.

    Parameters
    ----------
    hidden_dim, layers, dropout : int, int and float, default=None
        Size of the hidden layers, number of LSTM layers, dropout. None: the model's own defaults.
    weight_decay : float, default=0.0
    averaging : float, default=0.97
        Decay of the moving average of the weights.
    most_wrong : int or None, default=10
        Wrong answers per question and epoch, drawn again in each epoch. None: all of them.
    kl_warm_up : float, default=0.2
        Share of the steps in which the weight of the KL rises to 1.
    free_bits : float, default=0.0
        KL per pair, in nats, that costs nothing.
    patience, smoothing : int, default=None and 3
        Early stopping: epochs without improvement (None: the model's own), and the number of epochs whose dev MAP is
        averaged.
    samples : int, default=None
        Samples of h per training example. None: the model's own default.
    folds : int, default=3
        Folds of the cross-validation that `counts` and `position` need.
    dev_share : float, default=0.1
        Share of the questions that is held out if no dev questions are given.
    dev_seed : int, default=None
        Seed that chooses them. None: the ranker's `seed`.
    initialization : {"pytorch", "forget_bias", "word_sums"}, default=None
        Initial weights of lstm, lstm_attention and nasm. None: the model's own.
    """

    hidden_dim: int | None = None
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
    patience: int | None = None
    smoothing: int = 3
    samples: int | None = None
    folds: int = 3
    dev_share: float = 0.1
    dev_seed: int | None = None
    initialization: str | None = None


@dataclass(eq=False, repr=False)
class AnswerSettings:
    """`AnswerRanker` inherits its constructor from here and documents the arguments."""

    model: "str | type[AnswerModel]" = DEFAULT_MODEL
    latent_dim: int | None = setting(None, LATENT_DIM)
    _: KW_ONLY
    network: "Mapping[str, Any] | None" = None
    ensemble: int = setting(
        1,
        Option("Number of networks, trained from different seeds and averaged.", MODEL, "N", minimum=1, maximum=100),
    )
    counts: bool = setting(False, Option("Combine the model with counts of shared words (paper: +Cnt).", MODEL))
    position: bool = setting(
        False, Option("Combine the model with the candidate's position in its document and its length.", MODEL)
    )
    features: Sequence[str] | str | None = setting(
        None,
        Option(
            "Features of overlap, word_alignment, lclr or compare (default: all); `overlap` adds counts to deep_cnn.",
            MODEL,
            "NAME,NAME",
        ),
    )
    questions: str | None = None
    longest_answer: int | None = setting(
        None, Option("Leave out training candidates with more words.", DATA, "N", minimum=1)
    )
    vectors: "VectorSource" = setting(
        None,
        Option(
            "word2vec or GloVe file, `minilm` or `random` (default: GloVe of the data folder or cache, else minilm).",
            DATA,
            "FILE",
        ),
    )
    embedding_dim: int | None = setting(
        None, Option("Reduce word vectors to this width. Unchanged if omitted.", MODEL, "N", minimum=1)
    )
    unseen_words: int = setting(
        50_000,
        Option("Keep at most N words that have a vector but are not in the training part.", DATA, "N", minimum=0),
    )
    tune_word_vectors: bool = setting(
        False, Option("Train the vectors of all words, not only of words without one.", TRAINING, name="tune_vectors")
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


def check_samples(samples: int) -> None:
    if not (isinstance(samples, Integral) and 1 <= samples <= MAX_SAMPLES):
        raise InputError(f"samples must be a whole number from 1 to {MAX_SAMPLES:,}, not {samples!r}")


def flat_settings(settings: AnswerSettings) -> dict[str, Any]:
    """Every setting by name, those of the recipe among the others, as the model folder stores them."""
    own = {field.name: getattr(settings, field.name) for field in fields(AnswerSettings) if field.name != "recipe"}
    return own | vars(settings.recipe)


def settings_from_flat(values: Mapping[str, Any]) -> AnswerSettings:
    """The inverse of `flat_settings`; absent settings take their defaults."""
    names = {field.name for field in fields(AnswerRecipe)}
    recipe = record_from_dict(AnswerRecipe, {name: value for name, value in values.items() if name in names})
    own = {name: value for name, value in values.items() if name not in names}
    return record_from_dict(AnswerSettings, own | {"recipe": recipe})
