"""The parameters of `DocumentModel`, declared once, and the default model.

Nothing heavy is imported here: the command line reads its options of `varitext fit` from this record.
"""

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

from varitext.models.documents import DOCUMENT_MODELS
from varitext.records import DATA, MODEL, TRAINING, WHERE_IT_RUNS, Option, setting
from varitext.training.settings import (
    DEVICE,
    EPOCHS,
    KL_SCHEDULES,
    LATENT_DIM,
    LEARNING_RATE,
    SEED,
    THREADS,
    TIME_LIMIT,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from varitext.corpora.document_input import Tokeniser
    from varitext.models.documents.base import DocumentNetwork
    from varitext.text import TokenRules, VocabularyRules

DEFAULT_MODEL, FALLBACK_MODEL, VECTOR_MODEL = "nvdm_dcm", "nvdm", "nvdm_vectors"
MAX_DIMENSIONS = 100  # the curvature of log p(h | X) is K x K for every document: at 200 a fit takes seven times NVDM's
MAX_WORDS = 30_000  # above, NVDM samples its softmax; the DCM likelihood needs every word


@dataclass(eq=False, repr=False)
class DocumentSettings:
    """The settings of a document model: see `DocumentModel`, whose constructor this is."""

    model: "str | type[DocumentNetwork] | None" = None
    latent_dim: int = setting(50, LATENT_DIM)
    _: KW_ONLY
    preset: str = setting("recommended", Option("Named set of training settings; nvdm also has paper.", MODEL, "NAME"))
    network: "Mapping[str, Any] | None" = None
    epochs: int | None = setting(None, EPOCHS)
    batch_size: int | None = setting(
        None, Option("Documents per update. Chosen by the model if omitted.", TRAINING, "N", minimum=1)
    )
    learning_rate: float | None = setting(None, LEARNING_RATE)
    samples: int | None = setting(
        None, Option("Draws of h per document and update. Chosen by the model if omitted.", TRAINING, "N", minimum=1)
    )
    updates: str | None = setting(
        None,
        Option(
            "Update encoder and decoder jointly, or alternating as in the paper.",
            TRAINING,
            choices=("joint", "alternating"),
        ),
    )
    estimator: str | None = setting(
        None, Option("Gradient estimator, for example dreg; of a discrete h, for example nvil.", TRAINING, "NAME")
    )
    kl_schedule: str | None = setting(
        None,
        Option(
            "Weight of the KL: rises once (linear), in four cycles, or is always 1.", TRAINING, choices=KL_SCHEDULES
        ),
    )
    kl_warm_up: float | None = setting(
        None, Option("Share of the steps, or of each cycle, in which the weight of the KL rises.", TRAINING, "SHARE")
    )
    free_bits: float = setting(
        0.0, Option("KL per latent dimension that costs nothing, against posterior collapse.", TRAINING, "NATS")
    )
    softmax: str | None = None
    time_limit: float | None = setting(None, TIME_LIMIT)
    dev_share: float = 0.05
    dev_seed: int | None = None
    token_rules: "TokenRules | None" = None
    vocabulary_rules: "VocabularyRules | None" = None
    tokeniser: "Tokeniser | None" = None
    text_column: str | None = None
    keep_boilerplate: bool = setting(
        False, Option("Keep quoted replies, signatures, addresses, and lines that many documents share.", DATA)
    )
    keep_duplicates: bool = setting(False, Option("Learn from copies of a document, too.", DATA))
    passages: int | None = setting(
        None, Option("Find topics of passages of about N words: for books and long reports.", DATA, "N", minimum=20)
    )
    processes: int | None = setting(
        None,
        Option(
            "Threads or processes that count words (default: all cores).", WHERE_IT_RUNS, "N", minimum=1, maximum=256
        ),
    )
    fractional_counts: bool = False
    threads: int | None = setting(None, THREADS)
    device: str = setting("cpu", DEVICE)
    seed: int = setting(0, SEED)
    n_topics: int | None = setting(
        None, Option("Number of topics. Chosen automatically if omitted.", MODEL, "N", minimum=1, name="topics")
    )
    seed_topics: "Mapping[str, Sequence[str]] | None" = setting(
        None, Option('JSON file of words that guide topics: {"space": ["orbit", "nasa"]}.', MODEL, "FILE")
    )
    min_topic_size: int | None = setting(
        None, Option("Smallest number of documents of a topic (default: no minimum).", MODEL, "N", minimum=1)
    )
    transform_to: str = "vectors"
    verbose: bool = False


def default_document_model(settings: DocumentSettings, words: int = 0, vectors: bool = False) -> str:
    """The default model for a vocabulary of this size and documents with or without sentence vectors."""
    if vectors:
        return VECTOR_MODEL
    dcm_does_not_apply = (
        settings.preset not in DOCUMENT_MODELS[DEFAULT_MODEL].presets
        or settings.fractional_counts  # its likelihood needs whole counts
        or settings.softmax is not None
        or settings.latent_dim > MAX_DIMENSIONS
        or words > MAX_WORDS
    )
    return FALLBACK_MODEL if dcm_does_not_apply else DEFAULT_MODEL
