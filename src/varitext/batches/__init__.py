"""Counts, tokens and pairs in batches: padding, masks, bucketing."""
