"""Lexical features of a question and a candidate: shared words, BM25, alignment, WordNet."""
