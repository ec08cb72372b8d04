"""Mutants that no test can tell from the code, each with the reason: they count neither as killed nor as survived."""

from mutants.operators import Mutant

# (file, function, before, after): why
REASONS: dict[tuple[str, str, str, str], str] = {
    ("latent/bound.py", "Bound.kl", "-1", "1"): "of two axes, 1 is the last",
}


def reason(mutant: Mutant) -> str | None:
    return REASONS.get((mutant.path, mutant.function, mutant.before, mutant.after))
