"""A machine without corpora, and a web server."""

import http.server
import threading

import pytest

from varitext.corpora import minilm, newsgroups, wikiqa

NOBODY = "http://127.0.0.1:9"  # an address on this machine where nothing listens


@pytest.fixture(autouse=True)
def no_files_but_those_of_the_test(tmp_path, monkeypatch):
    monkeypatch.delenv("VARITEXT_DATA", raising=False)
    monkeypatch.setenv("VARITEXT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(wikiqa, "ADDRESS", f"{NOBODY}/WikiQACorpus.zip")
    monkeypatch.setattr(newsgroups, "ARCHIVE_ADDRESSES", (f"{NOBODY}/20news-bydate.tar.gz",))
    monkeypatch.setattr(minilm, "PACKAGE", "not_installed")


@pytest.fixture
def server():
    """A web server on this machine; `pages` holds its content."""
    pages: dict[str, bytes] = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            content = pages.get(self.path)
            self.send_response(404 if content is None else 200)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        running.pages, running.address = pages, f"http://127.0.0.1:{running.server_port}"
        yield running
        running.shutdown()
