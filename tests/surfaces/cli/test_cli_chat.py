"""`bardo telegram` and `bardo discord` as programs: what they need, what they say, and that Ctrl-C ends them."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.any_model import Simulator
from support.chat_server import ChatServer
from support.discord_api import TOKEN as DISCORD_TOKEN
from support.discord_api import FakeDiscord
from support.telegram_api import TOKEN as TELEGRAM_TOKEN
from support.telegram_api import FakeTelegram
from surfaces.cli.support import bardo, ended, line_with, running, simulated

SERVICES = ("telegram", "discord")


@contextmanager
def serving(service: str) -> Iterator[str]:
    """Run the fake of a service in a thread, and give its address."""
    loop, started, ended_ = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
    addresses: list[str] = []

    async def serve() -> None:
        server: ChatServer = FakeTelegram() if service == "telegram" else FakeDiscord()
        async with server:
            addresses.append(server.api_url if isinstance(server, FakeDiscord) else server.address)
            started.set()
            await ended_.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    started.wait()
    try:
        yield addresses[0]
    finally:
        loop.call_soon_threadsafe(ended_.set)
        thread.join()
        loop.close()


@pytest.mark.parametrize("service", SERVICES)
def test_a_bot_without_an_allow_list_does_not_start(service: str) -> None:
    done = bardo(service)
    assert done.code == 2
    assert "nobody may use the bot" in done.err
    assert "open_to_all = true" in done.err


@pytest.mark.parametrize("service", SERVICES)
def test_a_bot_without_a_token_says_where_it_belongs(service: str, folder: Path) -> None:
    (folder / "bardo.toml").write_text(f"[{service}]\nallowed_users = [7]\n")
    done = bardo(service)
    assert done.code == 2
    assert f"{service.upper()}_BOT_TOKEN is not set" in done.err


@pytest.mark.parametrize("service", SERVICES)
def test_a_bot_runs_until_ctrl_c(service: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("telegram.ext" if service == "telegram" else "discord")
    token = TELEGRAM_TOKEN if service == "telegram" else DISCORD_TOKEN
    monkeypatch.setenv(f"{service.upper()}_BOT_TOKEN", token)
    monkeypatch.setenv("SIMULATED_KEY", "sk-simulated")
    with simulated(Simulator("deepseek"), folder=folder), serving(service) as address:
        with (folder / "bardo.toml").open("a") as settings:
            settings.write(f'\n[{service}]\napi_url = "{address}"\nallowed_users = [7]\nmodel = "deepseek/m1"\n')
        with running(service) as process:
            line = line_with(process.stderr, "listens")
            assert "Ctrl-C" in line
            assert ended(process, signal.SIGINT) == 0
            assert process.stderr is not None
            assert token not in process.stderr.read().decode()


@pytest.mark.parametrize("module", ["bardo", "bardo.surfaces.cli.app", "bardo.surfaces.gateway.main"])
def test_nothing_else_loads_the_libraries(module: str) -> None:
    code = f"import sys, {module}; print([name for name in ('telegram', 'discord', 'httpx') if name in sys.modules])"
    if module.endswith("app"):
        code = code.replace("; print", "; bardo.surfaces.cli.app.make_app(); print")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
