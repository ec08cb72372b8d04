"""`varitext prepare`: a corpus of any size as shards on disk."""

from pathlib import Path
from typing import Annotated

import typer

from varitext.cli.options import DataDir, OnRay, RayAddress, TextColumn, option, refuse_options
from varitext.cli.printing import CountedLines, log


def prepare(
    corpora: Annotated[
        list[str],
        typer.Argument(metavar="CORPUS...", help="Paths to files or folders, or corpus names, in this order."),
    ],
    out: Annotated[Path, option("New folder for the shards.", "DIR")],
    vocabulary_size: Annotated[
        int | None, option("Maximum number of words in the vocabulary (default: 10,000).", "N", min=2)
    ] = None,
    vocabulary: Annotated[
        Path | None, option("Count the words of this vocabulary.txt, folder of shards or model folder.", "PATH")
    ] = None,
    processes: Annotated[
        int | None, option("Threads or processes that count words (default: all cores).", "N", min=1, max=256)
    ] = None,
    text_column: TextColumn = None,
    part: Annotated[str, option("Part of a divided corpus: train or test.", "NAME")] = "train",
    data_dir: DataDir = None,
    ray: OnRay = False,
    ray_address: RayAddress = None,
) -> None:
    """Write a corpus as sparse shards on disk.

    For corpora that are larger than memory: reads the data once, in constant memory. The folder can be used wherever a
    corpus of documents can: fit, evaluate, transform. Count test documents over the training words, with --vocabulary.

    \b
    Examples:
      varitext prepare 2024/*.jsonl 2025/*.jsonl --out shards/train --vocabulary-size 20000
      varitext prepare test.jsonl --vocabulary shards/train --out shards/test
      varitext prepare pages.parquet --ray --out shards/pages
      varitext fit shards/train --out models/large
    """
    from varitext.corpora.prepare import prepare as prepare_shards
    from varitext.files import check_can_write
    from varitext.ray.cluster import LOCAL
    from varitext.ray.counting import ray_counter
    from varitext.text import Vocabulary, VocabularyRules

    words = None
    if vocabulary is not None:
        refuse_options({"vocabulary_size": vocabulary_size}, "--vocabulary names the words to count")
        words = Vocabulary.load(vocabulary / "vocabulary.txt" if vocabulary.is_dir() else vocabulary)
    check_can_write(out)
    progress = CountedLines()
    folder = prepare_shards(
        corpora,
        out,
        part=part,
        data_dir=data_dir,
        text_column=text_column,
        vocabulary_rules=VocabularyRules(size=vocabulary_size) if vocabulary_size else VocabularyRules(),
        vocabulary=words,
        processes=processes,
        counter=ray_counter(ray_address or LOCAL) if ray or ray_address else None,
        progress=progress,
    )
    documents, tokens = (sum(getattr(shard, name) for shard in folder.shards) for name in ("documents", "words"))
    log(
        f"{documents} documents, {tokens} words ({len(folder.vocabulary)} distinct), "
        f"{len(folder.shards)} shard{'s' if len(folder.shards) > 1 else ''} in {out}; {progress.rate(documents)}"
    )
