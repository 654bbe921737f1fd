"""Schemathesis over our own OpenAPI document: no 5xx, no reply that the document does not describe."""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings

from tests.server.conftest import Served, serving

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("fuzzed")) as found:
        yield found


checks: list[Any] = [
    schemathesis.checks.not_a_server_error,
    schemathesis.checks.status_code_conformance,
    schemathesis.checks.content_type_conformance,
    schemathesis.checks.response_headers_conformance,
    schemathesis.checks.response_schema_conformance,
]


def test_every_route_answers_as_its_document_says(fuzzed: Served) -> None:
    headers = {"Authorization": f"Bearer {fuzzed.keys['admin']}"}
    with fuzzed.http() as http:
        document = http.get("/ddx/v1/openapi.json").json()
    schema = schemathesis.openapi.from_dict(document)
    schema.config.update(base_url=fuzzed.url)
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) == len(fuzzed.server.table.routes)
    for operation in operations:

        @settings(
            max_examples=10, deadline=None, database=None, derandomize=True, phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        @given(case=operation.as_strategy())
        def fuzz(case: Any) -> None:
            case.call_and_validate(headers=headers, checks=checks, timeout=60, allow_redirects=False)

        fuzz()
    assert fuzzed.reports == []
