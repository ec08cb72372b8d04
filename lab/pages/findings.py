"""Verdicts on each claim of the paper, derived by rule from the results, with the supporting numbers.

exceeded         better than the paper's value by more than our error
reproduced       within our error of the paper's value; or an order that holds and is significant (p < .05)
in direction     an order that holds but is not significant; or one that holds on a sample of the paper's corpus
not reproduced   anything else
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from lab.pages.answers import error_over_questions
from lab.pages.reading import Result, mean, measured, records_of, results_of
from varitext import paper
from varitext.errors import InputError
from varitext.evaluation.significance import paired_randomisation_test
from varitext.models.documents import DOCUMENT_MODELS
from varitext.paper import ANSWER_SCALE, ANSWERS
from varitext.reproduce import complexity, kl_term, overfitting, table1b, table3
from varitext.reproduce.answer_fits import OWN_MODELS, titles
from varitext.reproduce.document_fits import NEWSGROUPS
from varitext.reproduce.document_fits import RCV1_SAMPLE as SAMPLE
from varitext.reproduce.map_by_samples import SAMPLES
from varitext.reproduce.table4 import rows_of

EXCEEDED, REPRODUCED, IN_DIRECTION, NOT_REPRODUCED = "exceeded", "reproduced", "in direction", "not reproduced"
NOT_MEASURED = "not measured"
VERDICTS = (EXCEEDED, REPRODUCED, IN_DIRECTION, NOT_REPRODUCED, NOT_MEASURED)  # from best to worst
SIGNIFICANT = 0.05
CORPORA = {"qasent": "QASent", "wikiqa": "WikiQA"}


class Finding(NamedTuple):
    verdict: str
    evidence: str


# Rules


def finding_of(measure: Callable[[], Finding]) -> Finding:
    try:
        return measure()
    except InputError:  # no results yet
        return Finding(NOT_MEASURED, "")


def by_rule(holds: bool, evidence: str, otherwise: str = NOT_REPRODUCED) -> Finding:
    return Finding(REPRODUCED if holds else otherwise, evidence)


def against_value(ours: float, theirs: float, error: float, lower_is_better: bool = False) -> str:
    gain = theirs - ours if lower_is_better else ours - theirs
    return EXCEEDED if gain > error else REPRODUCED if gain >= -error else NOT_REPRODUCED


def of_order(differences: list[float], p_values: list[float]) -> str:
    """Whether all differences are positive, and significant."""
    if min(differences) <= 0:
        return NOT_REPRODUCED
    return REPRODUCED if max(p_values) < SIGNIFICANT else IN_DIRECTION


def worst(verdicts: list[str]) -> str:
    return max(verdicts, key=VERDICTS.index)


def shown(evidence: str) -> Callable[[], Finding]:
    """A statement about the construction of the models: reproduced if its test passes."""
    return lambda: Finding(REPRODUCED, evidence)


# Documents


def found(experiment: str, **settings: object) -> list[Result]:
    results = results_of(experiment, **settings)
    if not results:
        raise InputError(f"{experiment} has no results with {settings}")
    return results


def fits(model: str, latent_dim: int = 50, preset: str = "recommended", corpus: str = NEWSGROUPS) -> list[Result]:
    return found("table1a", corpus=corpus, model=model, latent_dim=latent_dim, preset=preset)


def perplexity(model: str, latent_dim: int = 50, preset: str = "recommended", corpus: str = NEWSGROUPS) -> float:
    return mean(fits(model, latent_dim, preset, corpus), "per_document_perplexity")


def as_trained(model: str, latent_dim: int = 50) -> float:
    """Perplexity with the inference network's own q, as the paper evaluates."""
    results = fits(model, latent_dim)
    return mean(results, "unrefined" if "unrefined" in results[0] else "per_document_perplexity")


def nvdm_value(latent_dim: int) -> Finding:
    """The paper's objective and network beside its value; the error is half of the bootstrap interval."""
    results, theirs = fits("nvdm", latent_dim, "paper"), paper.PERPLEXITY[NEWSGROUPS]["nvdm", latent_dim]
    ours = mean(results, "per_document_perplexity")
    error = float(np.mean([np.ptp(one["per_document_interval_95"]) / 2 for one in results]))
    evidence = f"{ours:.0f} ± {error:.0f}; our default for NVDM: {perplexity('nvdm', latent_dim):.0f}"
    return Finding(against_value(ours, theirs, error, lower_is_better=True), evidence)


OTHERS = ("lda", "rsm", "docnade", "sbn", "fdarn")


def baselines() -> Finding:
    ours = {model: perplexity(model) for model in OTHERS}
    verdicts = [
        against_value(value, paper.PERPLEXITY[NEWSGROUPS][model, 50], 0.01 * value, lower_is_better=True)
        for model, value in ours.items()
    ]
    return Finding(worst(verdicts), ", ".join(f"{title(model)} {value:.0f}" for model, value in ours.items()))


def lowest() -> Finding:
    """NVDM against every other system: by the paper's objective, and by ours."""
    plain, default = perplexity("nvdm", preset="paper"), perplexity("nvdm")
    plain_others = {model: as_trained(model) for model in OTHERS}
    others = {model: perplexity(model) for model in OTHERS}
    (next_plain, next_one) = (min(values, key=values.__getitem__) for values in (plain_others, others))
    evidence = (
        f"paper's objective: NVDM {plain:.0f}, best other {title(next_plain)} {plain_others[next_plain]:.0f}; "
        f"best of each: NVDM {default:.0f}, {title(next_one)} {others[next_one]:.0f}"
    )
    if plain < min(plain_others.values()):
        return Finding(REPRODUCED, evidence)
    return Finding(IN_DIRECTION if default < min(others.values()) else NOT_REPRODUCED, evidence)


def lowest_on_sample() -> Finding:
    """NVDM against every other system measured on the sample, each with its better K."""
    runs = [one for one in records_of("table1a") if one["settings"]["corpus"] == SAMPLE]
    sizes = sorted({(one["settings"]["model"], one["settings"]["latent_dim"]) for one in runs})
    values = {(model, size): perplexity(model, size, corpus=SAMPLE) for model, size in sizes if model in OTHERS}
    ours = {size: perplexity("nvdm", size, corpus=SAMPLE) for model, size in sizes if model == "nvdm"}
    size, (following, other) = min(ours, key=ours.__getitem__), min(values, key=values.__getitem__)
    evidence = (
        f"sample of 20,737 documents: NVDM {ours[size]:.0f} (K = {size}), "
        f"{title(following)} {values[following, other]:.0f} (K = {other})"
    )
    if missing := [title(model) for model in OTHERS if model not in {model for model, _ in values}]:
        evidence += f"; not measured: {', '.join(missing)}"
    return Finding(IN_DIRECTION if ours[size] < values[following, other] else NOT_REPRODUCED, evidence)


def fifty_beats_two_hundred() -> Finding:
    ours, theirs = perplexity("nvdm", corpus=SAMPLE), perplexity("fdarn", 200, corpus=SAMPLE)
    evidence = f"sample: NVDM, K = 50, {ours:.0f}; fDARN, K = 200, {theirs:.0f}"
    return Finding(IN_DIRECTION if ours < theirs else NOT_REPRODUCED, evidence)


def lowest_on_both() -> Finding:
    both = {"20 Newsgroups": lowest(), "RCV1-v2": finding_of(lowest_on_sample)}
    evidence = "; ".join(f"{name}: {one.verdict}" for name, one in both.items())
    return Finding(worst([one.verdict for one in both.values()]), f"{evidence} ([below](#documents-section-52))")


def numbers_of_documents() -> Finding:
    n_test = fits("nvdm")[0]["n_documents"]
    return Finding(IN_DIRECTION, f"the authors' files have 11,268 and {n_test:,} that are not empty")


def discrete() -> Finding:
    ours, unigram = perplexity("nvdm_categorical"), mean(fits("nvdm_categorical"), "unigram_per_document_perplexity")
    return by_rule(ours < unigram, f"categorical NVDM {ours:.0f}; unigram {unigram:.0f}")


def continuous() -> Finding:
    gaussian, categorical = perplexity("nvdm"), perplexity("nvdm_categorical")
    binary = min(perplexity("sbn"), perplexity("fdarn"))
    evidence = f"Gaussian h {gaussian:.0f}, binary h {binary:.0f}, categorical h {categorical:.0f}"
    return by_rule(gaussian < min(binary, categorical), evidence)


def bounds() -> Finding:
    results = fits("nvdm")
    bound, weighted = (mean(results, f"{name}per_document_perplexity") for name in ("", "iwae_"))
    return by_rule(weighted <= bound, f"NVDM: bound {bound:.1f}, importance-weighted {weighted:.1f}")


def amortisation() -> Finding:
    refined, own = perplexity("nvdm"), as_trained("nvdm")
    return by_rule(own / refined < 1.05, f"test documents: {own:.0f} by the network, {refined:.0f} with q refined")


def nearest_words() -> Finding:
    (nvdm, docnade) = (found("table1b", model=model)[0]["nearest"] for model in table1b.PAPER)
    shared = [
        sum(len({*ours[word]} & {*theirs.split()}) for word, theirs in zip(table1b.WORDS, listed, strict=True))
        for ours, listed in zip((nvdm, docnade), table1b.PAPER.values(), strict=True)
    ]
    return by_rule(shared[0] >= 15, f"{shared[0]} of its 30 words (docNADE: {shared[1]})", IN_DIRECTION)


def topic_words() -> Finding:
    """How far the paper's ten words of each topic lie out on the best latent dimension, and coherence beside LDA."""
    nvdm, lda = (found("table2", **setting)[0] for setting in ({"preset": "paper-network"}, {"model": "lda"}))
    weights = [one["mean_weight"] for one in nvdm["matched"].values()]
    found_again = sum(weight > 2 for weight in weights)
    evidence = f"{found_again} of 5 topics found; NPMI of all dimensions {nvdm['npmi']:.3f}, of LDA's {lda['npmi']:.3f}"
    verdict = IN_DIRECTION if found_again > len(weights) / 2 else NOT_REPRODUCED
    return Finding(REPRODUCED if found_again == len(weights) and nvdm["npmi"] > 0 else verdict, evidence)


def tsne() -> Finding:
    nvdm, swv = (found("tsne", model=model)[0]["accuracy_in_map"] for model in ("nvdm", "swv"))
    return by_rule(nvdm > swv, f"ten nearest on the map vote right: NVDM {nvdm:.3f}, SWV {swv:.3f}")


def title(model: str) -> str:
    return DOCUMENT_MODELS[model].title


# The KL and gradients of NVDM (experiment kl-term)


def gradient_variance(estimator: str) -> Finding:
    variances = [one["gradient_variance"] for one in found("kl-term", objective="KL")]
    ratio = mean(variances, estimator) / mean(variances, kl_term.CLOSED_FORM)
    return by_rule(ratio > 1, f"variance of the gradient without it: {ratio:.3g} times as large")


def kl_regularises() -> Finding:
    with_kl, without = (mean(found("kl-term", objective=name), "completion_perplexity") for name in ("KL", "none"))
    return by_rule(
        with_kl < without, f"completion perplexity of test documents {with_kl:.0f}; without KL {without:.0f}"
    )


def like_l2() -> Finding:
    norms = {name: mean(found("kl-term", objective=name), "squared_mean") for name in ("KL", "L2", "none")}
    nearer = abs(norms["KL"] - norms["L2"]) < abs(norms["KL"] - norms["none"])
    values = f"{norms['KL']:.0f} with the KL, {norms['L2']:.0f} with ½‖μ‖² instead, {norms['none']:.0f} with neither"
    return by_rule(nearer, f"∂KL/∂μ = μ; ‖μ‖² is {values}")


# Answers


@cache
def table4_rows(corpus: str) -> dict[str, list[Result]]:
    records = [one for one in records_of("table4") if one["settings"]["corpus"] == corpus]
    return rows_of(records)


def row(corpus: str, name: str) -> list[Result]:
    rows = table4_rows(corpus)
    if name not in rows:
        raise InputError(f"table4 has no {name} on {corpus}")
    return rows[name]


def scaled(corpus: str, name: str, measure: str) -> float:
    """On the paper's scale."""
    return ANSWER_SCALE[corpus] * mean(row(corpus, name), measure)


def cell(corpus: str, name: str) -> Finding:
    """MAP and MRR against the paper's within a standard error over questions; the worse verdict counts."""
    verdicts, ours, errors = [], [], []
    for measure, of_questions, theirs in zip(
        ("map", "mrr"), ("average_precision", "reciprocal_rank"), ANSWERS[corpus][name], strict=True
    ):
        ours.append(scaled(corpus, name, measure))
        errors.append(ANSWER_SCALE[corpus] * error_over_questions(row(corpus, name), of_questions))
        verdicts.append(against_value(ours[-1], theirs, errors[-1]))
    evidence = " / ".join(f"{value:.3f} ± {error:.3f}" for value, error in zip(ours, errors, strict=True))
    return Finding(worst(verdicts), evidence)


def published(corpus: str) -> Finding:
    own = {f"{titles()[model]}{variant}" for model in OWN_MODELS for variant in ("", " + Cnt")}
    verdicts = {name: cell(corpus, name).verdict for name in ANSWERS[corpus] if name not in own}
    missed = [name for name, verdict in verdicts.items() if verdict == NOT_REPRODUCED]
    evidence = f"{len(verdicts) - len(missed)} of {len(verdicts)} at or above, within a standard error"
    return Finding(worst([*verdicts.values()]), evidence + (f"; below: {', '.join(missed)}" if missed else ""))


@cache
def paired(corpus: str, first: str, second: str) -> tuple[float, float]:
    """The difference of MAP and its p."""
    ours, theirs = ([one["average_precision"] for one in row(corpus, name)] for name in (first, second))
    tested = paired_randomisation_test(ours, theirs)
    return tested.difference, tested.p_value


def order(first: str, second: str) -> Finding:
    """Whether the first ranks better on both corpora."""
    tested = {corpus: paired(corpus, first, second) for corpus in CORPORA}
    evidence = "; ".join(f"{CORPORA[corpus]} {change:+.3f} MAP (p = {p:.2f})" for corpus, (change, p) in tested.items())
    differences, p_values = zip(*tested.values(), strict=True)
    return Finding(of_order([*differences], [*p_values]), evidence)


def above_all_published() -> Finding:
    """NASM + Cnt against the best value published before the paper, on the paper's scale."""
    verdicts, evidence = [], []
    own = {f"{titles()[model]}{variant}" for model in OWN_MODELS for variant in ("", " + Cnt")}
    for corpus, corpus_name in CORPORA.items():
        best = max(value.map for name, value in ANSWERS[corpus].items() if name not in own)
        ours = scaled(corpus, "NASM + Cnt", "map")
        verdicts.append(ours > best)
        evidence.append(f"{corpus_name} {ours:.3f} (best before: {best:.3f})")
    return by_rule(all(verdicts), "; ".join(evidence), IN_DIRECTION if any(verdicts) else NOT_REPRODUCED)


def beats_deep_cnn() -> Finding:
    difference, p = paired("qasent", "LSTM", "Deep CNN")
    mrr = scaled("qasent", "LSTM", "mrr") - scaled("qasent", "Deep CNN", "mrr")
    evidence = f"{ANSWER_SCALE['qasent'] * difference:+.3f} MAP (p = {p:.2f}), {mrr:+.3f} MRR"
    return Finding(of_order([difference], [p]), evidence)


def beats_distributional() -> Finding:
    """The lowest of our three models against the best earlier distributional model."""
    ours = {model: scaled("wikiqa", titles()[model], "map") for model in OWN_MODELS}
    lowest_one, theirs = min(ours.values()), ANSWERS["wikiqa"]["Bigram-CNN"].map
    measured_here = scaled("wikiqa", "Bigram-CNN", "map")
    verdict = NOT_REPRODUCED if lowest_one <= theirs else REPRODUCED if lowest_one > measured_here else IN_DIRECTION
    return Finding(verdict, f"lowest {lowest_one:.3f}; Bigram-CNN {theirs:.3f}, ours {measured_here:.3f}")


def lexical_bias() -> Finding:
    found = {corpus: mean(row(corpus, "regression on counts"), "map") for corpus in CORPORA}
    evidence = ", ".join(f"{CORPORA[corpus]} {value:.3f}" for corpus, value in found.items())
    return by_rule(found["qasent"] > found["wikiqa"], f"MAP of word counts alone: {evidence}")


def early_script() -> Finding:
    lost = 1 - ANSWER_SCALE["qasent"]
    return Finding(IN_DIRECTION, f"4 of 72 questions that always count as wrong: {lost:.1%} lower")


def numbers_of_questions() -> Finding:
    wrong = []
    for (corpus, part), theirs in table3.PAPER.items():
        (ours,) = found("table3", corpus=corpus, part=part)
        if (ours["questions"], ours["pairs"]) != theirs:
            wrong.append(f"{CORPORA[corpus]} {part} has {ours['questions']} questions, not {theirs[0]}")
    evidence = f"{len(table3.PAPER) - len(wrong)} of {len(table3.PAPER)} parts agree; {'; '.join(wrong)}"
    return Finding(REPRODUCED if not wrong else IN_DIRECTION, evidence)


def spread_by_samples() -> Finding:
    draws = [one["map"] for one in found("map-by-samples", model="nasm")]
    std = {n: float(np.mean([np.std(one[str(n)], ddof=1) for one in draws])) for n in SAMPLES}
    evidence = ", ".join(f"{std[n]:.5f} with {n}" for n in (1, 20, 50))
    return by_rule(std[1] > std[20] >= std[50], f"std of MAP {evidence}")


def attention_peaks() -> Finding:
    nasm, plain = (mean_of_pair("relative_entropy", model) for model in ("nasm", "lstm_attention"))
    evidence = f"entropy relative to equal weights: NASM {nasm[0]:.3f}, LSTM + Att {plain[0]:.3f} (lower: more peaked)"
    return by_rule(nasm[0] < plain[0], evidence)


def attention_on_wrong() -> Finding:
    right, wrong = mean_of_pair("relative_entropy", "lstm_attention")
    return by_rule(right < wrong, f"relative entropy, LSTM + Att: correct answers {right:.3f}, incorrect {wrong:.3f}")


def mean_of_pair(name: str, model: str) -> np.ndarray:
    values: np.ndarray = np.mean([one[name] for one in found("attention", model=model)], 0)
    return values


def how_is_wide() -> Finding:
    results = found("hinton", model="nasm")
    means = {word: mean(results, word, "mean") for word in ("how", "what")}
    spread = mean(results, "what", "spread_over_questions")
    evidence = f"mean log std: how {means['how']:.4f}, what {means['what']:.4f}; over questions ± {spread:.4f}"
    return by_rule(means["how"] > 0 > means["what"], evidence)


def how_is_hard() -> Finding:
    results = found("question-types", model="nasm")
    maps = {word: mean(results, word, "map") for word in ("how", "what", "who", "when", "where")}
    other = min((word for word in maps if word != "how"), key=maps.__getitem__)
    evidence = f"how {maps['how']:.3f} (paper: .524); lowest of the others, {other}, {maps[other]:.3f}"
    return by_rule(maps["how"] < maps[other], evidence)


def overfits_later() -> Finding:
    turns = {
        model: float(np.mean([np.argmin(one["dev_log_loss"]) for one in found("overfitting", model=model)]))
        for model in overfitting.PAPER
    }
    evidence = f"lowest dev log loss at epoch {turns['lstm_attention']:.1f}, NASM {turns['nasm']:.1f}"
    return by_rule(turns["nasm"] > 1.2 * turns["lstm_attention"], evidence)


def improves_both() -> Finding:
    (differences, p_values) = zip(*(paired(corpus, "NASM", "LSTM + Att") for corpus in CORPORA), strict=True)
    answers = ", ".join(f"{CORPORA[corpus]} {one:+.3f}" for corpus, one in zip(CORPORA, differences, strict=True))
    documents = lowest()
    verdict = worst([of_order([*differences], [*p_values]), documents.verdict])
    return Finding(verdict, f"documents: {documents.verdict}; NASM against LSTM + Att: {answers} MAP")


def restrained() -> Finding:
    kl = mean([one["latent"] for one in found("table4", corpus="wikiqa", model="nasm")], "dev_kl")
    spread = mean(found("hinton", model="nasm"), "what", "spread_over_questions")
    evidence = f"they coincide: KL {kl:.1e} nats; the log std of p(h \\| q) differs by {spread:.4f} between questions"
    return by_rule(kl > 0.01, evidence, IN_DIRECTION)


def stable_gradients() -> Finding:
    """Spread over minibatches relative to the mean gradient."""
    plain, h, posterior_mean = (
        gradient_noise(*of) for of in (("lstm_attention", "query"), ("nasm", "query"), ("nasm", "mean"))
    )
    evidence = f"std over minibatches / mean gradient: s_q {plain:.1f}; NASM's h {h:.1f}, μ {posterior_mean:.1f}"
    if max(h, posterior_mean) < plain:
        return Finding(REPRODUCED, evidence)
    return Finding(IN_DIRECTION if min(h, posterior_mean) < plain else NOT_REPRODUCED, evidence)


def gradient_noise(model: str, name: str) -> float:
    """A median over epochs, a mean over seeds."""
    return float(np.mean([np.median(one[name]["noise_to_signal"]) for one in found("gradients", model=model)]))


def multi_modal() -> Finding:
    """Different top words mean little if all weights are nearly equal, so the weights must move, too."""
    results = found("stochastic-attention", model="nasm")
    words, moved = mean(results, "top_words"), mean(results, "over_samples")
    evidence = f"in 20 samples {words:.1f} words are on top at some time; {moved:.1%} of the attention moves"
    return Finding(REPRODUCED if words > 1.5 and moved > 0.05 else NOT_REPRODUCED, evidence)


def follows_mean() -> Finding:
    results = found("stochastic-attention", model="nasm")
    samples, questions = mean(results, "over_samples"), mean(results, "over_questions")
    evidence = f"attention that moves with another question's μ {questions:.2%}, with the sample of h {samples:.2%}"
    return by_rule(questions > samples, evidence)


# Cost


def cost_of_nasm() -> Finding:
    (found_here,) = found("complexity", models="answers")
    nasm, plain = found_here["nasm"], found_here["lstm_attention"]
    ratio, parameters = nasm["update"] / plain["update"], nasm["parameters"] - plain["parameters"]
    return by_rule(ratio < 1.25, f"an update takes {ratio:.2f} times as long; {parameters:,} more parameters")


def cost_of_nvdm() -> Finding:
    """Measured exponents are not above those of the formula, which is an upper bound."""
    (one,) = found("complexity", models="documents")
    pairs = [*zip(complexity.GROWTHS, one["growth"], strict=True)]
    exponents = ", ".join(
        f"{growth.letter} {measured['exponent']:.2f} ({growth.exponent})" for growth, measured in pairs
    )
    holds = all(measured["exponent"] < growth.exponent + 0.25 for growth, measured in pairs)
    return by_rule(holds, f"exponents (formula's): {exponents}")


def same_as_auto_encoder() -> Finding:
    (one,) = found("complexity", models="documents")
    ratio = one["update"] / one["auto_encoder"]
    return by_rule(ratio < 1.15, f"an update takes {ratio:.2f} times as long")


def speed() -> Finding:
    reached = measured("nvdm")["to_836"]
    return Finding(REPRODUCED, f"NVDM passes 836 after {reached['seconds']:.1f} s on two cores, one sample per update")
