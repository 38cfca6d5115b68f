"""Callers are apart: whatever one key asks for, and whatever its upstream answers, another key's requests and replies stay as they are.

What calls share on purpose is listed in docs/explanation/what-callers-share.md, with how long it may last.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from support.sampling import NIGHTLY
from support.two_keys import CHAT, MESSAGE, Arrived, Body, Given, Outcome, TwoKeys, refusal, two_keys, well

PROVIDERS = {
    "lab": "openai-compatible",
    "oai": "openai-chat",
    "claude": "anthropic",
    "responses": "openai",
    "local": "vllm",
}
ASK: Body = {"messages": [{"role": "user", "content": "Hello."}]}
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}
FORMAT = {"type": "json_schema", "json_schema": {"name": "s", "schema": SCHEMA, "strict": True}}
MODELS = (
    "lab/m",
    "oai/gpt-4.1",
    "oai/gpt-5.2",
    "responses/gpt-5.2",
    "claude/claude-zeta-9",
    "claude/claude-sonnet-4-5",
    "local/qwen3",
)
_SAMPLED: Body = {"temperature": 0.5, "seed": 7, "user": "u", "max_tokens": 50, "top_p": 0.9}

# What the caller B asks, before and after.
PROBES: tuple[tuple[str, Body], ...] = (
    ("/v1/chat/completions", {**ASK, **_SAMPLED}),
    (
        "/v1/chat/completions",
        {**ASK, **_SAMPLED, "top_k": 5, "parallel_tool_calls": False, "tools": [TOOL], "tool_choice": "required"},
    ),
    ("/v1/chat/completions", {**ASK, "max_tokens": 4000, "reasoning_effort": "high", "tools": [TOOL]}),
    ("/v1/chat/completions", {**ASK, "max_tokens": 4000, "reasoning_effort": "none", "stream": True}),
    (
        "/v1/chat/completions",
        {**ASK, "max_tokens": 4000, "thinking": {"type": "enabled", "budget_tokens": 2000}, "stream": True},
    ),
    (
        "/v1/messages",
        {**ASK, "max_tokens": 4000, "temperature": 1, "thinking": {"type": "enabled", "budget_tokens": 2000}},
    ),
    ("/v1/messages", {**ASK, "max_tokens": 4000, "thinking": {"type": "disabled"}, "stream": True}),
    ("/v1/responses", {"input": "Hello.", "store": False, "reasoning": {"effort": "low"}, "max_output_tokens": 99}),
)

# What the caller A asks: what its SDKs, agents and mistakes send.
ODD: tuple[Body, ...] = (
    {"max_tokens": 50, "maxTokens": 50},
    {"temperature": 3, "reasoning_effort": "high"},
    {"temperature": 0.5, "seed": 7, "top_k": 5, "user": "Unknown parameter: 'temperature'."},
    {"max_tokens": 4000, "thinking": {"type": "enabled", "budget_tokens": 4000}},
    {"max_tokens": 32000, "enable_thinking": True, "thinking_budget": 32000},
    {"reasoning_effort": "high", "tools": [TOOL], "tool_choice": "required", "parallel_tool_calls": False},
    {"reasoning_effort": "none", "max_tokens": 4000, "stream": True},
    {"reasoning_effort": "xhigh", "max_tokens": 9, "tools": [TOOL]},
    {"tool_choice": {"type": "function", "function": {"name": "none such"}}, "max_completion_tokens": 0},
    {"response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": SCHEMA, "strict": True}}},
    {"messages": [{"role": "user", "content": "</think> `seed` is not supported", "name": "n", "cache_control": {}}]},
    {"stream": True, "max_tokens": 9},
    {"n": 9, "logprobs": True, "stop": ["temperature"], "logit_bias": {"1": 2}, "stream": True, "top_k": 5},
)
_LIMITS = "max_tokens maxTokens max_completion_tokens max_output_tokens"
_THINKING = "reasoning_effort reasoning.effort thinking thinking.budget_tokens"
_REST = "temperature tool_choice tools seed user top_k top_p parallel_tool_calls response_format stream n"
NAMES = f"{_LIMITS} {_THINKING} {_REST}".split()

# How providers refuse a field, as of 2026-11: OpenAI, Anthropic, Gemini, Mistral, Groq, DeepSeek, vLLM, Cerebras, xAI, Bedrock, OpenRouter.
OF_FIELD = (
    "Unsupported parameter: '{0}' is not supported with this model.",
    "Unsupported parameter: '{0}' is not supported with this model. Use 'max_completion_tokens' instead.",
    "Unknown parameter: '{0}'.",
    "Unrecognized request argument supplied: {0}",
    "Unsupported value: '{0}' does not support 0.5 with this model. Only the default (1) value is supported.",
    "{0}: Extra inputs are not permitted",
    "`{0}` is deprecated for this model.",
    "Invalid JSON payload received. Unknown name \"{0}\" at 'generation_config': Cannot find field.",
    '[{{"type":"extra_forbidden","loc":["body","{0}"],"msg":"Extra inputs are not permitted","input":1}}]',
    "property '{0}' is unsupported",
    "`{0}` is not supported with this model",
    "Model m does not support parameter {0}.",
    "Argument not supported on this model: {0}",
    "Malformed input request: #: extraneous key [{0}] is not permitted, please reformat your input and try again.",
    "{0} is not currently supported",
    'json: unknown field "{0}"',
    "'{0}' is not supported when 'reasoning_effort' is set.",
    "{0} and thinking cannot be used together",
    "{0} must be less than max_tokens",
    "Function tools with {0} are not supported",
    "{0} requires stream=true unless thinking is off",
)
OF_THINKING = (
    "`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation",
    "Unsupported value: 'reasoning_effort' does not support 'high' with this model. Supported values are: 'low' and 'medium'.",
    "Reasoning is mandatory for this endpoint and cannot be disabled.",
    '"thinking.type.disabled" is not supported for this model',
    '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort"',
    "The thinking budget 0 is invalid. Please choose a value between 128 and 32768.",
    "The thinking_budget parameter must be a positive integer and not greater than 32000",
    "thinking.enabled.budget_tokens: Input should be greater than or equal to 4096",
    '"m" does not support thinking',
    "This response_format type is unavailable now",
    "response_format json_schema is not supported",
    "tool_choice is not supported",
    "thinking_token_budget is set but reasoning_config is not configured.",
)
STATUSES = (
    400,
    401,
    402,
    403,
    404,
    405,
    408,
    409,
    413,
    415,
    418,
    422,
    425,
    429,
    451,
    500,
    501,
    502,
    503,
    504,
    520,
    529,
)
_SSE = {"content-type": "text/event-stream"}


def _said(text: str, **usage: int) -> Given:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return Given(200, json.dumps({**CHAT, "choices": [choice], "usage": {**CHAT["usage"], **usage}}).encode())  # type: ignore[dict-item]


OTHERS: tuple[Given, ...] = (
    *(refusal("Something is wrong.", status) for status in STATUSES),
    *(refusal("Rate limit reached. Please try again tomorrow.", 429)._replace(headers={"retry-after": wait}) for wait in
      ("86400", "99999999", "Fri, 31 Dec 2100 23:59:59 GMT", "1h", "-5", "tomorrow", "")),
    refusal("overloaded", 503)._replace(headers={"retry-after": "86400"}),
    refusal("You exceeded your current quota, please check your plan and billing details.", 429, code="insufficient_quota"),
    refusal("Your input was flagged", 403, metadata={"reasons": ["violence"], "flagged_input": "x"}),
    refusal("This request requires more credits, or fewer max_tokens.", 402),
    refusal("This model's maximum context length is 8 tokens. Your messages resulted in 9 tokens.", code="context_length_exceeded"),
    Given(200, b""), Given(200, b"<html>Sign in</html>", {"content-type": "text/html"}), Given(200, b"{"), Given(200, b"[]"),
    Given(200, b'{"choices": []}'), Given(200, b'{"error": {"message": "no", "code": 500}}'), Given(200, b"\xff\xfe\x00"),
    Given(200, b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n", _SSE),
    Given(200, b"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"no\"}}\n\n", _SSE),
    _said("I think.</think>Yes."), _said("<think>I think."), _said("Hi.", prompt_tokens=999_999_999, completion_tokens=999_999_999),
    _said("Hi.", prompt_tokens=-5, completion_tokens=-5), _said("x" * 50_000),
    Given(200, b'data: {"choices":[{"index":0,"delta":{"content":"Hi."},"finish_reason":"stop"}],"usage":{"prompt_tokens":88888,'
          b'"completion_tokens":1}}\n\ndata: [DONE]\n\n', _SSE),
    Given(200, json.dumps({**MESSAGE, "usage": {"input_tokens": 10**9, "output_tokens": 10**9}}).encode()),
)  # fmt: skip


class Oddity(NamedTuple):
    """What one caller asks for, and what its upstream answers: the first time, or each time."""

    model: str
    path: str
    body: Body
    reply: Given
    always: bool


def oddities() -> list[Oddity]:
    """Return all that is tried, in an order that is the same on each run; by day a sample of it."""
    refusals = [refusal(words.format(name), 400) for words in OF_FIELD for name in NAMES]
    refusals += [refusal(words.format(name), 400, param=name) for words in OF_FIELD[:6] for name in NAMES[:8]]
    replies = [*refusals, *(refusal(words) for words in OF_THINKING), *OTHERS]
    chance = random.Random(29)
    found = [
        Oddity(chance.choice(MODELS), path, body, reply, always)
        for reply, always, body, path in itertools.product(
            replies, (False, True), ODD, ("/v1/chat/completions", "/v1/messages")
        )
    ]
    chance.shuffle(found)
    # Each reply is tried, with some of the requests.
    first = list({id(one.reply): one for one in found}.values())
    return found[:6000] if NIGHTLY else chance.sample(first, 130) + found[:70]


def _body(one: Body, model: str, path: str) -> Body:
    if path.endswith("/messages"):
        return {
            "max_tokens": 100,
            **ASK,
            **{name: value for name, value in one.items() if name not in ("tools", "tool_choice")},
            "model": model,
        }
    return {**ASK, **one, "model": model}


class Upstream:
    """Answers the caller A with something odd, and everybody else well."""

    def __init__(self) -> None:
        self.odd: list[Given | bytes] = []
        self.always = False

    def __call__(self, arrived: Arrived) -> Given | bytes:
        if not self.odd:
            return well(arrived)
        return self.odd[0] if self.always else self.odd.pop()


def probes(model: str) -> Iterator[tuple[str, Body]]:
    """Yield the requests of the caller B to a model."""
    for path, body in PROBES:
        if path != "/v1/responses" or model.startswith(("oai", "responses")):
            yield path, {**body, "model": model}


def outcomes(running: TwoKeys, model: str) -> list[Outcome]:
    """Return what comes of each of B's requests."""
    return [running.ask("b", path, body) for path, body in probes(model)]


def test_what_one_key_does_changes_no_byte_of_another_keys_calls(tmp_path: Path) -> None:
    upstream = Upstream()
    with two_keys(tmp_path, PROVIDERS, upstream) as running:
        before = {model: outcomes(running, model) for model in MODELS}
        assert all(one.status == 200 for found in before.values() for one in found)
        for one in oddities():
            upstream.odd, upstream.always = [one.reply], one.always
            running.ask("a", one.path, _body(one.body, one.model, one.path))
            upstream.odd = []
            place = hash(one.reply.body) % len(PROBES)
            told = list(zip(probes(one.model), before[one.model], strict=True))
            for (path, body), expected in {place % len(told): told[place % len(told)]}.values():
                _check(running.ask("b", path, body), expected, one)
        for model in MODELS:
            for now, expected in zip(outcomes(running, model), before[model], strict=True):
                _check(now, expected, model)


def _check(now: Outcome, before: Outcome, why: Any) -> None:
    for name in Outcome._fields:
        assert getattr(now, name) == getattr(before, name), (name, why)


_DIALECTS = {
    "openai_chat": ("/v1/chat/completions", ASK),
    "openai_responses": ("/v1/responses", {"input": [{"role": "user", "content": "Hi"}], "store": False}),
    "anthropic_messages": ("/v1/messages", {**ASK, "max_tokens": 9}),
    "gemini": ("/v1beta/models/MODEL:generateContent", {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}),
    "gemini_interactions": ("/v1beta/interactions", {"input": "Hi"}),
    "bedrock_converse": ("/model/MODEL/converse", {"messages": [{"role": "user", "content": [{"text": "Hi"}]}]}),
    "cohere": ("/v2/chat", ASK),
    "ollama": ("/api/chat", ASK),
}
# What is kept by providers, in the place where each dialect has it: the body's fields, or the parts of a message.
KEPT: tuple[tuple[str, Body | list[Body]], ...] = (
    ("openai_responses", {"previous_response_id": "ID"}),
    ("openai_responses", {"conversation": "ID"}),
    ("openai_responses", {"conversation": {"id": "ID"}}),
    ("openai_responses", {"prompt": {"id": "ID", "version": "2"}}),
    ("openai_responses", {"input": [{"type": "item_reference", "id": "ID"}]}),
    ("openai_responses", {"input": [{"id": "ID"}]}),
    ("openai_responses", {"tools": [{"type": "file_search", "vector_store_ids": ["ID"]}]}),
    ("openai_responses", {"tools": [{"type": "code_interpreter", "container": "ID"}]}),
    ("openai_responses", {"tools": [{"type": "code_interpreter", "container": {"type": "auto", "file_ids": ["ID"]}}]}),
    ("openai_responses", {"tools": [{"type": "image_generation", "input_image_mask": {"file_id": "ID"}}]}),
    ("openai_responses", {"prompt_cache_options": {"comparison_response_id": "ID"}}),
    ("openai_responses", [{"type": "input_file", "file_id": "ID"}]),
    ("openai_responses", [{"type": "input_image", "file_id": "ID"}]),
    ("openai_chat", [{"type": "file", "file": {"file_id": "ID"}}]),
    ("openai_chat", [{"type": "image_url", "image_url": {"url": "ms://ID"}}]),
    ("openai_chat", {"messages": [{"role": "system", "content": "fileid://ID"}, *ASK["messages"]]}),
    ("openai_chat", {"messages": [*ASK["messages"], {"role": "assistant", "audio": {"id": "ID"}}, *ASK["messages"]]}),
    ("openai_chat", {"extra_body": {"google": {"cached_content": "cachedContents/ID"}}}),
    ("openai_chat", {"batch_id": "ID"}),
    ("openai_chat", {"upload_id": "ID"}),
    ("openai_chat", {"project_id": "ID"}),
    ("openai_chat", {"data_sources": [{"type": "azure_search", "parameters": {"index_name": "ID"}}]}),
    ("openai_responses", {"tools": [{"type": "connector", "connector_id": "ID"}]}),
    ("anthropic_messages", {"diagnostics": {"previous_message_id": "ID"}}),
    ("bedrock_converse", {"guardrailConfig": {"guardrailIdentifier": "ID", "guardrailVersion": "1"}}),
    ("anthropic_messages", {"container": "ID"}),
    ("anthropic_messages", {"container": {"id": "ID", "skills": []}}),
    ("anthropic_messages", {"container": {"skills": [{"type": "custom", "skill_id": "ID"}]}}),
    ("anthropic_messages", {"user_profile_id": "ID"}),
    ("anthropic_messages", [{"type": "document", "source": {"type": "file", "file_id": "ID"}}]),
    ("anthropic_messages", [{"type": "image", "source": {"type": "file", "file_id": "ID"}}]),
    ("anthropic_messages", [{"type": "container_upload", "file_id": "ID"}]),
    ("gemini", {"cachedContent": "cachedContents/ID"}),
    ("gemini", {"cached_content": "cachedContents/ID"}),
    ("gemini", {"tools": [{"fileSearch": {"fileSearchStoreNames": ["fileSearchStores/ID"]}}]}),
    ("gemini", {"tools": [{"retrieval": {"vertexAiSearch": {"datastore": "projects/p/ID"}}}]}),
    ("gemini", {"tools": [{"retrieval": {"vertexAiSearch": {"engine": "projects/p/ID"}}}]}),
    ("gemini", [{"fileData": {"fileUri": "https://generativelanguage.googleapis.com/v1beta/files/ID"}}]),
    ("gemini", [{"file_data": {"file_uri": "gs://bucket/ID", "mime_type": "text/plain"}}]),
    ("gemini_interactions", {"previous_interaction_id": "ID"}),
    ("gemini_interactions", {"environment": "ID"}),
    ("gemini_interactions", {"input": [{"type": "document", "uri": "files/ID"}]}),
    ("gemini_interactions", {"tools": [{"type": "retrieval", "vertex_ai_search_config": {"datastores": ["ID"]}}]}),
    ("bedrock_converse", [{"document": {"format": "pdf", "name": "d", "source": {"s3Location": {"uri": "s3://b/ID"}}}}]),
    ("bedrock_converse", [{"video": {"format": "mp4", "source": {"s3Location": {"uri": "s3://b/ID"}}}}]),
    ("cohere", [{"type": "image_url", "image_url": {"url": "gs://b/ID"}}]),
    ("ollama", {"options": {"file_id": "ID"}}),
)  # fmt: skip


def _with_kept(spoken: str, place: Body | list[Body], model: str, name: str) -> tuple[str, Body]:
    path, body = _DIALECTS[spoken]
    if isinstance(place, dict):
        body = {**body, **place}
    elif spoken == "gemini":
        body = {"contents": [{"role": "user", "parts": place}]}
    elif spoken == "openai_responses":
        body = {**body, "input": [{"role": "user", "content": place}]}
    else:
        body = {**body, "messages": [{"role": "user", "content": place}]}
    named = {} if "MODEL" in path else {"model": model}
    return path.replace("MODEL", model.replace("/", "%2F")), json.loads(
        json.dumps({**body, **named}).replace("ID", name)
    )


def test_what_a_provider_keeps_for_one_key_does_not_exist_for_another(tmp_path: Path) -> None:
    mine, never = "resp_made_for_a_1", "resp_of_nobody_22"

    def answer(arrived: Arrived) -> Given:
        given = well(arrived)
        return given._replace(body=given.body.replace(b'"resp_1"', f'"{mine}"'.encode()))

    with two_keys(tmp_path, PROVIDERS, answer) as running:
        path, plain = _DIALECTS["openai_responses"]
        assert running.ask("a", path, {**plain, "model": "responses/gpt-5.2"}).status == 200
        models = itertools.cycle(("responses/gpt-5.2", "oai/gpt-4.1", "claude/claude-sonnet-4-5"))
        for spoken, place in KEPT:
            model = next(models)
            told = [running.ask("b", *_with_kept(spoken, place, model, name)) for name in (mine, never)]
            assert [(one.status, one.sent) for one in told] == [(404, ())] * 2, (spoken, place, told[0].body)
            assert told[0].body.replace(mine.encode(), b"") == told[1].body.replace(never.encode(), b"")
        assert (
            running.ask("a", path, {**plain, "model": "responses/gpt-5.2", "previous_response_id": mine}).status == 200
        )


SHARED: dict[str, dict[str, str]] = {
    "Services": {
        "provider_ids": "whose they are: what it is for",
        **dict.fromkeys(("directory", "transport", "keyring", "limits", "prices", "clock", "watch"), "the operator's"),
        **dict.fromkeys(("journal", "events", "client_keys"), "rows and events name their key"),
        **dict.fromkeys(("replay", "estimates", "outputs", "prompts"), "by tenant"),
        "facts": "ModelFacts",
        "payments": "the wallet is the operator's",
        "failover": "Failover",
        "server_facts": "what servers say of themselves",
        "agent": "the steps of its sessions, by tenant",
        "routing": "CallRouting",
        "health": "HealthKeeper",
        **dict.fromkeys(
            ("gate", "pipeline", "episodes", "telemetry", "searcher"),
            "by key or tenant, or counted only",
        ),
    },
    "ModelFacts": {
        **dict.fromkeys(("_rows", "_settings", "_clock"), "the operator's"),
        **dict.fromkeys(("_introspector", "_listings", "_resolved"), "what servers and providers say of themselves"),
        **dict.fromkeys(("lessons", "_starts", "_known"), "by tenant"),
        "searches": "common: the day's searches of a provider",
        "_plans": "gives the bytes that a gateway without it gives",
        **dict.fromkeys(("warnings", "_overridden"), "lines of the log"),
    },
    "Failover": {
        **dict.fromkeys(("settings", "policy", "jitter", "bounds_tokens"), "the operator's"),
        "stale": "by tenant",
        "budget": "common: how many calls of all may be hedged",
    },
    "HealthKeeper": {
        "store": "common: who is down, which provider keys rest, and how fast models answer",
        "balances": "common: what a provider says is left of the account",
        **dict.fromkeys(("_events", "_refused", "_on_loss"), "who is told"),
        "_in_flight": "common: how busy servers are",
    },
    "CallRouting": {
        **dict.fromkeys(
            ("strategy", "_prices", "_clock", "_watch", "_private", "_directory", "_places"), "the operator's"
        ),
        **dict.fromkeys(("_facts", "health"), "listed above"),
        "_server_facts": "what servers say of themselves",
        "servers": "which server of a provider a conversation uses, by tenant",
        **dict.fromkeys(
            ("_health_mark", "_made", "_index", "_making"), "common: made of health, prices and lists of models"
        ),
        "_learned": "common, where the strategy is `learned`",
    },
    "CallMemory": {
        "events": "events name their key",
        **dict.fromkeys(("estimates", "outputs", "prompts"), "by tenant"),
    },
}
"""Every structure that lives longer than a call and that several callers come by: how it keeps them apart, or why it does not."""


def test_every_structure_that_calls_share_says_how_it_keeps_them_apart(tmp_path: Path) -> None:
    with two_keys(tmp_path, PROVIDERS, well) as running:
        assembly = running.gateway.assembly
        services = assembly.services
        held = (services, services.facts, services.failover, services.health, services.routing, assembly.lasting.memory)
        found = {f"{type(one).__name__}.{name}" for one in held for name in vars(one)}
    listed = {f"{kind}.{name}" for kind, names in SHARED.items() for name in names}
    assert not found - listed, (
        "say in SHARED how this keeps callers apart, and in what-callers-share.md where it is common on purpose"
    )


def test_what_is_common_on_purpose_stands_in_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs/explanation/what-callers-share.md").read_text(encoding="utf-8")
    for words in (
        "is down",
        "after 429",
        "after 401",
        "how fast a model answers",
        "learned routing",
        "balances",
        "searches",
        "hedged",
        "an hour",
    ):
        assert words in page, words


def test_a_key_that_is_to_wait_a_day_is_tried_after_an_hour_and_meanwhile_for_whoever_has_no_other(
    tmp_path: Path,
) -> None:
    with two_keys(tmp_path, {"lab": "openai-compatible"}, well) as running:
        path, body = "/v1/chat/completions", {**ASK, "model": "lab/m"}
        before = running.ask("b", path, body)
        for wait in ("86400", "Fri, 31 Dec 2100 23:59:59 GMT", "99999999999"):
            running.answer = lambda _, wait=wait: refusal("Try again tomorrow.", 429)._replace(
                headers={"retry-after": wait}
            )  # type: ignore[misc]
            assert running.ask("a", path, body).status == 429
            (told,) = json.loads(running.call("operator", "GET", "/v1/bardo/health")[2])["providers"][0]["models"]
            assert 3500 < told["wait_seconds"] <= 3600
            running.answer = well
            assert running.ask("b", path, body) == before


def test_a_refusal_that_quotes_one_key_puts_no_providers_key_to_rest(tmp_path: Path) -> None:
    said = "Your credit balance is too low to access the API"
    with two_keys(tmp_path, {"lab": "openai-compatible"}, well) as running:
        path, body = "/v1/chat/completions", {**ASK, "model": "lab/m"}
        for quoted, waits in ((said, False), ("somebody", True)):
            running.answer = lambda _: refusal(f"Invalid user: {said}")
            for _ in range(4):
                assert running.ask("a", path, {**body, "user": quoted}).status == 400
            told = json.loads(running.call("operator", "GET", "/v1/bardo/health")[2])["providers"][0]["connection"]
            assert (told["wait_seconds"] is not None) is waits


def test_nothing_that_is_kept_of_one_keys_replies_is_given_to_another(tmp_path: Path) -> None:
    # What stands first belongs to the table before it, which is [failover].
    toml = 'stale_entries = 100\n[inference.pipeline]\nprofile = "keep"\n[inference.pipeline.profiles.keep]\nlayers = ["cache"]\n'
    with two_keys(tmp_path, {"lab": "openai-compatible"}, well, toml=toml) as running:
        path, body = "/v1/chat/completions", {**ASK, "model": "lab/m", "temperature": 0, "bardo": {"allow_stale": 9999}}
        running.answer = lambda _: _said("Only for A.")
        for _ in range(2):
            assert b"Only for A." in running.ask("a", path, body).body
        running.answer = well
        told = running.ask("b", path, body)
        assert (len(told.sent), b"Only for A." in told.body) == (1, False)
        running.answer = lambda _: refusal("Down.", 500)
        other = {**body, "messages": [{"role": "user", "content": "Another."}]}
        assert running.ask("b", path, other).status == 500
