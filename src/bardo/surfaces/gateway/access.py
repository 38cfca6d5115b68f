"""Which requests the gateway answers: those that name this host, and those that no foreign web page has made.

A page in a browser can send requests to any address. Its `Origin` says where it comes from; a name that leads to this machine by a
stranger's DNS (DNS rebinding) is seen in `Host`. Bodies must say that they are JSON, since pages may send other types without asking.
"""

from __future__ import annotations

import ipaddress
import re

from bardo.adapters.config.gateway import GatewaySettings, is_loopback_host
from bardo.surfaces.gateway.client_head import Lines, head_of
from bardo.surfaces.gateway.http import Message, Scope, Send, headers_of
from bardo.values.errors import Forbidden, InvalidRequest, UnsupportedMediaType, UpgradeRequired

Pairs = list[tuple[bytes, bytes]]

_JSON = re.compile(r"application/(?:[a-z0-9!#$&^_.+-]+\+)?json")
_PORT = re.compile(r":\d*$")
_HEADER_NAMES = re.compile(r"[-!#$%&'*+.^_`|~0-9A-Za-z, ]{0,2000}")
_KNOWN_HOSTS = 256
# A program before bardo may look at another of two keys than bardo does.
_ONCE = (b"host", b"origin", b"content-type", b"authorization", b"x-api-key", b"x-goog-api-key", b"api-key")


class Access:
    """What `[gateway]` says of hosts and origins."""

    def __init__(self, gateway: GatewaySettings) -> None:
        self._names = {"localhost", *map(_plain_host, (gateway.host, *gateway.allowed_hosts))}
        self._any_host = "*" in gateway.allowed_hosts
        # A name can be made to lead here, an address cannot: addresses of this machine need not be listed.
        self._any_address = not is_loopback_host(gateway.host)
        self._origins = {origin.lower() for origin in gateway.allowed_origins}
        self._checked_hosts: set[bytes] = set()

    def check(self, scope: Scope) -> str:
        """Return the origin of the web page that a request comes from, empty where it comes from none or from this host.

        Raises Forbidden for a foreign host or origin, InvalidRequest for headers that are missing or given twice, UpgradeRequired for a
        WebSocket.
        """
        head = head_of(scope)
        if head.accepted_by is self:
            return ""
        fields = head.fields
        host = fields.get(b"host")
        if host not in self._checked_hosts:
            self._check_host(host, scope)
        if b"upgrade" in fields and b"websocket" in fields[b"upgrade"].lower():
            raise UpgradeRequired("WebSockets are not served here", hint="send the request by HTTP")
        if len(fields) != len(head.lines):
            _check_repeated(head.lines)
        origin = fields.get(b"origin")
        if origin is not None:
            return self._check_origin(origin.decode("latin-1"), str(host or b"", "latin-1"))
        if host is not None:
            head.accepted_by = self
        return ""

    def allowed_origin(self, headers: Pairs) -> str:
        """Return the listed origin that a request names, empty where there is none: for errors made without `check`."""
        origin = dict(headers).get(b"origin", b"").decode("latin-1")
        return origin if self._is_listed(origin) else ""

    def _check_host(self, host: bytes | None, scope: Scope) -> None:
        if host is None:
            if scope.get("http_version") == "1.0":
                return
            raise InvalidRequest("the request has no Host header", hint="send one", param="Host")
        name = _plain_host(str(host, "latin-1"))
        if not (self._any_host or name in self._names or self._is_own_address(name)):
            hint = 'use its address, or list the name under [gateway]: allowed_hosts = ["…"]'
            raise Forbidden(f"this gateway is not called {name[:200]!r}", hint=hint)
        if len(self._checked_hosts) < _KNOWN_HOSTS:
            self._checked_hosts.add(host)

    def _is_own_address(self, name: str) -> bool:
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return self._any_address or address.is_loopback

    def _check_origin(self, origin: str, host: str) -> str:
        if origin.lower() in (f"http://{host.lower()}", f"https://{host.lower()}"):
            return ""
        if self._is_listed(origin):
            return origin
        message = f"requests from the web page {origin[:200]!r} are not answered"
        raise Forbidden(message, hint='list it under [gateway] in bardo.toml: allowed_origins = ["…"]')

    def _is_listed(self, origin: str) -> bool:
        return bool(origin) and ("*" in self._origins or origin.lower() in self._origins)


def _plain_host(host: str) -> str:
    """Return a host without its port, brackets and final dot, in lower case; addresses in their shortest form."""
    bare = host.strip().lower()
    if bare.startswith("["):
        address, _, port = bare[1:].partition("]")
        # What stands behind the bracket is a port or nothing, and between the brackets an IPv6 address.
        bare = address if ":" in address and not _PORT.sub("", port) else bare
    elif bare.count(":") == 1:
        bare = _PORT.sub("", bare)
    bare = bare.removesuffix(".")
    try:
        return str(ipaddress.ip_address(bare))
    except ValueError:
        return bare


def _check_repeated(headers: Lines) -> None:
    for once in _ONCE:
        if sum(name == once for name, _ in headers) > 1:
            raise InvalidRequest(f"the header {once.decode()} is given twice", hint="send it once", param=once.decode())


def require_json(scope: Scope) -> None:
    """Raise UnsupportedMediaType where a body does not say that it is JSON.

    Programs may leave the content type out. A web page may not: browsers send such bodies to any address without asking.
    """
    head = head_of(scope)
    if head.is_json:
        return
    fields = head.fields
    kind = fields.get(b"content-type")
    named = str(kind or b"", "latin-1").partition(";")[0].strip().lower()
    if not _JSON.fullmatch(named) and (kind is not None or b"origin" in fields):
        said = f"the content type is {named[:200]!r}" if kind is not None else "the body has no content type"
        raise UnsupportedMediaType(said, hint="send the header content-type: application/json")
    head.is_json = True


def is_preflight(scope: Scope, origin: str) -> bool:
    """Return whether a browser asks what a web page of `origin` may send."""
    return bool(origin) and scope["method"] == "OPTIONS" and b"access-control-request-method" in headers_of(scope)


async def answer_preflight(scope: Scope, send: Send) -> None:
    """Answer a CORS preflight: the page may send what it asked for. `send` adds the origin."""
    fields = headers_of(scope)
    wanted = fields.get(b"access-control-request-headers", b"").decode("latin-1")
    headers = [
        (b"access-control-allow-methods", b"GET, HEAD, POST, DELETE"),
        (b"access-control-max-age", b"600"),
    ]
    if wanted and _HEADER_NAMES.fullmatch(wanted):
        headers.append((b"access-control-allow-headers", wanted.encode("latin-1")))
    if fields.get(b"access-control-request-private-network") == b"true":
        headers.append((b"access-control-allow-private-network", b"true"))
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def for_origin(send: Send, origin: str) -> Send:
    """Return a `send` whose replies a page of `origin` may read, headers included."""

    async def send_with_origin(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *origin_headers(origin)]}
        await send(message)

    return send_with_origin


def origin_headers(origin: str) -> Pairs:
    """Return the headers that let a page of `origin` read a reply."""
    return [
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"access-control-expose-headers", b"*"),
        (b"vary", b"Origin"),
    ]
