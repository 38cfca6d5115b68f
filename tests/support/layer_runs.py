"""Run one layer as the gateway does, with what it keeps for sessions in a dictionary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from bardo.context.effects import LoadForSession, StoreForSession
from bardo.context.layer import Effect, Layer, LayerFacts, Passed, Pause, TargetFacts
from bardo.context.steps.prompt_parts import message_tokens
from bardo.values.request import Request

Memory = dict[tuple[str, str], bytes]
ANSWERING = TargetFacts(provider="lab", model="m", dialect="openai_chat")


def count(request: Request, target: TargetFacts | None = None) -> int:
    """Count tokens as layers do by themselves."""
    return sum(map(message_tokens, request.messages))


def facts(target: TargetFacts = ANSWERING, *, session: str = "s", now: float = 1_000.0, **more: Any) -> LayerFacts:
    """Return what a layer may know, of one target."""
    return LayerFacts(
        tenant="", session=session, now=now, profile="full", count_tokens=count, targets=(target,), **more
    )


def run_layer(
    layer: Layer,
    request: Request,
    known: LayerFacts | None = None,
    memory: Memory | None = None,
    perform: Callable[[Effect], Any] | None = None,
) -> Passed:
    """Return what a layer passes on. `perform` gives the results of effects beside those of the session."""
    memory = {} if memory is None else memory
    steps = layer.steps(request, known or facts())
    result: Any = None
    while True:
        try:
            effect = steps.send(result)
        except StopIteration as stop:
            return cast(Passed, stop.value)
        match effect:
            case LoadForSession(layer=name, session=session):
                result = memory.get((name, session))
            case StoreForSession(layer=name, session=session, value=value):
                memory[name, session] = value
                result = None
            case Pause():
                result = None
            case _:
                assert perform is not None, f"nobody performs {effect}"
                result = perform(effect)
