"""IBM watsonx.ai's text generation and its chat, with the words in which it refuses a request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from bardo.simulators import chat_request
from bardo.simulators.chat import Chat
from bardo.simulators.exchange import Exchange, Incoming, Refusal, Reply, streamed, whole
from bardo.simulators.fields import Fields, compact, fields, text
from bardo.simulators.marks import HEXADECIMAL, token
from bardo.simulators.provider import Provider
from bardo.simulators.turns import Conversation

_PAGE = "https://cloud.ibm.com/apidocs/watsonx-ai#text-generation"
_CODES = {
    401: "authentication_token_not_valid",
    403: "authorization_rejected",
    404: "model_not_supported",
    429: "rate_limit_reached_requests",
}


class WatsonxErrors:
    """The refusals of one server, for the simulators of both its ways to generate."""

    def encode_refusal(self, refusal: Refusal) -> Reply:
        return whole(compact(error_body(refusal)), status=refusal.status)

    def missing_key(self) -> Refusal:
        return Refusal("missing_key", "Failed to authenticate the request due to missing token")

    def wrong_key(self, key: str) -> Refusal:
        return Refusal("wrong_key", "Failed to authenticate the request due to invalid token")

    def unknown_model(self, model: str) -> Refusal:
        return Refusal("unknown_model", f"Model '{model}' is not supported", parameter="model_id")

    def error_events(self) -> Sequence[bytes]:
        error = error_body(Refusal("trouble", "An unexpected error occurred", status=500))
        return [b"event: error\ndata: " + compact(error) + b"\n\n"]


def error_body(refusal: Refusal) -> Fields:
    """Return a refusal as watsonx writes it."""
    code = _CODES.get(refusal.status) or ("json_validation_error" if refusal.status < 500 else "downstream_error")
    if refusal.reason == "unknown_path":
        code = "not_found"
    return {
        "errors": [{"code": code, "message": refusal.message, "more_info": _PAGE}],
        "trace": token(f"watsonx/{refusal.message}", 32, HEXADECIMAL),
        "status_code": refusal.status,
    }


# What a request may hold: ibm-watsonx-ai 1.8.1, TextChatParameters, and the page of the API (as of 2026-11).
_FIELDS = frozenset(
    (
        "model_id", "project_id", "space_id", "messages", "tools", "tool_choice", "tool_choice_option", "context", "frequency_penalty",
        "logit_bias", "logprobs", "top_logprobs", "max_tokens", "max_completion_tokens", "n", "presence_penalty", "response_format", "seed",
        "stop", "temperature", "top_p", "time_limit", "repetition_penalty", "length_penalty", "include_reasoning", "reasoning_effort",
        "chat_template_kwargs", "guided_choice", "guided_regex", "guided_grammar", "guided_json", "crypto",
    )
)  # fmt: skip
_OPTIONS = ("none", "auto", "required")


class WatsonxChat(WatsonxErrors, Chat):
    """us-south.ml.cloud.ibm.com/ml/v1/text/chat and text/chat_stream.

    It is Chat Completions in other words: the path says whether to stream, and the model is `model_id`.
    """

    name = "watsonx"
    catalog_name = "watsonx-chat"
    base_path = "/ml/v1"
    models = ("deepseek-ai/deepseek-r1-distill-llama-70b", "ibm/granite-3-3-8b-instruct")
    usage_place = "always"
    ends_with_done = False
    off_switches = (("chat_template_kwargs.thinking", False),)

    def is_generation_path(self, incoming: Incoming, path: str) -> bool:
        return path in ("/text/chat", "/text/chat_stream")

    def decode_request(self, incoming: Incoming, path: str) -> Conversation:
        if not incoming.query.get("version"):
            raise Refusal("missing_field", "Missing required query parameter: version", parameter="version")
        body = chat_request.json_body(incoming)
        # Refuse what the server does.
        for name in ("model_id", "messages"):
            if not body.get(name):
                raise Refusal(
                    "missing_field", f"Json document validation error: {name} should not be blank", parameter=name
                )
        if bool(body.get("project_id")) == bool(body.get("space_id")):
            message = "Json document validation error: exactly one of project_id and space_id should be given"
            raise Refusal("missing_field", message, parameter="project_id")
        unknown = next((name for name in body if name not in _FIELDS), None)
        if unknown is not None:
            raise Refusal("bad_value", f"Json document validation error: unknown field {unknown}", parameter=unknown)
        choice, option = body.get("tool_choice"), body.get("tool_choice_option")
        if isinstance(choice, str):
            raise _invalid_chat_request("tool_choice", "should be an object")
        if option is not None and (choice is not None or option not in _OPTIONS):
            raise _invalid_chat_request(
                "tool_choice_option", f"should be one of {', '.join(_OPTIONS)}, without a tool_choice"
            )
        named = replace(incoming, body={**body, "model": body["model_id"]})
        conversation = chat_request.read(named)
        forbidden = body.get("tool_choice_option") == "none"
        return replace(conversation, streamed=path.endswith("_stream"), tools=() if forbidden else conversation.tools)

    def encode_stream(self, exchange: Exchange) -> Reply:
        return streamed(self.frames(exchange), content_type="text/event-stream")

    def frames(self, exchange: Exchange) -> Iterator[bytes]:
        for number, chunk in enumerate(self.chunks(exchange), start=1):
            yield f"id: {number}\nevent: message\ndata: ".encode() + compact(chunk) + b"\n\n"

    def envelope(self, exchange: Exchange, kind: str) -> Fields:
        moment = datetime.fromtimestamp(exchange.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        head = super().envelope(exchange, kind)
        return {**head, "model_id": exchange.model, "model_version": "1.0.0", "created_at": moment}


def _invalid_chat_request(name: str, words: str) -> Refusal:
    return Refusal("bad_value", f"Json document validation error: {name} {words}", parameter=name)


_FINISH = {"stop": "eos_token", "tool_calls": "eos_token", "length": "max_tokens", "content_filter": "eos_token"}
_UNFINISHED = "not_finished"
_NOTICE = (
    "This model is a Non-IBM Product governed by a third-party license that may impose use restrictions and other "
    "obligations. By using this model you agree to its terms as identified in the following URL."
)
_LICENCES = "https://dataplatform.cloud.ibm.com/docs/content/wsj/analyze-data/fm-models.html?context=wx"


class Watsonx(WatsonxErrors, Provider):
    """us-south.ml.cloud.ibm.com/ml/v1/text/generation and the like.

    A prompt shows no rounds, so only a script that is `in_order` comes to its second turn.

    A prompt goes in and text comes out: there are no roles and no tools, and thinking stands in the text.
    """

    name = "watsonx"
    dialect = "watsonx_text"
    catalog_name = "watsonx"
    base_path = "/ml/v1"
    other_dialects = (WatsonxChat,)
    models = ("deepseek-ai/deepseek-r1-distill-llama-70b", "ibm/granite-3-3-8b-instruct")
    has_tools = False

    def is_generation_path(self, incoming: Incoming, path: str) -> bool:
        return path in ("/text/generation", "/text/generation_stream")

    def decode_request(self, incoming: Incoming, path: str) -> Conversation:
        return read_request(incoming, streamed=path.endswith("_stream"))

    def encode_reply(self, exchange: Exchange) -> Reply:
        counts = (exchange.usage.output_tokens, exchange.usage.input_tokens)
        return whole(
            compact(_chunk(exchange, _generated_text(exchange), *counts, _FINISH[exchange.turn.ending], first=True))
        )

    def encode_stream(self, exchange: Exchange) -> Reply:
        frames = (
            f"id: {number}\nevent: message\ndata: ".encode() + compact(chunk) + b"\n\n"
            for number, chunk in enumerate(_chunks(exchange), start=1)
        )
        return streamed(frames, content_type="text/event-stream")

    def list_models(self, path: str, models: Sequence[str]) -> Reply | None:
        if path != "/foundation_model_specs":
            return None
        return whole(compact({"total_count": len(models), "limit": 100, "resources": [_row(name) for name in models]}))


def _generated_text(exchange: Exchange) -> str:
    """Return what the model writes: its thinking in tags, then the answer."""
    turn = exchange.turn
    shown = turn.reasoning and not turn.hidden and not turn.redacted
    return f"<think>\n{turn.reasoning}\n</think>\n\n{turn.text}" if shown else turn.text


def _chunks(exchange: Exchange) -> Iterator[Fields]:
    """The prompt is counted in the first chunk only, and the count of generated tokens grows up to the last."""
    usage = exchange.usage
    yield _chunk(exchange, "", 0, usage.input_tokens, _UNFINISHED, first=True)
    pieces = [*exchange.pieces(_generated_text(exchange))]
    for index, piece in enumerate(pieces, start=1):
        yield _chunk(exchange, piece, usage.output_tokens * index // (len(pieces) + 1), 0, _UNFINISHED)
    yield _chunk(exchange, "", usage.output_tokens, 0, _FINISH[exchange.turn.ending])


def _chunk(exchange: Exchange, piece: str, generated: int, read: int, stop: str, *, first: bool = False) -> Fields:
    moment = datetime.fromtimestamp(exchange.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    result: Fields = {
        "generated_text": piece,
        "generated_token_count": generated,
        "input_token_count": read,
        "stop_reason": stop,
    }
    chunk: Fields = {"model_id": exchange.model, "created_at": moment, "results": [result]}
    if first and not exchange.model.startswith("ibm/"):
        chunk["system"] = {"warnings": [{"message": _NOTICE, "id": "disclaimer_warning", "more_info": _LICENCES}]}
    return chunk


def _row(model: str) -> Fields:
    maker, _, label = model.partition("/")
    return {
        "model_id": model,
        "label": label,
        "provider": maker,
        "functions": [{"id": "text_generation"}],
        "model_limits": {"max_sequence_length": 131072, "max_output_tokens": 8192},
    }


# Each parameter that is a number, with the least and the most IBM's page gives it (as of 2026-11-20).
_BOUNDS: dict[str, tuple[float, float]] = {
    "temperature": (0.0, 2.0),
    "top_p": (0.0, 1.0),
    "top_k": (1, 100),
    "repetition_penalty": (1.0, 2.0),
    "max_new_tokens": (0, 1_000_000),
}
_METHODS = ("greedy", "sample")


def read_request(incoming: Incoming, *, streamed: bool) -> Conversation:
    """Decode the request. Raises Refusal."""
    # IBM also wants a `project_id` or a `space_id`. A request without one is taken, as a deployment's own address does: who asks
    # through a gateway in another dialect has no place for it.
    if not incoming.query.get("version"):
        raise Refusal("missing_field", "Missing required query parameter: version", parameter="version")
    if not isinstance(incoming.body, dict):
        raise Refusal("bad_json", "Json document validation error: the body is not a JSON object")
    body = incoming.fields
    prompt = _required(body, "input")
    model = _required(body, "model_id")
    parameters = fields(body.get("parameters"))
    method = parameters.get("decoding_method")
    if method is not None and method not in _METHODS:
        raise _invalid("decoding_method", f"should be one of {', '.join(_METHODS)}")
    for name, (least, most) in _BOUNDS.items():
        value = parameters.get(name)
        if value is None:
            continue
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise _invalid(name, "should be a number")
        if value < least:
            raise _invalid(name, f"should not be less than {least}")
        if value > most:
            raise _invalid(name, f"should not be greater than {most}")
    return Conversation(model=model, question=prompt, streamed=streamed, characters=len(prompt))


def _required(body: Fields, name: str) -> str:
    value = text(body.get(name))
    if not value:
        raise Refusal("missing_field", f"Json document validation error: {name} should not be blank", parameter=name)
    return value


def _invalid(name: str, words: str) -> Refusal:
    path = f"parameters.{name}"
    return Refusal("bad_value", f"Json document validation error: {path} {words}", parameter=path)
