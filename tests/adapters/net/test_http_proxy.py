"""Proxies of the environment stand before every host that is not excepted, and are named when they fail."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable

import pytest

from bardo.adapters.net.addresses import proxy_for
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
        (".example", "api.provider.example", False),
        ("other.example", "provider.example", True),
        ("*", "provider.example", False),
        ("10.0.0.0/8, fd00::/8", "10.1.2.3", False),
        ("10.0.0.0/8, fd00::/8", "fd00::1", False),
        ("10.0.0.0/8", "11.1.2.3", True),
        ("10.0.0.0/8", "provider.example", True),
        ("not/a/network", "10.1.2.3", True),
    ],
)
def test_a_host_that_is_excepted_needs_no_proxy(
    surroundings: Surroundings, exceptions: str, host: str, used: bool
) -> None:
    surroundings(HTTPS_PROXY="http://proxy.example:3128", NO_PROXY=exceptions)
    assert (proxy_for("https", host) is not None) is used


@pytest.mark.parametrize("value", ["socks5://127.0.0.1:1080", "http://", "http://proxy.example:port"])
def test_a_proxy_of_another_kind_is_not_silently_left_out(surroundings: Surroundings, value: str) -> None:
    surroundings(HTTPS_PROXY=value)
    with pytest.raises(ConfigError, match=r"the proxy for provider\.example"):
        proxy_for("https", "provider.example")


def test_a_proxy_is_for_its_own_scheme(surroundings: Surroundings) -> None:
    surroundings(HTTP_PROXY="http://proxy.example:3128")
    assert proxy_for("https", "provider.example") is None
    assert proxy_for("http", "provider.example") == "http://proxy.example:3128"
