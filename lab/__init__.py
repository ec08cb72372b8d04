"""Measurements of varitext that are not part of the package: `python -m lab` lists them.

experiments/   ablations and comparisons beyond the paper, on the engine of `varitext.reproduce`
benchmark/     speed, perplexity and memory compared with other topic models; growth of cost with size
speed/         timings and single measurements; each writes `results/NAME.json`
faults/        kills, damaged files, hostile input, full disks
mutants/       mutation testing: small changes of the code, and whether a test fails
pages/         fills the tables of README.md and docs/ from `results/`
"""

from functools import partial

from varitext import reproduce

ABLATIONS = (
    *("document-evaluation", "likelihoods", "document-choices", "plain-bound", "generality", "topics", "updating"),
    *("topic-names", "turftopic-protocol", "effects", "short-texts", "vector-weight"),
    *(
        "default-ranker",
        "minilm",
        "abroad",
        "transfer",
        "by-eye",
        "feature-groups",
        "question-latent",
        "recipes",
        "word-vectors",
        "initialization",
        "lstm-changes",
        "collapse",
    ),
)
SPEED = (
    *("nvdm", "nasm", "default_ranker", "hot_paths", "counting", "coherence", "untrained", "rounding"),
    *(
        "large_corpus",
        "scaling_estimate",
        "rcv1_recovery",
        "calibrate_any",
        "index_search",
        "long_lists",
        "long_candidates",
        "copies",
    ),
)
EXPERIMENTS = {  # name on the command line: module whose EXPERIMENT the engine runs
    **reproduce.EXPERIMENTS,
    **{name: f"lab.experiments.{name.replace('-', '_')}" for name in ABLATIONS},
    "benchmark": "lab.benchmark.compare",
    "growth": "lab.benchmark.growth",
    "learning-curves": "lab.benchmark.learning_curves",
    "peer-settings": "lab.benchmark.peer_settings",
}
MEASUREMENTS = {name: f"lab.speed.{name}" for name in SPEED}  # `measure(quick)` gives the content of results/NAME.json
TOOLS = {  # name on the command line: module whose `main(arguments)` parses its own options
    "serve_load": "lab.speed.serve_load",
    "faults": "lab.faults.trying",
    "mutations": "lab.mutants.sample",
    "outdated": "lab.outdated",
    "titles": "lab.experiments.titles",
    "pages": "lab.pages",
}
experiment_named = partial(reproduce.experiment_named, known=EXPERIMENTS)
