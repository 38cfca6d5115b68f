"""An id by which a provider keeps something belongs to whose reply it came in: for everybody else it does not exist."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from bardo.adapters.config.settings import ProviderIdSettings
from bardo.adapters.net.calls import Call, Deadlines
from bardo.adapters.net.fake import FakeReply, FakeTransport
from bardo.adapters.stores.state import Bounds, MemoryStore
from bardo.adapters.stores.state.calls import StateCalls
from bardo.catalog.kept_ids import KeptIdField, kept_ids
from bardo.dialects import dialect
from bardo.services.facts import provider_ids
from bardo.services.facts.provider_ids import ProviderIds
from bardo.values.errors import Unavailable, UnknownProviderId
from bardo.values.request import Request
from bardo.values.wire import Arrival
from support.offenders import offenders

OWN, OTHERS, NEVER = "id_of_mine_0001", "id_of_another_0002", "id_of_nobody_0003"
ASK = {"model": "m1", "input": "Hi", "messages": [{"role": "user", "content": "Hi"}]}


def keeper(**settings: Any) -> ProviderIds:
    store = StateCalls(MemoryStore(Bounds()), name="ids", area="keys")
    return ProviderIds(store, ProviderIdSettings(**settings), clock=lambda: 0.0)


def request_of(raw: bytes, spoken: str = "openai_responses") -> Request:
    return Request(model="m1", messages=(), dialect=spoken, body=msgspec.json.decode(raw), body_bytes=raw)


def refused(ids: ProviderIds, raw: bytes, tenant: str = "me", spoken: str = "openai_responses") -> str:
    """Return the message that a request is refused with, nothing where it may be sent."""
    try:
        asyncio.run(ids.check(request_of(raw, spoken), tenant))
    except UnknownProviderId as problem:
        return f"{problem.status} {problem.kind} {problem.message}"
    return ""


def with_ids(**settings: Any) -> ProviderIds:
    ids = keeper(**settings)
    asyncio.run(ids.keep("me", [OWN]))
    asyncio.run(ids.keep("another", [OTHERS]))
    return ids


def spellings(name: str) -> list[str]:
    """Return a field's name as dialects write it: with underscores, in camel case, and otherwise."""
    first, *rest = name.split("_")
    return [name, first + "".join(map(str.capitalize, rest)), name.upper(), name.replace("_", "-")]


def places(row: KeptIdField, value: str) -> list[Any]:
    address = f"gs://bucket/{value}" if row.address else value
    texts = [] if row.only_id else [address, [address], ["gs://a", address] if row.address else [OWN, address]]
    within = [[{"type": "x", **_at(path.split("."), value)}] for path in row.paths]
    return [*texts, *([{"id": value}, {"type": "auto", "id": value}] if row.has_id else []), *within]


def _at(names: Sequence[str], value: str) -> dict[str, Any]:
    return {names[0]: _at(names[1:], value) if names[1:] else value}


def test_every_field_is_looked_at_wherever_it_stands_and_however_it_is_written() -> None:
    ids, found = with_ids(), []
    for row in kept_ids().field:
        for name in row.names:
            for spelled in spellings(name):
                for value in places(row, OTHERS):
                    deep = {
                        "input": [{"role": "user", "content": [{"type": "x", "deep": [{"inside": {spelled: value}}]}]}]
                    }
                    for body in ({spelled: value}, *([] if row.outermost else [deep])):
                        if not refused(ids, json.dumps(body).encode()):
                            found.append(f"{spelled}: {value} passed in {body}")
    offenders(found, "name the field in catalog/data/kept_ids.toml")


@pytest.mark.parametrize(
    "body",
    [
        {"messages": [{"role": "system", "content": "fileid://THEIRS"}]},
        {"messages": [{"role": "system", "content": "fileid://MINE,fileid://THEIRS"}]},
        {"messages": [{"role": "developer", "content": [{"type": "text", "text": " FileID://THEIRS"}]}]},
        {"system": [{"type": "text", "text": "fileid://THEIRS"}]},
        {"system": "fileid://THEIRS"},
        {"instructions": "fileid://THEIRS"},
        {"systemInstruction": {"parts": [{"text": "fileid://THEIRS"}]}},
        {"system_instruction": "fileid://THEIRS"},
        {"messages": [{"role": "user", "content": [{"type": "video_url", "video_url": {"url": "ms://THEIRS"}}]}]},
        {"tools": [{"retrieval": {"vertexAiSearch": {"engine": "projects/p/locations/l/engines/THEIRS"}}}]},
        {"tool_use_id": "t", "input": {"type": "document", "uri": "files/THEIRS"}},
        {"type": "tool_use", "input": {"type": "document", "file_id": "THEIRS"}},
    ],
)
def test_texts_and_addresses_that_providers_take_for_files_are_ids(body: dict[str, Any]) -> None:
    ids = with_ids()
    asyncio.run(ids.keep("me", [f"fileid://{OWN}"]))
    raw = json.dumps(body).replace("MINE", OWN)
    assert refused(ids, raw.replace("THEIRS", OTHERS).encode())
    assert refused(ids, raw.replace("THEIRS", OTHERS).replace("/", "\\/").encode())


def test_the_same_words_elsewhere_are_no_ids() -> None:
    ids = with_ids()
    asyncio.run(ids.keep("me", [f"fileid://{OWN}"]))
    texts: list[dict[str, Any]] = [
        {"messages": [{"role": "system", "content": f"fileid://{OWN}"}, {"role": "user", "content": "fileid://x"}]},
        {"messages": [{"role": "system", "content": "Addresses such as fileid://x are none of the web."}]},
        {"plugins": [{"id": "web", "engine": "exa"}]},
        {"tools": [{"type": "computer_use_preview", "environment": "browser"}]},
        {"tools": [{"computerUse": {"environment": "ENVIRONMENT_BROWSER"}}]},
    ]
    for body in texts:
        assert not refused(ids, json.dumps({**ASK, **body}).encode()), body


def test_what_is_everybodys_or_the_clients_own_is_no_id() -> None:
    ids = with_ids()
    for body in (
        {"tools": [{"type": "mcp", "connector_id": "connector_dropbox", "authorization": "a token of the client's"}]},
        {"mcp_servers": [{"type": "url", "url": "https://example.com", "name": "x", "authorization_token": "y"}]},
        {"data_sources": [{"type": "azure_search", "parameters": {"top_n_documents": 3}}]},
        {"session_id": "a name that its client makes up", "prompt_cache_key": "another"},
        {"diagnostics": {"previous_message_id": None}},
    ):
        assert not refused(ids, json.dumps({**ASK, **body}).encode()), body


@pytest.mark.parametrize("name", ["arn:aws:bedrock:us-east-1:123456789012:prompt/ABC:1", "arn:aws-us-gov:x::prompt/A"])
def test_a_prompt_in_the_place_of_a_model_is_an_id(name: str) -> None:
    raw = json.dumps(ASK).encode()

    def refused_as(model: str, **settings: Any) -> bool:
        try:
            asyncio.run(keeper(**settings).check(msgspec.structs.replace(request_of(raw), model=model), "me"))
        except UnknownProviderId as problem:
            return problem.param == "model" and "arn:" in problem.message
        return False

    assert refused_as(name)
    assert refused_as(f"bedrock/{name}")
    assert not refused_as(f"bedrock/{name}", shared=(name,))
    assert not refused_as("arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.x")
    assert not refused_as("bedrock/us.anthropic.prompt/x")


@pytest.mark.parametrize(
    "body", [b'{"id": "msg_1"}', b'event: x\ndata: {"type": "message_start", "message": {"id": "msg_1"}}\n\n']
)
def test_the_id_of_a_message_is_kept_where_its_diagnostics_were_asked_for(body: bytes) -> None:
    ids = keeper()

    async def read(asked: Sequence[str]) -> None:
        call = Call(method="POST", url="http://p.invalid", headers={}, body=b"", provider="p")
        sent = await FakeTransport(lambda _: FakeReply(chunks=[body])).send(call, Deadlines())
        reply = ids.watched(sent, "anthropic_messages", "me", asked)
        if body.startswith(b"{"):
            await reply.read(1000)
        else:
            assert [one async for one in reply.chunks()]

    named = b'{"diagnostics": {"previous_message_id": "msg_1"}}'
    asyncio.run(read(["model"]))
    assert refused(ids, named)
    asyncio.run(read(["model", "diagnostics"]))
    assert not refused(ids, named)
    assert refused(ids, named, tenant="another").startswith("404 ")


def test_another_key_is_told_the_same_of_an_id_that_is_and_of_one_that_never_was() -> None:
    ids = with_ids()
    for body in ({"previous_response_id": "X"}, {"input": [{"type": "item_reference", "id": "X"}]}, {"file_id": "X"}):
        raw = json.dumps(body)
        told = [refused(ids, raw.replace("X", one).encode()).replace(one, "X") for one in (OTHERS, NEVER)]
        assert told[0] == told[1]
        assert told[0].startswith("404 not_found ")
        assert not refused(ids, raw.replace("X", OWN).encode())


@pytest.mark.parametrize(
    "raw",
    [
        '{"previous_response_id": "THEIRS", "previous_response_id": "MINE"}',
        '{"previous_response_id": "MINE", "previous_response_id": "THEIRS"}',
        '{"input": [{"content": [{"file_id": "THEIRS", "file_id": "MINE"}]}]}',
        '{"input": [{"type": "item_reference", "id": "THEIRS", "type": "message", "role": "user", "content": "x"}]}',
        r'{"previous\u005fresponse_id": "THEIRS"}',
        r'{"input": [{"content": [{"\u0066ile_id": "THEIRS"}]}]}',
        '{"conversation": {"id": "THEIRS", "id": "MINE"}}',
        '{"conversation": {"ID": "THEIRS"}}',
        '{"input": [{"Type": "item_reference", "ID": "THEIRS"}]}',
        '{"previous_response_id": " THEIRS"}',
        '{"previous_response_id": "MINE "}',
        '{"previous_response_id": "mine"}',
        '{"previous_response_id": "%4dINE"}',
        '{"file_id": "../THEIRS"}',
    ],
)
def test_no_other_spelling_gets_through(raw: str) -> None:
    assert refused(with_ids(), raw.replace("THEIRS", OTHERS).replace("MINE", OWN).replace("mine", OWN.upper()).encode())


@pytest.mark.parametrize(
    ("item", "is_reference"),
    [
        ({"type": "item_reference"}, True),
        ({}, True),
        ({"type": "reasoning", "summary": []}, True),
        ({"type": "reasoning", "summary": [], "encrypted_content": None}, True),
        ({"type": "image_generation_call"}, True),
        ({"type": "web_search_call", "status": "completed"}, True),
        ({"type": "reasoning", "summary": [], "encrypted_content": "gAAA"}, False),
        ({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]}, False),
        ({"role": "assistant", "content": "x"}, False),
        ({"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c"}, False),
        ({"type": "function_call_output", "call_id": "c", "output": "x"}, False),
        ({"type": "image_generation_call", "result": "AAAA"}, False),
    ],
)
def test_an_item_without_content_names_what_its_provider_keeps(item: dict[str, Any], is_reference: bool) -> None:
    raw = json.dumps({"input": [{**item, "id": OTHERS}]}).encode()
    assert bool(refused(with_ids(), raw)) is is_reference
    assert not refused(with_ids(), raw.replace(OTHERS.encode(), OWN.encode()))


def test_ids_that_bardo_gave_to_items_are_no_providers() -> None:
    raw = json.dumps({"input": [{"type": "reasoning", "id": "rs_bardo_0123_0", "summary": []}]}).encode()
    assert not refused(with_ids(), raw)


@pytest.mark.parametrize(
    "address",
    [
        "https://generativelanguage.googleapis.com/v1beta/files/abc",
        "HTTPS://GenerativeLanguage.GoogleAPIs.com/v1beta/files/abc",
        "https://generativelanguage.googleapis.com./v1beta/files/abc",
        "https://user@generativelanguage.googleapis.com:443/v1beta/files/abc",
        "https://us-central1-aiplatform.googleapis.com/v1/projects/p",
        "https://%67enerativelanguage.googleapis.com/v1beta/files/abc",
        " gs://bucket/secret",
        "GS://bucket/secret",
        "g\ts://bucket/secret",
        "s3://bucket/secret",
        "files/abc",
        "//generativelanguage.googleapis.com/v1beta/files/abc",
        pytest.param(f"https://{'u' * 3_000}@generativelanguage.googleapis.com/v1beta/files/abc", id="long-user"),
    ],
)
def test_an_address_that_is_read_with_the_operators_credential_is_an_id(address: str) -> None:
    for body in ({"image_url": {"url": address}}, {"fileData": {"fileUri": address}}, {"s3Location": {"uri": address}}):
        assert refused(with_ids(), json.dumps({"messages": [body]}).encode())


@pytest.mark.parametrize(
    "address",
    [
        "https://example.com/files/abc",
        "https://storage.googleapis.com/public/scones.jpg",
        "https://www.youtube.com/watch?v=abc",
        "data:image/png;base64,AAAA",
        "https://example.com/?of=generativelanguage.googleapis.com",
        pytest.param(f"https://example.com/?of={'x' * 3_000}", id="long-query"),
    ],
)
def test_an_address_of_the_web_is_nobodys(address: str) -> None:
    for body in ({"image_url": {"url": address}}, {"image_url": address}, {"fileData": {"fileUri": address}}):
        assert not refused(with_ids(), json.dumps({"messages": [body]}).encode())


@pytest.mark.parametrize(
    "body",
    [
        {
            "messages": [
                {
                    "role": "assistant",
                    "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {"file_id": "x"}}],
                }
            ]
        },
        {"messages": [{"role": "assistant", "content": [{"toolUse": {"toolUseId": "t", "input": {"file_id": "x"}}}]}]},
        {"contents": [{"parts": [{"functionCall": {"name": "f", "args": {"file_id": "x"}}}]}]},
        {"contents": [{"parts": [{"functionResponse": {"name": "f", "response": {"file_id": "x"}}}]}]},
        {
            "tools": [
                {
                    "function": {
                        "name": "f",
                        "parameters": {"properties": {"file_id": {"type": "string"}}, "default": {"file_id": "x"}},
                    }
                }
            ]
        },
        {"metadata": {"conversation_id": "x", "file_id": "x"}},
        {"messages": [{"role": "user", "content": '{"file_id": "x"} previous_response_id'}]},
        {
            "input": [
                {
                    "role": "assistant",
                    "content": [{"type": "output_text", "text": "x", "annotations": [{"file_id": "x"}]}],
                }
            ]
        },
        {
            "prompt": "container",
            "audio": {"voice": "alloy", "format": "wav"},
            "tools": [{"container": {"type": "auto"}}],
        },
        {"container": {"skills": [{"type": "anthropic", "skill_id": "pptx"}]}},
        {"user": "x", "prompt_cache_key": "x", "messages": [{"tool_call_id": "x"}]},
    ],
)
def test_what_a_model_said_is_no_id(body: dict[str, Any]) -> None:
    assert not refused(with_ids(), json.dumps({**ASK, **body}).encode())


def test_ids_that_the_operator_shares_are_everybodys() -> None:
    ids = with_ids(shared=("vs_*", "gs://ours/*"))
    shared = {"tools": [{"vector_store_ids": ["vs_1"]}], "file_uri": "gs://ours/a"}
    assert not refused(ids, json.dumps(shared).encode())
    assert refused(ids, json.dumps({**shared, "file_uri": "gs://others/a"}).encode())


def test_where_the_operator_allows_unknown_ids_those_of_others_stay_theirs() -> None:
    ids = with_ids(unknown="allow")
    assert not refused(ids, json.dumps({"previous_response_id": NEVER}).encode())
    assert refused(ids, json.dumps({"previous_response_id": OTHERS}).encode())
    assert refused(ids, json.dumps({"file_ids": [NEVER, OWN, OTHERS]}).encode())


@pytest.mark.parametrize("name", [OTHERS * 1000, "\\ud800", ""], ids=["long", "surrogate", "empty"])
def test_no_id_is_a_mistake_in_bardo(name: str) -> None:
    raw = ('{"file_id": "' + name + '"}').encode()
    request = Request(model="m1", messages=(), dialect="openai_chat", body={"file_id": "x"}, body_bytes=raw)
    for unknown in ("refuse", "allow"):
        try:
            asyncio.run(with_ids(unknown=unknown).check(request, "me"))
        except UnknownProviderId:
            continue
        assert not name or unknown == "allow"


class BrokenStore(MemoryStore):
    """A store that does not answer."""

    def find(self, tenant: str, keys: Sequence[str], *, now: float) -> dict[str, bytes]:
        raise OSError("the disk is gone")

    problems = (OSError,)
    waits = True


def test_a_request_is_not_sent_where_nobody_can_tell_whose_its_ids_are() -> None:
    ids = ProviderIds(StateCalls(BrokenStore(Bounds()), name="ids", area="keys"), ProviderIdSettings())
    with pytest.raises(Unavailable):
        asyncio.run(ids.check(request_of(b'{"file_id": "x"}'), "me"))
    asyncio.run(ids.check(request_of(b'{"input": "x"}'), "me"))


CONTAINED = {"type": "container_file_citation", "container_id": "cntr_1", "file_id": "cfile_1"}
OUTPUT = [
    {"type": "reasoning", "id": "rs_1"},
    {"type": "code_interpreter_call", "id": "ci_1", "container_id": "cntr_1"},
    {"type": "shell_call", "id": "sh_1", "environment": {"type": "container_reference", "container_id": "cntr_2"}},
    {
        "type": "message",
        "id": "msg_1",
        "content": [{"type": "output_text", "text": "\n\n", "annotations": [CONTAINED]}],
    },
]
RESPONSE = {"id": "resp_1", "conversation": {"id": "conv_1"}, "output": OUTPUT, "metadata": {"id": "resp_of_another"}}
RESPONSE_IDS = {"resp_1", "conv_1", "rs_1", "ci_1", "cntr_1", "sh_1", "cntr_2", "msg_1", "cfile_1"}
RAN = {"type": "code_execution_tool_result", "content": {"type": "x", "content": [{"type": "y", "file_id": "file_1"}]}}
TOOL = {
    "type": "tool_use",
    "id": "toolu_1",
    "name": "f",
    "input": {"file_id": "file_of_another", "container": {"id": "of_another"}},
}
UPLOADED = {"type": "container_upload", "file_id": "file_2"}
MESSAGE = {"id": "msg_1", "container": {"id": "container_1"}, "content": [RAN, UPLOADED, TOOL]}
CHAT = {"id": "chatcmpl-1", "choices": [{"message": {"content": "", "audio": {"id": "audio_1", "data": ""}}}]}
REPLIES: dict[str, tuple[dict[str, Any], list[dict[str, Any]], set[str]]] = {
    "openai_responses": (
        RESPONSE,
        [
            {"type": "response.created", "response": {"id": "resp_1", "conversation": {"id": "conv_1"}, "output": []}},
            {"type": "response.output_text.delta", "item_id": "resp_of_another", "delta": "response.completed"},
            *({"type": "response.output_item.done", "item": item} for item in OUTPUT),
        ],
        RESPONSE_IDS,
    ),
    "anthropic_messages": (
        MESSAGE,
        [
            {"type": "message_start", "message": {"id": "msg_1", "content": []}},
            {"type": "content_block_start", "content_block": RAN},
            {"type": "content_block_start", "content_block": UPLOADED},
            {"type": "content_block_start", "content_block": TOOL},
            {"type": "message_delta", "delta": {"container": {"id": "container_1"}}},
        ],
        {"container_1", "file_1", "file_2"},
    ),
    "openai_chat": (CHAT, [{"choices": [{"delta": {"audio": {"id": "audio_1"}}}]}], {"audio_1"}),
    "gemini_interactions": (
        {"id": "interaction_1", "steps": [], "environment_id": "environment_1"},
        [
            {
                "event_type": "interaction.created",
                "interaction": {"id": "interaction_1", "environment": {"environment_id": "environment_1"}},
            }
        ],
        {"interaction_1", "environment_1"},
    ),
}


async def read_as(spoken: str, chunks: Sequence[bytes], use: Callable[[Any], Any]) -> ProviderIds:
    """Read a reply to a call of the tenant `me`, and return what was kept."""
    ids, transport = keeper(), FakeTransport(lambda _: FakeReply(chunks=chunks))
    call = Call(method="POST", url="http://p.invalid", headers={}, body=b"", provider="p")
    reply = ids.watched(await transport.send(call, Deadlines()), spoken, "me")
    assert await use(reply) == b"".join(chunks)
    await reply.close()
    return ids


async def streamed(reply: Any) -> bytes:
    return b"".join([chunk async for chunk in reply.chunks()])


async def whole(reply: Any) -> bytes:
    found: bytes = await reply.read(1_000_000)
    return found


def kept(ids: ProviderIds, candidates: set[str]) -> set[str]:
    return {one for one in candidates if not refused(ids, json.dumps({"file_id": one}).encode())}


def candidates_in(body: Any) -> set[str]:
    return set(re.findall(r'"([a-z]+[a-z_]*_?[a-z0-9-]+)"', json.dumps(body)))


@pytest.mark.parametrize("spoken", REPLIES)
def test_the_ids_of_a_reply_are_kept_whole_and_wherever_a_stream_is_cut(spoken: str) -> None:
    body, events, wanted = REPLIES[spoken]
    raw = json.dumps(body, indent=1).encode()
    assert kept(asyncio.run(read_as(spoken, [raw], whole)), candidates_in(body)) == wanted
    for ending in ("\n", "\r\n"):
        stream = "".join(f"event: x{ending}data: {json.dumps(one)}{ending}{ending}" for one in events).encode()
        for at in range(0, len(stream), 23):
            ids = asyncio.run(read_as(spoken, [stream[:at], stream[at:]], streamed))
            assert kept(ids, candidates_in(events)) == wanted


@pytest.mark.parametrize(
    ("spoken", "body"),
    [
        ("openai_chat", {"id": "chatcmpl-1", "choices": [{"message": {"content": "no audio"}}]}),
        ("anthropic_messages", {"id": "msg_1", "content": [{"type": "text", "text": "no container, no file_id"}]}),
    ],
)
def test_a_reply_without_such_ids_is_not_read_for_them_and_nothing_is_written(
    monkeypatch: pytest.MonkeyPatch, spoken: str, body: dict[str, Any]
) -> None:
    asked: list[object] = []
    monkeypatch.setattr(provider_ids, "_ids_at", lambda *given: asked.append(given))
    monkeypatch.setattr(ProviderIds, "keep", lambda *given: asked.append(given))
    raw = json.dumps(body).encode()
    asyncio.run(read_as(spoken, [raw], whole))
    asyncio.run(read_as(spoken, [b"data: ", raw, b"\n\n"], streamed))
    assert asked == []


def test_a_stream_that_breaks_keeps_what_had_come() -> None:
    _, events, _ = REPLIES["openai_responses"]
    stream = f"data: {json.dumps(events[0])}\n\ndata: {{".encode()
    ids = asyncio.run(read_as("openai_responses", [stream], streamed))
    assert kept(ids, {"resp_1", "conv_1", "rs_1"}) == {"resp_1", "conv_1"}


@pytest.mark.parametrize(
    "spoken", ["openai_chat", "openai_responses", "anthropic_messages", "gemini", "gemini_interactions"]
)
def test_what_each_dialect_reads_is_looked_at_as_it_came(spoken: str) -> None:
    texts = {
        "gemini": {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}], "cachedContent": "cachedContents/x"},
        "gemini_interactions": {"model": "m1", "input": "Hi", "previous_interaction_id": "v1_x"},
        "openai_responses": {"model": "m1", "input": "Hi", "previous_response_id": "resp_x"},
    }
    body = texts.get(spoken) or {
        "model": "m1",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "Hi"}],
        "container": "c_x",
    }
    request = dialect(spoken).decode_request(json.dumps(body).encode(), Arrival(model="m1"))
    with pytest.raises(UnknownProviderId):
        asyncio.run(keeper().check(request, "me"))
