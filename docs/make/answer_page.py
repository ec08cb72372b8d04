"""docs/answer-results.md, made from the experiments' files under results/."""

import json
import statistics
from pathlib import Path

import numpy as np

from varitext.experiments import experiment_named
from varitext.experiments.answer_fits import DATA
from varitext.experiments.runs import Record, markdown_table, read_records
from varitext.experiments.table4 import rows_of
from varitext.paper import ANSWER_SCALE, ANSWERS

# experiment, heading, what to know when reading it
SECTIONS = (
    (
        "table4",
        "Every system of Table 4",
        """Means and standard deviations over seeds where there is chance; ties in expectation. Settings were chosen on
training questions (see recipes below), the epoch by dev MAP, the mean of three; test questions were only reported.
*Fit* is the median over seeds of the seconds of all networks of a fit, those of the folds included, on one thread of a
machine that was busy with other runs; a few were paused for a while, which counts.

QASent's training part is train-all without sentences of more than 40 words, since dev and test have none; the paper's
column counts 4 of 72 questions as always wrong, ours is given on that scale too. What else differs from the paper:
100-d GloVe vectors that are not tuned (the paper: 50-d word2vec of Wikipedia and AQUAINT), also of words that training
questions do not have; numbers read by their shape; a second stage that weighs candidates within their question, and
counts that are weighed by idf too. *position* is the place of a sentence in its article and its length; QASent does not
tell these. Log loss and ECE are of all pairs of these questions.

The paired test is over questions, each with the mean of its average precision over the seeds.""",
    ),
    (
        "recipes",
        "What the points are made of",
        """One change at a time to LSTM + Att, evaluated on WikiQA's 873 training questions: each is ranked by a
network that was trained without its third of them. No test question is looked at. MAP; differences below
.01 are within what another seed does.

Alone, it is the word vectors: having any, then leaving them as they are. Half their width, questions without a right
answer, or batches of 256 pairs cost about as much as each other. One layer, or only words of training questions, cost
about what another seed does; dropout, averaging and how the round is chosen less. Counts halve most of these
differences. With position none is left, and what is recommended is not the best: some changes rank a little higher
there, by less than .01. Free nats keep NASM's latent alive, and it ranks worse.""",
    ),
    (
        "feature-groups",
        "What WA and LCLR go by",
        """Both without counts and position, with all their groups of features, without each, and with each alone; in
brackets the difference to all of them. What the groups are: [answer-systems.md](answer-systems.md).""",
    ),
    (
        "attention",
        "Where they look (Figure 4)",
        """WikiQA test, all candidates; weights are means over samples. The figure shows the first short right answers
of the test part, seed 0: the ground is as dark as a word's weight, the bar under a word of NASM is its spread over
samples as a share of the weight.

![Attention of LSTM + Att and NASM](../results/attention/attention.svg)""",
    ),
    (
        "hinton",
        "How sure p(h | q) is (Figure 5)",
        """WikiQA test questions by the word they start with. The figure: ten questions of each, 50 dimensions, seed 0;
a square is as large as its log standard deviation is far from zero, white above and black below.

![Hinton diagrams of log standard deviations](../results/hinton/hinton.svg)""",
    ),
    ("question-types", "By question word", "WikiQA test, MAP, mean and standard deviation over seeds."),
    (
        "map-by-samples",
        "How many samples (Figure 3)",
        """WikiQA test. The paper draws the standard deviation of MAP against the number of samples; here once over
ten independent draws of h with one model, averaged over models, and once over models.""",
    ),
    (
        "overfitting",
        "When they turn (section 6)",
        """WikiQA, 40 epochs without early stopping, the same settings for both. Epochs of each seed, sorted; the
paper's iterations are not defined further.""",
    ),
    (
        "complexity",
        "What the latent costs (section 6)",
        "Median time of the same batches, the models taking turns; relative to LSTM + Att.",
    ),
    (
        "table3",
        "The data (Table 3)",
        "The official files leave out questions without candidates, which the paper counts.",
    ),
)

WHY = """\
*Error* is the standard error of our MAP over test questions: what other questions of the same kind would change. The
paper gives one value a row. Where ours is lower:

- LSTM, LSTM + Att and NASM alone. *What the points are made of*, below, has what we tried. The paper's vectors,
  word2vec of Wikipedia and AQUAINT, newswire as QASent's sentences are, are not to be had here. On QASent a
  network alone stays far below a plain count of shared words; labels of train-all are automatic. Its dev questions rank
  as well by the LSTMs as by the CNNs, which are trained on the same pairs from the same vectors; its test questions do
  not. With counts, the difference of MAP is within the error on both. Whether it is the vectors we could not test.
- Words that training questions do not have are read by their vectors because training questions (*words of training
  questions alone*, below) and dev questions rank better so. WikiQA's test questions do not: with words of training
  questions alone all networks rank them higher (`results/table4` of commit 1041fd4). Test questions do not choose, so
  it stays.
- PV on WikiQA and WA on QASent: within the error. WA also lacks the original's parts of speech."""

LATENT = """\
Not in the paper's NASM: trained by its bound, the posterior falls onto the prior, and the prior onto one distribution
for all questions. So in Figure 5 all questions look alike, and NASM differs from LSTM + Att by noise in its attention.
*Leak* is what h of the posterior, which sees the label, tells more of it than h of the prior. MAP alone hides it;
exchanging h between questions shows it. Means over seeds, `results/table4`. What free nats do is in *What the points
are made of*."""
LATENT_FORMS = {"dev_kl": ".1e", "active_units": ".1f", "leak": ".4f", "dev_map": ".4f", "dev_map_exchanged": ".4f"}


def answers_page(root: Path) -> str:
    parts = [
        "# Results: answers",
        "Generated from `results/` by `docs/make/tables.py`; do not edit. Every table has the command that made it; "
        "each run is one file, with its settings, seed, hashes of the data and seconds.",
    ]
    parts += [_section(root, *section) for section in SECTIONS if (root / "results" / section[0]).is_dir()]
    if (root / "results" / "nasm_speed.json").exists():
        parts.append(_speed(json.loads((root / "results" / "nasm_speed.json").read_text())))
    return "\n\n".join(parts) + "\n"


def short_table(root: Path) -> str:
    """Of README.md: NASM and its twin on WikiQA."""
    rows = rows_of(_table4_runs(root, "wikiqa"))
    lines = ["| WikiQA, 243 test questions | paper MAP / MRR | ours, mean of seeds | seeds |", "|---|---|---|---|"]
    for name in ("LSTM + Att", "NASM", "LSTM + Att + Cnt", "NASM + Cnt", "NASM + Cnt + position"):
        paper = " / ".join(f"{value:.4f}" for value in ANSWERS["wikiqa"].get(name, ()))
        ours = " / ".join(f"{statistics.mean(one[key] for one in rows[name]):.4f}" for key in ("map", "mrr"))
        lines.append(f"| {name} | {paper} | {ours} | {len(rows[name])} |")
    return "\n".join(lines)


def _against_the_paper(root: Path) -> str:
    """Every row that the paper has, and why ours differs."""
    rows = []
    for corpus in DATA:
        ours = rows_of(_table4_runs(root, corpus))
        for name, paper in ANSWERS[corpus].items():
            if name in ours:
                scale, measures = ANSWER_SCALE[corpus], ("map", "mrr")
                found = [scale * statistics.mean(one[key] for one in ours[name]) for key in measures]
                differences = [f"{mine - theirs:+.3f}" for mine, theirs in zip(found, paper, strict=True)]
                both = (f"{values[0]:.4f} / {values[1]:.4f}" for values in (paper, found))
                error = scale * _error_over_questions(ours[name])
                dev = statistics.mean(one["dev_map"] for one in ours[name])
                cells = [*both, *differences, f"{error:.3f}", f"{dev:.4f}", str(len(ours[name]))]
                rows.append([corpus, name, *cells])
    head = ["", "", "paper MAP / MRR", "ours, on its scale", "MAP", "MRR", "error of MAP", "our dev MAP", "seeds"]
    return f"### Against the paper, row by row\n\n{markdown_table(head, rows)}\n\n{WHY}"


def _latent(root: Path) -> str:
    """Whether h says anything, in the rounds of NASM that were kept."""
    rows = []
    for corpus in DATA:
        runs = [run for run in _table4_runs(root, corpus) if run["settings"]["model"] == "nasm"]
        found = [run["result"]["latent"] for run in runs]
        means = [f"{statistics.mean(one[name] for one in found):{form}}" for name, form in LATENT_FORMS.items()]
        rows.append([corpus, *means, str(len(found))])
    head = ["", "KL, nats", "units above 0.01 nats", "leak, nats", "dev MAP", "with another question's h", "seeds"]
    return f"### Is the latent alive?\n\n{LATENT}\n\n{markdown_table(head, rows)}"


def _error_over_questions(evaluations: list[dict]) -> float:
    """Of a mean over test questions, each of them a mean over seeds."""
    questions = np.mean([one["average_precision"] for one in evaluations], 0)
    return float(np.std(questions, ddof=1) / np.sqrt(len(questions)))


def _table4_runs(root: Path, corpus: str) -> list[Record]:
    records = read_records(experiment_named("table4"), root / "results")
    return [one for one in records if one["settings"]["corpus"] == corpus]


def _section(root: Path, name: str, heading: str, about: str) -> str:
    experiment = experiment_named(name)
    table = experiment.table(read_records(experiment, root / "results"))
    parts = [f"## {heading}", f"`varitext reproduce {name}`", about, table]
    parts += [more(root) for beside, more in MORE if beside == name]
    return "\n\n".join(parts)


def _speed(found: dict) -> str:
    lines = [
        f"training: a pass over the questions takes {found['pass_seconds']:.1f} s, with a straightforward PyTorch NASM "
        f"{found['plain_pass_seconds']:.1f} s: **{found['pass_speed_up']:.1f} times faster**. Ours leaves out some of "
        f"the wrong answers of a question, which others stand for: counted by pairs that are read it is "
        f"{found['pairs_per_second']:,.0f} against {found['plain_pairs_per_second']:,.0f} a second, "
        f"{found['training_speed_up']:.1f} times. After "
        f"{found['epochs']} epochs of either the best dev MAP is {found['dev_map']:.3f} against "
        f"{found['plain_dev_map']:.3f};",
        f"ranking {found['candidates']:,} candidates of one question with 20 samples: {found['seconds_at_once']:.2f} "
        f"s, **{found['ranking_speed_up']:.0f} times faster** than one by one;",
        f"a whole fit on WikiQA: {found['fit_seconds']:.0f} s;",
        f"the model folder: {found['folder_mb']:.1f} MB, without word vectors "
        f"{found['folder_without_vectors_mb']:.1f} MB.",
    ]
    listed = "\n".join(f"- {line}" for line in lines)
    return (
        "## Speed\n\n`python benchmarks/nasm.py --json results/nasm_speed.json`, "
        f"{found['threads']} threads, one run on a 2-core virtual machine; read it as ratios:\n\n{listed}"
    )


MORE = (("table4", _against_the_paper), ("hinton", _latent))  # what stands beside an experiment's own table
