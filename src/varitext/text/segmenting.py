"""Scripts that put no spaces between words: which text is in one, and who cuts it.

The segmenters are the extra `segment`: rjieba for Chinese, Janome for Japanese, PyThaiNLP for Thai. They are imported
when the first text needs them.
"""

import re
from collections.abc import Callable, Iterable
from functools import cache
from itertools import islice

from varitext.errors import InputError

HAN = "\u3005\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
KANA = "\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"
THAI = "\u0e00-\u0e7f"
RUNS = {
    "chinese": re.compile(f"[{HAN}]+"),
    "japanese": re.compile(f"[{HAN}{KANA}]+"),
    "thai": re.compile(f"[{THAI}]+"),
}
_KANA = re.compile(f"[{KANA}]")
PACKAGES = {"chinese": "rjieba", "japanese": "janome", "thai": "pythainlp"}
SEGMENTERS = ("none", "auto", *PACKAGES)
INSTALL = "pip install 'varitext[segment]'"
SAMPLE_DOCUMENTS, SAMPLE_CHARACTERS = 200, 1000  # from which the script is told
MIN_SHARE = 0.2  # of all letters, from which on a script is what the text is in
KANA_SHARE = 0.1  # Japanese has far more, Chinese none


def segment(text: str, language: str) -> str:
    """The text with spaces between the words of that language's script; the rest stays as it is."""
    return RUNS[language].sub(lambda run: f" {' '.join(_cutter(language)(run[0]))} ", text)


@cache
def _cutter(language: str) -> Callable[[str], Iterable[str]]:
    try:
        match language:
            case "chinese":
                import rjieba

                return rjieba.cut
            case "japanese":
                from janome.tokenizer import Tokenizer

                tokenizer = Tokenizer(wakati=True)
                return lambda run: tokenizer.tokenize(run)
        from pythainlp.tokenize import word_tokenize

        return lambda run: word_tokenize(run, keep_whitespace=False)
    except ImportError:
        raise InputError(f"cutting {language.title()} text into words needs {PACKAGES[language]}: {INSTALL}") from None


def language_without_spaces(texts: Iterable[str]) -> str | None:
    """chinese, japanese or thai, if the first documents are mostly in its script."""
    sample = " ".join(text[:SAMPLE_CHARACTERS] for text in islice(texts, SAMPLE_DOCUMENTS))
    letters = sum(character.isalpha() for character in sample) or 1
    of_script = {language: sum(map(len, run.findall(sample))) for language, run in RUNS.items()}
    if of_script["thai"] >= MIN_SHARE * letters:
        return "thai"
    if of_script["japanese"] < MIN_SHARE * letters:
        return None
    return "japanese" if len(_KANA.findall(sample)) >= KANA_SHARE * of_script["japanese"] else "chinese"
