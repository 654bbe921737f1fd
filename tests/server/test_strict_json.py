"""JSON that a server may read: what is refused, and that no body takes more than a linear time."""

import time

import pytest

from ddx_local.server.errors import ApiError
from ddx_local.server.strict_json import DEEPEST, read


@pytest.mark.parametrize(
    "text", ["{}", "[]", '"a"', "1", "-0.5e10", '{"a": [1, {"b": null}], "c": "]]]]"}', '"\\ud83d\\ude00"', '"\\""']
)
def test_json_is_read(text: str) -> None:
    import json

    assert read(text.encode()) == json.loads(text)


def test_depth_is_counted_outside_of_strings() -> None:
    assert read(b'"' + b"[" * 1000 + b'"') == "[" * 1000
    assert read(b"[" * DEEPEST + b"]" * DEEPEST)
    with pytest.raises(ApiError):
        read(b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1))


@pytest.mark.parametrize(
    "text",
    ["", "{", '"', '"\\', '{"a":1,"a":2}', "NaN", "[Infinity]", "1e999", "-1e999", '"\\ud800"', '{"\\udfff":1}', "1" * 21, "01",
     "[1,]", "'a'", "\ufeff{}"],
)  # fmt: skip
def test_what_is_no_json_of_ours_is_refused(text: str) -> None:
    with pytest.raises(ApiError) as caught:
        read(text.encode())
    assert caught.value.status == 400


@pytest.mark.parametrize("piece", [b'\\"', b'"\\', b'"', b"[", b"{", b'[{"a":', b"]", b'""', b"\\", b'"a":"b",'])
def test_no_body_takes_long(piece: bytes) -> None:
    body = piece * ((1 << 20) // len(piece))
    start = time.process_time()
    with pytest.raises(ApiError):
        read(body)
    assert time.process_time() - start < 2
