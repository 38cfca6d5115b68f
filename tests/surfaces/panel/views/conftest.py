"""A gateway with keys and a log whose sums are known, and readers of its panel: an operator, and a key that sees its own calls alone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from bardo.adapters.config.accounts import Account
from bardo.adapters.stores.log import LogReader, LogRow, LogWriter
from support.any_model import Simulator
from support.hostile_text import HOSTILE
from support.keyed_gateway import PRICE, KeyedGateway, keyed_gateway, make_key
from support.panel_pages import PanelReader

TOML = f"[reasoning]\nintrospect = false\n{PRICE}"
DAY = 86_400.0


@dataclass
class FilledGateway:
    """A gateway, the keys of its log, and who may look at its panel."""

    gateway: KeyedGateway
    operator_key: str
    own: Account
    own_key: str
    other: Account

    def log(self) -> LogReader:
        """Open the log."""
        return LogReader(self.gateway.log)


def call(number: int, at: float, **values: Any) -> LogRow:
    return LogRow(**{"request_id": f"req_{number:04}", "started_at": at, "seconds": 1.0 + number % 7, **values})


def rows(now: float, own: str, other: str) -> Iterator[LogRow]:
    """Yield 240 calls over 12 days: of two keys and of none, of three models, one of which has no price."""
    models = (("deepseek", "m1"), ("deepseek", "m2"), ("anthropic", "claude"))
    for number in range(240):
        provider, model = models[number % 3]
        cost = None if number % 3 == 2 and number % 2 else 1_000_001 * number + 1 + number % 3
        thinking = None if number % 5 else number
        parts = None if cost is None else {"input": cost // 3, "answer": cost - cost // 3}
        yield call(
            number,
            now - (number % 12) * DAY,
            provider=provider,
            model=model,
            key_id=(own, other, None)[number % 7 % 3],
            subsystem=("chat", None)[number % 2],
            outcome="error" if number % 10 == 9 else "ok",
            error_class="RateLimited" if number % 10 == 9 else None,
            first_byte_seconds=0.25 if number % 2 else None,
            input_tokens=100 + number,
            output_tokens=10 + number,
            reasoning_tokens=thinking,
            cached_input_tokens=50 if number % 2 else None,
            cost_nanos=cost,
            cost_parts=parts,
            cache_saved_nanos=(7 * number - 100) if number % 4 == 0 else None,
            cache=(None, "hit", "miss", "refused:tools")[number % 4],
            reply_saved_nanos=number * 11 if number % 4 == 1 and number % 8 == 1 else None,
        )


def hostile_rows(now: float, key: str) -> Iterator[LogRow]:
    """Yield a call for each hostile text, which is the name of all that a client or a provider may name."""
    for number, text in enumerate(HOSTILE.values()):
        yield call(
            10_000 + number,
            now - 60,
            provider=text[:200],
            model=text[:200],
            model_asked=text[:200],
            subsystem=text[:200],
            key_id=key,
            outcome="error",
            error_class=text[:100],
            error_message=text,
            cache=f"refused:{text[:50]}",
            degraded=({"what": "prompt_cache", "why": text},),
        )


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FilledGateway]:
    with keyed_gateway(tmp_path_factory.mktemp("panel"), [Simulator("deepseek")], toml=TOML) as gateway:
        operator_key = gateway.key(name="the operator", operator=True)
        own, own_key = make_key(gateway.state, name="own", usd_per_day=5, concurrency=3)
        other, _ = make_key(gateway.state, name="other", models=("deepseek/*",))
        with LogWriter(gateway.log) as writer:
            for row in rows(time.time() - 5, own.id, other.id):
                writer.write(row)
        yield FilledGateway(gateway, operator_key, own, own_key, other)


@pytest.fixture
def operator(filled: FilledGateway) -> Iterator[PanelReader]:
    """Return the panel of the operator."""
    reader = PanelReader(filled.gateway.address, filled.operator_key)
    yield reader
    reader.close()


@pytest.fixture
def member(filled: FilledGateway) -> Iterator[PanelReader]:
    """Return the panel of a key that is no operator's."""
    reader = PanelReader(filled.gateway.address, filled.own_key)
    yield reader
    reader.close()
