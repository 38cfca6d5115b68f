"""How a target can be made to answer in a schema, from rows of the catalog: the rungs of its ladder, best first, and what refuses them.

Rungs are in `catalog/data/structured_modes.toml`, what servers say where they refuse one in `structured_refusals.toml`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, lru_cache
from importlib.resources import files
from typing import Annotated, Any, Literal

import msgspec
import tomli

from bardo.catalog.matching import matches_any
from bardo.values.errors import ConfigError

Mode = Literal["schema_enforced", "tool_use_workaround", "prompt_guided", "none"]
MODES: tuple[Mode, ...] = ("schema_enforced", "tool_use_workaround", "prompt_guided", "none")
Form = Literal["json_schema", "json_object", "tool", "tool_auto", "prompt", "none"]
"""How the schema is sent: in the provider's field, by its JSON mode, as a tool that must or may be called, in the prompt alone, or not."""

MODE_OF: dict[Form, Mode] = {
    "json_schema": "schema_enforced",
    "tool": "tool_use_workaround",
    "tool_auto": "tool_use_workaround",
    "json_object": "prompt_guided",
    "prompt": "prompt_guided",
    "none": "none",
}


class Rung(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One way to ask, and when it may be used."""

    form: Form
    subset: str = "any"
    """The subset of JSON Schema that the target takes there: a row of `schema_subsets.toml`."""
    strict: bool | None = None
    """The strict flag to send; `None`: none."""
    streaming: bool = True
    """Whether it works in a streamed reply."""
    with_tools: bool = True
    """Whether it works beside tools of the caller."""
    thinking: bool = True
    """Whether it works while the model thinks."""
    advertised: bool = False
    """Whether the model's own listing must say that it has it."""
    example: bool = False
    """Whether the prompt must hold an example."""


class Ladder(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rungs of some targets. `providers` and `models` are globs, `dialects` names; the first fitting row is used.

    `speaking` narrows a row to providers that are spoken to in one of these dialects: a server may enforce schemas at one route only.
    """

    rungs: tuple[Rung, ...]
    providers: tuple[str, ...] = ()
    dialects: tuple[str, ...] = ()
    models: tuple[str, ...] = ("*",)
    speaking: tuple[str, ...] = ()

    def fits(self, target: SchemaTarget) -> bool:
        """Return whether the row is about a target."""
        provider = _any(self.providers, target.provider) or target.dialect in self.dialects
        if self.speaking:
            # A table of bardo.toml with a dialect of its own is read as a server of that dialect; its id still says which server it is.
            provider = (provider or _any(self.providers, target.id)) and target.dialect in self.speaking
        return provider and _any(self.models, target.model)


class SchemaTarget(msgspec.Struct, frozen=True, kw_only=True):
    """Who will answer: a catalog row's id, the model's id there, the dialect spoken, and the id the user gave the provider.

    The flags are the facts about this model from its own listing or from earlier refusals: `None` where nothing is known.
    """

    provider: str
    model: str = ""
    dialect: str = ""
    id: str = ""
    json_schema: bool | None = None
    json_object: bool | None = None
    tools: bool | None = None
    forced_tools: bool | None = None


class RequestConditions(msgspec.Struct, frozen=True, kw_only=True):
    """The other demands of the request."""

    thinking: bool = False
    streaming: bool = False
    tools: bool = False


def rungs_of(target: SchemaTarget) -> tuple[Rung, ...]:
    """Return a target's rungs, best first. The last asks in the prompt, which works everywhere."""
    return _rungs(target.provider, target.model, target.dialect, target.id)


@lru_cache(maxsize=1024)
def _rungs(provider: str, model: str, dialect: str, own: str) -> tuple[Rung, ...]:
    target = SchemaTarget(provider=provider, model=model, dialect=dialect, id=own)
    rungs = next((row.rungs for row in ladders() if row.fits(target)), ())
    return rungs if any(rung.form == "prompt" for rung in rungs) else (*rungs, Rung(form="prompt"))


def refusal(rung: Rung, target: SchemaTarget, around: RequestConditions) -> str:
    """Return why a rung cannot be used, in words; empty where it can."""
    if rung.form == "tool" and target.forced_tools is not None:
        supported: bool | None = target.forced_tools
    elif rung.form in ("tool", "tool_auto"):
        supported = target.tools
    else:
        supported = {"json_schema": target.json_schema, "json_object": target.json_object}.get(rung.form)
    reasons = (
        (supported is False, "this model is known not to take it"),
        (rung.advertised and supported is None, "the model's listing does not say that it takes it"),
        (not rung.streaming and around.streaming, "it does not work in a streamed reply"),
        (not rung.with_tools and around.tools, "it does not work beside tools"),
        (not rung.thinking and around.thinking, "it does not work while the model thinks"),
    )
    return next((reason for holds, reason in reasons if holds), "")


def ordered(rungs: Iterable[Rung], *, prefer_schema_enforcement: bool, mode: Mode | None) -> list[Rung]:
    """Return rungs in the order they are tried: those of the wanted mode first, then as the ladder has them.

    A mode that was asked for is never bettered: what stands above it is not tried.
    """
    listed = list(rungs)
    if mode is not None:
        listed = [rung for rung in listed if MODES.index(MODE_OF[rung.form]) >= MODES.index(mode)]
    first = mode or ("schema_enforced" if prefer_schema_enforcement else "tool_use_workaround")
    return sorted(listed, key=lambda rung: MODE_OF[rung.form] != first)


@cache
def ladders() -> tuple[Ladder, ...]:
    """Return the built-in rows in order. Raises ConfigError naming the row and the field."""
    text = files("bardo.catalog").joinpath("data/structured_modes.toml").read_text(encoding="utf-8")
    return tuple(_row(table) for table in tomli.loads(text)["ladder"])


def _row(table: dict[str, Any]) -> Ladder:
    try:
        return msgspec.convert(table, Ladder)
    except msgspec.ValidationError as problem:
        raise ConfigError(f"ladder of {table.get('providers') or table.get('dialects')}: {problem}") from problem


def _any(globs: Iterable[str], name: str) -> bool:
    return matches_any(name.lower(), globs)


class Refusal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The words of a server that does not take a form. `together`: its refusal of one of the forms holds for all of them."""

    forms: tuple[Form, ...]
    statuses: frozenset[int]
    signs: tuple[str, ...]
    together: bool = False

    def is_about(self, form: Form, status: int, message: str) -> bool:
        """Return whether a refusal is about a form. `message` is in small letters."""
        return form in self.forms and status in self.statuses and any(sign in message for sign in self.signs)


class LastingRefusal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The words that tell a refusal of a form from one of a single schema."""

    signs: tuple[str, ...]
    unless: tuple[str, ...] = msgspec.field(name="except", default=())


class _Rows(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    refusal: tuple[Refusal, ...]
    lasting: LastingRefusal


@cache
def _rows() -> _Rows:
    text = files("bardo.catalog").joinpath("data/structured_refusals.toml").read_text(encoding="utf-8")
    try:
        return msgspec.convert(tomli.loads(text), _Rows)
    except msgspec.ValidationError as problem:
        raise ConfigError(f"structured_refusals.toml: {problem}") from problem


def refused_by(form: Form, status: int, message: str) -> frozenset[Form]:
    """Return the forms that a refusal with this status and text is about, where the one that was sent is among them."""
    lowered = message.lower()
    about = [row for row in _rows().refusal if row.is_about(form, status, lowered)]
    return frozenset(other for row in about for other in (row.forms if row.together else (form,)))


def is_lasting(message: str) -> bool:
    """Return whether a refusal is about the form, and not about this one schema: then the next call need not try it."""
    lowered, lasting = message.lower(), _rows().lasting
    return any(sign in lowered for sign in lasting.signs) and not any(sign in lowered for sign in lasting.unless)


class StructuredSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How answers in a schema are asked for and judged."""

    enabled: bool = True
    """Whether schemas are sent at all. When false, answers are free text and read with `from_text`."""
    prefer_schema_enforcement: bool = True
    """Whether the provider's own schema field is used where a tool would do too."""
    validation: bool = True
    """Whether answers are judged by the caller's schema."""
    retry_on_validation_failure: bool = True
    """Whether an answer that breaks the schema is asked for again, with what was wrong."""
    max_retries: Annotated[int, msgspec.Meta(ge=0, le=5)] = 1
    """How often at most."""
