"""Who calls: its origin, its key, the tenant that it belongs to, and what its headers say of its client and ask of bardo."""

from __future__ import annotations

import hashlib
import ipaddress
import re
from functools import lru_cache
from itertools import compress
from operator import itemgetter
from typing import Any, NamedTuple
from urllib.parse import parse_qs, quote

import msgspec

from bardo.adapters.config.accounts import Account
from bardo.adapters.config.gateway import GatewaySettings, is_loopback_host
from bardo.call.client_login import ClientLogin, headers_beside, login_of_headers
from bardo.context.sessions import names_of_headers
from bardo.dialects.shared.json_values import header_value
from bardo.dialects.shared.options import (
    REASONING_WORDS,
    includable,
    read_cache_control,
    read_intent,
    read_intent_header,
    read_label,
    read_pipeline,
    read_seconds_header,
    read_session,
    read_tick_header,
    read_verify,
    read_vitality_header,
)
from bardo.surfaces.gateway.http import Message, Scope, Send, header, headers_of
from bardo.values.errors import Forbidden, InvalidRequest, UnsupportedMediaType, UpgradeRequired
from bardo.values.once import once
from bardo.values.request import TRACE_HEADERS, BardoOptions, Intent, Request

Lines = tuple[tuple[bytes, bytes], ...]

ROUTING_HEADERS = frozenset((b"x-bardo-intent", b"x-bardo-subsystem", b"x-bardo-vitality", b"x-bardo-tick"))
FAILOVER_HEADERS = frozenset((b"x-bardo-deadline-seconds", b"x-bardo-allow-stale"))
_OPTION_HEADERS = (
    frozenset((b"x-bardo-include", b"x-bardo-reasoning", b"x-bardo-allow-loss", b"x-bardo-verify"))
    | ROUTING_HEADERS
    | FAILOVER_HEADERS
    | {b"x-bardo-pipeline", b"x-bardo-session", b"x-bardo-agent", b"x-bardo-repository", b"cache-control"}
)
# Headers that belong to a dialect: they ask its provider for features, and hold no secret. Anthropic's are an open list: Claude Code gains
# features by new ones (code.claude.com, llm-gateway-protocol, 2026-11).
_DIALECT_HEADERS = frozenset((b"openai-beta",))
_DIALECT_PREFIXES = (b"anthropic-",)
# Those of them that ask for nothing: which form the client speaks, and whether it is a web page.
_FORM_HEADERS = frozenset((b"anthropic-version", b"anthropic-dangerous-direct-browser-access"))
# Headers by which agents name themselves and their session: providers keep a session's prompts at one place by them, where caches hold.
_CLIENT_HEADERS = frozenset(
    (
        *(b"user-agent", b"x-app", b"originator", b"session-id", b"session_id", b"thread-id", b"conversation_id"),
        b"x-client-request-id",
        *(name.encode() for name in names_of_headers()),
    )
)
_PRINTABLE = bytes(range(0x20, 0x7F))
_CLIENT_PREFIXES = (b"x-claude-code-", b"x-codex-")
_KEYS = (b"authorization", b"x-api-key", b"x-goog-api-key", b"api-key")
GATEWAY_KEY = b"x-bardo-key"
"""The header of the gateway's own key for clients whose login, in the usual headers, is for a provider."""
_KEY_IN_PATH = re.compile(r"/k/([^/]+)(/.*)?")
_ACCESS_HEADERS = frozenset((b"host", b"origin", b"upgrade", b"content-type", b"content-encoding"))
_READ = _OPTION_HEADERS | _DIALECT_HEADERS | _CLIENT_HEADERS | _ACCESS_HEADERS | frozenset((*_KEYS, GATEWAY_KEY))
# A gateway without keys is sent words like `any` for one, which are in many a header.
_SHORTEST_SECRET = 12
# Each signature of AWS is another; the id of the key that made it stays.
_SIGNED = re.compile(r"AWS4-[A-Z0-9-]+ .*?Credential=([^/,\s]+)")

HEAD = "bardo.head"
"""Where a request's scope holds its ClientHead."""
_MOST_HEADS, _LONGEST_HEAD = 256, 4096
_MOST_NAMES, _LONGEST_NAME = 1024, 64


class ClientHead:
    """The headers of a request that bardo reads. `fields` has the first of each, `lines` all of them in their order.

    `names_key`: a header holds the gateway's key and nothing else, so that those that may hold one are for a provider.
    `accepted_by` is the Access that has checked it, `is_json` whether it was found to announce JSON, and `caller`
    the `tenants.Caller` where no keys are asked for: None if that was not found yet, or the key is not in a header.
    """

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self.fields = dict(reversed(lines))
        self.names_key = GATEWAY_KEY in self.fields
        self.accepted_by: object = None
        self.is_json = False
        self.caller: Any = None

    def __repr__(self) -> str:
        """Return how many headers there are: one of them may be a key."""
        return f"ClientHead({len(self.lines)} headers)"

    @once
    def key(self) -> str:
        """The key of the client, the id of the key where it signs requests as AWS's do, empty where no header holds one."""
        signed = None if self.names_key else _SIGNED.match(str(self.fields.get(_KEYS[0], b""), "latin-1"))
        if signed is not None:
            return signed[1]
        return next(iter(self.keys), "")

    @once
    def login(self) -> ClientLogin | None:
        """The client's own login, in the headers that may hold one; where the gateway asks for no key in another, its key is in them."""
        fields = {str(name, "latin-1"): str(value, "latin-1") for name, value in self.fields.items()}
        return login_of_headers(fields, gateway_key=self.key if self.names_key else "")

    @once
    def keys(self) -> tuple[str, ...]:
        """The different keys of all headers that may hold one, that of `Authorization` first. A signature is no key."""
        names = (GATEWAY_KEY,) if self.names_key else _KEYS
        raw = (str(self.fields.get(name, b""), "latin-1") for name in names)
        texts = (
            one.removeprefix("Bearer ").removeprefix("bearer ").strip() for one in raw if not one.startswith("AWS4-")
        )
        return tuple(dict.fromkeys(filter(None, texts)))

    @once
    def is_signed(self) -> bool:
        """Whether a request is signed as AWS's are, so that it holds no key."""
        return not self.names_key and self.fields.get(_KEYS[0], b"").startswith(b"AWS4-")

    @once
    def has_options(self) -> bool:
        """Whether a header asks something of bardo."""
        return not _OPTION_HEADERS.isdisjoint(self.fields)

    @once
    def passed_on(self) -> tuple[dict[str, str], dict[str, str]]:
        """The headers of the dialect, and those by which a program names itself. Raises InvalidRequest for one that cannot be sent on."""
        found: dict[str, str] = {}
        program: dict[str, str] = {}
        for name, value in self.lines:
            belongs = name in _DIALECT_HEADERS or name.startswith(_DIALECT_PREFIXES)
            if belongs and name not in _FORM_HEADERS and value:
                key = name.decode()
                text = header_value(str(value, "latin-1"), key)
                if not any(len(one) >= _SHORTEST_SECRET and one in text for one in self.keys):
                    found[key] = f"{found[key]}, {text}" if key in found else text
            elif belongs or name in _CLIENT_HEADERS or name.startswith(_CLIENT_PREFIXES):
                # A name in other letters is another session all the same, and no provider takes a header with such bytes.
                program[name.decode()] = quote(value, safe=_PRINTABLE)
        return found, program


def head_of(scope: Scope) -> ClientHead:
    """Return what follows from the headers of a request: the same object for requests that have the same."""
    head: ClientHead | None = scope.get(HEAD)
    if head is None:
        # Without a step of Python for each header.
        given = scope["headers"]
        lines = tuple(map(tuple, compress(given, map(_IS_READ.__getitem__, map(_name, given)))))
        is_short = sum(map(len, map(_value, lines))) <= _LONGEST_HEAD
        head = scope[HEAD] = _kept_head(lines) if is_short else ClientHead(lines)
    return head


class _ReadNames(dict[bytes, bool]):
    """Whether bardo reads the header of a name. Clients choose names, so those that are kept are few and short."""

    def __missing__(self, name: bytes) -> bool:
        kept = name in _READ or name.startswith((*_CLIENT_PREFIXES, *_DIALECT_PREFIXES))
        read = kept or str(name, "latin-1") in headers_beside()
        if len(self) < _MOST_NAMES and len(name) <= _LONGEST_NAME:
            self[name] = read
        return read


_IS_READ = _ReadNames()
_name, _value = itemgetter(0), itemgetter(1)
_kept_head = lru_cache(maxsize=_MOST_HEADS)(ClientHead)


Pairs = list[tuple[bytes, bytes]]

_JSON = re.compile(r"application/(?:[a-z0-9!#$&^_.+-]+\+)?json")
_PORT = re.compile(r":\d*$")
_HEADER_NAMES = re.compile(r"[-!#$%&'*+.^_`|~0-9A-Za-z, ]{0,2000}")
_KNOWN_HOSTS = 256
# A program before bardo may look at another of two keys than bardo does.
_ONCE = (
    b"host",
    b"origin",
    b"content-type",
    b"authorization",
    b"x-api-key",
    b"x-goog-api-key",
    b"api-key",
    GATEWAY_KEY,
)


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
        request that wants a WebSocket and is no handshake.
        """
        head = head_of(scope)
        if head.accepted_by is self:
            return ""
        fields = head.fields
        host = fields.get(b"host")
        if host not in self._checked_hosts:
            self._check_host(host, scope)
        upgrades = b"upgrade" in fields and b"websocket" in fields[b"upgrade"].lower()
        if upgrades and scope["type"] != "websocket":
            raise UpgradeRequired("this is no handshake of a WebSocket that is served here", hint="send it by HTTP")
        if len(fields) != len(head.lines):
            for single in _ONCE:
                if sum(name == single for name, _ in head.lines) > 1:
                    header = single.decode()
                    raise InvalidRequest(f"the header {header} is given twice", hint="send it once", param=header)
        origin = fields.get(b"origin")
        if origin is not None:
            return self._check_origin(origin.decode("latin-1"), str(host or b"", "latin-1"))
        if host is not None and not upgrades:
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


def require_json(head: ClientHead) -> None:
    """Note that a body says that it is JSON. Raises UnsupportedMediaType where it does not.

    Programs may leave the content type out. A web page may not: browsers send such bodies to any address without asking.
    """
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
    headers = [(b"access-control-allow-methods", b"GET, HEAD, POST, DELETE"), (b"access-control-max-age", b"600")]
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


_LONGEST_CACHED = 512


ACCOUNT = "bardo.account"
"""Where a request's scope holds the account of its key."""
KEY = "bardo.key"
"""Where it holds the key that was accepted: a request may have others beside it, which are for somebody else."""
_PATH_KEY = "bardo.path_key"
"""Where it holds the gateway's key that its path began with."""


class Caller(NamedTuple):
    """Who sent a request: the key it came with, whose earlier replies it may go on from, and its account, where keys are asked for.

    `login` is the client's own for a provider: what is kept of its calls is of this login alone.
    """

    key: str
    tenant: str
    account: Account | None
    login: ClientLogin | None = None

    def __repr__(self) -> str:
        """Return who it is, without the key."""
        return f"Caller(tenant={self.tenant!r})"


def caller_of(scope: Scope) -> Caller:
    """Return who sent a request."""
    head, account = head_of(scope), scope.get(ACCOUNT)
    caller: Caller | None = head.caller
    if caller is not None and account is None and _PATH_KEY not in scope:
        return caller
    key = key_of(scope)
    tenant = tenant_of(key) if account is None else account.tenant
    if head.names_key or _PATH_KEY in scope:
        login = head.login
        return Caller(key, tenant if login is None else tenant_of(f"{tenant} {login.digest}"), account, login)
    if account is not None:
        return Caller(key, tenant, account)
    caller = Caller(key, tenant, None, head.login)
    if head.key:
        head.caller = caller
    return caller


def key_of(scope: Scope) -> str:
    """Return the key a client came with, the id of the key where it signs requests as AWS's do, empty where it came without one."""
    accepted: str | None = scope.get(KEY) or scope.get(_PATH_KEY) or head_of(scope).key
    if accepted or b"key=" not in (query := scope.get("query_string", b"")):
        return accepted or ""
    return next(iter(_keys_in_query(query)), "")


def keys_of(scope: Scope) -> tuple[str, ...]:
    """Return the different keys of a request, those of its headers first. A signature is no key."""
    if _PATH_KEY in scope:
        return (scope[_PATH_KEY],)
    own, query = head_of(scope).keys, scope.get("query_string", b"")
    return tuple(dict.fromkeys((*own, *_keys_in_query(query)))) if b"key=" in query else own


def is_signed(scope: Scope) -> bool:
    """Whether a request is signed as AWS's are, so that it holds no key."""
    return _PATH_KEY not in scope and head_of(scope).is_signed


def secrets_of(scope: Scope) -> tuple[str, ...]:
    """Return what no error about a request may quote: its keys, and the client's login."""
    login = head_of(scope).login
    return (key_of(scope), *keys_of(scope), *(() if login is None else login.secrets))


def without_path_key(scope: Scope) -> Scope:
    """Return a request without the gateway's key at the beginning of its path, `/k/KEY/v1/…`, which counts as its key from then on."""
    found = _KEY_IN_PATH.fullmatch(scope["path"])
    if found is None:
        return scope
    path = path_without_key(scope["path"])
    return {**scope, "path": path, "raw_path": path.encode("latin-1", "replace"), _PATH_KEY: found[1]}


def path_without_key(path: str) -> str:
    """Return a path without the gateway's key at its beginning."""
    found = _KEY_IN_PATH.fullmatch(path)
    return path if found is None else found[2] or "/"


def _keys_in_query(query: bytes) -> list[str]:
    """Return the keys of `?key=`, as Gemini's clients may send it."""
    found = parse_qs(query.decode("latin-1")).get("key", [])
    return [key for one in found if (key := one.strip())]


def tenant_of(key: str) -> str:
    """Return a digest of the key a client came with, empty where it came without one. The key cannot be had from it."""
    if not key:
        return ""
    return _cached_digest(key) if len(key) <= _LONGEST_CACHED else _digest(key)


def _digest(key: str) -> str:
    return hashlib.sha256(f"bardo tenant {key}".encode()).hexdigest()[:32]


_cached_digest = lru_cache(maxsize=1024)(_digest)


def with_headers(request: Request, scope: Scope) -> Request:
    """Return the request with what its headers ask for, and the headers of its dialect and its program. Raises InvalidRequest."""
    head = head_of(scope)
    options = header_options(request.options, scope) if head.has_options else request.options
    own, program = head.passed_on
    if not own and not program and options is request.options:
        return request
    # A cloud's form has its betas in the body, and its clients may send others as a header.
    both = {name: f"{request.headers[name]}, {value}" for name, value in own.items() if name in request.headers}
    return msgspec.structs.replace(
        request, options=options, headers={**request.headers, **own, **both}, client_headers=program
    )


def header_options(options: BardoOptions, scope: Scope) -> BardoOptions:
    """Return the options with what the `X-Bardo-*` headers ask for. Raises InvalidRequest."""
    if not head_of(scope).has_options:
        return options
    options = _with_bounds(_with_intent(options, scope), scope)
    control = header(scope, b"cache-control")
    if control:
        options = msgspec.structs.replace(options, cache=read_cache_control(control, options.cache))
    verify = header(scope, b"x-bardo-verify").strip()
    if verify:
        options = msgspec.structs.replace(options, verify=read_verify(verify, "X-Bardo-Verify"))
    pipeline = read_pipeline(header(scope, b"x-bardo-pipeline") or None, "X-Bardo-Pipeline")
    if pipeline is not None:
        options = msgspec.structs.replace(options, pipeline=pipeline)
    session = read_session(_name_of(scope, b"x-bardo-session"), "X-Bardo-Session")
    if session:
        options = msgspec.structs.replace(options, session=session)
    agent = read_label(_name_of(scope, b"x-bardo-agent"), "X-Bardo-Agent", "the program that asks")
    about = "the repository that the call is about"
    repository = read_label(_name_of(scope, b"x-bardo-repository"), "X-Bardo-Repository", about)
    if agent or repository:
        options = msgspec.structs.replace(
            options, agent=agent or options.agent, repository=repository or options.repository
        )
    include = header(scope, b"x-bardo-include")
    reasoning = header(scope, b"x-bardo-reasoning").strip().lower()
    allowed = header(scope, b"x-bardo-allow-loss")
    if not include and not reasoning and not allowed:
        return options
    if reasoning not in ("", *REASONING_WORDS):
        raise InvalidRequest(
            f"X-Bardo-Reasoning is {reasoning!r}", hint="use include, omit or tags", param="X-Bardo-Reasoning"
        )
    asked = [includable(name, "X-Bardo-Include") for name in _split_list(include)]
    return msgspec.structs.replace(
        options,
        include=tuple(dict.fromkeys((*options.include, *asked))),
        omit_reasoning=options.omit_reasoning or reasoning == "omit",
        omit_unasked=options.omit_unasked and not reasoning,
        reasoning_tags=options.reasoning_tags or reasoning == "tags",
        chose_display=options.chose_display or bool(reasoning),
        allow_loss=(*options.allow_loss, *_split_list(allowed)),
    )


def _name_of(scope: Scope, name: bytes) -> str | None:
    """Return a name that a header gives: as UTF-8 where it is that, since clients write other letters than ASCII so; None for none."""
    value = headers_of(scope).get(name, b"")
    try:
        return str(value, "utf-8") or None
    except UnicodeDecodeError:
        return str(value, "latin-1")


def _with_intent(options: BardoOptions, scope: Scope) -> BardoOptions:
    """Return the options with the intent, the vitality and the tick that the headers give, which go before those of the body.

    Raises InvalidRequest.
    """
    if ROUTING_HEADERS.isdisjoint(head_of(scope).fields):
        return options
    vitality = read_vitality_header(header(scope, b"x-bardo-vitality"), "X-Bardo-Vitality")
    if vitality is not None:
        options = msgspec.structs.replace(options, vitality=vitality)
    tick = read_tick_header(header(scope, b"x-bardo-tick"), "X-Bardo-Tick")
    if tick is not None:
        options = msgspec.structs.replace(options, tick=tick)
    said = read_intent_header(header(scope, b"x-bardo-intent"), "X-Bardo-Intent")
    subsystem = header(scope, b"x-bardo-subsystem").strip()
    if subsystem:
        said["subsystem"] = subsystem
    given, fields = read_intent(said, "X-Bardo-Intent")
    if given is None or not fields:
        return options
    changed = {name: getattr(given, name) for name in fields}
    intent = msgspec.structs.replace(options.intent or Intent(), **changed)
    return msgspec.structs.replace(
        options, intent=intent, intent_fields=tuple(dict.fromkeys((*options.intent_fields, *fields)))
    )


def _with_bounds(options: BardoOptions, scope: Scope) -> BardoOptions:
    """Return the options with the deadline, and the age of an old reply, that the headers give. Raises InvalidRequest."""
    if FAILOVER_HEADERS.isdisjoint(head_of(scope).fields):
        return options
    deadline = read_seconds_header(header(scope, b"x-bardo-deadline-seconds"), "X-Bardo-Deadline-Seconds")
    stale = read_seconds_header(header(scope, b"x-bardo-allow-stale"), "X-Bardo-Allow-Stale")
    return msgspec.structs.replace(
        options,
        deadline_seconds=options.deadline_seconds if deadline is None else deadline,
        allow_stale=options.allow_stale if stale is None else stale,
    )


def _split_list(value: str) -> list[str]:
    return [name.strip() for name in value.split(",") if name.strip()]


def with_trace(request: Request, scope: Scope) -> Request:
    """Return the request with the trace that its client has begun."""
    found = {name: header(scope, name.encode()) for name in TRACE_HEADERS}
    known = {name: value for name, value in found.items() if value}
    return msgspec.structs.replace(request, client_headers={**request.client_headers, **known}) if known else request
