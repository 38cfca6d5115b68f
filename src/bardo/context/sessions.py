"""Which conversation a call belongs to, which agent asks, and in which repository: as its client says it.

Where it names no conversation, what all turns of one have in common stands for it. The agent and the repository are never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from hashlib import blake2b
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec

from bardo.catalog.layer_rows import caller_rows, repository_rows, session_rows
from bardo.values.operations import EmbedRequest
from bardo.values.request import BardoOptions, Request
from bardo.values.secrets import looks_like_key

_heads = msgspec.msgpack.Encoder(enc_hook=repr)

_LONGEST = 1000
"""Characters of a client's id of a session that are looked at."""
_LONGEST_LABEL = 200
_MOST_METADATA = 16_384
"""Characters of a client's record of its workspaces that are read."""
_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]{0,20}://", re.IGNORECASE)


class CallLabels(NamedTuple):
    """The labels by which costs are summed: the conversation, the agent that asks, and its repository; empty if unknown."""

    session: str = ""
    agent: str = ""
    repository: str = ""


NO_LABELS = CallLabels()


def call_labels(request: Request | EmbedRequest, without_secrets: Callable[[str], str] = str) -> CallLabels:
    """Return what the client says of a call: first by `X-Bardo-*` or `bardo`, then by the headers and fields of known agents.

    `without_secrets` takes out of a name what may not be kept, before the name is made short: half a key is one too.
    """
    options = request.options
    if isinstance(request, EmbedRequest):
        labels = CallLabels(options.session, options.agent, options.repository)
    else:
        fields = request.body if request.body is not None else request.extra
        labels = _labels_of(options, request.client_headers, fields)
    return (
        labels if labels == NO_LABELS else CallLabels(*[label and _label(label, without_secrets) for label in labels])
    )


def labelled(options: BardoOptions, headers: dict[str, str]) -> BardoOptions:
    """Return the options of a call whose headers are not kept, with what they say of its conversation, agent and repository."""
    labels = _labels_of(options, headers, None)
    if labels == NO_LABELS:
        return options
    return msgspec.structs.replace(options, session=labels.session, agent=labels.agent, repository=labels.repository)


def _labels_of(options: BardoOptions, headers: dict[str, str], fields: dict[str, Any] | None) -> CallLabels:
    """Return the names as the client says them."""
    repository = options.repository or _repository_of(headers, fields)
    return CallLabels(
        # Headers hold other letters than ASCII in percent-encoding.
        unquote(options.session or _named_by_client(headers, fields)),
        unquote(options.agent or _agent_of(headers)),
        plain_repository(repository) if repository else "",
    )


def _label(text: str, without_secrets: Callable[[str], str]) -> str:
    """Return a name as the log keeps it: without what no terminal shows, and short.

    A long one ends with a digest of all of it, so that two that begin alike stay two.
    """
    shown = text if text.isprintable() else "".join(filter(str.isprintable, text))
    name = without_secrets(shown).strip()
    if len(name) <= _LONGEST_LABEL:
        return name
    digest = blake2b(name.encode(), digest_size=8).hexdigest()
    return f"{name[: _LONGEST_LABEL - len(digest) - 1]}…{digest}"


def plain_repository(address: str) -> str:
    """Return the address of a repository as one name, however it is written: `github.com/owner/name`.

    What stands before the host may be a password, and what follows the path a token: both are left out. A part of the path that looks
    like a key is replaced by a digest.
    """
    text = unquote(address.strip()[:_LONGEST])
    scheme = _SCHEME.match(text)
    rest = text[scheme.end() :] if scheme else text
    rest = rest.split("?", 1)[0].split("#", 1)[0]
    host, slash, path = rest.partition("/")
    if "@" in host:
        host = host.rpartition("@")[2]
        if not scheme and ":" in host:
            # git@github.com:owner/name, as ssh takes it.
            host, _, first = host.partition(":")
            path, slash = f"{first}{slash}{path}", "/"
    if "@" in path:
        # A password may have a slash in it: then its beginning is no host.
        path = path.rpartition("@")[2]
        if "." not in host or ":" in host:
            host, slash = "", ""
    parts = f"{host}{slash}{path}".rstrip("/").removesuffix(".git").split("/")
    return "/".join(
        f"[key {blake2b(part.encode(), digest_size=4).hexdigest()}]" if looks_like_key(part) else part for part in parts
    )


def _agent_of(headers: dict[str, str]) -> str:
    for header, pattern, agents in _agent_patterns():
        value = headers.get(header)
        match = pattern.search(value[:_LONGEST_LABEL]) if value else None
        if match is not None and match.lastindex is not None:
            return agents[match.lastindex - 1]
    return ""


@cache
def _agent_patterns() -> tuple[tuple[str, re.Pattern[str], tuple[str, ...]], ...]:
    """Return for each header one pattern with a group for each agent, in the order of the rows."""
    by_header: dict[str, list[tuple[str, str]]] = {}
    for row in caller_rows():
        by_header.setdefault(row.header, []).append((row.agent, row.pattern))
    return tuple(
        (
            header,
            re.compile("|".join(f"({pattern})" for _, pattern in rows), re.IGNORECASE),
            tuple(agent for agent, _ in rows),
        )
        for header, rows in by_header.items()
    )


def _repository_of(headers: dict[str, str], fields: dict[str, Any] | None) -> str:
    for header, field, path in _repository_places():
        value: Any = headers.get(header) if header else fields
        for name in field:
            value = value.get(name) if isinstance(value, dict) else None
        if not isinstance(value, str) or not value or len(value) > _MOST_METADATA:
            continue
        try:
            label = _first_text(msgspec.json.decode(value), path)
        except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
            continue
        if label:
            return label
    return ""


@cache
def _repository_places() -> tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]:
    """Return the headers and fields in which agents say in which repository they work, and where in them."""
    return tuple(
        (row.header, tuple(row.field.split(".")) if row.field else (), tuple(row.path.split(".")))
        for row in repository_rows()
    )


def _first_text(value: Any, path: tuple[str, ...]) -> str:
    """Return the first text at a path in JSON; `*` is any name of an object."""
    if not path:
        return value if isinstance(value, str) else ""
    if not isinstance(value, dict):
        return ""
    inner = value.values() if path[0] == "*" else (value.get(path[0]),)
    return next(filter(None, (_first_text(value, path[1:]) for value in inner)), "")


@cache
def names_of_headers() -> frozenset[str]:
    """Return the headers by which clients say which conversation, agent or repository it is."""
    headers = (
        *(row.header for row in session_rows()),
        *(row.header for row in caller_rows()),
        *(row.header for row in repository_rows()),
    )
    return frozenset(filter(None, headers))


def session_of(request: Request, tenant: str) -> str:
    """Return a key that is the same for all turns of one conversation of one tenant, and reveals nothing of their content."""
    named = session_name(request)
    if not named:
        return conversation_head(request, tenant).hex()
    return named_session(named, tenant)


def session_name(request: Request) -> str:
    """Return what the client calls the conversation; empty where it does not say."""
    fields = request.body if request.body is not None else request.extra
    return request.options.session or _named_by_client(request.client_headers, fields)


def named_session(name: str, tenant: str) -> str:
    """Return what stands for a conversation that a client of a tenant gives a name."""
    return blake2b(f"{tenant}\0{name}".encode("utf-8", "replace"), digest_size=16).hexdigest()


def _named_by_client(headers: dict[str, str], fields: dict[str, Any] | None) -> str:
    """Return the id that a client gives in a header or a field that is known to hold one; empty where there is none."""
    header_names, field_names = _places_of_names()
    if header_names.isdisjoint(headers) and (not fields or field_names.isdisjoint(fields)):
        return ""
    for header, path, pattern in _session_fields():
        value: Any = headers.get(header) if header else fields.get(path[0]) if fields else None
        for name in path[1:]:
            value = value.get(name) if isinstance(value, dict) else None
        if not value or not isinstance(value, str):
            continue
        if pattern is None:
            return value[:_LONGEST]
        match = pattern.search(value[:_LONGEST])
        if match is not None:
            return match[1]
    return ""


@cache
def _places_of_names() -> tuple[frozenset[str], frozenset[str]]:
    """Return the headers, and the fields of a body, that may hold a client's id of a session."""
    rows = _session_fields()
    return frozenset(header for header, _, _ in rows if header), frozenset(
        path[0] for header, path, _ in rows if not header
    )


@cache
def _session_fields() -> tuple[tuple[str, tuple[str, ...], re.Pattern[str] | None], ...]:
    return tuple(
        (row.header, tuple(row.field.split(".")), re.compile(row.pattern) if row.pattern else None)
        for row in session_rows()
    )


def conversation_head(request: Request | EmbedRequest, tenant: str) -> bytes:
    """Return what all turns of one conversation have in common: its tenant, its system prompt and the first thing its user said.

    Empty for vectors, which no cached prompt makes cheaper.
    """
    if not isinstance(request, Request):
        return b""
    count = 0
    for message in request.messages:
        count += 1
        if message.role == "user":
            break
    return blake2b(_heads.encode((tenant, request.messages[:count])), digest_size=16).digest()
