"""Whatever a caller or a provider says, bardo asks only the addresses that the operator or the catalog named."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bardo.adapters.config.settings import LogSettings, ProviderEntry, ReasoningSettings, Settings
from bardo.adapters.net.calls import Call
from bardo.adapters.net.fake import FakeReply, FakeTransport, Handler
from bardo.call.open import open_call
from bardo.catalog.load import builtin
from bardo.dialects.batches import batch_form
from bardo.dialects.shared.json_values import WrongShape
from bardo.planning.route import Provider
from bardo.values.blocks import Block, DocumentBlock, ImageBlock, TextBlock
from bardo.values.errors import BardoError
from bardo.values.request import Message, Request
from bardo.wiring import assemble

pytestmark = pytest.mark.each_python

HOST = "provider.example"
BASE = f"http://{HOST}:8000/base"
ENVIRONMENT = {
    "K": "key",
    "AWS_ACCESS_KEY_ID": "id",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_REGION": "eu-west-1",
}
PRESETS = sorted(row.id for row in builtin().providers if row.auth != "google")
INSIDE = "http://169.254.169.254/latest/meta-data/"
MODELS = [
    INSIDE,
    f"//{HOST}.evil.example/x",
    "@evil.example/x",
    "..",
    "../../../../v1/files",
    "..%2f..%2ffiles",
    "%2e%2e/%2e%2e/files",
    "a\r\nhost: evil.example",
    "a b?key=1#x",
    "\\\\evil.example\\x",
    ":80@evil.example",
    "m;/../x",
]


def refuse(call: Call) -> FakeReply:
    body = json.dumps({"error": {"message": "no", "type": "invalid_request_error"}}).encode()
    return FakeReply(status=400, chunks=(body,))


def redirect(call: Call) -> FakeReply:
    return FakeReply(status=307, headers={"location": INSIDE, "refresh": f"0; url={INSIDE}"})


WORDS = (TextBlock("Look."),)
PICTURE = (*WORDS, ImageBlock(url=INSIDE, media_type="image/png"))
DOCUMENT = (*WORDS, DocumentBlock(url=INSIDE, media_type="application/pdf"))


def asked(preset: str, model: str, blocks: tuple[Block, ...] = WORDS, handler: Handler = refuse) -> list[Call]:
    """Return the calls that a request for a model makes."""
    entry = ProviderEntry(id="it", preset=preset, base_url=BASE, api_key_env="K")
    settings = Settings(
        log=LogSettings(enabled=False), reasoning=ReasoningSettings(introspect=False), providers=(entry,)
    )
    transport = FakeTransport(handler)

    async def run() -> None:
        assembly = assemble(settings, transport=transport, environment=ENVIRONMENT)
        try:
            request = Request(model=f"it/{model}", messages=(Message("user", blocks),))
            reply = await open_call(assembly.services, request)
            await reply.close()
        except BardoError:
            return
        finally:
            await assembly.close()

    asyncio.run(run())
    return transport.calls


def check(calls: list[Call], preset: str) -> None:
    for call in calls:
        parts = urlsplit(call.url)
        assert (parts.scheme, parts.hostname, parts.port) == ("http", HOST, 8000), (preset, call.url)
        assert parts.username is None
        assert parts.path.startswith("/base/"), (preset, call.url)
        assert not {".", ".."} & set(parts.path.split("/")), (preset, call.url)
        assert call.url.isascii()
        assert not any(char <= " " or char in '\\"<>' for char in call.url), (preset, call.url)
        assert not [name for name, value in call.headers.items() if {"\r", "\n"} & set(name + value)]


@pytest.mark.sampled(15)
@pytest.mark.parametrize("preset", PRESETS)
def test_a_model_cannot_say_where_a_call_goes(preset: str) -> None:
    for model in MODELS:
        check(asked(preset, model), preset)


NAMES = st.text(st.sampled_from([*"ab/.:@?#%\\;&= \r\n\t", "é", "\u2025", "。", "／", "＠"]), min_size=1, max_size=12)


@given(NAMES, st.sampled_from(["gemini", "bedrock", "bedrock-invoke", "azure", "gemini-interactions"]))
@example("a/../b", "gemini")
def test_no_spelling_of_a_model_leaves_the_address(model: str, preset: str) -> None:
    check(asked(preset, model), preset)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_redirect_is_not_followed(preset: str) -> None:
    calls = asked(preset, "m1", handler=redirect)
    assert calls, "nothing was asked"
    check(calls, preset)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("blocks", [PICTURE, DOCUMENT], ids=["picture", "document"])
def test_an_address_in_a_prompt_is_not_fetched(preset: str, blocks: tuple[Block, ...]) -> None:
    check(asked(preset, "m1", blocks), preset)


HOSTILE_IDS = [
    "//169.254.169.254/latest",
    "/x",
    "../../../v1/files",
    "batches/../x",
    "http://evil.example/",
    "a\r\nhost: b",
    "a?b",
    "a#b",
    "\\\\evil",
    "a b",
]


@pytest.mark.parametrize("form", ["openai_files", "message_batches", "inline_operations", "mistral_jobs"])
@pytest.mark.parametrize("named", HOSTILE_IDS)
def test_a_job_of_a_provider_cannot_say_where_the_next_call_goes(form: Any, named: str) -> None:
    fields = {"id": named, "name": named, "status": "completed", "processing_status": "ended"}
    with pytest.raises(WrongShape, match="is no id"):
        batch_form(form).decode_job(json.dumps(fields).encode())


@pytest.mark.parametrize(("form", "field"), [("openai_files", "output_file_id"), ("mistral_jobs", "output_file")])
def test_the_files_of_a_job_cannot_say_so_either(form: Any, field: str) -> None:
    with pytest.raises(WrongShape, match="is no id"):
        batch_form(form).decode_job(json.dumps({"id": "batch_1", field: "../../keys"}).encode())


@given(st.text(st.sampled_from([*"/.:@?#%\\;&=ab \r\n", "é"]), max_size=12))
@example("//evil.example/x")
@example("/..//evil.example/x")
@example(".//evil.example")
def test_no_path_leaves_the_host_of_a_provider(path: str) -> None:
    row = next(row for row in builtin().providers if row.id == "vllm")
    for base in (BASE, f"{BASE}?key=1", "http://provider.example:8000"):
        parts = urlsplit(Provider(id="it", row=row, base_url=base).url(path))
        assert (parts.scheme, parts.netloc) == ("http", f"{HOST}:8000")
