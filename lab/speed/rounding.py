"""Effect of rounding on rankings, which determines the tolerance of ties; cost of MKL's reproducible kernels.

Rankers are fitted on WikiQA and predict its dev part twice, the second time with the last bits of every matrix product
changed on purpose (`tests/jitter.py`). For MKL: processor seconds of the same fit under each setting, and in how many
batches of 2 to 64 rows the first row of a product differs from the product of that row alone.
"""

import importlib.util
import os
import statistics
import subprocess
import sys
from typing import Any

import numpy as np

from lab.import_graph import ROOT
from varitext.answers.ranker import AnswerRanker
from varitext.corpora import load_questions
from varitext.corpora.question_answers import QuestionAnswers, canonical_order
from varitext.evaluation.columns import TOLERANCE

MODELS = ("compare", "nasm", "lstm_attention", "bigram_cnn", "overlap")

KERNELS = ("", "AUTO,STRICT", "AVX2,STRICT", "COMPATIBLE")  # values of MKL_CBWR
TIMES = 3
EPOCHS = 4
FIT = """
import time
import torch
from varitext.documents.model import DocumentModel
from varitext.corpora import load_documents
torch.manual_seed(0)
rows, weights = torch.randn(64, 2000), torch.randn(2000, 500)
alone = rows[:1] @ weights
other = sum(not torch.equal((rows[:size] @ weights)[:1], alone) for size in range(2, 65))
documents = load_documents("20newsgroups-nvdm", "train")
model = DocumentModel(latent_dim=50, epochs=4, threads=1)
started = time.process_time()
model.fit(documents)
print(time.process_time() - started, other)
"""


def measure(quick: bool) -> dict[str, Any]:
    epochs, kernels = 1 if quick else EPOCHS, cost_of_kernels(1 if quick else TIMES)
    train, dev = load_questions("wikiqa", "train"), load_questions("wikiqa", "dev")
    rows = []
    for model in MODELS[-1:] if quick else MODELS:
        joined = model not in ("compare", "overlap")  # these have counts inside
        ranker = AnswerRanker(model, epochs=epochs, threads=1, counts=joined, position=joined).fit(train, dev)
        for variant in (False, True) if joined else (False,):
            one = ranker.combined(variant, variant) if joined else ranker
            rows.append({"model": model, "counts and position": variant} | moves(one, dev))
    return {"tolerance": TOLERANCE, "epochs": epochs, "rows": rows, "kernels": kernels}


def cost_of_kernels(times: int) -> dict[str, dict[str, float]]:
    """By value of MKL_CBWR: CPU time over that without it, and batches in which a row has other bits."""
    measured: dict[str, list[list[str]]] = {}
    for _ in range(times):
        for kernel in KERNELS:
            environment = os.environ | ({"MKL_CBWR": kernel} if kernel else {})
            done = subprocess.run(
                [sys.executable, "-c", FIT], env=environment, capture_output=True, check=True, text=True
            )
            measured.setdefault(kernel or "unset", []).append(done.stdout.split())
    seconds = {kernel: statistics.median(float(run[0]) for run in runs) for kernel, runs in measured.items()}
    return {
        kernel: {"time": seconds[kernel] / seconds["unset"], "batches_with_other_bits": int(runs[0][1])}
        for kernel, runs in measured.items()
    }


def moves(ranker: AnswerRanker, dev: QuestionAnswers) -> dict[str, Any]:
    dev = canonical_order(dev).question_answers
    plain = before_ties(ranker, dev)
    with jitter():
        moved = before_ties(ranker, dev)
    probability = plain.mean(0)
    gaps = np.concatenate([relative_gaps(probability[dev.groups == question]) for question in range(dev.n_questions)])
    return {
        "largest_move": float((np.abs(plain - moved) / np.maximum(plain, moved)).max()),
        "neighbours": len(gaps),
        "equal": int((gaps == 0).sum()),
        "nearer_than_tolerance": int(((gaps > 0) & (gaps <= TOLERANCE)).sum()),
        "nearer_than_ten_tolerances": int(((gaps > 0) & (gaps <= 10 * TOLERANCE)).sum()),
    }


def jitter() -> Any:
    specification = importlib.util.spec_from_file_location("jitter", ROOT / "tests" / "jitter.py")
    assert specification and specification.loader
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module.Jitter()


def before_ties(ranker: AnswerRanker, dev: QuestionAnswers) -> np.ndarray:
    """What `sample_proba` starts from: the samples of both stages, before ties are merged."""
    found = ranker.fitted_.first_stage.predict(dev, ranker.prediction_samples, ranker.seed)
    joined = (
        ranker.fitted_.combination.join(found, ranker.fitted_.overlap.features(dev))
        if ranker.fitted_.combination
        else found
    )
    return joined.sampled


def relative_gaps(probability: np.ndarray) -> np.ndarray:
    falling = -np.sort(-probability)
    return (falling[:-1] - falling[1:]) / falling[:-1]
