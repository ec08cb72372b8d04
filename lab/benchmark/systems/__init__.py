"""The systems that are measured, each one file; modules are imported when they are asked for."""

import importlib
import importlib.metadata
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from lab.child import is_available
from varitext.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from scipy.sparse import csr_matrix


class Setting(NamedTuple):
    """The same for every system of a run."""

    latent_dim: int = 50
    threads: int = 2
    seed: int = 0
    quick: bool = False  # hardly any training: shows that it runs, not what it measures


class System(Protocol):
    """What is measured. Only `fit` and `transform` are on the clock."""

    def __init__(self, setting: Setting): ...

    def read(self, counts: "csr_matrix") -> Any:
        """Documents as the tool wants them."""

    def fit(self, documents: Any) -> None: ...

    def transform(self, documents: Any) -> "np.ndarray":
        """One vector per document, [D, K], by the tool's own call and settings."""

    def bounds(self, counts: "csr_matrix") -> "np.ndarray":
        """A lower bound on log p(X) of each document, [D], in nats."""


@runtime_checkable
class FastSystem(System, Protocol):
    """One that has a faster way to vectors, too."""

    def transform_fast(self, documents: Any) -> "np.ndarray": ...

    def transform_here(self, documents: Any, refine: bool) -> "np.ndarray":
        """Either way in the calling thread, which is the only one that torch can count and profile."""


@runtime_checkable
class TextSystem(Protocol):
    """One that reads texts and finds topics, and has no probability of words: nothing to make a perplexity of."""

    def __init__(self, setting: Setting): ...

    def read_texts(self, texts: list[str]) -> Any: ...

    def fit(self, documents: Any) -> None: ...

    def transform(self, documents: Any) -> "np.ndarray": ...


class Known(NamedTuple):
    """What is said about a system without importing it."""

    title: str
    module: str  # in this folder
    package: str  # as it is imported
    distribution: str  # as it is installed
    kind: str  # ours, neural, lda or texts
    figure: str  # how the bound of a held-out document is had; empty if it has none
    settings: str
    install: str = "pip install 'varitext[peers]'"


LDA_FIGURE = "variational bound, topics fixed, run to convergence"
DRAWN_FIGURE = "bound by its own posterior, 20 draws"
NO_DEPENDENCIES = "pip install 'varitext[peers]' && pip install --no-deps contextualized-topic-models"
TEXTS = "texts"  # the kind of a TextSystem
SYSTEMS = {
    "varitext": Known(
        "**varitext**",
        "varitext_default",
        "varitext",
        "varitext",
        "ours",
        DRAWN_FIGURE,
        "default: NVDM with a DCM likelihood",
    ),
    "varitext-nvdm": Known(
        "**varitext**", "varitext_multinomial", "varitext", "varitext", "ours", DRAWN_FIGURE, "NVDM, multinomial"
    ),
    "tomotopy": Known("tomotopy LDA", "tomotopy_lda", "tomotopy", "tomotopy", "lda", LDA_FIGURE, "1,000 iterations"),
    "scikit-learn": Known(
        "scikit-learn LDA", "sklearn_lda", "sklearn", "scikit-learn", "lda", LDA_FIGURE, "batch, 20 passes"
    ),
    "gensim": Known("gensim LDA", "gensim_lda", "gensim", "gensim", "lda", LDA_FIGURE, "LdaMulticore, 20 passes"),
    "pyro": Known(
        "Pyro ProdLDA", "pyro_prodlda", "pyro", "pyro-ppl", "neural", DRAWN_FIGURE, "its tutorial's: 50 epochs"
    ),
    "ctm": Known(
        "contextualized-topic-models ProdLDA",
        "ctm_prodlda",
        "contextualized_topic_models",
        "contextualized-topic-models",
        "neural",
        DRAWN_FIGURE,
        "inputs of unit length, as its embeddings have; its defaults: 100 epochs",
        NO_DEPENDENCIES,
    ),
    "bertopic": Known(
        "BERTopic",
        "bertopic_texts",
        "bertopic",
        "bertopic",
        TEXTS,
        "",
        "its defaults, topics merged to K",
        "make peers",
    ),
    "plain": Known("plain PyTorch NVDM", "plain_nvdm", "torch", "torch", "neural", DRAWN_FIGURE, "dense, 60 epochs"),
}


def known_system(name: str) -> Known:
    if name not in SYSTEMS:
        raise InputError(f"no system is called {name!r}; there are: {', '.join(SYSTEMS)}")
    return SYSTEMS[name]


def is_installed(name: str) -> bool:
    return is_available(known_system(name).package)


def version_of(name: str) -> str:
    return importlib.metadata.version(known_system(name).distribution)


def system_class(name: str) -> type[System] | type[TextSystem]:
    module = importlib.import_module(f"lab.benchmark.systems.{known_system(name).module}")
    found: type[System] | type[TextSystem] = module.SYSTEM
    return found
