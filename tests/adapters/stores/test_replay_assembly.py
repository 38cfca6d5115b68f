"""The store is opened with everything else, and closed after it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import NoReturn

import pytest

from bardo.adapters.config.settings import LogSettings, ReplaySettings, ResponseSettings, Settings
from bardo.adapters.net.client import Call
from bardo.adapters.net.fake import FakeTransport
from bardo.values.errors import ConfigError
from bardo.wiring import assemble

pytestmark = pytest.mark.each_python


def nobody(call: Call) -> NoReturn:
    raise AssertionError("nothing is asked")


QUIET = LogSettings(enabled=False)


def test_the_store_of_the_settings_is_opened_and_closed(tmp_path: Path) -> None:
    file = tmp_path / "replay.db"
    settings = Settings(log=QUIET, replay=ReplaySettings(store=str(file)))
    assembly = assemble(settings, transport=FakeTransport(nobody), environment={})
    assert file.is_file()
    asyncio.run(assembly.close())
    assert not file.with_name("replay.db-wal").exists(), "a file that was closed leaves no journal"


def test_a_store_that_cannot_be_opened_leaves_no_log_behind(tmp_path: Path) -> None:
    log = LogSettings(path=str(tmp_path / "log.db"))
    (tmp_path / "file").touch()
    settings = Settings(log=log, replay=ReplaySettings(store=str(tmp_path / "file" / "replay.db")))
    with pytest.raises(ConfigError, match="the store"):
        assemble(settings, transport=FakeTransport(nobody), environment={})


def test_a_store_of_responses_that_cannot_be_opened_leaves_no_other_store_open(tmp_path: Path) -> None:
    file = tmp_path / "replay.db"
    responses = ResponseSettings(store=str(tmp_path))
    settings = Settings(log=QUIET, replay=ReplaySettings(store=str(file)), responses=responses)
    with pytest.raises(ConfigError, match="the store"):
        assemble(settings, transport=FakeTransport(nobody), environment={})
    assert not file.with_name("replay.db-wal").exists(), "a file that was closed leaves no journal"
