"""Decide before a call how a schema is asked for, say what that loses, and how the answer is brought back.

A plan depends only on its arguments: it is made offline, and made again for the next target after a failure.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from bardo.reuse import ANSWER_PLANS
from bardo.structured.bounds import resolve
from bardo.structured.extraction import Json, JsonSchema
from bardo.structured.modes import (
    MODE_OF,
    Form,
    Mode,
    RequestConditions,
    Rung,
    SchemaTarget,
    ordered,
    refusal,
    rungs_of,
)
from bardo.structured.rewrite import Inexpressible, Rewrite, RewrittenSchema, rewrite
from bardo.structured.subsets import subset
from bardo.structured.validation import Checker, checker

_TOOL = "respond_"


class Skipped(msgspec.Struct, frozen=True):
    """A way to ask that was not taken, and why."""

    form: Form
    reason: str


class StructuredPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How one target is asked for an answer in a schema. Plans are shared: nothing in one may be changed."""

    mode: Mode
    form: Form
    name: str
    """The schema's name, which providers ask for: letters, digits, `_` and `-`, 64 at most."""
    schema: dict[str, Any] | None = None
    """The schema that is sent. With "prompt" and "json_object" it stands in `guidance`."""
    strict: bool | None = None
    tool_name: str = ""
    """The tool that carries the answer, in the forms "tool" and "tool_auto"."""
    guidance: str = ""
    """The text that the system prompt must contain; empty: none."""
    rewrites: tuple[Rewrite, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    wanted: Mode = "schema_enforced"
    """The mode that was asked for or preferred."""
    rewritten: RewrittenSchema | None = None

    @property
    def downgraded(self) -> bool:
        """Whether a weaker mode than the wanted one is used."""
        return self.mode != self.wanted and self.form != "json_schema"

    @property
    def losses(self) -> tuple[Rewrite, ...]:
        """The rewrites after which some answers are lost or some wrong ones possible."""
        return tuple(rewrite for rewrite in self.rewrites if rewrite.effect != "lossless")

    @property
    def exact(self) -> bool:
        """Whether every answer the target's schema admits is one the caller's admits."""
        return all(rewrite.effect != "widening" for rewrite in self.rewrites)

    @property
    def changes_answers(self) -> bool:
        """Whether the model answers in another form than the caller gets: then its text is read by `schema`, and restored."""
        return self.rewritten is not None and self.rewritten.changes_answers

    def restore(self, value: Json) -> Json:
        """Return the model's answer as the caller's schema has it. Judge it afterwards: targets do not always hold to a schema."""
        return value if self.rewritten is None else self.rewritten.restore(value)


def plan(
    schema: JsonSchema | Checker,
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
    Raises InvalidRequest for a schema that is invalid, too large, or refers to another document. The same plan is returned for the
    same arguments; a schema that was made by `checker` or `schema_of` is recognised without writing it again.
    """
    judge = checker(schema)
    around = RequestConditions(thinking=thinking, streaming=streaming, tools=tools)
    key = (target, around, prefer_schema_enforcement, mode, name, guidance)
    made: StructuredPlan = ANSWER_PLANS.of((judge, *key), lambda: _make_plan(judge, *key), lambda _: judge.size)
    return made


def _make_plan(
    judge: Checker,
    target: SchemaTarget,
    around: RequestConditions,
    prefer: bool,
    mode: Mode | None,
    name: str,
    guidance: str,
) -> StructuredPlan:
    wanted: Mode = mode or ("schema_enforced" if prefer else "tool_use_workaround")
    title = name or (judge.schema.get("title") if isinstance(judge.schema, dict) else "")
    plain = re.sub(r"[^A-Za-z0-9_-]+", "_", title if isinstance(title, str) else "").strip("_")
    named = plain[: 64 - len(_TOOL)] or "answer"
    if mode == "none":
        return StructuredPlan(mode="none", form="none", name=named, wanted="none")
    skipped: list[Skipped] = []
    for rung in ordered(rungs_of(target), prefer_schema_enforcement=prefer, mode=mode):
        reason = refusal(rung, target, around)
        if not reason:
            try:
                rewritten = _rewritten(judge, rung.subset)
            except Inexpressible as problem:
                reason = f"its schemas cannot say this one: {problem}"
            else:
                return _plan_of_rung(rung, rewritten, named, guidance, tuple(skipped), wanted)
        skipped.append(Skipped(rung.form, reason))
    return _plan_of_rung(Rung(form="prompt"), _rewritten(judge, "any"), named, guidance, tuple(skipped), wanted)


def _rewritten(judge: Checker, name: str) -> RewrittenSchema:
    rewritten: RewrittenSchema = ANSWER_PLANS.of(
        (judge, name), lambda: rewrite(judge.schema, subset(name)), lambda _: judge.size
    )
    return rewritten


def _plan_of_rung(
    rung: Rung, rewritten: RewrittenSchema, name: str, guidance: str, skipped: tuple[Skipped, ...], wanted: Mode
) -> StructuredPlan:
    tool = f"{_TOOL}{name}"[:64] if rung.form in ("tool", "tool_auto") else ""
    if rung.form == "tool_auto":
        written_guidance = tool_guidance(tool)
    elif MODE_OF[rung.form] != "prompt_guided":
        written_guidance = ""
    else:
        # The caller's own words show its own schema, so they do where that is what must be answered, and where they say what must be said.
        fits = not rewritten.changes_answers and not (rung.form == "json_object" and "json" not in guidance.lower())
        written_guidance = (
            guidance if guidance and fits and not rung.example else guidance_for(rewritten.schema, example=rung.example)
        )
    return StructuredPlan(
        mode=MODE_OF[rung.form],
        form=rung.form,
        name=name,
        schema=rewritten.schema,
        strict=rung.strict,
        tool_name=tool,
        guidance=written_guidance,
        rewrites=rewritten.rewrites,
        skipped=skipped,
        wanted=wanted,
        rewritten=rewritten,
    )


_DEEPEST = 6
_OF_TYPE: dict[str, Any] = {
    "null": None,
    "boolean": True,
    "integer": 1,
    "number": 1.5,
    "string": "text",
    "array": [],
    "object": {},
}


def guidance_for(schema: Any, *, example: bool = False) -> str:
    """Return an instruction that holds the schema, and an example where wanted. It says "JSON", which some providers demand."""
    written = json.dumps(schema, ensure_ascii=False, indent=2)
    guidance = f"Answer with one JSON value that conforms to this JSON Schema:\n\n```json\n{written}\n```\n"
    shown = example_of(schema) if example else None
    # An empty value shows no form, and a model may repeat it.
    if shown:
        guidance += (
            f"\nAn example of its form, not of its content:\n\n```json\n{json.dumps(shown, ensure_ascii=False)}\n```\n"
        )
    return guidance + "\nWrite only that JSON: no text before or after it, and no code fence."


def tool_guidance(name: str) -> str:
    """Return an instruction to give the answer by calling a tool, for targets that cannot be made to call it."""
    return f"Give your final answer only by calling the tool `{name}`, with all of its required arguments."


def example_of(schema: Any) -> Any:
    """Return a small value of a schema's form. It shows names and types; rules about values may not hold."""
    return _example(schema, schema, 0)


def _example(schema: Any, root: Any, depth: int) -> Any:
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return None
    for word in ("examples", "enum"):
        if isinstance(schema.get(word), list) and schema[word]:
            return schema[word][0]
    if "const" in schema:
        return schema["const"]
    if isinstance(schema.get("$ref"), str):
        return _example(resolve(root, schema["$ref"]), root, depth + 1)
    for word in ("anyOf", "oneOf", "allOf"):
        if isinstance(schema.get(word), list) and schema[word] and "properties" not in schema:
            return _example(schema[word][0], root, depth + 1)
    return _of_type(schema, root, depth)


def _of_type(schema: dict[str, Any], root: Any, depth: int) -> Any:
    kind = schema.get("type") or ("object" if "properties" in schema else "string")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if kind == "object" and isinstance(schema.get("properties"), dict):
        return {name: _example(member, root, depth + 1) for name, member in schema["properties"].items()}
    if kind == "array" and isinstance(schema.get("items"), dict):
        return [_example(schema["items"], root, depth + 1)]
    return _OF_TYPE.get(str(kind))
