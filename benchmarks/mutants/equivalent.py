"""Mutants that no test can tell from the code, each with the reason: they count neither as killed nor as survived."""

from mutants.operators import Mutant

# (file, function, before, after): why
REASONS: dict[tuple[str, str, str, str], str] = {
    ("latent/bound.py", "Bound.kl", "-1", "1"): "of two axes, the last is 1",
    ("latent/estimators.py", "_expectation", "0.0", "1.0"): "it is multiplied by a probability of 0",
    ("latent/estimators.py", "every_value", "10", "11"): "the wording of a message",
    ("layers/lstm.py", "chunk_bounds", "waited > CALL", "waited >= CALL"): "where chunks are cut changes no value",
    ("layers/lstm.py", "chunk_bounds", "0", "1"): "where chunks are cut changes no value",
    (
        "layers/tree_softmax.py",
        "_balanced_codes",
        "place == 2 * parent + 1",
        "place != 2 * parent + 1",
    ): "left and right are exchanged at every node: the same tree",
    ("training/trainer.py", "Trainer.train", "'training noise'", "'training noiseXX'"): "mypy refuses the name",
}


def reason(mutant: Mutant) -> str | None:
    return REASONS.get((mutant.path, mutant.function, mutant.before, mutant.after))
