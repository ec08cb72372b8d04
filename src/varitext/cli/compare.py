"""`varitext compare`: two rankers on the same questions."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from varitext.cli.input import questions_for
from varitext.cli.options import AsJson, DataDir, Device, Part, Protocol, Samples, Threads, Trust
from varitext.cli.printing import print_json
from varitext.errors import InputError
from varitext.loading import load_ranker

if TYPE_CHECKING:
    from varitext.answers.ranking import AnswerEvaluation
    from varitext.evaluation.ranking import RankingComparison


def compare(
    first: Annotated[
        Path, typer.Argument(metavar="DIR", help="Model folder of a ranker, or minilm or bm25, which need no fit.")
    ],
    second: Annotated[Path, typer.Argument(metavar="DIR", help="Another one.")],
    corpus: Annotated[
        str | None,
        typer.Argument(metavar="CORPUS", help="Questions (default: the test part of the corpus of both rankers)."),
    ] = None,
    samples: Samples = None,
    part: Part = None,
    protocol: Protocol = None,
    threads: Threads = None,
    device: Device = "cpu",
    trust: Trust = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Compare two rankers on the same questions.

    A paired randomisation test: p is the probability of a difference in MAP (or MRR) at least as large if the two
    models' results are swapped at random, question by question. A small p means more than chance in the choice of
    questions. It does not account for the training seed: fit several of each to see its effect.

    \b
    Examples:
      varitext compare models/nasm models/attention
      varitext compare models/answers minilm
    """
    from varitext.corpora import default_protocol
    from varitext.evaluation.ranking import compare_rankings

    rankers = [load_ranker(folder, threads, device, trust) for folder in (first, second)]
    hint = f"varitext compare {first} {second} CORPUS"
    fitted_on = {ranker.fitted_.corpus["name"]: ranker for ranker in rankers if ranker.fitted_.corpus}
    if corpus is None and len(fitted_on) > 1:
        raise InputError(f"the models were fitted on {' and '.join(fitted_on)}: name questions, {hint}")
    questions = questions_for([*fitted_on.values(), *rankers][0], corpus, part, data_dir, hint)
    chosen = protocol or default_protocol(questions.name)
    records = [ranker.evaluate(questions, chosen, samples, baselines=False) for ranker in rankers]
    comparison = compare_rankings(records[0].ranking, records[1].ranking)
    if not as_json:
        return _print_comparison(records, comparison, (first, second))
    tests = {
        measure: {"first": getattr(records[0].ranking, measure), "second": getattr(records[1].ranking, measure)}
        | getattr(comparison, measure)._asdict()
        for measure in comparison._fields
    }
    names = ("protocol", "n_questions", "n_pairs", "corpus", "part", "corpus_sha256")
    shared = {name: value for name, value in records[0].as_dict().items() if name in names}
    shared["n_samples"] = max(record.n_samples for record in records)  # one, for a model without a latent variable
    print_json(tests | shared | {"models": [str(first), str(second)]})


def _print_comparison(
    records: Sequence["AnswerEvaluation"], comparison: "RankingComparison", folders: Sequence[Path]
) -> None:
    first, second = (record.ranking for record in records)
    print(f"{records[0].corpus} ({records[0].part}): {first.n_questions} questions, {first.protocol}")
    width = max(12, *(len(str(folder)) for folder in folders))
    print(f"       {folders[0]!s:>{width}}  {folders[1]!s:>{width}}  difference  p")
    for name, test in zip(("MAP", "MRR"), comparison, strict=True):
        values = (getattr(record, name.lower()) for record in (first, second))
        columns = "  ".join(f"{value:{width}.4f}" for value in values)
        print(f"  {name}  {columns}  {test.difference:+10.4f}  {test.p_value:.2g}")
    drawn = "all" if comparison.map.exact else f"{comparison.map.n_assignments:,} random"
    print(f"  paired randomisation test over questions, {drawn} assignments")
