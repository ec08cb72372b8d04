"""Rankers in the frameworks where people already work: LangChain, LlamaIndex, Haystack, and the package `rerankers`.

Each file imports its framework, so it is imported by name: `from varitext.integrations.langchain import ...`.
"""
