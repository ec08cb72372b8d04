"""Fill the tables of README.md and of the pages under docs/ from results/.

A table goes between `<!-- name:begin -->` and `<!-- name:end -->`, on whichever page has these marks. `--check` writes
nothing, and fails if a page differs from the results or if no page shows a table.
"""

import argparse
import re
import sys

from lab.import_graph import ROOT

MARK = re.compile(r"<!-- ([\w-]+):begin -->\n(.*?)<!-- \1:end -->", re.DOTALL)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser("python -m lab pages", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    check = parser.parse_args(arguments).check
    found, shown, wrong = tables(), set(), []
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        before = path.read_text(encoding="utf-8")
        names = [mark[1] for mark in MARK.finditer(before)]
        shown |= set(names)
        wrong += [f"{path.relative_to(ROOT)}: no table is called {name!r}" for name in names if name not in found]
        after = MARK.sub(lambda mark: _marked(mark[1], found.get(mark[1], mark[2].rstrip("\n"))), before)
        if not check:
            path.write_text(after, encoding="utf-8")
        elif before != after:
            wrong.append(f"{path.relative_to(ROOT)} differs from results/: run python -m lab pages")
    if check:
        wrong += [f"no page shows the table {name!r}" for name in sorted(set(found) - shown)]
    if wrong:
        sys.exit("\n".join(wrong))


def _marked(name: str, table: str) -> str:
    return f"<!-- {name}:begin -->\n{table}\n<!-- {name}:end -->"


def tables() -> dict[str, str]:
    from lab.pages.answers import answer_tables
    from lab.pages.calibration import calibration_tables
    from lab.pages.commands import command_reference
    from lab.pages.documents import document_tables
    from lab.pages.paper import paper_tables
    from lab.pages.systems import system_tables

    answers = answer_tables() | calibration_tables()
    return document_tables() | answers | system_tables() | paper_tables() | {"commands": command_reference()}
