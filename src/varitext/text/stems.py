"""The stem of an English word, by a few endings: enough to see that forms and formed are one word."""

ENDINGS = (("ies", "y"), ("sses", "ss"), ("ing", ""), ("ied", "y"), ("ed", ""), ("ly", ""), ("es", ""), ("s", ""))
SHORTEST = 3  # letters that must be left


def stem(word: str) -> str:
    """Of a word in lower case; what has no letters stays as it is."""
    if word.endswith(("ss", "us", "is")) or not word.isalpha():
        return word
    for ending, instead in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= SHORTEST:
            word = word[: len(word) - len(ending)] + instead
            break
    if len(word) > SHORTEST and word[-1] == word[-2] and word[-1] not in "lsz":
        word = word[:-1]  # planned, plan
    return word.removesuffix("e") if len(word) > SHORTEST else word  # making, make
