"""The API against its own schema: whatever is sent, the answer is one that the schema describes."""

import importlib.util
from collections.abc import Iterator
from functools import cache

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from served import fitted_news, fitted_ranker, started

pytest.importorskip("fastapi")
if importlib.util.find_spec("schemathesis") is None:  # it takes seconds to import, for the process that runs this file
    pytest.skip("schemathesis is not installed", allow_module_level=True)

from varitext.serve.application import PROBLEMS, create_application

SCHEMA = create_application({}).openapi()
REJECTED = {"checks": {"negative_data_rejection": {"expected-statuses": ["4xx"]}}}  # also 413, for what is too long
OPERATIONS = [f"{method.upper()} {path}" for path, methods in SCHEMA["paths"].items() for method in methods]
FEW = settings(
    max_examples=12,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@cache
def operations() -> dict:
    """By their labels."""
    import schemathesis
    from schemathesis.config import SchemathesisConfig

    loaded = schemathesis.openapi.from_dict(SCHEMA, config=SchemathesisConfig.from_dict(REJECTED))
    found = [one.ok() for one in loaded.get_all_operations()]
    return {operation.label: operation for operation in found}


def called(case, address: str) -> None:
    from schemathesis.specs.openapi.checks import positive_data_acceptance

    # a text of the right shape may still have no word that the model knows, which is a 422 too
    case.call_and_validate(base_url=address, excluded_checks=[positive_data_acceptance])


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("models")
    fitted_news().save(folder / "news")
    fitted_ranker().save(folder / "answers")
    server, address = started(folder / "news", folder / "answers")
    yield address
    server.terminate()
    with server.stderr:
        said = server.stderr.read()
    assert server.wait() == 0 and "Traceback" not in said, said


@pytest.mark.parametrize("mode", ["positive", "negative"])
@pytest.mark.parametrize("label", OPERATIONS)
def test_answers_are_as_the_schema_says(address, label, mode):
    from schemathesis import GenerationMode

    operation, generation = operations()[label], GenerationMode(mode)
    model = "answers" if operation.path.endswith("/rank") else "news"
    named = {"model": model} if "{model}" in operation.path else None
    if generation is GenerationMode.NEGATIVE and not (operation.body or operation.query):
        pytest.skip("there is nothing to get wrong")

    @FEW
    @given(case=operation.as_strategy(generation, path_parameters=named))
    def ask(case):
        called(case, address)

    ask()


@pytest.mark.parametrize("label", OPERATIONS)
def test_any_name_of_a_model_is_an_answer(address, label):
    operation = operations()[label]
    if "{model}" not in operation.path:
        pytest.skip("it names no model")

    @FEW
    @given(case=operation.as_strategy())
    def ask(case):
        called(case, address)

    ask()


def test_the_schema_has_these_operations_and_no_others():
    assert list(operations()) == OPERATIONS


def test_every_status_of_the_guards_is_in_the_schema():
    for path, methods in SCHEMA["paths"].items():
        for about in methods.values():
            documented = set(map(int, about["responses"]))
            assert documented >= {200, 401, 403, 413, 421, 500}, path
            if "requestBody" in about:
                assert documented >= {int(status) for status in PROBLEMS}, path
