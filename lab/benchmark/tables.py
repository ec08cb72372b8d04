"""The benchmark as Markdown: a table of ratios, the conditions under it, and whether the targets are met."""

from typing import Any

from lab.benchmark.systems import SYSTEMS, TEXTS
from lab.child import Record
from varitext.reproduce.engine import markdown_table

HEAD = [
    "",
    "settings",
    "seconds to fit",
    "relative",
    "perplexity",
    "relative",
    "documents per second, transform",
    "relative",
    "peak memory, MB",
    "relative",
]
MEASURED = (  # key, digits
    ("fit_seconds", 1),
    ("per_document_perplexity", 0),
    ("transform_documents_per_second", 0),
    ("peak_memory_mb", 0),
)


def comparison(records: dict[str, Record]) -> str:
    """The table, with what is not installed named below; `relative` is to ours."""
    ours = records["varitext"]
    rows = [_row(name, record, ours) for name, record in records.items()]
    parts = [markdown_table(HEAD, rows)]
    missing = [
        f"- {known.title}: not measured; `{known.install}`"
        for name, known in SYSTEMS.items()
        if name not in records and known.kind != TEXTS  # which not every corpus is for
    ]
    if missing:
        parts.append("\n".join(sorted(missing)))
    return "\n\n".join([*parts, _conditions(records), limits_line(ours)])


def _row(name: str, record: Record, ours: Record) -> list[str]:
    cells = [f"{SYSTEMS[name].title} {record['version']}", SYSTEMS[name].settings]
    for key, digits in MEASURED:
        value = record[key]
        if value is None:
            cells += ["-", "-"]
        else:
            cells += [f"{value:,.{digits}f}", f"{value / ours[key]:.2f}" if ours[key] else ""]
    return cells


def _conditions(records: dict[str, Record]) -> str:
    ours, (first, *_) = records["varitext"], records.values()
    task, versions = first["task"], ours["versions"]
    figures = sorted({record["figure"] for record in records.values() if record["figure"]})
    hashes = ", ".join(f"{part} `{value[:12]}`" for part, value in ours["sha256"].items())
    loads = [record["load_average"] for record in records.values()]
    return (
        f"{task['corpus']}: {ours['documents']:,} training documents, {ours['words']:,} words (SHA-256 {hashes}); "
        f"K = {task['latent_dim']}, {task['threads']} threads on {ours['cores']} cores, load average at the end of "
        f"each {min(loads):.1f} to {max(loads):.1f}; Python {versions['python']}, torch {versions['torch']}. One "
        "process per system. Peak memory is above the imports, of loading and fitting, worker processes included. "
        f"Perplexity is per document, of the same test documents; {'; '.join(figures)}."
    )


def limits_line(ours: Record) -> str:
    fast = (
        f"With `--fast`, not refined, it makes {ours['fast_documents_per_second']:,.0f} vectors a second, "
        f"{ours['fast_limits']['share_of_multiply_limit']:.0%} of the same limit."
    )
    return f"{_limits('`transform`', ours['transform_limits'])} {fast}"


def _limits(what: str, limits: dict[str, Any]) -> str:
    kinds = ", ".join(f"{kind} {share:.0%}" for kind, share in limits["where_time_goes"].items())
    return (
        f"{what} reaches {limits['share_of_multiply_limit']:.0%} of what its matrix products allow at "
        f"{limits['multiply_gflops_per_second']:.0f} GFLOP/s, the rate of a large product in the same run (memory: "
        f"{limits['memory_gb_per_second']:.0f} GB/s). Where its time goes, of what torch's profiler sees: {kinds}."
    )


def targets(records: dict[str, Record]) -> dict[str, bool]:
    """What we set out to reach, and whether this run did; only of what was measured."""
    ours = records["varitext"]
    peers = {name: record for name, record in records.items() if SYSTEMS[name].kind != "ours"}
    neural = [record for name, record in peers.items() if SYSTEMS[name].kind == "neural"]
    lda = [record for name, record in peers.items() if SYSTEMS[name].kind == "lda"]
    perplexity, seconds = "per_document_perplexity", "fit_seconds"
    found = {"transform at half of its matrix-multiply limit": _share(ours) >= 0.5}
    if "tomotopy" in peers:
        gibbs = peers["tomotopy"]
        found["15 % below tomotopy's perplexity"] = ours[perplexity] <= 0.85 * gibbs[perplexity]
        found["in at most half its time"] = ours[seconds] <= 0.5 * gibbs[seconds]
    others = [record for name, record in peers.items() if name != "tomotopy"]
    if others:
        bounded = [record for record in others if record[perplexity] is not None]
        found["below every other peer's perplexity"] = all(ours[perplexity] < one[perplexity] for one in bounded)
        found["in less time than each of them"] = all(ours[seconds] < one[seconds] for one in others)
    speed = "transform_documents_per_second"
    if lda:
        fastest = max(one[speed] for one in lda)
        found["transform ten times the fastest LDA"] = ours[speed] >= 10 * fastest
        found["transform --fast ten times the fastest LDA"] = ours["fast_documents_per_second"] >= 10 * fastest
    if neural and all(one["peak_memory_mb"] for one in [ours, *neural]):
        found["peak memory below every neural peer's"] = all(
            ours["peak_memory_mb"] < one["peak_memory_mb"] for one in neural
        )
    return found


def targets_list(records: dict[str, Record]) -> str:
    return "\n".join(f"- {name}: **{'met' if met else 'not met'}**" for name, met in targets(records).items())


def _share(record: Record) -> float:
    return float(record["transform_limits"]["share_of_multiply_limit"])
