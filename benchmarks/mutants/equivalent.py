"""Mutants that no test can tell from the code, each with the reason: they count neither as killed nor as survived."""

import re
from typing import get_args

from mutants.operators import Mutant
from varitext.runtime.randomness import Purpose

# (file, function, before, after): why
REASONS: dict[tuple[str, str, str, str], str] = {
    ("latent/bound.py", "Bound.kl", "-1", "1"): "of two axes, the last is 1",
    ("latent/local_expectation.py", "LocalExpectation.forward", "-1", "1"): "of two axes, the last is 1",
    ("models/documents/nvdm_softmax.py", "NVDMSoftmax.document_vectors", "-1", "1"): "of two axes, the last is 1",
    ("latent/discrete.py", "Categoricals._expected", "0.0", "1.0"): "it is multiplied by a probability of 0",
    ("latent/estimators.py", "every_value", "6", "7"): "the wording of a message",
    ("latent/estimators.py", "every_value", "size > 10 ** 6", "size >= 10 ** 6"): "the wording of a message",
    ("evaluation/topics.py", "rank_topics", "'stable'", "'stableXX'"): "numpy reads the first letter",
    ("models/answers/cross_encoder.py", "CrossEncoder.__init__", "1", "2"): "word vectors that it does not have",
    ("models/documents/axes.py", "readable_axes", "skewness < 0", "skewness <= 0"): "it is never exactly zero",
    ("models/documents/bounds.py", "document_bounds", "1", "2"): "how many documents are evaluated at once",
    ("training/trainer.py", "Trainer._round", "True", "False"): "the next batch is found by the number of steps",
    (
        "training/trainer.py",
        "Trainer._rescue",
        "self.settings.learning_rate * scale",
        "self.settings.learning_rate / scale",
    ): "the wording of a message",
    ("latent/estimators.py", "_expectation", "0.0", "1.0"): "it is multiplied by a probability of 0",
    ("latent/estimators.py", "every_value", "10", "11"): "the wording of a message",
    ("layers/lstm.py", "chunk_bounds", "waited > CALL", "waited >= CALL"): "where chunks are cut changes no value",
    ("layers/lstm.py", "chunk_bounds", "0", "1"): "where chunks are cut changes no value",
    ("layers/lstm.py", "_chunks", "max(1, one) / ROUND", "max(1, one) * ROUND"): "more padding changes no value",
    ("layers/lstm.py", "_chunks", "1", "2"): "more padding changes no value",
    ("layers/lstm.py", "run_in_parallel", "0", "1"): "all jobs are on one device",
    ("layers/lstm.py", "_InParallel.backward", "False", "True"): "a gradient of a gradient is never asked for",
    ("layers/lstm.py", "_in_threads", "2", "3"): "all jobs have words of the same width",
    ("layers/lstm.py", "_in_threads", "True", "False"): "which job begins first changes no value",
    (
        "layers/tree_softmax.py",
        "_balanced_codes",
        "place == 2 * parent + 1",
        "place != 2 * parent + 1",
    ): "left and right are exchanged at every node: the same tree",
    ("layers/tree_softmax.py", "_huffman_codes", "0", "1"): "every place is filled before it is read",
    ("layers/tree_softmax.py", "_huffman_codes", "2 * size - 1", "2 * size + 1"): "places that are never read",
    ("layers/tree_softmax.py", "_huffman_codes", "2", "3"): "places that are never read",
    ("layers/tree_softmax.py", "_huffman_codes", "1", "2"): "the root, the last place, has no parent to be read",
    ("layers/tree_softmax.py", "WordTree._grow", "torch.tensor(nodes, dtype=torch.int32)", "torch.tensor(nodes)"): (
        "it is copied into a buffer of that type"
    ),
    ("layers/tree_softmax.py", "WordTree._grow", "torch.tensor(turns, dtype=torch.int8)", "torch.tensor(turns)"): (
        "it is copied into a buffer of that type"
    ),
    ("layers/words.py", "Dropout.forward", "values.numel() // 4", "values.numel() * 4"): "bits that are not used",
    ("layers/words.py", "Dropout.forward", "1", "2"): "bits that are not used",
    ("models/answers/features/alignment.py", "padded_candidates", "0", "1"): "at least 1 is taken anyway",
    (
        "models/documents/annealing.py",
        "ReplicatedSoftmax.summed_words",
        "length > scores.shape[1]",
        "length >= scores.shape[1]",
    ): "words named or counted are the same draws: a matter of speed",
    (
        "models/documents/lda.py",
        "_rows",
        "scipy.sparse.csr_matrix(entries, shape=(len(batch), batch.vocabulary_size))",
        "scipy.sparse.csr_matrix(entries)",
    ): "inference reads rows and word numbers, not how many columns there are",
    ("models/documents/lda_bound.py", "_converged", "break", "pass"): "rounds without a document in them",
    (
        "evaluation/significance.py",
        "_portions",
        "LARGEST_DRAW // size",
        "LARGEST_DRAW * size",
    ): "how many are drawn at once: a matter of memory",
    ("latent/autoregressive.py", "AutoregressiveBernoullis.sample", "-1", "1"): "units that are not drawn yet are zero",
    ("models/documents/rsm.py", "RSM.evaluate", "512", "513"): "how many documents are evaluated at once",
    ("models/documents/binary.py", "BernoulliNetwork.refine", "-1", "1"): "of two axes, the last is 1",
    (
        "layers/urns.py",
        "Urns.gradient",
        "self.rising.slope * factorials.signs",
        "self.rising.slope / factorials.signs",
    ): "times or over a sign",
    ("models/documents/axes.py", "readable_axes", "break", "pass"): "rounds in which nothing moves any more",
}
STABLE = "the order among equal numbers changes no value"
WORDING = {
    ("evaluation/classification.py", "'training documents'"),
    ("evaluation/classification.py", "'test documents'"),
    ("evaluation/classification.py", "'training vectors'"),
    ("evaluation/classification.py", "'test vectors'"),
    ("evaluation/windows.py", "'words'"),
    ("evaluation/windows.py", "'none'"),
    ("models/answers/likeness.py", "'likeness'"),
}
SORTING = {  # functions in which `True` that may be turned without effect is that of a stable sort
    ("layers/counts.py", "_SparseTimesDense.backward"),
    ("layers/lstm.py", "_chunks"),
    ("layers/grouped_counts.py", "WordGroups.of"),
    ("layers/rising.py", "_falling_order"),
}


def reason(mutant: Mutant) -> str | None:
    """Also for a sort that need not be stable, a sign, and the purpose of a stream of random numbers."""
    unstable = "stable=True" in mutant.before and mutant.after == mutant.before.replace(", stable=True", "")
    if unstable or ((mutant.path, mutant.function) in SORTING and (mutant.before, mutant.after) == ("True", "False")):
        return STABLE
    if re.search(r"np\.(where\(.*, -1\.0, 1\.0\)|sign\(.*\))$", mutant.before) and mutant.operator == "arithmetic":
        return "times or over a sign"
    if (mutant.path, mutant.before) in WORDING:
        return "the wording of a message"
    if mutant.operator == "string" and mutant.before[1:-1] in get_args(Purpose):
        return "mypy refuses the name"
    return REASONS.get((mutant.path, mutant.function, mutant.before, mutant.after))
