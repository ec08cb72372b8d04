"""The models of answers by name. To add one, write its file and name it here."""

from varitext.models.answer_network import AnswerNetwork
from varitext.models.lstm import LSTM
from varitext.models.lstm_attention import LSTMAttention
from varitext.models.nasm import NASM

ANSWER_MODELS: dict[str, type[AnswerNetwork]] = {"lstm": LSTM, "lstm_attention": LSTMAttention, "nasm": NASM}
