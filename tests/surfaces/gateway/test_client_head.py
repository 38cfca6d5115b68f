"""What follows from a request's headers is found once for all requests that have the same, and anew where one of them is another."""

from __future__ import annotations

from typing import Any

import pytest

from bardo.adapters.config.gateway import GatewaySettings
from bardo.surfaces.gateway.callers import Access, caller_of, head_of, require_json, with_headers
from bardo.values.errors import Forbidden, InvalidRequest, UnsupportedMediaType
from bardo.values.request import Request

PLAIN = ((b"host", b"gateway.example"), (b"content-type", b"application/json"), (b"authorization", b"Bearer head-key"))


def scope(*headers: tuple[bytes, bytes]) -> dict[str, Any]:
    return {"type": "http", "method": "POST", "headers": list(headers)}


def asked(*headers: tuple[bytes, bytes]) -> Request:
    return with_headers(Request(model="m", messages=()), scope(*PLAIN, *headers))


def test_requests_that_differ_in_their_length_and_in_what_is_not_read_have_one_head() -> None:
    first = head_of(scope(*PLAIN, (b"content-length", b"10"), (b"x-other", b"1")))
    assert head_of(scope((b"x-other", b"2"), *PLAIN, (b"content-length", b"11"))) is first
    assert head_of(scope(*PLAIN, (b"user-agent", b"a"))) is not first
    assert "head-key" not in repr(first)


def test_a_host_that_another_configuration_allowed_is_refused() -> None:
    open_to, closed = Access(GatewaySettings(allowed_hosts=("gateway.example",))), Access(GatewaySettings())
    for _ in range(2):
        assert open_to.check(scope(*PLAIN)) == ""
        with pytest.raises(Forbidden):
            closed.check(scope(*PLAIN))


def test_a_second_host_is_refused_where_the_first_was_accepted() -> None:
    access = Access(GatewaySettings(allowed_hosts=("gateway.example",)))
    assert access.check(scope(*PLAIN)) == ""
    with pytest.raises(InvalidRequest):
        access.check(scope(*PLAIN, (b"host", b"gateway.example")))


def test_a_request_of_an_older_version_without_a_host_accepts_no_newer_one() -> None:
    access = Access(GatewaySettings())
    assert access.check({**scope((b"user-agent", b"no-host")), "http_version": "1.0"}) == ""
    with pytest.raises(InvalidRequest):
        access.check({**scope((b"user-agent", b"no-host")), "http_version": "1.1"})


def test_a_foreign_page_is_refused_each_time() -> None:
    access = Access(GatewaySettings(allowed_hosts=("gateway.example",)))
    for _ in range(2):
        with pytest.raises(Forbidden):
            access.check(scope(*PLAIN, (b"origin", b"https://elsewhere.example")))


def test_a_body_that_is_no_json_is_refused_each_time() -> None:
    require_json(head_of(scope(*PLAIN)))
    for _ in range(2):
        with pytest.raises(UnsupportedMediaType):
            require_json(head_of(scope((b"content-type", b"text/plain"), *PLAIN)))


def test_options_keys_and_headers_are_those_of_each_request() -> None:
    assert asked().options.verify is None
    assert asked((b"user-agent", b"one")).client_headers == {"user-agent": "one"}
    assert asked((b"user-agent", b"two")).client_headers == {"user-agent": "two"}
    assert asked((b"anthropic-beta", b"a"), (b"anthropic-beta", b"b")).headers == {"anthropic-beta": "a, b"}
    assert asked((b"x-bardo-session", b"s1")).options.session == "s1"
    assert asked((b"x-bardo-session", b"s2")).options.session == "s2"
    keys = [caller_of(scope((b"authorization", b"Bearer " + key))).key for key in (b"one", b"two", b"one")]
    assert keys == ["one", "two", "one"]


def test_a_header_that_cannot_be_sent_on_is_refused_each_time() -> None:
    for _ in range(2):
        with pytest.raises(InvalidRequest):
            asked((b"anthropic-beta", b"a\xff"))


def test_long_heads_and_names_are_not_kept() -> None:
    long = scope(*PLAIN, (b"user-agent", b"x" * 5000), (b"n" * 70, b"1"))
    assert head_of(dict(long)) is not head_of(dict(long))


def test_a_key_in_the_address_is_that_of_each_request() -> None:
    keys = [
        caller_of({**scope((b"user-agent", b"by-query")), "query_string": query}).key for query in (b"key=one", b"")
    ]
    assert keys == ["one", ""]
