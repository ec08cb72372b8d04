"""Ten thousand short titles with classes: one-line descriptions of Debian packages, and their sections.

    python -m lab titles titles.csv

Reads `apt-cache dumpavail`, so it needs a Debian system after `apt-get update`, and no other source. Ten
sections with a subject are kept, and duplicate titles are removed. A fixed random sample is written with the columns
text and section. The titles depend on the Debian release, so results record the file's hash.
"""

import csv
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from varitext.errors import InputError
from varitext.files import atomic_file

SECTIONS = ("fonts", "games", "gnu-r", "graphics", "java", "javascript", "mail", "net", "science", "sound")
NUMBER = 10_000


def main(options: list[str]) -> None:
    if len(options) != 1:
        sys.exit("usage: python -m lab titles FILE.csv")
    write_titles(Path(options[0]))


def write_titles(path: Path) -> None:
    if not has_apt():
        raise InputError("the titles come from apt: run this on Debian after `apt-get update`")
    with atomic_file(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["text", "section"])
        writer.writerows(debian_titles())


def has_apt() -> bool:
    return shutil.which("apt-cache") is not None


def debian_titles(number: int = NUMBER) -> list[tuple[str, str]]:
    """Titles with their sections, a fixed random sample."""
    listed = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True, check=True).stdout
    titles = list(dict(titles_of(listed)).items())
    return [titles[row] for row in np.sort(np.random.default_rng(0).permutation(len(titles))[:number])]


def titles_of(listed: str) -> Iterator[tuple[str, str]]:
    """Title and section of every package in the kept sections, in order of the title."""
    found = set()
    for package in listed.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in package.splitlines() if ": " in line[1:])
        if fields.get("Section") in SECTIONS and "Description" in fields:
            found.add((fields["Description"].strip(), fields["Section"]))
    yield from sorted(found)
