"""A prompt that is too long: each client reads its own API's words, by which agents shorten their conversation. Whole and in streams."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bardo.adapters.net.client import Call
from bardo.adapters.net.fake import FakeReply
from bardo.dialects import dialect
from bardo.values.context_overflow import find_overflow
from support.talk import ask
from surfaces.gateway.cells import whole_and_streamed
from surfaces.gateway.scripted import Scripted, chat_reply, scripted

REFUSALS: dict[str, dict[str, Any]] = {
    "openai-chat": {
        "error": {
            "message": "This model's maximum context length is 1000 tokens. However, your messages resulted in 1200 tokens.",
            "type": "invalid_request_error",
            "param": "messages",
            "code": "context_length_exceeded",
        }
    },
    "responses-compatible": {
        "error": {
            "message": "Your input exceeds the context window of this model. Please adjust your input and try again.",
            "type": "invalid_request_error",
            "param": "input",
            "code": "context_length_exceeded",
        }
    },
    "anthropic": {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": "prompt is too long: 1200 tokens > 1000 maximum"},
        "request_id": "req_of_the_provider",
    },
    "gemini": {
        "error": {
            "code": 400,
            "message": "The input token count (1200) exceeds the maximum number of tokens allowed (1000).",
            "status": "INVALID_ARGUMENT",
        }
    },
}
WORDS = {
    "openai_chat": ("maximum context length is 1000 tokens", "exceeds the context window"),
    "openai_responses": ("maximum context length is 1000 tokens", "exceeds the context window"),
    "anthropic_messages": ("prompt is too long: 1200 tokens > 1000 maximum", "prompt is too long"),
    "gemini": (
        "The input token count (1200) exceeds the maximum number of tokens allowed (1000).",
        "The input token count exceeds",
    ),
}


class Refusing(Scripted):
    """Refuses every request as one provider does."""

    refusal: Any = None

    def answer(self, call: Call) -> FakeReply:
        return FakeReply(
            status=400, headers={"content-type": "application/json"}, chunks=(json.dumps(self.refusal).encode(),)
        )


@whole_and_streamed
@pytest.mark.parametrize("provider", REFUSALS)
@pytest.mark.parametrize("spoken", WORDS)
def test_a_client_reads_its_own_words(spoken: str, provider: str, stream: bool) -> None:
    with scripted([provider], played=Refusing()) as played:
        assert isinstance(played, Refusing)
        played.refusal = REFUSALS[provider]
        answer = ask(played.address, spoken, f"{provider}/claude-sonnet-4-5", stream=stream)
    assert answer.status == 400
    error = answer.json["error"]
    counted, uncounted = WORDS[spoken]
    assert (uncounted if provider == "responses-compatible" else counted) in error["message"]
    assert answer.headers["x-request-id"] == answer.headers["request-id"] == answer.headers["x-bardo-request-id"]
    if spoken in ("openai_chat", "openai_responses"):
        assert (error["type"], error["code"]) == ("invalid_request_error", "context_length_exceeded")
    elif spoken == "anthropic_messages":
        assert error["type"] == "invalid_request_error"
        own = provider == "anthropic"
        assert answer.json["request_id"] == ("req_of_the_provider" if own else answer.headers["request-id"])
    else:
        assert (error["code"], error["status"]) == (400, "INVALID_ARGUMENT")


IN_STREAMS: dict[str, list[Any]] = {
    "openai-chat": [
        {"error": {"message": REFUSALS["openai-chat"]["error"]["message"], "code": 400, "type": "BadRequestError"}}
    ],
    "responses-compatible": [
        {"type": "response.created", "response": {"id": "r", "status": "in_progress", "model": "m", "output": []}},
        {
            "type": "response.failed",
            "response": {
                "id": "r",
                "status": "failed",
                "model": "m",
                "output": [],
                "error": REFUSALS["responses-compatible"]["error"],
            },
        },
    ],
    "anthropic": [
        {
            "type": "message_start",
            "message": {"id": "m", "role": "assistant", "model": "m", "content": [], "usage": {}},
        },
        {"type": "error", "error": REFUSALS["anthropic"]["error"]},
    ],
    "gemini": [REFUSALS["gemini"]],
}


@pytest.mark.parametrize("provider", IN_STREAMS)
@pytest.mark.parametrize("spoken", WORDS)
def test_an_error_within_a_stream(spoken: str, provider: str) -> None:
    with scripted([provider]) as played:
        played.replies.append(IN_STREAMS[provider])
        answer = ask(played.address, spoken, f"{provider}/claude-sonnet-4-5", stream=True)
    counted, uncounted = WORDS[spoken]
    assert (uncounted if provider == "responses-compatible" else counted) in answer.text
    if spoken in ("openai_chat", "openai_responses"):
        assert "context_length_exceeded" in answer.text


@pytest.mark.parametrize("after_text", [False, True])
@pytest.mark.parametrize("spoken", WORDS)
def test_an_error_without_a_field_around_it_ends_a_stream(spoken: str, after_text: bool) -> None:
    said = "The input (1200 tokens) is longer than the model's context length (1000 tokens)."
    refusal = {"object": "error", "message": said, "type": "BadRequestError", "param": None, "code": 400}
    with scripted(["vllm"]) as played:
        begun = chat_reply({"content": "Hi"}, stream=True)[:2] if after_text else []
        played.replies.append([*begun, refusal])
        answer = ask(played.address, spoken, "vllm/m1", stream=True)
    assert answer.status == (200 if after_text else 400)
    assert WORDS[spoken][0] in answer.text or (said in answer.text and "context_length_exceeded" in answer.text)


def test_types_and_codes_of_another_dialect_do_not_leak() -> None:
    refusal = {
        "error": {"code": 400, "message": "no", "status": "FAILED_PRECONDITION", "details": [{"reason": "R_EASON"}]}
    }
    error = dialect("gemini").decode_error(400, json.dumps(refusal).encode(), {}, "g")
    for spoken in ("openai_chat", "openai_responses", "anthropic_messages", "cohere", "bedrock_converse"):
        body = dialect(spoken).encode_error(error).decode()
        assert "FAILED_PRECONDITION" not in body
        assert "R_EASON" not in body


def test_details_of_anthropic_are_kept() -> None:
    said = {
        "type": "error",
        "error": {"type": "not_found_error", "message": "m", "details": {"a": 1}},
        "request_id": "req_1",
    }
    error = dialect("anthropic_messages").decode_error(404, json.dumps(said).encode(), {}, "a")
    body = json.loads(dialect("anthropic_messages").encode_error(error))
    assert (body["error"]["details"], body["request_id"]) == ({"a": 1}, "req_1")


@pytest.mark.parametrize(
    ("message", "found"),
    [
        ("input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000", (209573, 200000, 21333)),
        ("This model's maximum prompt length is 131072 but the request contains 537812 tokens.", (537812, 131072, 0)),
        ("Input is too long for requested model.", (0, 0, 0)),
        (
            "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
            (40000, 32768, 0),
        ),
        (
            "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (3000 in the messages, 2000 in the "
            "completion).",
            (5000, 4096, 2000),
        ),
        (
            "'max_tokens' or 'max_completion_tokens' is too large: 2000. This model's maximum context length is 4096 tokens and your "
            "request has 3000 input tokens (2000 > 4096 - 3000).",
            (5000, 4096, 2000),
        ),
        (
            "You passed 67073 input tokens and requested 64000 output tokens. However, the model's context length is only 131072 tokens, "
            "resulting in a maximum input length of 67072 tokens. Please reduce the length of the input prompt.",
            (131073, 131072, 64000),
        ),
        ("The decoder prompt (length 5000) is longer than the maximum model length of 4096.", (5000, 4096, 0)),
        ("The input (5000 tokens) is longer than the model's context length (4096 tokens).", (5000, 4096, 0)),
        ("request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it", (5000, 4096, 0)),
        ("Requested tokens (5000) exceed context window of 4096", (5000, 4096, 0)),
        ("prompt too long; exceeded max context length by 17 tokens (ref: 6f)", (0, 0, 0)),
        ("tokens to keep from the initial prompt is greater than the context length", (0, 0, 0)),
        ("Too many input tokens. Max input tokens: 8192, request input token count: 9999", (9999, 8192, 0)),
        ("Input Tokens Exceeded: Number of input tokens exceeds maximum length.", (0, 0, 0)),
        (
            "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 296800 tokens.",
            (296800, 272000, 0),
        ),
        (
            "Please reduce the length of the messages. Current length is 144371 while limit is 131072",
            (144371, 131072, 0),
        ),
        ("Your request exceeded model token limit: 131072 (requested: 140000)", (140000, 131072, 0)),
        ("The prompt is too long: 140000, model maximum context length: 131071", (140000, 131071, 0)),
        ("invalid params, context window exceeds limit (2013)", (0, 0, 0)),
        ("length of prompt_tokens (131073) must be less than max_seq_len (131072).", (131073, 131072, 0)),
        ("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]", (0, 0, 0)),
        ("Input length 131073 exceeds the maximum length 98304", (131073, 98304, 0)),
        ("prompt token count of 130431 exceeds the limit of 128000", (130431, 128000, 0)),
        (
            "Unable to submit request because the input token count is 33041 but model only supports up to 32767.",
            (33041, 32767, 0),
        ),
        (
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens and 200 "
            "`max_new_tokens`",
            (4200, 4096, 200),
        ),
        ("the number of input tokens 5000 cannot exceed the total tokens limit 4096 for this model", (5000, 4096, 0)),
        ("Rate limit reached for 30000 tokens per minute", None),
        ("Too many tokens, please wait before trying again.", None),
        ("Range of max_tokens should be [1, 8192]", None),
        ("max_tokens is too large: 500000. This model supports at most 128000 completion tokens", None),
    ],
)
def test_what_a_refusal_says_of_the_length(message: str, found: tuple[int, int, int] | None) -> None:
    assert find_overflow(message, None, None, None) == found


def test_an_output_limit_that_leaves_no_room_is_said_by_both_numbers() -> None:
    # Claude Code lowers max_tokens by the numbers of this sentence, and shortens nothing.
    said = "You passed 3000 input tokens and requested 2000 output tokens. However, the model's context length is only 4096 tokens."
    refusal = {"error": {"message": said, "type": "BadRequestError", "code": 400}}
    error = dialect("openai_chat").decode_error(400, json.dumps(refusal).encode(), {}, "v")
    message = json.loads(dialect("anthropic_messages").encode_error(error))["error"]["message"]
    assert message.startswith("input length and `max_tokens` exceed context limit: 3000 + 2000 > 4096, decrease")


@pytest.mark.parametrize("spoken", ["anthropic_messages", "gemini"])
def test_a_server_of_the_same_dialect_with_words_of_its_own(spoken: str) -> None:
    said = "invalid params, context window exceeds limit (2013)"
    refusal = {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": said, "status": "INVALID_ARGUMENT"},
    }
    error = dialect(spoken).decode_error(400, json.dumps(refusal).encode(), {}, "minimax")
    message = json.loads(dialect(spoken).encode_error(error))["error"]["message"]
    assert message.startswith({"anthropic_messages": "prompt is too long", "gemini": "The input token count"}[spoken])
    assert said in message


@pytest.mark.parametrize("spoken", WORDS)
def test_the_words_of_a_server_behind_a_router(spoken: str) -> None:
    raw = json.dumps({"type": "error", "error": REFUSALS["anthropic"]["error"]})
    refusal = {
        "error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": raw, "provider_name": "A"}}
    }
    error = dialect("openai_chat").decode_error(400, json.dumps(refusal).encode(), {}, "openrouter")
    body = json.loads(dialect(spoken).encode_error(error))["error"]
    assert "prompt is too long: 1200 tokens > 1000 maximum" in body["message"]
    assert spoken not in ("openai_chat", "openai_responses") or body["code"] == "context_length_exceeded"
