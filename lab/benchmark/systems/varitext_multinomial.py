"""Ourselves with the paper's likelihood: `--model nvdm`."""

from lab.benchmark.systems.varitext_default import VaritextDefault


class VaritextMultinomial(VaritextDefault):
    name = "nvdm"


SYSTEM = VaritextMultinomial
