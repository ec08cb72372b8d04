"""Faults on purpose, by kind: what `benchmarks/faults.py` measures."""
