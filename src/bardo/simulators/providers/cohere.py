"""Cohere's v2 chat and embed: thinking in content, a plan before calls, citations of tools' results, two counts of everything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bardo.simulators.demands import Demands
from bardo.simulators.embeddings import count_tokens, dimensions_of, vector
from bardo.simulators.exchange import Exchange, Incoming, Refusal, Reply, named_event, streamed, whole
from bardo.simulators.fields import Fields, at, compact, fields, joined_text, number, rows, text
from bardo.simulators.marks import LOWER, uuid
from bardo.simulators.provider import Provider
from bardo.simulators.turns import Conversation, closing_tool_results, function_tools

_KINDS = ("search_document", "search_query", "classification", "clustering", "image")
_FIELDS = ("model", "texts", "input_type", "embedding_types", "truncate", "output_dimension", "max_tokens", "priority")
_MOST = 96
_LONGEST = 1536


def embeddings(incoming: Incoming) -> Fields:
    """Answer a request. Raises Refusal.

    Bedrock takes the same of Cohere's models.
    """
    body = incoming.fields
    if not text(body.get("model")):
        raise Refusal("missing_field", "invalid request: model is required")
    inputs, made = vectors(body, text(body.get("model")))
    billed: Fields = {"input_tokens": count_tokens(inputs)}
    meta: Fields = {"api_version": {"version": "2"}, "billed_units": billed}
    kind: Fields = {"response_type": "embeddings_by_type"}
    return {"id": uuid(repr(inputs)), "embeddings": {"float": made}, "texts": inputs, "meta": meta, **kind}


def vectors(body: Fields, model: str) -> tuple[list[str], list[list[float]]]:
    """Return the texts of a request and their vectors. Raises Refusal."""
    unknown = [name for name in body if name not in _FIELDS]
    if unknown:
        raise Refusal("unknown_field", f"unknown field: parameter '{unknown[0]}' is not a valid field")
    given = body.get("texts")
    if not isinstance(given, list) or not given or not all(isinstance(item, str) for item in given):
        raise Refusal("missing_field", "invalid request: texts must be a list of strings")
    if len(given) > _MOST:
        raise Refusal(
            "bad_value", f"invalid request: total number of texts must be at most {_MOST} - received {len(given)}"
        )
    kind = body.get("input_type")
    if kind not in _KINDS:
        raise Refusal("missing_field", "invalid request: valid input_type must be provided with the provided model")
    if body.get("output_dimension") is not None and "v4" not in model:
        raise Refusal("bad_value", "invalid request: output_dimension is not supported by this model")
    size = dimensions_of(body, "output_dimension", most=_LONGEST)
    return [str(item) for item in given], [vector(f"{kind}{item}", size) for item in given]


_ROLES = ("user", "assistant", "system", "tool")


def read(incoming: Incoming) -> Conversation:
    """Decode the request. Raises Refusal."""
    body = incoming.fields
    if not isinstance(incoming.body, dict):
        raise Refusal("bad_json", "invalid json syntax")
    messages = _messages(body)
    if body.get("tool_choice") not in (None, "REQUIRED", "NONE"):
        raise Refusal("bad_value", "invalid request: tool_choice must be REQUIRED or NONE", parameter="tool_choice")
    if body.get("response_format") and body.get("tools"):
        words = "invalid request: response_format is not supported with RAG or tools"
        raise Refusal("bad_value", words, parameter="response_format")
    budget = at(body, "thinking.token_budget")
    if budget is not None and (number(budget) or 0) < 1:
        words = "invalid request: thinking.token_budget must be a positive integer"
        raise Refusal("bad_value", words, parameter="thinking.token_budget")
    for name, most in (("p", 0.99), ("frequency_penalty", 1), ("presence_penalty", 1)):
        value = body.get(name)
        if isinstance(value, int | float) and not 0 <= value <= most:
            raise Refusal("bad_value", f"invalid request: {name} must be between 0 and {most}", parameter=name)
    return Conversation(
        model=text(body.get("model")),
        question=next((joined_text(m.get("content")) for m in reversed(messages) if m.get("role") == "user"), ""),
        rounds=sum(message.get("role") == "assistant" for message in messages),
        tools=() if body.get("tool_choice") == "NONE" else function_tools(body),
        tool_results=closing_tool_results(messages),
        schema=fields(at(body, "response_format.json_schema")) or None,
        streamed=body.get("stream") is True,
        characters=sum(len(joined_text(message.get("content"))) for message in messages),
    )


def _messages(body: Fields) -> list[Fields]:
    if not text(body.get("model")):
        raise Refusal("missing_field", "model is required", parameter="model")
    messages = rows(body.get("messages"))
    if not messages:
        words = "invalid request: message must be at least 1 token long or tool results must be specified."
        raise Refusal("missing_field", words, parameter="messages")
    called: set[str] = set()
    for index, message in enumerate(messages):
        if message.get("role") not in _ROLES:
            words = f"invalid request: role of message {index} must be one of {', '.join(_ROLES)}"
            raise Refusal("bad_value", words, parameter=f"messages[{index}].role")
        called |= {text(call.get("id")) for call in rows(message.get("tool_calls"))}
        if message.get("role") == "tool" and text(message.get("tool_call_id")) not in called:
            words = "invalid request: the tool_call_id of a tool message must be of a call before it"
            raise Refusal("bad_value", words, parameter=f"messages[{index}].tool_call_id")
    return messages


_FINISH = {"stop": "COMPLETE", "tool_calls": "TOOL_CALL", "length": "MAX_TOKENS", "content_filter": "COMPLETE"}
_DONE = b"data: [DONE]\n\n"
# Models that do not think, but write a plan before they call tools.
_PLANNING = ("command-a-03", "command-r")


class Cohere(Provider):
    """api.cohere.com/v2; Cohere's own library is configured without `/v2`."""

    name = "cohere"
    dialect = "cohere"
    catalog_name = "cohere"
    base_path = "/v2"
    prefix = ""
    models = ("command-a-reasoning-08-2025", "command-a-03-2025")
    off_switches = (("thinking.type", "disabled"), ("reasoning_effort", "none"))

    def is_generation_path(self, incoming: Incoming, path: str) -> bool:
        return path == "/v2/chat"

    def answer_other_path(self, incoming: Incoming, path: str) -> Reply | None:
        if path != "/v2/embed" or incoming.method != "POST":
            return None
        return whole(compact(embeddings(incoming)))

    def decode_request(self, incoming: Incoming, path: str) -> Conversation:
        return read(incoming)

    def demands(self, model: str) -> Demands:
        words = "invalid request: stop_sequences must have at most {most} elements, but got {given}"
        return Demands(most_stops=5, too_many_stops=words)

    def encode_reply(self, exchange: Exchange) -> Reply:
        message: Fields = {"role": "assistant"}
        if content := [{"type": kind, kind: piece} for kind, piece in _content(exchange)]:
            message["content"] = content
        if plan := _plan(exchange):
            message["tool_plan"] = plan
        if exchange.turn.tool_calls:
            message["tool_calls"] = list(_calls(exchange))
        if citations := list(_citations(exchange)):
            message["citations"] = citations
        ended: Fields = {"finish_reason": _FINISH[exchange.turn.ending], "usage": _usage(exchange)}
        return whole(compact({"id": exchange.uuid("reply"), "message": message, **ended}))

    def encode_stream(self, exchange: Exchange) -> Reply:
        frames = [named_event(str(event["type"]), event) for event in _events(exchange)]
        return streamed([*frames, _DONE], content_type="text/event-stream")

    def encode_refusal(self, refusal: Refusal) -> Reply:
        body: Fields = {"id": uuid(refusal.message), "message": refusal.message}
        return whole(compact(body), status=refusal.status)

    def missing_key(self) -> Refusal:
        return Refusal("missing_key", "no api key supplied")

    def wrong_key(self, key: str) -> Refusal:
        advice = "You can find your API key at https://dashboard.cohere.com/api-keys."
        return Refusal("wrong_key", f"Incorrect API key provided: {'*' * 11}. {advice}")

    def unknown_model(self, model: str) -> Refusal:
        advice = "make sure the correct model ID was used and that you have access to the model."
        return Refusal("unknown_model", f"model '{model}' not found, {advice}")

    def error_events(self) -> Sequence[bytes]:
        words = "your request resulted in an invalid tool generation. Try updating the messages or tool definitions"
        delta: Fields = {"finish_reason": "ERROR", "usage": {}, "error": words, "error_type": "INVALID_TOOL_GENERATION"}
        return [named_event("message-end", {"type": "message-end", "delta": delta}), _DONE]

    def list_models(self, path: str, models: Sequence[str]) -> Reply | None:
        if path != "/v1/models":
            return None
        return whole(compact({"models": [_model_row(model) for model in models], "next_page_token": ""}))


def _events(exchange: Exchange) -> Iterator[Fields]:
    empty: Fields = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}
    yield {"id": exchange.uuid("reply"), "type": "message-start", "delta": {"message": empty}}
    for index, (kind, content) in enumerate(_content(exchange)):
        yield _event("content-start", index, content={"type": kind, kind: ""})
        for piece in exchange.pieces(content):
            yield _event("content-delta", index, content={kind: piece})
        for place, citation in enumerate(_citations(exchange) if kind == "text" else ()):
            yield _event("citation-start", place, citations=citation)
            yield {"type": "citation-end", "index": place}
        yield {"type": "content-end", "index": index}
    for piece in exchange.pieces(_plan(exchange)):
        yield {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": piece}}}
    for (index, call), written in zip(exchange.calls(), _calls(exchange), strict=True):
        yield _event("tool-call-start", index, tool_calls={**written, "function": {"name": call.name, "arguments": ""}})
        for piece in exchange.pieces(call.arguments_text):
            yield _event("tool-call-delta", index, tool_calls={"function": {"arguments": piece}})
        yield {"type": "tool-call-end", "index": index}
    delta: Fields = {"finish_reason": _FINISH[exchange.turn.ending], "usage": _usage(exchange)}
    yield {"type": "message-end", "delta": delta}


def _event(kind: str, index: int, **message: object) -> Fields:
    return {"type": kind, "index": index, "delta": {"message": message}}


def _plans(exchange: Exchange) -> bool:
    return exchange.model.startswith(_PLANNING)


def _plan(exchange: Exchange) -> str:
    return exchange.turn.reasoning if _plans(exchange) and exchange.turn.tool_calls else ""


def _content(exchange: Exchange) -> list[tuple[str, str]]:
    """Return the kinds and texts of the content."""
    turn = exchange.turn
    thought = [("thinking", turn.reasoning)] if turn.reasoning and not _plans(exchange) else []
    return [*thought, *([("text", turn.text)] if turn.text or not turn.tool_calls else ())]


def _calls(exchange: Exchange) -> Iterator[Fields]:
    for index, call in exchange.calls():
        yield {
            "id": call.id or f"{call.name}_{exchange.token(f'call{index}', 12, LOWER)}",
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments_text},
        }


def _citations(exchange: Exchange) -> Iterator[Fields]:
    """Cite the results of tools where the answer repeats them."""
    for message in rows(exchange.body.get("messages")):
        result = joined_text(message.get("content"))
        start = exchange.turn.text.find(result) if message.get("role") == "tool" and result else -1
        if start >= 0:
            identifier = f"{text(message.get('tool_call_id'))}:0"
            source: Fields = {"type": "tool", "id": identifier, "tool_output": {"output": result}}
            ends: Fields = {"start": start, "end": start + len(result), "text": result}
            yield {**ends, "sources": [source], "type": "TEXT_CONTENT"}


def _usage(exchange: Exchange) -> Fields:
    """Billed tokens leave out the text that Cohere puts into the prompt itself, most of which is in its cache."""
    usage = exchange.usage
    billed: Fields = {
        "input_tokens": usage.input_tokens - usage.cached_input_tokens,
        "output_tokens": usage.output_tokens,
    }
    tokens: Fields = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    if exchange.turn.reasons and not _plans(exchange):
        tokens["reasoning_tokens"] = usage.reasoning_tokens
    return {"billed_units": billed, "tokens": tokens, "cached_tokens": usage.cached_input_tokens}


def _model_row(model: str) -> Fields:
    return {
        "name": model,
        "is_deprecated": False,
        "endpoints": ["chat"],
        "finetuned": False,
        "context_length": 256000,
        "default_endpoints": [],
        "features": ["tools", "json_mode", "reasoning"],
    }
