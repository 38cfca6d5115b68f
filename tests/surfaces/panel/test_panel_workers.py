"""The panel of a gateway with several workers: each knows the sessions that another began, and shows the calls of all."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import msgspec
import pytest

from support.any_model import Simulator
from support.keyed_gateway import make_key
from support.panel_pages import PanelReader
from support.patience import PATIENCE
from surfaces.cli.support import line_with, needs_proc, running, wait_for_workers

_SEVERAL = "This gateway has 2 workers"
CALLS = 12


@contextmanager
def two_workers(folder: Path, simulator: str = "") -> Iterator[str]:
    """Run a gateway with two workers, and give its address."""
    config = folder / "bardo.toml"
    config.write_text(
        f'[log]\ncontent = true\npath = "{folder / "log.db"}"\n[state]\nurl = "{folder / "state.db"}"\n{simulator}',
        encoding="utf-8",
    )
    with running("serve", "--config", str(config), "--port", "0", "--workers", "2") as gateway:
        address = re.findall(r"http://\S+", line_with(gateway.stderr, "listens on"))[0]
        wait_for_workers(gateway, 2)
        yield address
        gateway.send_signal(signal.SIGTERM)
        gateway.wait(PATIENCE)


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Run a provider, and give its part of a configuration."""
    monkeypatch.setenv("LAB_KEY", "key")
    with Simulator("deepseek").running() as provider:
        yield (
            '[[providers]]\nid = "lab"\npreset = "deepseek"\napi_key_env = "LAB_KEY"\n'
            f'base_url = "{provider.base_url}"\nmodels = ["m"]\n'
        )


def call(address: str, key: str) -> str:
    """Make a call by a connection of its own, whichever worker takes it, and return its id."""
    body = {"model": "lab/m", "messages": [{"role": "user", "content": "What is 27 * 43?"}]}
    reply = httpx.post(
        f"{address}/v1/chat/completions", json=body, headers={"authorization": f"Bearer {key}"}, timeout=PATIENCE
    )
    assert reply.status_code == 200
    return str(reply.headers["x-bardo-request-id"])


@needs_proc
def test_a_session_holds_in_every_worker(tmp_path: Path) -> None:
    key = make_key(tmp_path / "state.db", operator=True)[1]
    with two_workers(tmp_path) as address:
        with closing(PanelReader(address, key)) as reader:
            cookies = dict(reader.client.cookies)
        for _ in range(16):
            # A connection of its own each time: whichever worker takes it.
            page = httpx.get(f"{address}/panel", cookies=cookies, timeout=PATIENCE)
            assert page.status_code == 200
            assert _SEVERAL not in page.text


@needs_proc
def test_each_worker_shows_the_calls_of_all(tmp_path: Path, lab: str) -> None:
    operator = make_key(tmp_path / "state.db", operator=True)[1]
    user = make_key(tmp_path / "state.db")[1]
    with two_workers(tmp_path, lab) as address, closing(PanelReader(address, operator)) as reader:
        with reader.client.stream("GET", "/panel/events") as stream:
            lines = stream.iter_lines()
            assert next(lines) == "event: snapshot"
            wanted = {call(address, user if number % 2 else operator) for number in range(CALLS)}
            thoughts: dict[str, str] = {}
            ended: set[str] = set()
            while ended != wanted:
                line = next(lines)
                if line.startswith("data: "):
                    for change in msgspec.json.decode(line[6:]):
                        thoughts[change["id"]] = thoughts.get(change["id"], "") + change.get("text", "")
                        ended |= {change["id"]} if change.get("finished") else set()
        assert all("1080" in thoughts[one] for one in wanted)
        # Whichever worker is asked has the thinking of each, and none of it for another key.
        cookies = dict(reader.client.cookies)
        for one in sorted(wanted):
            page = httpx.get(f"{address}/panel/live/{one}", cookies=cookies, timeout=PATIENCE)
            assert (page.status_code, "1080" in page.text) == (200, True)


@needs_proc
def test_events_come_from_all_workers_and_only_of_ones_own_key(tmp_path: Path, lab: str) -> None:
    first, second = (make_key(tmp_path / "state.db")[1] for _ in range(2))
    with two_workers(tmp_path, lab) as address:
        events = f"{address}/v1/bardo/events?event=call:finished"
        mine = {"authorization": f"Bearer {first}"}
        with httpx.stream("GET", events, headers=mine, timeout=PATIENCE) as stream:
            lines = stream.iter_lines()
            next(lines)
            own = {call(address, first if number % 2 else second): number % 2 for number in range(CALLS)}
            found: set[str] = set()
            while len(found) < CALLS // 2:
                line = next(lines)
                if line.startswith("data: "):
                    found.add(msgspec.json.decode(line[6:])["request_id"])
        assert found == {one for one, is_own in own.items() if is_own}
        # A reader with a key of its own sees the thinking of no other key, in either worker.
        with closing(PanelReader(address, second)) as reader:
            cookies = dict(reader.client.cookies)
        for one in sorted(found):
            assert httpx.get(f"{address}/panel/live/{one}", cookies=cookies, timeout=PATIENCE).status_code == 404
