"""bardo keeps its own laws in every dialect, and the check finds the servers that do not."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from bardo.adapters.config.settings import load_settings
from bardo.operators.conform.checks import WIRES
from bardo.operators.conform.laws import LAWS
from bardo.server.serving import BackgroundServer
from bardo.simulators.exchange import Incoming, Refusal, Reply
from bardo.simulators.faults import Fault
from bardo.simulators.provider import Provider
from bardo.surfaces.gateway.main import gateway_of
from support.any_model import Simulator
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


# Each change is of a reply on its way, and gets the request as well.
Change = Callable[[Incoming, Reply], Reply]


def of_bytes(change: Callable[[bytes], bytes]) -> Change:
    """Return a change that looks at the bytes of a reply alone."""
    return lambda _, reply: replace(reply, frames=(change(reply.body),))


def replaced(before: bytes, after: bytes) -> Change:
    return of_bytes(lambda body: re.sub(before, after, body))


def two_ids(body: bytes) -> bytes:
    count = iter(range(10_000))
    return re.sub(rb'"id":"(?!call_)[^"]*"', lambda _: b'"id":"c%d"' % next(count), body)


def refuses_results(incoming: Incoming, reply: Reply) -> Reply:
    messages = incoming.fields.get("messages")
    has_result = isinstance(messages, list) and any(one["role"] == "tool" for one in messages)
    return replace(reply, status=400) if has_result else reply


def with_status(status: int) -> Change:
    return lambda _, reply: replace(reply, status=status)


def unchanged(_: Incoming, reply: Reply) -> Reply:
    return reply


class Faulty(Simulator):
    """A server whose replies are changed on their way."""

    def __init__(self, change: Change, preset: str = "deepseek") -> None:
        super().__init__(preset, models=(MODELS[preset],))
        self._change = change

    def _answer(self, provider: Provider, incoming: Incoming) -> tuple[Reply, Fault | None]:
        fault = None
        try:
            reply, fault = super()._answer(provider, incoming)
        except Refusal as refusal:
            reply = provider.encode_refusal(refusal)
        return self._change(incoming, reply), fault


THINKING_IN_TEXT = replaced(rb'"reasoning_content":', b'"content":"<think>","other":')
WITHOUT_USAGE = replaced(rb'"usage":\{', b'"used":{')
WITHOUT_CALL_IDS = replaced(rb'"id":"call_[^"]*",', b"")
FAULTS: list[tuple[str, Change, tuple[str, ...]]] = [
    ("reply.whole", replaced(rb'"finish_reason":"[a-z]+"', b'"finish_reason":7'), ()),
    ("usage.whole", WITHOUT_USAGE, ()),
    ("usage.whole", replaced(rb'"total_tokens":\d', b'"total_tokens":9'), ()),
    ("reply.stream", replaced(rb"data: \[DONE\]\n\n", b""), ()),
    ("reply.stream", of_bytes(two_ids), ()),
    ("usage.stream", WITHOUT_USAGE, ()),
    ("limit.told", replaced(b'"length"', b'"stop"'), ()),
    ("thinking.whole", THINKING_IN_TEXT, ()),
    ("thinking.stream", THINKING_IN_TEXT, ()),
    ("thinking.counted", replaced(b'"reasoning_tokens":', b'"other_tokens":'), ()),
    ("tools.whole", WITHOUT_CALL_IDS, ()),
    ("tools.whole", replaced(rb'"arguments":"[{]', b'"arguments":"['), ()),
    ("tools.stream", WITHOUT_CALL_IDS, ()),
    ("tools.loop", refuses_results, ()),
    ("typed.whole", replaced(rb'"content":"[{]', b'"content":"So: {'), ()),
    ("typed.whole", replaced(rb'\\"clear\\"', rb'\\"snow\\"'), ()),
    ("typed.whole", replaced(rb', \\"coastal\\": (true|false)', b""), ()),
    ("typed.whole", with_status(503), ()),
    ("typed.stream", replaced(rb'"content":"[{]', b'"content":"So: {'), ()),
    ("error.json", with_status(500), ()),
    ("error.value", replaced(b'"error":', b'"detail":'), ()),
    ("error.model", with_status(200), ()),
    ("error.key", lambda _, reply: replace(reply, status=200), ()),
    ("error.overflow", unchanged, ("--overflow", "200")),
    ("cut.loud", unchanged, ("--cut-model", MODELS["deepseek"])),
]


@pytest.mark.parametrize(
    ("law", "change", "options"), FAULTS, ids=[f"{law}-{at}" for at, (law, *_) in enumerate(FAULTS)]
)
def test_a_fault_of_a_server_is_found(
    law: str, change: Change, options: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("K", "any")
    with Faulty(change).running() as server:
        ran = bardo("conform", server.base_url, "--model", "m1", "--key-env", "K", "--only", law, "--json", *options)
    (finding,) = ran.json["findings"]
    assert (finding["law"], finding["status"], ran.code) == (law, "broken", 1), finding
    assert finding["faults"]
    assert finding["evidence"]
    assert "auth header" not in finding["evidence"], "the fault that was meant is another one"


def test_a_server_that_is_not_there_is_no_broken_law() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        ran = bardo("conform", address, "--model", "m")
    assert ran.code == 3
    assert f"no server answers at {address}" in ran.err
    assert "base_url" not in ran.err
    assert ran.out == ""


def test_requests_that_are_refused_for_one_cause_are_counted_once_with_the_text_of_the_error() -> None:
    with Simulator("deepseek", models=("m1",)).running() as server:
        ran = bardo("conform", server.base_url, "--model", "m1", "--json", "--only", "reply", "--only", "tools")
        whole, streamed, tools, pieces, _ = ran.json["findings"]
        assert (whole["law"], whole["status"], ran.code) == ("reply.whole", "broken", 1)
        assert whole["faults"][0].startswith("the status is 401: ")
        assert "auth" in whole["faults"][0].lower()
        for one in (streamed, tools, pieces):
            assert (one["status"], one["faults"]) == ("unclear", ["refused for the same cause as reply.whole"])
        alone = bardo("conform", server.base_url, "--model", "m1", "--json", "--only", "tools").json["findings"]
        assert [one["status"] for one in alone] == ["broken", "unclear", "unclear"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (with_status(400), "an answer in a schema is refused: "),
        (replaced(rb'"content":"(.*)","reasoning', rb'"content":null,"refusal":"\1","reasoning'), "declined"),
        (replaced(rb'"finish_reason":"stop"', b'"finish_reason":"length"'), "cut by its limit"),
        (replaced(rb'"finish_reason":"stop"', b'"finish_reason":"content_filter"'), "declined"),
    ],
    ids=["refused", "declined", "cut", "filtered"],
)
def test_an_answer_that_was_not_given_breaks_no_law_of_typed_answers(
    change: Change, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("K", "any")
    with Faulty(change).running() as server:
        options = ("--model", "m1", "--key-env", "K", "--only", "typed.whole", "--json")
        ran = bardo("conform", server.base_url, *options)
    (finding,) = ran.json["findings"]
    assert (finding["status"], ran.code) == ("unclear", 0), finding
    assert said in finding["faults"][0]


def test_every_law_is_shown_to_be_broken_by_some_server() -> None:
    assert [law.id for law in LAWS if law.id not in {law for law, *_ in FAULTS}] == []


@pytest.mark.parametrize(
    ("dialect", "change"),
    [
        ("anthropic_messages", replaced(rb"event: message_stop\ndata: [^\n]*\n\n", b"")),
        ("openai_responses", replaced(rb"event: response.completed\ndata: [^\n]*\n\n", b"")),
        ("gemini", replaced(rb'"finishReason": ?"[A-Z_]+"', b'"finish":"x"')),
    ],
)
@pytest.mark.parametrize("law", ["reply.stream", "usage.stream"])
def test_a_stream_without_its_end_or_its_tokens_is_found_in_every_dialect(
    dialect: str, change: Change, law: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("K", "any")
    preset = {"anthropic_messages": "anthropic"}.get(dialect, dialect)
    if law == "usage.stream":
        change = replaced(rb'"(usage|usageMetadata)":', b'"used":')
    with Faulty(change, preset).running() as server:
        options = ("--dialect", dialect, "--model", MODELS[preset], "--key-env", "K", "--only", law, "--json")
        ran = bardo("conform", server.base_url, *options)
    (finding,) = ran.json["findings"]
    assert (finding["status"], ran.code) == ("broken", 1), finding
    assert not any("status" in fault for fault in finding["faults"]), finding


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


def test_a_model_that_is_refused_shows_nothing_of_streams_that_break_off() -> None:
    with Simulator("deepseek", models=("m1",)).running() as server:
        ran = bardo("conform", server.base_url, "-m", "m1", "--cut-model", "m1", "--only", "cut", "--json")
    assert [one["status"] for one in ran.json["findings"]] == ["unclear"]
