"""The pictures of the README, drawn by a headless browser: the topic map of a report and the page of `varitext serve`.

    varitext fit 20newsgroups --out models/news
    python -m lab.pages.pictures models/news --topics 24

writes docs/images/topic-map.png and docs/images/page.png, below 400 kB together. Needs playwright, chromium and Pillow.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import urlopen

from varitext.corpora import load_again
from varitext.documents.model import DocumentModel
from varitext.report import write_document_report

if TYPE_CHECKING:
    from playwright.sync_api import Browser

IMAGES = Path(__file__).parents[2] / "docs" / "images"
MAX_BYTES = 400_000
COLOURS = 256  # of the palette: dots keep their hues, text stays sharp
SCALE = 1.4  # pixels of the image per pixel of the page
MAP_STYLE = """
    .legend, .search, .modebar-container { display: none !important; }
    .map { border: 0; border-radius: 0; } body { background: #fff; }
"""
# Larger names than in the report, since the page shows the picture smaller: two words each.
NAMES = """() => {
    const map = document.querySelector(".map > .drawn");
    const short = (text) => `<b>${text.split(", ").slice(0, 2).join(", ")}</b>`;
    const larger = (note) => ({ ...note, text: short(note.text), font: { ...note.font, size: 15 } });
    return Plotly.relayout(map, { annotations: map.layout.annotations.map(larger) });
}"""
TEXT = (
    "NASA will launch two satellites this year. Their radio links use encryption with a secret key, so that nobody on "
    "Earth can listen to the spacecraft without a license from the government."
)


def prepared(folder: Path, topics: int | None, data_dir: Path | None, out: Path) -> DocumentModel:
    """The model with that many topics, saved to `out`."""
    model = DocumentModel.load(folder)
    if topics is not None:
        corpus = model.fitted_.corpus
        assert corpus is not None
        model.refit_topics(load_again(corpus, corpus["part"], data_dir), topics)
    model.save(out)
    return model


def draw_map(browser: "Browser", model: DocumentModel, data_dir: Path | None, out: Path) -> None:
    """The map of the report on the test documents, without its legend."""
    corpus = model.fitted_.corpus
    assert corpus is not None
    report = out.with_suffix(".html")
    write_document_report(model, load_again(corpus, "test", data_dir), report)
    page = browser.new_page(viewport={"width": 1120, "height": 900}, device_scale_factor=SCALE)
    page.goto(report.resolve().as_uri())
    page.add_style_tag(content=MAP_STYLE)
    page.wait_for_selector("html[data-drawn=yes]", timeout=120_000)
    page.evaluate(NAMES)
    page.locator(".map > .drawn").first.screenshot(path=out)
    crop(out)
    report.unlink()


def draw_page(browser: "Browser", address: str, out: Path) -> None:
    """The upper part of the page: the map with the place of a text, and the topics."""
    page = browser.new_page(viewport={"width": 900, "height": 1000}, device_scale_factor=1.5)
    page.set_default_timeout(180_000)
    page.goto(address)
    page.wait_for_selector('#map[data-state="ready"]')
    page.fill("#text", TEXT)
    page.click("#look")
    page.wait_for_selector('#map[data-ring="yes"]')
    page.wait_for_selector("#alike .label")
    page.wait_for_selector("#posterior .probability")
    page.evaluate("() => { document.activeElement.blur(); scrollTo(0, 0); }")
    box = page.locator("#map-card").bounding_box()
    assert box is not None
    page.screenshot(
        path=out, full_page=True, clip={"x": 0, "y": 0, "width": 900, "height": box["y"] + box["height"] + 8}
    )


@contextmanager
def serving(folder: Path, data_dir: Path | None) -> Iterator[str]:
    """`varitext serve` on a free port; gives the address."""
    command = [sys.executable, "-m", "varitext", "serve", str(folder), "--port", "0"]
    environment = os.environ | ({"VARITEXT_DATA": str(data_dir)} if data_dir else {})
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert server.stderr is not None
        address = next(word for word in server.stderr.readline().split() if word.startswith("http"))
        while b"reading" in urlopen(f"{address}/api/models").read():
            time.sleep(0.5)
        yield address
    finally:
        server.terminate()
        server.wait()


def crop(path: Path, margin: int = 16) -> None:
    """The image without the white around it."""
    from PIL import Image, ImageChops

    with Image.open(path) as image:
        drawn = image.convert("RGB")
    box = ImageChops.difference(drawn, Image.new("RGB", drawn.size, "white")).getbbox()
    assert box is not None
    left, top, right, bottom = box
    drawn.crop((left - margin, top - margin, right + margin, bottom + margin)).save(path)


def compress(path: Path) -> int:
    """The image with a small palette; returns its bytes."""
    from PIL import Image

    with Image.open(path) as image:
        small = image.convert("RGB").quantize(COLOURS, Image.Quantize.MAXCOVERAGE, kmeans=3, dither=Image.Dither.NONE)
    small.save(path, optimize=True)
    return path.stat().st_size


def main() -> None:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description="Draw the pictures of the README.")
    parser.add_argument("folder", type=Path, help="a folder of a document model fitted on 20newsgroups")
    parser.add_argument("--topics", type=int, help="number of topics (default: those of the model)")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--out", type=Path, default=IMAGES)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    chromium = os.environ.get("VARITEXT_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        model = prepared(given.folder, given.topics, given.data_dir, Path(temporary) / "20newsgroups")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        draw_map(browser, model, given.data_dir, given.out / "topic-map.png")
        with serving(Path(temporary) / "20newsgroups", given.data_dir) as address:
            draw_page(browser, address, given.out / "page.png")
        browser.close()
    sizes = {name: compress(given.out / name) for name in ("topic-map.png", "page.png")}
    print(sizes)
    assert sum(sizes.values()) < MAX_BYTES, sizes


if __name__ == "__main__":
    main()
