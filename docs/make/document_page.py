"""docs/document-results.md, made from the experiments' files under results/."""

from pathlib import Path

from varitext.experiments import experiment_named
from varitext.experiments.runs import read_records

# experiment, heading, what to know when reading it
SECTIONS = (
    (
        "table1a",
        "Every document model against the paper (Table 1a)",
        """Per-document perplexity of the test documents; lower is better, all seeds, sorted. The paper's files,
`20newsgroups-nvdm`: 2,000 words, 7,505 test documents. A random twentieth of the training documents is held
out to choose when to stop, and settings were chosen on training documents; test documents were only reported.

The *kind of figure*: a **bound** is never better than the truth, an **exact** figure is the truth, an
**estimate** may lie on either side, and has a standard error of its own. *Importance-weighted* is the tighter
bound from the same 20 draws; for docNADE, the mixture of its word orders. [other-models.md](other-models.md)
and [discrete-models.md](discrete-models.md) say which bound or estimator each model has.

The paper compares NVDM with published figures, and the files behind those are not all the same as these, which
are NVDM's own: read those rows as the same task, not as the same test. Seconds are of one thread on a machine
that did other work beside: read them as orders of magnitude.""",
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
        """K = 50, recommended settings. [evaluation.md](evaluation.md) has the definitions. *Precision*: of the nearest
training documents, that percentage of them retrieved, those of the query's newsgroup. *Accuracy* and *macro F1*:
logistic regression on the vectors. *NPMI* and *C_V*: the raw training articles as reference. *Completion*: a
hidden half of each test document given the other, every word by itself. *Alike*: two fits that differ in their
seed, topics by rank-biased overlap of the best matching, documents by the share of their ten nearest.""",
    ),
    (
        "refinement",
        "What refinement is worth",
        """Test perplexity of the same weights, K = 50, with q as the inference network says and with q moved some steps
on the generative model itself.""",
    ),
    (
        "updating",
        "Going on with new documents",
        """The training documents in two random halves, K = 50. *In place*, *lowest*, *matched*, *top words*: how
alike to those of the first half, as [training.md](training.md#going-on-with-new-documents) defines them; *matched* lets
topics change their numbers, as they do from one fit to another. Seconds of going on are of that alone.""",
    ),
)


def documents_page(root: Path) -> str:
    parts = [
        "# Results: documents",
        "Generated from `results/` by `docs/make/tables.py`; do not edit. Every table has the command that made it; "
        "each run is one file, with its settings, seed, hashes of the data and seconds.",
    ]
    parts += [_section(root, *section) for section in SECTIONS if (root / "results" / section[0]).is_dir()]
    return "\n\n".join(parts) + "\n"


def _section(root: Path, name: str, heading: str, about: str) -> str:
    experiment = experiment_named(name)
    table = experiment.table(read_records(experiment, root / "results"))
    return f"## {heading}\n\n`varitext reproduce {name}`\n\n{about}\n\n{table}"
