"""Hooks of mkdocs: pages of the API reference, and files outside docs/ that pages link to.

A page links to `../../results/tsne.svg`, which GitHub shows; on the site that file lies under `repository/`.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "varitext"
LINK = re.compile(r"\]\((\.\./[^)#\s]+)")

# rooms with a page of their own, in the order of the layout
ROOMS = {
    "text": "Text",
    "corpora": "Corpora",
    "batches": "Batches",
    "latent": "Latent variables and bounds",
    "layers": "Layers",
    "training": "Training",
    "models.documents": "Document models",
    "models.answers": "Answer models",
    "evaluation": "Evaluation",
    "documents": "Documents",
    "answers": "Answers",
    "integrations": "Integrations",
    "report": "Reports",
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for room, title in ROOMS.items():
        files.append(File.generated(config, f"reference/{room}.md", content=room_page(room, title)))
    for path in sorted({path for file in files.documentation_pages() for path in linked_outside(file)}):
        files.append(File.generated(config, f"repository/{path}", abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    folder = posixpath.dirname(page.file.src_uri)

    def moved(link: re.Match[str]) -> str:
        path = outside(link[1], folder)
        return f"]({posixpath.relpath('repository/' + path, folder or '.')}" if path else link[0]

    return LINK.sub(moved, markdown)


def linked_outside(file: File) -> list[str]:
    folder = posixpath.dirname(file.src_uri)
    return [path for link in LINK.findall(file.content_string) if (path := outside(link, folder))]


def outside(link: str, folder: str) -> str | None:
    """Where in the repository a link leads that leaves docs/; None if it stays there."""
    path = posixpath.normpath(posixpath.join("docs", folder, link))
    return None if path.startswith("docs/") else path


def room_page(room: str, title: str) -> str:
    """Every module of a room, from its docstrings."""
    folder = PACKAGE.joinpath(*room.split("."))
    modules = [path.relative_to(PACKAGE.parent).with_suffix("") for path in sorted(folder.rglob("*.py"))]
    names = [".".join(path.parts).removesuffix(".__init__") for path in modules]
    blocks = "\n\n".join(f"::: {name}" for name in names)
    return f"# {title}\n\n`varitext.{room}`, module by module.\n\n{blocks}\n"
