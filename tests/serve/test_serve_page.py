"""The page in a real browser: what people do with it, hostile text, and that nothing comes from elsewhere."""

import json
import os
import shutil
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse
from served import HOSTILE, fitted_ranker, started, texts

from varitext.documents.model import DocumentModel

playwright_api = pytest.importorskip("playwright.sync_api")
pytest.importorskip("fastapi")

CHROMIUM = os.environ.get("VARITEXT_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
MARKUP = "<img/src=x/onerror=document.title='gone'>"
FOLDER = "news<b>bold"  # a folder can have any name but one with a slash
PHONE = {"width": 375, "height": 720}
DESK = {"width": 1280, "height": 900}
PAINTED = """() => {
    const canvas = document.getElementById("map");
    const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    return pixels.filter((value, at) => at % 4 === 3 && value).length;
}"""


class Page(NamedTuple):
    page: "playwright_api.Page"
    asked: list[str]  # every address that was asked for
    complaints: list[str]  # errors of the console, of scripts and of the content security policy


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> Iterator[str]:
    """A server whose vocabulary, labels, documents and folder hold markup."""
    from varitext.corpora import Documents, load_documents
    from varitext.text import Vocabulary

    folder = tmp_path_factory.mktemp("models")
    rows = [{"text": f"{text} {MARKUP} {HOSTILE}", "label": f"{MARKUP}{n % 3}"} for n, text in enumerate(texts())]
    (folder / "mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    corpus = load_documents(folder / "mine.jsonl", "all")
    DocumentModel(latent_dim=3, epochs=4, threads=1, n_topics=3).fit(corpus).save(folder / FOLDER)
    fitted_ranker().save(folder / "answers")
    words = Vocabulary((MARKUP, HOSTILE, "orbit"))
    counts = np.random.default_rng(0).integers(1, 5, (40, 3))
    written = Documents("written", "all", (), counts=scipy.sparse.csr_matrix(counts), vocabulary=words)
    DocumentModel(latent_dim=2, epochs=2, threads=1).fit(written).rename_topic(0, HOSTILE).save(folder / "words")
    server, address = started(folder / FOLDER, folder / "answers", folder / "words")
    yield address
    server.kill()
    server.wait()
    server.stderr.close()


@pytest.fixture(scope="module")
def browser() -> Iterator["playwright_api.Browser"]:
    if CHROMIUM is None:
        pytest.skip("no chromium here: install it, or name one with VARITEXT_CHROMIUM")
    with playwright_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], headless=True)
        yield browser
        browser.close()


@pytest.fixture
def opened(browser, address) -> Iterator[Page]:
    yield from watched(browser, address, DESK, "light")


def watched(browser, address: str, size: dict[str, int], scheme: str) -> Iterator[Page]:
    """The page with everything that it asks for and complains of; checked at the end, whatever the test was about."""
    context = browser.new_context(viewport=size, color_scheme=scheme, reduced_motion="reduce")
    context.set_default_timeout(60_000)
    page, asked, complaints = context.new_page(), [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: (complaints.append(f"dialog {dialog.message}"), dialog.dismiss()))
    page.goto(address)
    page.wait_for_selector("#documents:not([hidden]) #all-topics details")
    page.wait_for_selector("#posterior button")  # of the example
    yield Page(page, asked, complaints)
    assert all(one.startswith((address, "data:")) for one in asked), asked
    assert not complaints
    assert "gone" not in page.title()
    context.close()


def looked_at(page: "playwright_api.Page", text: str) -> None:
    page.fill("#text", text)
    page.evaluate("() => document.getElementById('text-status').textContent = ''")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#text-status >> text=known word")


def test_it_opens_on_named_topics_the_map_and_an_example(opened):
    page = opened.page
    assert page.input_value("#text") and "known word" in page.inner_text("#text-status")
    page.wait_for_selector("#map[data-names]")
    dots = page.locator("#all-topics .dot[style*=background]")
    names = page.locator("#all-topics .title").all_inner_texts()
    assert dots.count() == len(names) == int(page.get_attribute("#map", "data-names"))
    assert len({dot.get_attribute("style") for dot in dots.all()}) == len(names)  # a colour each
    topic = page.locator("#all-topics details").last
    if topic.get_attribute("open") is None:
        topic.locator("summary").click()
    page.wait_for_selector('#map[data-chosen]:not([data-chosen=""])')
    assert "documents" in topic.inner_text() and topic.locator(".typical").count() == 3
    page.select_option("#map-colour", "group")
    assert page.locator("#map-groups li").count() == 3  # labels


def test_a_page_that_is_opened_before_the_models_are_loaded_waits_for_them(browser, address):
    page, refused = browser.new_page(), []

    def loading_at_first(route):
        if refused:
            return route.continue_()
        refused.append(route.request.url)
        route.fulfill(status=503, json={"error": "the models are still being loaded"})

    page.route("**/api/models", loading_at_first)
    page.goto(address)
    page.wait_for_selector("#problem >> text=still being loaded")
    page.wait_for_selector("#documents:not([hidden]) #all-topics details")
    assert page.is_hidden("#problem") and len(refused) == 1
    page.close()


def test_a_text_is_entered_and_topics_appear(opened):
    page = opened.page
    looked_at(page, 30 * f"{texts()[0]} ")
    assert page.locator("#posterior .probability").count() > 0
    page.click("#dimensions-card summary")
    assert page.locator("#dimensions .gauge u").count() > 0  # how unsure each is
    assert page.locator("#moved li .bar").count() > 0
    page.wait_for_selector("#alike .label")
    assert page.locator("#alike li").count() == 5
    first = page.locator("#posterior button").first
    first.press("Enter")
    assert first.get_attribute("aria-pressed") == "true" and "brings the text" in page.inner_text("#moved-note")


def test_the_map_shows_documents_and_the_text_among_them(opened):
    page = opened.page
    page.wait_for_selector('#map[data-state="ready"][data-dots="90"]')
    assert "arrow keys" in page.inner_text("#map-title")
    looked_at(page, texts()[1])
    page.wait_for_selector('#map[data-ring="yes"]')
    page.focus("#map")
    page.keyboard.press("ArrowRight")
    assert page.get_attribute("#map", "data-picked") and MARKUP in page.inner_text("#map-title")
    assert page.evaluate(PAINTED) > 90  # pixels: dots, names and the ring


def test_search_finds_topics_and_documents(opened):
    page = opened.page
    page.wait_for_selector('#map[data-state="ready"]')
    page.fill("#map-search", f"{MARKUP}1")  # a label
    assert page.inner_text("#map-found") == "30 documents found"
    word = page.locator("#all-topics .words button").first.text_content()
    page.fill("#map-search", word)
    assert page.locator("#all-topics > li:visible").count() >= 1
    page.fill("#map-search", "nowhere at all")
    assert page.locator("#all-topics > li:visible").count() == 0 and "0 documents" in page.inner_text("#map-found")


def test_a_question_is_ranked_and_explained(opened):
    page = opened.page
    page.select_option("#model", "answers")
    page.fill("#question", "who was the king ?")
    page.fill("#candidates", f"the king was old\nnear a lake {HOSTILE}\nthe queen of the city")
    page.click("#rank")
    page.wait_for_selector("#rank-status >> text=3 candidates")  # those of the example have gone
    assert page.locator("#ranking > li").count() == 3
    assert "no answer is right" in page.inner_text("#none")
    assert page.locator("#ranking .sentence .match").all_inner_texts() == ["king"]  # attention is even
    passage = "A sentence about a lake that is not long . " * 10
    page.fill("#candidates", f"the king was old\nTHE KING was old!\n{passage} 😀 The king was here . {passage}")
    page.click("#rank")
    page.wait_for_selector("#ranking .unread")
    assert "copy of candidate 1" in page.inner_text("#ranking")
    assert [one.lower() for one in page.locator("#ranking .sentence .match").all_inner_texts()] == ["king"] * 3
    assert page.locator("script:not([src])").count() == 0


def test_hostile_text_stays_text(opened):
    page = opened.page
    assert FOLDER in page.inner_text("#model") and page.locator("#model b").count() == 0
    looked_at(page, f"{texts()[2]} {MARKUP} {HOSTILE}")
    page.wait_for_selector("#alike .label")
    assert MARKUP in page.inner_text("#alike .label >> nth=0") and HOSTILE in page.inner_text("#alike")
    page.fill("#text", "")  # of the text that is there this model knows no word
    page.select_option("#model", "words")
    page.wait_for_selector(f"#all-topics .title >> text={HOSTILE}")
    page.fill("#word", "orbit")
    page.keyboard.press("Enter")
    page.wait_for_selector("#near .bar", state="attached")
    assert {MARKUP, HOSTILE} == set(page.locator("#near .term").all_inner_texts())
    assert page.locator("main img").count() == 0 and page.locator("script:not([src])").count() == 0


def test_what_is_wrong_is_said(opened):
    page = opened.page
    page.wait_for_load_state("networkidle")  # the example of a model fills the field, too
    page.fill("#text", "")
    page.click("#look")
    assert "Enter a text first" in page.inner_text("#text-status.wrong")
    page.fill("#text", "unheard")
    page.click("#look")
    page.wait_for_selector("#text-status.wrong >> text=no word that the model knows")
    opened.complaints.clear()  # the browser itself notes every 422


def test_keys_alone_are_enough(opened):
    page = opened.page
    page.fill("#text", "")
    page.focus("#text")
    page.keyboard.type(texts()[0])
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.id") == "look"
    page.keyboard.press("Enter")
    page.wait_for_selector("#posterior button")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_phone_width_and_dark_mode(browser, address, scheme):
    for opened in watched(browser, address, PHONE, scheme):
        page = opened.page
        looked_at(page, texts()[0])
        page.wait_for_selector("#map[data-dots]")
        assert "Tap a dot" in page.inner_text("#map-title") and "arrow keys" not in page.inner_text("body")
        assert page.evaluate("() => document.documentElement.scrollWidth") <= PHONE["width"]
        ground = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, ground[4:-1].split(","))) < 200) == (scheme == "dark")
        page.goto(f"{address}/api")
        page.wait_for_selector("#calls details")
        assert page.evaluate("() => document.documentElement.scrollWidth") <= PHONE["width"]
