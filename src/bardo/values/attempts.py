"""The attempts of one call: who was asked, why, how it ended, and what it cost."""

from __future__ import annotations

from typing import Literal

import msgspec

AttemptCause = Literal["first", "retry", "failover", "hedge", "repair", "search", "tools"]
"""Why an attempt was made. `repair`: the model was asked again because its typed answer did not fit. `search`: the model goes on with what
a search found that bardo made for it. `tools`: the model goes on with what bardo told it of the client's tools."""


class AttemptRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One attempt of a call.

    `why` says in words what led to it. `address` names the server of a provider that has several, by its host and port. `key` is the label
    of the provider's key, never the key. `started` is in seconds since the call
    began; `seconds` is None if the attempt was not seen to its end. `error` is the class of its error. Tokens and `nanos`
    (nano-dollars) are None if they are not known; `tokens_approx`: they are estimated, because the reply did not come to its end.
    """

    cause: AttemptCause
    provider: str
    model: str
    why: str = ""
    address: str = ""
    key: str = ""
    started: float = 0.0
    seconds: float | None = None
    status: int | None = None
    error: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_input_tokens: int | None = None
    cache_write_tokens: int | None = None
    nanos: int | None = None
    tokens_approx: bool = False
