"""docs/answer-results.md, made from the experiments' files under results/."""

import json
import statistics
from pathlib import Path

import numpy as np

from lab.experiments import experiment_named
from lab.experiments.default_ranker import ENSEMBLE, TOGETHER, VARIANTS
from lab.experiments.minilm import ROWS
from varitext.paper import ANSWER_SCALE, ANSWERS
from varitext.reproduce.answer_fits import DATA, TABLES_START
from varitext.reproduce.engine import Record, markdown_table, read_records
from varitext.reproduce.table4 import STARTED_TITLE, paper_name, rows_of

# experiment, heading, what to know when reading it
SECTIONS = (
    (
        "table4",
        "Every system of Table 4",
        """Means and standard deviations over seeds for systems that depend on one; ties in expectation. Settings were
chosen on training questions (see the ablation below), the epoch by the mean dev MAP of three rounds; test questions
were only reported. *Fit* is the median over seeds of the seconds for all networks of a fit, including those of the
folds, on one thread of a busy machine; a few runs were paused for a while, which counts.

WikiQA: three seeds of every row, all measured at one commit. QASent: ten seeds of most rows, of which the first were
measured again at that commit and the others are older; MAP and MRR did not move beyond what seeds do, but since then
probabilities are calibrated otherwise, so log loss and ECE are those of both together.

QASent's training part is train-all without sentences of more than 40 words, since dev and test have none: the
limit was read off them. "+Cnt" includes the density of the overlap, which carries the length of the answer. The paper's
column counts 4 of 72 questions as always wrong; ours is also given on that scale. What else differs from the paper:
100-d GloVe vectors that are not tuned (the paper: 50-d word2vec of Wikipedia and AQUAINT), also for words that are not
in training questions; digits replaced by zeros; a second stage that compares candidates within their question; and
counts weighted by idf as well. *position* is a sentence's place in its article and its length, which QASent does not
record. Log loss and ECE are over all pairs of these questions.

The paired test is over questions, each with its average precision averaged over seeds.""",
    ),
    (
        "recipes",
        "Ablation",
        """One change at a time to LSTM + Att, by three-fold cross-validation on WikiQA's 873 training questions. No
test question is used. MAP; differences below .01 are within the variation over seeds.

Alone, word vectors matter most: having them at all, then not tuning them. Halving their width, adding questions without
a right answer, and batches of 256 pairs each cost about the same. A single layer, or only words of training questions,
costs about as much as another seed; dropout, averaging and the choice of the round cost less. Counts halve most of
these differences. With position none is left, and the recommended settings are not the best: some changes rank higher
there by less than .01. Free bits keep NASM's latent alive, and it ranks worse.""",
    ),
    (
        "starts",
        "How the networks start",
        """LSTM, LSTM + Att and NASM, by the same cross-validation on training questions; *dev MAP* is the mean over the
folds' networks. PyTorch starts the biases of forget gates at about zero: a state then loses half of itself at every
word, and what three layers leave of a sentence is tiny. *Forget bias* adds one to them. *Same LSTMs,
identity* also starts both LSTMs from the same weights, and adds the identity to M and half of it to each of W_a and
W_n: a bias towards answers that read like their question. A difference below .01 is within the variation over seeds.

With counts either start is better than PyTorch's for NASM, in each of three seeds, and on dev for every model; with
position they hardly differ. *Forget bias*, the simpler of the two, is what `fit` starts with. The other tables of this
page were measured with PyTorch's start before that, but for the rows of Table 4 that say so.""",
    ),
    (
        "feature-groups",
        "Feature groups of WA and LCLR",
        """Both without counts and position: with all groups of features, without each group, and with each alone; in
brackets the difference from all of them. [Answer systems](answer-systems.md) says what the groups are.""",
    ),
    (
        "attention",
        "Attention (Figure 4)",
        """WikiQA test, all candidates; weights are means over samples. The figure shows the first short right answers
of the test part, seed 0: the darker a word, the more weight it has above equal weights, and the bar under a word of
NASM is its spread over samples as a share of the weight. *One h a question* is [another model](#one-h-a-question), in
which h is a factor of the attention.

![Attention of LSTM + Att and NASM](../results/attention/attention.svg)""",
    ),
    (
        "hinton",
        "Uncertainty of p(h | q) (Figure 5)",
        """WikiQA test questions by the word they start with. The figure: ten questions of each, all of h, seed 0; a
square is as large as its log standard deviation is far from zero, white above and black below, both models on one
scale.

![Hinton diagrams of log standard deviations](../results/hinton/hinton.svg)""",
    ),
    (
        "living-latent",
        "One h a question",
        """WikiQA: [`nasm_question`](answers.md#one-h-a-question) beside the same network without h, both trained on all
2,118 questions with all their candidates. *NLL* is -log p(y_1 ... y_n | q) of a question's labels, over all questions
of a part: a mean over 200 samples of p(h | q), exact without h. First, one scale and one shift of the log odds by which
the main answer is chosen maximise it on dev questions, for each model by itself, so dev NLL is a little too good for
both; *as trained* is without them. *KL* is that of the inference network; *exact*, that of the posterior which samples
of the prior have by their importance weights. MAP and MRR are of the 243 questions with a right answer. Settings were
chosen on dev questions: by trials of seeds 0 and 1, and of two forms of the score of none by dev NLL with h, three
seeds of each. This one was measured when the test figures of the other, given below, were known already: read its p
values with that in mind.

This h lives, and it is not shown to be worth having. As trained, the joint likelihood with h is 0.048 nats a question
higher than without, more than chance; but most of that is a twin that is too sure, and once both are scaled 0.018 nats
are left, within chance (p = 0.07). Questions with one right answer gain, those with none or two lose. MAP is the same.
h does carry something: a KL of 0.116 nats, three to seven active units, and 0.251 nats lost where a question is given
the h of another's posterior; of what p(h | q) knows without labels, 0.024 nats. A likelihood that is a product over
candidates, measured before, gave a KL of 0.025 nats and 0.003 nats over its twin, since right answers exclude each
other while an h that they share makes them go together: so here, given h, one is the main answer or none is. That
raises both models, from 1.632 nats to 1.567 with h and from 1.635 to 1.585 without, as in the [joint
picture](compare.md#one-joint-picture-of-a-questions-candidates) of the default ranker. The other form of the score of
none, with the question's terms in all log odds instead, had test NLL 1.565 with h and 1.570 without (+0.005, p =
0.60): over that twin h gains next to nothing in either. Figures 4 and 5 differ from NASM's as before: attention with a
factor in the place of a sum chooses words, and p(h | q) differs between questions.""",
    ),
    ("question-types", "By question word", "WikiQA test, MAP, mean and standard deviation over seeds."),
    (
        "map-by-samples",
        "Number of samples (Figure 3)",
        """WikiQA test. The paper plots the standard deviation of MAP against the number of samples; here it is
given both over ten independent draws of h with one model, averaged over models, and over models.""",
    ),
    (
        "overfitting",
        "Overfitting (section 6)",
        """WikiQA, 40 epochs without early stopping, the same settings for both. Epochs of each seed, sorted; the
paper does not define its iterations.""",
    ),
    (
        "complexity",
        "Cost of the latent variable (section 6)",
        "Median time of the same batches, the models taking turns; relative to LSTM + Att.",
    ),
    (
        "table3",
        "The data (Table 3)",
        "The official files leave out questions without candidates, which the paper counts.",
    ),
)

WHY = """\
*Error* is the standard error of our MAP over test questions: how much another sample of questions would change it. The
paper gives one value per row. Where ours is lower:

- LSTM, LSTM + Att and NASM alone. The [ablation](#ablation) shows what we tried. The paper's vectors, word2vec trained
  on Wikipedia and AQUAINT (newswire, as QASent's sentences are), were not available to us. On QASent a network alone
  stays far below a plain count of shared words; the labels of train-all are automatic. The LSTMs rank its dev questions
  as well as the CNNs do, which are trained on the same pairs from the same vectors, but not its test questions. With
  counts, the difference of MAP is within the error on both. Whether the vectors explain it we could not test.
- Words that are not in training questions are read by their vectors, because training questions (*words of training
  questions alone*, below) and dev questions rank better that way. WikiQA's test questions do not: with words of
  training questions alone all networks rank them higher (`results/table4` of commit 1041fd4). Test questions do not
  choose, so the setting stays.
- PV on WikiQA and WA on QASent: within the error. WA also lacks the original's parts of speech."""

LATENT = """\
Not in the paper's NASM: trained on its bound, the posterior collapses onto the prior, and the prior onto one
distribution for all questions. So in Figure 5 all questions look alike, and NASM differs from LSTM + Att only by noise
in its attention. *Leak* is how much more h of the posterior, which sees the label, says about it than h of the prior.
MAP alone hides the collapse; exchanging h between questions shows it. Means over seeds, `results/table4`. The
[ablation](#ablation) has a row with free bits."""
STARTS = {"pytorch": "PyTorch's", "forget_bias": "forget bias"}
LATENT_FORMS = {
    "dev_kl": ".1e",
    "active_units": ".1f",
    "posterior_prior_gap": ".4f",
    "dev_map": ".4f",
    "dev_map_shuffled_h": ".4f",
}


def answers_page(root: Path) -> str:
    parts = [
        "# Results: answers",
        "Generated from `results/` by `docs/make/tables.py`; do not edit. Every table has the command that made it; "
        "each run is one file, with its settings, seed, hashes of the data and seconds.",
    ]
    parts += [_section(root, *section) for section in SECTIONS if (root / "results" / section[0]).is_dir()]
    if (root / "results" / "nasm.json").exists():
        parts.append(_speed(json.loads((root / "results" / "nasm.json").read_text())))
    return "\n\n".join(parts) + "\n"


def short_table(root: Path) -> str:
    """Of README.md: the default on WikiQA, then NASM and its twin."""
    rows = rows_of(_table4_runs(root, "wikiqa"))
    lines = ["| WikiQA, 243 test questions | paper MAP / MRR | ours, mean of seeds | seeds |", "|---|---|---|---|"]
    best = _default_ranker(root) | _pretrained(root)
    rows |= best
    networks = ("LSTM + Att", "NASM", STARTED_TITLE)
    for name in (*best, *networks, *(f"{name} + Cnt" for name in networks), f"{STARTED_TITLE} + Cnt + position"):
        paper = " / ".join(f"{value:.4f}" for value in ANSWERS["wikiqa"].get(paper_name(name), ()))
        ours = " / ".join(f"{statistics.mean(one[key] for one in rows[name]):.4f}" for key in ("map", "mrr"))
        lines.append(f"| {name} | {paper} | {ours} | {len(rows[name])} |")
    return "\n".join(lines)


def _against_the_paper(root: Path) -> str:
    """Every row that the paper has, and why ours differs."""
    rows = []
    for corpus in DATA:
        ours = rows_of(_table4_runs(root, corpus))
        for name in ours:
            if paper := ANSWERS[corpus].get(paper_name(name)):
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
        for start in sorted({run["settings"].get("start", TABLES_START) for run in runs}, reverse=True):
            found = [run["result"]["latent"] for run in runs if run["settings"].get("start", TABLES_START) == start]
            means = [f"{statistics.mean(one[name] for one in found):{form}}" for name, form in LATENT_FORMS.items()]
            rows.append([corpus, STARTS[start], *means, str(len(found))])
    head = [
        "",
        "start",
        "KL, nats",
        "units above 0.01 nats",
        "leak, nats",
        "dev MAP",
        "with another question's h",
        "seeds",
    ]
    return f"### Is the latent alive?\n\n{LATENT}\n\n{markdown_table(head, rows)}"


def _error_over_questions(evaluations: list[dict]) -> float:
    """Of a mean over test questions, each of them a mean over seeds."""
    questions = np.mean([one["average_precision"] for one in evaluations], 0)
    return float(np.std(questions, ddof=1) / np.sqrt(len(questions)))


def _default_ranker(root: Path) -> dict[str, list[dict]]:
    """Its runs on WikiQA: one network, and the ensemble."""
    titles = {next(iter(VARIANTS)): "default ranker", ENSEMBLE: f"default ranker, ensemble of {TOGETHER}"}
    found: dict[str, list[dict]] = {title: [] for title in titles.values()}
    for record in read_records(experiment_named("default-ranker"), root / "results"):
        corpus, variant = record["settings"]["corpus"], record["settings"]["variant"]
        if corpus == "wikiqa" and variant in titles:
            found[titles[variant]].append(record["result"])
    return {title: results for title, results in found.items() if results}


def _pretrained(root: Path) -> dict[str, list[dict]]:
    records = read_records(experiment_named("minilm"), root / "results")
    found = {row: [one["result"] for one in records if one["settings"]["row"] == row] for row in ROWS}
    return {f"MiniLM, {row}": results for row, results in found.items() if results}


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
        f"{found['plain_pass_seconds']:.1f} s: **{found['pass_speed_up']:.1f} times faster**. Ours samples the "
        f"wrong answers of a question instead of reading all of them; in pairs read per second it is "
        f"{found['pairs_per_second']:,.0f} against {found['plain_pairs_per_second']:,.0f}, "
        f"{found['training_speed_up']:.1f} times as many. After "
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
        "## Speed\n\n`python benchmarks/nasm.py --json results/nasm.json`, "
        f"{found['threads']} threads, one run on a 2-core virtual machine; read it as ratios:\n\n{listed}"
    )


MORE = (("table4", _against_the_paper), ("hinton", _latent))  # what stands beside an experiment's own table
