"""bardo keeps its own laws in every dialect, and the check finds the servers that do not."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from bardo.edge.conform.checks import WIRES
from bardo.edge.conform.laws import LAWS
from bardo.edge.serving import BackgroundServer
from bardo.edge.settings import load_settings
from bardo.simulators import Simulator
from bardo.simulators.faults import Fault
from bardo.simulators.incoming import Incoming
from bardo.simulators.provider import Provider
from bardo.simulators.reply import Reply
from bardo.surfaces.gateway.main import gateway_of
from surfaces.cli.support import Ran, bardo

MODELS = {
    "deepseek": "m1",
    "anthropic": "claude-sonnet-5",
    "openai_responses": "gpt-5-mini",
    "gemini": "gemini-3-flash-preview",
}
PRESETS = {"openai_responses": "openai"}
BASES = {"gemini": "/v1beta"}


@contextmanager
def gateway(tmp_path: Path, preset: str) -> Iterator[str]:
    """Serve a gateway over a simulator, with a key, and a window of few tokens for one of its models."""
    file = tmp_path / "bardo.toml"
    with Simulator(preset, models=(MODELS[preset],)).running() as provider:
        file.write_text(
            "[log]\nenabled = false\n[reasoning]\nintrospect = false\n"
            '[inference.pipeline]\nprofile = "fast"\n'
            f'[[models]]\nprovider = "{PRESETS.get(preset, preset)}"\nmatch = ["{MODELS[preset]}"]\ncontext = 40000\n'
            '[[keys]]\nid = "me"\nkey_env = "CLIENT_KEY"\n'
            f'[[providers]]\nid = "it"\npreset = "{PRESETS.get(preset, preset)}"\napi_key_env = "K"\nbase_url = "{provider.base_url}"\n'
        )
        environment = {"K": "any", "CLIENT_KEY": "sk-right"}
        with BackgroundServer(gateway_of(load_settings(file, environment), environment)) as server:
            yield server.address


def conform(address: str, dialect: str, model: str, *more: str) -> Ran:
    base = address + BASES.get(dialect, "/v1")
    return bardo("conform", base, "--model", model, "--dialect", dialect, "--json", *more)


@pytest.mark.parametrize("preset", list(MODELS))
@pytest.mark.parametrize("dialect", list(WIRES))
def test_bardo_keeps_the_laws(dialect: str, preset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLIENT_KEY", "sk-right")
    page = tmp_path / "report.html"
    with gateway(tmp_path, preset) as address:
        model = f"it/{MODELS[preset]}"
        options = ("--key-env", "CLIENT_KEY", "--overflow", "300000", "--cut-model", f"{model}+fault:cut=3")
        ran = conform(address, dialect, model, *options, "--html", str(page))
    found = {finding["law"]: finding for finding in ran.json["findings"]}
    assert list(found) == [law.id for law in LAWS]
    assert {law: one["faults"] for law, one in found.items() if one["status"] == "broken"} == {}
    assert ran.code == 0
    left = {law for law, one in found.items() if one["status"] in ("unclear", "skipped")}
    assert left <= {"thinking.counted", "thinking.whole", "thinking.stream"}, {law: found[law] for law in left}
    assert page.read_text().count("<tr>") >= len(LAWS)
    assert "sk-right" not in ran.out + ran.err + page.read_text()


def without_end(body: bytes) -> bytes:
    return body.replace(b"data: [DONE]\n\n", b"")


def without_call_ids(body: bytes) -> bytes:
    return re.sub(rb'"id":"call_[^"]*",', b"", body)


def thinking_in_text(body: bytes) -> bytes:
    return body.replace(b'"reasoning_content":', b'"content":"<think>","other":')


def without_usage(body: bytes) -> bytes:
    return re.sub(rb'"usage":\{', b'"used":{', body)


def two_ids(body: bytes) -> bytes:
    count = iter(range(10_000))
    return re.sub(rb'"id":"(?!call_)[^"]*"', lambda _: b'"id":"c%d"' % next(count), body)


class Faulty(Simulator):
    """A server of Chat Completions whose replies are changed on their way."""

    def __init__(self, change: Callable[[bytes], bytes]) -> None:
        super().__init__("deepseek", models=("m1",))
        self._change = change

    def _answer(self, provider: Provider, incoming: Incoming) -> tuple[Reply, Fault | None]:
        reply, fault = super()._answer(provider, incoming)
        return replace(reply, frames=(self._change(reply.body),)), fault


@pytest.mark.parametrize(
    ("change", "law"),
    [
        (without_end, "reply.stream"),
        (two_ids, "reply.stream"),
        (without_call_ids, "tools.whole"),
        (without_call_ids, "tools.stream"),
        (thinking_in_text, "thinking.whole"),
        (thinking_in_text, "thinking.stream"),
        (without_usage, "usage.whole"),
        (without_usage, "usage.stream"),
    ],
)
def test_a_fault_of_a_server_is_found(
    change: Callable[[bytes], bytes], law: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("K", "any")
    with Faulty(change).running() as server:
        ran = bardo("conform", server.base_url, "--model", "m1", "--key-env", "K", "--only", law, "--json")
    (finding,) = ran.json["findings"]
    assert (finding["law"], finding["status"], ran.code) == (law, "broken", 1), finding
    assert not any("status" in fault for fault in finding["faults"]), finding
    assert finding["evidence"]


def test_a_server_without_faults_breaks_none_of_these(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("K", "any")
    with Simulator("deepseek", models=("m1",)).running() as server:
        ran = bardo("conform", server.base_url, "--model", "m1", "--key-env", "K", "--json")
    assert [
        one for one in ran.json["findings"] if one["status"] == "broken" and not one["law"].startswith("error")
    ] == []


def test_the_laws_are_listed_and_mistakes_are_one_line() -> None:
    listed = bardo("conform", "--list")
    assert [line.split()[0] for line in listed.out.splitlines()] == [law.id for law in LAWS]
    for arguments, said in (
        (("conform", "nowhere", "-m", "m"), "is no URL"),
        (("conform", "http://127.0.0.1:1/v1"), "no model was named"),
        (("conform", "http://127.0.0.1:1/v1", "-m", "m", "--dialect", "x"), "cannot be checked"),
        (("conform", "http://127.0.0.1:1/v1", "-m", "m", "--only", "x"), "there is no law x"),
        (("conform", "http://127.0.0.1:1/v1", "-m", "m", "--key-env", "NOT_SET_AT_ALL"), "is not set"),
    ):
        ran = bardo(*arguments)
        assert ran.code == 2
        assert said in ran.err


def test_a_server_that_is_not_there_breaks_laws_and_is_told() -> None:
    ran = bardo("conform", "http://127.0.0.1:1/v1", "-m", "m", "--only", "reply", "--json")
    assert ran.code == 1
    assert {one["status"] for one in json.loads(ran.out)["findings"]} == {"broken"}
