"""Commands for rankers of answers: rank candidates, and compare two rankers."""

from pathlib import Path
from typing import Annotated

import typer

from varitext.cli.answer_input import questions_for, read_candidates
from varitext.cli.options import AsJson, DataDir, Device, ModelFolder, Part, Protocol, Samples, TextColumn, Threads
from varitext.cli.printing import print_comparison, print_json, print_ranking
from varitext.errors import InputError
from varitext.loading import load_ranker

SHOWN = 10  # candidates, unless more are asked for


def rank(
    folder: ModelFolder,
    question: Annotated[str, typer.Option(metavar="TEXT", help="The question.")],
    candidates: Annotated[
        str,
        typer.Option(
            metavar="FILE", help="Sentences: .txt, one a line; .jsonl, .csv or .parquet; - for standard input."
        ),
    ],
    n: Annotated[
        int | None, typer.Option("-n", min=1, metavar="N", help="Only the best N; else 10, with --json all.")
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(
            min=1, max=10_000, metavar="N", help="Rankings to draw; else as fitted, 20. More give finer probabilities."
        ),
    ] = None,
    unordered: Annotated[
        bool,
        typer.Option("--unordered", help="The candidates are not the sentences of one document, in their order."),
    ] = False,
    abstain_below: Annotated[
        float | None,
        typer.Option(min=0, max=1, metavar="P", help="Give no answer if the first is right with less than this."),
    ] = None,
    threads: Threads = None,
    device: Device = "cpu",
    text_column: TextColumn = None,
    as_json: AsJson = False,
) -> None:
    """Rank candidate sentences for a question.

    For each candidate: its rank; the probability that it is a right answer; the probability that it is the
    best; the ranks that hold it in 90 % of the draws; the words with most attention, with their spread. A draw is of
    the latent h first and then, by its probabilities, of which answers are right.

    A model fitted with --position takes the first line or row for the first sentence of a document, the second for the
    second, and so on: early sentences are right more often. If yours come from elsewhere, as from a search, say
    --unordered: then places are unknown and count for nothing. Other models do not look at the order.

    \b
    Examples:
      varitext rank models/answers --question "who wrote Ulysses?" --candidates sentences.txt
      grep Joyce notes.txt | varitext rank models/answers --question "who wrote Ulysses?" --candidates - --unordered
      varitext rank models/answers --question "who wrote Ulysses?" --candidates rows.csv --text-column sentence --json
    """
    ranker = load_ranker(folder, threads, device)
    texts = read_candidates(candidates, text_column)
    positions = range(len(texts)) if ranker.reads_positions_ and not unordered else None
    ranking = ranker.rank(question, texts, samples, positions, abstain_below)
    if as_json:
        record = ranking.as_dict()
        return print_json(record | {"candidates": record["candidates"][:n], "model": str(folder)})
    print_ranking(ranking, n or SHOWN)


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
    fitted_on = [(ranker.corpus_ or {}).get("name") for ranker in rankers]
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
