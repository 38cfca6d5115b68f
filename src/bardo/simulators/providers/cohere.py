"""Cohere's v2 chat: thinking in content, a plan before calls, citations of what tools gave back, two counts of everything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bardo.simulators.conversation import Conversation
from bardo.simulators.demands import Demands
from bardo.simulators.exchange import Exchange
from bardo.simulators.fields import Fields, compact, joined_text, rows, text
from bardo.simulators.incoming import Incoming
from bardo.simulators.marks import LOWER, uuid
from bardo.simulators.provider import Provider
from bardo.simulators.providers import cohere_embeddings, cohere_request
from bardo.simulators.refusal import Refusal
from bardo.simulators.reply import Reply, named_event, streamed, whole

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
        return whole(compact(cohere_embeddings.embeddings(incoming)))

    def decode_request(self, incoming: Incoming, path: str) -> Conversation:
        return cohere_request.read(incoming)

    def demands(self, model: str) -> Demands:
        words = "invalid request: stop_sequences must have at most {most} elements, but got {given}"
        return Demands(most_stops=5, too_many_stops=words)

    def encode_reply(self, exchange: Exchange) -> Reply:
        message: Fields = {"role": "assistant"}
        if content := [{"type": kind, kind: said} for kind, said in _content(exchange)]:
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
    for index, (kind, said) in enumerate(_content(exchange)):
        yield _event("content-start", index, content={"type": kind, kind: ""})
        for piece in exchange.pieces(said):
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
    """What is billed leaves out what Cohere puts into the prompt itself, most of which is in its cache."""
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
