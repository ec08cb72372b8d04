"""Write the tables of README.md and of the pages under docs/ from results/.

    python -m lab.pages.tables [--check]

A page has a table between `<!-- name:begin -->` and `<!-- name:end -->`. `--check` writes nothing and fails if a page
and the files disagree; a test runs it.
"""

import json
import re
import sys
from pathlib import Path

from lab.experiments import experiment_named
from lab.pages.answer_page import answer_blocks
from lab.pages.benchmark_page import benchmark_parts
from lab.pages.choices_page import choices
from lab.pages.cli_page import command_reference
from lab.pages.evaluation_page import coherence_blocks
from lab.pages.faults_page import fault_tables
from lab.pages.hot_paths_page import hot_paths
from lab.pages.ranker_page import minilm_blocks, ranker_blocks, unrelated_block
from lab.pages.readme_page import comparison_table
from lab.pages.rounding_page import rounding_blocks
from lab.pages.scaling_page import estimate_block, large_block
from lab.pages.serve_page import load_block
from lab.pages.testing_page import mutation_tables
from lab.pages.topics_page import topic_blocks
from varitext.reproduce.engine import markdown_table, read_records

ROOT = Path(__file__).resolve().parents[2]
MARK = re.compile(r"<!-- ([\w-]+):begin -->\n(.*?)<!-- \1:end -->", re.DOTALL)
DOCUMENT_EXPERIMENTS = ("table1a", "table1b", "table2", "tsne", "document-evaluation", "updating", "generality")


def records(experiment: str) -> list[dict]:
    return read_records(experiment_named(experiment), ROOT / "results")


def table_of(experiment: str) -> str:
    return experiment_named(experiment).table(records(experiment))


def read(name: str) -> list | dict:
    return json.loads((ROOT / "results" / name).read_text())


def nvdm_table() -> str:
    """Every setting of NVDM in Table 1a."""
    found: dict[tuple[int, str, str], list[float]] = {}
    for record in records("table1a"):
        model, size, preset = (record["settings"][name] for name in ("model", "latent_dim", "preset"))
        if model in ("nvdm", "nvdm_dcm"):
            found.setdefault((size, model, preset), []).append(record["result"]["per_document_perplexity"])
    rows = [
        [str(size), f"`{model}`", f"`{preset}`", " / ".join(f"{value:.1f}" for value in sorted(values))]
        for (size, model, preset), values in sorted(found.items())
    ]
    return markdown_table(["K", "model", "preset", "test perplexity"], rows)


def speed_list(speed: dict) -> str:
    reached, fit, dense, seconds = speed["to_836"], speed["fit"], speed["dense_fit"], speed["seconds"]
    limit = 100 * speed["fraction_of_matrix_multiply_limit"]
    lines = [
        f"an epoch takes {speed['epoch_seconds']:.2f} s, that of a straightforward dense PyTorch NVDM "
        f"{speed['dense_epoch_seconds']:.2f} s: **{speed['epoch_speed_up']:.1f} times faster**; the test perplexity "
        f"after the fit is {fit['test_perplexity']:.0f} against {dense['test_perplexity']:.0f} after its 60 epochs;",
        f"from a cold start to the paper's 836: **{reached['seconds']:.1f} s** of fitting;",
        f"training reaches {limit:.0f} % of the matrix-multiply limit, {speed['documents_per_second']:,.0f} documents "
        f"per second; `transform` makes {speed['transform_documents_per_second']:,.0f} vectors per second;",
        f"peak memory of a fit: {speed['peak_memory_mb']:.0f} MB above the imports;",
        f"`import varitext`: {seconds['import_varitext'] - seconds['python']:.2f} s on top of Python's own start, "
        f"`varitext --help`: {seconds['varitext_help']:.2f} s.",
    ]
    return "\n".join(f"- {line}" for line in lines)


def plain_bound_table(results: dict[str, dict]) -> str:
    head = [
        "| what was tried | held-out training documents | q refined | its KL | epoch kept | test | q refined "
        "| importance-weighted |",
        "|---|---|---|---|---|---|---|---|",
    ]
    return "\n".join(head + [plain_bound_row(name, results[name]) for name in results])


def plain_bound_row(name: str, result: dict) -> str:
    wanted = ("dev_perplexity", "dev_refined", "dev_kl", "epoch", "test_perplexity", "test_refined", "test_iwae")
    found = [f"{result[key]:.{0 if key == 'epoch' else 1}f}" if key in result else "" for key in wanted]
    return f"| {name} | {' | '.join(found)} |"


def counting_table(counting: dict) -> str:
    head = ["| | times as fast as scikit-learn |", "|---|---|"]
    return "\n".join(head + [f"| {name} | {ratio:.1f} |" for name, ratio in counting["times_faster"].items()])


def blocks() -> dict[str, str]:
    """Every table by its name."""
    topics, ranker, benchmark = topic_blocks(ROOT), ranker_blocks(ROOT), benchmark_parts(ROOT)
    found = {name: table_of(name) for name in (*DOCUMENT_EXPERIMENTS, "likelihoods")}
    found |= answer_blocks(ROOT) | coherence_blocks(ROOT) | fault_tables(ROOT) | mutation_tables(ROOT)
    found |= {f"choices-{model}": choices(ROOT, model) for model in ("nvdm", "nvdm_dcm")}
    found |= {f"hot-paths-{model}": hot_paths(ROOT, model) for model in ("nvdm", "nvdm_dcm")}
    return found | {
        "abstaining": ranker["abstaining"],
        "commands": command_reference(),
        "comparison": comparison_table(ROOT),
        "counting": counting_table(read("counting.json")),
        "default-ranker": ranker["quality"],
        "default-ranker-speed": ranker["speed"],
        "estimate": estimate_block(ROOT),
        "growth": benchmark["growth"],
        "joint": ranker["joint"],
        "kernels": rounding_blocks(ROOT)["kernels"],
        "large": large_block(ROOT),
        "load": load_block(ROOT),
        "minilm": minilm_blocks(ROOT)["fitted"],
        "minilm-untrained": minilm_blocks(ROOT)["untrained"],
        "nvdm-presets": nvdm_table(),
        "nvdm-speed": speed_list(read("nvdm.json")),
        "peer-settings": benchmark["settings"],
        "peers": benchmark["peers"],
        "plain-bound": plain_bound_table(read("plain_bound.json")),
        "softmax": benchmark["softmax"],
        "topics": topics["topics"],
        "unrelated": unrelated_block(ROOT),
    }


def main() -> None:
    found = blocks()
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        before = path.read_text()
        after = MARK.sub(lambda mark: f"<!-- {mark[1]}:begin -->\n{found[mark[1]]}\n<!-- {mark[1]}:end -->", before)
        if "--check" not in sys.argv:
            path.write_text(after)
        elif before != after:
            sys.exit(f"{path.relative_to(ROOT)} differs from results/: run python -m lab.pages.tables")


if __name__ == "__main__":
    main()
