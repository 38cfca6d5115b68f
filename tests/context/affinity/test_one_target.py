"""Where one target is asked, nothing is looked up: what it has cached was told with it, unless a layer has changed the prompt since."""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.context.affinity.layer import Affinity, FindServerStates, RecordSession, Servers
from bardo.context.affinity.server_order import NO_PREFIX, ServerState
from bardo.context.layer import LayerFacts, Passed, TargetFacts, changed
from bardo.values.blocks import TextBlock
from bardo.values.request import Message, Request
from bardo.values.response import Response
from bardo.values.usage import Usage

REQUEST = Request(model="m", messages=(Message("user", (TextBlock("Hello?"),)),))
TARGET = TargetFacts(provider="lab", model="m", dialect="openai_chat", warm_tokens=900)
OTHER = TargetFacts(provider="lab", model="m", dialect="openai_chat", address="http://b")


def passed(request: Request, *targets: TargetFacts) -> tuple[Passed, list[Any]]:
    """Return what the layer decides, and what it asks for; a target has 400 tokens cached whoever asks."""
    facts = LayerFacts(
        tenant="", session="s", now=0.0, profile="", count_tokens=lambda *_: 1000, targets=targets, routed=REQUEST
    )
    steps, asked, result = Affinity().steps(request, facts), [], None
    states = tuple(ServerState(warm_tokens=400, session_tokens=400) for _ in targets)
    while True:
        try:
            asked.append(steps.send(result))
        except StopIteration as done:
            return done.value, asked
        result = Servers(states, NO_PREFIX)


def test_the_receipt_has_what_was_told_of_the_one_target() -> None:
    found, asked = passed(REQUEST, TARGET)
    assert asked == []
    assert found.receipt.saw["warm_tokens"] == 900
    assert found.order is None


def test_what_was_changed_since_and_several_targets_are_looked_up() -> None:
    later = changed(REQUEST, messages=(Message("system", (TextBlock("Be brief."),)), *REQUEST.messages))
    for request, targets in ((later, (TARGET,)), (REQUEST, (OTHER, OTHER))):
        found, asked = passed(request, *targets)
        assert [type(one) for one in asked] == [FindServerStates]
        assert found.receipt.saw["warm_tokens"] == 400


def test_the_reply_is_noted_with_what_was_expected_and_nothing_is_forgotten_that_was_not_noted() -> None:
    found, _ = passed(REQUEST, TARGET)
    assert found.reply is not None
    assert list(found.reply.failed()) == []
    response = msgspec.structs.replace(Response(), usage=Usage(input_tokens=1000, cached_input_tokens=800))
    [noted] = found.reply.ended(REQUEST, response, None)
    assert isinstance(noted, RecordSession)
    assert (noted.prefix, noted.request, noted.expected) == (None, REQUEST, {("lab", "", "m"): 900})
