"""What layers decided for a conversation holds in every worker: its tools, its shortened texts, and the server that has its prompt."""

from __future__ import annotations

import itertools
import json
import re
import signal
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from bardo.simulators import PrefixCache, Running, Script, Turn
from support.any_model import Simulator
from support.patience import PATIENCE
from surfaces.cli.support import line_with, needs_proc, running, wait_for_workers

CONVERSATIONS = 8
TURNS = 5
SUBJECTS = ("weather", "calendar", "invoices", "translation", "football", "trains", "recipes", "music")
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": f"{subject}_{verb}",
            "description": f"{verb} {subject}",
            "parameters": {"type": "object", "properties": {}},
        },
    }
    for subject in SUBJECTS
    for verb in ("find", "change", "delete", "list", "count")
]


@contextmanager
def workers(
    providers: Sequence[Running], layers: str, folder: Path, more: str = "", *, count: int = 2
) -> Iterator[str]:
    """Run workers over servers of one provider, and give their address."""
    config = folder / "bardo.toml"
    config.write_text(
        f'[log]\nenabled = false\n[inference.pipeline]\nprofile = "own"\n[inference.pipeline.profiles.own]\nlayers = {layers}\n{more}'
        f'[[providers]]\nid = "pods"\npreset = "vllm"\nmodels = ["small"]\n'
        f"base_urls = {json.dumps([one.base_url for one in providers])}\n"
    )
    with running("serve", "--config", str(config), "--port", "0", "--workers", str(count)) as gateway:
        address = re.findall(r"http://\S+", line_with(gateway.stderr, "listens on"))[0]
        if count > 1:
            wait_for_workers(gateway, count)
        yield address
        gateway.send_signal(signal.SIGTERM)
        gateway.wait(PATIENCE)


def talk(address: str, **fields: Any) -> None:
    """Hold conversations, each call by a connection of its own, which may reach either worker."""
    for number in range(CONVERSATIONS):
        said: list[dict[str, Any]] = []
        for turn in range(TURNS):
            said.append(
                {"role": "user", "content": f"{number}: what about {SUBJECTS[(number + turn) % 8]}? {'word ' * 400}"}
            )
            body = {"model": "pods/small", "messages": said, **fields}
            asked = urllib.request.Request(
                f"{address}/v1/chat/completions",
                json.dumps(body).encode(),
                {"content-type": "application/json", "connection": "close"},
            )
            with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
                said.append(json.loads(answer.read())["choices"][0]["message"])


def bodies(provider: Running) -> list[Any]:
    return [one.body for one in provider.requests if one.method == "POST"]


@needs_proc
def test_the_tools_of_a_conversation_only_grow_whichever_worker_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with Simulator("vllm", script=Script((Turn(text="I see."),))).running() as provider:
        with workers([provider], '["tools"]', tmp_path) as address:
            talk(address, tools=TOOLS)
        names = [[tool["function"]["name"] for tool in body["tools"]] for body in bodies(provider)]
    assert len(names) == CONVERSATIONS * TURNS
    for begin in range(0, len(names), TURNS):
        turns = names[begin : begin + TURNS]
        assert all(after[: len(before)] == before for before, after in itertools.pairwise(turns))


@needs_proc
def test_two_workers_shorten_conversations_as_one_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    more = '[inference.pipeline.compress]\ncompact = ["rules"]\ncompact_above_tokens = 1200\nkeep_turns = 1\ncache_seconds = 0\n'
    sent = []
    for count in (1, 2):
        with Simulator("vllm", script=Script((Turn(text="I see."),))).running() as provider:
            with workers([provider], '["compress"]', tmp_path, more, count=count) as address:
                talk(address)
            sent.append([body["messages"] for body in bodies(provider)])
    assert "[Summary of" in str(sent[0])
    assert sent[0] == sent[1]


@needs_proc
def test_a_conversation_stays_at_its_server_whichever_worker_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with ExitStack() as stack:
        script = Script((Turn(text="I see."),))
        pods = [
            stack.enter_context(Simulator("vllm", script=script, prefix_cache=PrefixCache(10_000)).running())
            for _ in range(4)
        ]
        with workers(pods, '["affinity"]', tmp_path) as address:
            talk(address)
        places: dict[str, list[int]] = {}
        for place, pod in enumerate(pods):
            for body in bodies(pod):
                places.setdefault(str(body["messages"][0]["content"])[:2], []).append(place)
    assert sum(map(len, places.values())) == CONVERSATIONS * TURNS
    assert [len(set(one)) for one in places.values()] == [1] * CONVERSATIONS
