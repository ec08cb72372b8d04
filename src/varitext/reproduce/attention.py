"""Figure 4: attention of LSTM + Att and NASM in the same correct answers of WikiQA, and its peakedness over all.

NASM with a question-level latent is shown beside the paper's NASM.
"""

from functools import partial
from typing import Any

import numpy as np

from varitext.answers.ranking import RankedCandidate
from varitext.charts.colours import MIDDLE_INK
from varitext.charts.records import printable
from varitext.evaluation.attention import times_equal
from varitext.report.attention import draw_words, width_of_words, word_heats
from varitext.report.drawing import canvas, drawing_style, svg_text
from varitext.reproduce import ABOUT
from varitext.reproduce.answer_fits import fitted_ranker, questions_for_testing, titles
from varitext.reproduce.engine import Experiment, Plan, Record, grid_of_models, markdown_table, results, rounded

CORPUS = "wikiqa"
SEEDS = {"lstm_attention": 5, "nasm": 5, "nasm_question": 3}
SHOWN = 5  # answers in the figure: the first correct ones of the test part that are short enough
MAX_LENGTH_SHOWN = 16
LEFT = 180.0  # pixels: where words begin
LINE, QUESTION = 38, 34  # pixels: of an answer, and of the question above it


def measure(model: str, seed: int, plan: Plan) -> dict[str, Any]:
    ranker = fitted_ranker(CORPUS, model, seed, plan)
    test = questions_for_testing(CORPUS, plan)
    peaks: list[tuple[float, ...]] = []
    shown: list[dict[str, Any]] = []
    for question in test.questions:
        ranking = ranker.rank(question.text, [one.text for one in question.candidates])
        for one in sorted(ranking.candidates, key=lambda one: one.place):  # the same for all models
            label = bool(question.candidates[one.place].label)
            peaks.append((label, *_peakedness(one)))
            if label and 4 <= len(one.words) <= MAX_LENGTH_SHOWN and len(shown) < SHOWN:
                weights = {"mean": rounded(one.attention_mean), "std": rounded(one.attention_std)}
                example = {"question": question.text, "words": list(one.words)}
                shown.append(example | {"probability": round(one.probability, 4)} | weights)
    values = np.array([peak[1:] for peak in peaks if len(peak) == 3])
    right = np.array([bool(peak[0]) for peak in peaks if len(peak) == 3])
    names = ("highest_weight", "relative_entropy")
    found = {name: rounded([values[right, i].mean(), values[~right, i].mean()], 5) for i, name in enumerate(names)}
    return found | ({"shown": shown} if seed == 0 else {})


def _peakedness(one: RankedCandidate) -> tuple[float, ...]:
    """The highest weight, and the entropy relative to equal weights; only for answers with several words."""
    weights = np.array(one.attention_mean)
    if len(weights) < 2:
        return ()
    entropy = -(weights * np.log(np.maximum(weights, 1e-12))).sum()
    return float(weights.max()), float(entropy / np.log(len(weights)))


def table(records: list[Record]) -> str:
    head = ["", "highest weight, correct answers", "incorrect answers", "relative entropy, correct answers"]
    rows = []
    for model in SEEDS:
        if found := results(records, model=model):
            names = ("highest_weight", "relative_entropy")
            figures = [value for name in names for value in np.mean([one[name] for one in found], 0)]
            rows.append([titles()[model], *(f"{value:.3f}" for value in figures), str(len(found))])
    return markdown_table([*head, "incorrect answers", "seeds"], rows)


def figure(records: list[Record]) -> str:
    """Words that darken with attention, from a row's lowest weight to its highest, which is printed beside it.

    The bar under a word is the spread over samples of h.
    """
    seed_0 = {model: results(records, model=model, seed=0) for model in SEEDS}
    examples = {model: found[0]["shown"] for model, found in seed_0.items() if found}
    number = min(map(len, examples.values()), default=0)
    heats = {
        model: [word_heats(one["words"], one["mean"], one["std"], relative=True) for one in found[:number]]
        for model, found in examples.items()
    }
    width = max((width_of_words(words) for found in heats.values() for words in found), default=0.0)
    height = QUESTION + LINE * len(examples)
    with drawing_style():
        drawing, axes = canvas(LEFT + width + 10, 20 + number * height, "Attention of LSTM + Att and NASM")
        for place in range(number):
            top = 25 + place * height
            question = next(iter(examples.values()))[place]["question"]
            axes.text(10, top, printable(question), fontsize=14, fontweight="bold")
            for row, model in enumerate(examples):
                line, words = top + 14 + row * LINE, heats[model][place]
                highest = max(times_equal([one.mean for one in words]))
                axes.text(10, line + 10, titles()[model], fontsize=11)
                axes.text(10, line + 24, f"{highest:.2f} × equal at most", fontsize=9, color=MIDDLE_INK)
                draw_words(axes, words, LEFT, line)
    return svg_text(drawing)


RUNS = partial(grid_of_models, measure, SEEDS)
EXPERIMENT = Experiment("attention", ABOUT["attention"], RUNS, table, figure)
