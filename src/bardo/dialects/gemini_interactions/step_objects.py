"""Blocks as steps, in replies and in requests to a provider alike."""

from __future__ import annotations

from bardo.dialects.gemini.wire import FORMAT, arguments_object, is_native, signature_of
from bardo.dialects.gemini_interactions.wire import NAME
from bardo.dialects.shared.json_values import JsonObject, without
from bardo.values.blocks import Opaque, ReasoningBlock, RefusalBlock, TextBlock, ToolCallBlock, fields_for

StepObject = JsonObject
"""A step as it is written, or what one holds."""


def thought_step(block: ReasoningBlock) -> StepObject:
    """Return thinking: Gemini's own item by item, anybody else's as it can be read."""
    fields = dict(fields_for(NAME, block.carried))
    texts = list(block.summary) or ([block.text] if block.text else [])
    if block.summary and block.text:
        texts = [block.text, *texts]
    items = [{"type": "text", "text": text} for text in texts]
    given = as_list(fields.pop("summary", None))
    # Fields of the texts have no type.
    if beside := [item for item in given if "type" not in item]:
        items = [{**item, **extra} for item, extra in zip(items, beside, strict=False)] + items[len(beside) :]
    summary = [*items, *[item for item in given if "type" in item]]
    return {"type": "thought", **signed(block.opaque), **({"summary": summary} if summary else {}), **fields}


def output_step(block: TextBlock | RefusalBlock) -> StepObject:
    """Return text of the model, in a step of its own."""
    fields = dict(fields_for(NAME, block.carried))
    further = fields.pop("step", None)
    states = () if isinstance(block, RefusalBlock) else block.opaque
    step = {"type": "model_output", "content": [{"type": "text", "text": block.text, **fields}], **signed(states)}
    return {**step, **further} if isinstance(further, dict) else step


def call_step(block: ToolCallBlock) -> StepObject:
    """Return a call. Arguments that are no object stand whole under one key."""
    arguments, _ = arguments_object(block.arguments)
    step = {"type": "function_call", "id": block.id, "name": block.name, "arguments": arguments}
    return {**step, **signed(block.opaque), **fields_for(NAME, block.carried)}


def signed(states: tuple[Opaque, ...]) -> dict[str, str]:
    """Return the field of a step that holds opaque state: Gemini's own as it is, anybody else's sealed."""
    signature = signature_of(states)
    return {"signature": signature} if signature else {}


def own_states(states: tuple[Opaque, ...]) -> tuple[Opaque, ...]:
    """Return what Gemini made, under the name it has here."""
    held = tuple(state if is_native(state) else Opaque("signature", state.data, FORMAT) for state in _of_gemini(states))
    return held[-1:]


def _of_gemini(states: tuple[Opaque, ...]) -> list[Opaque]:
    return [state for state in states if state.format == FORMAT]


def as_list(value: object) -> list[JsonObject]:
    """Return a list as it is, and an empty one for anything else."""
    return value if isinstance(value, list) else []


def output_contents(value: StepObject) -> tuple[StepObject, list[StepObject]]:
    """Return a step that only this dialect has as its beginning and the contents that follow piece by piece."""
    if isinstance(value, dict) and value.get("type") == "model_output" and isinstance(value.get("content"), list):
        return {"type": "model_output", **without(value, "type", "content")}, value["content"]
    return value, []
