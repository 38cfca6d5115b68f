"""What a model costs at a provider, in whole nano-dollars."""

from __future__ import annotations

import math
from functools import cached_property
from typing import NamedTuple

import msgspec

USUAL_TIERS = frozenset({"", "auto", "default", "standard", "on_demand", "standard_only"})
"""Names that providers have for the service tier without a price of its own."""
BATCH = "batch"


PER_MILLION = 1_000_000


class PlainRates(NamedTuple):
    """Nano-dollars per token, of requests with no more than `most_input` tokens."""

    most_input: float

    input: int
    cache_read: int
    cache_write: int
    answer: int
    thinking: int


class Rates(msgspec.Struct, frozen=True, array_like=True):
    """Nano-dollars per million tokens of each kind. None: the tokens cost what the kind costs that they are a part of.

    `cache_write` is for a cache of five minutes, or of the provider's only duration, and `cache_write_1h` for one of an hour.
    `thinking_mode_output` is for all output of a call that thought, the answer too.
    """

    input: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    cache_write_1h: int | None = None
    output: int | None = None
    reasoning: int | None = None
    audio_input: int | None = None
    cached_audio: int | None = None
    audio_output: int | None = None
    image_input: int | None = None
    image_output: int | None = None
    thinking_mode_output: int | None = None

    @property
    def cache_discount(self) -> int:
        """By how much less a million input tokens cost that are read from a cache; 0 where that is not known."""
        return 0 if self.input is None or self.cache_read is None else max(0, self.input - self.cache_read)


class Tier(msgspec.Struct, frozen=True, kw_only=True):
    """The rates of requests with more input tokens than `above`: all of their tokens cost these.

    No provider is known to charge only the tokens above a threshold (price pages of Anthropic, Google, OpenAI, xAI and Alibaba, 2026-11).
    """

    above: int
    rates: Rates


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """Rates, and those of longer requests: `tiers` ascend by `above`."""

    rates: Rates
    tiers: tuple[Tier, ...] = ()


class Price(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """What one model costs. Fees are nano-dollars: `request_fee` of each call, `search_fee` of each search that the provider made, or of
    all in a call together (`search_fee_once`).

    `variants` are the schedules of calls that are billed otherwise, by the name of the service tier; `batch` is that of batches. A call of
    another tier costs nobody knows what, unless it is one of `usual_tiers`. `valid_from` is a date, `source` the layer of the price and
    `page` where it was read.
    """

    schedule: Schedule
    variants: dict[str, Schedule] = {}
    request_fee: int = 0
    search_fee: int | None = None
    search_fee_once: bool = False
    usual_tiers: frozenset[str] = USUAL_TIERS
    valid_from: str = ""
    source: str = ""
    page: str = ""

    @cached_property
    def plain(self) -> PlainRates | None:
        """The rates of the first tier where they are whole nano-dollars a token, and no fee is asked; None for any other price."""
        rates, tiers = self.schedule.rates, self.schedule.tiers
        if self.request_fee or rates.input is None or rates.output is None or rates.thinking_mode_output is not None:
            return None
        read = rates.input if rates.cache_read is None else rates.cache_read
        write = rates.input if rates.cache_write is None else rates.cache_write
        thinking = rates.output if rates.reasoning is None else rates.reasoning
        every = (rates.input, read, write, rates.output, thinking)
        if any(rate % PER_MILLION for rate in every):
            return None
        most = min((tier.above for tier in tiers), default=math.inf)
        return PlainRates(most, *(rate // PER_MILLION for rate in every))
