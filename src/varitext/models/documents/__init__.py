"""One model per file. To add one, write its file and name it here."""

from varitext.models.documents.docnade import DocNADE
from varitext.models.documents.fdarn import FDARN
from varitext.models.documents.lda import LDA
from varitext.models.documents.nvdm import NVDM
from varitext.models.documents.nvdm_categorical import NVDMCategorical
from varitext.models.documents.nvdm_softmax import NVDMSoftmax
from varitext.models.documents.rsm import RSM
from varitext.models.documents.sbn import SBN
from varitext.models.documents.swv import SWV

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
