"""Tables of the default ranker and of MiniLM, from results/default-ranker, results/minilm and others."""

import json
import statistics
from pathlib import Path

from lab.experiments import experiment_named
from lab.experiments.default_ranker import ENSEMBLE, VARIANTS
from varitext.reproduce.engine import Record, markdown_table, read_records

WHOLE = next(iter(VARIANTS))


def ranker_blocks(root: Path) -> dict[str, str]:
    experiment = experiment_named("default-ranker")
    records = read_records(experiment, root / "results")
    wikiqa = [one for one in records if one["settings"]["corpus"] == "wikiqa"]
    rankers = {"one network": _of(WHOLE, wikiqa), "ensemble": _of(ENSEMBLE, wikiqa)}
    rankers = {name: found for name, found in rankers.items() if found}
    return {
        "quality": f"{experiment.table(records)}\n\n{_floors(wikiqa[0])}",
        "joint": _joint(rankers),
        "abstaining": _abstaining(rankers),
        "speed": _speed(json.loads((root / "results" / "default_ranker.json").read_text())),
    }


def _speed(found: dict) -> str:
    at_once, one_by_one = (found[f"questions_{how}_seconds"] for how in ("at_once", "one_by_one"))
    return (
        f"WikiQA, {found['threads']} threads: a fit takes {found['fit_seconds']:.0f} s, ranking "
        f"{found['candidates']:,} candidates of one question {found['candidates_seconds']:.2f} s. "
        f"{found['questions']} questions take "
        f"{at_once:.2f} s by `rank_many` and {one_by_one:.2f} s by a call of `rank` for each: "
        f"{one_by_one / at_once:.1f} times as long."
    )


def unrelated_block(root: Path) -> str:
    found = json.loads((root / "results" / "default_ranker.json").read_text())["unrelated"]
    head = ["WikiQA, test: sentences of other questions", "questions", "sentences", "P(right), mean", "highest"]
    rows = [
        [
            name,
            *(f"{one[key]:,}" for key in ("questions", "sentences")),
            *(f"{one[key]:.3f}" for key in ("mean_probability", "highest_probability", "mean_probability_none")),
        ]
        for name, one in found.items()
    ]
    return markdown_table([*head, "P(none), mean"], rows)


def _of(variant: str, records: list[Record]) -> list[dict]:
    return [one["result"] for one in records if one["settings"]["variant"] == variant]


def _floors(record: Record) -> str:
    floors = record["result"]["dev_floors"]
    return (
        f"On WikiQA's dev questions counting words has a MAP of {floors['word_count']:.4f}, and BM25 "
        f"{floors['bm25']:.4f}."
    )


def _mean(results: list[dict], part: str, name: str) -> float:
    """Over seeds."""
    return statistics.mean(one["joint"][part][name] for one in results)


def _joint(rankers: dict[str, list[dict]]) -> str:
    """The joint model beside its independent twin, a column each for every ranker."""
    kinds = ("independent", "joint")
    head, columns = [""], []
    for name, results in rankers.items():
        for kind in kinds:
            head.append(f"{name}: {kind}")
            columns.append(_column(results, kind))
    without = next(iter(rankers.values()))[0]["joint"]["joint"]["share_without_answer"]
    names = [
        "negative log likelihood of a dev question's labels, 10-fold, nats",
        "the same on test",
        f"mean P(none) on test, where {without:.3f} have none",
        "calibration error of P(none), 10 bins",
        "rank intervals that hold on test, of those promised",
    ]
    rows = [list(row) for row in zip(names, *columns, strict=True)]
    counted = "; ".join(f"{name}: mean of {len(found)}" for name, found in rankers.items() if len(found) > 1)
    return f"WikiQA{f' ({counted} seeds)' if counted else ''}:\n\n{markdown_table(head, rows)}\n\n{_best(rankers)}"


def _column(results: list[dict], kind: str) -> list[str]:
    said = (
        _mean(results, "dev_nll", kind),
        _mean(results, "test_nll", kind),
        _mean(results, kind, "mean_probability_none"),
        _mean(results, kind, "none_ece"),
    )
    held, promised = (_mean(results, kind, name) for name in ("rank_interval_coverage", "nominal_coverage"))
    return [*(f"{value:.3f}" for value in said), f"{held:.3f} of {promised:.3f}"]


def _best(rankers: dict[str, list[dict]]) -> str:
    name, results = list(rankers.items())[-1]
    chance, top, right, error = (
        _mean(results, "joint", key)
        for key in ("none_ece_by_chance", "top_probability_best", "top_is_best", "best_ece")
    )
    return (
        f"Over ten bins even true probabilities would have a calibration error of {chance:.3f} on average, by chance "
        f"alone; `evaluate` prints that beside its own. P(best) of the top candidate ({name}) is {top:.3f} on average, "
        f"and {right:.3f} of them are the best right answer; over all candidates the calibration error of P(best) is "
        f"{error:.3f}."
    )


def _abstaining(rankers: dict[str, list[dict]]) -> str:
    head = ["WikiQA, test", "precision", "recall", "F1", "questions answered"]
    rows = []
    for name, results in rankers.items():
        best = [_mean(results, "triggering", key) for key in ("precision", "recall", "f1")]
        rows.append([f"{name}, best F1 on dev", *(f"{value:.3f}" for value in best), ""])
        for asked in sorted({asked for one in results for asked in one["joint"]["abstaining"]}):
            found = [one["joint"]["abstaining"][asked] for one in results if asked in one["joint"]["abstaining"]]
            precision, share = (statistics.mean(one[key] for one in found) for key in ("precision", "share_answered"))
            rows.append([f"{name}, asked for a precision of {asked}", f"{precision:.3f}", "", "", f"{share:.0%}"])
    return markdown_table(head, rows)


def minilm_blocks(root: Path) -> dict[str, str]:
    fitted = experiment_named("minilm")
    return {"untrained": _untrained(root), "fitted": fitted.table(read_records(fitted, root / "results"))}


def _untrained(root: Path) -> str:
    found = json.loads((root / "results" / "minilm_untrained.json").read_text())["dev_map"]
    rows = [
        ["alike as a whole", f"{found['whole']:.4f}"],
        ["words of the question alone", f"{found['words']:.4f}"],
        ["both, which is what `minilm` does", f"{found['both']:.4f}"],
    ]
    return markdown_table(["WikiQA, without any fit", "dev MAP"], rows)
