"""Which headers of a provider's reply its client gets too."""

from __future__ import annotations

import pytest

from bardo.planning.forwarded import UPSTREAM_ID, passed_headers, without_limits
from bardo.values.secrets import Secrets


@pytest.mark.parametrize(
    "name",
    [
        "anthropic-ratelimit-requests-remaining",
        "anthropic-ratelimit-unified-status",
        "x-ratelimit-reset-tokens",
        "x-codex-primary-used-percent",
        "x-codex-spark-limit-name",
        "x-should-retry",
    ],
)
def test_limits_and_whether_to_try_again_are_passed_on(name: str) -> None:
    assert passed_headers({"content-type": "application/json", name: "49", "set-cookie": "a"}) == ((name, "49"),)


@pytest.mark.parametrize("name", ["request-id", "x-request-id", "x-amzn-requestid"])
def test_the_providers_id_of_the_request_has_a_name_of_bardos_own(name: str) -> None:
    assert passed_headers({name: "req_1"}) == ((UPSTREAM_ID, "req_1"),)


@pytest.mark.parametrize("value", ["", "a\r\nset-cookie: b", "x" * 129, "n\u00fcn", " 1"])
def test_a_value_that_is_no_plain_word_is_left_out(value: str) -> None:
    assert passed_headers({"x-ratelimit-limit-tokens": value, "request-id": value}) == ()


def test_a_value_with_a_secret_is_left_out() -> None:
    secrets = Secrets(["sk-live-0123456789abcdef"])
    assert passed_headers({"x-ratelimit-key": "of sk-live-0123456789abcdef", "x-should-retry": "true"}, secrets) == (
        ("x-should-retry", "true"),
    )


def test_a_provider_that_sends_ever_more_of_them_is_cut_short() -> None:
    assert len(passed_headers({f"x-ratelimit-{number}": "1" for number in range(1000)})) < 100


def test_a_key_with_limits_of_its_own_gets_none_of_the_providers() -> None:
    assert without_limits([("X-RateLimit-Limit", "1"), ("anthropic-ratelimit-a", "1"), ("x-should-retry", "true")]) == [
        ("x-should-retry", "true")
    ]


def test_a_login_is_told_its_own_limits_beside_those_of_its_key() -> None:
    of_login = [("anthropic-ratelimit-unified-status", "allowed"), ("X-Codex-Primary-Used-Percent", "1")]
    others = [("x-ratelimit-limit-requests", "1"), ("anthropic-ratelimit-requests-remaining", "1")]
    assert without_limits([*of_login, *others], keeps_login=True) == of_login
    assert without_limits([*of_login, *others]) == []


def test_what_ties_a_turn_to_a_server_of_its_provider_is_no_limit() -> None:
    assert passed_headers({"x-codex-turn-state": "opaque"}) == ()
