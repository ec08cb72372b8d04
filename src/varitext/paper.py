"""What the paper reports (Miao, Yu, Blunsom 2016): the values of Tables 1 (a) and 4, its names and its scales.

Plain data. Experiments and reports compare with it.
"""

from typing import NamedTuple


class MapMrr(NamedTuple):
    """A row of Table 4."""

    map: float
    mrr: float


PERPLEXITY = {  # Table 1 (a): corpus, model, latent dimensions
    "20newsgroups-nvdm": {
        ("lda", 50): 1091, ("lda", 200): 1058, ("rsm", 50): 953, ("docnade", 50): 896,
        ("sbn", 50): 909, ("fdarn", 50): 917, ("nvdm", 50): 836, ("nvdm", 200): 852,
    },
    "rcv1": {
        ("lda", 50): 1437, ("lda", 200): 1142, ("rsm", 50): 988, ("docnade", 50): 742, ("sbn", 50): 784,
        ("fdarn", 50): 724, ("fdarn", 200): 598, ("nvdm", 50): 563, ("nvdm", 200): 550,
    },
}  # fmt: skip
ANSWERS = {  # Table 4: corpus, system
    "qasent": {
        "PV": MapMrr(0.5213, 0.6023),
        "Bigram-CNN": MapMrr(0.5693, 0.6613),
        "Deep CNN": MapMrr(0.5719, 0.6621),
        "PV + Cnt": MapMrr(0.6762, 0.7514),
        "WA": MapMrr(0.7063, 0.7740),
        "LCLR": MapMrr(0.7092, 0.7700),
        "Bigram-CNN + Cnt": MapMrr(0.7113, 0.7846),
        "Deep CNN + Cnt": MapMrr(0.7186, 0.7826),
        "LSTM": MapMrr(0.6436, 0.7235),
        "LSTM + Att": MapMrr(0.6451, 0.7316),
        "NASM": MapMrr(0.6501, 0.7324),
        "LSTM + Cnt": MapMrr(0.7228, 0.7986),
        "LSTM + Att + Cnt": MapMrr(0.7289, 0.8072),
        "NASM + Cnt": MapMrr(0.7339, 0.8117),
    },
    "wikiqa": {
        "PV": MapMrr(0.5110, 0.5160),
        "Bigram-CNN": MapMrr(0.6190, 0.6281),
        "PV + Cnt": MapMrr(0.5976, 0.6058),
        "LCLR": MapMrr(0.5993, 0.6068),
        "Bigram-CNN + Cnt": MapMrr(0.6520, 0.6652),
        "LSTM": MapMrr(0.6552, 0.6747),
        "LSTM + Att": MapMrr(0.6639, 0.6828),
        "NASM": MapMrr(0.6705, 0.6914),
        "LSTM + Cnt": MapMrr(0.6820, 0.6988),
        "LSTM + Att + Cnt": MapMrr(0.6855, 0.7041),
        "NASM + Cnt": MapMrr(0.6886, 0.7069),
    },
}
ANSWER_SYSTEMS = {  # our model: its name in Table 4
    "overlap": "Overlap",  # ours alone: the second stage without a network
    "pv": "PV",
    "bigram_cnn": "Bigram-CNN",
    "deep_cnn": "Deep CNN",
    "word_alignment": "WA",
    "lclr": "LCLR",
    "lstm": "LSTM",
    "lstm_attention": "LSTM + Att",
    "nasm": "NASM",
}
# multiply ours by this: 4 of the paper's 72 questions always count as wrong
ANSWER_SCALE = {"wikiqa": 1.0, "qasent": 68 / 72}
ANSWER_PROTOCOLS = {"wikiqa": ("answerable",), "qasent": ("both", "clean", "paper-qasent")}  # of the same questions


def perplexity(corpus: str, model: str, latent_dim: int) -> int | None:
    """The perplexity of this model and size on the corpus's test part, if the paper has it."""
    return PERPLEXITY.get(corpus, {}).get((model, latent_dim))
