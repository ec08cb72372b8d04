"""The models of answers by name. To add one, write its file and name it here."""

from varitext.models.answer_network import AnswerNetwork
from varitext.models.answer_scorer import AnswerScorer
from varitext.models.bigram_cnn import BigramCNN
from varitext.models.deep_cnn import DeepCNN
from varitext.models.lclr import LatentAlignment
from varitext.models.lstm import LSTM
from varitext.models.lstm_attention import LSTMAttention
from varitext.models.nasm import NASM
from varitext.models.overlap import OverlapRegression
from varitext.models.paragraph_vectors import ParagraphVectors
from varitext.models.word_alignment import WordAlignment

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
    "lclr": LatentAlignment,
}
ANSWER_MODELS: dict[str, type[AnswerNetwork] | type[AnswerScorer]] = NETWORKS | SCORERS
