"""Which segmenter the rules for words need, decided once for a corpus."""

import importlib.util
import warnings
from collections.abc import Iterable
from dataclasses import replace

from varitext.text.segmenting import INSTALL, PACKAGES, language_without_spaces
from varitext.text.tokens import TokenRules


def settled(rules: TokenRules, texts: Iterable[str]) -> TokenRules:
    """The rules with `auto` decided, by what the first texts look like and what is installed."""
    needed = language_without_spaces(texts)
    is_installed = needed is not None and importlib.util.find_spec(PACKAGES[needed]) is not None
    segmenter = rules.segmenter
    if segmenter == "auto":
        segmenter = needed if needed and is_installed else "none"
    if needed and segmenter == "none":
        remedy = f"TokenRules(segmenter={needed!r}), --segmenter {needed}" if is_installed else INSTALL
        warnings.warn(
            f"the text looks {needed.title()}, which has no spaces between words: whole clauses are taken for words; "
            f"to cut it into words: {remedy}",
            UserWarning,
            stacklevel=5,
        )
    return replace(rules, segmenter=segmenter)
