"""All turns of one conversation have one session, which nobody else has and which tells nothing of it."""

from __future__ import annotations

from typing import Any

import pytest

from bardo.context.sessions import session_of
from bardo.values.blocks import TextBlock
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
