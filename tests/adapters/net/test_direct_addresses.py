"""How a URL is reached: what is sent as it is, what is escaped, and what leads nowhere."""

from __future__ import annotations

import pytest

from bardo.adapters.net.addresses import Address, Proxy, proxy_of, way_of
from bardo.adapters.net.connection import connect_head

pytestmark = pytest.mark.each_python


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bardo.adapters.net.addresses.proxy_for", lambda scheme, host, port: None)


@pytest.mark.parametrize(
    ("url", "host", "port", "line", "target"),
    [
        ("http://a.example", "a.example", 80, b"a.example", b"/"),
        ("HTTPS://A.example/v1?x=%2f", "a.example", 443, b"A.example", b"/v1?x=%2f"),
        ("http://a.example:81/a%20b/é", "a.example", 81, b"a.example:81", b"/a%20b/%C3%A9"),
        ("http://a.example/a b?c=d e", "a.example", 80, b"a.example", b"/a%20b?c=d%20e"),
        ("http://a.example/v1#part", "a.example", 80, b"a.example", b"/v1"),
        ("http://bücher.example:8/x", "xn--bcher-kva.example", 8, b"xn--bcher-kva.example:8", b"/x"),
        ("http://[::1]:8080/v1", "::1", 8080, b"[::1]:8080", b"/v1"),
        ("http://[fe80::1%eth0]:8080/v1", "fe80::1%eth0", 8080, b"[fe80::1]:8080", b"/v1"),
    ],
)
def test_a_url_is_a_host_a_port_and_a_target(url: str, host: str, port: int, line: bytes, target: bytes) -> None:
    way = way_of(url)
    assert way is not None
    assert (way.address.host, way.address.port, way.host, way.target, way.headers) == (host, port, line, target, ())


@pytest.mark.parametrize(
    "url",
    [
        "",
        "nonsense",
        "ftp://a.example/",
        "http://",
        "http:///v1",
        "http://a b.example/",
        "http://a.example:port/",
        "http://a.example:99999/",
        "http://a%2eexample/",
        "http://a\\b.example/",
        "http://a..example/",
        "http://stra\u00dfe.example/",
        f"http://{'a' * 64}.example/",
    ],
)
def test_what_is_no_address_leads_nowhere(url: str) -> None:
    assert way_of(url) is None


def test_a_user_and_a_password_become_a_header() -> None:
    way = way_of("http://some%40body:p%3Aw@a.example/v1")
    assert way is not None
    assert (way.address, way.host) == (Address(False, "a.example", 80), b"a.example")
    assert way.headers == (("authorization", "Basic c29tZUBib2R5OnA6dw=="),)


def test_a_proxy_is_asked_for_a_host_and_told_its_own_password_only() -> None:
    proxy = proxy_of("http://u:p@proxy.example:3128")
    assert proxy == Proxy(False, "proxy.example", 3128, "Basic dTpw")
    head = connect_head(Address(True, "::1", 443, proxy))
    assert head == b"CONNECT [::1]:443 HTTP/1.1\r\nhost: [::1]:443\r\nproxy-authorization: Basic dTpw\r\n\r\n"
    without = connect_head(Address(True, "a.example", 443, proxy._replace(authorization="")))
    assert without == b"CONNECT a.example:443 HTTP/1.1\r\nhost: a.example:443\r\n\r\n"
