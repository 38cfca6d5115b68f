"""`bardo top` in a real terminal, over a live gateway and simulated providers."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bardo.adapters.config.settings import parse_settings
from bardo.server.serving import BackgroundServer
from bardo.simulators import Script, Turn
from bardo.surfaces.cli.top import keys_of
from bardo.surfaces.gateway.main import gateway_of
from support.any_model import Simulator
from support.hostile_text import HOSTILE
from support.talk import ask
from support.terminal import terminal
from surfaces.cli.support import bardo, program, simulated
from surfaces.cli.test_ask_terminal import strange

THOUGHT = "First 27 * 40 = 1080."


@contextmanager
def gateway(folder: Path, *simulators: Simulator, more: str = "") -> Iterator[str]:
    """Run a gateway over simulated providers, and give its address."""
    with simulated(*(simulators or (Simulator("vllm", pace=0.03),)), folder=folder):
        settings = parse_settings((folder / "bardo.toml").read_text() + more)
        with BackgroundServer(gateway_of(settings)) as server:
            yield server.address


@contextmanager
def asking(address: str, *models: str) -> Iterator[None]:
    """Ask models one after another, beside the block."""
    thread = threading.Thread(target=lambda: [ask(address, "openai_chat", model, stream=True) for model in models])
    thread.start()
    try:
        yield
    finally:
        thread.join()


def test_calls_are_shown_while_they_run_and_after_and_keys_do_what_the_foot_says(folder: Path) -> None:
    content = "\n[log]\ncontent = true\n"
    with gateway(folder, more=content) as address, terminal("top", "--gateway", address, columns=100) as shown:
        shown.wait_for("connected")
        shown.wait_for("no calls yet")
        with asking(address, "vllm/first", "vllm/second"):
            shown.wait_for(lambda one: re.search(r"thinking +vllm/first +~\d+", one.text) is not None)
            shown.wait_for("0 running  2 finished")
        assert [line.split()[:2] for line in shown.lines[6:8]] == [["ok", "vllm/second"], ["ok", "vllm/first"]]
        shown.send("\x1b[B\x1b[B\r")
        shown.wait_for("asked for vllm/first in openai_chat, streamed")
        shown.wait_for("tokens    input ")
        shown.send("r")
        shown.wait_for(THOUGHT)
        shown.send("\x1b")
        shown.wait_for(lambda one: THOUGHT not in one.text)
        shown.send("/second\r")
        shown.wait_for(lambda one: "filter: second" in one.text and "vllm/first" not in one.text)
        shown.send("q")
        assert shown.end() == 0
    assert not shown.screen.cursor.hidden


def test_a_pause_holds_the_screen_and_nothing_is_lost(folder: Path) -> None:
    with gateway(folder, Simulator("vllm")) as address, terminal("top", "--gateway", address) as shown:
        shown.wait_for("connected")
        shown.send("p")
        shown.wait_for("paused")
        ask(address, "openai_chat", "vllm/meanwhile", stream=True)
        assert "meanwhile" not in shown.text
        shown.send("p")
        shown.wait_for("1 finished")
        shown.wait_for("vllm/meanwhile")
        shown.send("q")
        assert shown.end() == 0


def test_a_terminal_of_another_size_is_filled_and_not_overrun(folder: Path) -> None:
    fixed = {"LINES": "24", "COLUMNS": "80"}
    with (
        gateway(folder, Simulator("vllm")) as address,
        terminal("top", "--gateway", address, environment=fixed) as shown,
    ):
        shown.wait_for("connected")
        ask(address, "openai_chat", "vllm/a-model-with-a-rather-long-name-that-fits-nowhere", stream=True)
        shown.wait_for("1 finished")
        for lines, columns in ((10, 40), (40, 150), (5, 20)):
            shown.resize(lines, columns)
            shown.screen.reset()
            shown.wait_for(lambda one: one.lines[0].startswith("bardo top") and one.lines[-1].startswith("q quit"))
        shown.send("q")
        assert shown.end() == 0


def test_ctrl_c_gives_the_terminal_back(folder: Path) -> None:
    with gateway(folder, Simulator("vllm")) as address, terminal("top", "--gateway", address) as shown:
        shown.wait_for("connected")
        shown.send(b"\x03")
        assert shown.end() == 0
    assert not shown.screen.cursor.hidden
    assert b"\x1b[?1049l" in shown.raw
    assert "Traceback" not in shown.raw.decode()


def test_without_a_terminal_one_picture_is_printed(folder: Path) -> None:
    with gateway(folder, Simulator("vllm")) as address:
        ran = program("top", "--gateway", address)
    assert ran.code == 0
    assert ran.out.startswith(f"bardo top {address}  connected")
    assert "vllm unknown" in ran.out
    assert "q quit" not in ran.out
    assert "\x1b" not in ran.out


def test_the_log_of_this_machine_tells_what_was_before(folder: Path) -> None:
    with gateway(folder, Simulator("vllm")) as address:
        port = address.rpartition(":")[2]
        assert bardo("ask", "2 * 3", "-m", "vllm/earlier").code == 0
        file = folder / "bardo.toml"
        file.write_text(f"{file.read_text()}\n[gateway]\nport = {port}\n")
        ran = bardo("top", "--once")
    assert ran.code == 0
    assert "vllm/earlier" in ran.out
    assert "today" in ran.out


def test_a_gateway_that_does_not_answer_or_is_none_is_said(folder: Path) -> None:
    assert bardo("top", "--once", "--gateway", "http://127.0.0.1:9").code == 3
    with Simulator("vllm").running() as server:
        ran = bardo("top", "--once", "--gateway", server.root)
    assert ran.code == 3
    assert "name a bardo gateway with --gateway" in ran.err


def test_a_key_is_asked_for_and_its_own_usage_is_shown(folder: Path) -> None:
    with simulated(Simulator("vllm"), folder=folder):
        key = bardo("keys", "create", "me", "--json").json["key"]
        settings = parse_settings((folder / "bardo.toml").read_text())
        with BackgroundServer(gateway_of(settings)) as server:
            refused = bardo("top", "--once", "--gateway", server.address)
            ran = bardo("top", "--once", "--gateway", server.address, "--key", key)
    assert "wants a key" in refused.err
    assert "today, by this key" in ran.out


def test_no_text_of_a_model_or_client_is_more_than_text(folder: Path) -> None:
    everything = "\n".join(HOSTILE.values()).replace("\x00", "\x01")
    simulator = Simulator("vllm", script=Script((Turn(text="x", reasoning=everything),)))
    with (
        gateway(folder, simulator, more="\n[log]\ncontent = true\n") as address,
        terminal("top", "--gateway", address, lines=60) as shown,
    ):
        shown.wait_for("connected")
        ask(address, "openai_chat", "vllm/m", stream=True)
        shown.wait_for("1 finished")
        shown.send("r")
        shown.wait_for("thinking of req_")
        shown.send("q")
        assert shown.end() == 0
    text = shown.raw.decode().replace("\x1b[?1049h", "").replace("\x1b[?1049l", "")
    shown.raw[:] = text.encode()
    assert strange(shown) == ""
    assert shown.screen.title == ""


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        (b"q", ["q"]),
        (b"\x1b[A\x1b[B\x1bOA", ["up", "down", "up"]),
        (b"\x1b", ["escape"]),
        (b"\x1b[6~\r\x7f", ["page down", "enter", "backspace"]),
        (b"\x1b[1;5Aq", ["q"]),
        ("ä漢".encode(), ["ä", "漢"]),
        (b"\xc3", ["�"]),
        (b"\x00\x01a", ["a"]),
    ],
)
def test_keys_are_read_from_what_a_terminal_sends(data: bytes, keys: list[str]) -> None:
    assert list(keys_of(data)) == keys
