"""Stop words: scikit-learn's for English and parts of contractions, 57 other languages from the extra `languages`, or a
file of words."""

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
# a copy of `sklearn.feature_extraction.text.ENGLISH_STOP_WORDS`, whose import takes longer than a ranking
ENGLISH = """
a about above across after afterwards again against all almost alone along already also although always am among
amongst amoungst amount an and another any anyhow anyone anything anyway anywhere are around as at back be became
because become becomes becoming been before beforehand behind being below beside besides between beyond bill both
bottom but by call can cannot cant co con could couldnt cry de describe detail do done down due during each eg
eight either eleven else elsewhere empty enough etc even ever every everyone everything everywhere except few
fifteen fifty fill find fire first five for former formerly forty found four from front full further get give go
had has hasnt have he hence her here hereafter hereby herein hereupon hers herself him himself his how however
hundred i ie if in inc indeed interest into is it its itself keep last latter latterly least less ltd made many may
me meanwhile might mill mine more moreover most mostly move much must my myself name namely neither never
nevertheless next nine no nobody none noone nor not nothing now nowhere of off often on once one only onto or other
others otherwise our ours ourselves out over own part per perhaps please put rather re same see seem seemed seeming
seems serious several she should show side since sincere six sixty so some somehow someone something sometime
sometimes somewhere still such system take ten than that the their them themselves then thence there thereafter
thereby therefore therein thereupon these they thick thin third this those though three through throughout thru
thus to together too top toward towards twelve twenty two un under until up upon us very via was we well were what
whatever when whence whenever where whereafter whereas whereby wherein whereupon wherever whether which while
whither who whoever whole whom whose why will with within without would yet you your yours yourself yourselves
"""
# what is left of "don't" and "I'll", since counted words end at apostrophes
CONTRACTIONS = """
ain aren couldn didn doesn don hadn hasn haven isn ll mustn needn shan shouldn ve wasn weren wouldn
"""


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
        return frozenset((ENGLISH + CONTRACTIONS).split())
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
