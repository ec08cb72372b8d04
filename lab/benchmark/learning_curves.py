"""Perplexity against seconds to fit: varitext and LDA of three tools, each with part of its passes.

Each point is a separate fit in a separate process. If a system has a schedule, it is shortened with the passes.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np
from matplotlib.figure import Figure

from lab.benchmark.compare import CORPUS, LATENT_DIM, THREADS
from lab.benchmark.systems import SYSTEMS, is_installed
from lab.child import in_child
from varitext.report.drawing import INCH, drawing_style, svg_text
from varitext.reproduce.engine import Experiment, Plan, Record, Run, markdown_table

SHARES = (0.05, 0.1, 0.2, 0.5, 1.0)
STEEPER = {"tomotopy": (0.01, 0.03)}  # share of a thousand iterations; the first few improve the fit most
LEFT_OUT = ("ctm", "pyro", "plain")  # slower than all of these; the table of complete fits includes them
WIDTH, HEIGHT = 760, 430
TARGETS = (1003, 836, 777, 715)  # tomotopy's last, the paper's NVDM, our multinomial NVDM, nearly our default
COLOURS = {
    "varitext": "#0b6e4f",
    "varitext-nvdm": "#6fb98f",
    "tomotopy": "#c0392b",
    "scikit-learn": "#e08e0b",
    "gensim": "#8e44ad",
}


def runs(plan: Plan) -> Iterator[Run]:
    threads = plan.threads or THREADS
    for name, known in SYSTEMS.items():
        if name in LEFT_OUT:
            continue
        missing = None if is_installed(name) else f"{known.title} is not installed: {known.install}"
        for share in (*STEEPER.get(name, ()), *SHARES):
            settings = {"system": name, "share": share, "corpus": CORPUS, "latent_dim": LATENT_DIM}
            settings |= {"threads": threads, "seed": 0}
            task = settings | {"quick": plan.quick, "data_dir": plan.data_dir and str(plan.data_dir)}
            yield Run(
                settings, partial(in_child, "lab.benchmark.compare:measure", task, threads, known.package), missing
            )


def points(records: list[Record]) -> dict[str, np.ndarray]:
    """For each system, seconds and perplexity in order of seconds, [n, 2]."""
    found: dict[str, list[tuple[float, float]]] = {}
    for record in records:
        result = record["result"]
        if result["per_document_perplexity"] is not None:
            at = (result["fit_seconds"], result["per_document_perplexity"])
            found.setdefault(record["settings"]["system"], []).append(at)
    return {name: np.array(sorted(found[name])) for name in SYSTEMS if name in found}


def label(name: str) -> str:
    known = SYSTEMS[name]
    return f"varitext, {known.settings.removeprefix('default: ')}" if name.startswith("varitext") else known.title


def table(records: list[Record]) -> str:
    """The seconds of the first fit at least as good as each target."""
    head = ["", *(f"seconds to {target:,}" for target in TARGETS), "last: seconds", "perplexity"]
    rows = []
    for name, curve in points(records).items():
        reached = [curve[curve[:, 1] <= target] for target in TARGETS]
        cells = [f"{found[0, 0]:.1f}" if len(found) else "–" for found in reached]
        rows.append([label(name), *cells, f"{curve[-1, 0]:.1f}", f"{curve[-1, 1]:,.0f}"])
    return markdown_table(head, rows)


def figure(records: list[Record]) -> str:
    with drawing_style():
        drawing = Figure((WIDTH / INCH, HEIGHT / INCH), layout="constrained", label="Perplexity against seconds")
        axes = drawing.subplots()
        for name, curve in points(records).items():
            own = name.startswith("varitext")
            style = {"linewidth": 2.6 if own else 1.4, "markersize": 6 if own else 4}
            axes.semilogx(curve[:, 0], curve[:, 1], "o-", color=COLOURS[name], label=label(name), **style)
        axes.set(xlabel="seconds to fit, two threads", title="Perplexity of held-out documents (lower is better)")
        axes.xaxis.set_major_formatter("{x:,g}")
        axes.yaxis.set_major_formatter("{x:,g}")
        axes.set_ylim(650, 1450)
        axes.legend(fontsize=10, loc="upper right")
    return svg_text(drawing)


EXPERIMENT = Experiment("learning-curves", "perplexity against seconds beside other tools", runs, table, figure)
