"""The experiments of docs/results.md, made from their files under results/."""

from pathlib import Path

from lab.experiments import experiment_named
from varitext.reproduce.engine import read_records

# experiment, heading, what to know when reading it
SECTIONS = (
    (
        "table1a",
        "Every document model against the paper (Table 1a)",
        """Per-document perplexity of the test documents; lower is better, all seeds, sorted. The paper's files,
`20newsgroups-nvdm`: 2,000 words, 7,505 test documents. A random twentieth of the training documents is held
out to choose when to stop, and settings were chosen on training documents; test documents were only reported.

A **bound** is never better than the true perplexity, an **exact** value is the true one, an **estimate** may
lie on either side of it and has a standard error. *Importance-weighted* is the tighter
bound from the same 20 draws; for docNADE, the mixture of its word orders. [Other document models](other-models.md)
and [Discrete latent variables](discrete.md) say which bound or estimator each model has.

Preset `paper` is the paper's objective; `paper-network` has its networks and our objective. *q not refined*: the same
weights, with q as the inference network has it; the bound is a bound for any q, so the difference is how far that was
from the best of its kind. The paper does not refine. [Honesty](honesty.md) lists every such difference.

The paper takes the rows of other models from their publications, which did not all use the files of NVDM's
authors that we use: read those rows as the same task, not as the same test. Seconds are of one thread on a machine
that was also doing other work: read them as orders of magnitude.""",
    ),
    (
        "table1b",
        "Nearest words (Table 1b)",
        """The recommended setting, K = 50, by cosine. The last column counts the paper's thirty words that are among
ours; the spelling is the paper's.""",
    ),
    (
        "table2",
        "Topics (Table 2)",
        """The paper shows five topics it selected at random. Beside each stands the end of one of our axes on which
its ten words weigh most, one to one: *weight* is their mean there, in standard deviations over the vocabulary.
Coherence rests on the raw training articles: NPMI in windows of 10 words, C_V in windows of 110.""",
    ),
    (
        "tsne",
        "Documents on a map (t-SNE figure)",
        """Test documents by openTSNE, from the directions of their vectors; colours are newsgroups. The table: how
often the ten nearest other documents vote for a document's own newsgroup, on the map and in the vectors.

![t-SNE of the test documents: NVDM beside SWV](../results/tsne/tsne.svg)

`varitext reproduce tsne` also writes an HTML file to zoom into.""",
    ),
    (
        "document-evaluation",
        "Beyond perplexity",
        """K = 50, recommended settings; [Evaluation](evaluation.md) has the definitions. *Precision at 2 %*: the
share of the query's newsgroup among the nearest 2 % of the training documents. *Accuracy* and *macro F1*:
logistic regression on the vectors. *NPMI* and *C_V*: the raw training articles as reference. *Completion*: a
hidden half of each test document given the other, every word by itself. *Alike*: agreement of two fits with
different seeds, topics by rank-biased overlap of the best matching, documents by the share of common ten nearest.""",
    ),
    (
        "updating",
        "Continuing with new documents",
        """The training documents in two random halves, K = 50. *In place*, *lowest*, *matched* and *top words* compare
topics with those of the first half, as [Training](training.md#continuing-with-new-documents) defines; *matched* lets
topics change their numbers, as they do from one fit to another. Seconds of a continued fit are of the update alone.""",
    ),
)


def experiment_sections(root: Path) -> dict[str, str]:
    """By the name of the experiment, those that have results."""
    present = [section for section in SECTIONS if (root / "results" / section[0]).is_dir()]
    return {section[0]: _section(root, *section) for section in present}


def _section(root: Path, name: str, heading: str, about: str) -> str:
    experiment = experiment_named(name)
    table = experiment.table(read_records(experiment, root / "results"))
    return f"## {heading}\n\n`varitext reproduce {name}`\n\n{about}\n\n{table}"
