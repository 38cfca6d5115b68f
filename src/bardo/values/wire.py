"""An HTTP request as bytes, before anything is known of sockets or secrets."""

from __future__ import annotations

import msgspec

from bardo.values.degradation import Degradation


class WireRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a dialect wants sent: a path below the provider's base URL, a JSON body, and headers beside the usual ones.

    `degraded` lists what the dialect could not say.
    """

    path: str
    body: bytes
    headers: dict[str, str] = {}
    degraded: tuple[Degradation, ...] = ()


OF_CLOUD = "cloud"
"""The endpoint of a request as a cloud takes it: fields of its body are what the model's maker takes in its path and its headers."""


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    """What a client's URL says beside the body: Gemini names the model and the streaming there.

    `counting`: the request is only to be counted, so what an answer needs (a limit of tokens) may be missing. `endpoint` is which of the
    dialect's endpoints for one operation the request came by, where it has several.
    """

    model: str = ""
    stream: bool | None = None
    framing: str = "sse"
    counting: bool = False
    endpoint: str = ""
