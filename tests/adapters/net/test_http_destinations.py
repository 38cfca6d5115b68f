"""A provider's name never leads to the services that hand out a machine's own credentials, however it is spelt and whenever it changes."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from bardo.adapters.net.addresses import ForbiddenAddress, allowed_addresses, is_forbidden
from bardo.adapters.net.client import Call, HttpTransport
from bardo.adapters.net.fake import FakeReply
from bardo.values.errors import Unreachable
from support.tiny_provider import USUAL, TinyProvider, answering

pytestmark = pytest.mark.each_python

METADATA = "169.254.169.254"


@pytest.mark.parametrize(
    "address",
    [
        METADATA,
        "169.254.170.2",
        "169.254.170.23",
        f"::ffff:{METADATA}",
        "::ffff:a9fe:a9fe",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::1",
        f"::{METADATA}",
        f"::ffff:0:{METADATA}",
        "64:ff9b:1::a9fe:a9fe",
        "64:ff9b:1:2:3::a9fe:a9fe",
        "2001:0:102:304::5601:5601",
        "fd00:ec2::254",
        "fd00:ec2::23",
        "fd00:ec2::253",
        "fd20:ce::254",
        "fd00:c1::a9fe:a9fe",
        "fd00:42::42",
        "fd00:100::100:200",
        "fd00:a9fe:a9fe::1",
        "fe80::a9fe:a9fe%eth0",
        "169.254.42.42",
        "100.100.100.200",
        "192.0.0.192",
        "168.63.129.16",
        "::ffff:168.63.129.16",
        "64:ff9b::a83f:8110",
        "64:ff9b:1:a9fe:a9:fe00::",
        "64:ff9b:1:a9:fe:a9fe::",
        "64:ff9b:1::a9:fea9:fe00:0",
        "2a00::5efe:a9fe:a9fe",
        "2a00::200:5efe:a9fe:a9fe",
        "0.1.2.3",
        "255.255.255.255",
        "0.0.0.0",
        "::",
        "224.0.0.1",
        "ff02::1",
    ],
)
def test_a_name_may_not_lead_there(address: str) -> None:
    assert is_forbidden(address)
    with pytest.raises(ForbiddenAddress):
        allowed_addresses("provider.example", [line_of(address)])
    assert allowed_addresses(address, [line_of(address)]), "an operator may write it as an address"


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "::1",
        "10.1.2.3",
        "192.168.1.5",
        "172.16.0.1",
        "::7f00:1",
        "64:ff9b::808:808",
        "64:ff9b:1::808:808",
        "64:ff9b:1:808:8:800::",
        "fd20:ce::1",
        "fd00::254",
        "168.63.129.17",
        "2a00::5efe:808:808",
        "fe80::1%eth0",
        "fd12::1",
        "8.8.8.8",
        "2a00::1",
    ],
)
def test_local_servers_and_public_ones_are_reached(address: str) -> None:
    assert not is_forbidden(address)
    assert allowed_addresses("provider.example", [line_of(address)])


def test_of_several_addresses_the_allowed_ones_are_taken() -> None:
    lines = [line_of(METADATA), line_of("10.0.0.1")]
    assert allowed_addresses("provider.example", lines) == lines[1:]


def line_of(address: str, port: int = 80) -> Any:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return (family, socket.SOCK_STREAM, 6, "", (address, port))


async def sent(url: str) -> int:
    """Send one call with a client of its own, and return the status."""
    transport = HttpTransport()
    try:
        reply = await transport.send(Call(method="GET", url=url, headers={}, body=b"", provider="it"), USUAL)
        await reply.read(100)
        return reply.status
    finally:
        await transport.close()


@pytest.mark.usefixtures("each_loop")
@pytest.mark.parametrize(
    "host", ["2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "0xa9.0xfe.0xa9.0xfe", "169.16689662"]
)
def test_another_spelling_of_the_number_is_no_way_around(host: str) -> None:
    with pytest.raises(Unreachable, match="leads to an address that no provider has"):
        asyncio.run(sent(f"http://{host}/latest/meta-data/"))


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Return what names resolve to from now on, to which tests add."""
    known: dict[str, list[str]] = {}
    real = socket.getaddrinfo

    def resolve(host: Any, port: Any, *rest: Any, **named: Any) -> Any:
        return [line_of(one, port or 0) for one in known[host]] if host in known else real(host, port, *rest, **named)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return known


# uvloop resolves names by itself.
def test_a_name_that_is_changed_leads_nowhere_else(names: dict[str, list[str]]) -> None:
    async def scene() -> None:
        provider = TinyProvider(answering(FakeReply(chunks=[b"ok"])))
        url = (await provider.start()).replace("127.0.0.1", "provider.example")
        try:
            names["provider.example"] = ["127.0.0.1"]
            assert await sent(url) == 200
            names["provider.example"] = [METADATA]
            with pytest.raises(
                Unreachable, match=r"provider\.example:\d+ leads to an address that no provider has"
            ) as caught:
                await sent(url)
            assert "written as one" in (caught.value.hint or "")
            names["provider.example"] = [METADATA, "127.0.0.1"]
            assert await sent(url) == 200
            assert len(provider.calls) == 2
        finally:
            await provider.stop()

    asyncio.run(scene())
