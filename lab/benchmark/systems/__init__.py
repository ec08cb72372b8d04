"""The systems that are compared, one file each, imported only when needed."""

import importlib
import importlib.metadata
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from lab.child import is_available

if TYPE_CHECKING:
    import numpy as np
    from scipy.sparse import csr_matrix


class Setting(NamedTuple):
    latent_dim: int = 50
    threads: int = 2
    seed: int = 0
    quick: bool = False  # hardly any training, to show that it runs
    share: float = 1.0  # of the tool's passes or iterations, for its learning curve

    def rounds(self, whole: int) -> int:
        return max(1, min(2, whole)) if self.quick else max(1, round(self.share * whole))


class System(Protocol):
    """What is measured. Only `fit` and `transform` are timed."""

    def __init__(self, setting: Setting): ...

    def read(self, counts: "csr_matrix") -> Any:
        """Documents in the tool's own format."""

    def fit(self, documents: Any) -> None: ...

    def transform(self, documents: Any) -> "np.ndarray":
        """One vector per document, [D, K], by the tool's own call and settings."""

    def bounds(self, counts: "csr_matrix") -> "np.ndarray":
        """A lower bound on log p(X) of each document, [D], in nats."""


class Known(NamedTuple):
    """What is known about a system without importing it."""

    title: str
    home: str  # module of this folder and class
    package: str  # as imported
    distribution: str  # as installed
    figure: str  # how the bound of a held-out document is computed
    settings: str
    install: str = "pip install --group peers"


LDA_BOUND = "variational bound, topics fixed, run to convergence"
SAMPLED_BOUND = "bound by its own posterior, 20 draws"
SYSTEMS = {
    "varitext": Known(
        *("**varitext**", "varitext_nvdm:VaritextDefault", "varitext", "varitext"),
        *(SAMPLED_BOUND, "default: NVDM with a DCM likelihood"),
    ),
    "varitext-nvdm": Known(
        *("**varitext**", "varitext_nvdm:VaritextMultinomial", "varitext", "varitext"),
        *(SAMPLED_BOUND, "NVDM, multinomial"),
    ),
    "tomotopy": Known(
        "tomotopy LDA", "tomotopy_lda:TomotopyLDA", "tomotopy", "tomotopy", LDA_BOUND, "1,000 iterations"
    ),
    "scikit-learn": Known(
        "scikit-learn LDA", "sklearn_lda:SklearnLDA", "sklearn", "scikit-learn", LDA_BOUND, "batch, 20 passes"
    ),
    "gensim": Known("gensim LDA", "gensim_lda:GensimLDA", "gensim", "gensim", LDA_BOUND, "LdaMulticore, 20 passes"),
    "pyro": Known(
        *("Pyro ProdLDA", "pyro_prodlda:PyroProdLDA", "pyro", "pyro-ppl"),
        *(SAMPLED_BOUND, "settings of its tutorial, 50 epochs"),
    ),
    "ctm": Known(
        *("contextualized-topic-models ProdLDA", "ctm_prodlda:CTMProdLDA"),
        *("contextualized_topic_models", "contextualized-topic-models", SAMPLED_BOUND),
        "default settings, 100 epochs, inputs scaled to unit length",
        "make peers",
    ),
    "plain": Known(
        "plain PyTorch NVDM", "plain_nvdm:PlainNVDM", "torch", "torch", SAMPLED_BOUND, "dense counts, 60 epochs"
    ),
}


def is_installed(name: str) -> bool:
    return is_available(SYSTEMS[name].package)


def version_of(name: str) -> str:
    return importlib.metadata.version(SYSTEMS[name].distribution)


def system_class(name: str) -> type[System]:
    module, _, kind = SYSTEMS[name].home.partition(":")
    found: type[System] = getattr(importlib.import_module(f"lab.benchmark.systems.{module}"), kind)
    return found
