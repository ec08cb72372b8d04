"""Experiments beyond the paper, on the engine of `varitext.reproduce`."""
