"""Hostile texts, counts and requests to the service: each gets a result or a one-line error."""

import json
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from lab.faults import corpora, hostile
from lab.faults.folders import fitted_documents
from lab.faults.tally import Fault, Tally
from varitext import AnswerRanker, DocumentModel, load_questions
from varitext.serve.application import create_application
from varitext.text import TokenRules, count_texts, tokenise

with warnings.catch_warnings(action="ignore"):  # starlette warns about httpx
    from fastapi.testclient import TestClient

FIELDS = {
    "transform": ("texts",),
    "assign": ("texts",),
    "perplexity": ("texts", "samples"),
    "explain": ("text", "topics", "words"),
    "similar-documents": ("text", "among", "n"),
    "place": ("text",),
    "rank": ("question", "candidates", "samples", "ordered"),
    "topics": (),
    "topic-shares": (),
    "latent-dimensions": (),
    "similar-words": (),
    "map": (),
}
SCIKIT_LEARN = "must be a string or a real number"  # for objects in a matrix scikit-learn requires a TypeError
KINDS = ("application/json", "text/plain", "application/json; charset=utf-16")


def measure(tally: Tally, times: int, folder: Path) -> None:
    """80 % texts, 10 % counts, 10 % requests."""
    model = fitted_documents(0)
    tally.run("texts", times * 8 // 10, partial(read_text, model))
    tally.run("counts", times // 10, partial(read_counts, model))
    questions = load_questions(corpora.write_questions(folder / "questions.jsonl", 24))
    ranker = AnswerRanker(latent_dim=2, embedding_dim=4, epochs=1, vectors="random", threads=1)
    application = create_application({"news": model, "answers": ranker.fit(questions, questions)})
    with TestClient(application, "http://127.0.0.1", raise_server_exceptions=False) as client:
        tally.run("requests", times // 10, partial(request, client))


def read_text(model: DocumentModel, number: int) -> str:
    """Tokens under random rules, and counts over known words; one in ten is not a text."""
    generator = np.random.default_rng([1, number])
    given = hostile.value(generator) if generator.random() < 0.1 else hostile.text(generator)
    rules = TokenRules(lowercase=bool(generator.integers(2)), minimum_length=int(generator.integers(1, 3)))

    def read() -> None:
        if isinstance(given, str) and any(not isinstance(token, str) for token in tokenise(given, rules)):
            raise Fault(f"{given!r} has tokens that are not text")
        counts = count_texts([given], vocabulary=model.fitted_.vocabulary, token_rules=rules).counts
        if not np.isfinite(counts.data).all() or (counts.data < 1).any():
            raise Fault(f"{given!r} has counts {counts.data}")

    return answered(read, given)


def read_counts(model: DocumentModel, number: int) -> str:
    generator = np.random.default_rng([2, number])
    given = hostile.matrix(generator, len(model.fitted_.vocabulary))

    def read() -> None:
        if not np.isfinite(model.transform(given)).all():
            raise Fault(f"{given!r} has a vector that is not finite")

    return answered(read, given)


def answered(read: Callable[[], None], given: object) -> str:
    try:
        with warnings.catch_warnings(action="ignore"):
            read()
    except ValueError as error:  # as `InputError` is one, and scikit-learn's refusals
        if "Traceback" in str(error):
            raise Fault(f"{given!r}: {error}") from None
        return "refused"
    except Fault:
        raise
    except Exception as error:
        if isinstance(error, TypeError) and SCIKIT_LEARN in str(error):
            return "refused"
        raise Fault(f"{str(given)[:200]!r}: {type(error).__name__}: {error}") from None
    return "answered"


def request(client: TestClient, number: int) -> str:
    generator = np.random.default_rng([3, number])
    route = list(FIELDS)[generator.integers(len(FIELDS))]
    usual = "answers" if route == "rank" else "news"
    model = usual if generator.random() < 0.9 else ("news", "answers", "..%2f", "nobody")[generator.integers(4)]
    sent = _body(generator, FIELDS[route])
    word = ("rocket", hostile.text(generator))[generator.integers(2)].encode("utf-8", "surrogatepass")[:300]
    query = {"word": word, "n": str(_plausible("n", generator))[:50].encode("utf-8", "replace")}
    method = "POST" if FIELDS[route] or generator.random() < 0.1 else "GET"
    headers = {"content-type": KINDS[generator.choice(3, p=(0.9, 0.05, 0.05))]}
    answer = client.request(method, f"/api/models/{model}/{route}", content=sent, params=query, headers=headers)
    said = f"{method} {route} {query} {sent[:300]!r}: {answer.status_code} {answer.text[:200]}"
    if answer.status_code >= 500:
        raise Fault(said)
    if answer.status_code >= 400 and "\n" in answer.json()["error"]:
        raise Fault(f"more than a line: {said}")
    return "answered" if answer.status_code < 400 else "refused"


def _body(generator: np.random.Generator, fields: tuple[str, ...]) -> bytes:
    """A request with hostile fields, other JSON, deep nesting, or noise."""
    kind = generator.random()
    if kind < 0.05:
        return generator.bytes(int(generator.integers(0, 200)))
    if kind < 0.07:
        return b"[" * int(generator.integers(1, 100_000))
    if kind < 0.15:
        return _json(hostile.value(generator))
    return _json({name: _plausible(name, generator) for name in fields})


def _plausible(field: str, generator: np.random.Generator) -> Any:
    if generator.random() < 0.15:
        return hostile.value(generator)
    if field in ("texts", "among", "candidates"):
        return [hostile.text(generator) for _ in range(generator.integers(0, 4))]
    if field in ("text", "question"):
        return hostile.text(generator)
    return int(generator.integers(0, 30)) if field != "ordered" else bool(generator.integers(2))


def _json(value: Any) -> bytes:
    return json.dumps(value, default=str, ensure_ascii=True).encode()
