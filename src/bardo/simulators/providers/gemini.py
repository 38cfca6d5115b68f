"""Gemini: thoughts on request, signatures on the parts that follow them, two ways to stream, and vectors."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from bardo.simulators.demands import Demands, Rule
from bardo.simulators.embeddings import dimensions_of, vector
from bardo.simulators.exchange import Exchange, Incoming, Refusal, Reply, streamed, whole
from bardo.simulators.fields import Fields, joined_text, number, pretty, rows, text
from bardo.simulators.marks import LOWER
from bardo.simulators.provider import Provider
from bardo.simulators.providers import gemini_request
from bardo.simulators.providers.gemini_request import called, either, setting
from bardo.simulators.turns import Conversation

METHODS = ("embedContent", "batchEmbedContents")
_TASKS = (
    "TASK_TYPE_UNSPECIFIED", "RETRIEVAL_QUERY", "RETRIEVAL_DOCUMENT", "SEMANTIC_SIMILARITY", "CLASSIFICATION", "CLUSTERING",
    "QUESTION_ANSWERING", "FACT_VERIFICATION", "CODE_RETRIEVAL_QUERY",
)  # fmt: skip
_FIELDS = ("model", "content", "taskType", "task_type", "title", "outputDimensionality", "output_dimensionality")
_MOST = 100
_LONGEST = 3072


def embeddings(incoming: Incoming, path: str) -> Fields:
    """Answer a request of either method. Raises Refusal."""
    if not isinstance(incoming.body, dict):
        raise Refusal("bad_json", "Invalid JSON payload received. Unexpected token.\n")
    model, method = called(path)
    if method == "embedContent":
        return {"embedding": _embedded(incoming.fields, model, "EmbedContentRequest")}
    asked = rows(incoming.fields.get("requests"))
    if not asked:
        raise Refusal("missing_field", "* BatchEmbedContentsRequest.requests: at least one request is required\n")
    if len(asked) > _MOST:
        raise Refusal(
            "bad_value", f"* BatchEmbedContentsRequest.requests: at most {_MOST} requests can be in one batch\n"
        )
    for index, item in enumerate(asked):
        if item.get("model") != f"models/{model}":
            words = "model must match the model in the parent BatchEmbedContentsRequest"
            raise Refusal("bad_value", f"* BatchEmbedContentsRequest.requests[{index}].model: {words}\n")
    return {"embeddings": [_embedded(item, model, "BatchEmbedContentsRequest.requests") for item in asked]}


def _embedded(asked: Fields, model: str, at: str) -> Fields:
    unknown = [name for name in asked if name not in _FIELDS]
    if unknown:
        words = f'Invalid JSON payload received. Unknown name "{unknown[0]}": Cannot find field.'
        raise Refusal("unknown_field", words, parameter=unknown[0])
    prompt = joined_text(either(asked, "content.parts"))
    if not prompt:
        raise Refusal("missing_field", f"* {at}.content: contents is not specified\n")
    task = text(either(asked, "taskType"))
    if task and task not in _TASKS:
        raise Refusal("bad_value", f"Invalid value at 'task_type' (TYPE_ENUM), \"{task}\"")
    size = {"output_dimensionality": either(asked, "outputDimensionality")}
    made = vector(f"{task}{prompt}" if task else prompt, dimensions_of(size, "output_dimensionality", most=_LONGEST))
    return {"values": made}


_JSON = "application/json; charset=UTF-8"
_FINISH = {"stop": "STOP", "tool_calls": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY"}
_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}

_STOPS = (
    "* GenerateContentRequest.generation_config.stop_sequences: the number of stop_sequences must not exceed {most}.\n"
)
_NAMES = Rule(
    r"(?=[a-zA-Z_])[a-zA-Z0-9_.:-]{1,64}",
    "* {place}: Invalid function name. Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), "
    "dots (.), colons (:), or dashes (-), with a maximum length of 64.\n",
)


class Gemini(Provider):
    """generativelanguage.googleapis.com/v1beta, and the same at `/v1`; Google's own library adds either."""

    name = "gemini"
    dialect = "gemini"
    catalog_name = "gemini"
    base_path = "/v1beta"
    prefix = ""
    models = ("gemini-2.5-flash", "gemini-3-flash-preview")

    def key_of(self, incoming: Incoming) -> str:
        return incoming.headers.get("x-goog-api-key", "") or incoming.query.get("key", "") or incoming.bearer

    def missing_key(self) -> Refusal:
        """Google answers a request without a key with 403."""
        words = "Method doesn't allow unregistered callers (callers without established identity)."
        advice = "Please use API Key or other form of API consumer identity to call this API."
        return Refusal("missing_key", f"{words} {advice}", status=403)

    def wrong_key(self, key: str) -> Refusal:
        """Google answers a wrong key with 400."""
        return Refusal("wrong_key", "API key not valid. Please pass a valid API key.", status=400)

    def is_generation_path(self, incoming: Incoming, path: str) -> bool:
        return gemini_request.called(path)[1] in gemini_request.METHODS

    def answer_other_path(self, incoming: Incoming, path: str) -> Reply | None:
        method = gemini_request.called(path)[1]
        if incoming.method != "POST" or method not in ("countTokens", *METHODS):
            return None
        if method != "countTokens":
            return whole(pretty(embeddings(incoming, path)), content_type=_JSON)
        asked = gemini_request.read(gemini_request.unwrapped(incoming), path)
        return whole(pretty({"totalTokens": asked.token_count}), content_type=_JSON)

    def decode_request(self, incoming: Incoming, path: str) -> Conversation:
        return gemini_request.read(incoming, path)

    def reasoning_is_off(self, exchange: Exchange) -> bool:
        return number(setting(exchange.body, "thinkingConfig.thinkingBudget")) == 0

    def demands(self, model: str) -> Demands:
        return Demands(tool_names=_NAMES, most_stops=5, too_many_stops=_STOPS)

    def encode_reply(self, exchange: Exchange) -> Reply:
        thoughts = [_thought(part) for part in _thoughts(exchange)]
        parts = [*thoughts, *_answer_part(exchange, signed=True), *_calls(exchange)]
        body = _chunk(exchange, parts, usage=_usage(exchange), finish=_FINISH[exchange.turn.ending])
        return whole(pretty(body), content_type=_JSON)

    def encode_stream(self, exchange: Exchange) -> Reply:
        """With `alt=sse` each chunk is an event; without, all of them are one JSON array."""
        chunks = list(self._chunks(exchange))
        if exchange.conversation.sse:
            return streamed((_event(chunk) for chunk in chunks), content_type="text/event-stream")
        return streamed(_array(chunks), content_type=_JSON)

    def _chunks(self, exchange: Exchange) -> Iterator[Fields]:
        thoughts = [piece for part in _thoughts(exchange) for piece in exchange.pieces(part)]
        for index, piece in enumerate(thoughts, start=1):
            thinking = exchange.usage.reasoning_tokens * index // len(thoughts)
            yield _chunk(exchange, [_thought(piece)], usage=_usage(exchange, answer=None, thinking=thinking))
        spoken = [*exchange.pieces(exchange.turn.text)]
        for index, piece in enumerate(spoken, start=1):
            answer = exchange.usage.answer_tokens * index // len(spoken)
            yield _chunk(exchange, [{"text": piece}], usage=_usage(exchange, answer=answer))
        if exchange.turn.tool_calls:
            yield _chunk(exchange, list(_calls(exchange)), usage=_usage(exchange))
        # The end is a text of nothing, which has the signature where no function call has it.
        last: Fields = {"text": "", **({} if exchange.turn.tool_calls else _signature(exchange))}
        yield _chunk(exchange, [last], usage=_usage(exchange), finish=_FINISH[exchange.turn.ending])

    def encode_refusal(self, refusal: Refusal) -> Reply:
        error: Fields = {
            "code": refusal.status,
            "message": refusal.message,
            "status": _STATUS.get(refusal.status, "UNKNOWN"),
        }
        if refusal.reason == "wrong_key":
            kind = "type.googleapis.com/google.rpc.ErrorInfo"
            error["details"] = [{"@type": kind, "reason": "API_KEY_INVALID", "domain": "googleapis.com"}]
        return whole(pretty({"error": error}), status=refusal.status, content_type=_JSON)

    def unknown_path(self, incoming: Incoming) -> Refusal:
        return Refusal("unknown_path", "Requested entity was not found.")

    def unknown_model(self, model: str) -> Refusal:
        advice = "Call ListModels to see the list of available models and their supported methods."
        words = f"models/{model} is not found for API version v1beta, or is not supported for generateContent."
        return Refusal("unknown_model", f"{words} {advice}")

    def error_events(self) -> Sequence[bytes]:
        words = "The model is overloaded. Please try again later."
        return [_event({"error": {"code": 503, "message": words, "status": "UNAVAILABLE"}})]

    def list_models(self, path: str, models: Sequence[str]) -> Reply | None:
        if gemini_request.is_list(path):
            return whole(pretty({"models": [_model_row(model) for model in models]}), content_type=_JSON)
        model = gemini_request.named(path)
        return whole(pretty(_model_row(model)), content_type=_JSON) if model in models else None


def _thoughts(exchange: Exchange) -> tuple[str, ...]:
    """Return the thoughts shown: none unless the request asks for them."""
    turn = exchange.turn
    asked = setting(exchange.body, "thinkingConfig.includeThoughts") is True
    return turn.summary if asked and not turn.redacted and not turn.hidden else ()


def _thought(text: str) -> Fields:
    return {"text": text, "thought": True}


def _answer_part(exchange: Exchange, *, signed: bool) -> Iterator[Fields]:
    turn = exchange.turn
    if turn.text or not turn.tool_calls:
        yield {"text": turn.text, **(_signature(exchange) if signed and not turn.tool_calls else {})}


def _calls(exchange: Exchange) -> Iterator[Fields]:
    """Only the first of several calls is signed."""
    for index, call in exchange.calls():
        function: Fields = {
            "name": call.name,
            "args": call.arguments_value,
            "id": call.id or exchange.token(f"call{index}", 8, LOWER),
        }
        yield {"functionCall": function, **(_signature(exchange, called=call.name) if index == 0 else {})}


def _signature(exchange: Exchange, *, called: str = "") -> Fields:
    if not exchange.turn.reasons and not (called and gemini_request.signs_always(exchange.model)):
        return {}
    return {"thoughtSignature": gemini_request.signature(exchange.model, exchange.turn.reasoning, called=called)}


_ALL = -1


def _usage(exchange: Exchange, *, answer: int | None = _ALL, thinking: int = _ALL) -> Fields:
    """Thoughts stand beside the candidates' tokens; those are missing while only thoughts have come."""
    usage = exchange.usage
    answer = usage.answer_tokens if answer == _ALL else answer
    thinking = usage.reasoning_tokens if thinking == _ALL else thinking
    counted: Fields = {"promptTokenCount": usage.input_tokens}
    if answer is not None:
        counted["candidatesTokenCount"] = answer
    counted["totalTokenCount"] = usage.input_tokens + (answer or 0) + thinking
    if usage.cached_input_tokens:
        counted["cachedContentTokenCount"] = usage.cached_input_tokens
    counted["promptTokensDetails"] = [{"modality": "TEXT", "tokenCount": usage.input_tokens}]
    if thinking:
        counted["thoughtsTokenCount"] = thinking
    return {**counted, "serviceTier": "standard"}


def _chunk(exchange: Exchange, parts: list[Fields], *, usage: Fields, finish: str | None = None) -> Fields:
    candidate: Fields = {"content": {"parts": parts, "role": "model"}}
    if finish:
        candidate["finishReason"] = finish
    candidate["index"] = 0
    return {
        "candidates": [candidate],
        "usageMetadata": usage,
        "modelVersion": exchange.model,
        "responseId": exchange.token("response", 22),
    }


def _event(chunk: Fields) -> bytes:
    return b"data: " + json.dumps(chunk, separators=(",", ": "), ensure_ascii=False).encode() + b"\r\n\r\n"


def _array(chunks: Sequence[Fields]) -> Iterator[bytes]:
    for index, chunk in enumerate(chunks):
        yield (b",\n" if index else b"[") + pretty(chunk)
    yield b"]"


def _model_row(model: str) -> Fields:
    return {
        "name": f"models/{model}",
        "version": "001",
        "displayName": model,
        "inputTokenLimit": 1048576,
        "outputTokenLimit": 65536,
        "supportedGenerationMethods": ["embedContent"] if "embedding" in model else ["generateContent", "countTokens"],
        "thinking": True,
    }
