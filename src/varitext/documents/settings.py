"""What a user can set of a document model: the record that fitting reads, and the options of `varitext fit`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from varitext.records import setting

if TYPE_CHECKING:  # the command line reads this record before anything heavy is loaded
    from varitext.text import TokenRules, VocabularyRules


@dataclass(frozen=True)
class DocumentSettings:
    """The arguments of `DocumentModel`. None: the preset decides, by the size of the corpus."""

    model: str = "nvdm"
    latent_dim: int = setting(50, "Latent dimensions.", "model", "N", minimum=1)
    preset: str = setting("recommended", "Settings by name: see `varitext fit --help`.", "model", "NAME")
    epochs: int | None = setting(None, "Passes over the training part.", "training", "N", minimum=1)
    batch_size: int | None = setting(None, "Documents per update.", "training", "N", minimum=1)
    learning_rate: float | None = setting(None, "The highest of the run.", "training", "RATE")
    samples: int | None = None
    updates: str | None = setting(None, "joint, or alternating as in the paper.", "training", "NAME")
    estimator: str | None = setting(
        None, "Discrete h: how gradients are estimated, for example nvil.", "training", "NAME"
    )
    softmax: str | None = None
    time_limit: float | None = setting(None, "For example 60s, 10m or 2h; the schedule adapts.", "training", "TIME")
    dev_share: float = 0.05
    token_rules: "TokenRules | None" = None
    vocabulary_rules: "VocabularyRules | None" = None
    processes: int = setting(1, "Processes that count words.", "where it runs", "N", minimum=1, maximum=256)
    fractional_counts: bool = False
    threads: int | None = setting(None, "CPU threads; all cores if left out.", "where it runs", "N", 1, 1024)
    device: str = setting("cpu", "cpu or cuda.", "where it runs", "NAME")
    seed: int = setting(
        0, "Same seed, same bits, on one machine and thread count.", "training", "N", minimum=0, maximum=2**32 - 1
    )
