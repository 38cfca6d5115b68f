"""A provider's refusal reaches each client in the words of the client's own dialect, whatever dialect the provider speaks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from bardo.adapters.net.client import Call
from bardo.adapters.net.fake import FakeReply
from support.scripted import Scripted
from support.talk import ALL_CLIENTS

SAID = "no such luck"
ANTHROPIC = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
OPENAI = {
    401: "invalid_api_key",
    402: "insufficient_quota",
    404: "model_not_found",
    429: "rate_limit_exceeded",
    500: "server_error",
}
GOOGLE = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}
AMAZON = {
    400: "ValidationException",
    401: "UnrecognizedClientException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    429: "ThrottlingException",
    500: "InternalServerException",
    503: "ServiceUnavailableException",
}
STATUSES = (400, 401, 402, 403, 404, 408, 413, 422, 429, 500, 502, 503, 504, 529)


def openai(status: int) -> dict[str, Any]:
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return {"error": {"message": SAID, "type": kind, "code": OPENAI.get(status), "param": None}}


PROVIDERS: dict[str, Callable[[int], dict[str, Any]]] = {
    "openai_chat": openai,
    "openai_responses": openai,
    "anthropic_messages": lambda status: {
        "type": "error",
        "error": {"type": ANTHROPIC.get(status, "api_error"), "message": SAID},
    },
    "gemini": lambda status: {"error": {"code": status, "message": SAID, "status": GOOGLE.get(status, "UNKNOWN")}},
    "bedrock_converse": lambda status: {"message": SAID, "__type": AMAZON.get(status, "ModelErrorException")},
    "cohere": lambda status: {"id": "x", "message": SAID},
    "ollama": lambda status: {"error": SAID},
}
WORDS = {
    "openai": {*OPENAI.values()},
    # OpenAI's own servers have the other types, too.
    "anthropic": {*ANTHROPIC.values()} - {"invalid_request_error", "rate_limit_error"},
    "gemini": {*GOOGLE.values()},
    "bedrock": {*AMAZON.values()},
}


@pytest.mark.sampled(16)
@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_refusal_is_told_in_the_words_of_the_client(provider: str, status: int) -> None:
    def refuse(call: Call) -> FakeReply:
        body = json.dumps(PROVIDERS[provider](status)).encode()
        return FakeReply(status=status, headers={"content-type": "application/json"}, chunks=[body])

    gateway = Scripted(provider, refuse)
    for client in ALL_CLIENTS:
        for stream in (False, True):
            said = gateway.ask(client, stream=stream)
            family = client.partition("_")[0]
            foreign = {word for name, words in WORDS.items() if name != family for word in words}
            assert SAID in said.text, (client, stream)
            assert not [word for word in foreign if re.search(rf"\b{word}\b", said.text)], (client, stream)
            assert said.status == status, (client, stream)


@pytest.mark.parametrize("status", [401, 403, 404, 413, 429])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_messages_client_reads_the_type_of_each_status(provider: str, status: int) -> None:
    body = json.dumps(PROVIDERS[provider](status)).encode()
    gateway = Scripted(provider, lambda call: FakeReply(status=status, headers={}, chunks=[body]))
    told = gateway.ask("anthropic_messages", stream=False).json["error"]["type"]
    # A refusal of Converse is known by its own word, and it has none for this status.
    assert told == ("api_error" if (provider, status) == ("bedrock_converse", 413) else ANTHROPIC[status])
