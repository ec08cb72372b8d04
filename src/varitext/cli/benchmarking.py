"""`varitext benchmark`: speed and quality beside the peers that are installed."""

from pathlib import Path
from typing import Annotated

import typer

from varitext.cli.options import AsJson, DataDir
from varitext.cli.printing import log, print_json
from varitext.errors import InputError


def benchmark(
    corpus: Annotated[
        str, typer.Argument(metavar="CORPUS", help="Has a train and a test part: a known corpus or a folder of yours.")
    ] = "20newsgroups-nvdm",
    peers: Annotated[
        str | None, typer.Option(metavar="A,B", help="Only these; all that are installed if left out.")
    ] = None,
    threads: Annotated[int, typer.Option(min=1, max=1024, metavar="N", help="For every system.")] = 2,
    latent_dim: Annotated[int, typer.Option(min=1, metavar="K", help="Topics, or dimensions.")] = 50,
    growth: Annotated[
        bool, typer.Option("--growth", help="Instead: how cost grows with documents, words and latent size.")
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Hardly any training: shows that it runs.")] = False,
    out: Annotated[Path, typer.Option(metavar="DIR", help="One small JSON file per measurement goes here.")] = Path(
        "results/benchmark"
    ),
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Measure varitext and every peer that is installed, on the same documents, words and threads.

    Time to fit, held-out perplexity, documents per second in transform, peak memory; each system in a process of its
    own. What is measured already is not measured again: the same command goes on where it was stopped.

    \b
    Examples:
      varitext benchmark
      varitext benchmark --peers tomotopy,gensim --threads 4
      varitext benchmark 20newsgroups --peers tomotopy,bertopic --out results/benchmark-articles
      varitext benchmark --quick --out /tmp/benchmark
      varitext benchmark --growth
    """
    from varitext.benchmarking.measuring import Task, corpus_parts
    from varitext.benchmarking.running import choose_systems, read_records, run_benchmark
    from varitext.benchmarking.systems import known_system
    from varitext.benchmarking.tables import comparison, targets, targets_list

    out = out.with_name(f"{out.name}-quick") if quick else out
    if growth:
        return _measure_growth(out, threads, quick, as_json)
    named = peers.split(",") if peers else None
    for name in named or ():
        known_system(name)  # a wrong name is told before anything is read
    plan = Task("varitext", corpus, latent_dim, threads, quick=quick, data_dir=str(data_dir) if data_dir else None)
    train = corpus_parts(corpus, plan.data_dir, quick).train  # what is wrong with it is said once, at the start
    systems = choose_systems(named, train.texts is not None)
    failed = run_benchmark(plan, systems, out, log)
    records = {name: record for name, record in read_records(out).items() if name in systems}
    if "varitext" in failed or "varitext" not in records:
        raise InputError("varitext itself could not be measured: see above")
    if as_json:
        return print_json({"systems": records, "targets": targets(records), "failed": failed})
    print(f"{comparison(records)}\n\n{targets_list(records)}")


def _measure_growth(out: Path, threads: int, quick: bool, as_json: bool) -> None:
    from varitext.benchmarking.growth import curves, run_growth
    from varitext.benchmarking.growth_page import growth_figure, growth_table, softmax_table
    from varitext.files import write_text

    points = run_growth(out, threads, quick, log)
    drawn = out / "growth" / "growth.svg"
    write_text(drawn, growth_figure(curves(points)))
    log(f"growth: drawn in {drawn}")
    if as_json:
        slopes = {f"{curve.along}, {curve.softmax} softmax": curve.slope for curve in curves(points)}
        return print_json({"points": points, "slopes": slopes})
    print(f"{growth_table(curves(points))}\n\n{softmax_table(points)}")
