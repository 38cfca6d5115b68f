"""Read the items of batches as the requests that their endpoints take."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from bardo.batches.item_requests import EmbedItem, GenerateItem, ItemRequest
from bardo.batches.records import BatchRecord
from bardo.dialects import dialect
from bardo.dialects.openai_chat.completions import decode_completion, encode_completion
from bardo.surfaces.gateway.http import Scope
from bardo.surfaces.gateway.request_options import header_options, with_headers
from bardo.values.errors import Unsupported
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.wire import Arrival

MESSAGES = "/v1/messages"
_DIALECTS = {
    "/v1/chat/completions": "openai_chat",
    "/v1/responses": "openai_responses",
    MESSAGES: "anthropic_messages",
}
_KEPT_HEADERS = (b"x-bardo-", b"anthropic-beta", b"openai-beta")


def kept_headers(scope: Scope) -> tuple[tuple[str, str], ...]:
    """Return the headers of a request for a batch that hold for its items."""
    found = [(name, value) for name, value in scope["headers"] if name.startswith(_KEPT_HEADERS)]
    return tuple((str(name, "latin-1"), str(value, "latin-1")) for name, value in found)


def read_item(body: bytes, batch: BatchRecord) -> ItemRequest:
    """Read one item of a batch. Raises InvalidRequest, and Unsupported for what a batch cannot do."""
    scope: Scope = {"headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in batch.headers]}
    if batch.endpoint == "/v1/embeddings":
        return _vectors(body, scope)
    if batch.endpoint == "/v1/completions":
        return _completion(body, scope)
    spoken = dialect(_DIALECTS[batch.endpoint])
    return GenerateItem(
        request=_whole_only(spoken.decode_request(body, Arrival()), scope),
        encode=spoken.encode_response,
    )


def _vectors(body: bytes, scope: Scope) -> EmbedItem:
    form = dialect("openai_chat").embeddings
    assert form is not None
    request = form.decode_request(body, Arrival())
    request = msgspec.structs.replace(request, options=header_options(request.options, scope))
    return EmbedItem(request=request, encode=form.encode_reply)


def _completion(body: bytes, scope: Scope) -> GenerateItem:
    asked = decode_completion(body)
    if len(asked.requests) > 1:
        hint = "write an item for each prompt"
        raise Unsupported("an item of a batch has one prompt", hint=hint, param="prompt")
    request = _whole_only(asked.requests[0], scope)
    only = msgspec.structs.replace(asked, requests=(request,))
    encode: Callable[[Response, Request], bytes] = lambda response, _: encode_completion([response], only)  # noqa: E731
    return GenerateItem(request=request, encode=encode)


def _whole_only(request: Request, scope: Scope) -> Request:
    if request.stream:
        raise Unsupported("a batch streams no replies", hint="leave out stream", param="stream")
    return with_headers(request, scope)
