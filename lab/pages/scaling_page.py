"""The tables of docs/how-to/scale.md that come from results/scaling_estimate.json and results/large_corpus.json."""

import json
from pathlib import Path


def estimate_block(root: Path) -> str:
    found = json.loads((root / "results" / "scaling_estimate.json").read_text())
    measured, assumed = found["measured"], found["assumed"]
    micro = {name: 1e6 * measured[name] for name in measured if name.startswith("seconds_per_")}
    gradient, summed = measured["gradient_bytes"] / 1e6, 1000 * measured["two_process_sum_core_seconds"]
    on_clock, cores = 1000 * measured["two_process_sum_seconds"], found["machine"]["cores"]
    lines = [
        "Measured on one core, with documents of "
        f"{measured['distinct_words_per_document']:.0f} different words out of {measured['vocabulary']:,} and the "
        f"recommended NVDM, K = {measured['latent_dim']}:",
        "",
        "| | |",
        "|---|---|",
        f"| training, a document | {micro['seconds_per_document']:.0f} µs |",
        f"| passes over the corpus before training, a document | "
        f"{micro['seconds_per_document_before_training']:.1f} µs |",
        f"| held-out score, a document | {micro['seconds_per_held_out_document']:.0f} µs |",
        f"| noise, a number | {1000 * micro['seconds_per_number_of_noise']:.1f} ns |",
        f"| gradient | {gradient:.2f} MB |",
        f"| its sum over two processes on one machine | {summed:.1f} ms of a core; {on_clock:.1f} ms on the clock "
        f"of a busy machine, {cores} core{'s'[: cores != 1]} for both |",
        "",
        f"Assumed: {assumed['network_bytes_per_second'] * 8 / 1e9:.0f} Gbit/s and "
        f"{1e6 * assumed['latency_seconds']:.0f} µs a message between machines, "
        f"${assumed['dollars_per_core_hour']:.2f} for an hour of a core. Then {assumed['documents'] / 1e6:.0f} million "
        f"documents, {assumed['epochs']} times, with {assumed['documents_per_worker_and_step']} documents a worker and "
        "step:",
        "",
        "| workers (one core each) | documents per second | updates | hours | core hours | cost |",
        "|---|---|---|---|---|---|",
        *(_totals(one) for one in found["estimates"]),
        "",
        "Where the time goes, in minutes:",
        "",
        f"| workers | {' | '.join(found['estimates'][0]['seconds'])} |",
        "|---" * (1 + len(found["estimates"][0]["seconds"])) + "|",
        *(_parts(one) for one in found["estimates"]),
    ]
    return "\n".join(lines)


def _totals(one: dict) -> str:
    time = f"{one['hours']:,.2f} | {one['core_hours']:,.0f} | ${one['dollars']:,.2f}"
    return f"| {one['workers']:,} | {one['documents_per_second']:,.0f} | {one['updates']:,.0f} | {time} |"


def _parts(one: dict) -> str:
    """The largest in bold."""
    minutes = {name: f"{seconds / 60:,.1f}" for name, seconds in one["seconds"].items()}
    minutes[one["bottleneck"]] = f"**{minutes[one['bottleneck']]}**"
    return f"| {one['workers']:,} | {' | '.join(minutes.values())} |"


def large_block(root: Path) -> str:
    found = json.loads((root / "results" / "large_corpus.json").read_text())
    best, fit, held_out = found["best"], found["fit"], found["held_out"]
    rows = [
        (
            "the best possible",
            f"{best['per_document_perplexity_at_least']:.2f} to {best['per_document_perplexity_at_most']:.2f}",
        ),
        (
            "ours, importance-weighted",
            f"{held_out['iwae_per_document_perplexity']:.2f}: {found['above_best']:.1%} above",
        ),
        ("ours, the bound", f"{held_out['per_document_perplexity']:.2f}: {found['bound_above_best']:.1%} above"),
        ("unigram", f"{held_out['unigram_per_document_perplexity']:.0f}"),
    ]
    threads = f"{found['threads']} thread{'s'[: found['threads'] != 1]}"
    lines = [
        f"{found['documents']:,} documents of {found['drawing']['distinct_words_per_document']:.0f} different words, "
        f"{found['words']:,} words, {found['latent_dim']} dimensions, {fit['epochs']} epochs in "
        f"{fit['seconds'] / 60:.0f} minutes of {threads}; peak memory of the fit **{fit['peak_megabytes']:,.0f} MB**, "
        f"of the evaluation {held_out['peak_megabytes']:,.0f} MB.",
        "",
        "| held-out perplexity per document | |",
        "|---|---|",
        *(f"| {name} | {value} |" for name, value in rows),
    ]
    return "\n".join(lines)
