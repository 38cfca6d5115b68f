"""What a dialect may offer beside replies: vectors of texts, counts of tokens, and lists of models. Each is a value of functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bardo.catalog.rows import EmbedEndpoint
from bardo.dialects.lenient import decode_leniently
from bardo.dialects.wire import WrongShape, want
from bardo.values.degradation import Degradation
from bardo.values.errors import InvalidRequest, Unsupported
from bardo.values.operations import Embeddings, EmbedRequest, ModelInfo, NativeInput, TokenCount
from bardo.values.request import Request
from bardo.values.wire import Arrival, WireRequest


def _not_for_clients(*_: Any) -> Any:
    raise Unsupported("no client can ask for this in this dialect")


def _not_for_providers(*_: Any) -> Any:
    raise Unsupported("no provider is asked for this in this dialect")


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingForm:
    """How a dialect asks for vectors, and answers with them.

    For providers: `encode_request` writes a request for one model at one endpoint; what cannot be expressed is in its `degraded`, and what
    may not be left out raises Unsupported. `decode_reply` reads the body and headers of a reply, and raises WrongShape for any other.
    For clients: `decode_request` raises InvalidRequest, and `encode_reply` writes the vectors.
    """

    encode_request: Callable[[EmbedRequest, EmbedEndpoint], WireRequest] = _not_for_providers
    decode_reply: Callable[[dict[str, Any], Mapping[str, str]], Embeddings] = _not_for_providers
    decode_request: Callable[[bytes, Arrival], EmbedRequest] = _not_for_clients
    encode_reply: Callable[[Embeddings, EmbedRequest], bytes] = _not_for_clients


@dataclass(frozen=True, slots=True, kw_only=True)
class CountForm:
    """How a dialect asks for the number of a request's tokens, and answers with it.

    For providers: `encode_request` makes it of the request for a reply that would be sent to the model, `decode_reply` reads the count.
    For clients: `decode_request` reads the request that is to be counted, `encode_reply` writes the count.
    """

    encode_request: Callable[[WireRequest, str], WireRequest] = _not_for_providers
    decode_reply: Callable[[dict[str, Any]], int] = _not_for_providers
    decode_request: Callable[[bytes, Arrival], Request] = _not_for_clients
    encode_reply: Callable[[TokenCount], bytes] = _not_for_clients


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelsForm:
    """How a dialect's servers list models, and describe one."""

    encode_list: Callable[[Sequence[ModelInfo]], bytes]
    encode_model: Callable[[ModelInfo], bytes]


def decode_body(body: bytes) -> dict[str, Any]:
    """Return the JSON object of a provider's whole reply. Raises WrongShape."""
    try:
        return want(decode_leniently(body), dict, "the reply")
    except ValueError as problem:
        raise WrongShape(f"it is no JSON: {problem}") from None


def texts_of(request: EmbedRequest, title: str) -> list[str]:
    """Return the inputs as texts. Raises Unsupported for tokens and for what only another dialect can say."""
    for place, given in enumerate(request.inputs):
        if isinstance(given, NativeInput):
            raise Unsupported(f"{title} makes vectors of texts only", param=f"input[{place}]")
        if not isinstance(given, str):
            hint = "send the text: tokens mean something else to another model"
            raise Unsupported(f"{title} takes no tokens", hint=hint, param=f"input[{place}]")
    return [given for given in request.inputs if isinstance(given, str)]


def lost_fields(request: EmbedRequest, title: str, **lost: Any) -> tuple[Degradation, ...]:
    """Return a degradation for each field of another dialect, and for each of `lost` that the request gives."""
    why = f"{title} has no such field"
    given = {**request.extra, **{name: value for name, value in lost.items() if value is not None}}
    return tuple(Degradation(name, asked=value, why=why) for name, value in given.items())


def own_body(request: EmbedRequest, dialect: str) -> dict[str, Any] | None:
    """Return the client's own body where it speaks `dialect`, with the model's name at the provider; None for any other."""
    if request.dialect != dialect or request.body is None:
        return None
    return {**request.body, "model": request.model}


def count_field(value: Any, name: str) -> int | None:
    """Return a count that must be at least 1. Raises InvalidRequest."""
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidRequest(f"{name} must be a whole number of at least 1", param=name)
    return value


def numbers(value: Any, what: str) -> list[float]:
    """Return the numbers of a vector. Raises WrongShape."""
    found: list[float] = want(value, list, what)
    if not all(type(one) is float or type(one) is int for one in found):
        raise WrongShape(f"{what} holds what is no number")
    return found


def whole_number(value: Any) -> int | None:
    """Return a count of tokens where it is one, else None: a reply without one is a reply all the same."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def with_bardo(fields: dict[str, Any], bardo: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an answer, with bardo's own beside them where there are any."""
    return {**fields, "bardo": bardo} if bardo else fields


def route_fields(model: ModelInfo) -> dict[str, Any]:
    """Return the `bardo` object that marks an entry of a list of models as a route; nothing for a model."""
    if not model.route:
        return {}
    return {"bardo": {"route": model.route, **({"about": model.about} if model.about else {})}}


def count_of(body: dict[str, Any], name: str) -> int:
    """Return the count of tokens that a reply gives. Raises WrongShape."""
    count = want(body.get(name), int, name)
    if count < 0:
        raise WrongShape(f"{name} is {count}")
    return count
