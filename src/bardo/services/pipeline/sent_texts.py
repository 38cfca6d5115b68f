"""Layers that work on whatever is sent: also on texts for vectors, on requests whose tokens are counted, and on items of batches.

The others are about a reply that somebody waits for. The one that masks personal data is not: where it is named, nothing goes without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from bardo.context.layer import EffectFailed, KeptReply
from bardo.values.blocks import Block, TextBlock, UnknownBlock
from bardo.values.degradation import Degradation
from bardo.values.errors import InternalError, InvalidRequest
from bardo.values.operations import EmbedInput, EmbedRequest, NativeInput
from bardo.values.request import Message, Request

if TYPE_CHECKING:
    from bardo.planning.route import Target
    from bardo.services.pipeline.call_layers import CallLayers
    from bardo.services.pipeline.pipeline import Pipeline


async def run_on_request(
    pipeline: Pipeline, call: CallLayers, request: Request, targets: tuple[Target, ...]
) -> Request:
    """Return a request with what the layers of a call make of it. Raises BardoError where it must not be sent."""
    request = await pipeline.before_route(call, request, _no_answer)
    request, _ = await pipeline.after_route(call, request, targets)
    return request


async def run_on_inputs(
    pipeline: Pipeline, call: CallLayers, request: EmbedRequest, targets: tuple[Target, ...]
) -> tuple[EmbedRequest, tuple[Degradation, ...]]:
    """Return a request for vectors with what the layers of a call make of each of its inputs, and what was lost.

    Raises BardoError where it must not be sent: so for tokens, which cannot be searched.
    """
    if call.masks and any(isinstance(text, tuple) for text in request.inputs):
        raise InvalidRequest(
            "tokens cannot be searched for personal data, and are not sent",
            hint="send the texts themselves",
            param="input",
        )
    before = Request(
        model=request.model,
        messages=tuple([Message("user", _blocks(text)) for text in request.inputs]),
        operation="embed",
        dialect=request.dialect,
        extra=request.extra,
        options=request.options,
    )
    after = await run_on_request(pipeline, call, before, targets)
    count = sum(not isinstance(text, str) for text in request.inputs)
    why = "personal data is looked for in their texts only: pictures and tokens are sent as they are"
    lost = (*after.degraded, *((Degradation("pipeline.inputs", asked=count, why=why),) if count else ()))
    if after.messages == before.messages and after.extra == before.extra:
        return request, lost
    if len(after.messages) != len(before.messages):
        raise InternalError("a layer changed how many inputs there are, and nothing is sent")
    if any(isinstance(text, NativeInput) for text in request.inputs):
        raise InvalidRequest(
            "personal data cannot be masked in or beside an input that is no text, and nothing is sent",
            hint="send the texts alone",
            param="input",
        )
    pairs = zip(after.messages, request.inputs, strict=True)
    inputs = tuple([message.text if isinstance(text, str) else text for message, text in pairs])
    return msgspec.structs.replace(request, inputs=inputs, extra=after.extra, body=None), lost


def _blocks(value: EmbedInput) -> tuple[Block, ...]:
    if isinstance(value, str):
        return (TextBlock(value),)
    return (UnknownBlock(value.dialect, value.value),) if isinstance(value, NativeInput) else ()


async def _no_answer(cached: KeptReply, request: Request) -> None:
    raise EffectFailed("only a call for a reply can be answered by a layer")
