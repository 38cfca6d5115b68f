"""A model that nobody has said anything of is a line in the operator's log, once."""

from __future__ import annotations

import asyncio
import logging

import pytest

from bardo.adapters.config.settings import LogSettings, ProviderEntry, Settings
from bardo.adapters.net.fake import FakeReply, FakeTransport
from bardo.catalog.load import builtin
from bardo.planning.attempt import Attempt
from bardo.planning.planner import plan
from bardo.planning.route import Provider, Target
from bardo.services.facts import model_facts as model_warnings
from bardo.services.facts.model_facts import ModelFacts
from bardo.surfaces.library.client import AsyncClient
from bardo.values.blocks import TextBlock
from bardo.values.request import Message, ReasoningPolicy, Request

VLLM = builtin().provider("vllm")
assert VLLM is not None
REPLY = b'{"choices": [{"index": 0, "message": {"role": "assistant", "content": "Four."}, "finish_reason": "stop"}]}'
HIGH = ReasoningPolicy(mode="effort", effort="high")


def attempt(model: str, *, provider: str = "lab", policy: ReasoningPolicy | None = HIGH) -> Attempt:
    assert VLLM is not None
    request = Request(model=model, messages=(Message("user", (TextBlock("x"),)),), reasoning=policy)
    return plan(request, Target(provider=Provider(id=provider, row=VLLM, base_url="http://x"), model=model))


def warned(caplog: pytest.LogCaptureFixture, *seen: Attempt) -> list[logging.LogRecord]:
    facts = ModelFacts()
    with caplog.at_level(logging.WARNING, logger="bardo.control"):
        for one in seen:
            facts.warnings.note(one, facts.knowledge([one.target]))
    return caplog.records


def test_it_is_warned_of_with_provider_model_and_form(caplog: pytest.LogCaptureFixture) -> None:
    (record,) = warned(caplog, attempt("my-finetune"))
    assert record.levelno == logging.WARNING
    assert {name: vars(record)[name] for name in ("provider", "model", "form")} == {
        "provider": "lab",
        "model": "my-finetune",
        "form": "vllm",
    }
    assert "my-finetune" in record.getMessage()


def test_each_model_at_each_provider_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    seen = [attempt("a"), attempt("a"), attempt("b"), attempt("a", provider="other"), attempt("b")]
    assert [(vars(record)["provider"], vars(record)["model"]) for record in warned(caplog, *seen)] == [
        ("lab", "a"),
        ("lab", "b"),
        ("other", "a"),
    ]


@pytest.mark.parametrize(("model", "policy"), [("Qwen/Qwen3-32B", HIGH), ("my-finetune", None)])
def test_a_known_model_and_a_call_that_asks_nothing_are_not_warned_of(
    model: str, policy: ReasoningPolicy | None, caplog: pytest.LogCaptureFixture
) -> None:
    assert warned(caplog, attempt(model, policy=policy)) == []


def test_names_that_clients_make_up_cannot_fill_the_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_warnings, "_MOST_WARNED", 3)
    assert len(warned(caplog, *(attempt(f"made-up-{number}") for number in range(9)))) == 3


def test_a_name_stays_on_its_line(caplog: pytest.LogCaptureFixture) -> None:
    (record,) = warned(caplog, attempt("a\nERROR all is lost"))
    assert "\n" not in record.getMessage()


def test_a_call_to_such_a_model_is_warned_of_once_by_a_client(caplog: pytest.LogCaptureFixture) -> None:
    transport = FakeTransport(lambda call: FakeReply(headers={"content-type": "application/json"}, chunks=(REPLY,)))
    entry = ProviderEntry(id="lab", preset="vllm", base_url="http://lab/v1", models=("my-finetune",))
    settings = Settings(providers=(entry,), log=LogSettings(enabled=False))

    async def ask() -> None:
        async with AsyncClient(settings, transport=transport) as client:
            for _ in range(2):
                await client.respond("x", model="my-finetune", reasoning="high")

    with caplog.at_level(logging.WARNING, logger="bardo.control"):
        asyncio.run(ask())
    warned_of = [vars(record)["model"] for record in caplog.records if record.name == "bardo.control"]
    assert warned_of == ["my-finetune"]
