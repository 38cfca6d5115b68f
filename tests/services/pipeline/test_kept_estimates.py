"""What was learned of a model's tokens is there again after a restart, and a broken file stops nobody."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from bardo.adapters.config.settings import parse_settings
from bardo.adapters.net.client import HttpTransport
from bardo.adapters.net.keys import Keyring
from bardo.services.facts.directory import ProviderDirectory
from bardo.services.pipeline.layers import FILE
from bardo.services.pipeline.pipeline import Pipeline
from bardo.values.request import BardoOptions, Request
from bardo.wiring import make_services, model_facts


async def corrected_after(folder: Path, counted: int | None) -> int:
    """Run a pipeline that learns one count, and return what it makes of a prompt of 1000 tokens before that."""
    settings, transport, keyring = parse_settings(""), HttpTransport(), Keyring({})
    directory = ProviderDirectory.of(settings, transport, keyring, clock=time.monotonic)
    services = make_services(
        directory,
        transport,
        keyring,
        facts=model_facts(settings),
        pipeline=lambda host: Pipeline.of(settings, host, folder, {}),
    )
    pipeline = services.pipeline
    assert pipeline is not None
    assert await pipeline.of_call(Request(model="m", messages=(), options=BardoOptions(pipeline="fast"))) is not None
    before = services.estimates.corrected(1000, "lab", "m")
    if counted is not None:
        services.estimates.learn_measured(1000, counted, "lab", "m")
    await pipeline.close()
    await transport.close()
    return before


def test_corrections_survive_a_restart(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    assert asyncio.run(corrected_after(folder, None)) == 1000
    assert not folder.exists(), "nothing was learned, and nothing is written"
    assert asyncio.run(corrected_after(folder, 1300)) == 1000
    assert asyncio.run(corrected_after(folder, None)) == 1300
    assert [path.name for path in folder.iterdir() if path.name.startswith(FILE)] == [FILE]


@pytest.mark.parametrize(
    "text", ["", "{", '[["lab", "m", 1.3]]', '[["", "lab", "m", "x"]]', '[["", "lab", "m", 1000.0]]']
)
def test_a_file_that_makes_no_sense_is_not_heeded(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    assert asyncio.run(corrected_after(tmp_path, None)) == 1000
    if text != '[["", "lab", "m", 1000.0]]':
        assert (tmp_path / f"{FILE}.corrupt").read_text() == text


def test_a_named_pipe_in_the_place_of_the_file_is_left_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    os.mkfifo(tmp_path / FILE)
    assert asyncio.run(corrected_after(tmp_path, None)) == 1000
    assert (tmp_path / FILE).is_fifo()
    assert "it is a named pipe" in caplog.text
