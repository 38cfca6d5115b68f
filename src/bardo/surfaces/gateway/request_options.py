"""What a request's headers ask of bardo, and the headers of its dialect that go on to the provider."""

from __future__ import annotations

import msgspec

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
from bardo.surfaces.gateway.callers import FAILOVER_HEADERS, ROUTING_HEADERS, head_of
from bardo.surfaces.gateway.http import Scope, header, headers_of
from bardo.values.errors import InvalidRequest
from bardo.values.request import TRACE_HEADERS, BardoOptions, Intent, Request


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
    session = read_session(_name(scope, b"x-bardo-session"), "X-Bardo-Session")
    if session:
        options = msgspec.structs.replace(options, session=session)
    agent = read_label(_name(scope, b"x-bardo-agent"), "X-Bardo-Agent", "the program that asks")
    about = "the repository that the call is about"
    repository = read_label(_name(scope, b"x-bardo-repository"), "X-Bardo-Repository", about)
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


def _name(scope: Scope, name: bytes) -> str | None:
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
