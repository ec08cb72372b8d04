"""Timings and single measurements; each module has `measure(quick)`, the content of `results/NAME.json`."""
