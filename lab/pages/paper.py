"""The tables of docs/paper.md: every claim of the paper in its order, with a verdict, evidence and a command."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from lab import experiment_named
from lab.pages import findings
from lab.pages.findings import CORPORA, OTHERS, VERDICTS, Finding, finding_of, shown, title
from lab.pages.reading import table_of
from varitext.errors import InputError
from varitext.paper import ANSWERS, PERPLEXITY
from varitext.reproduce.answer_fits import OWN_MODELS, titles
from varitext.reproduce.document_fits import NEWSGROUPS
from varitext.reproduce.engine import markdown_table

TABLE1A, TABLE4 = "varitext reproduce table1a", "varitext reproduce table4"
KL_TERM, ATTENTION = "varitext reproduce kl-term", "varitext reproduce stochastic-attention"
COMPLEXITY = "varitext reproduce complexity"
OWN_TABLES = ("gradients", "stochastic-attention", "kl-term")  # on this page, not on those of the results
CONTRACT = "pytest tests/models/test_contract.py"


class Claim(NamedTuple):
    text: str
    measure: Callable[[], Finding]
    command: str  # that measures it


def paper_tables() -> dict[str, str]:
    found = {name: [(claim, finding_of(claim.measure)) for claim in section()] for name, section in SECTIONS.items()}
    tables = {f"paper-{name}": _table(rows) for name, rows in found.items()}
    tables |= {name: experiment(name) for name in OWN_TABLES}
    return tables | {"paper-summary": _summary([one.verdict for rows in found.values() for _, one in rows])}


def experiment(name: str) -> str:
    """The figure and the table of an experiment."""
    try:
        table = table_of(name)
    except InputError:
        return f"Not measured yet: `varitext reproduce {name}`."
    drawn = experiment_named(name).figure
    return f"![{experiment_named(name).about}](../results/{name}.svg)\n\n{table}" if drawn else table


def _table(rows: list[tuple[Claim, Finding]]) -> str:
    cells = [[claim.text, one.verdict, one.evidence, f"`{claim.command}`"] for claim, one in rows]
    return markdown_table(["claim", "verdict", "evidence", "command"], cells)


def _summary(verdicts: list[str]) -> str:
    counts = [f"{verdicts.count(verdict)} {verdict}" for verdict in VERDICTS if verdict in verdicts]
    return f"{len(verdicts)} claims: {', '.join(counts)}."


def introduction() -> Iterator[Claim]:
    yield Claim(
        "One framework serves generative and conditional models of text.",
        shown("one `elbo` trains NVDM, NASM and six more models"),
        CONTRACT,
    )
    yield Claim(
        "An inference network gives q(h) for new text without optimisation per document.",
        findings.amortisation,
        f"{TABLE1A} --only {NEWSGROUPS}-nvdm-50-recommended",
    )
    yield Claim(
        "Inference networks can be MLPs, CNNs, RNNs, or any other network.",
        shown("MLP in NVDM, LSTM in NASM; a [tutorial](tutorials/build-a-model.md) adds others"),
        "pytest tests/test_docs.py -k new_model",
    )
    yield Claim("NVDM has the lowest perplexity on two corpora.", findings.lowest_on_both, TABLE1A)
    yield Claim(
        "NASM + Cnt exceeds all results published before on QASent and WikiQA.", findings.above_all_published, TABLE4
    )
    yield Claim("The models train efficiently by stochastic back-propagation.", findings.speed, "python -m lab nvdm")


def framework() -> Iterator[Claim]:
    yield Claim(
        "ℒ is a lower bound of the log-likelihood (1).",
        findings.bounds,
        f"{TABLE1A} --only {NEWSGROUPS}-nvdm-50-recommended",
    )
    yield Claim(
        "Gradients from samples are unbiased (2 to 4).",
        shown("agree with known answers, but for the ½ in (4): see [errata](explanation/errata.md)"),
        "pytest tests/latent",
    )
    yield Claim(
        "Reparameterisation reduces their variance.",
        partial(findings.gradient_variance, "score function"),
        f"{KL_TERM} --only KL",
    )
    yield Claim(
        "Unsupervised learning is the special case without x.",
        shown("NVDM and NASM implement the same four methods"),
        CONTRACT,
    )
    yield Claim(
        "Discrete h works with a multinomial q and a policy gradient.",
        findings.discrete,
        f"{TABLE1A} --only nvdm_categorical",
    )


def nvdm() -> Iterator[Claim]:
    yield Claim("R learns semantic word embeddings (Table 1b).", findings.nearest_words, "varitext reproduce table1b")
    yield Claim(
        "The closed form of the KL lowers the variance of gradients further.",
        partial(findings.gradient_variance, "reparameterised, sampled KL"),
        f"{KL_TERM} --only KL",
    )
    yield Claim("The KL regularises the inference network.", findings.kl_regularises, KL_TERM)


def nasm() -> Iterator[Claim]:
    yield Claim(
        "Pair-specific representations are better than independent ones: LSTM + Att is better than LSTM.",
        partial(findings.order, "LSTM + Att", "LSTM"),
        f"{TABLE4} --only lstm",
    )
    yield Claim("Stochastic units allow multi-modal attention.", findings.multi_modal, ATTENTION)


def documents() -> Iterator[Claim]:
    yield Claim(
        "20 Newsgroups has 11,314 training and 7,531 test articles.",
        findings.numbers_of_documents,
        f"varitext data fetch {NEWSGROUPS}",
    )
    for size in (50, 200):
        text = f"NVDM, K = {size}: perplexity {PERPLEXITY[NEWSGROUPS]['nvdm', size]} on 20 Newsgroups."
        command = f"{TABLE1A} --only {NEWSGROUPS}-nvdm-{size}-paper-"
        yield Claim(text, partial(findings.nvdm_value, size), command)
    listed = ", ".join(f"{title(model)} {PERPLEXITY[NEWSGROUPS][model, 50]}" for model in OTHERS)
    yield Claim(f"K = 50, from the literature: {listed}.", findings.baselines, f"{TABLE1A} --only -50-recommended")
    yield Claim("NVDM has the lowest perplexity on 20 Newsgroups.", findings.lowest, TABLE1A)
    rcv1 = f"{TABLE1A} --only {findings.SAMPLE}"
    yield Claim("NVDM has the lowest perplexity on RCV1-v2 (563 and 550).", findings.lowest_on_sample, rcv1)
    yield Claim(
        "On RCV1-v2, NVDM with K = 50 is better than fDARN with K = 200.", findings.fifty_beats_two_hundred, rcv1
    )
    yield Claim(
        "Continuous latent variables are more expressive than discrete ones.",
        findings.continuous,
        f"{TABLE1A} --only -50-recommended",
    )
    yield Claim(
        "Latent dimensions are interpretable topics (Table 2).", findings.topic_words, "varitext reproduce table2"
    )


def answers() -> Iterator[Claim]:
    yield Claim("Numbers of questions and pairs (Table 3).", findings.numbers_of_questions, "varitext reproduce table3")
    yield Claim(
        "WikiQA is less biased towards lexical overlap than QASent.",
        findings.lexical_bias,
        f"{TABLE4} --only overlap",
    )
    yield Claim(
        "MAP varies less with more samples of h; 20 are enough (Figure 3).",
        findings.spread_by_samples,
        "varitext reproduce map-by-samples",
    )
    for corpus, name in CORPORA.items():
        for variant in ("", " + Cnt"):
            yield from (table4_cell(corpus, model, variant) for model in OWN_MODELS)
        text = f"{name}: published systems of Table 4."
        yield Claim(text, partial(findings.published, corpus), f"{TABLE4} --only {corpus}")
    yield Claim(
        "QASent's early evaluation script gives values that are about 4 % too low.",
        findings.early_script,
        f"{TABLE4} --only qasent",
    )
    yield Claim(
        "QASent: LSTM is about 7 % MAP and 6 % MRR above the deep CNN.",
        findings.beats_deep_cnn,
        f"{TABLE4} --only qasent",
    )
    yield Claim("NASM is better than LSTM + Att.", partial(findings.order, "NASM", "LSTM + Att"), TABLE4)
    yield Claim("With counts, too.", partial(findings.order, "NASM + Cnt", "LSTM + Att + Cnt"), TABLE4)
    yield Claim(
        "WikiQA: all three are far above earlier distributional models.",
        findings.beats_distributional,
        f"{TABLE4} --only wikiqa",
    )
    yield Claim("Counts improve NASM.", partial(findings.order, "NASM + Cnt", "NASM"), f"{TABLE4} --only nasm-")
    yield from figures()


def table4_cell(corpus: str, model: str, variant: str) -> Claim:
    name = f"{titles()[model]}{variant}"
    theirs = ANSWERS[corpus][name]
    text = f"{CORPORA[corpus]}, {name}: MAP {theirs.map:.3f}, MRR {theirs.mrr:.3f}."
    return Claim(text, partial(findings.cell, corpus, name), f"{TABLE4} --only {corpus}-{model}-")


def figures() -> Iterator[Claim]:
    attention = "varitext reproduce attention"
    yield Claim("On incorrect answers neither attends to useful words.", findings.attention_on_wrong, attention)
    yield Claim(
        "NASM's attention is more peaked than that of LSTM + Att (Figure 4).", findings.attention_peaks, attention
    )
    yield Claim(
        "p(h \\| q) is wider for *how* than for *what* questions (Figure 5).",
        findings.how_is_wide,
        "varitext reproduce hinton",
    )
    yield Claim(
        "*How* questions have the lowest MAP of five kinds.", findings.how_is_hard, "varitext reproduce question-types"
    )


def discussion() -> Iterator[Claim]:
    yield Claim("Variational inference improves both tasks.", findings.improves_both, f"{TABLE1A}; {TABLE4}")
    yield Claim(
        "It guards against overfitting: LSTM + Att overfits from iteration 20, NASM from 35.",
        findings.overfits_later,
        "varitext reproduce overfitting",
    )
    yield Claim("The KL acts on μ as an L2 regulariser.", findings.like_l2, KL_TERM)
    yield Claim(
        "p(h \\| q) is a moving baseline: prior and posterior restrain each other.",
        findings.restrained,
        f"{TABLE4} --only nasm-",
    )
    yield Claim(
        "Gradients of NASM are more stable than those of LSTM + Att.",
        findings.stable_gradients,
        "varitext reproduce gradients",
    )
    yield Claim("σ matters little: attention follows μ.", findings.follows_mean, ATTENTION)


def appendices() -> Iterator[Claim]:
    yield Claim(
        "A: a map of NVDM's vectors separates newsgroups, SWV's less.", findings.tsne, "varitext reproduce tsne"
    )
    yield Claim(
        "B: the networks and bounds in full.",
        shown("all 51 equations are [mapped to code](reference/equations.md)"),
        "pytest tests/test_docs.py -k equation",
    )
    yield Claim("C: NVDM costs O(LK² + KSV) per document.", findings.cost_of_nvdm, COMPLEXITY)
    yield Claim("C: NVDM costs as much as a deterministic auto-encoder.", findings.same_as_auto_encoder, COMPLEXITY)
    yield Claim("C: NASM costs only O(LK²) more than LSTM + Att.", findings.cost_of_nasm, COMPLEXITY)


SECTIONS = {
    "introduction": introduction,
    "framework": framework,
    "nvdm": nvdm,
    "nasm": nasm,
    "documents": documents,
    "answers": answers,
    "discussion": discussion,
    "appendices": appendices,
}
