"""What a user can set of a document model: the record that fitting reads, and the options of `varitext fit`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from varitext.records import MODEL, TRAINING, WHERE_IT_RUNS, Option, setting
from varitext.training.options import DEVICE, EPOCHS, LATENT_DIM, LEARNING_RATE, SEED, THREADS, TIME_LIMIT

if TYPE_CHECKING:  # the command line reads this record before anything heavy is loaded
    from collections.abc import Mapping, Sequence

    from varitext.corpora.document_input import Tokeniser
    from varitext.text import TokenRules, VocabularyRules


@dataclass(frozen=True)
class DocumentSettings:
    """The arguments of `DocumentModel`. None: the preset decides, by the size of the corpus."""

    model: str | None = None  # nvdm_dcm where it applies, else nvdm: `default_model.py`
    latent_dim: int = setting(50, LATENT_DIM)
    preset: str = setting("recommended", Option("By name; nvdm also has paper.", MODEL, "NAME"))
    epochs: int | None = setting(None, EPOCHS)
    batch_size: int | None = setting(
        None, Option("Documents per update; else the model decides.", TRAINING, "N", minimum=1)
    )
    learning_rate: float | None = setting(None, LEARNING_RATE)
    samples: int | None = None
    updates: str | None = setting(
        None,
        Option(
            "Encoder and decoder learn jointly, or alternating as in the paper.",
            TRAINING,
            choices=("joint", "alternating"),
        ),
    )
    estimator: str | None = setting(
        None, Option("How gradients of a discrete h are estimated, for example nvil.", TRAINING, "NAME")
    )
    softmax: str | None = None
    time_limit: float | None = setting(None, TIME_LIMIT)
    dev_share: float = 0.05
    token_rules: "TokenRules | None" = None
    vocabulary_rules: "VocabularyRules | None" = None
    tokeniser: "Tokeniser | None" = None
    text_column: str | None = None
    processes: int = setting(1, Option("Processes that count words.", WHERE_IT_RUNS, "N", minimum=1, maximum=256))
    fractional_counts: bool = False
    threads: int | None = setting(None, THREADS)
    device: str = setting("cpu", DEVICE)
    seed: int = setting(0, SEED)
    n_topics: int | None = setting(
        None, Option("Topics; else as many as held-out documents ask for.", MODEL, "N", minimum=1, name="topics")
    )
    seed_topics: "Mapping[str, Sequence[str]] | None" = setting(
        None, Option('Words that some topics start from: a file {"space": ["orbit", "nasa"]}.', MODEL, "FILE")
    )
    transform_to: str = "vectors"
    verbose: bool = False
