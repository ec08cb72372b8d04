"""GloVe from its official archive: a local server in its place, broken downloads, checksums, what is kept."""

import hashlib
import http.server
import threading
import zipfile

import pytest
from refusal import refused

from varitext import corpora
from varitext.corpora import glove, word_vectors
from varitext.corpora.sources import SourceFile

TEXT = b"".join(f"word{n} {' '.join(str(n / (k + 1)) for k in range(4))}\n".encode() for n in range(500))


class Server:
    """Sends a file, from where a request asks; breaks off after `limit` bytes if there is one."""

    def __init__(self, content: bytes):
        self.content, self.limit, self.asked = content, None, []
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                asked = self.headers.get("Range")
                server.asked.append(asked)
                start = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
                self.send_response(206 if asked else 200)
                self.send_header("Content-Length", str(len(server.content) - start))
                self.end_headers()
                self.wfile.write(server.content[start:][: server.limit])

            def log_message(self, *_): ...

        self.http = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.http.server_port}/glove.6B.zip"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()


@pytest.fixture
def server(tmp_path, monkeypatch):
    """The official archive in small: the same code, with the checksums of the small one."""
    with zipfile.ZipFile(tmp_path / "small.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("glove.6B.50d.txt", "not needed")
        archive.writestr(glove.MEMBER, TEXT)
    server = Server((tmp_path / "small.zip").read_bytes())
    known = SourceFile(word_vectors.GLOVE.name, hashlib.sha256(TEXT).hexdigest())
    archive = SourceFile(glove.ARCHIVE.name, hashlib.sha256(server.content).hexdigest())
    monkeypatch.setattr(glove, "GLOVE", known)
    monkeypatch.setattr(word_vectors, "GLOVE", known)
    monkeypatch.setattr(glove, "ARCHIVE", archive)
    monkeypatch.setattr(glove, "ARCHIVE_SIZE", len(server.content))
    monkeypatch.setattr(glove, "ADDRESSES", (server.address,))
    monkeypatch.setenv("VARITEXT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("VARITEXT_DATA", raising=False)
    yield server
    server.http.shutdown()
    server.http.server_close()


def test_only_the_file_of_100_dimensions_is_kept_and_found(server, tmp_path):
    assert word_vectors.known_word_vectors() is None
    assert corpora.fetch("glove").files[0].sha256 == hashlib.sha256(TEXT).hexdigest()
    kept = [path.name for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert kept == [glove.MEMBER]
    found = word_vectors.known_word_vectors(None, ["word300"], 2)
    assert found.words == ("word0", "word1", "word300") and found.dim == 4
    assert (found.source, found.sha256) == (glove.MEMBER, hashlib.sha256(TEXT).hexdigest())
    corpora.fetch("glove")
    assert server.asked == [None]  # the second fetch found it in the cache


def test_a_broken_download_goes_on_where_it_ended(server):
    server.limit = 1000
    refused(lambda: corpora.fetch("glove"), "ended after 1,000 of", "try again to continue")
    server.limit = None
    corpora.fetch("glove")
    assert server.asked == [None, "bytes=1000-"]


def test_another_file_is_refused(server, tmp_path, monkeypatch):
    right, server.content = server.content, bytes(len(server.content))
    refused(lambda: corpora.fetch("glove"), "sent another file", "Put embeddings/glove.6B.100d.txt")
    server.content = right
    corpora.fetch("glove")
    path = tmp_path / "cache" / word_vectors.GLOVE.name
    path.write_bytes(TEXT.replace(b"word1 ", b"other "))
    refused(word_vectors.known_word_vectors, "is not the expected file", "Replace or remove it")


def test_the_archive_may_be_in_the_data_folder(server, tmp_path):
    (tmp_path / "data" / "embeddings").mkdir(parents=True)
    (tmp_path / "data" / glove.ARCHIVE.name).write_bytes(server.content)
    assert str(tmp_path / "cache") in corpora.fetch("glove", tmp_path / "data").where and not server.asked
