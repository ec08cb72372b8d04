"""The models of answers by name. To add one, write its file and name it here."""

from varitext.models.answers.convolutional import BigramCNN, DeepCNN
from varitext.models.answers.lclr import LCLR
from varitext.models.answers.nasm import NASM
from varitext.models.answers.network import AnswerNetwork
from varitext.models.answers.overlap_regression import OverlapRegression
from varitext.models.answers.paragraph_vectors import ParagraphVectors
from varitext.models.answers.recurrent import LSTM, LSTMAttention
from varitext.models.answers.scorer import AnswerScorer
from varitext.models.answers.word_alignment import WordAlignment

NETWORKS: dict[str, type[AnswerNetwork]] = {
    "lstm": LSTM,
    "lstm_attention": LSTMAttention,
    "nasm": NASM,
    "bigram_cnn": BigramCNN,
    "deep_cnn": DeepCNN,
}
SCORERS: dict[str, type[AnswerScorer]] = {
    "overlap": OverlapRegression,
    "pv": ParagraphVectors,
    "word_alignment": WordAlignment,
    "lclr": LCLR,
}
ANSWER_MODELS: dict[str, type[AnswerNetwork] | type[AnswerScorer]] = NETWORKS | SCORERS
