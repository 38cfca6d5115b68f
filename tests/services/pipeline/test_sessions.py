"""All turns of one conversation have one session, which nobody else has and which tells nothing of it."""

from __future__ import annotations

from typing import Any

import pytest

from bardo.context.sessions import call_labels, labelled, plain_repository, session_of
from bardo.surfaces.gateway.callers import ClientHead, header_options
from bardo.values.blocks import TextBlock
from bardo.values.operations import EmbedRequest
from bardo.values.request import BardoOptions, Message, Request

pytestmark = pytest.mark.each_python

UUID = "01234567-89ab-cdef-0123-456789abcdef"


def request(*turns: str, **fields: Any) -> Request:
    messages = [Message("system", (TextBlock("Be brief."),))]
    messages += [Message("assistant" if place % 2 else "user", (TextBlock(text),)) for place, text in enumerate(turns)]
    return Request(model="m", messages=tuple(messages), **fields)


def test_turns_of_one_conversation_are_known_by_its_beginning() -> None:
    first = session_of(request("hello"), "t")
    assert session_of(request("hello", "hi", "and?"), "t") == first
    assert session_of(request("another"), "t") != first
    assert session_of(request("hello"), "u") != first
    assert "hello" not in first


NAMED: dict[str, dict[str, Any]] = {
    "by the caller": {"options": BardoOptions(session=UUID)},
    "by Claude Code": {"body": {"metadata": {"user_id": f"user_abc_account_x_session_{UUID}"}}},
    "by Claude Code as JSON": {"body": {"metadata": {"user_id": f'{{"device_id": "d", "session_id": "{UUID}"}}'}}},
    "by Codex": {"body": {"prompt_cache_key": UUID}},
    "by a header": {"client_headers": {"session-id": UUID}},
    "from Python": {"extra": {"session_id": UUID}},
}


@pytest.mark.parametrize("how", NAMED)
def test_a_client_that_names_its_session_is_believed(how: str) -> None:
    fields = NAMED[how]
    assert session_of(request("one", **fields), "t") == session_of(request("other", **fields), "t")
    assert session_of(request("one", **fields), "t") != session_of(request("one", **fields), "u")
    assert UUID not in session_of(request("one", **fields), "t")


@pytest.mark.parametrize(
    "body",
    [{"prompt_cache_key": "my-app"}, {"metadata": {"user_id": "user 7"}}, {"metadata": "x"}, {"session_id": 7}],
)
def test_what_many_conversations_share_is_no_session(body: dict[str, Any]) -> None:
    assert session_of(request("one", body=body), "t") != session_of(request("other", body=body), "t")


REMOTE = '{"turn_id": "1", "workspaces": {"/home/me/secret-place": {"associated_remote_urls": {"origin": "%s"}, "has_changes": true}}}'


@pytest.mark.parametrize(
    ("headers", "agent"),
    [
        ({"user-agent": "claude-cli/2.1.330 (external, cli)"}, "claude-code"),
        ({"user-agent": "codex_cli_rs/0.60.1 (Linux)", "originator": "codex_cli_rs"}, "codex"),
        ({"user-agent": "node", "originator": "codex_vscode"}, "codex"),
        ({"user-agent": "GeminiCLI/0.61.0/gemini-3-pro (linux; x64)"}, "gemini-cli"),
        ({"user-agent": "QwenCode/0.14.1 (linux; x64)"}, "qwen-code"),
        ({"user-agent": "opencode/1.2.3 ai-sdk/provider-utils"}, "opencode"),
        ({"user-agent": "Charm-Crush/0.4.2"}, "crush"),
        ({"user-agent": "Kilo-Code/5.1.0"}, "kilo-code"),
        ({"user-agent": "OpenAI/JS 6.1", "x-title": "Cline"}, "cline"),
        ({"user-agent": "OpenAI/JS 6.1", "http-referer": "https://kilocode.ai"}, "kilo-code"),
        ({"user-agent": "OpenAI/JS 5.20.1", "x-interaction-type": "conversation-user"}, "copilot"),
        ({"user-agent": "OpenAI/JS 5.20.1", "x-initiator": "agent"}, "copilot"),
        ({"user-agent": "opencode/1.2.3", "x-initiator": "agent"}, "opencode"),
        ({"agent-session-id": "20261130_1"}, "goose"),
        ({"agent-session-id": "another-program's"}, ""),
        ({"user-agent": "OpenAI/Python 2.0"}, ""),
        ({"user-agent": "my-claude-cli/1"}, ""),
        ({}, ""),
    ],
)
def test_an_agent_is_known_by_what_it_calls_itself(headers: dict[str, str], agent: str) -> None:
    assert call_labels(request("hello", client_headers=headers)).agent == agent


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("https://github.com/owner/name.git", "github.com/owner/name"),
        ("https://user:s3cret@github.com/owner/name.git?token=abc#x", "github.com/owner/name"),
        ("git@github.com:owner/name.git", "github.com/owner/name"),
        ("ssh://git@host.example:2222/owner/name", "host.example:2222/owner/name"),
        ("https://host.example/https://u:s3cret@inner/owner", "host.example/inner/owner"),
        ("our-monorepo", "our-monorepo"),
        ("owner/name", "owner/name"),
        ("s3cret@host", "host"),
        ("https://", ""),
        ("https://user:s3c/ret@github.com/owner/name", "github.com/owner/name"),
        ("https://s3c/ret@github.com/owner/name", "github.com/owner/name"),
        ("https://user:12/34@inner/owner", "inner/owner"),
        ("https://user:s3cret%40github.com/owner/name", "github.com/owner/name"),
        (
            "https://host.example/x-access-token/ghs_abcdefghij0123456789/name",
            "host.example/x-access-token/[key 79495080]/name",
        ),
        ("https://host.example/glpat-abc_def-1234567890ab/name.git", "host.example/[key 7093395e]/name"),
        ("https://host.example/0a1b2c3d4e5f6a7b8c9d0e1f/owner", "host.example/[key d620defc]/owner"),
        ("https://dev.example/org/_git/a-long-name-of-2024", "dev.example/org/_git/a-long-name-of-2024"),
    ],
)
def test_a_repository_has_one_name_and_no_password(address: str, name: str) -> None:
    assert plain_repository(address) == name
    assert call_labels(request("hello", options=BardoOptions(repository=address))).repository == name
    told = REMOTE % address
    assert call_labels(request("hello", client_headers={"x-codex-turn-metadata": told})).repository == name
    body = {"client_metadata": {"x-codex-turn-metadata": told}}
    assert call_labels(request("hello", body=body)).repository == name


def test_a_session_is_named_in_other_letters_than_ascii() -> None:
    lines = ((b"session-id", "Ausflug nach Köln\x01".encode()), (b"user-agent", b"codex_cli_rs/1"))
    _, program = ClientHead(lines).passed_on
    assert program["session-id"] == "Ausflug nach K%C3%B6ln%01"
    assert call_labels(request("hello", client_headers=program)).session == "Ausflug nach Köln"
    for said in ("Köln".encode(), b"K%C3%B6ln", "Köln".encode("latin-1")):
        options = header_options(BardoOptions(), {"headers": [(b"x-bardo-session", said)]})
        assert call_labels(request("hello", options=options)).session == "Köln"


@pytest.mark.parametrize(
    "told", ["", "{", "[1]", '{"workspaces": []}', '{"workspaces": {"a": 1}}', "[" * 5000, "x" * 20_000]
)
def test_metadata_that_tell_of_no_repository_name_none(told: str) -> None:
    assert call_labels(request("hello", client_headers={"x-codex-turn-metadata": told})).repository == ""


def test_what_a_client_says_to_bardo_goes_before_what_it_says_of_itself() -> None:
    headers = {"user-agent": "claude-cli/2.1", "x-claude-code-session-id": "theirs"}
    assert call_labels(request("hello", client_headers=headers)) == ("theirs", "claude-code", "")
    options = BardoOptions(session="mine", agent="nightly-job", repository="r")
    assert call_labels(request("hello", client_headers=headers, options=options)) == ("mine", "nightly-job", "r")


def test_names_are_short_and_hold_nothing_that_a_terminal_hides() -> None:
    options = BardoOptions(session="a\x00b\x1f\ud800" + "x" * 500, agent="\x1b[31mred")
    found = call_labels(request("hello", options=options))
    assert found.session.startswith("ab" + "x" * 181 + "…")
    assert len(found.session) == 200
    assert found.agent == "[31mred"
    embed = EmbedRequest(model="m", inputs=("a",), options=options)
    assert call_labels(embed) == found


def test_long_names_that_begin_alike_stay_two() -> None:
    names = ["x" * 300 + end for end in ("a", "b", "a")]
    found = [call_labels(request("hello", options=BardoOptions(session=one))).session for one in names]
    assert found[0] == found[2] != found[1]


@pytest.mark.parametrize("place", range(1, 250, 7))
def test_a_secret_is_taken_out_of_a_name_before_it_is_cut(place: int) -> None:
    secret = "sk-0123456789abcdef0123456789"
    options = BardoOptions(session="x" * place + f"{secret[:9]}\x00{secret[9:]}")
    held = (request("hello", options=options), EmbedRequest(model="m", inputs=("a",), options=options))
    for one in held:
        assert "sk-0" not in call_labels(one, lambda text: text.replace(secret, "")).session


def test_a_call_without_kept_headers_takes_its_names_along() -> None:
    assert labelled(BardoOptions(), {"user-agent": "curl/8"}) == BardoOptions()
    found = labelled(BardoOptions(), {"user-agent": "opencode/1.0", "x-session-id": "s"})
    assert (found.session, found.agent) == ("s", "opencode")
