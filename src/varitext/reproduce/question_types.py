"""MAP by the word a question starts with (paper, section 5.4: 'how' is hardest, .524), on WikiQA."""

from functools import partial
from typing import Any

from varitext.evaluation.ranking import ranking_by_question_word
from varitext.reproduce import ABOUT
from varitext.reproduce.answer_fits import DATA, SEEDS, fitted_ranker, load_part, titles
from varitext.reproduce.engine import Experiment, Plan, Record, grid, markdown_table, mean, results

CORPUS = "wikiqa"
GROUPS = ("how", "what", "who", "when", "where")
MODELS = ("lstm_attention", "nasm")
PAPER = {"how": 0.524}


def measure(model: str, seed: int, plan: Plan) -> dict[str, Any]:
    ranker, test = fitted_ranker(CORPUS, model, seed, plan), load_part(CORPUS, "test", plan)
    ranking = ranker.evaluate(test, DATA[CORPUS].protocol, baselines=False).ranking
    texts = {question.id: question.text for question in test.questions}
    groups = ranking_by_question_word(ranking, texts, leading=True)
    return {group.question_word: {"map": round(group.map, 5), "n": group.n_questions} for group in groups}


def table(records: list[Record]) -> str:
    head = ["questions that start with", "number", "paper", *(f"{titles()[model]} MAP" for model in MODELS)]
    rows = []
    for group in GROUPS:
        number = records[0]["result"][group]["n"]
        paper = f"{PAPER[group]:.3f}" if group in PAPER else ""
        found = [[one[group] for one in results(records, model=model)] for model in MODELS]
        rows.append([group, str(number), paper, *(mean(one, "map", ".3f", spread=True) for one in found)])
    return markdown_table(head, rows)


RUNS = partial(grid, measure, SEEDS, model=MODELS)
EXPERIMENT = Experiment("question-types", ABOUT["question-types"], RUNS, table)
