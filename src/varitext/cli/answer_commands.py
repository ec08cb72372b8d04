"""`varitext compare`: two rankers on the same questions."""

from pathlib import Path
from typing import Annotated

import typer

from varitext.cli.answer_input import questions_for
from varitext.cli.options import AsJson, DataDir, Device, Part, Protocol, Samples, Threads
from varitext.cli.printing import print_comparison, print_json
from varitext.errors import InputError
from varitext.loading import load_ranker


def compare(
    first: Annotated[Path, typer.Argument(metavar="DIR", help="A model folder, fitted on questions and answers.")],
    second: Annotated[Path, typer.Argument(metavar="DIR", help="Another one.")],
    corpus: Annotated[
        str | None, typer.Argument(metavar="CORPUS", help="Questions; else the test part of their own corpus.")
    ] = None,
    samples: Samples = None,
    part: Part = None,
    protocol: Protocol = None,
    threads: Threads = None,
    device: Device = "cpu",
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Compare two rankers on the same questions.

    A paired randomisation test: p is how often a difference in MAP (or MRR) at least as large comes out if the two
    models' results are swapped at random, question by question. Small p: more than chance in the choice of questions.
    Another seed of the same model can differ too; one run of each says nothing about that.

    \b
    Example:
      varitext compare models/nasm models/attention
    """
    from varitext.corpora import default_protocol
    from varitext.evaluation.ranking import compare_rankings

    rankers = [load_ranker(folder, threads, device) for folder in (first, second)]
    fitted_on = [(ranker.fitted_.corpus or {}).get("name") for ranker in rankers]
    if corpus is None and fitted_on[0] != fitted_on[1]:
        raise InputError(
            f"the models were fitted on {fitted_on[0]} and {fitted_on[1]}: "
            f"name questions, varitext compare {first} {second} CORPUS"
        )
    questions = questions_for(rankers[0], corpus, part, data_dir, f"varitext compare {first} {second} CORPUS")
    chosen = protocol or default_protocol(questions.name)
    records = [ranker.evaluate(questions, chosen, samples) for ranker in rankers]
    comparison = compare_rankings(records[0].ranking, records[1].ranking)
    if not as_json:
        return print_comparison(records, comparison, (first, second))
    tests = {
        measure: {"first": getattr(records[0].ranking, measure), "second": getattr(records[1].ranking, measure)}
        | getattr(comparison, measure)._asdict()
        for measure in comparison._fields
    }
    names = ("protocol", "n_questions", "n_pairs", "corpus", "part", "corpus_sha256")
    shared = {name: value for name, value in records[0].as_dict().items() if name in names}
    shared["n_samples"] = max(record.n_samples for record in records)  # one, for a model without a latent
    print_json(tests | shared | {"models": [str(first), str(second)]})
