"""What is the same for two requests that ask for the same answer.

Everything that may change the answer is part of the identity: the tenant, the models, the prompt, tools, the form of the answer, sampling,
reasoning and every field that only goes through bardo. What only changes how the reply is sent, or what is told beside it, is not.
The order of keys in JSON objects is no part of it, except in schemas: models write the fields of an answer in the order of its schema.
Letters, spaces and line breaks inside texts are compared as they are.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import msgspec

from bardo.values.request import BardoOptions, Request

_SIZE = 32
_DEFAULT = BardoOptions()
_in_any_order = msgspec.msgpack.Encoder(order="deterministic", enc_hook=repr)
_in_order = msgspec.msgpack.Encoder(enc_hook=repr)


def identity_of(request: Request, *scope: Any) -> bytes:
    """Return the identity of a request, in 32 bytes. `scope` is what else must be equal: the tenant first.

    Two dialects that ask for the same have the same identity, unless fields go through that only one of them has.
    Raises ValueError for a request that holds what cannot be compared: a number of more than 64 bits, or half a character.
    """
    try:
        digest = blake2b(_in_any_order.encode((scope, *_fields_of(request))), digest_size=_SIZE)
        if request.tools or request.output_format is not None:
            digest.update(_in_order.encode((request.tools, request.output_format)))
    except OverflowError as problem:
        raise ValueError("the request holds a number that is too large to be compared") from problem
    return digest.digest()


def _fields_of(request: Request) -> tuple[Any, ...]:
    own = request.extra or request.headers
    return (
        request.model,
        request.messages,
        request.tool_choice,
        request.max_output_tokens,
        request.sampling,
        request.reasoning,
        request.control,
        request.choices,
        request.operation,
        request.dialect if own else "",
        request.extra,
        request.headers,
        _options_of(request.options),
    )


def _options_of(options: BardoOptions) -> BardoOptions | None:
    """Return the options without those that say nothing of the answer; None where none is left."""
    if options == _DEFAULT:
        return None
    asked = msgspec.structs.replace(
        options,
        include=(),
        verify=None,
        allow_stale=None,
        deadline_seconds=None,
        chose_display=_DEFAULT.chose_display,
        cache=None,
        session=_DEFAULT.session,
        search_limits=(),
    )
    return None if asked == _DEFAULT else asked
