"""The further libraries raise their own exceptions for errors, before a stream and inside it; headers and keys are as everywhere."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from importlib import import_module
from typing import Any

import pytest

from bardo.adapters.stores.replay_store import ReplayKeeper
from bardo.adapters.stores.state import MemoryStore
from support.further_sdks import FURTHER_SDKS, StreamError, bedrock_client, converse_message
from support.gateway import House, Remembering, house, model_of
from support.sdk import Sdk
from support.talk import FURTHER_CLIENTS, QUESTION, WEATHER, ask, request
from surfaces.gateway.cells import whole_and_streamed
from surfaces.gateway.test_sdk_tool_loops import sealed_in

PROVIDERS = ("anthropic", "deepseek")
LATE = 8


@pytest.fixture(scope="module")
def town() -> Iterator[House]:
    with house([Remembering(name) for name in PROVIDERS]) as running:
        yield running


@pytest.fixture(scope="module")
def further(town: House) -> Iterator[dict[str, Sdk]]:
    with ExitStack() as stack:
        yield {name: stack.enter_context(closing(kind(town.address))) for name, kind in FURTHER_SDKS.items()}


def error_of(module: str, name: str) -> type[Exception]:
    found: type[Exception] = getattr(import_module(module), name)
    return found


_ANTHROPIC = {400: "BadRequestError", 401: "AuthenticationError", 404: "NotFoundError", 429: "RateLimitError"}
_COHERE = {400: "BadRequestError", 401: "UnauthorizedError", 404: "NotFoundError", 429: "TooManyRequestsError"}
_AWS = {
    400: "ValidationException",
    401: "UnrecognizedClientException",
    404: "ResourceNotFoundException",
    429: "ThrottlingException",
    503: "ServiceUnavailableException",
}


def class_for(name: str, status: int) -> type[Exception]:
    """Return the exception that a library has for a status."""
    match name:
        case "ollama":
            return error_of("ollama", "ResponseError")
        case "bedrock_converse":
            return error_of("botocore.exceptions", "ClientError")
        case "bedrock_invoke":
            return error_of("anthropic", _ANTHROPIC.get(status, "APIStatusError"))
        case "cohere":
            return error_of("cohere.errors", _COHERE.get(status, "ServiceUnavailableError"))
    return error_of("google.genai._gaos.lib.compat_errors", "APIStatusError")


def status_of(error: Any) -> int:
    """Return the status as the library tells it."""
    if hasattr(error, "response") and isinstance(error.response, dict):
        return int(error.response["ResponseMetadata"]["HTTPStatusCode"])
    return int(error.status_code)


@pytest.mark.sampled(3, of="name")
@pytest.mark.parametrize("status", [400, 401, 404, 429, 503])
@whole_and_streamed
@pytest.mark.parametrize("name", list(FURTHER_SDKS))
def test_a_status_raises_its_class(further: dict[str, Sdk], name: str, stream: bool, status: int) -> None:
    sdk = further[name]
    model = f"{model_of('anthropic')}+fault:status={status}"
    with pytest.raises(class_for(name, status)) as caught:
        sdk.ask(model, sdk.said(QUESTION), stream=stream)
    assert status_of(caught.value) == status
    if name == "bedrock_converse":
        assert caught.value.response["Error"]["Code"] == _AWS[status]  # type: ignore[attr-defined]
        assert caught.value.response["Error"]["Message"]  # type: ignore[attr-defined]


IN_STREAM: dict[str, Callable[[], type[Exception]]] = {
    "ollama": lambda: error_of("ollama", "ResponseError"),
    "bedrock_converse": lambda: error_of("botocore.exceptions", "EventStreamError"),
    "bedrock_invoke": lambda: error_of("anthropic", "APIError"),
    "gemini_interactions": lambda: StreamError,
}


@pytest.mark.sampled(1, of="name")
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("fault", [f"error-event,after={LATE}", f"cut,after={LATE}"])
@pytest.mark.parametrize("name", IN_STREAM)
def test_a_stream_that_breaks_raises_inside_it(further: dict[str, Sdk], name: str, provider: str, fault: str) -> None:
    sdk = further[name]
    # What is there already is left out of the collection at the end, which takes a second otherwise.
    gc.freeze()
    with pytest.raises(IN_STREAM[name]()) as caught:
        sdk.ask(f"{model_of(provider)}+fault:{fault}", sdk.said(QUESTION), stream=True)
    assert str(caught.value)
    # Some libraries leave the connection of a stream that broke to the garbage collector.
    del caught
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.mark.parametrize("provider", PROVIDERS)
def test_coheres_stream_ends_with_what_went_wrong(further: dict[str, Sdk], provider: str) -> None:
    sdk = further["cohere"]
    heard = sdk.ask(f"{model_of(provider)}+fault:cut,after={LATE}", sdk.said(QUESTION), stream=True)
    assert heard.stop == "ERROR"
    assert heard.whole.error


@pytest.mark.parametrize("client", FURTHER_CLIENTS)
@whole_and_streamed
def test_headers_say_who_answered(town: House, client: str, stream: bool) -> None:
    answer = ask(town.address, client, model_of("anthropic"), stream=stream, thinks=True)
    assert answer.status == 200
    assert answer.headers["x-bardo-provider"] == "anthropic"
    assert answer.headers["x-bardo-request-id"].startswith("req_")
    assert ("x-bardo-reasoning-tokens" in answer.headers) is not stream


@pytest.mark.parametrize("client", FURTHER_CLIENTS)
@pytest.mark.parametrize("include", ["receipt", "reasoning_chain"])
@whole_and_streamed
def test_what_is_to_be_included_is(town: House, client: str, include: str, stream: bool) -> None:
    answer = ask(
        town.address, client, model_of("anthropic"), stream=stream, thinks=True, headers={"x-bardo-include": include}
    )
    body = answer.body
    if client == "bedrock_invoke" and stream:
        body = b"".join(_chunks(body))
    assert b'"bardo":{' in body
    assert f'"{include}":'.encode() in body


def _chunks(body: bytes) -> Iterator[bytes]:
    import base64
    import json

    from bardo.streams.eventstream import EventStreamDecoder

    for frame in EventStreamDecoder().feed(body):
        yield base64.b64decode(json.loads(frame.data or b"{}")["bytes"])


MODELS = {
    "an inference profile": "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "an ARN": "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "a provider's model": "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_aws_models_are_named_as_aws_names_them(model: str) -> None:
    with house([Remembering("bedrock")]) as running, closing(bedrock_client(running.address)) as client:
        messages = [{"role": "user", "content": [{"text": QUESTION}]}]
        whole = client.converse(modelId=model, messages=messages)
        streamed = converse_message(client.converse_stream(modelId=model, messages=messages)["stream"])
        for reply in (whole, streamed):
            assert "1161" in str(reply["output"]["message"]["content"])
        assert model.rpartition("/")[2] in running.arrived("bedrock")[-1].path.replace("%3A", ":")


def test_one_invokes_with_bytes() -> None:
    body = (
        b'{"anthropic_version":"bedrock-2023-05-31","max_tokens":99,"messages":[{"role":"user","content":"Say hi."}]}'
    )
    with house([Remembering("deepseek")]) as running, closing(bedrock_client(running.address)) as client:
        whole = client.invoke_model(modelId="deepseek/m1", body=body)["body"].read()
        events = client.invoke_model_with_response_stream(modelId="deepseek/m1", body=body)["body"]
        streamed = b"".join(event["chunk"]["bytes"] for event in events)
    assert b'"text":"This is a simulated answer to: Say hi."' in whole
    assert b'"type":"message_stop"' in streamed


def test_interactions_are_not_stored(town: House, further: dict[str, Sdk]) -> None:
    client: Any = further["gemini_interactions"].client  # type: ignore[attr-defined]
    for act in (client.interactions.get, client.interactions.cancel, client.interactions.delete):
        with pytest.raises(class_for("gemini_interactions", 404), match="stores no interactions"):
            act(id="one")
    with pytest.raises(class_for("gemini_interactions", 400), match="previous_interaction_id"):
        client.interactions.create(model="anthropic/m1", input="Go on.", previous_interaction_id="one")


SIGNED = (
    "AWS4-HMAC-SHA256 Credential={key}/20261122/us-east-1/bedrock/aws4_request, SignedHeaders=host, Signature={n:064x}"
)


@pytest.mark.parametrize(
    ("keys", "recalled"),
    [
        ((SIGNED.format(key="one", n=1), SIGNED.format(key="one", n=2)), True),
        ((SIGNED.format(key="one", n=1), SIGNED.format(key="two", n=2)), False),
        (("Bearer one", "Bearer one"), True),
        (("Bearer one", "Bearer two"), False),
    ],
    ids=["one signer", "two signers", "one bearer", "two bearers"],
)
def test_what_a_client_came_with_says_whose_thinking_is_recalled(keys: tuple[str, str], recalled: bool) -> None:
    provider = "anthropic"
    model = model_of(provider)
    with house([Remembering(provider)], replay=ReplayKeeper(MemoryStore())) as running:
        asked: dict[str, Any] = {"question": WEATHER, "thinks": True, "tools": True}
        first = ask(running.address, "ollama", model, headers={"authorization": keys[0]}, **asked).json["message"]
        sealed = sealed_in(running.sent(provider))
        kept = {name: value for name, value in first.items() if name in ("role", "content", "tool_calls")}
        for call in kept["tool_calls"]:
            call.pop("id", None)
        turns = [{"role": "user", "content": WEATHER}, kept, {"role": "tool", "content": "sunny"}]
        body = {"model": model, "messages": turns, "think": "low", "stream": False}
        assert request(running.address, "POST", "/api/chat", body, {"authorization": keys[1]}).status == 200
        assert (sealed_in(running.arrived(provider)[-1].raw) == sealed) is recalled
