"""One model per file. To add one, write its file and name it here."""

from varitext.models.nvdm import NVDM

MODELS = {"nvdm": NVDM}
