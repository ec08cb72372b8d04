"""Which model learns documents if none is asked for: NVDM, with words that come in bursts wherever that is possible."""

from varitext.documents.settings import DocumentSettings
from varitext.models.documents import DOCUMENT_MODELS

BURSTS, PLAIN = "nvdm_dcm", "nvdm"
MAX_DIMENSIONS = 100  # the curvature of log p(h | X) is K x K for every document: at 200 a fit takes seven times NVDM's
MAX_WORDS = 30_000  # above, NVDM samples its softmax; the DCM likelihood needs every word


def model_for(settings: DocumentSettings, words: int = 0) -> str:
    """The model that the settings ask for, or else the default for a vocabulary of that size."""
    if settings.model is not None:
        return settings.model
    has_no_bursts = (
        settings.preset not in DOCUMENT_MODELS[BURSTS].presets  # the paper's have none
        or settings.fractional_counts  # a burst is a whole number of words
        or settings.softmax is not None
        or settings.latent_dim > MAX_DIMENSIONS
        or words > MAX_WORDS
    )
    return PLAIN if has_no_bursts else BURSTS
