"""Keep a client's own key out of what is written of its calls, wherever in a request it stands.

Programs are configured by people, who put a key into the place of a model, of a user or of a session.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from bardo.adapters.stores.log.row import LogRow
from bardo.services.accounts.access_keys import keys_in
from bardo.values.operations import EmbedRequest
from bardo.values.redaction import looks_like_key
from bardo.values.request import Request
from bardo.values.secrets import Secrets, secrets_of

_IDENTITY = frozenset({"request_id", "tenant", "key_id"})
_CONTENT = frozenset({"request_content", "sent_content", "reply_content"})
AnyRequest = TypeVar("AnyRequest", bound=Request | EmbedRequest)


def without_key_as_model(request: AnyRequest, client_key: str, *, is_known: bool) -> AnyRequest:
    """Return a request whose model holds no key: a mark stands in its place, by which no model is called.

    `is_known`: the key is one of the gateway's. Where no keys are asked for, clients send words like `lm-studio`, which are parts of the
    names of models.
    """
    model = request.model
    own = (client_key,) if client_key in model and (is_known or looks_like_key(client_key)) else ()
    found = (*own, *(keys_in(model) if "bardo_" in model else ()))
    if not any(found):
        return request
    return msgspec.structs.replace(request, model=secrets_of(found).in_text(model))


def without_key(row: LogRow, request: Request | EmbedRequest, client_key: str, *, is_known: bool) -> LogRow:
    """Return the row of a call without the key that its client came with, wherever the client wrote it."""
    secrets = secrets_of((client_key,)) if is_known or looks_like_key(client_key) else None
    if secrets is None or not secrets.longest or not _holds(request, secrets):
        return row
    changed = {}
    for name in LogRow.__struct_fields__:
        value = getattr(row, name)
        if not value or name in _IDENTITY:
            continue
        if name in _CONTENT:
            changed[name] = secrets.in_bytes(value.encode()).decode()
        elif isinstance(value, str | dict | tuple):
            changed[name] = secrets.in_value(msgspec.to_builtins(value))
    return msgspec.convert({**msgspec.to_builtins(row), **changed}, LogRow)


def text_without_key(text: str, client_key: str) -> str:
    """Return a word of a request, such as the name of a subsystem, without the key."""
    return secrets_of((client_key,)).in_text(text) if client_key and client_key in text else text


def _holds(request: Request | EmbedRequest, secrets: Secrets) -> bool:
    body = request.body_bytes if isinstance(request, Request) else b""
    return secrets.stand_in(body or msgspec.json.encode(request.extra)) or secrets.stand_in(
        msgspec.json.encode(request.options)
    )
