"""What a request's headers ask of bardo, and the headers of its dialect that go on to the provider."""

from __future__ import annotations

import msgspec

from bardo.dialects.intents import read_intent, read_intent_header, read_vitality_header
from bardo.dialects.jsonfield import header_value
from bardo.dialects.options import (
    REASONING_WORDS,
    includable,
    read_cache_control,
    read_pipeline,
    read_seconds_header,
    read_session,
    read_verify,
)
from bardo.surfaces.gateway.http import Scope, header, headers_of
from bardo.values.errors import InvalidRequest
from bardo.values.intent import Intent
from bardo.values.request import TRACE_HEADERS, BardoOptions, Request

_ROUTING_HEADERS = frozenset((b"x-bardo-intent", b"x-bardo-subsystem", b"x-bardo-vitality"))
_FAILOVER_HEADERS = frozenset((b"x-bardo-deadline-seconds", b"x-bardo-allow-stale"))
_OPTION_HEADERS = (
    frozenset((b"x-bardo-include", b"x-bardo-reasoning", b"x-bardo-allow-loss", b"x-bardo-verify"))
    | _ROUTING_HEADERS
    | _FAILOVER_HEADERS
    | {b"x-bardo-pipeline", b"x-bardo-session", b"cache-control"}
)
# Headers that belong to a dialect: they ask its provider for features, and hold no secret.
_DIALECT_HEADERS = frozenset((b"anthropic-beta", b"openai-beta"))
# Headers by which agents name themselves and their session: providers keep a session's prompts at one place by them, where caches hold.
_CLIENT_HEADERS = frozenset(
    (
        *(b"user-agent", b"x-app", b"originator", b"session-id", b"session_id", b"thread-id", b"conversation_id"),
        *(b"x-client-request-id", b"x-session-id"),
    )
)
_CLIENT_PREFIXES = (b"x-claude-code-", b"x-codex-")


def with_header_options(request: Request, scope: Scope) -> Request:
    """Return the request with what the `X-Bardo-*` headers ask for. Raises InvalidRequest."""
    options = header_options(request.options, scope)
    return request if options is request.options else msgspec.structs.replace(request, options=options)


def header_options(options: BardoOptions, scope: Scope) -> BardoOptions:
    """Return the options with what the `X-Bardo-*` headers ask for. Raises InvalidRequest."""
    if _OPTION_HEADERS.isdisjoint(headers_of(scope)):
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
    session = read_session(header(scope, b"x-bardo-session") or None, "X-Bardo-Session")
    if session:
        options = msgspec.structs.replace(options, session=session)
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


def _with_intent(options: BardoOptions, scope: Scope) -> BardoOptions:
    """Return the options with the intent and the vitality that the headers give, which go before those of the body.

    Raises InvalidRequest.
    """
    if _ROUTING_HEADERS.isdisjoint(headers_of(scope)):
        return options
    vitality = read_vitality_header(header(scope, b"x-bardo-vitality"), "X-Bardo-Vitality")
    if vitality is not None:
        options = msgspec.structs.replace(options, vitality=vitality)
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
    if _FAILOVER_HEADERS.isdisjoint(headers_of(scope)):
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


def with_headers(request: Request, scope: Scope) -> Request:
    """Return the request with the headers of its dialect and its program. Raises InvalidRequest for a value that cannot be sent on."""
    found: dict[str, str] = {}
    program: dict[str, str] = {}
    for name, value in scope["headers"]:
        if name in _DIALECT_HEADERS and value:
            key = name.decode()
            text = header_value(str(value, "latin-1"), key)
            found[key] = f"{found[key]}, {text}" if key in found else text
        elif name in _CLIENT_HEADERS or name.startswith(_CLIENT_PREFIXES):
            text = str(value, "latin-1")
            if text.isascii() and text.isprintable():
                program[name.decode()] = text
    if not found and not program:
        return request
    return msgspec.structs.replace(request, headers=found or request.headers, client_headers=program)


def with_trace(request: Request, scope: Scope) -> Request:
    """Return the request with the trace that its client has begun."""
    found = {name: header(scope, name.encode()) for name in TRACE_HEADERS}
    known = {name: value for name, value in found.items() if value}
    return msgspec.structs.replace(request, client_headers={**request.client_headers, **known}) if known else request
