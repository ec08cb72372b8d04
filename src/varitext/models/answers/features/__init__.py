"""Lexical features of a question and a candidate: words shared, BM25, alignments, WordNet."""
