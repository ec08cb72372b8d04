"""`varitext prepare`: a corpus of any size as shards on disk."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from varitext.cli.options import DataDir, OnRay, RayAddress
from varitext.cli.printing import log
from varitext.errors import InputError

if TYPE_CHECKING:
    from varitext.text import Vocabulary

LINE_EVERY = 5.0  # seconds


def prepare(
    corpora: Annotated[
        list[str],
        typer.Argument(metavar="CORPUS...", help="Files or folders of yours, or known corpora; one after the other."),
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the shards go; must not exist yet.")],
    vocabulary_size: Annotated[
        int | None, typer.Option(min=2, metavar="N", help="Most words to keep, for texts; 10,000 if left out.")
    ] = None,
    vocabulary: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Count these words: a vocabulary.txt, or a folder of shards or a model."),
    ] = None,
    processes: Annotated[int, typer.Option(min=1, max=256, metavar="N", help="Processes that count words.")] = 1,
    text_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which column of a .jsonl, .csv or .parquet file has the text.")
    ] = None,
    part: Annotated[str, typer.Option(metavar="NAME", help="train or test, of corpora that are divided.")] = "train",
    data_dir: DataDir = None,
    ray: OnRay = False,
    ray_address: RayAddress = None,
) -> None:
    """Write a corpus as sparse shards on disk, for corpora that are larger than memory.

    One pass over the data; memory does not grow with it. The folder takes the place of a corpus wherever documents are
    asked for: fit, evaluate, transform. Test documents are best counted over the training words, with --vocabulary.

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
    from varitext.text import VocabularyRules

    if vocabulary is not None and vocabulary_size is not None:
        raise InputError("--vocabulary-size does not apply: --vocabulary says which words are counted")
    check_can_write(out)
    folder = prepare_shards(
        corpora,
        out,
        part=part,
        data_dir=data_dir,
        text_column=text_column,
        vocabulary_rules=VocabularyRules(size=vocabulary_size) if vocabulary_size else VocabularyRules(),
        vocabulary=None if vocabulary is None else _words_in(vocabulary),
        processes=processes,
        counter=ray_counter(ray_address or LOCAL) if ray or ray_address else None,
        progress=CountedLines(),
    )
    documents, words = (sum(getattr(shard, name) for shard in folder.shards) for name in ("documents", "words"))
    log(
        f"{documents} documents, {words} words of {len(folder.vocabulary)} different ones, "
        f"{len(folder.shards)} shard{'s' if len(folder.shards) > 1 else ''} in {out}"
    )


def _words_in(path: Path) -> "Vocabulary":
    from varitext.text import Vocabulary

    return Vocabulary.load(path / "vocabulary.txt" if path.is_dir() else path)


class CountedLines:
    """How many documents have been read, in a line every few seconds."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, documents: int) -> None:
        if time.monotonic() - self._last >= LINE_EVERY:
            self._last = time.monotonic()
            log(f"{documents} documents read")
