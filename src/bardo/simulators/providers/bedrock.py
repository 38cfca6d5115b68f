"""Amazon Bedrock's Converse, its count of tokens and its vectors: one language for all families, which still reason each in its own way.

Claude signs its reasoning; gpt-oss and others do not, and stream an empty text before it; Nova 2 hides the words; the first Nova writes
tags into its text, cut in two. A request is refused as Bedrock refuses it.
"""

from __future__ import annotations

import base64
import json
import re
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

from bardo.simulators.demands import CLAUDE, Demands, Rule
from bardo.simulators.embeddings import count_tokens, dimensions_of, vector
from bardo.simulators.exchange import Exchange, Incoming, Refusal, Reply, streamed
from bardo.simulators.fields import Fields, at, compact, fields, joined_text, last_text, rows, text
from bardo.simulators.marks import ALPHANUMERIC, seal
from bardo.simulators.provider import Provider
from bardo.simulators.providers import cohere
from bardo.simulators.turns import Conversation, Tool

_CONVERSE_PATH = re.compile(r"/model/(?P<model>.+)/(?P<method>converse|converse-stream)")
_SCHEMA = "outputConfig.textFormat.structure.jsonSchema.schema"


def called(path: str) -> tuple[str, str]:
    """Split a path into the model and the method; both empty where it is no call."""
    match = _CONVERSE_PATH.fullmatch(path)
    return (match["model"], match["method"]) if match else ("", "")


def read(incoming: Incoming, path: str) -> Conversation:
    """Decode the request. Raises Refusal."""
    body = incoming.fields
    if not isinstance(incoming.body, dict):
        raise Refusal("bad_json", "Unexpected end of stream while parsing JSON")
    model, method = called(path)
    messages = rows(body.get("messages"))
    if not messages:
        words = "1 validation error detected: Value at 'messages' failed to satisfy constraint: Member must not be null"
        raise Refusal("missing_field", words, parameter="messages")
    for index, message in enumerate(messages):
        _check_message(index, message, messages[index - 1] if index else {}, signs="claude" in model)
    _check_tools(body, messages)
    return Conversation(
        model=model,
        question=last_text(messages, "role", "user"),
        rounds=sum(message.get("role") == "assistant" for message in messages),
        tools=_tools(body),
        forced_tool=text(at(body, "toolConfig.toolChoice.tool.name")) or None,
        tool_results=tuple(_result_text(result) for result in _blocks_of_kind(messages[-1], "toolResult")),
        schema=_schema(text(at(body, _SCHEMA))),
        streamed=method == "converse-stream",
        sse=False,
        characters=len(joined_text(body.get("system"))) + sum(len(json.dumps(m.get("content"))) for m in messages),
    )


def _check_message(index: int, message: Fields, before: Fields, *, signs: bool) -> None:
    role = message.get("role")
    if role not in ("user", "assistant"):
        words = "failed to satisfy constraint: Member must satisfy enum value set: [user, assistant]"
        raise Refusal("bad_value", f"1 validation error detected: Value at 'messages.{index + 1}.member.role' {words}")
    if index == 0 and role != "user":
        words = "A conversation must start with a user message. Try again with a conversation that starts with one."
        raise Refusal("bad_value", words)
    content = rows(message.get("content"))
    for position, block in enumerate(content):
        where = f"messages.{index}.content.{position}"
        if isinstance(block.get("text"), str) and not text(block["text"]).strip():
            words = f"The text field in the ContentBlock object at {where} is blank. Add text to the text field, and try again."
            raise Refusal("bad_value", words)
        thought = fields(at(block, "reasoningContent.reasoningText"))
        signature = thought.get("signature")
        if thought and signs and signature is None:
            raise Refusal("bad_value", f"{where}.thinking.signature: Field required")
        if thought and signature == "":
            raise Refusal("bad_value", f"{where}: Invalid `signature` in `thinking` block")
    called = [text(use.get("toolUseId")) for use in _blocks_of_kind(before, "toolUse")]
    answered = [text(result.get("toolUseId")) for result in _blocks_of_kind(message, "toolResult")]
    if sorted(called) != sorted(answered) and (answered or called):
        words = "Expected toolResult blocks at messages.{0}.content for the following Ids: {1}, but found: {2}"
        raise Refusal("bad_value", words.format(index, ", ".join(called), ", ".join(answered)))


def _check_tools(body: Fields, messages: Sequence[Fields]) -> None:
    used = any(
        name in block for m in messages for block in rows(m.get("content")) for name in ("toolUse", "toolResult")
    )
    if used and not rows(at(body, "toolConfig.tools")):
        words = "The toolConfig field must be defined when using toolUse and toolResult content blocks."
        raise Refusal("missing_field", words, parameter="toolConfig")


def _tools(body: Fields) -> tuple[Tool, ...]:
    specs = (fields(tool.get("toolSpec")) for tool in rows(at(body, "toolConfig.tools")))
    return tuple(
        Tool(text(spec.get("name")), text(spec.get("description")), fields(at(spec, "inputSchema.json")))
        for spec in specs
        if spec
    )


def _schema(written: str) -> Fields | None:
    if not written:
        return None
    try:
        return fields(json.loads(written))
    except ValueError as error:
        raise Refusal("bad_value", "The provided JSON schema is not valid.", parameter=_SCHEMA) from error


def _blocks_of_kind(message: Fields, kind: str) -> Iterator[Fields]:
    for block in rows(message.get("content")):
        if isinstance(block.get(kind), dict):
            yield fields(block[kind])


def _result_text(result: Fields) -> str:
    parts = rows(result.get("content"))
    return "".join(json.dumps(part["json"]) if "json" in part else text(part.get("text")) for part in parts)


_PATH = re.compile(r"/model/(?P<model>.+)/(?P<method>count-tokens|invoke)")
_TITAN = ("inputText", "dimensions", "normalize", "embeddingTypes")
_COUNTED = ("messages", "system", "toolConfig", "additionalModelRequestFields")
_EMBEDS = ("amazon.titan-embed-", "cohere.embed-")
Headers = tuple[tuple[str, str], ...]


def called_operation(path: str) -> tuple[str, str] | None:
    """Split a path into the model and the method; None for any that is answered elsewhere."""
    match = _PATH.fullmatch(path)
    if match is None or (match["method"] == "invoke" and not any(mark in match["model"] for mark in _EMBEDS)):
        return None
    return match["model"], match["method"]


def answer(incoming: Incoming, model: str, method: str) -> tuple[Headers, Fields]:
    """Answer a request: headers and body. Raises Refusal."""
    if not isinstance(incoming.body, dict):
        raise Refusal("bad_json", "Unexpected end of stream while parsing JSON")
    if method == "count-tokens":
        return (), _count(incoming, model)
    if "titan" in model:
        return _titan(incoming.fields, model)
    inputs, made = cohere.vectors(incoming.fields, model)
    held: Fields = {"embeddings": {"float": made}, "texts": inputs, "response_type": "embeddings_by_type"}
    return (("x-amzn-bedrock-input-token-count", str(count_tokens(inputs))),), held


def _count(incoming: Incoming, model: str) -> Fields:
    held = at(incoming.body, "input.converse")
    if not isinstance(held, dict) or any(name not in _COUNTED for name in held):
        raise Refusal("bad_value", "1 validation error detected: Value at 'input' failed to satisfy constraint")
    asked = read(replace(incoming, body=held), f"/model/{model}/converse")
    return {"inputTokens": asked.token_count}


def _titan(body: Fields, model: str) -> tuple[Headers, Fields]:
    extra = [name for name in body if name not in _TITAN or (name == "dimensions" and "v1" in model)]
    if extra:
        words = f"Malformed input request: #: extraneous key [{extra[0]}] is not permitted, please reformat your input"
        raise Refusal("unknown_field", f"{words} and try again.")
    prompt = text(body.get("inputText"))
    if not prompt:
        raise Refusal("missing_field", "Malformed input request: #: required key [inputText] not found")
    made = vector(prompt, dimensions_of(body, "dimensions"))
    return (), {"embedding": made, "embeddingsByType": {"float": made}, "inputTextTokenCount": count_tokens([prompt])}


_FINISH = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "content_filter": "content_filtered"}
_TYPES = {
    400: "ValidationException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    424: "ModelErrorException",
    429: "ThrottlingException",
    503: "ServiceUnavailableException",
}
_NAMESPACE = "http://internal.amazon.com/coral/com.amazon.bedrock/"
_UNSIGNED = ("gpt", "qwen", "minimax", "glm", "kimi", "deepseek")

_ALTERNATING = (
    "A conversation must alternate between user and assistant roles. Make sure the conversation alternates between user and "
    "assistant roles and try again."
)
_NAMES = Rule(
    r"[a-zA-Z0-9_-]{1,64}",
    "1 validation error detected: Value at '{place}' failed to satisfy constraint: Member must satisfy regular expression pattern: "
    "[a-zA-Z0-9_-]+",
)


class Bedrock(Provider):
    """bedrock-runtime.{region}.amazonaws.com; it takes a bearer token, or a signature whose key id is looked at."""

    name = "bedrock"
    dialect = "bedrock_converse"
    catalog_name = "bedrock"
    keep_alive = b""
    base_path = ""
    models = ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "openai.gpt-oss-120b-1:0", "us.amazon.nova-2-lite-v1:0")
    off_switches = (
        ("additionalModelRequestFields.thinking.type", "disabled"),
        ("additionalModelRequestFields.reasoningConfig.type", "disabled"),
        ("additionalModelRequestFields.reasoning_config", "none"),
        ("additionalModelRequestFields.reasoning_effort", "none"),
    )

    def key_of(self, incoming: Incoming) -> str:
        claim = incoming.headers.get("authorization", "")
        if claim.startswith("AWS4-HMAC-SHA256 Credential="):
            return claim.partition("=")[2].partition("/")[0]
        return incoming.bearer

    def missing_key(self) -> Refusal:
        return Refusal("missing_key", "Missing Authentication Token", status=403)

    def wrong_key(self, key: str) -> Refusal:
        return Refusal("wrong_key", "The security token included in the request is invalid.", status=403)

    def is_generation_path(self, incoming: Incoming, path: str) -> bool:
        return called(path)[1] != ""

    def answer_other_path(self, incoming: Incoming, path: str) -> Reply | None:
        """Count the tokens of a Converse request, or invoke a model that makes vectors."""
        call = called_operation(path) if incoming.method == "POST" else None
        if call is None:
            return None
        headers, body = answer(incoming, *call)
        return Reply(headers=headers, frames=(compact(body),))

    def decode_request(self, incoming: Incoming, path: str) -> Conversation:
        return read(incoming, path)

    def demands(self, model: str) -> Demands:
        own = Demands(tool_names=_NAMES, call_ids=_NAMES, alternating=_ALTERNATING)
        if "claude" not in model:
            return own
        claudes = {
            name: getattr(CLAUDE, name)
            for name in ("property_keys", "plain_root", "repeated_call", "check_schema", "check_strict")
        }
        return replace(own, **claudes)

    def encode_reply(self, exchange: Exchange) -> Reply:
        message: Fields = {"content": list(_blocks(exchange)), "role": "assistant"}
        body: Fields = {
            "metrics": {"latencyMs": 421},
            "output": {"message": message},
            "stopReason": _FINISH[exchange.turn.ending],
            "usage": _usage(exchange),
        }
        return Reply(headers=(("x-amzn-requestid", exchange.uuid("request")),), frames=(compact(body),))

    def encode_stream(self, exchange: Exchange) -> Reply:
        frames = (event(name, payload, index=index) for index, (name, payload) in enumerate(_events(exchange)))
        return streamed(frames, content_type=CONTENT_TYPE)

    def encode_refusal(self, refusal: Refusal) -> Reply:
        kind = _TYPES.get(refusal.status, "InternalServerException")
        if refusal.reason in ("missing_key", "wrong_key"):
            kind = "UnrecognizedClientException"
        header = ("x-amzn-errortype", f"{kind}:{_NAMESPACE}")
        return Reply(status=refusal.status, headers=(header,), frames=(compact({"message": refusal.message}),))

    def unknown_path(self, incoming: Incoming) -> Refusal:
        return Refusal("unknown_path", "Unable to determine service/operation name to be authorized")

    def unknown_model(self, model: str) -> Refusal:
        return Refusal("bad_value", "The provided model identifier is invalid.")

    def error_events(self) -> Sequence[bytes]:
        words = "The system encountered an unexpected error during processing. Try your request again."
        return [exception("modelStreamErrorException", words)]

    def list_models(self, path: str, models: Sequence[str]) -> Reply | None:
        """List nothing: Bedrock lists its models at another address."""
        return None


def _events(exchange: Exchange) -> Iterator[tuple[str, Fields]]:
    yield "messageStart", {"role": "assistant"}
    blocks = list(_blocks(exchange))
    if _is_unsigned(exchange) and exchange.turn.reasons:
        blocks.insert(0, {"text": ""})
    for index, block in enumerate(blocks):
        if "toolUse" in block:
            use = block["toolUse"]
            assert isinstance(use, dict)
            start: Fields = {"toolUse": {name: use[name] for name in use if name != "input"}}
            yield "contentBlockStart", {"contentBlockIndex": index, "start": start}
        for delta in _deltas(exchange, block):
            yield "contentBlockDelta", {"contentBlockIndex": index, "delta": delta}
        yield "contentBlockStop", {"contentBlockIndex": index}
    yield "messageStop", {"stopReason": _FINISH[exchange.turn.ending]}
    yield "metadata", {"metrics": {"latencyMs": 421}, "usage": _usage(exchange)}


def _blocks(exchange: Exchange) -> Iterator[Fields]:
    """Yield the content blocks of the reply, whole."""
    turn = exchange.turn
    inline = "nova" in exchange.model and "nova-2" not in exchange.model
    if not inline:
        yield from _thoughts(exchange)
    thought = f"<thinking>{turn.reasoning}</thinking>\n" if inline and turn.reasoning else ""
    if thought or turn.text:
        yield {"text": thought + turn.text}
    for index, call in exchange.calls():
        token = exchange.token(f"call{index}", 22, ALPHANUMERIC)
        use: Fields = {"input": call.arguments_value, "name": call.name, "toolUseId": call.id or f"tooluse_{token}"}
        yield {"toolUse": use}


def _thoughts(exchange: Exchange) -> Iterator[Fields]:
    turn = exchange.turn
    if not turn.reasons:
        return
    secret = f"bedrock/{exchange.model}/{turn.reasoning}"
    if turn.redacted:
        # Converse takes Claude's own base64 for bytes, and writes them in base64 again.
        data = base64.b64encode(seal(secret, size=300, head=b"\x12\xc9\x02").encode()).decode()
        yield {"reasoningContent": {"redactedContent": data}}
        return
    shown = "" if turn.hidden else turn.reasoning or "\n\n".join(turn.reasoning_summary)
    if "nova-2" in exchange.model:
        shown = "[REDACTED]."
    signature = {} if _is_unsigned(exchange) else {"signature": seal(secret, size=300, head=b"\x12\xc8\x02\n")}
    yield {"reasoningContent": {"reasoningText": {**signature, "text": shown}}}


def _deltas(exchange: Exchange, block: Fields) -> Iterator[Fields]:
    if "text" in block:
        content = str(block["text"])
        # The end of Nova's opening tag comes in a delta of its own.
        opener = "<thinking" if content.startswith("<thinking>") else ""
        for piece in (*([opener] if opener else ()), *exchange.pieces(content[len(opener) :])) or ("",):
            yield {"text": piece}
        return
    if "toolUse" in block:
        given = at(block, "toolUse.input")
        for piece in exchange.pieces(given if isinstance(given, str) else compact(given).decode()):
            yield {"toolUse": {"input": piece}}
        return
    thought = at(block, "reasoningContent.reasoningText")
    if not isinstance(thought, dict):
        yield block
        return
    for piece in exchange.pieces(str(thought["text"])):
        yield {"reasoningContent": {"text": piece}}
    if "signature" in thought:
        yield {"reasoningContent": {"signature": thought["signature"]}}


def _is_unsigned(exchange: Exchange) -> bool:
    return any(name in exchange.model for name in (*_UNSIGNED, "nova-2"))


def _usage(exchange: Exchange) -> Fields:
    """Tokens of the cache stand beside the input tokens; reasoning is not counted apart."""
    usage = exchange.usage
    cache_read, written = usage.cached_input_tokens, usage.cache_write_tokens
    cache: Fields = {
        "cacheReadInputTokenCount": cache_read,
        "cacheReadInputTokens": cache_read,
        "cacheWriteInputTokenCount": written,
        "cacheWriteInputTokens": written,
    }
    return {
        **(cache if cache_read or written else {}),
        "inputTokens": usage.input_tokens - cache_read - written,
        "outputTokens": usage.output_tokens,
        "serverToolUsage": {},
        "totalTokens": usage.total_tokens,
    }


CONTENT_TYPE = "application/vnd.amazon.eventstream"
_PADDING = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_STRING = 7


def event(name: str, payload: Fields, *, index: int = 0) -> bytes:
    """Write one event with the letters Bedrock pads it with; `index` varies their number."""
    padded = dict(sorted({**payload, "p": _PADDING[: 2 + index * 7 % 60]}.items()))
    return _message(
        compact(padded), {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
    )


def exception(name: str, message: str) -> bytes:
    """Write an error that befalls a stream."""
    headers = {":exception-type": name, ":content-type": "application/json", ":message-type": "exception"}
    return _message(compact({"message": message}), headers)


def _message(payload: bytes, headers: dict[str, str]) -> bytes:
    """Return one message of AWS's binary event stream: two lengths and their checksum, headers, payload, checksum of all."""
    written = b"".join(
        struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", _STRING, len(value)) + value.encode()
        for name, value in headers.items()
    )
    lengths = struct.pack("!II", 16 + len(written) + len(payload), len(written))
    start = lengths + struct.pack("!I", zlib.crc32(lengths))
    return start + written + payload + struct.pack("!I", zlib.crc32(start + written + payload))
