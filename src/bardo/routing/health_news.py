"""The messages between gateways about the health of targets: counts of calls, targets that went down or came back, and rests of keys.

Nothing in it is a time of a clock: everything is seconds before or after the moment it is sent.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from bardo.routing.circuit import AttemptOutcome, Fault

_Name = Annotated[str, msgspec.Meta(max_length=1000)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=1_000_000_000)]
_Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
MOST_SAMPLES = 10
"""How many latencies of one target are sent at a time."""


class TargetCounts(msgspec.Struct, frozen=True, kw_only=True, tag="counts"):
    """Calls of one model at a provider: answered well, refused for what the caller or a key did, and how often each fault occurred.

    `samples` are seconds to the end of whole replies and to the first tokens of streams, of a few of the calls.
    """

    provider: _Name
    model: _Name
    answered: _Count = 0
    refused: _Count = 0
    faults: dict[Fault, _Count] = {}
    samples: Annotated[tuple[tuple[float | None, float | None], ...], msgspec.Meta(max_length=MOST_SAMPLES)] = ()


class TargetDown(msgspec.Struct, frozen=True, kw_only=True, tag="down"):
    """A target is down, and is tried again in `due_in` seconds; `model` is empty for the whole provider."""

    provider: _Name
    model: _Name
    rest_seconds: _Seconds
    due_in: float
    fault: Fault | None = None


class TargetUp(msgspec.Struct, frozen=True, kw_only=True, tag="up"):
    """A target that was down answered `up_for` seconds ago."""

    provider: _Name
    model: _Name
    up_for: _Seconds


class KeyRests(msgspec.Struct, frozen=True, kw_only=True, tag="key_rests"):
    """A key, by the name of its variable, is not used at a model ("": at all) for `seconds_left`, and rests since `rests_for` seconds."""

    provider: _Name
    key: _Name
    model: _Name
    seconds_left: float
    rests_for: _Seconds
    why: Annotated[str, msgspec.Meta(max_length=300)]
    refused: bool = False
    times_rested: _Count = 0


class KeyAccepted(msgspec.Struct, frozen=True, kw_only=True, tag="key_taken"):
    """A key that rested because it was refused was taken again."""

    provider: _Name
    key: _Name


HealthNews = TargetCounts | TargetDown | TargetUp | KeyRests | KeyAccepted
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(tuple[HealthNews, ...])


def encode_news(news: tuple[HealthNews, ...]) -> bytes:
    """Return news in the form in which they are sent."""
    return _encoder.encode(news)


def decode_news(data: bytes) -> tuple[HealthNews, ...]:
    """Return news that were sent. Raises ValueError for bytes that are no news."""
    try:
        return _decoder.decode(data)
    except msgspec.MsgspecError as problem:
        raise ValueError(str(problem)) from problem


class UnsentCounts:
    """The calls of one target since others were last told of it."""

    __slots__ = ("answered", "faults", "refused", "samples")

    def __init__(self) -> None:
        self.answered = self.refused = 0
        self.faults: dict[Fault, int] = {}
        self.samples: list[tuple[float | None, float | None]] = []

    def add(self, outcome: AttemptOutcome) -> None:
        """Count one call."""
        match outcome.error:
            case None:
                self.answered += 1
                if len(self.samples) < MOST_SAMPLES:
                    self.samples.append((outcome.seconds, outcome.first_token_seconds))
            case "rate_limited" | "key_refused" | "caller":
                self.refused += 1
            case "abandoned":
                pass
            case fault:
                self.faults[fault] = self.faults.get(fault, 0) + 1

    def news(self, provider: str, model: str) -> TargetCounts:
        """Return the counts as others are told of them."""
        return TargetCounts(
            provider=provider,
            model=model,
            answered=self.answered,
            refused=self.refused,
            faults=self.faults,
            samples=tuple(self.samples),
        )
