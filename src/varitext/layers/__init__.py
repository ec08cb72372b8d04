"""Layers that models share, and their kernels."""
