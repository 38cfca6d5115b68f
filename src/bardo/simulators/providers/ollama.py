"""Ollama: its own routes for chats, vectors and facts of models, and its OpenAI-compatible route.

Its own write JSON lines, arguments as objects, and counts in the last line; the other writes `reasoning`, short ids, and calls that come
whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from bardo.simulators.chat import Chat
from bardo.simulators.demands import Demands, ollama_demands
from bardo.simulators.embeddings import count_tokens, dimensions_of, read_texts, vector
from bardo.simulators.exchange import Exchange, Incoming, Refusal, Reply, streamed, whole
from bardo.simulators.fields import Fields, compact, fields, rows, text
from bardo.simulators.marks import DIGITS, LOWER
from bardo.simulators.provider import Provider
from bardo.simulators.turns import Conversation, ToolCall, closing_tool_results, function_tools

PATHS = ("/embed", "/embeddings")


def embeddings(incoming: Incoming, path: str) -> Fields:
    """Answer a request at either path. Raises Refusal."""
    body = incoming.fields
    model = text(body.get("model"))
    if not model:
        raise Refusal("missing_field", "model is required")
    if path == "/embeddings":
        return {"embedding": [2 * number for number in vector(text(body.get("prompt")))]}
    given = body.get("input")
    if not isinstance(given, str) and not (isinstance(given, list) and all(isinstance(item, str) for item in given)):
        raise Refusal("bad_value", "invalid input type")
    inputs = read_texts(given, "input") if given else []
    size = dimensions_of(body, "dimensions")
    durations: Fields = {
        "total_duration": 14143917,
        "load_duration": 1019500,
        "prompt_eval_count": count_tokens(inputs),
    }
    return {"model": model, "embeddings": [vector(item, size) for item in inputs], **durations}


_THINK = (True, False, "high", "medium", "low", "max")
_THINK_WORDS = '"high", "medium", "low", "max", true, or false'


def read(incoming: Incoming) -> Conversation:
    """Decode the request. Raises Refusal."""
    body = incoming.fields
    if not isinstance(incoming.body, dict):
        words = "invalid character in JSON" if incoming.raw else "missing request body"
        raise Refusal("bad_json", words)
    if not text(body.get("model")):
        raise Refusal("missing_field", "model is required", parameter="model")
    _check(body)
    messages = rows(body.get("messages"))
    return Conversation(
        model=text(body.get("model")),
        question=next((text(m.get("content")) for m in reversed(messages) if m.get("role") == "user"), ""),
        rounds=sum(message.get("role") == "assistant" for message in messages),
        tools=function_tools(body),
        tool_results=closing_tool_results(messages, read_content=text),
        schema=fields(body.get("format")) or None,
        streamed=body.get("stream") is not False,
        characters=sum(len(text(message.get("content"))) for message in messages),
    )


def _check(body: Fields) -> None:
    think = body.get("think")
    if think is not None and not any(type(think) is type(value) and think == value for value in _THINK):
        raise Refusal("bad_value", f"invalid think value: {think!r} (must be {_THINK_WORDS})", parameter="think")
    for index, message in enumerate(rows(body.get("messages"))):
        if not isinstance(message.get("content", ""), str | None):
            words = "json: cannot unmarshal array into Go struct field ChatRequest.messages.content of type string"
            raise Refusal("bad_value", words, parameter=f"messages[{index}].content")
        for call in rows(message.get("tool_calls")):
            if not isinstance(fields(call.get("function")).get("arguments", {}), dict):
                raise Refusal("bad_value", "Value looks like object, but can't find closing '}' symbol")


def shown(incoming: Incoming, models: Sequence[str]) -> Reply | None:
    """Answer `/api/show`; None for any other path.

    The facts are shown so whichever route a model is used through.
    """
    if incoming.path != "/api/show" or incoming.method != "POST":
        return None
    model = text(incoming.fields.get("model"))
    if model not in models:
        return whole(compact({"error": f"model '{model}' not found"}), status=404, content_type=_JSON)
    family = "gptoss" if model.startswith("gpt-oss") else "qwen3"
    details: Fields = {"format": "gguf", "family": family, "families": [family], "parameter_size": "8B"}
    info: Fields = {"general.architecture": family, f"{family}.context_length": 40960}
    body: Fields = {"details": details, "model_info": info, "capabilities": ["completion", "tools", "thinking"]}
    return whole(compact(body), content_type=_JSON)


_JSON = "application/json; charset=utf-8"
_LINES = "application/x-ndjson"
_FINISH = {"length": "length"}
_SECOND = 1_000_000_000


class OllamaNative(Provider):
    """A server on one's own machine, port 11434; Ollama's own library is configured without `/api`."""

    name = "ollama_native"
    dialect = "ollama"
    catalog_name = "ollama"
    keep_alive = b""
    base_path = "/api"
    needs_key = False
    models = ("gpt-oss:120b", "qwen3:latest")
    off_switches = (("think", False),)

    def describe_server(self, incoming: Incoming, models: Sequence[str]) -> Reply | None:
        return shown(incoming, models)

    def is_generation_path(self, incoming: Incoming, path: str) -> bool:
        return path == "/chat"

    def answer_other_path(self, incoming: Incoming, path: str) -> Reply | None:
        """A request without messages loads the model, or lets go of it; others make vectors."""
        if path in PATHS and incoming.method == "POST":
            return whole(compact(embeddings(incoming, path)), content_type=_JSON)
        model = incoming.fields.get("model")
        if path != "/chat" or not isinstance(model, str) or not model or incoming.fields.get("messages"):
            return None
        word = "unload" if incoming.fields.get("keep_alive") == 0 else "load"
        message: Fields = {"role": "assistant", "content": ""}
        ended: Fields = {"created_at": _time(0), "message": message, "done": True, "done_reason": word}
        return whole(compact({"model": model, **ended}), content_type=_JSON)

    def decode_request(self, incoming: Incoming, path: str) -> Conversation:
        return read(incoming)

    def demands(self, model: str) -> Demands:
        return ollama_demands(model)

    def encode_reply(self, exchange: Exchange) -> Reply:
        turn = exchange.turn
        message: Fields = {"content": turn.text}
        if turn.reasoning:
            message["thinking"] = turn.reasoning
        if turn.tool_calls:
            message["tool_calls"] = [_call(exchange, index, call) for index, call in exchange.calls()]
        return whole(compact(_last(exchange, message)), content_type=_JSON)

    def encode_stream(self, exchange: Exchange) -> Reply:
        lines = [*(_line(exchange, piece) for piece in _pieces(exchange)), _last(exchange, {"content": ""})]
        return streamed((compact(line) + b"\n" for line in lines), content_type=_LINES)

    def encode_refusal(self, refusal: Refusal) -> Reply:
        return whole(compact({"error": refusal.message}), status=refusal.status, content_type=_JSON)

    def missing_key(self) -> Refusal:
        return Refusal("missing_key", "unauthorized")

    def wrong_key(self, key: str) -> Refusal:
        return Refusal("wrong_key", "unauthorized")

    def unknown_path(self, incoming: Incoming) -> Refusal:
        return Refusal("unknown_path", "404 page not found")

    def wrong_method(self, incoming: Incoming) -> Refusal:
        return Refusal("wrong_method", "405 method not allowed")

    def unknown_model(self, model: str) -> Refusal:
        return Refusal("unknown_model", f"model '{model}' not found")

    def error_events(self) -> Sequence[bytes]:
        return [compact({"error": "an error was encountered while running the model: unexpected EOF"}) + b"\n"]

    def list_models(self, path: str, models: Sequence[str]) -> Reply | None:
        if path != "/tags":
            return None
        return whole(compact({"models": [_model_row(model) for model in models]}), content_type=_JSON)


def _pieces(exchange: Exchange) -> Iterator[Fields]:
    """Yield what each line adds to the message. A call comes whole."""
    for piece in exchange.pieces(exchange.turn.reasoning):
        yield {"content": "", "thinking": piece}
    for piece in exchange.pieces(exchange.turn.text):
        yield {"content": piece}
    for index, call in exchange.calls():
        yield {"content": "", "tool_calls": [_call(exchange, index, call)]}


def _call(exchange: Exchange, index: int, call: ToolCall) -> Fields:
    identifier = call.id or f"call_{exchange.token(f'call{index}', 8, LOWER)}"
    return {"id": identifier, "function": {"index": index, "name": call.name, "arguments": call.arguments_value}}


def _line(exchange: Exchange, content: Fields, *, done: bool = False) -> Fields:
    message: Fields = {"role": "assistant", **content}
    return {"model": exchange.model, "created_at": _time(exchange.created), "message": message, "done": done}


def _last(exchange: Exchange, content: Fields) -> Fields:
    """Return the line with the totals. A prompt that was cached whole is not counted."""
    usage = exchange.usage
    fresh = usage.input_tokens - usage.cached_input_tokens
    ended: Fields = {"done_reason": _FINISH.get(exchange.turn.ending, "stop")}
    ended |= {"total_duration": _SECOND * 2, "load_duration": _SECOND // 10}
    if fresh:
        ended["prompt_eval_count"] = usage.input_tokens
    ended |= {"prompt_eval_duration": _SECOND // 4, "eval_count": usage.output_tokens, "eval_duration": _SECOND}
    return {**_line(exchange, content, done=True), **ended}


def _time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.000000Z")


def _model_row(model: str) -> Fields:
    details: Fields = {"parent_model": "", "format": "gguf", "family": "qwen3", "families": ["qwen3"]}
    sizes: Fields = {"parameter_size": "8.2B", "quantization_level": "Q4_K_M"}
    return {
        "name": model,
        "model": model,
        "modified_at": "2026-08-07T06:08:23.577476Z",
        "size": 5225388164,
        "digest": "500a1f067a9f782620b40bee6f7b0c89e17ae61f686b92c24933e4ca4b2b8b41",
        "details": {**details, **sizes},
    }


class Ollama(Chat):
    """A server on one's own machine, port 11434."""

    name = "ollama"
    catalog_name = "ollama-openai"
    embeds = "any"
    needs_key = False
    models = ("gpt-oss:120b", "qwen3:latest")
    owner = "library"
    reasoning_field = "reasoning"
    off_switches = (("reasoning_effort", "none"), ("reasoning.effort", "none"))
    call_order = ("id", "index", "type", "function")

    def demands(self, model: str) -> Demands:
        return replace(ollama_demands(model), tool_names=super().demands(model).tool_names)

    def describe_server(self, incoming: Incoming, models: Sequence[str]) -> Reply | None:
        return shown(incoming, models)

    def reply_id(self, exchange: Exchange) -> str:
        return f"chatcmpl-{exchange.token('reply', 3, DIGITS)}"

    def envelope(self, exchange: Exchange, kind: str) -> Fields:
        return {**super().envelope(exchange, kind), "system_fingerprint": "fp_ollama"}

    def encode_json(self, value: Fields) -> bytes:
        return compact(value) + b"\n"

    def call_id(self, exchange: Exchange, index: int, call: ToolCall) -> str:
        return call.id or f"call_{exchange.token(f'call{index}', 8, LOWER)}"

    def usage(self, exchange: Exchange) -> Fields:
        """Ollama does not count reasoning."""
        usage = exchange.usage
        return {
            "prompt_tokens": usage.input_tokens,
            "completion_tokens": usage.output_tokens,
            "total_tokens": usage.total_tokens,
        }

    def deltas(self, exchange: Exchange) -> Iterator[Fields]:
        """The role comes with the first thing said."""
        first, *others = [delta for delta in super().deltas(exchange) if "role" not in delta] or [{"content": ""}]
        yield {"role": "assistant", **first}
        yield from others

    def reasoning_delta(self, piece: str) -> Fields:
        return {"content": "", "reasoning": piece}

    def call_deltas(self, exchange: Exchange, index: int, call: ToolCall) -> Iterator[Fields]:
        yield {"content": "", "tool_calls": [self.tool_call(exchange, index, call)]}

    def unknown_model(self, model: str) -> Refusal:
        return Refusal("unknown_model", f'model "{model}" not found, try pulling it first')

    def error_body(self, refusal: Refusal) -> Fields:
        kinds = {400: "invalid_request_error", 404: "not_found_error"}
        error: Fields = {"message": refusal.message, "type": kinds.get(refusal.status, "api_error")}
        return {"error": {**error, "param": None, "code": None}}
