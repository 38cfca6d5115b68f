"""Stamps: every state of a reply gets one, and a seal carries it through another dialect."""

from __future__ import annotations

from bardo.dialects.shared.states import seal, unseal
from bardo.reasoning.replay import Origins
from bardo.values.blocks import Opaque, Origin
from bardo.values.events import ContentChunk, OpaqueState

ORIGIN = Origin(provider="work", platform="openai", model="gpt-5", dialect="openai_responses", prefix="abc")
STATE = Opaque("encrypted", "cipher", "openai-responses-v1")


def test_state_is_stamped_and_all_else_passes_on() -> None:
    stage = Origins(ORIGIN)
    text = ContentChunk(0, "Hello")
    assert stage.feed(text) == (text,)
    (stamped,) = stage.feed(OpaqueState(1, STATE))
    assert isinstance(stamped, OpaqueState)
    assert stamped.opaque == Opaque("encrypted", "cipher", "openai-responses-v1", ORIGIN)
    assert stage.finish() == ()


def test_a_stamp_is_never_replaced() -> None:
    own = OpaqueState(1, Opaque("encrypted", "cipher", "openai-responses-v1", ORIGIN))
    other = Origin(provider="x", platform="x", model="x", dialect="x")
    assert Origins(other).feed(own) == (own,)


def test_a_seal_holds_the_stamp() -> None:
    stamped = Opaque("encrypted", "cipher", "openai-responses-v1", ORIGIN)
    assert unseal(seal([stamped, STATE])) == (stamped, STATE)
