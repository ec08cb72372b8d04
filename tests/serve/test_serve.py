"""The service: what it answers, what it refuses and how, batching that changes nothing, and a clean end."""

import asyncio
import json
import re
import signal
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import refused
from made_up_questions import made_up
from served import HOSTILE, fitted_news, fitted_ranker, started, texts

from varitext.answers.ranker import AnswerRanker
from varitext.documents.model import DocumentModel

httpx = pytest.importorskip("httpx")
pytest.importorskip("fastapi")
uvicorn = pytest.importorskip("uvicorn")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # starlette would rather have another client than httpx
    from fastapi.testclient import TestClient

from varitext.serve.application import PAGE, create_application  # noqa: E402
from varitext.serve.documents import explain_job, transform_job  # noqa: E402
from varitext.serve.guards import (  # noqa: E402
    CANDIDATES,
    QUESTION_CHARACTERS,
    QUESTIONS,
    TEXT_CHARACTERS,
    TEXTS,
    JSONLines,
    Limits,
    Metrics,
    Refusal,
)
from varitext.serve.queue import SERVED_BLOCK, BatchQueue, SingleJob, Worker, run_batch  # noqa: E402

TOKEN = "a-token-of-the-tests"
ADDRESS = "http://127.0.0.1"
MANY = [{"question": "who was the", "candidates": ["the king was old"]}]


@pytest.fixture(scope="module")
def news() -> DocumentModel:
    return fitted_news()


@pytest.fixture(scope="module")
def ranker() -> AnswerRanker:
    return fitted_ranker()


@pytest.fixture(scope="module")
def client(news, ranker) -> Iterator[TestClient]:
    with TestClient(create_application({"news": news, "answers": ranker}), base_url=ADDRESS) as client:
        yield client


def problem(response: httpx.Response, status: int) -> str:
    """The one line of an error; no answer ever shows a traceback."""
    assert response.status_code == status, response.text
    assert response.json().keys() == {"error"} and "Traceback" not in response.text
    return response.json()["error"]


# What it answers


def test_models_say_how_many_latent_dimensions_they_have(client, ranker, news):
    found = {one["id"]: one["latent_dim"] for one in client.get("/api/models").json()["models"]}
    assert found == {"news": news.latent_dim, "answers": 4}
    counting = AnswerRanker("overlap", threads=1).fit(made_up(20, 0), made_up(10, 1))
    with TestClient(create_application({"counting": counting}), base_url=ADDRESS) as without:
        assert without.get("/api/models").json()["models"][0]["latent_dim"] == 0


def test_transform_is_the_models_own(client, news):
    answer = client.post("/api/models/news/transform", json={"texts": [*texts(3), "nothing known"]}).json()
    expected = news.posterior([*texts(3), "nothing known"], SERVED_BLOCK)
    assert_same([one["mean"] for one in answer["vectors"]], expected.mean.tolist())
    assert_same([one["std"] for one in answer["vectors"]], expected.std.tolist())
    assert [one["known_words"] for one in answer["vectors"]] == [12, 12, 12, 0]


def test_perplexity_is_the_models_own(client, news):
    answer = client.post("/api/models/news/perplexity", json={"texts": [*texts(5), "?"]}).json()
    assert answer["per_document_perplexity"] == pytest.approx(news.perplexity(texts(5)))
    each = [one["perplexity"] for one in answer["texts"]]
    assert each[5] is None
    assert np.exp(np.log(each[:5]).mean()) == pytest.approx(answer["per_document_perplexity"])


def test_words_are_explained_by_leaving_them_out(client, news):
    text = "orbit orbit moon bread goal"
    answer = client.post("/api/models/news/explain", json={"text": text, "topics": 3}).json()
    whole = news.transform([text])[0]
    assert answer["known_words"] == 5 and answer["tried_words"] == 4
    for word in answer["words"]:
        step = whole - news.transform([" ".join(one for one in text.split() if one != word["word"])])[0]
        assert word["moved"] == pytest.approx(np.linalg.norm(step), abs=1e-5)
        assert word["along"] == pytest.approx(step @ whole / np.linalg.norm(whole), abs=1e-5)
        assert len(word["by_topic"]) == len(answer["topics"])
    means = [one["mean"] for one in answer["dimensions"]]
    assert sorted(map(abs, means), reverse=True) == list(map(abs, means))
    assert all(abs(one["mean"]) > one["std"] for one in answer["dimensions"])


def test_topics_of_a_text_are_the_models_own_and_words_point_to_them(client, news):
    text = "orbit moon moon shuttle bread"
    answer = client.post("/api/models/news/explain", json={"text": text, "topics": 50}).json()
    by_number = {topic.number: topic for topic in news.topics()}
    found = {one["number"]: one["probability"] for one in answer["topics"]}
    own = dict(zip(by_number, news.topic_memberships([text])[0].tolist(), strict=True))
    assert found == pytest.approx(own, abs=1e-5) and list(found) == sorted(found, key=lambda number: -found[number])
    assert [one["name"] for one in answer["topics"]] == [by_number[number].name for number in found]
    first = {word["word"]: word["by_topic"][0] for word in answer["words"]}
    assert first["moon"] > first["bread"]


def test_similar_words_and_latent_dimensions(client, news):
    answer = client.get("/api/models/news/similar-words", params={"word": "Orbit", "n": 3}).json()
    assert_same([[one["word"], one["similarity"]] for one in answer["similar"]], news.similar_words("orbit", 3))
    found = client.get("/api/models/news/latent-dimensions", params={"words": 4}).json()["dimensions"]
    assert [tuple(one["words"]) for one in found] == [one.words for one in news.latent_dimensions(4)]
    assert sum(one["share"] for one in found) == pytest.approx(1)


def test_the_two_tables_are_the_models_own(client, news):
    answer = client.get("/api/models/news/topics", params={"words": 4}).json()
    assert_same(answer["topics"], json.loads(json.dumps(news.topics(4).as_dicts())))
    assert answer["choice"]["number"] == len(answer["topics"]) and answer["choice"]["how"]
    asked = {"texts": [*texts(2), "nothing known"]}
    documents = client.post("/api/models/news/assign", json=asked).json()["documents"]
    assert_same(documents, news.document_info(asked["texts"]).as_dicts())
    assert documents[2]["topic"] is None and documents[2]["known_words"] == 0
    assert "texts" in problem(client.post("/api/models/news/assign", json={"texts": []}), 422)
    assert "ranks answers" in problem(client.post("/api/models/answers/assign", json=asked), 404)


def test_similar_documents_among_those_given(client):
    among = ["oven bread flour", "launch shuttle", "team goal match"]
    answer = client.post("/api/models/news/similar-documents", json={"text": "shuttle launch", "among": among}).json()
    assert answer["among"] == 3 and answer["similar"][0]["text"] == among[1]
    assert "among" in problem(client.post("/api/models/news/similar-documents", json={"text": "moon"}), 422)


def test_topics_by_label_and_over_time(tmp_path, client):
    from varitext.corpora import Columns, load_as

    file, kinds = tmp_path / "mine.csv", ["space", "sport", "bread"]
    rows = [f"{text},{kinds[n % 3]},202{n % 2}-05-01" for n, text in enumerate(texts())]
    file.write_text("text,label,when\n" + "\n".join(rows) + "\n")
    corpus = load_as(file, "all", None, Columns("text", date_column="when"))
    model = DocumentModel(latent_dim=3, epochs=8, threads=1, n_topics=3).fit(corpus)
    with TestClient(create_application({"mine": model}), base_url=ADDRESS) as served:
        while served.get("/api/models").json()["models"][0]["documents"] == "reading":
            time.sleep(0.02)
        for by, values in (("label", corpus.labels), ("date", [f"202{n % 2}-05" for n in range(90)])):
            found = served.get("/api/models/mine/topic-shares", params={"by": by}).json()["shares"]
            assert [one for one in found if one["of"]] == model.topic_shares(corpus, values).as_dicts()
            gaps = sorted({one["value"] for one in found if not one["of"]})
            assert gaps == (
                [] if by == "label" else [f"2020-{n:02}" for n in range(6, 13)] + [f"2021-0{n}" for n in range(1, 5)]
            )
        problem(served.get("/api/models/mine/topic-shares", params={"by": "colour"}), 422)
    assert "are not on this machine" in problem(client.get("/api/models/news/topic-shares"), 422)


def test_similar_documents_of_the_training_corpus(tmp_path):
    from varitext.corpora import load_documents

    file = tmp_path / "mine.jsonl"
    file.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts()))
    model = DocumentModel(latent_dim=3, epochs=2, threads=1).fit(load_documents(file, "all"))
    with TestClient(create_application({"mine": model}), base_url=ADDRESS) as client:
        while client.get("/api/models").json()["models"][0]["documents"] == "reading":
            time.sleep(0.02)
        found = client.post("/api/models/mine/similar-documents", json={"text": texts()[7], "n": 1}).json()
        assert found["among"] == 90 and found["similar"][0]["text"] == texts()[7]
        assert client.get("/api/models").json()["models"][0]["corpus"] == "mine.jsonl"  # and not where it lies
    file.write_text(json.dumps({"text": "another file"}))
    with TestClient(create_application({"mine": model}), base_url=ADDRESS) as client:
        while client.get("/api/models").json()["models"][0]["documents"] == "reading":
            time.sleep(0.02)
        assert client.get("/api/models").json()["models"][0]["documents"] == "none"


def test_the_map_is_shown_while_it_gets_better_and_stays(tmp_path, monkeypatch):
    from varitext.corpora import load_documents

    monkeypatch.setattr("varitext.serve.corpus.MAX_SAMPLE", 40)  # the other fifty join these
    file = tmp_path / "mine.jsonl"
    file.write_text("".join(json.dumps({"text": text, "label": text.split()[0]}) + "\n" for text in texts()))
    model = DocumentModel(latent_dim=3, epochs=8, threads=1, n_topics=3).fit(load_documents(file, "all"))
    with TestClient(create_application({"mine": model}), base_url=ADDRESS) as client:
        sizes, drawn = {}, {"state": "drawing", "version": 0}
        while drawn["state"] == "drawing":
            drawn = client.get(f"/api/models/mine/map?known={drawn['version']}").json()
            sizes[drawn["version"]] = len(drawn["x"]) or sizes.get(drawn["version"], 0)
        whole = client.get("/api/models/mine/map").json()
        assert len(whole["x"]) == len(whole["titles"]) == 90 and set(sizes.values()) <= {0, 40, 90}
        assert client.get(f"/api/models/mine/map?known={whole['version']}").json()["x"] == []
        assert client.get("/api/models/mine/map").json() == whole
        assert len({topic["colour"] for topic in whole["topics"]}) == len(whole["topics"])
        places, topic = np.array([whole["x"], whole["y"]]).T, np.array(whole["topic"])
        apart = np.linalg.norm(places[:, None] - places, axis=2) + 9 * np.eye(90)
        assert (topic[apart.argmin(1)] == topic).mean() > 0.8


def test_ranking_is_the_rankers_own(client, ranker):
    asked = {"question": "who was the", "candidates": ["the king was old", "near a lake", HOSTILE]}
    answer = client.post("/api/models/answers/rank", json=asked).json()
    assert_same(answer, json.loads(json.dumps(ranker.rank(asked["question"], asked["candidates"]).as_dict())))


def test_many_questions_abstention_and_the_best_few(client, ranker):
    two = {"question": "where was the", "candidates": ["a lake near the city", "the queen"]}
    asked = {"questions": [*MANY, two], "abstain": 1.0, "top": 1}
    first, second = client.post("/api/models/answers/rank", json=asked).json()["rankings"]
    assert not first["answered"] and len(first["candidates"]) == len(second["candidates"]) == 1
    expected = ranker.rank(two["question"], two["candidates"]).candidates[0]
    assert second["candidates"][0]["text"] == expected.text
    assert second["candidates"][0]["probability"] == pytest.approx(expected.probability, rel=1e-5)


def test_an_index_is_searched_as_it_is_now(ranker, tmp_path):
    from varitext import CandidateIndex, IndexedDocument

    CandidateIndex([IndexedDocument("the king was old", "a", {"page": 7})]).save(tmp_path / "index")
    application = create_application({"answers": ranker}, index=tmp_path / "index")
    with TestClient(application, base_url=ADDRESS) as client:
        assert client.get("/api/models").json()["models"][0]["indexed"] == 1
        asked = {"question": "who was the king"}
        (found,) = client.post("/api/models/answers/rank", json=asked).json()["candidates"]
        assert (found["id"], found["metadata"], found["text"]) == ("a", {"page": 7}, "the king was old")
        CandidateIndex.open(tmp_path / "index").add([IndexedDocument("the first king", "b")])
        many = client.post("/api/models/answers/rank", json={"questions": [asked, *MANY]}).json()["rankings"]
        assert {one["id"] for one in many[0]["candidates"]} == {"a", "b"}
        assert [one["id"] for one in many[1]["candidates"]] == [None]
        assert "no document of the index" in problem(
            client.post("/api/models/answers/rank", json={"question": "lake"}), 422
        )


def test_a_given_token_is_not_shown(capsys):
    from varitext.serve import _announce

    with socket.create_server(("127.0.0.1", 0)) as listening:
        _announce({"news": None}, listening, None)
        assert "token" not in capsys.readouterr().err
        _announce({"news": None}, listening, TOKEN)
        assert f"token: {TOKEN}" in capsys.readouterr().err


def test_health_metrics_and_schema(client):
    assert client.get("/health").json()["status"] == "ok"
    lines = client.get("/metrics").text.splitlines()
    sample = re.compile(r'[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.e+]+')
    assert all(line.startswith(("# HELP ", "# TYPE ")) or sample.fullmatch(line) for line in lines)
    assert any(line.startswith('varitext_requests_total{route="/health",status="200"}') for line in lines)
    assert "/api/models/{model}/rank" in client.get("/api/openapi.json").json()["paths"]


def test_no_page_names_another_server(client):
    for address in PAGE:
        response = client.get(address)
        assert response.status_code == 200
        addresses = re.findall(r"https?://[^\s\"'`]+", response.text)
        assert set(addresses) <= {"http://www.w3.org/2000/svg"}  # the name of a format: nothing is fetched from there
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["referrer-policy"] == "no-referrer"
        if "html" in response.headers["content-type"]:
            assert not re.search(r"<script(?![^>]*src=)|<style|\sstyle=|\son\w+=", response.text)


# What it refuses


@pytest.mark.parametrize(
    ("address", "body", "said"),
    [
        ("news/transform", {"texts": ["a"] * (TEXTS + 1)}, "texts: must have at most 64 entries"),
        ("news/transform", {"texts": ["a" * (TEXT_CHARACTERS + 1)]}, "texts.0: must have at most 100,000 characters"),
        ("news/transform", {"texts": []}, "texts: must not be empty"),
        ("news/transform", {"texts": ["\ud800"]}, "texts.0: must be text"),
        ("news/transform", {"texts": ["a", 5]}, "texts.1: must be text"),
        ("news/transform", {"texts": "a"}, "texts: must be a list"),
        ("news/transform", {}, "texts: missing"),
        ("news/transform", ["a"], "the body: must be a JSON object"),
        ("news/transform", {"texts": ["a"], "path": "/etc/passwd"}, "path: unknown field"),
        ("news/perplexity", {"texts": ["moon"], "samples": 101}, "samples: must be at most 100"),
        ("news/perplexity", {"texts": ["moon"], "samples": 1.5}, "samples: must be a whole number"),
        ("news/perplexity", {"texts": [HOSTILE]}, "no text has a word"),
        ("news/explain", {"text": "unheard"}, "no word that the model knows"),
        ("answers/rank", {"question": "who", "candidates": ["a"] * (CANDIDATES + 1)}, "candidates: must have at most"),
        ("answers/rank", {"question": "w" * (QUESTION_CHARACTERS + 1), "candidates": ["a"]}, "question: must have at"),
        ("answers/rank", {"question": "who", "candidates": ["a"], "abstain": 2}, "abstain: must be at most 1"),
        ("answers/rank", {"question": "who", "candidates": ["a"], "top": 0}, "top: must be at least 1"),
        ("answers/rank", {"question": "who", "candidates": ["a"], "ordered": "yes"}, "ordered: must be true or false"),
        ("answers/rank", {"candidates": ["a"]}, "question: send either question"),
        ("answers/rank", {"question": "who"}, "candidates: missing, and the server has no index"),
        ("answers/rank", {"questions": [{"question": "who"}, {"candidates": ["a"]}]}, "questions.1.question: missing"),
        ("answers/rank", {"questions": MANY, "candidates": ["a"]}, "candidates: with questions, each has its own"),
        ("answers/rank", {"questions": MANY * (QUESTIONS + 1)}, "questions: must have at most 64 entries"),
        ("answers/rank", {"questions": [{"question": "?", "candidates": ["a"] * CANDIDATES}] * 3}, "at most 2,000"),
        (
            "answers/rank",
            {"questions": [*MANY, {"question": "xyzzy", "candidates": ["a"]}]},
            "questions.1: the question",
        ),
        ("answers/rank", {"question": " ", "candidates": ["a"]}, "question is empty"),
    ],
)
def test_limits_on_what_is_asked(client, address, body, said):
    sent = json.dumps(body).encode()
    response = client.post(f"/api/models/{address}", content=sent, headers={"Content-Type": "application/json"})
    assert said in problem(response, 422)


def test_other_refusals(client):
    assert "nothing at this address" in problem(client.get("/../../etc/passwd"), 404)
    problem(client.get("/api/models/..%2F..%2Fetc/topics"), 404)
    assert "no model of that name" in problem(client.get("/api/models/other/topics"), 404)
    assert "ranks answers" in problem(client.get("/api/models/answers/topics"), 404)
    assert "does not rank" in problem(
        client.post("/api/models/news/rank", json={"question": "a", "candidates": ["b"]}), 404
    )
    problem(client.get("/api/models/news/transform"), 405)
    problem(client.post("/api/models/news/transform", content=b"{", headers={"Content-Type": "application/json"}), 400)
    deep = b"[" * 100_000
    for sent in (deep, b'{"texts": ["\xff"]}', b'{"texts": ' + b"9" * 5000):
        answer = client.post("/api/models/news/transform", content=sent, headers={"Content-Type": "application/json"})
        assert problem(answer, 400) == "the body is not JSON"
    assert "2,000,000 bytes" in problem(client.post("/api/models/news/transform", content=b" " * 2_000_001), 413)
    assert "did you mean orbit" in problem(client.get("/api/models/news/similar-words?word=orbitt"), 422)


def test_other_hosts_and_origins_are_refused(client):
    for host in ("evil.example", "127.0.0.1.evil.example", "evil@127.0.0.1", "127.0.0.1/evil", "[::1", ""):
        problem(client.get("/api/models", headers={"Host": host}), 421)
    assert client.get("/api/models", headers={"Host": "localhost:8000"}).status_code == 200
    two = [("Origin", "http://evil.example"), ("Origin", ADDRESS)]
    for origin in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "http://[bad"}, two, two[::-1]):
        problem(client.get("/api/models", headers=origin), 403)
    assert client.get("/api/models", headers={"Origin": ADDRESS}).status_code == 200


def test_the_token_is_needed_for_all_but_the_page(news):
    with TestClient(create_application({"news": news}, TOKEN), base_url="http://served.example") as client:
        assert {client.get(address).status_code for address in ("/", "/health", "/ready")} == {200}
        for address in ("/api/models", "/metrics", "/api/openapi.json", "/nothing"):
            assert problem(client.get(address), 401)
            problem(client.get(address, headers={"Authorization": f"Bearer {TOKEN}x"}), 401)
        assert client.get("/api/models", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
    with TestClient(create_application({}, TOKEN, public_metrics=True), base_url="http://served.example") as client:
        assert client.get("/metrics").status_code == 200
        problem(client.get("/api/models"), 401)


def test_it_is_alive_before_it_is_ready(news):
    application = create_application(None)
    with TestClient(application, base_url=ADDRESS) as client:
        assert client.get("/health").json()["models"] == 0
        for address in ("/ready", "/api/models", "/api/models/news/topics"):
            answer = client.get(address)
            assert "still being loaded" in problem(answer, 503) and answer.headers["retry-after"] == "1"
        client.portal.call(application.state.models.load, lambda: {"news": news})
        assert client.get("/ready").json()["models"] == 1
        assert client.post("/api/models/news/transform", json={"texts": ["moon"]}).status_code == 200
        application.state.models.begin_stop()
        assert "stopping" in problem(client.get("/ready"), 503)
        assert client.get("/health").status_code == client.get("/api/models").status_code == 200


class Slow:
    """A stand-in for a model that takes its time; nothing else of a model is needed to fill a queue."""

    def __init__(self, model: DocumentModel, seconds: float):
        self._model, self._seconds = model, seconds

    def __getattr__(self, name: str):
        return getattr(self._model, name)

    def posterior(self, X, block):
        time.sleep(self._seconds)
        return self._model.posterior(X, block)


def test_a_full_queue_and_a_slow_model_are_told(news):
    application = create_application({"news": Slow(news, 0.5)}, limits=Limits(seconds=0.3, queue=2))
    with TestClient(application, base_url=ADDRESS) as client, ThreadPoolExecutor(12) as pool:
        asked = [pool.submit(client.post, "/api/models/news/transform", json={"texts": ["moon"]}) for _ in range(12)]
        answers = [one.result() for one in asked]
        assert {answer.status_code for answer in answers} == {503, 504}
        assert all(answer.headers["retry-after"] == "1" for answer in answers if answer.status_code == 503)


def test_a_request_that_would_wait_long_is_refused_at_once():
    """The queues of two models share a thread; what a call takes is known from the calls before."""

    async def ask() -> tuple[list[Any], list[Any]]:
        worker, slow = Worker(), SingleJob(lambda: time.sleep(0.1))
        one, other = (BatchQueue(name, None, worker, Limits(wait_seconds=0.25), Metrics()) for name in "ab")
        serving = asyncio.create_task(worker.serve())
        await asyncio.gather(one.ask(slow), other.ask(slow))
        order: list[str] = []
        jobs = [
            (queue, SingleJob(partial(order.append, name))) for name, queue in (("a", one), ("b", other), ("c", one))
        ]
        await asyncio.gather(*(queue.ask(job) for queue, job in jobs))
        asked = (queue.ask(slow) for _ in range(5) for queue in (one, other))
        answers = await asyncio.gather(*asked, return_exceptions=True)
        serving.cancel()
        return answers, order

    answers, order = asyncio.run(ask())
    refused = [one for one in answers if one is not None]
    assert order == ["a", "b", "c"]  # of two models, as they came
    assert answers[0] is None and 4 <= len(refused) <= 9
    assert {(one.status, one.retry_after) for one in refused} == {(503, 1)}


def test_an_unforeseen_error_is_one_line(news, caplog):
    class Broken(Slow):
        def posterior(self, X, block):
            raise RuntimeError("secret detail")

    with TestClient(create_application({"news": Broken(news, 0)}), base_url=ADDRESS) as client:
        said = problem(client.post("/api/models/news/transform", json={"texts": ["moon"]}), 500)
        assert "secret" not in said and "secret detail" in caplog.text
        assert client.get("/health").status_code == 200


# The log


@pytest.fixture
def lines(caplog) -> Callable[[], list[dict[str, Any]]]:
    """What has been logged, as the command writes it: an object per line."""
    caplog.set_level("INFO", "varitext.serve")
    return lambda: [json.loads(JSONLines().format(record)) for record in caplog.records if "fields" in vars(record)]


def test_every_request_is_a_line_that_holds_nothing_of_it(client, lines):
    client.post("/api/models/news/transform", json={"texts": ["moon"]}, headers={"X-Request-ID": "from-a.proxy:1"})
    client.request("SECRET", "/secret%0A%1B[31m?secret=secret", headers={"Authorization": "Bearer secret"})
    first, second = lines()
    assert {name: first[name] for name in ("level", "event", "method", "path", "status", "client")} == {
        **{"level": "info", "event": "request", "method": "POST", "path": "/api/models/{model}/transform"},
        **{"status": 200, "client": "testclient"},
    }
    assert first["request_id"] == "from-a.proxy:1" and first["bytes"] > 20 and 0 < first["seconds"] < 60
    assert (second["method"], second["path"], second["status"]) == ("other", "other", 404)
    assert "secret" not in json.dumps(second).lower()


@pytest.mark.parametrize("sent", ["a b", "x" * 65, "", 'a"b', "a\x1b[31mb", "é"])
def test_an_odd_request_id_is_replaced(client, lines, sent):
    answer = client.get("/health", headers={"X-Request-ID": sent.encode("latin-1")})
    assert re.fullmatch("[0-9a-f]{16}", answer.headers["x-request-id"])
    assert lines()[0]["request_id"] == answer.headers["x-request-id"]


def test_a_failure_is_one_line_with_the_id_of_its_request(news, lines):
    class Broken(Slow):
        def posterior(self, X, block):
            raise RuntimeError("two\nlines \x1b[31m")

    with TestClient(create_application({"news": Broken(news, 0)}), base_url=ADDRESS) as client:
        answer = client.post("/api/models/news/transform", json={"texts": ["moon"]})
    failure, request = lines()
    assert failure["level"] == "error" and "RuntimeError: two\nlines" in failure["traceback"]
    assert request["level"] == "warning" and request["status"] == 500
    assert failure["request_id"] == request["request_id"] == answer.headers["x-request-id"]


# Batching


def assert_same(one: Any, other: Any) -> None:
    """Answers of the same words and numbers, up to what is promised of other batches: 1e-5 of their scale."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        one, other = list(one.values()), list(other.values())
    if isinstance(one, list | tuple):
        assert len(one) == len(other)
        for pair in zip(one, other, strict=True):
            assert_same(*pair)
    elif isinstance(one, float):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
    else:
        assert one == other


def test_batches_change_nothing(news):
    jobs = [transform_job(texts(n + 1, seed=n)) for n in range(5)] + [
        explain_job("moon bread goal", 3, 5),
        explain_job("?", 3, 5),
    ]
    together = run_batch(news, jobs)
    alone = [run_batch(news, [job])[0] for job in jobs]
    for one, other in zip(together[:6], alone[:6], strict=True):
        assert_same(one, other)
    assert str(together[6]) == str(alone[6]) == "the text has no word that the model knows"


def test_concurrent_requests_share_a_call(news):
    calls = []

    class Counting(Slow):
        def posterior(self, X, block):
            calls.append(X.shape[0])
            return super().posterior(X, block)

    application = create_application({"news": Counting(news, 0.05)})

    async def ask() -> list[httpx.Response]:
        transport = httpx.ASGITransport(application)
        async with (
            application.router.lifespan_context(application),
            httpx.AsyncClient(transport=transport, base_url=ADDRESS) as client,
        ):
            asked = (client.post("/api/models/news/transform", json={"texts": [text]}) for text in texts(30))
            return await asyncio.gather(*asked)

    answers = asyncio.run(ask())
    assert sum(calls) == 30 and len(calls) < 10
    means = [answer.json()["vectors"][0]["mean"] for answer in answers]
    np.testing.assert_allclose(means, news.posterior(texts(30), SERVED_BLOCK).mean, rtol=1e-5, atol=1e-5)


def test_a_failing_alone_job_is_its_own_affair(news):
    assert isinstance(run_batch(news, [SingleJob(lambda: 1 / 0)])[0], ZeroDivisionError)


# The real command


@pytest.fixture
def folders(news, ranker, tmp_path) -> Path:
    news.save(tmp_path / "news")
    ranker.save(tmp_path / "answers")
    return tmp_path


def test_stop_with_answers_in_flight(folders):
    server, at = started(folders / "news", folders / "answers")
    address = f"{at}/api/models/news/perplexity"
    asked = {"texts": [" ".join(texts(40))] * TEXTS, "samples": 100}
    with ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(httpx.post, address, json=asked, timeout=30) for _ in range(8)]
        waiting = re.compile(r'queue_length{model="news"} [1-9]')
        while not (waiting.search(httpx.get(f"{at}/metrics").text) or any(one.done() for one in answers)):
            time.sleep(0.02)
        time.sleep(0.5)  # the others have connected too
        server.send_signal(signal.SIGTERM)
        stopped = time.monotonic()
        assert [one.result().status_code for one in answers] == [200] * 8
    assert server.wait(10) == 0 and time.monotonic() - stopped < 5
    with server.stderr:
        assert server.stderr.read() == ""


def test_the_command_refuses_in_one_line(folders):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert "Cannot listen" in refused(folders, "serve", folders / "news", "--port", port)
    assert "--token" in refused(folders, "serve", folders / "news", "--port", 0, "--token", "short")
    assert "not a folder" in refused(folders, "serve", folders / "nothing", "--port", 0)


def test_another_host_gets_a_token():
    from varitext.serve import _token_for, is_loopback

    assert _token_for("127.0.0.1", None) is None and is_loopback("::1") and not is_loopback("0.0.0.0")
    assert len(_token_for("0.0.0.0", None)) >= 32 and _token_for("0.0.0.0", None) != _token_for("0.0.0.0", None)


def test_answers_do_not_wait_for_acknowledgements():
    from varitext.serve import _listen

    with _listen("127.0.0.1", 0) as listening:
        assert listening.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_whoever_still_waits_at_the_end_is_told():
    async def ask() -> list[Refusal]:
        queue = BatchQueue("news", None, Worker(), Limits(), None)  # nobody serves it
        waiting = [asyncio.create_task(queue.ask(SingleJob(lambda: None))) for _ in range(3)]
        await asyncio.sleep(0)
        queue.refuse_all()
        return await asyncio.gather(*waiting, return_exceptions=True)

    assert [(one.status, one.message) for one in asyncio.run(ask())] == [(503, "the server is stopping")] * 3


# Without any other extra

# what the other extras bring, and the development environment, but for pyarrow, which scikit-learn looks for among
# the modules; `find_spec` does not find what is None here
OTHER_EXTRAS = (
    *("plotly", "openTSNE", "matplotlib", "jinja2"),
    *("tomotopy", "gensim", "pyro", "pattern", "ray", "wordcloud", "contextualized_topic_models"),
)
SCRIPT = f"""
import sys, time, warnings
class Missing:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "pyarrow":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing)
sys.modules.update(dict.fromkeys({OTHER_EXTRAS!r}))
warnings.simplefilter("ignore")  # starlette would rather have another client than httpx
from fastapi.testclient import TestClient
from varitext.corpora import load_documents
from varitext.documents.model import DocumentModel
from varitext.serve.application import create_application

model = DocumentModel(latent_dim=3, epochs=2, threads=1, n_topics=3).fit(load_documents(sys.argv[1], "all"))
with TestClient(create_application({{"mine": model}}), base_url="http://127.0.0.1") as client:
    assert client.get("/").status_code == 200
    asked = {{"text": "moon orbit", "n": 1}}
    while client.get("/api/models").json()["models"][0]["documents"] == "reading":
        time.sleep(0.02)
    assert client.post("/api/models/mine/similar-documents", json=asked).json()["among"] == 90
    assert client.post("/api/models/mine/explain", json={{"text": "moon orbit"}}).json()["known_words"] == 2
    while (drawn := client.get("/api/models/mine/map").json())["state"] == "drawing":
        time.sleep(0.02)
    assert drawn["state"] == "ready" and len(drawn["x"]) == 90
    assert "varitext_requests_total" in client.get("/metrics").text
print([name for name in sys.modules if name.startswith(("varitext.report", "varitext.cli"))])
"""


def test_the_service_starts_and_answers_without_any_other_extra(tmp_path):
    (tmp_path / "mine.jsonl").write_text("".join(f'{{"text": "{text}"}}\n' for text in texts()))
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "mine.jsonl")]
    run = subprocess.run(command, capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (0, "[]\n"), run.stderr
