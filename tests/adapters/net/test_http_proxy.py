"""Proxies of the environment stand before every host that is not excepted, and are named when they fail."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Callable

import pytest

from bardo.adapters.log_filter import clean_log_lines
from bardo.adapters.net.addresses import check_proxies, proxy_for, way_of
from bardo.adapters.net.client import Call, HttpTransport
from bardo.adapters.net.fake import FakeReply
from bardo.values.errors import ConfigError, Unreachable
from support.tiny_provider import SECRET, USUAL, TinyProvider, answering

pytestmark = [pytest.mark.each_python, pytest.mark.usefixtures("each_loop")]

Surroundings = Callable[..., None]


@pytest.fixture
def surroundings(monkeypatch: pytest.MonkeyPatch) -> Surroundings:
    """Set the environment's proxies, and only these."""

    def set_all(**values: str) -> None:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
            monkeypatch.delenv(name.lower(), raising=False)
        for name, value in values.items():
            monkeypatch.setenv(name, value)

    return set_all


def through(reply: FakeReply, url: str, surroundings: Surroundings) -> TinyProvider:
    """Send a call to `url` through a proxy that answers everything with `reply`, and return the proxy."""
    proxy = TinyProvider(answering(reply))

    async def run() -> None:
        transport = HttpTransport()
        place = (await proxy.start()).removeprefix("http://")
        surroundings(HTTP_PROXY=f"http://somebody:{SECRET}@{place}", HTTPS_PROXY=place)
        try:
            await (await transport.send(Call(url=url, body=b"{}", provider="tiny"), USUAL)).read(100)
        finally:
            await transport.close()
            await proxy.stop()

    asyncio.run(run())
    return proxy


def test_a_call_goes_through_the_proxy_with_its_password(surroundings: Surroundings) -> None:
    proxy = through(FakeReply(chunks=[b"ok"]), "http://provider.example/v1/chat?a=b", surroundings)
    [call] = proxy.calls
    assert (call.method, call.url, call.body) == ("POST", "http://provider.example/v1/chat?a=b", b"{}")
    password = base64.b64encode(f"somebody:{SECRET}".encode()).decode()
    assert call.headers["proxy-authorization"] == f"Basic {password}"
    assert "authorization" not in call.headers


def test_a_proxy_that_opens_no_way_is_named(surroundings: Surroundings) -> None:
    with pytest.raises(Unreachable) as caught:
        through(FakeReply(status=407), f"https://provider.example/v1?key={SECRET}", surroundings)
    assert caught.value.message == "the proxy opens no way to provider.example:443: 407 Status"
    assert "NO_PROXY" in caught.value.hint
    assert SECRET not in str(caught.value)


def test_a_proxy_that_is_not_there_is_named(surroundings: Surroundings) -> None:
    surroundings(ALL_PROXY=f"http://somebody:{SECRET}@127.0.0.1:1")

    async def run() -> None:
        transport = HttpTransport()
        try:
            await transport.send(Call(url="https://provider.example/", provider="tiny"), USUAL)
        finally:
            await transport.close()

    with pytest.raises(Unreachable) as caught:
        asyncio.run(run())
    assert caught.value.message == "no connection to the proxy 127.0.0.1:1: connection refused"
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("exceptions", "host", "used"),
    [
        ("", "provider.example", True),
        ("provider.example", "provider.example", False),
        ("provider.example", "api.provider.example", False),
        ("PROVIDER.example.", "provider.example", False),
        ("provider.example", "provider.example.", False),
        (".example", "api.provider.example", False),
        (".provider.example", "provider.example", False),
        ("*.provider.example", "api.provider.example", False),
        ("vider.example", "provider.example", True),
        ("provider.example.org", "provider.example", True),
        ("other.example", "provider.example", True),
        ("other.example,provider.example", "provider.example", False),
        (" other.example  provider.example ", "provider.example", False),
        ("bücher.example", "xn--bcher-kva.example", False),
        ("*", "provider.example", False),
        ("other.example, *", "provider.example", False),
        ("*", "10.1.2.3", False),
        ("provider.example:443", "provider.example", False),
        ("provider.example:8443", "provider.example", True),
        ("provider.example:x", "provider.example", True),
        ("10.1.2.3", "10.1.2.3", False),
        ("10.1.2.3:443", "10.1.2.3", False),
        ("10.1.2.3:80", "10.1.2.3", True),
        ("10.1.2", "10.1.2.3", True),
        ("2.3", "10.1.2.3", True),
        ("10.0.0.0/8, fd00::/8", "10.1.2.3", False),
        ("10.0.0.0/8, fd00::/8", "fd00::1", False),
        ("[fd00::1]:443", "fd00::1", False),
        ("[fd00::1]:80", "fd00::1", True),
        ("[fd00::1]", "fd00:0::1", False),
        ("fd00::1", "fd00::1", False),
        ("fe80::1", "fe80::1%eth0", False),
        ("10.0.0.0/8", "11.1.2.3", True),
        ("10.0.0.0/8", "provider.example", True),
        ("not/a/network", "10.1.2.3", True),
        (", ,", "provider.example", True),
    ],
)
def test_a_host_that_is_excepted_needs_no_proxy(
    surroundings: Surroundings, exceptions: str, host: str, used: bool
) -> None:
    surroundings(HTTPS_PROXY="http://proxy.example:3128", NO_PROXY=exceptions)
    assert (proxy_for("https", host, 443) is not None) is used


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("socks5://somebody:{}@127.0.0.1:1080", "is of the kind socks5"),
        ("SOCKS5H://127.0.0.1:1080", "is of the kind socks5h"),
        ("http://", "has no usable address"),
        ("http://somebody:{}@proxy.example:port", "has no usable address"),
        ("{}@[bad", "has no usable address"),
    ],
)
@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "ALL_PROXY"])
def test_a_proxy_of_another_kind_is_not_silently_left_out(
    surroundings: Surroundings, variable: str, value: str, said: str
) -> None:
    surroundings(**{variable: value.format(SECRET)})
    with pytest.raises(ConfigError) as caught:
        check_proxies(["http://127.0.0.1:1/v1", "https://provider.example/v1"])
    assert caught.value.message == (
        f"the proxy for provider.example in {variable} {said}: bardo goes through http and https proxies"
    )
    assert variable in caught.value.hint
    assert SECRET not in str(caught.value)


def test_a_proxy_that_nothing_goes_through_may_be_of_any_kind(surroundings: Surroundings) -> None:
    surroundings(ALL_PROXY="socks5://127.0.0.1:1080", HTTPS_PROXY="http://127.0.0.1:1", NO_PROXY=".internal")
    check_proxies(["http://localhost:1/v1", "https://provider.example", "http://model.internal:8000/v1"])


def test_a_proxy_is_for_its_own_scheme(surroundings: Surroundings) -> None:
    surroundings(HTTP_PROXY="http://proxy.example:3128")
    assert proxy_for("https", "provider.example", 443) is None
    assert proxy_for("http", "provider.example", 80) == "http://proxy.example:3128"


def test_the_password_of_a_proxy_is_kept_out_of_lines_and_errors(
    surroundings: Surroundings, caplog: pytest.LogCaptureFixture
) -> None:
    surroundings(HTTPS_PROXY=f"http://somebody:{SECRET}@proxy.example:3128")
    assert way_of("https://provider.example") is not None
    clean_log_lines()
    proof = base64.b64encode(f"somebody:{SECRET}".encode()).decode()
    logging.getLogger("bardo").warning("the proxy said %s and %s", proof, SECRET)
    assert SECRET not in caplog.text
    assert proof not in caplog.text
