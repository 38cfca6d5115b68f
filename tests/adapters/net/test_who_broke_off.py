"""What a client reads of a reply that broke off names the provider, and not where the operator reaches it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bardo.adapters.net.calls import Call, Deadlines
from bardo.adapters.net.problems import broken_off, no_first_byte, out_of_time, oversized, stalled, unreadable
from bardo.values.errors import ProviderError

PROBLEMS: dict[str, Callable[[Call], ProviderError]] = {
    "broke off": lambda call: broken_off(call, "the connection closed before its end"),
    "stalled": lambda call: stalled(call, 3.0),
    "sent nothing": lambda call: no_first_byte(call, Deadlines()),
    "took too long": lambda call: out_of_time(call, 3.0),
    "sent no HTTP": lambda call: unreadable(call, "its status is 000"),
    "packed it unasked": lambda call: unreadable(call, "content-encoding: br"),
    "sent too much": lambda call: oversized(call, 10),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_reply_that_broke_names_its_provider(name: str) -> None:
    said = str(PROBLEMS[name](Call(url="http://10.2.3.4:8000/v1/chat", provider="kitchen")))
    assert "kitchen" in said
    assert "10.2.3.4" not in said


def test_a_call_of_no_provider_names_the_host() -> None:
    assert "10.2.3.4:8000" in str(stalled(Call(url="http://10.2.3.4:8000/v1/chat"), 3.0))
