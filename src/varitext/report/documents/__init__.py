"""The report of a document model."""
