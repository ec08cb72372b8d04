"""The numbers at the top of a report on answers: how good the ranking is, how honest, and where it comes from."""

from varitext.answers.ranker import AnswerRanker
from varitext.answers.ranking import AnswerEvaluation
from varitext.corpora.question_answers import QuestionAnswers
from varitext.report.facts import Fact, Tile, duration, fingerprint, why_stopped


def answer_tiles(evaluation: AnswerEvaluation) -> list[Tile]:
    """The first is shown large."""
    ranking, calibration, uncertainty = evaluation.ranking, evaluation.calibration, evaluation.uncertainty
    half = f"{1 - calibration.risk_of_surer_half:.1%} among the surer half"
    right = f"what first answers say of themselves; {uncertainty.top_is_right:.1%} are right"
    promised = f"of true ranks; they promise {uncertainty.nominal_coverage:.1%}"
    left_out = f"{ranking.n_questions_left_out:,} do not count" if ranking.n_questions_left_out else "all count"
    return [
        Tile("MAP", f"{ranking.map:.4f}", f"{_interval(ranking.map_interval_95)}, over questions; higher is better"),
        Tile("MRR", f"{ranking.mrr:.4f}", _interval(ranking.mrr_interval_95)),
        Tile("first answer is right", f"{1 - calibration.risk:.1%}", half),
        Tile("probability of being best", f"{uncertainty.top_probability_best:.1%}", right),
        Tile(
            "rank intervals hold",
            f"{uncertainty.rank_interval_coverage:.1%}",
            promised,
        ),
        Tile("log loss", f"{calibration.log_loss:.4f}", "nats per pair; lower is better"),
        Tile("calibration error", f"{calibration.ece:.4f}", f"expected, over {calibration.ece_binning} bins"),
        Tile("questions", f"{ranking.n_questions:,}", left_out),
        Tile("pairs", f"{ranking.n_pairs:,}", f"{calibration.share_right:.1%} are right"),
    ]


def answer_facts(ranker: AnswerRanker, evaluation: AnswerEvaluation, source: QuestionAnswers) -> list[Fact]:
    """What was fitted on what, and which questions count."""
    ranking = evaluation.ranking
    samples = (
        [Fact("samples", f"{evaluation.n_samples:,} of h per question")] if ranker.fitted_.network.has_latent else []
    )
    return [
        Fact("corpus", f"{evaluation.corpus} ({evaluation.part})"),
        *fingerprint(source),
        Fact("protocol", f"{ranking.protocol}: {ranking.questions}; ties: {ranking.ties}"),
        Fact("model", _model_in_words(ranker)),
        Fact("fitted", _fit_in_words(ranker)),
        why_stopped(ranker.fitted_.stopped, "dev MAP"),
        *samples,
    ]


def _model_in_words(ranker: AnswerRanker) -> str:
    latent = f", {ranker.fitted_.architecture['latent_dim']} latent units" if ranker.fitted_.network.has_latent else ""
    joined = (
        ""
        if ranker.fitted_.combination is None
        else f", joined with {', '.join(ranker.fitted_.combination.columns[1:])}"
    )
    return f"{ranker.model}{latent}, {len(ranker.fitted_.vocabulary.words):,} words{joined}"


def _fit_in_words(ranker: AnswerRanker) -> str:
    pairs = f"{ranker.fitted_.n_training_questions:,} questions with {ranker.fitted_.n_training_pairs:,} pairs"
    dev = f"{ranker.fitted_.n_dev_questions:,} questions chose when to stop (dev MAP {ranker.fitted_.dev_map:.4f})"
    return f"on {pairs} in {duration(ranker.fitted_.fit_seconds)}, seed {ranker.seed}; {dev}"


def _interval(bounds: tuple[float, float]) -> str:
    return f"95 % interval {bounds[0]:.3f} to {bounds[1]:.3f}"
