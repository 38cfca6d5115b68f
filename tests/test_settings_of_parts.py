"""A reload keeps a part whose settings are as they were: the table of which settings a part reads names what it reads, and no more."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bardo import wiring
from bardo.adapters.config.accounts import PaymentSettings
from bardo.adapters.config.routing import HealthSettings, LearnedSettings, RoutingSettings
from bardo.adapters.config.settings import (
    LogSettings,
    MemorySettings,
    ProviderIdSettings,
    ReplaySettings,
    ResponseSettings,
    Settings,
    TelemetrySettings,
)
from bardo.wiring import ConfigurationParts

pytestmark = pytest.mark.each_python

_HOLDER = ["nobody"]
_READ: dict[str, set[str]] = defaultdict(set)


class WatchedSettings(Settings, frozen=True, kw_only=True):
    """Settings that note which part reads which of their tables."""

    def __getattribute__(self, name: str) -> Any:
        if name in Settings.__struct_fields__:
            _READ[_HOLDER[0]].add(name)
        return super().__getattribute__(name)


def test_each_part_reads_the_settings_that_are_listed_for_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    make_part = ConfigurationParts._part

    def named(self: ConfigurationParts, name: str, make: Callable[[], Any]) -> Any:
        _HOLDER[0] = name
        try:
            return make_part(self, name, make)
        finally:
            _HOLDER[0] = "nobody"

    monkeypatch.setattr(ConfigurationParts, "_part", named)
    settings = WatchedSettings(
        log=LogSettings(path=str(tmp_path / "log.db"), content=True, retention_days=30),
        routing=RoutingSettings(strategy="learned", learned=LearnedSettings(file=str(tmp_path / "routing.json"))),
        memory=MemorySettings(enabled=True),
        telemetry=TelemetrySettings(metrics=True),
        health=HealthSettings(store=str(tmp_path / "health.db")),
        replay=ReplaySettings(store=str(tmp_path / "replay.db")),
        responses=ResponseSettings(store=str(tmp_path / "responses.db")),
        provider_ids=ProviderIdSettings(unknown="allow"),
        payments=PaymentSettings(wallet_key_env="WALLET_KEY"),
    )
    parts = ConfigurationParts(settings, environment={"WALLET_KEY": "0x" + "11" * 32})
    parts.open()
    asyncio.run(parts.close())
    made = {name for name, part in parts._parts.items() if part is not None}
    assert made == set(wiring._SETTINGS)
    assert {name: _READ[name] for name in made} == {name: set(tables) for name, tables in wiring._SETTINGS.items()}
