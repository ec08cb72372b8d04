"""How good a model is, each measure in its own file."""

from varitext.evaluation.perplexity import PerplexityRecord, document_bounds, perplexity_record

__all__ = ["PerplexityRecord", "document_bounds", "perplexity_record"]
