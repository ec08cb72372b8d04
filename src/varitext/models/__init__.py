"""One model per file. To add one, write its file and name it here."""

from varitext.models.fdarn import FDARN
from varitext.models.nvdm import NVDM
from varitext.models.nvdm_categorical import NVDMCategorical
from varitext.models.nvdm_softmax import NVDMSoftmax
from varitext.models.sbn import SBN

MODELS = {
    "nvdm": NVDM,
    "nvdm_categorical": NVDMCategorical,
    "nvdm_softmax": NVDMSoftmax,
    "sbn": SBN,
    "fdarn": FDARN,
}
