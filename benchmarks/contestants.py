"""What a gateway under measurement is: how it is started, and by which ways a client can ask it. bardo is the first of them."""

from __future__ import annotations

import http.client
import json
import re
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from benchmarks.canned import words_in
from benchmarks.load import Asked
from benchmarks.processes import ROOT, Cores, Started, free_port

KEY = "sk-benchmark-6f1d0c52b9a84e7aa3d1"
MODELS = ("whole", "burst-200", "burst-2000", "burst-20000", "paced-10", "paced-200")
PROMPT_BYTES = 1024


class Lane(msgspec.Struct, frozen=True, kw_only=True):
    """One way to ask a gateway: the client's dialect, the path, and how it calls the upstream's models."""

    name: str
    path: str = "/v1/chat/completions"
    model: str = "{}"
    dialect: str = "openai_chat"

    def asked(self, model: str, prompt_bytes: int = PROMPT_BYTES, *, stream: bool | None = None) -> Asked:
        """Return the request for the canned reply `model`."""
        fields = {
            "model": self.model.format(model),
            "messages": [
                {"role": "user", "content": ("Name one small animal. " * (prompt_bytes // 23 + 1))[:prompt_bytes]}
            ],
            "max_tokens": 4096,
            "stream": model != "whole" if stream is None else stream,
        }
        own = {"x-api-key": KEY, "anthropic-version": "2023-06-01"}
        headers = own if self.dialect == "anthropic_messages" else {"authorization": f"Bearer {KEY}"}
        return Asked(path=self.path, headers=headers, body=json.dumps(fields), words=words_in(model))


CHAT = Lane(name="forwarded")


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a gateway is set up: a folder of its own, its port, and the upstream's address."""

    folder: Path
    port: int
    upstream: str
    python: str = sys.executable


class Contestant(msgspec.Struct, frozen=True, kw_only=True):
    """A gateway. `command` writes its configuration into the place and returns what starts it.

    `packages` are installed into the virtual environment `venv`; bardo has none, since it is there. Where a gateway chooses its own port,
    `says_port` finds it in the output. One that is `slow` starts fewer times, and a `variant` of another is left out of a quick run.
    """

    name: str
    lanes: tuple[Lane, ...]
    command: Callable[[Place], Sequence[str]]
    venv: str = ""
    packages: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    says_port: str = ""
    slow: bool = False
    variant: bool = False

    def lane(self, name: str) -> Lane | None:
        """Return the lane called `name`, if there is one."""
        return next((lane for lane in self.lanes if lane.name == name), None)


class CannotStart(Exception):
    """A gateway could not be installed, started, or did not answer as it should."""


class Gateway:
    """A running gateway that has answered once."""

    def __init__(self, contestant: Contestant, started: Started, folder: Path, port: int, ready_seconds: float) -> None:
        self.contestant = contestant
        self.started = started
        self.folder = folder
        self.port = port
        self.ready_seconds = ready_seconds

    def stop(self) -> None:
        """End it."""
        self.started.stop()


def start(contestant: Contestant, place: Place, cores: Cores, *, patience: float = 60.0) -> Gateway:
    """Start a gateway and wait for its first good answer to a chat request. Raises CannotStart."""
    command = contestant.command(place)
    began = time.perf_counter()
    started = Started(command, cores.measured, environment=contestant.environment, folder=place.folder)
    port = 0 if contestant.says_port else place.port
    asked = contestant.lanes[0].asked("whole")
    problem = "it did not listen"
    while time.perf_counter() - began < patience and started.running:
        if not port and (found := re.search(contestant.says_port, started.output())):
            port = int(found[1])
        if port:
            problem = _try(port, asked) or ""
            if not problem:
                return Gateway(contestant, started, place.folder, port, time.perf_counter() - began)
        # Often enough to measure a start, seldom enough not to slow it.
        time.sleep(0.01)
    said = started.output()
    started.stop()
    raise CannotStart(f"{contestant.name}: {problem}; it said: {said[-400:].strip()}")


def _try(port: int, asked: Asked) -> str:
    """Return what is wrong with the answer, empty where nothing is."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    with suppress(OSError):
        connection.connect()
    if connection.sock is None:
        return "it did not listen"
    try:
        connection.request("POST", asked.path, asked.body, {"content-type": "application/json", **asked.headers})
        reply = connection.getresponse()
        body = reply.read()
    except (OSError, http.client.HTTPException) as failure:
        return f"no answer: {failure}"
    finally:
        connection.close()
    return "" if reply.status == 200 else f"status {reply.status}: {body[:300]!r}"


def place_for(name: str, folder: Path, upstream_port: int, python: str = sys.executable) -> Place:
    """Return a new place for a gateway."""
    own = folder / re.sub(r"\W+", "-", f"{name}-{time.monotonic_ns()}")
    own.mkdir(parents=True)
    return Place(folder=own, port=free_port(), upstream=f"http://127.0.0.1:{upstream_port}/v1", python=python)


FLOOR = "bare proxy"


def bare_proxy() -> Contestant:
    """Return the floor: a proxy that passes chat requests on unread. Its one figure stands beside each of bardo's lanes."""

    def command(place: Place) -> list[str]:
        script = ROOT / "benchmarks" / "bare_proxy.py"
        return [place.python, str(script), place.upstream.removesuffix("/v1"), str(place.port)]

    lanes = tuple(Lane(name=name) for name in ("forwarded", "rebuilt", "translated"))
    return Contestant(name=FLOOR, lanes=lanes, command=command)


def bardo(workers: int = 1, factory: str = "") -> Contestant:
    """Return bardo with its inference log on. A `factory` takes the place of its own application."""
    name = "bardo" if workers == 1 else f"bardo, {workers} workers"
    lanes = (
        Lane(name="forwarded", model="plain/{}"),
        Lane(name="rebuilt", model="tagged/{}"),
        Lane(name="translated", model="plain/{}", path="/v1/messages", dialect="anthropic_messages"),
    )

    def command(place: Place) -> list[str]:
        config = place.folder / "bardo.toml"
        config.write_text(
            _BARDO.format(log=place.folder / "log.db", upstream=place.upstream, models=json.dumps(MODELS))
        )
        if factory:
            return [place.python, "-c", OWN_APP, factory, str(place.port), str(config)]
        arguments = ["--config", str(config), "--port", str(place.port), "--workers", str(workers)]
        return [place.python, "-m", "bardo", "serve", *arguments]

    environment = {"PYTHONPATH": str(ROOT)} if factory else {}
    return Contestant(name=name, lanes=lanes, command=command, environment=environment)


# `plain` is a row whose frames are forwarded; `tagged` one whose replies may hold thinking in the text, so they are rebuilt.
_BARDO = """\
[log]
path = "{log}"

[[providers]]
id = "plain"
preset = "deepseek"
base_url = "{upstream}"
models = {models}

[[providers]]
id = "tagged"
preset = "vllm"
base_url = "{upstream}"
models = {models}
"""

OWN_APP = """\
import os, sys
from bardo.server.serving import serve
os.environ["BARDO_CONFIG"] = sys.argv[3]
serve(sys.argv[1], port=int(sys.argv[2]))
"""
