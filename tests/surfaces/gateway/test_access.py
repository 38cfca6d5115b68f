"""Whom the gateway answers: requests that name this host, from no foreign web page, with a JSON body."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from bardo.adapters.config.gateway import check_bind, is_loopback_host
from bardo.adapters.config.settings import GatewaySettings, parse_settings
from bardo.surfaces.gateway.callers import Access
from bardo.values.errors import ConfigError, Forbidden, InvalidRequest
from support.any_model import Simulator
from support.gateway import House, house
from support.raw import RawClient, head, post
from support.talk import ALL_CLIENTS, Answer, ask, body_for, path_for, request
from surfaces.gateway.refusals import refusal

PAGE = "https://app.example.org"
each_client = pytest.mark.parametrize("client", ALL_CLIENTS)


@pytest.fixture(scope="module")
def guarded() -> Iterator[House]:
    """A gateway that one web page may call, and that has a further name."""
    gateway = {"allowed_origins": (PAGE,), "allowed_hosts": ("gateway.example.org",)}
    with house([Simulator("deepseek")], gateway=gateway) as running:
        yield running


def asked(town: House, client: str, headers: Mapping[str, str], *, stream: bool = False) -> Answer:
    return ask(town.address, client, "deepseek/m1", stream=stream, headers=headers)


@each_client
@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:80",
        "127.0.0.1.evil.example",
        "0.0.0.0",
        "10.0.0.1",
        "[::2]:1",
        "[::1].evil.example",
        "[127.0.0.1].evil.example",
        "",
    ],
)
def test_a_foreign_host_is_403(guarded: House, client: str, host: str) -> None:
    before = len(guarded.arrived("deepseek"))
    answer = asked(guarded, client, {"host": host})
    assert answer.status == 403
    assert "allowed_hosts" in refusal(client, answer)
    assert len(guarded.arrived("deepseek")) == before


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/v1/models", "/nothing"])
def test_a_foreign_host_learns_nothing(guarded: House, path: str) -> None:
    assert request(guarded.address, "GET", path, headers={"host": "evil.example"}).status == 403


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST:1", "localhost.", "127.0.0.1", "127.0.0.2:9", "[::1]:8484", "gateway.example.org:443"],
)
def test_the_names_of_this_host_are_served(guarded: House, host: str) -> None:
    assert request(guarded.address, "GET", "/healthz", headers={"host": host}).status == 200


@pytest.mark.parametrize(
    ("gateway", "host", "served"),
    [
        ({"host": "0.0.0.0"}, "192.168.1.5:8484", True),
        ({"host": "::"}, "[fd00::1]:8484", True),
        ({"host": "0.0.0.0"}, "machine.lan", False),
        ({"host": "machine.lan"}, "machine.lan:8484", True),
        ({"allowed_hosts": ("*",)}, "anything.example", True),
        ({"allowed_hosts": ("Proxy.Example",)}, "proxy.example", True),
    ],
)
def test_what_it_listens_on_says_how_it_may_be_called(gateway: dict[str, Any], host: str, served: bool) -> None:
    access = Access(GatewaySettings(**gateway))
    scope = {"type": "http", "method": "GET", "http_version": "1.1", "headers": [(b"host", host.encode())]}
    for _ in range(2):
        if served:
            assert access.check(scope) == ""
        else:
            with pytest.raises(Forbidden):
                access.check(scope)


def test_many_hosts_are_not_remembered() -> None:
    access = Access(GatewaySettings(allowed_hosts=("*",)))
    for number in range(10_000):
        access.check({"http_version": "1.1", "headers": [(b"host", b"h%d" % number)]})
    assert len(access._checked_hosts) < 1000


def test_a_host_is_needed_once_except_by_old_clients(guarded: House) -> None:
    cases = {
        b"GET /healthz HTTP/1.1\r\n\r\n": 400,
        b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nhost: localhost\r\n\r\n": 400,
        b"GET /healthz HTTP/1.0\r\n\r\n": 200,
    }
    for sent, status in cases.items():
        with RawClient(guarded.address) as client:
            client.send(sent)
            assert client.reply().status == status


FOREIGN = (
    "https://evil.example",
    "null",
    "http://localhost:3000",
    "file://",
    "https://app.example.org.evil.example",
    "",
)


# Whose page it is is decided before anybody knows the dialect, which decides how the refusal is written.
@pytest.mark.parametrize(
    ("client", "origin", "content_type"),
    [
        *(("openai_chat", origin, kind) for origin in FOREIGN for kind in ("text/plain", "application/json")),
        *((client, FOREIGN[0], "application/json") for client in ALL_CLIENTS if client != "openai_chat"),
    ],
)
def test_a_foreign_web_page_is_not_answered(guarded: House, client: str, origin: str, content_type: str) -> None:
    before = len(guarded.arrived("deepseek"))
    answer = asked(guarded, client, {"origin": origin, "content-type": content_type})
    assert answer.status == 403
    assert "allowed_origins" in refusal(client, answer)
    assert not any(name.startswith("access-control") for name in answer.headers)
    assert len(guarded.arrived("deepseek")) == before


def test_a_foreign_page_may_not_ask_what_it_may_send(guarded: House) -> None:
    headers = {"origin": "https://evil.example", "access-control-request-method": "POST"}
    answer = request(guarded.address, "OPTIONS", "/v1/chat/completions", headers=headers)
    assert answer.status == 403
    assert "access-control-allow-origin" not in answer.headers


def test_a_page_of_the_gateway_itself_is_answered(guarded: House) -> None:
    own = guarded.address
    assert asked(guarded, "openai_chat", {"origin": own}).status == 200


@each_client
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_listed_page_reads_replies_and_errors(guarded: House, client: str, stream: bool) -> None:
    answer = asked(guarded, client, {"origin": PAGE}, stream=stream)
    wrong = request(guarded.address, "POST", path_for(client, "deepseek/m1", stream=stream), b"{", {"origin": PAGE})
    assert (answer.status, wrong.status) == (200, 400)
    for one in (answer, wrong):
        assert one.headers["access-control-allow-origin"] == PAGE
        assert one.headers["access-control-expose-headers"] == "*"
        assert one.headers["vary"] == "Origin"


@each_client
def test_a_listed_page_may_ask_what_it_may_send(guarded: House, client: str) -> None:
    headers = {
        "origin": PAGE,
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type,x-stainless-os",
        "access-control-request-private-network": "true",
    }
    answer = request(guarded.address, "OPTIONS", path_for(client, "m"), headers=headers)
    assert (answer.status, answer.body) == (204, b"")
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert "POST" in answer.headers["access-control-allow-methods"]
    assert answer.headers["access-control-allow-headers"] == "authorization,content-type,x-stainless-os"
    assert answer.headers["access-control-allow-private-network"] == "true"


def test_errors_of_the_server_itself_can_be_read_by_a_listed_page(guarded: House) -> None:
    with RawClient(guarded.address) as client:
        client.send(head(client.host, "/v1/messages", origin=PAGE, x="y" * 100_000))
        answer = client.reply()
    assert answer.status == 431
    assert answer.json["type"] == "error"


@each_client
@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain",
        "text/plain;charset=UTF-8",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/xml",
        "application/jsonx",
        "text/plain, application/json",
        "",
    ],
)
def test_a_body_that_is_not_json_by_its_type_is_415(guarded: House, client: str, content_type: str) -> None:
    answer = asked(guarded, client, {"content-type": content_type})
    assert answer.status == 415
    assert "content-type: application/json" in refusal(client, answer)


@pytest.mark.parametrize(
    "content_type",
    ["application/json", "application/json; charset=utf-8", "Application/JSON", "application/vnd.api+json;v=1"],
)
def test_every_way_to_say_json_is_taken(guarded: House, content_type: str) -> None:
    assert asked(guarded, "openai_chat", {"content-type": content_type}).status == 200


def test_a_program_may_leave_the_content_type_out_and_a_web_page_may_not(guarded: House) -> None:
    body = b'{"model": "deepseek/m1", "messages": [{"role": "user", "content": "What is 27 * 43?"}]}'
    for origin, status in (({}, 200), ({"origin": PAGE}, 415)):
        with RawClient(guarded.address) as client:
            client.send(head(client.host, content_length=str(len(body)), **origin) + body)
            assert client.reply().status == status


@pytest.mark.parametrize("wanted", ["websocket", "WebSocket", "websocket, h2c"])
@pytest.mark.parametrize("path", ["/v1/messages", "/v1/chat/completions", "/v1/models", "/v1/realtime?model=m"])
def test_a_websocket_gets_426_so_that_its_client_goes_on_by_http(guarded: House, path: str, wanted: str) -> None:
    with RawClient(guarded.address) as client:
        client.send(
            head(
                client.host,
                path,
                "GET",
                connection="Upgrade",
                upgrade=wanted,
                sec_websocket_key="dGhlIHNhbXBsZSBub25jZQ==",
                sec_websocket_version="13",
            )
        )
        answer = client.reply()
        assert answer.status == 426
        assert answer.headers["upgrade"] == "HTTP/1.1"
        assert "WebSocket" in answer.json["error"]["message"]
        client.send(post(client.host, "/v1/chat/completions", b"{}"))
        assert client.reply().status == 400


@each_client
@pytest.mark.parametrize(
    "value", ["a\tb", "a\x01b", "caf\xe9", "a\x7fb"], ids=["tab", "control", "beyond ASCII", "delete"]
)
@pytest.mark.parametrize("name", ["anthropic-beta", "openai-beta"])
def test_a_header_that_cannot_be_sent_on_is_the_clients_fault(
    guarded: House, client: str, name: str, value: str
) -> None:
    with RawClient(guarded.address) as raw:
        body = json.dumps(body_for(client, "deepseek/m1")).encode()
        raw.send(post(raw.host, path_for(client, "deepseek/m1"), body, **{name: value}))
        answer = raw.reply()
    # The parser refuses some control characters itself.
    assert answer.status == 400
    message = refusal(client, Answer(answer.status, answer.headers, answer.body))
    assert name in message or "HTTP" in message


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost", "LOCALHOST", "a.localhost", "::ffff:127.0.0.1"]
)
def test_addresses_of_this_machine_alone_need_no_permission(host: str) -> None:
    assert is_loopback_host(host)
    check_bind(GatewaySettings(host=host), has_keys=False)


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "", "192.168.1.5", "machine.lan", "localhost.example.org", "::ffff:10.0.0.1"]
)
def test_without_keys_other_machines_are_served_only_where_that_is_allowed(host: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_bind(GatewaySettings(host=host), has_keys=False)
    assert "--allow-unauthenticated" in caught.value.hint
    check_bind(GatewaySettings(host=host, allow_unauthenticated=True), has_keys=False)
    check_bind(GatewaySettings(host=host), has_keys=True)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('allowed_origins = ["app.example.org"]', "line 2: 'app.example.org' is not an origin"),
        ('allowed_origins = ["https://app.example.org/page"]', "is not an origin"),
        ('allowed_hosts = ["http://gateway.example.org"]', "is not a host name"),
        ('allowed_hosts = ["a b"]', "is not a host name"),
    ],
)
def test_a_host_or_an_origin_that_no_request_can_name_is_told(line: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse_settings(f"[gateway]\n{line}\n")


@pytest.mark.parametrize("name", ["origin", "authorization", "x-api-key", "x-goog-api-key", "api-key", "content-type"])
def test_a_header_given_twice_is_refused(name: str) -> None:
    access, twice = Access(GatewaySettings()), name.encode()
    headers = [(b"host", b"localhost"), (twice, b"Bearer one"), (twice, b"Bearer two")]
    with pytest.raises(InvalidRequest, match=f"{name} is given twice"):
        access.check({"http_version": "1.1", "headers": headers})


def test_a_header_that_is_no_key_may_stand_twice() -> None:
    headers = [(b"host", b"localhost"), (b"anthropic-beta", b"one"), (b"anthropic-beta", b"two")]
    assert Access(GatewaySettings()).check({"http_version": "1.1", "headers": headers}) == ""
