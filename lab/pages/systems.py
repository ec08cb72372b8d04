"""Tables of the benchmark, of scale, of the service, and of tests; README.md's comparison with other tools."""

import math
from collections import Counter
from collections.abc import Sequence

from lab.benchmark.growth import growth_table, softmax_table
from lab.pages.reading import Result, bullets, mean, measured, records_of, results_of, table_of
from varitext.reproduce.engine import markdown_table

NOTHING = "–"
FACTS = [  # about the tools
    ["held-out perplexity of new documents", "yes", "no", "gensim only", NOTHING],
    ["uncertainty of document vectors", "yes", "no", "no", NOTHING],
    ["pretrained knowledge of words", "`minilm` only", "yes", "no", "yes"],
    ["topic names by a language model", "no", "yes", "no", NOTHING],
    ["calibrated P(right), P(no answer)", "yes", NOTHING, NOTHING, "no"],
    ["in use on GPUs", "no", "yes", "no", "yes"],
]
FAULTS = {
    "kills": "`kill -9` during a fit, then `--resume`",
    "torchrun": "the same under torchrun",
    "folders": "damaged model, checkpoint and shard folders",
    "strangers": "folders made by a stranger, within 1 GB and 10 s of processor time",
    "inputs": "hostile texts, counts and requests",
    "disk": "full, limited and read-only disks",
    "races": "two fits into one folder; a clock that goes backwards or jumps ahead",
}
LOST = {  # by the beginning of an outcome
    "nothing": "the work so far",
    "what the encoder had read": "what it read in the last 2 s",
    "a checkpoint": "the work since the last checkpoint",
    "a loadable model with": "the work since the last checkpoint",
}
STATUS = {"200": "answered", "503": "refused with a 503"}


def system_tables() -> dict[str, str]:
    points = records_of("growth")
    return {
        "comparison": comparison(),
        "peers": table_of("benchmark"),
        "peer-settings": table_of("peer-settings"),
        "growth": growth_table(points),
        "learning-curves": table_of("learning-curves"),
        "softmax": softmax_table(points),
        "estimate": estimate(measured("scaling_estimate")),
        "large": large(measured("large_corpus")),
        "load": load(measured("serve_load")),
        "index": index(measured("index_search")),
        "kernels": kernels(measured("rounding")["kernels"]),
        "faults": faults(measured("faults")),
        "mutants": mutants(measured("mutations")),
    }


def comparison() -> str:
    ours, gensim, tomotopy = (
        f"{mean(results_of('benchmark', system=name), 'per_document_perplexity'):,.0f}"
        for name in ("varitext", "gensim", "tomotopy")
    )
    default = mean(results_of("default-ranker", corpus="wikiqa", variant="one network"), "map")
    tuned = mean(results_of("minilm", row="tuned"), "map")
    tuned_map = f"{tuned:.3f} (`minilm_tuned`)"
    seconds, memory = _topics("processor_seconds", 20, ".0f"), _topics("peak_memory_mb", 20, ",.0f")
    costs = [f"{used} s, {held} MB" for used, held in zip(seconds, memory, strict=True)]
    nmi, (other,) = _topics("nmi", 50, ".3f"), _topics("nmi", 50, ".3f", ["bertopic_kmeans"])
    rows = [
        ["perplexity, 20 Newsgroups (lower is better)", ours, "none", f"{gensim}, {tomotopy}", NOTHING],
        ["coherence (NPMI) of 20 topics", *_topics("npmi", 20, ".3f"), NOTHING],
        ["agreement with newsgroups (NMI), 50 topics", nmi[0], f"{nmi[1]}, k-means {other}", nmi[2], NOTHING],
        ["cost of 20 topics of 11,314 articles", *costs, NOTHING],
        ["MAP on WikiQA (higher is better)", f"{default:.3f}", NOTHING, NOTHING, tuned_map],
    ]
    return markdown_table(["", "varitext", "BERTopic", "LDA (gensim, tomotopy)", "cross-encoders"], rows + FACTS)


def _topics(
    measure: str, topics: int, form: str, systems: Sequence[str] = ("regions_dcm", "bertopic", "lda")
) -> list[str]:
    """Topics of the default model, BERTopic and tomotopy's LDA, means over seeds."""
    found = [
        [one for one in results_of("topics", corpus="20newsgroups", system=system, topics=topics) if one.get(measure)]
        for system in systems
    ]
    return [f"{mean(results, measure):{form}}" if results else "not measured" for results in found]


def estimate(found: Result) -> str:
    one, assumed = found["measured"], found["assumed"]
    micro = {name: 1e6 * one[name] for name in one if name.startswith("seconds_per_")}
    costs = [
        ["training, per document", f"{micro['seconds_per_document']:.0f} µs"],
        [
            "passes over the corpus before training, per document",
            f"{micro['seconds_per_document_before_training']:.1f} µs",
        ],
        ["held-out score, per document", f"{micro['seconds_per_held_out_document']:.0f} µs"],
        ["noise, per number", f"{1000 * micro['seconds_per_number_of_noise']:.1f} ns"],
        ["gradient", f"{one['gradient_bytes'] / 1e6:.2f} MB"],
        ["its sum over two processes on one machine", f"{1000 * one['two_process_sum_core_seconds']:.1f} ms of a core"],
    ]
    parts = list(found["estimates"][0]["seconds"])
    totals = [
        [
            f"{each['workers']:,}",
            f"{each['documents_per_second']:,.0f}",
            f"{each['updates']:,.0f}",
            f"{each['hours']:,.2f}",
            f"{each['core_hours']:,.0f}",
            f"${each['dollars']:,.2f}",
        ]
        for each in found["estimates"]
    ]
    return "\n\n".join(
        [
            f"Measured on one core, with documents of {one['distinct_words_per_document']:.0f} distinct words from "
            f"{one['vocabulary']:,} and the recommended NVDM, K = {one['latent_dim']}:",
            markdown_table(["", ""], costs),
            f"Assumed: {assumed['network_bytes_per_second'] * 8 / 1e9:.0f} Gbit/s and "
            f"{1e6 * assumed['latency_seconds']:.0f} µs per message between machines, "
            f"${assumed['dollars_per_core_hour']:.2f} per core hour. Estimate for "
            f"{assumed['documents'] / 1e6:.0f} million documents, {assumed['epochs']} epochs, "
            f"{assumed['documents_per_worker_and_step']} documents per worker and step:",
            markdown_table(
                ["workers (one core each)", "documents per second", "updates", "hours", "core hours", "cost"], totals
            ),
            "Where the time goes, in minutes:",
            markdown_table(["workers", *parts], [_minutes(each) for each in found["estimates"]]),
        ]
    )


def _minutes(found: Result) -> list[str]:
    minutes = {name: f"{seconds / 60:,.1f}" for name, seconds in found["seconds"].items()}
    minutes[found["bottleneck"]] = f"**{minutes[found['bottleneck']]}**"
    return [f"{found['workers']:,}", *minutes.values()]


def large(found: Result) -> str:
    best, fit, held_out = found["best"], found["fit"], found["held_out"]
    low, high = (best[f"per_document_perplexity_at_{end}"] for end in ("least", "most"))
    rows = [
        ["best possible", f"{low:.2f} to {high:.2f}"],
        [
            "varitext, importance-weighted",
            f"{held_out['iwae_per_document_perplexity']:.2f}: {found['above_best']:.1%} above",
        ],
        ["varitext, bound", f"{held_out['per_document_perplexity']:.2f}: {found['bound_above_best']:.1%} above"],
        ["unigram", f"{held_out['unigram_per_document_perplexity']:.0f}"],
    ]
    about = (
        f"{found['documents']:,} documents of {found['drawing']['distinct_words_per_document']:.0f} distinct words, "
        f"{found['words']:,} words, {found['latent_dim']} dimensions, {fit['epochs']} epochs in "
        f"{fit['seconds'] / 60:.0f} minutes on {found['threads']} thread{'s'[: found['threads'] != 1]}; peak memory "
        f"**{fit['peak_megabytes']:,.0f} MB** for the fit and {held_out['peak_megabytes']:,.0f} MB for the evaluation."
    )
    return f"{about}\n\n{markdown_table(['held-out perplexity per document', ''], rows)}"


def load(found: Result) -> str:
    clients, mixed, overload, stop = (found[name] for name in ("clients", "mixed", "overload", "stop"))
    memory = mixed["memory_mb"]
    single = ", ".join(
        f"{name} {values['median']:.0f} ms ({values['processor']:.0f})"
        for name, values in found["single_request_ms"].items()
    )
    kinds = [*mixed["answer_ms_by_call"]]
    lines = [
        f"Single requests (a page of text, or 15 candidates), median, with processor time in brackets: {single}.",
        f"{clients} clients, {', '.join(kinds[:-1])} and {kinds[-1]} in equal parts, for {mixed['seconds']:.0f} s: "
        f"{_outcomes(mixed)}; {mixed['answered_per_second']:,.0f} per second, median "
        f"{mixed['answer_ms']['median']:,.0f} ms, 99 % within {mixed['answer_ms']['99 %']:,.0f} ms.",
        f"{clients} clients that assign {overload['texts']} pages each: {_outcomes(overload)}. Refusals take "
        f"{overload['refusal_ms']['median']:.0f} ms (median); 99 % of the answers came within "
        f"{overload['answer_ms']['99 %'] / 1000:.1f} s.",
        f"Memory of the server: {memory['before']:.0f} MB before, {memory['most']:.0f} MB at most, "
        f"{memory['after']:.0f} MB after.",
        f"Stopped with {stop['in_flight']} requests in flight: {_outcomes(stop)}; exited after "
        f"{stop['seconds_to_exit']:.1f} s.",
    ]
    first = " with priority over other work" if found["niceness"] < 0 else ""
    heading = (
        f"On {found['processors']} processors of a shared machine{first}, one for the server and one for the clients"
    )
    return f"{heading} (`python -m lab serve_load`):\n\n{bullets(lines)}"


def _outcomes(found: Result) -> str:
    return " and ".join(f"{number:,} {STATUS.get(status, status)}" for status, number in found["outcomes"].items())


def index(found: Result) -> str:
    search = found["search_milliseconds"]
    lines = [
        f"Write: {found['write_seconds']:.0f} s and {found['write_peak_megabytes']:.0f} MB of memory; the folder has "
        f"{found['folder_megabytes']:.0f} MB.",
        f"Open: {found['open_milliseconds']:.0f} ms. Find 100 for a question: {search['median']:.0f} ms (median), "
        f"{search['slowest']:.0f} ms (slowest of {found['questions']}).",
        f"Add or delete one document: {found['add_one_milliseconds']:.0f} and "
        f"{found['delete_one_milliseconds']:.0f} ms.",
    ]
    heading = f"{found['documents']:,} short texts, processor time on one thread (`python -m lab index_search`):"
    return f"{heading}\n\n{bullets(lines)}"


def kernels(found: dict[str, dict[str, float]]) -> str:
    rows = [[name, f"{one['time']:.2f}", str(one["batches_with_other_bits"])] for name, one in found.items()]
    return markdown_table(["`MKL_CBWR`", "CPU time", "batches of 63 with different bits"], rows)


def faults(found: dict[str, dict[str, Result]]) -> str:
    """Faults, number of cases and what was lost; kills are listed by what was fitted."""
    rows: dict[str, list[Result]] = {}
    for kind, parts in found.items():
        for name, part in parts.items():
            what = f", {name.partition(',')[0]}" if kind == "kills" else ""
            rows.setdefault(FAULTS[kind] + what, []).append(part)
    header = ["fault", "cases", "outcome", "lost", "failures"]
    return markdown_table(header, [[what, *_fault_cells(parts)] for what, parts in rows.items()])


def _fault_cells(parts: list[Result]) -> list[str]:
    outcomes = sum((Counter(part["outcomes"]) for part in parts), Counter[str]())
    failures = outcomes.pop("fault", 0)
    listed = "; ".join(f"{number:,} {outcome}" for outcome, number in outcomes.most_common())
    lost: Counter[str] = Counter()
    for outcome, number in outcomes.items():
        lost.update({of: number for begin, of in LOST.items() if outcome.startswith(begin)})
    told = "; ".join(f"{number:,} times {of}" for of, number in lost.most_common()) or "nothing"
    return [f"{sum(part['cases'] for part in parts):,}", listed, told, str(failures)]


def mutants(found: Result) -> str:
    """The newest sample by package; the total weights packages by their numbers of mutants."""
    newest = max((key for key in found if key.startswith("seed ")), key=lambda key: int(key.split()[1]))
    population, sampled = found[newest]["population"], found[newest]["mutants"].values()
    rows, total, variance = [], 0.0, 0.0
    for room, size in population.items():
        counts = Counter(one["outcome"] for one in sampled if one["room"] == room)
        able = sum(counts.values()) - counts["impossible"]
        share, weight = (counts["killed"] + counts["timeout"]) / able, size / sum(population.values())
        total, variance = total + weight * share, variance + weight**2 * share * (1 - share) / able
        rows.append([f"`{room}`", f"{size:,}", str(able), _wilson(share, able)])
    low, high = (min(1.0, total + sign * 1.96 * math.sqrt(variance)) for sign in (-1, 1))
    rows.append(["all", f"{sum(population.values()):,}", "", f"**{total:.0%}** ({low:.0%} to {high:.0%})"])
    return markdown_table(["room", "possible mutants", "sampled", "killed (95 % interval)"], rows)


def _wilson(share: float, number: int) -> str:
    middle, spread = share + 1.92 / number, 1.96 * math.sqrt(share * (1 - share) / number + 0.96 / number**2)
    low, high = ((middle + sign * spread) / (1 + 3.84 / number) for sign in (-1, 1))
    return f"{share:.0%} ({low:.0%} to {high:.0%})"
