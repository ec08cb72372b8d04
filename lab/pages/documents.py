"""Tables of the document models."""

from lab.experiments.document_choices import CHOICES, model_table
from lab.pages.reading import Result, bullets, mean, measured, records_of, results_of, table_of
from varitext.corpora.rcv1 import DOCUMENTS, TEST_DOCUMENTS
from varitext.models.documents import model_class
from varitext.reproduce.document_fits import NEWSGROUPS, RCV1, RCV1_SAMPLE, Setting
from varitext.reproduce.engine import markdown_table
from varitext.reproduce.table1a import rows_of

EXPERIMENTS = (
    *("table1a", "table1b", "table2", "tsne", "document-evaluation", "likelihoods", "generality", "topics"),
    *("updating", "plain-bound", "topic-names", "turftopic-protocol", "short-texts", "vector-weight"),
)
RCV1_TRAIN, SAMPLE_TRAIN, WORDS_PER_DOCUMENT = DOCUMENTS - TEST_DOCUMENTS, 20_737, 117.6
COHERENCE = {"npmi": "NPMI", "c_v": "C_V"}


def document_tables() -> dict[str, str]:
    choices = records_of("document-choices")
    coherence = measured("coherence")
    return {
        **{name: table_of(name) for name in EXPERIMENTS},
        **{f"choices-{model}": model_table(choices, model) for model in CHOICES},
        "nvdm-presets": presets(),
        "nvdm-speed": speed(measured("nvdm")),
        **{f"hot-paths-{model}": hot_paths(measured("hot_paths")[model]) for model in ("nvdm_dcm", "nvdm")},
        "counting": counting(measured("counting")),
        "million-texts": million_texts(measured("counting")),
        "windows": windows(coherence),
        "gensim": gensim(coherence),
        "rcv1-full": full_rcv1(measured("rcv1_recovery")),
    }


def full_rcv1(reading: Result) -> str:
    """Estimates for the whole corpus: the sample's seconds per document and pass, times its documents and passes."""
    read = (
        f"Reading its vectors takes about {reading['reading_seconds']:.0f} s, recovering the counts another "
        f"{reading['recovering_seconds']:.0f} s, at a peak of {reading['peak_megabytes'] / 1000:.1f} GB of memory."
    )
    found = [(row.setting, results_of("table1a", corpus=RCV1_SAMPLE, **row.setting._asdict())) for row in rows_of(RCV1)]
    rows = [[setting.name, *_full_cost(setting, results)] for setting, results in found if results]
    if not rows:
        return f"{read} Fits are not estimated yet: `varitext reproduce table1a --only rcv1-sample`."
    return f"{read}\n\n{markdown_table(['', 'passes', 'hours to fit', 'minutes to evaluate'], rows)}"


def _full_cost(setting: Setting, results: list[Result]) -> list[str]:
    recipe = model_class(setting.model).recipe(setting.preset, RCV1_TRAIN, WORDS_PER_DOCUMENT)
    passes = min(recipe.training.epochs, round(mean(results, "epochs")))
    per_pass = mean(results, "fit_seconds") / mean(results, "epochs") / SAMPLE_TRAIN
    evaluation = mean(results, "evaluation_seconds") / results[0]["n_documents"] * TEST_DOCUMENTS
    return [str(passes), f"{per_pass * passes * RCV1_TRAIN / 3600:.1f}", f"{evaluation / 60:.0f}"]


def presets() -> str:
    found: dict[tuple[int, str, str], list[float]] = {}
    for record in records_of("table1a"):
        model, size, preset = (record["settings"][name] for name in ("model", "latent_dim", "preset"))
        if model in ("nvdm", "nvdm_dcm") and record["settings"]["corpus"] == NEWSGROUPS:
            found.setdefault((size, model, preset), []).append(record["result"]["per_document_perplexity"])
    rows = [
        [str(size), f"`{model}`", f"`{preset}`", " / ".join(f"{value:.1f}" for value in sorted(values))]
        for (size, model, preset), values in sorted(found.items())
    ]
    return markdown_table(["K", "model", "preset", "test perplexity"], rows)


def speed(found: Result) -> str:
    reached, fit, dense, seconds = found["to_836"], found["fit"], found["dense_fit"], found["seconds"]
    return bullets(
        [
            f"An epoch takes {found['epoch_seconds']:.2f} s; a straightforward dense PyTorch NVDM takes "
            f"{found['dense_epoch_seconds']:.2f} s, {found['epoch_speed_up']:.1f} times as long. Test perplexity after "
            f"the fit: {fit['test_perplexity']:.0f}, against {dense['test_perplexity']:.0f} after 60 dense epochs.",
            f"From a cold start to the paper's perplexity of 836: **{reached['seconds']:.1f} s**.",
            f"Training processes {found['documents_per_second']:,.0f} documents per second, "
            f"{found['fraction_of_matrix_multiply_limit']:.0%} of the matrix-multiply limit; `transform` returns "
            f"{found['transform_documents_per_second']:,.0f} vectors per second.",
            f"`import varitext` takes {seconds['import_varitext'] - seconds['python']:.2f} s more than starting "
            f"Python; `varitext --help` takes {seconds['varitext_help']:.2f} s.",
        ]
    )


def hot_paths(found: Result) -> str:
    paths = {"training": "training step", "transform": "`transform`"}
    parts = dict.fromkeys(part for path in paths for part in found[path]["shares"])
    rows = [
        [part, *(f"{found[path]['shares'][part]:.0%}" if part in found[path]["shares"] else "" for path in paths)]
        for part in parts
    ]
    rows.append(["other", *(f"{1 - sum(found[path]['shares'].values()):.0%}" for path in paths)])
    speeds = (
        f"{found[path]['documents_per_cpu_second']:,.0f} documents per CPU second in {name}, "
        f"{found[path]['share_of_multiply_limit']:.0%} of the matrix-multiply limit"
        for path, name in (("training", "training"), ("transform", "`transform`"))
    )
    threads = (
        f"{found[path]['two_threads_over_one']:.2f} times as fast in {name}, "
        f"{found[path]['share_of_multiply_limit_two_threads']:.0%} of the limit of both cores"
        for path, name in (("training", "training"), ("transform", "`transform`"))
    )
    lines = f"One thread: {'; '.join(speeds)}.\n\nTwo threads: {'; '.join(threads)}."
    return f"{markdown_table(['part', *paths.values()], rows)}\n\n{lines}"


def counting(found: Result) -> str:
    ratios = {kind: compared["times_faster"] for kind, compared in found["counting"].items()}
    names = next(iter(ratios.values()))
    rows = [[name, *(f"{of_kind[name]:.1f}" for of_kind in ratios.values())] for name in names]
    return markdown_table(["speed relative to scikit-learn", *ratios], rows)


def million_texts(found: Result) -> str:
    commands = ("fit", "transform", "assign")
    head = ["texts", "MB", *(f"`{name}`: {what}" for name in commands for what in ("peak MB", "CPU seconds"))]
    rows = [
        [f"{row['documents']:,}", f"{row['megabytes']:.0f}"]
        + [
            f"{row[name][what]:,.0f}" if name in row else ""
            for name in commands
            for what in ("peak_megabytes", "cpu_seconds")
        ]
        for row in found["short_texts"]
    ]
    limit = found["training"].removesuffix("s")
    return f"{markdown_table(head, rows)}\n\nTraining itself was limited to {limit} s."


def windows(found: Result) -> str:
    rules = next(iter(found["windows"].values()))
    rows = [
        [COHERENCE[name], *(f"{value:.3f}" for value in values.values())] for name, values in found["windows"].items()
    ]
    return markdown_table([f"{found['topics']} topics of NVDM, raw 20 Newsgroups articles", *rules], rows)


def gensim(found: Result) -> str:
    head = ["", "gensim, one process, seconds", "varitext, seconds", "speed-up", "largest difference of a topic"]
    rows = [
        [
            COHERENCE[row["measure"]],
            f"{row['gensim_seconds']:.0f}",
            f"{row['varitext_seconds']:.1f}",
            f"{row['times_faster']:.0f}",
            f"{row['largest_difference']:.0e}",
        ]
        for row in found["rows"]
    ]
    return markdown_table(head, rows)
