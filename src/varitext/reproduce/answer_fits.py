"""Answer rankers for experiments: the questions, the settings, and what is recorded."""

from typing import Any, NamedTuple

from varitext.answers.ranker import AnswerRanker
from varitext.answers.ranking import AnswerEvaluation
from varitext.answers.settings import AnswerSettings, settings_from_flat
from varitext.corpora import load_questions
from varitext.corpora.question_answers import QuestionAnswers, subset
from varitext.models.answers import ANSWER_MODELS
from varitext.models.answers.model import AnswerModel
from varitext.paper import ANSWER_SYSTEMS
from varitext.reproduce.engine import Plan, rounded

SEEDS = 5
OWN_MODELS = ("lstm", "lstm_attention", "nasm")  # proposed in the paper; the others are its comparisons
WITHOUT_CHANCE = ("overlap", "word_alignment", "lclr")  # do not depend on the seed
VARIANTS = {"": (False, False), " + Cnt": (True, False), " + Cnt + position": (True, True)}  # counts, position


class Data(NamedTuple):
    """How a corpus of questions is used."""

    train: str  # the part
    protocol: str  # which questions count
    longest_answer: int | None = None  # in training, if dev and test have none that is longer


DATA = {"wikiqa": Data("train", "answerable"), "qasent": Data("train-all", "clean", longest_answer=40)}


def titles() -> dict[str, str]:
    """The names of all rankers that need no extra: those of the paper in its order, then the others."""
    in_order = dict.fromkeys((*ANSWER_SYSTEMS, *ANSWER_MODELS))
    return {model: ANSWER_MODELS[model].title for model in in_order if not ANSWER_MODELS[model].extra}


def load_part(corpus: str, part: str, plan: Plan) -> QuestionAnswers:
    return load_questions(corpus, DATA[corpus].train if part == "train" else part, data_dir=plan.data_dir)


def questions_for_testing(corpus: str, plan: Plan) -> QuestionAnswers:
    """The questions of the test part that count."""
    return subset(load_part(corpus, "test", plan), DATA[corpus].protocol)


def fit_ranker(corpus: str, model: str | type[AnswerModel], seed: int, plan: Plan, **settings: Any) -> AnswerRanker:
    """A ranker with the default settings except those given; `plan.quick` trains it for one epoch."""
    ranker = AnswerRanker(**vars(ranker_settings(corpus, model, seed, plan, **settings)))
    return ranker.fit(load_part(corpus, "train", plan), load_part(corpus, "dev", plan))


def ranker_settings(
    corpus: str, model: str | type[AnswerModel], seed: int, plan: Plan, **settings: Any
) -> AnswerSettings:
    chosen = {"seed": seed, "threads": plan.threads, "longest_answer": DATA[corpus].longest_answer} | settings
    if plan.quick:
        chosen["epochs"] = 1
    return settings_from_flat({"model": model} | chosen)


def fitted_ranker(corpus: str, model: str, seed: int, plan: Plan) -> AnswerRanker:
    """The network alone, without counts and position; from `plan.models` if it is already fitted."""
    folder = plan.model_folder(corpus, model, seed)
    if folder and (folder / "config.json").exists():
        fitted: AnswerRanker = AnswerRanker.load(folder).set_params(threads=plan.threads)
        return fitted.combined(False, False)
    ranker = fit_ranker(corpus, model, seed, plan)
    if folder:
        ranker.save(folder)
    return ranker


def record_of(evaluation: AnswerEvaluation, per_question: bool = False) -> dict[str, Any]:
    """An evaluation as short JSON, with values per question for paired tests."""
    found = {name: _short(value) for name, value in evaluation.as_dict().items() if name in _KEPT}
    if per_question:
        found["average_precision"] = rounded(evaluation.ranking.average_precision)
        found["reciprocal_rank"] = rounded(evaluation.ranking.reciprocal_rank)
    return found


def _short(value: Any) -> Any:
    return round(value, 5) if isinstance(value, float) else value


def latent_of(ranker: AnswerRanker) -> dict[str, float]:
    """Measures of posterior collapse, at the epoch that was kept."""
    best = next(record for record in ranker.fitted_.history if record["dev_map"] == ranker.fitted_.dev_map)
    names = ("epoch", "dev_map", "dev_kl", "active_units", "posterior_prior_gap", "dev_map_shuffled_h")
    return {name: _short(best[name]) for name in names}


_KEPT = ("map", "mrr", "log_loss", "brier", "ece", "protocol", "n_questions", "n_pairs", "corpus_sha256")
