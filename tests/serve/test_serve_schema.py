"""The API against its own schema: whatever is sent, the answer is one that the schema describes."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from served import fitted_news, fitted_ranker, started

pytest.importorskip("fastapi")
schemathesis = pytest.importorskip("schemathesis")

from schemathesis import GenerationMode  # noqa: E402
from schemathesis.config import SchemathesisConfig  # noqa: E402
from schemathesis.specs.openapi.checks import positive_data_acceptance  # noqa: E402

from varitext.serve.application import PROBLEMS, create_application  # noqa: E402

SCHEMA = create_application({}).openapi()
REJECTED = {"checks": {"negative_data_rejection": {"expected-statuses": ["4xx"]}}}  # also 413, for what is too long
LOADED = schemathesis.openapi.from_dict(SCHEMA, config=SchemathesisConfig.from_dict(REJECTED))
OPERATIONS = [found.ok() for found in LOADED.get_all_operations()]
FEW = settings(
    max_examples=12,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
# a text of the right shape may still have no word that the model knows, which is a 422 too
LEFT_OUT = [positive_data_acceptance]


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


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
def test_answers_are_as_the_schema_says(address, operation, mode):
    model = "answers" if operation.path.endswith("/rank") else "news"
    named = {"model": model} if "{model}" in operation.path else None
    if mode is GenerationMode.NEGATIVE and not (operation.body or operation.query):
        pytest.skip("there is nothing to get wrong")

    @FEW
    @given(case=operation.as_strategy(mode, path_parameters=named))
    def ask(case):
        case.call_and_validate(base_url=address, excluded_checks=LEFT_OUT)

    ask()


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
def test_any_name_of_a_model_is_an_answer(address, operation):
    if "{model}" not in operation.path:
        pytest.skip("it names no model")

    @FEW
    @given(case=operation.as_strategy())
    def ask(case):
        case.call_and_validate(base_url=address, excluded_checks=LEFT_OUT)

    ask()


def test_every_status_of_the_guards_is_in_the_schema():
    for path, methods in SCHEMA["paths"].items():
        for about in methods.values():
            documented = set(map(int, about["responses"]))
            assert documented >= {200, 401, 403, 413, 421, 500}, path
            if "requestBody" in about:
                assert documented >= {int(status) for status in PROBLEMS}, path
