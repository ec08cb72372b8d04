"""Tables of the answer rankers."""

from collections.abc import Iterator

import numpy as np

from lab.experiments.default_ranker import ALONE, ENSEMBLE
from lab.pages.reading import Result, bullets, mean, measured, records_of, results_of, table_of
from varitext.paper import ANSWER_SCALE, ANSWERS
from varitext.reproduce.answer_fits import DATA
from varitext.reproduce.engine import Record, markdown_table
from varitext.reproduce.table4 import rows_of

EXPERIMENTS = (
    *(
        "table3",
        "table4",
        "recipes",
        "initialization",
        "lstm-changes",
        "collapse",
        "feature-groups",
        "attention",
        "hinton",
        "question-latent",
    ),
    *("question-types", "map-by-samples", "overfitting", "complexity", "minilm", "transfer"),
)
LATENT_COLUMNS = {  # key: heading, format
    "dev_kl": ("KL, nats", ".1e"),
    "active_units": ("units above 0.01 nats", ".1f"),
    "posterior_prior_gap": ("posterior-prior gap, nats", ".4f"),
    "dev_map": ("dev MAP", ".4f"),
    "dev_map_shuffled_h": ("with another question's h", ".4f"),
}


def answer_tables() -> dict[str, str]:
    rankers = _default_rankers()
    return {
        **{name: table_of(name) for name in EXPERIMENTS},
        "against-paper": against_paper(),
        "latent": latent(),
        "default-ranker": f"{table_of('default-ranker')}\n\n{baselines()}",
        "default-ranker-speed": ranker_speed(measured("default_ranker")),
        "unrelated": unrelated(measured("default_ranker")["unrelated"]),
        "joint": joint(rankers),
        "abstaining": abstaining(rankers),
        "untrained": untrained(measured("untrained")["map"]),
        "nasm-speed": nasm_speed(measured("nasm")),
    }


# Table 4


def against_paper() -> str:
    rows = []
    for corpus in DATA:
        for name, evaluations in rows_of(_table4_records(corpus)).items():
            if paper := ANSWERS[corpus].get(name):
                scale = ANSWER_SCALE[corpus]
                found = [scale * mean(evaluations, key) for key in ("map", "mrr")]
                differences = [f"{mine - theirs:+.3f}" for mine, theirs in zip(found, paper, strict=True)]
                both = (f"{values[0]:.4f} / {values[1]:.4f}" for values in (paper, found))
                error, dev = scale * error_over_questions(evaluations), mean(evaluations, "dev_map")
                rows.append([corpus, name, *both, *differences, f"{error:.3f}", f"{dev:.4f}", str(len(evaluations))])
    head = ["", "", "paper MAP / MRR", "ours, on its scale", "MAP", "MRR", "error of MAP", "our dev MAP", "seeds"]
    return markdown_table(head, rows)


def _table4_records(corpus: str) -> list[Record]:
    return [one for one in records_of("table4") if one["settings"]["corpus"] == corpus]


def error_over_questions(evaluations: list[Result], measure: str = "average_precision") -> float:
    """Standard error of a mean over test questions, each a mean over seeds."""
    questions = np.mean([one[measure] for one in evaluations], 0)
    return float(np.std(questions, ddof=1) / np.sqrt(len(questions)))


def latent() -> str:
    """Whether NASM's h carries information, at the epochs that were kept."""
    rows = []
    for corpus in DATA:
        records = [one for one in _table4_records(corpus) if one["settings"]["model"] == "nasm"]
        found = [record["result"]["latent"] for record in records]
        means = [f"{mean(found, name):{form}}" for name, (_, form) in LATENT_COLUMNS.items()]
        rows.append([corpus, *means, str(len(found))])
    head = ["", *(heading for heading, _ in LATENT_COLUMNS.values()), "seeds"]
    return markdown_table(head, rows)


# The default ranker


def _default_rankers() -> dict[str, list[Result]]:
    variants = {"one network": ALONE, "ensemble": ENSEMBLE}
    found = {name: results_of("default-ranker", corpus="wikiqa", variant=variant) for name, variant in variants.items()}
    return {name: results for name, results in found.items() if results}


def baselines() -> str:
    (first, *_) = results_of("default-ranker", corpus="wikiqa")
    found = first["dev_floors"]
    return (
        f"Baselines on WikiQA's dev questions: MAP {found['word_count']:.4f} (word count), {found['bm25']:.4f} (BM25)."
    )


def ranker_speed(found: Result) -> str:
    at_once, one_by_one = (found[f"questions_{how}_seconds"] for how in ("at_once", "one_by_one"))
    return (
        f"WikiQA, {found['threads']} threads: a fit takes {found['fit_seconds']:.0f} s, ranking "
        f"{found['candidates']:,} candidates of one question {found['candidates_seconds']:.2f} s. "
        f"{found['questions']} questions take {at_once:.2f} s in one call of `rank_many`, and {one_by_one:.2f} s in "
        f"calls of `rank`, {one_by_one / at_once:.1f} times as long."
    )


def unrelated(found: dict[str, Result]) -> str:
    head = ["WikiQA test: sentences of other questions", "questions", "sentences", "mean P(correct)", "highest"]
    keys = ("mean_probability", "highest_probability", "mean_probability_none")
    rows = [
        [name, *(f"{one[key]:,}" for key in ("questions", "sentences")), *(f"{one[key]:.3f}" for key in keys)]
        for name, one in found.items()
    ]
    return markdown_table([*head, "mean P(none)"], rows)


def joint(rankers: dict[str, list[Result]]) -> str:
    """The joint model of a question's candidates compared with independent probabilities."""
    head, columns = [""], []
    for name, results in rankers.items():
        for kind in ("independent", "joint"):
            head.append(f"{name}: {kind}")
            columns.append(list(_joint_column([one["joint"] for one in results], kind)))
    results = [one["joint"] for one in list(rankers.values())[-1]]
    names = [
        "negative log-likelihood of a dev question's labels, 10-fold, nats",
        "the same on test",
        f"mean P(none) on test, where {mean(results, 'joint', 'share_without_answer'):.3f} have none",
        "calibration error of P(none), 10 bins",
        "coverage of rank intervals on test, and nominal",
    ]
    rows = [list(row) for row in zip(names, *columns, strict=True)]
    seeds = "; ".join(f"{name}: mean of {len(found)} seeds" for name, found in rankers.items() if len(found) > 1)
    chance, top, right, error = (
        mean(results, "joint", key) for key in ("none_ece_by_chance", "top_probability_best", "top_is_best", "best_ece")
    )
    return (
        f"WikiQA{f' ({seeds})' if seeds else ''}:\n\n{markdown_table(head, rows)}\n\n"
        f"With ten bins, true probabilities would have a calibration error of {chance:.3f} on average by chance. "
        f"P(best) of the top candidate ({list(rankers)[-1]}) is {top:.3f} on average, and {right:.3f} of them are the "
        f"best correct answer; the calibration error of P(best) over all candidates is {error:.3f}."
    )


def _joint_column(results: list[Result], kind: str) -> Iterator[str]:
    for keys in (("dev_nll", kind), ("test_nll", kind), (kind, "mean_probability_none"), (kind, "none_ece")):
        yield f"{mean(results, *keys):.3f}"
    yield f"{mean(results, kind, 'rank_interval_coverage'):.3f} of {mean(results, kind, 'nominal_coverage'):.3f}"


def abstaining(rankers: dict[str, list[Result]]) -> str:
    rows = []
    for name, results in rankers.items():
        found = [one["joint"] for one in results]
        best = [f"{mean(found, 'triggering', key):.3f}" for key in ("precision", "recall", "f1")]
        rows.append([f"{name}, best F1 on dev", *best, ""])
        for asked in sorted({asked for one in found for asked in one["abstaining"]}):
            precision, share = (mean(found, "abstaining", asked, key) for key in ("precision", "share_answered"))
            rows.append([f"{name}, requested precision {asked}", f"{precision:.3f}", "", "", f"{share:.0%}"])
    return markdown_table(["WikiQA test", "precision", "recall", "F1", "questions answered"], rows)


def untrained(found: dict[str, dict[str, float]]) -> str:
    names = {
        "bm25": "`bm25`, frequencies of the list alone",
        "whole": "MiniLM, similarity of whole sentences",
        "whole and by_word": "with that of words",
        "minilm": "`minilm`: with what an answer should have",
    }
    rows = [[title, *(f"{found[corpus][name]:.3f}" for corpus in found)] for name, title in names.items()]
    return markdown_table(["without any fit, dev MAP", *found], rows)


def nasm_speed(found: Result) -> str:
    return bullets(
        [
            f"An epoch over the questions takes {found['pass_seconds']:.1f} s, {found['pairs_per_second']:,.0f} pairs "
            "per second.",
            f"Ranking {found['candidates']:,} candidates of one question with 20 samples takes "
            f"{found['seconds_at_once']:.2f} s; one by one it takes {found['ranking_speed_up']:.0f} times as long.",
            f"A complete fit on WikiQA takes {found['fit_seconds']:.0f} s.",
            f"The model folder has {found['folder_mb']:.1f} MB, {found['folder_without_vectors_mb']:.1f} MB of it "
            "besides word vectors.",
        ]
    )
