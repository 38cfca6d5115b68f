"""IBM watsonx.ai's text generation: a prompt in, text out. There are no roles and no tools, and thinking stands in the text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from bardo.simulators.conversation import Conversation
from bardo.simulators.exchange import Exchange
from bardo.simulators.fields import Fields, compact, fields, text
from bardo.simulators.incoming import Incoming
from bardo.simulators.provider import Provider
from bardo.simulators.providers.watsonx_chat import WatsonxChat
from bardo.simulators.providers.watsonx_errors import WatsonxErrors
from bardo.simulators.refusal import Refusal
from bardo.simulators.reply import Reply, streamed, whole

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
        frames = (_frame(number, chunk) for number, chunk in enumerate(_chunks(exchange), start=1))
        return streamed(frames, content_type="text/event-stream")

    def list_models(self, path: str, models: Sequence[str]) -> Reply | None:
        if path != "/foundation_model_specs":
            return None
        return whole(compact({"total_count": len(models), "limit": 100, "resources": [_row(one) for one in models]}))


def _generated_text(exchange: Exchange) -> str:
    """Return what the model writes: its thinking in tags, then the answer."""
    turn = exchange.turn
    shown = turn.reasoning and not turn.hidden and not turn.redacted
    return f"<think>\n{turn.reasoning}\n</think>\n\n{turn.text}" if shown else turn.text


def _chunks(exchange: Exchange) -> Iterator[Fields]:
    """The prompt is counted in the first chunk only, and what is generated grows up to the last."""
    usage = exchange.usage
    yield _chunk(exchange, "", 0, usage.input_tokens, _UNFINISHED, first=True)
    pieces = [*exchange.pieces(_generated_text(exchange))]
    for index, piece in enumerate(pieces, start=1):
        yield _chunk(exchange, piece, usage.output_tokens * index // (len(pieces) + 1), 0, _UNFINISHED)
    yield _chunk(exchange, "", usage.output_tokens, 0, _FINISH[exchange.turn.ending])


def _chunk(exchange: Exchange, said: str, generated: int, read: int, stop: str, *, first: bool = False) -> Fields:
    moment = datetime.fromtimestamp(exchange.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    result: Fields = {
        "generated_text": said,
        "generated_token_count": generated,
        "input_token_count": read,
        "stop_reason": stop,
    }
    chunk: Fields = {"model_id": exchange.model, "created_at": moment, "results": [result]}
    if first and not exchange.model.startswith("ibm/"):
        chunk["system"] = {"warnings": [{"message": _NOTICE, "id": "disclaimer_warning", "more_info": _LICENCES}]}
    return chunk


def _frame(number: int, chunk: Fields) -> bytes:
    return f"id: {number}\nevent: message\ndata: ".encode() + compact(chunk) + b"\n\n"


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
    _check(fields(body.get("parameters")))
    return Conversation(model=model, question=prompt, streamed=streamed, characters=len(prompt))


def _required(body: Fields, name: str) -> str:
    value = text(body.get(name))
    if not value:
        raise Refusal("missing_field", f"Json document validation error: {name} should not be blank", parameter=name)
    return value


def _check(parameters: Fields) -> None:
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


def _invalid(name: str, words: str) -> Refusal:
    path = f"parameters.{name}"
    return Refusal("bad_value", f"Json document validation error: {path} {words}", parameter=path)
