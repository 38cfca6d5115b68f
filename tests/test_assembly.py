"""From settings to a running engine, and back to nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bardo.adapters.config.pipeline import CacheSettings, PipelineSettings
from bardo.adapters.config.settings import (
    GatewaySettings,
    InferenceSettings,
    LogSettings,
    ProviderEntry,
    Settings,
    TimeoutSettings,
    log_path,
)
from bardo.adapters.net.fake import FakeReply, FakeTransport
from bardo.adapters.stores.log import LogReader, LogRow
from bardo.values.errors import ConfigError
from bardo.wiring import Assembly, assemble, open_log
from support.own_threads import own_threads

pytestmark = pytest.mark.each_python

SILENT = LogSettings(enabled=False)


def closed(assembly: Assembly) -> None:
    asyncio.run(assembly.close())


def test_settings_reach_their_parts() -> None:
    settings = Settings(
        gateway=GatewaySettings(max_reply_bytes=5),
        timeouts=TimeoutSettings(connect=1, first_byte=2, idle=3),
        log=SILENT,
        providers=(ProviderEntry(id="lab", preset="vllm"),),
    )
    assembly = assemble(settings, environment={})
    limits, deadlines = assembly.services.limits, assembly.services.limits.deadlines
    assert (deadlines.connect, deadlines.first_byte, deadlines.idle) == (1, 2, 3)
    assert (limits.max_reply_bytes, limits.keep_content) == (5, False)
    assert [provider.id for provider in assembly.services.directory.providers] == ["lab"]
    closed(assembly)


def test_keys_come_from_the_environment_given() -> None:
    assembly = assemble(Settings(log=SILENT), environment={"ANTHROPIC_API_KEY": "k"})
    assert [provider.id for provider in assembly.services.directory.providers] == ["anthropic"]
    closed(assembly)


def test_closing_stores_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "log.db"
    assembly = assemble(Settings(log=LogSettings(path=str(path))), environment={})
    assembly.services.journal.write(LogRow(request_id="req_1", started_at=1.0))
    closed(assembly)
    with LogReader(path) as log:
        assert log.get("req_1") is not None


def test_a_transport_that_was_given_stays_the_callers() -> None:
    transport = FakeTransport(lambda call: FakeReply())
    assembly = assemble(Settings(log=SILENT), transport=transport, environment={})
    assert assembly.services.transport is transport
    closed(assembly)
    assert not transport._closed


def test_settings_that_are_wrong_start_nothing(tmp_path: Path) -> None:
    threads = own_threads()
    wrong = Settings(
        providers=(ProviderEntry(id="x", preset="zzzzzzz"),), log=LogSettings(path=str(tmp_path / "log.db"))
    )
    with pytest.raises(ConfigError, match="the settings: no preset is called 'zzzzzzz'"):
        assemble(wrong, environment={})
    assert own_threads() <= threads
    assert list(tmp_path.iterdir()) == []


def test_the_log_stands_where_it_is_said() -> None:
    home = {"XDG_DATA_HOME": "/data"}
    assert log_path(Settings(), home) == Path("/data/bardo/log.db")
    assert log_path(Settings(log=LogSettings(path="~/x.db")), home) == Path.home() / "x.db"
    assert log_path(Settings(log=LogSettings(path="x.db")), home) == Path("x.db")


def test_a_log_that_is_off_is_none() -> None:
    assert open_log(Settings(log=SILENT)) is None


def test_a_store_of_kept_replies_whose_variable_is_not_set_is_told_at_the_start() -> None:
    cache = CacheSettings(store_env="NO_SUCH_STORE")
    settings = Settings(log=SILENT, inference=InferenceSettings(pipeline=PipelineSettings(cache=cache)))
    with pytest.raises(ConfigError, match="NO_SUCH_STORE"):
        assemble(settings, environment={})
    closed(assemble(settings, environment={"NO_SUCH_STORE": "redis://localhost"}))
