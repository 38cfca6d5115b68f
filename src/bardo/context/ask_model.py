"""The effect by which a layer has a model write something: a call of its own, in the log with what it costs."""

from __future__ import annotations

import msgspec

from bardo.context.layer import Effect


class AskModel(Effect, frozen=True, kw_only=True):
    """Ask a model once, without tools, for an answer within some seconds. Whoever runs layers sends back a `ModelAnswer`.

    `masked`: personal data is masked on the way, as it is in the call that this is for. `private`: only providers that keep nothing of a
    call may be asked.
    """

    model: str
    instructions: str
    prompt: str
    max_output_tokens: int
    tenant: str
    seconds: float = 60.0
    masked: bool = False
    private: bool = False


class ModelAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a model wrote, the id of that call in the log, and its cost in nano-dollars; None where that is unknown."""

    text: str
    request_id: str = ""
    cost_nanos: int | None = None
