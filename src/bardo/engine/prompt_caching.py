"""Tell a provider which beginning of a prompt to cache: by markers where its static part ends, or by a key.

The hints are put into the JSON that is sent, be it the client's own or written by bardo; every other byte stays as it is. A request in
which the client set a hint of its own is left alone, and prefixes that are too short to be cached get no marker.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import msgspec

from bardo.catalog.prompt_caching import CachingRule, caching_rules, least_cached
from bardo.dialects.shared.json_values import encode_json
from bardo.engine.forwarded_body import with_fields
from bardo.engine.knowledge import CachingPolicy
from bardo.engine.marked_prompt import MarkedFields, marked, role_of
from bardo.engine.route import Target
from bardo.values.wire import WireRequest

_split = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_OWN_HINTS = (b'"cache_control"', b'"cachePoint"')
_HEAD = ("tools", "system", "instructions")
_TURNS = ("messages", "input")


class CacheHints(msgspec.Struct, frozen=True, kw_only=True):
    """What bardo added: in which places of the prompt a marker stands, and the key; empty where there is none."""

    markers: tuple[str, ...] = ()
    key: str = ""


def with_cache_hints(
    wire: WireRequest, target: Target, policy: CachingPolicy | None
) -> tuple[WireRequest, CacheHints | None]:
    """Return the request with the hints that its provider takes, and what was added; None where that is nothing.

    A `policy` of None adds none.
    """
    if policy is None:
        return wire, None
    row = target.provider.row
    rules = caching_rules(row.id, row.dialect, target.model)
    if not rules:
        return wire, None
    hints, body = CacheHints(), wire.body
    for rule in rules:
        fields = _split(body)
        changes, hints = _hinted(rule, body, fields, hints, target, policy)
        if changes:
            body = with_fields(body, dict(fields), changes) or encode_json({**fields, **changes})
    return (wire, None) if body is wire.body else (msgspec.structs.replace(wire, body=body), hints)


def _hinted(
    rule: CachingRule,
    body: bytes,
    fields: dict[str, msgspec.Raw],
    hints: CacheHints,
    target: Target,
    policy: CachingPolicy,
) -> tuple[dict[str, Any], CacheHints]:
    """Return the fields that one rule changes, and all hints with those of the rule."""
    if rule.form == "key":
        if rule.field in fields:
            return {}, hints
        key = cache_key(policy.tenant, target.model, fields)
        return {rule.field: key}, msgspec.structs.replace(hints, key=key)
    if not policy.markers or any(own in body for own in _OWN_HINTS):
        return {}, hints
    found: MarkedFields = marked(fields, rule, least_cached(target.model))
    return found.changes, msgspec.structs.replace(hints, markers=found.places)


def cache_key(tenant: str, model: str, fields: dict[str, msgspec.Raw]) -> str:
    """Return the key of all prompts of a tenant to a model that begin alike: with these tools and this system prompt.

    Without either, the first turn tells conversations apart.
    """
    digest = blake2b(digest_size=12)
    for part in (tenant.encode(), model.encode(), *_head(fields)):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return f"bardo-{digest.hexdigest()}"


def _head(fields: dict[str, msgspec.Raw]) -> Iterator[bytes]:
    head = [bytes(fields[name]) for name in _HEAD if name in fields]
    yield from head
    for name in _TURNS:
        turns = bytes(fields.get(name, b""))
        if not turns.startswith(b"["):
            continue
        items = msgspec.json.decode(turns, type=list[msgspec.Raw])
        system = [item for item in map(bytes, items[:8]) if role_of(item) in ("system", "developer")]
        yield from system or ([] if head else map(bytes, items[:1]))
