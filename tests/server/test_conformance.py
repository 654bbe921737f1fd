"""openai-python over a real socket, and every reply and chunk against OpenAI's own schemas."""

import base64
import json
import struct
from typing import Any

import jsonschema
import openai
import pytest

from ddx_local import result
from tests.server.checking import check, events
from tests.server.conftest import CASE, Served

HI: list[Any] = [{"role": "user", "content": "hello"}]
ANSWER = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 30}, "sure": {"type": "boolean"}},
    "required": ["name", "sure"],
    "additionalProperties": False,
}


def posted(served: Served, path: str, scope: str = "admin", **body: Any) -> Any:
    with served.http(scope) as http:
        return http.post(path, json=body)


def test_models_are_listed_and_each_can_be_looked_up_with_a_slash_in_its_id(served: Served, schemas: Any) -> None:
    client = served.client("raw")
    names = [model.id for model in client.models.list()]
    assert names[0] == "scripted"
    assert {"ddx/scot", "ddx/counterfactual", "ddx/auto"} <= set(names)
    assert [client.models.retrieve(name).id for name in names] == names
    with served.http() as http:
        check(http.get("/v1/models").json(), "ListModelsResponse", schemas)
        assert http.get("/v1/models/ddx%2Fscot").json()["id"] == "ddx/scot"
        assert http.get("/v1/models/ddx/scot").json()["id"] == "ddx/scot"


def test_a_chat_reply_and_its_stream_say_the_same_and_fit_the_schemas(served: Served, schemas: Any) -> None:
    body = {"model": "scripted", "messages": HI, "temperature": 0}
    whole = posted(served, "/v1/chat/completions", "raw", **body)
    check(whole.json(), "CreateChatCompletionResponse", schemas)
    stream = posted(served, "/v1/chat/completions", "raw", **body, stream=True, stream_options={"include_usage": True})
    assert stream.headers["content-type"].startswith("text/event-stream")
    *chunks, done = events(stream.text)
    assert done == "[DONE]"
    for chunk in chunks:
        check(chunk, "CreateChatCompletionStreamResponse", schemas)
    assert len({chunk["id"] for chunk in chunks}) == 1
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"] == whole.json()["usage"]
    assert chunks[-2]["choices"][0]["finish_reason"] == "stop"
    said = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks[:-1])
    assert said == whole.json()["choices"][0]["message"]["content"]


def test_a_seed_repeats_an_answer_and_choices_differ(served: Served) -> None:
    client = served.client("raw")

    def said(**more: Any) -> list[str]:
        found = client.chat.completions.create(model="scripted", messages=HI, temperature=1, **more)
        return [str(choice.message.content) for choice in found.choices]

    assert said(seed=3) == said(seed=3)
    assert said(seed=3) != said(seed=4)
    two = said(seed=3, n=2)
    assert len(set(two)) == 2


def test_stop_and_max_tokens_end_an_answer_and_say_so(served: Served) -> None:
    client = served.client("raw")
    whole = client.chat.completions.create(model="scripted", messages=HI, temperature=0).choices[0]
    cut = client.chat.completions.create(model="scripted", messages=HI, temperature=0, max_tokens=5)
    assert cut.choices[0].finish_reason == "length"
    assert cut.usage is not None
    assert cut.usage.completion_tokens == 5
    assert cut.choices[0].message.content == str(whole.message.content)[:5]
    stopped = client.chat.completions.create(model="scripted", messages=HI, temperature=0, stop=[" "]).choices[0]
    assert stopped.finish_reason == "stop"
    assert stopped.message.content == str(whole.message.content).partition(" ")[0]


def test_a_response_format_binds_the_answer(served: Served) -> None:
    client = served.client("raw")
    wanted: Any = {"type": "json_schema", "json_schema": {"name": "answer", "schema": ANSWER, "strict": True}}
    for seed in range(3):
        said = client.chat.completions.create(model="scripted", messages=HI, response_format=wanted, seed=seed)
        jsonschema.validate(json.loads(str(said.choices[0].message.content)), ANSWER)
    said = client.chat.completions.create(model="scripted", messages=HI, response_format={"type": "json_object"})
    assert isinstance(json.loads(str(said.choices[0].message.content)), dict)


def test_text_completions_take_one_prompt_or_several(served: Served, schemas: Any) -> None:
    client = served.client("raw")
    reply = posted(served, "/v1/completions", "raw", model="scripted", prompt=["a", "b"], n=2, max_tokens=50, seed=1)
    check(reply.json(), "CreateCompletionResponse", schemas)
    assert [choice["index"] for choice in reply.json()["choices"]] == [0, 1, 2, 3]
    whole = client.completions.create(model="scripted", prompt="a", temperature=0, max_tokens=40, echo=False)
    parts = client.completions.create(model="scripted", prompt="a", temperature=0, max_tokens=40, stream=True)
    assert "".join(part.choices[0].text for part in parts) == whole.choices[0].text
    assert whole.choices[0].finish_reason == "length"


def test_embeddings_come_as_numbers_and_as_base64(served: Served, schemas: Any) -> None:
    client = served.client("raw")
    texts = ["fever", "high temperature"]
    floats = client.embeddings.create(model="scripted-embedding", input=texts, encoding_format="float")
    check(floats.model_dump(mode="json", exclude_unset=True), "CreateEmbeddingResponse", schemas)
    packed = posted(served, "/v1/embeddings", "raw", model="scripted-embedding", input=texts, encoding_format="base64")
    data = base64.b64decode(packed.json()["data"][1]["embedding"])
    assert struct.unpack(f"<{len(data) // 4}f", data) == pytest.approx(floats.data[1].embedding, abs=1e-6)
    assert len(client.embeddings.create(model="scripted-embedding", input="fever").data[0].embedding) == 64


@pytest.mark.parametrize("method", ["zero-shot", "scot", "counterfactual"])
def test_a_method_answers_as_a_model(served: Served, schemas: Any, method: str) -> None:
    body = {"model": f"ddx/{method}", "messages": [{"role": "user", "content": CASE}], "seed": 5}
    whole = posted(served, "/v1/chat/completions", "ddx", **body)
    check(whole.json(), "CreateChatCompletionResponse", schemas)
    said = whole.json()["choices"][0]["message"]["content"]
    assert "## Differential diagnosis" in said
    beside = whole.json()["ddx"]
    assert beside["method"] == method
    assert beside["calls"] > 0
    assert served.store.find(beside["run_id"]).status == "finished"
    assert whole.json()["usage"]["total_tokens"] == beside["tokens"]
    *chunks, done = events(posted(served, "/v1/chat/completions", "ddx", **body, stream=True).text)
    assert done == "[DONE]"
    for chunk in chunks:
        check(chunk, "CreateChatCompletionStreamResponse", schemas)
    text = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks)
    ranking = said[said.index("## Differential") : said.index("Method ")]
    assert ranking in text
    assert text.index("**") < text.index("## Differential diagnosis")
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"


def test_a_method_gives_its_result_document_where_json_is_asked_for(served: Served) -> None:
    client = served.client("ddx")
    said = client.chat.completions.create(
        model="ddx/zero-shot",
        messages=[{"role": "system", "content": "Be brief."}, {"role": "user", "content": CASE}],
        response_format={"type": "json_object"},
        temperature=0,
    )
    document = json.loads(str(said.choices[0].message.content))
    jsonschema.validate(document, result.schema())
    assert document["differential"]
    assert said.model_extra is not None
    assert said.model_extra["ddx"]["ignored"] == ["temperature", "system messages"]


def test_options_of_a_method_are_taken_and_checked(served: Served) -> None:
    client = served.client("ddx")

    def ask(**options: Any) -> Any:
        return client.chat.completions.create(
            model="ddx/scot", messages=[{"role": "user", "content": CASE}], extra_body={"ddx": options}
        )

    found = ask(agents=3, without=["cant_miss", "relevance"])
    run = found.model_extra["ddx"]["run_id"]
    with served.http() as http:
        assert http.get(f"/ddx/v1/runs/{run}").json()["options"]["agents"] == 3
    for wrong in ({"agentz": 3}, {"agents": "many"}, {"agents": -1}):
        with pytest.raises(openai.BadRequestError) as caught:
            ask(**wrong)
        assert str(caught.value.param).startswith("ddx")


@pytest.mark.parametrize(
    ("model", "field", "value"),
    [
        ("ddx/scot", "tools", [{"type": "function", "function": {"name": "f"}}]),
        ("ddx/scot", "logprobs", True),
        ("ddx/scot", "n", 2),
        ("ddx/scot", "stop", ["x"]),
        ("scripted", "logprobs", True),
        ("scripted", "tools", [{"type": "function", "function": {"name": "f"}}]),
        ("scripted", "logit_bias", {"1": 2}),
        *[
            (model, name, value)
            for model in ("scripted", "ddx/scot")
            for name, value in (
                ("vllm_xargs", {"a": 1}),
                ("prompt_logprobs", 1),
                ("echo", True),
                ("cache_salt", "x"),
                ("guided_regex", ".*"),
                ("structured_outputs", {}),
                ("kv_transfer_params", {}),
                ("chat_template", "x"),
            )
        ],
    ],
)
def test_what_cannot_be_done_is_refused_by_name(served: Served, model: str, field: str, value: Any) -> None:
    reply = posted(served, "/v1/chat/completions", model=model, messages=HI, **{field: value})
    assert reply.status_code == 400
    error = reply.json()["error"]
    assert (error["code"], error["param"]) == ("unsupported_parameter", field)


def test_null_counts_as_left_out(served: Served) -> None:
    nulls = dict.fromkeys(
        ("stream", "stop", "seed", "n", "tools", "logprobs", "response_format", "temperature", "ddx", "user")
    )
    assert posted(served, "/v1/chat/completions", model="scripted", messages=HI, **nulls).status_code == 200
    assert posted(served, "/v1/completions", model="scripted", prompt="a", echo=None, suffix=None).status_code == 200


def test_every_class_of_error_is_one_of_openai_python(served: Served, schemas: Any) -> None:
    client = served.client("admin")
    with pytest.raises(openai.NotFoundError) as missing:
        client.chat.completions.create(model="ddx/scott", messages=HI)
    assert missing.value.code == "model_not_found"
    assert "ddx/scot," in missing.value.message
    assert "scott" not in missing.value.message
    with pytest.raises(openai.AuthenticationError):
        served.client("nobody").models.list()
    with pytest.raises(openai.PermissionDeniedError):
        served.client("metrics").completions.create(model="scripted", prompt="a")
    with pytest.raises(openai.PermissionDeniedError):
        served.client("raw").chat.completions.create(model="ddx/scot", messages=HI)
    with pytest.raises(openai.PermissionDeniedError):
        served.client("ddx").chat.completions.create(model="scripted", messages=HI)
    with pytest.raises(openai.BadRequestError) as long:
        client.chat.completions.create(model="scripted", messages=HI, max_tokens=1 << 20)
    assert long.value.code == "context_length_exceeded"
    with served.http() as http:
        for reply, status in (
            (http.get("/v1/chat/completions"), 405),
            (http.get("/v1/unknown"), 404),
            (http.post("/v1/chat/completions", content=b"{}", headers={"content-type": "text/plain"}), 415),
            (
                http.post(
                    "/v1/chat/completions", content=b" " * (2 << 20), headers={"content-type": "application/json"}
                ),
                413,
            ),
        ):
            assert reply.status_code == status
            check(reply.json(), "ErrorResponse", schemas)
            assert reply.headers["x-request-id"].startswith("req_")
            assert reply.headers["content-type"] == "application/json"
        assert http.get("/v1/chat/completions").headers["allow"] == "POST"
    with served.http(None) as http:
        assert http.get("/v1/models").headers["www-authenticate"].startswith("Bearer")


def test_a_case_that_fails_is_an_error_with_its_kind(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served.engine, "context", 300)
    reply = posted(
        served, "/v1/chat/completions", "ddx", model="ddx/scot", messages=[{"role": "user", "content": CASE}]
    )
    assert reply.status_code == 400
    assert reply.json()["error"]["code"] == "context_length_exceeded"
    stream = posted(
        served,
        "/v1/chat/completions",
        "ddx",
        model="ddx/scot",
        messages=[{"role": "user", "content": CASE}],
        stream=True,
    )
    *_, error, done = events(stream.text)
    assert error["error"]["code"] == "context_length_exceeded"
    assert done == "[DONE]"
