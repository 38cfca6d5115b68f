"""Fields that an operator adds to the bodies of a provider, a model or an alias, below what the client said.

They go into the JSON that is sent, be it the client's own or written by bardo, and only to the provider that they are about. Every other
byte stays as it is. What bardo writes itself is refused when the configuration is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from math import isfinite
from typing import Any

import msgspec

from bardo.catalog.field_refusals import builtin_field_refusals
from bardo.catalog.forms import WireForm, builtin_forms
from bardo.catalog.fragments import leaves, merge_fields
from bardo.catalog.matching import matches_any, plain_id
from bardo.catalog.rows import DialectName, ProviderRow
from bardo.dialects import dialect
from bardo.dialects.shared.json_values import encode_json
from bardo.dialects.shared.losses import nested
from bardo.planning.forwarded import with_fields
from bardo.planning.route import Target
from bardo.values.blocks import TextBlock
from bardo.values.degradation import Degradation
from bardo.values.errors import InvalidRequest, RequiredFieldRefused
from bardo.values.request import BardoOptions, Message, OutputFormat, Request, Tool, ToolChoice
from bardo.values.secrets import looks_like_key
from bardo.values.wire import WireRequest

_split = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_LONGEST_TOLD = 60
_ADDED = "default field added by the operator"
# Chat Completions has two names of one limit: OpenAI refuses both together, and vLLM heeds the newer one
# (vllm/entrypoints/openai/protocol.py, read 2026-11).
_LIMIT, _NEW_LIMIT = "max_tokens", "max_completion_tokens"
_FRAGMENTS = tuple(name for name in WireForm.__struct_fields__ if name not in ("name", "needs", "exclusive"))


def with_default_fields(
    wire: WireRequest, target: Target, options: BardoOptions, *, for_vectors: bool = False
) -> tuple[WireRequest, tuple[Degradation, ...]]:
    """Return the request with the operator's fields that its body lacks, and what is to be told of them.

    Those of an alias go before those of a model, and these before those of a provider. A request for vectors gets those alone without which
    the target is not asked.
    """
    fields, lost = _fields_of(target, options)
    if for_vectors:
        lost, required = (), _required_leaves(fields, target, builtin_field_refusals().required_for_vectors)
        fields = {}
        for path, value in required:
            fields = merge_fields(fields, nested(path, value))
    if not fields:
        return wire, lost
    body = _split(wire.body)
    camel = _is_camel(target.provider.row.dialect)
    said = {_meaning(name, camel): name for name in body}
    changes: dict[str, Any] = {}
    added: list[Degradation] = []
    for name, value in fields.items():
        there = said.get(_meaning(name, camel))
        if there is None:
            changes[name] = value
            added.append(_added_field(name, value))
        elif isinstance(value, dict):
            own = msgspec.json.decode(body[there])
            paths: list[Degradation] = []
            merged = _below(own, value, there, paths, camel=camel) if isinstance(own, dict) else own
            if paths:
                changes[there] = merged
                added += paths
    if not changes:
        return wire, lost
    written = with_fields(wire.body, dict(body), changes) or encode_json({**body, **changes})
    return msgspec.structs.replace(wire, body=written), (*lost, *added)


def without_refused_defaults(
    lost: tuple[Degradation, ...], defaults: tuple[Degradation, ...]
) -> tuple[tuple[Degradation, ...], tuple[Degradation, ...]]:
    """Return what was left out of a client's own fields, and what is to be told of the defaults, some of which were left out.

    `lost` are the fields that a provider refuses. The value of one that the operator added is told to nobody, and it is no loss of the
    client's.
    """
    added = _added_names(defaults)
    own: list[Degradation] = []
    refused: list[Degradation] = []
    for loss in lost:
        if any(_is_within(name, loss.what) or _is_within(loss.what, name) for name in added):
            why = "the provider refuses this default field of the operator"
            refused.append(Degradation(loss.what, sent=None, why=why))
        else:
            own.append(loss)
    sent = [default for default in defaults if not any(_is_within(default.what, loss.what) for loss in refused)]
    return tuple(own), (*sent, *refused)


def required_default(path: str, defaults: Iterable[Degradation], target: Target, options: BardoOptions) -> str:
    """Return the default field that a body lacks without `path`, where the target is not asked without it; empty where it lacks none."""
    required = required_defaults(defaults, target, options)
    return next((leaf for leaf in required if _is_within(leaf, path) or _is_within(path, leaf)), "")


def required_defaults(defaults: Iterable[Degradation], target: Target, options: BardoOptions) -> list[str]:
    """Return those of the default fields without which a target is not asked. `defaults` are what is told of the fields that were added."""
    added = _added_names(defaults)
    fields = _fields_of(target, options)[0] if added else {}
    required = _required_leaves(fields, target, builtin_field_refusals().required_defaults)
    return [path for path, _ in required if any(_is_within(path, name) for name in added)]


def _required_leaves(fields: Mapping[str, Any], target: Target, builtin: Sequence[str]) -> list[tuple[str, Any]]:
    """Return the paths and values of what a target requires: its provider's `required_body`, or else `builtin`, those of the catalog."""
    required = builtin if target.provider.required_body is None else target.provider.required_body
    return [leaf for leaf in leaves(fields) if any(_is_within(leaf[0], path) for path in required)] if required else []


def refused_default(leaf: str, target: Target) -> RequiredFieldRefused:
    """Return the error of a target that refuses a default field without which it is not asked."""
    return RequiredFieldRefused(
        f"{target.provider.id} refuses {leaf}, a default field of this gateway without which it is not asked",
        hint="ask another model; the operator can leave the field out, or out of the provider's required_body",
        param=leaf,
    )


def _added_names(defaults: Iterable[Degradation]) -> list[str]:
    return [default.what for default in defaults if default.why == _ADDED]


def _is_within(path: str, other: str) -> bool:
    return path == other or path.startswith(f"{other}.")


def _fields_of(target: Target, options: BardoOptions) -> tuple[Mapping[str, Any], tuple[Degradation, ...]]:
    """Return the fields for a target, and what an alias has for another one."""
    provider, camel = target.provider, _is_camel(target.provider.row.dialect)
    fields: Mapping[str, Any] = _laid_over({}, provider.extra_body, camel)
    for glob, own in provider.model_extra_body:
        if matches_any(target.model, (glob,)):
            fields = _laid_over(fields, own, camel)
    if not options.alias_fields:
        return fields, ()
    model = plain_id(options.alias_model)
    if model in (plain_id(target.model), plain_id(f"{provider.id}/{target.model}")):
        return _laid_over(fields, options.alias_fields, camel), ()
    why = f"a default of the alias, for {options.alias_model} alone"
    return fields, tuple(Degradation(name, sent=None, why=why) for name in options.alias_fields)


def _laid_over(base: Mapping[str, Any], over: Mapping[str, Any], camel: bool) -> dict[str, Any]:
    """Return default fields with others merged into them; of what both have, under whichever name for it, `over` wins."""
    made = dict(base)
    for name, value in over.items():
        there = next((one for one in made if _meaning(one, camel) == _meaning(name, camel)), name)
        own = made.pop(there, None)
        inner = own if isinstance(own, Mapping) else {}
        made[name] = _laid_over(inner, value, camel) if isinstance(value, Mapping) else value
    return made


def _below(
    own: Mapping[str, Any], defaults: Mapping[str, Any], path: str, added: list[Degradation], *, camel: bool
) -> dict[str, Any]:
    """Return an object with the defaults that it lacks, and note which these were."""
    made = dict(own)
    said = {_meaning(name, camel): name for name in own}
    for name, value in defaults.items():
        there = said.get(_meaning(name, camel))
        if there is None:
            made[name] = value
            added.append(_added_field(f"{path}.{name}", value))
        elif isinstance(value, dict) and isinstance(made[there], dict):
            made[there] = _below(made[there], value, f"{path}.{there}", added, camel=camel)
    return made


def _meaning(name: str, camel: bool) -> str:
    """Return what two names of one field have in common: then the client has said it, under whichever of them."""
    if camel and "_" in name:
        # Gemini takes `top_k` as `topK`, and refuses a body with both.
        first, *others = name.split("_")
        name = first + "".join(word[:1].upper() + word[1:] for word in others)
    return _LIMIT if name == _NEW_LIMIT else name


@cache
def _is_camel(name: DialectName) -> bool:
    """Whether the fields of a dialect are written in camel case."""
    heads = [path.split(".", 1)[0] for path in _written_by(name)]
    return any(head != head.lower() for head in heads)


def _added_field(path: str, value: Any) -> Degradation:
    """Return what the caller is told: the value where it is a short word or a number, and holds no secret."""
    plain = value is None or isinstance(value, bool | int | float)
    short = isinstance(value, str) and len(value) <= _LONGEST_TOLD and not looks_like_key(value)
    return Degradation(path, sent=value if plain or short else None, why=_ADDED)


def check_default_fields(fields: Mapping[str, Any], rows: tuple[ProviderRow, ...], at: str) -> None:
    """Raise InvalidRequest for a field that bardo writes itself in a dialect of one of the rows, naming `at` and the field."""
    written = {path: row.dialect for row in rows for path in _written_by(row.dialect)}
    thinking = _thinking_paths()
    camel = any(_is_camel(row.dialect) for row in rows)
    for path, value in leaves(fields):
        meant = ".".join(_meaning(name, camel) for name in path.split(".")) if camel else path
        for own in (*written, *thinking):
            if not any(one == own or one.startswith(f"{own}.") or own.startswith(f"{one}.") for one in (path, meant)):
                continue
            if own in written:
                why, hint = f"bardo writes it itself ({written[own]})", "leave it out: requests say it"
            else:
                why = "bardo writes how a model thinks itself"
                hint = "say it as `effort`, `max_effort` or `forced_effort` of an alias or a key"
            raise InvalidRequest(f"{at} has {path}: {why}", hint=hint, param=path)
        if not _is_json(value):
            raise InvalidRequest(
                f"{at} has {path}: {value!r} is no JSON"[:300],
                hint="write numbers, texts, lists and tables",
                param=path,
            )


def _is_json(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_json, value))
    if isinstance(value, Mapping):
        return all(map(_is_json, value.values()))
    return value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and isfinite(value))


@cache
def _written_by(name: DialectName) -> frozenset[str]:
    """Return the paths of what a dialect writes of a request that says nothing of sampling: its messages, tools, form and streaming."""
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    tool = Tool(name="look", description="Look.", schema=schema)
    paths: set[str] = set()
    for asked in (
        {"output_format": OutputFormat(mode="json_schema", schema=schema, name="answer")},
        {"tools": (tool,)},
    ):
        choice = ToolChoice(mode="required") if "tools" in asked else None
        messages = (Message("system", (TextBlock("Be brief."),)), Message("user", (TextBlock("Hello."),)))
        request = Request(model="m", messages=messages, stream=True, tool_choice=choice, **asked)
        row = ProviderRow(id="any", name="any", dialect=name)
        body = msgspec.json.decode(dialect(name).encode_request(request, row).body)
        paths |= {path for path, _ in leaves(body)}
    return frozenset({*paths, "model", "stream"})


@cache
def _thinking_paths() -> frozenset[str]:
    """Return the paths of all that says how a model thinks."""
    fragments = (getattr(form, name) for form in builtin_forms().forms.values() for name in _FRAGMENTS)
    found = {path for one in fragments if isinstance(one, dict) for path, _ in leaves(one)}
    # `$switch` stands for the switch of a chat template, which is one of two in the catalog.
    switches = [
        path.replace("$switch", name) for path in found if "$switch" in path for name in ("thinking", "enable_thinking")
    ]
    return frozenset([*(path for path in found if "$" not in path), *switches])
