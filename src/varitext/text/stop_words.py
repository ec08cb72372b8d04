"""Stop words: English from scikit-learn, 57 other languages from the extra `languages`, or a file of words."""

from collections.abc import Set
from pathlib import Path

from varitext.errors import InputError
from varitext.files import read_text

NONE, AUTO = "none", "auto"
CODES = {
    "afrikaans": "af", "arabic": "ar", "armenian": "hy", "basque": "eu", "bengali": "bn", "breton": "br",
    "bulgarian": "bg", "catalan": "ca", "chinese": "zh", "croatian": "hr", "czech": "cs", "danish": "da",
    "dutch": "nl", "english": "en", "esperanto": "eo", "estonian": "et", "finnish": "fi", "french": "fr",
    "galician": "gl", "german": "de", "greek": "el", "gujarati": "gu", "hausa": "ha", "hebrew": "he", "hindi": "hi",
    "hungarian": "hu", "indonesian": "id", "irish": "ga", "italian": "it", "japanese": "ja", "korean": "ko",
    "kurdish": "ku", "latin": "la", "latvian": "lv", "lithuanian": "lt", "malay": "ms", "marathi": "mr",
    "norwegian": "no", "persian": "fa", "polish": "pl", "portuguese": "pt", "romanian": "ro", "russian": "ru",
    "slovak": "sk", "slovenian": "sl", "somali": "so", "sotho": "st", "spanish": "es", "swahili": "sw",
    "swedish": "sv", "tagalog": "tl", "thai": "th", "turkish": "tr", "ukrainian": "uk", "urdu": "ur",
    "vietnamese": "vi", "yoruba": "yo", "zulu": "zu",
}  # fmt: skip


def is_language(name: str) -> bool:
    """Whether there is a list for a language, by its name or ISO code, or 'none'."""
    return name.lower() in CODES or name.lower() in CODES.values() or name in (NONE, AUTO)


def stop_words_of(names: str) -> Set[str]:
    """The stop words of one language, or of several, separated by commas."""
    return frozenset().union(*(_of_language(name.strip().lower()) for name in names.split(",")))


def check_languages(names: str) -> None:
    for name in names.split(","):
        if not is_language(name.strip()):
            raise InputError(f"stop_words: unknown language {name!r}. Languages: {', '.join((*CODES, NONE))}")


def _of_language(name: str) -> Set[str]:
    if name == NONE:
        return frozenset()
    if (code := CODES.get(name, name)) in ("en", AUTO):  # which a fit on texts has replaced by what it detects
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        return frozenset(ENGLISH_STOP_WORDS)
    try:
        import stopwordsiso
    except ImportError:
        raise InputError(f"stop words for {name} need stopwordsiso: pip install 'varitext[languages]'") from None
    return frozenset(stopwordsiso.stopwords(code))


def read_stop_words(path: Path) -> Set[str]:
    """One word per line, converted to lower case."""
    if not path.is_file():
        raise InputError(f"{str(path)!r} is neither a file nor a language. Languages: {', '.join((*CODES, NONE))}")
    words = frozenset(line.strip().lower() for line in read_text(path).splitlines() if line.strip())
    if not words:
        raise InputError(f"{path} has no words")
    return words
