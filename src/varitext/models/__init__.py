"""One model per file. To add one, write its file and name it here."""

from varitext.models.docnade import DocNADE
from varitext.models.fdarn import FDARN
from varitext.models.lda import LDA
from varitext.models.nvdm import NVDM
from varitext.models.nvdm_categorical import NVDMCategorical
from varitext.models.nvdm_softmax import NVDMSoftmax
from varitext.models.rsm import RSM
from varitext.models.sbn import SBN
from varitext.models.swv import SWV

MODELS = {
    "nvdm": NVDM,
    "nvdm_categorical": NVDMCategorical,
    "nvdm_softmax": NVDMSoftmax,
    "sbn": SBN,
    "fdarn": FDARN,
    "docnade": DocNADE,
    "rsm": RSM,
    "lda": LDA,
    "swv": SWV,
}
