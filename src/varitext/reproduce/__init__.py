"""The paper's tables and figures, one file each: settings, the paper's values, and our measurements.

`varitext reproduce NAME` runs one. Modules are imported when they are needed: names and titles are known without torch.
"""

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from varitext.errors import InputError

if TYPE_CHECKING:
    from varitext.reproduce.engine import Experiment

ABOUT = {  # as typed
    "table1a": "held-out perplexity of every document model (Table 1a)",
    "table1b": "nearest words of NVDM and docNADE (Table 1b)",
    "table2": "latent dimensions of NVDM beside the paper's topics (Table 2)",
    "tsne": "maps of the test documents, NVDM beside SWV (t-SNE figure)",
    "table3": "questions and pairs of QASent and WikiQA (Table 3)",
    "table4": "every system of Table 4 on QASent and WikiQA",
    "map-by-samples": "MAP of NASM by the number of samples (Figure 3)",
    "attention": "attention of LSTM + Att and NASM (Figure 4)",
    "hinton": "log std of p(h | q) by question word (Figure 5)",
    "question-types": "MAP by the word a question starts with",
    "overfitting": "epochs at which LSTM + Att and NASM overfit (section 6)",
    "gradients": "gradients of LSTM + Att and NASM in training (section 6)",
    "stochastic-attention": "NASM's attention under samples of h (sections 4 and 6)",
    "kl-term": "the KL of NVDM as a regulariser, variance of gradients (sections 2, 3, 6)",
    "complexity": "cost of NASM and NVDM (section 6, appendix C)",
}
EXPERIMENTS = {name: f"varitext.reproduce.{name.replace('-', '_')}" for name in ABOUT}


def experiment_named(name: str, known: Mapping[str, str] = EXPERIMENTS) -> "Experiment":
    if name not in known:
        raise InputError(f"Unknown experiment {name!r}. Experiments: {', '.join(known)}.")
    experiment: Experiment = importlib.import_module(known[name]).EXPERIMENT
    return experiment
