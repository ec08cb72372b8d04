"""A report as a browser reads it, and texts that try to be more than text."""

import base64
import hashlib
import json
from html.parser import HTMLParser

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=https://evil.example/x.png onerror=alert(1)>",
    "<a href='https://evil.example/'>click</a>",
    '"><b onmouseover=alert(1)>',
    "<!--<script>",
    "&lt;b&gt; %{x} $x^2$ {{7*7}}",
    "]]></title></style>",
)
# What would make a browser fetch something or leave the page.
FETCHING = {"src", "href", "srcset", "action", "formaction", "data", "poster", "background", "ping", "xlink:href"}
OUR_TAGS = {
    *("html", "head", "meta", "title", "style", "script", "body", "main", "header", "section", "footer", "div", "span"),
    *("figure", "figcaption", "h1", "h2", "h3", "p", "i", "b", "dl", "dt", "dd", "ol", "li", "button", "input"),
    *("details", "summary", "table", "tr", "th", "td", "svg", "g", "path", "text"),
}


class Page(HTMLParser):
    """The page as a browser reads it: its tags, attributes, text and scripts."""

    def __init__(self, html: str):
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.scripts: list[str] = []
        self.figures: list[dict] = []
        self.text = ""
        self.policy = ""
        self._inside: tuple[str, str] = ("", "")
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.tags.add(tag)
        self.attributes.extend(attributes)
        self._inside = (tag, values.get("type", ""))
        if values.get("http-equiv") == "Content-Security-Policy":
            self.policy = values["content"]

    def handle_data(self, data):
        if self._inside == ("script", ""):
            self.scripts.append(data)
        elif self._inside == ("script", "application/json"):
            self.figures.append(json.loads(data))
        elif self._inside[0] != "style":
            self.text += data

    def handle_endtag(self, tag):
        self._inside = ("", "")


def check_nothing_is_fetched(html: str) -> None:
    page = Page(html)
    assert not FETCHING & {name for name, _ in page.attributes}
    assert not page.tags & {"link", "iframe", "img", "object", "embed", "base", "form"}
    assert "url(" not in html[: html.index("<body>")] and "@import" not in html
    assert "http" not in page.policy and "default-src 'none'" in page.policy
    assert "unsafe-eval" not in page.policy and "script-src 'unsafe" not in page.policy


def check_the_policy_allows_exactly_the_scripts(html: str) -> None:
    page = Page(html)
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in page.scripts]
    allowed = page.policy.split("script-src ")[1].split(";")[0]
    assert allowed == " ".join(f"'sha256-{value}'" for value in hashes)
    assert len(hashes) == 2


def check_only_our_tags(html: str) -> None:
    """In the page, and in what plotly would read as tags."""
    page = Page(html)
    assert page.tags <= OUR_TAGS
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    for figure in page.figures:
        shown = json.dumps(figure).replace("<extra>", "").replace("</extra>", "")
        for tag in ("<b>", "</b>", "<i>", "</i>", "<br>"):
            shown = shown.replace(tag, "")
        assert "<" not in shown
