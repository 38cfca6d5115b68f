"""How a model shall answer: every parameter of one call that a workload may set."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from bardo.values.effort import Effort

ProfileEffort = Effort | Literal["none"]
_Part = Annotated[float, msgspec.Meta(ge=0, le=1)]
_Penalty = Annotated[float, msgspec.Meta(ge=-2, le=2)]
_Count = Annotated[int, msgspec.Meta(ge=1)]


class ResponseSchema(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The JSON Schema that an answer shall fit. `strict`: the provider shall hold the model to it, where it can."""

    name: str
    schema: dict[str, Any]
    strict: bool = True


class InferenceProfile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameters of one call; None leaves each to the caller, and then to the provider.

    `reasoning_effort` `none` asks for no thinking, `visible_thinking` whether it shall be readable. `cache_control` asks for cache
    markers at the end of what stays the same between calls. `tee_mode`: the call runs in a trusted execution environment.
    `predicted_output` is the text that the answer will mostly repeat.
    """

    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    top_p: _Part | None = None
    top_k: _Count | None = None
    min_p: _Part | None = None
    frequency_penalty: _Penalty | None = None
    presence_penalty: _Penalty | None = None
    reasoning_effort: ProfileEffort | None = None
    visible_thinking: bool | None = None
    response_schema: ResponseSchema | None = None
    max_tokens: _Count | None = None
    stop_sequences: tuple[str, ...] | None = None
    prompt_cache_key: str | None = None
    cache_control: bool | None = None
    web_search: bool | None = None
    tee_mode: bool | None = None
    predicted_output: str | None = None
    seed: int | None = None
