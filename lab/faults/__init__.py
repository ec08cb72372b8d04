"""Deliberate faults, one module per kind; `trying.py` runs them."""
