"""The report of a model of answers."""
