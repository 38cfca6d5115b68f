"""Decide before a call how a schema is asked for, say what that loses, and how the answer is brought back.

A plan depends only on its arguments: it is made offline, and made again for the next target after a failure.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from bardo.structured.bounds import MAX_SCHEMA_BYTES
from bardo.structured.extraction import Json, JsonSchema
from bardo.structured.guidance import guidance as guidance_for
from bardo.structured.guidance import tool_guidance
from bardo.structured.modes import MODE_OF, Circumstances, Form, Mode, Rung, SchemaTarget, ordered, refusal, rungs_of
from bardo.structured.rewrite import Inexpressible, Rewrite, Rewritten, rewrite
from bardo.structured.subsets import subset
from bardo.structured.validation import checker
from bardo.values.errors import InvalidRequest

_KEPT_PLANS = 512
_KEPT_SCHEMA_BYTES = 1 << 16
_TOOL = "respond_"


class Skipped(msgspec.Struct, frozen=True):
    """A way to ask that was not taken, and why."""

    form: Form
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StructuredPlan:
    """How one target is asked for an answer in a schema. Plans are shared: nothing in one may be changed."""

    mode: Mode
    form: Form
    name: str
    """The schema's name, which providers ask for: letters, digits, `_` and `-`, 64 at most."""
    schema: dict[str, Any] | None = None
    """What is sent. With "prompt" and "json_object" it stands in `guidance`."""
    strict: bool | None = None
    tool_name: str = ""
    """The tool that carries the answer, in the forms "tool" and "tool_auto"."""
    guidance: str = ""
    """What the system prompt must say; empty: nothing."""
    rewrites: tuple[Rewrite, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    wanted: Mode = "schema_enforced"
    """The mode that was asked for or preferred."""
    rewritten: Rewritten | None = None

    @property
    def downgraded(self) -> bool:
        """Whether a weaker mode than the wanted one is used."""
        return self.mode != self.wanted and self.form != "json_schema"

    @property
    def losses(self) -> tuple[Rewrite, ...]:
        """The rewrites after which some answers are lost or some wrong ones possible."""
        return tuple(one for one in self.rewrites if one.effect != "lossless")

    @property
    def exact(self) -> bool:
        """Whether every answer the target's schema admits is one the caller's admits."""
        return all(one.effect != "widening" for one in self.rewrites)

    @property
    def changes_answers(self) -> bool:
        """Whether the model answers in another form than the caller gets: then its text is read by `schema`, and restored."""
        return self.rewritten is not None and self.rewritten.changes_answers

    def restore(self, value: Json) -> Json:
        """Return the model's answer as the caller's schema has it. Judge it afterwards: targets do not always hold to a schema."""
        return value if self.rewritten is None else self.rewritten.restore(value)


def plan(
    schema: JsonSchema,
    target: SchemaTarget,
    *,
    thinking: bool = False,
    streaming: bool = False,
    tools: bool = False,
    prefer_schema_enforcement: bool = True,
    mode: Mode | None = None,
    name: str = "",
    guidance: str = "",
) -> StructuredPlan:
    """Return how `target` is asked for an answer in `schema`.

    `thinking`, `streaming` and `tools` (of the caller's own) say what else the request asks for. `mode` is the best mode allowed; where
    the target cannot, a weaker one is taken and `skipped` says why. `guidance` replaces the instruction of prompt-guided forms.
    Raises InvalidRequest for what is no JSON Schema, is too large, or refers to another document.
    """
    try:
        written = msgspec.json.encode(schema)
    except (TypeError, ValueError, RecursionError) as problem:
        raise InvalidRequest(f"the schema cannot be written as JSON: {str(problem)[:200]}", param="schema") from problem
    around = Circumstances(thinking=thinking, streaming=streaming, tools=tools)
    if len(written) > MAX_SCHEMA_BYTES:
        raise InvalidRequest(f"the schema takes {len(written):,} bytes, more than {MAX_SCHEMA_BYTES:,}", param="schema")
    make = _kept if len(written) <= _KEPT_SCHEMA_BYTES else _planned
    return make(written, target, around, prefer_schema_enforcement, mode, name, guidance)


def _planned(
    written: bytes, target: SchemaTarget, around: Circumstances, prefer: bool, mode: Mode | None, name: str, told: str
) -> StructuredPlan:
    schema = json.loads(written)
    checker(schema)
    wanted: Mode = mode or ("schema_enforced" if prefer else "tool_use_workaround")
    named = _name(name, schema)
    if mode == "none":
        return StructuredPlan(mode="none", form="none", name=named, wanted="none")
    skipped: list[Skipped] = []
    for rung in ordered(rungs_of(target), prefer_schema_enforcement=prefer, mode=mode):
        reason = refusal(rung, target, around)
        if not reason:
            try:
                rewritten = _rewritten(written, rung.subset)
            except Inexpressible as problem:
                reason = f"its schemas cannot say this one: {problem}"
            else:
                return _made(rung, rewritten, named, told, tuple(skipped), wanted)
        skipped.append(Skipped(rung.form, reason))
    return _made(Rung(form="prompt"), Rewritten(schema), named, told, tuple(skipped), wanted)


_kept = lru_cache(maxsize=_KEPT_PLANS)(_planned)


def _rewritten(written: bytes, name: str) -> Rewritten:
    return (_rewritten_kept if len(written) <= _KEPT_SCHEMA_BYTES else _rewritten_now)(written, name)


def _rewritten_now(written: bytes, name: str) -> Rewritten:
    return rewrite(json.loads(written), subset(name))


_rewritten_kept = lru_cache(maxsize=_KEPT_PLANS)(_rewritten_now)


def _made(
    rung: Rung, rewritten: Rewritten, name: str, told: str, skipped: tuple[Skipped, ...], wanted: Mode
) -> StructuredPlan:
    tool = f"{_TOOL}{name}"[:64] if rung.form in ("tool", "tool_auto") else ""
    return StructuredPlan(
        mode=MODE_OF[rung.form],
        form=rung.form,
        name=name,
        schema=rewritten.schema,
        strict=rung.strict,
        tool_name=tool,
        guidance=_told(rung, rewritten, tool, told),
        rewrites=rewritten.rewrites,
        skipped=skipped,
        wanted=wanted,
        rewritten=rewritten,
    )


def _told(rung: Rung, rewritten: Rewritten, tool: str, told: str) -> str:
    if rung.form == "tool_auto":
        return tool_guidance(tool)
    if MODE_OF[rung.form] != "prompt_guided":
        return ""
    # The caller's own words show its own schema, so they do where that is what must be answered, and where they say what must be said.
    fits = not rewritten.changes_answers and not (rung.form == "json_object" and "json" not in told.lower())
    return told if told and fits and not rung.example else guidance_for(rewritten.schema, example=rung.example)


def _name(name: str, schema: Any) -> str:
    said = name or (schema.get("title") if isinstance(schema, dict) else "")
    plain = re.sub(r"[^A-Za-z0-9_-]+", "_", said if isinstance(said, str) else "").strip("_")
    return plain[: 64 - len(_TOOL)] or "answer"
