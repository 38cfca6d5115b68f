"""Calls of bardo's own, by which layers have a model write something: each is in the log, with what it costs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from bardo.adapters.config.pipeline import OFF
from bardo.context.ask_model import AskModel, ModelAnswer
from bardo.context.layer import EffectFailed
from bardo.services.pipeline.effects import Effects
from bardo.values.blocks import TextBlock
from bardo.values.errors import BardoError
from bardo.values.request import BardoOptions, Message, ReasoningPolicy, Request

if TYPE_CHECKING:
    from bardo.services.pipeline.parts import CallRunner


def ask_models(effects: Effects, runner: CallRunner) -> None:
    """Register calls of a runner as the performer of `AskModel`."""

    async def ask(effect: AskModel) -> ModelAnswer:
        return await _ask(runner, effect)

    if not effects.performs(AskModel):
        effects.register(AskModel, ask)


async def _ask(runner: CallRunner, effect: AskModel) -> ModelAnswer:
    """Return what a model answers, without layers and without thinking where that can be. Raises EffectFailed."""
    try:
        async with asyncio.timeout(effect.seconds):
            live = await runner.open(_request(effect), may_forward=False, tenant=effect.tenant)
            try:
                await live.read()
            except asyncio.CancelledError as cancelled:
                live.log_cancelled(cancelled)
                raise
            finally:
                await live.close()
            return ModelAnswer(text=live.response().text, request_id=live.request_id, cost_nanos=live.cost.nanos)
    except (BardoError, TimeoutError) as problem:
        raise EffectFailed(f"{effect.model} did not answer") from problem


def _request(effect: AskModel) -> Request:
    messages = (
        Message(role="system", blocks=(TextBlock(effect.instructions),)),
        Message(role="user", blocks=(TextBlock(effect.prompt),)),
    )
    return Request(
        model=effect.model,
        messages=messages,
        max_output_tokens=effect.max_output_tokens,
        reasoning=ReasoningPolicy(mode="off"),
        options=BardoOptions(
            pipeline=OFF, layers=(("privacy", True),) if effect.masked else (), private=effect.private
        ),
    )
