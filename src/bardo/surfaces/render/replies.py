"""A Response as a person reads it, and as a program does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from bardo.reasoning.steps import chain_fields
from bardo.surfaces.render.console import as_plain
from bardo.surfaces.render.wording import NOT_REPORTED, count, difference, dollars, excerpt, printable, seconds
from bardo.values.blocks import ReasoningBlock, RefusalBlock, ReplyBlock, TextBlock, ToolCallBlock
from bardo.values.events import Finish
from bardo.values.reasoning import ReasoningChain
from bardo.values.response import Response
from bardo.values.usage import Usage

if TYPE_CHECKING:
    from rich.table import Table

    from bardo.surfaces.render.tables import TextTable

_BEGINNING = 60


def reply_json(response: Response) -> dict[str, Any]:
    """Return everything a reply holds, what people ask for first."""
    fields = msgspec.to_builtins(response, enc_hook=as_plain)
    fields["reasoning"] = chain_fields(response.reasoning)
    for told, other in zip(fields["alternatives"], response.alternatives, strict=True):
        told["reasoning"] = chain_fields(other.reasoning)
    first = {
        "text": response.text,
        "reasoning": fields.pop("reasoning"),
        "tool_calls": msgspec.to_builtins(response.tool_calls),
    }
    named = {name: fields.pop(name) for name in ("usage", "finish", "degraded", "error", "bardo")}
    return {**first, **named, **fields}


def call_line(response: Response, took: float) -> str:
    """Write who answered, what it used, what it cost and how long it took, on one line."""
    chain = response.reasoning
    thinking = f", thinking {reasoning_text(chain)}" if chain.visibility != "none" or chain.reported else ""
    return "; ".join(
        (
            f"{response.provider}/{response.model}",
            f"tokens: {usage_text(response.usage)}{thinking}",
            f"cost {dollars(response.bardo.get('cost_usd'))}",
            seconds(took),
        )
    )


def reply_facts(response: Response) -> Table:
    """Return the facts about a reply."""
    from bardo.surfaces.render.tables import facts

    rows = [
        ("provider", response.provider),
        ("model", response.model),
        ("visibility", response.reasoning.visibility.value),
        ("reasoning", reasoning_text(response.reasoning)),
        ("usage", usage_text(response.usage)),
        ("finish", finish_text(response.finish)),
        *(("degraded", difference(degradation)) for degradation in response.degraded),
        *((("error", f"{response.error.code}: {printable(response.error.message)}"),) if response.error else ()),
    ]
    return facts((name, value) for name, value in rows if value)


def finish_text(finish: Finish) -> str:
    """Write why a reply ended, in our word and the provider's; empty where nothing says."""
    if finish.raw and finish.raw != finish.reason:
        return f"{finish.reason} ({finish.raw})"
    return finish.reason if finish.raw or finish.reason != "unknown" else ""


def reasoning_text(chain: ReasoningChain) -> str:
    """Write how much was thought, and how that is known."""
    if chain.tokens_approx:
        return f"{count(chain.reasoning_tokens, estimated=True)} tokens, estimated from its text"
    if chain.reported:
        return f"{count(chain.reasoning_tokens)} tokens, reported by the provider"
    return "tokens not reported" if chain.visibility != "none" else "none seen, none reported"


def usage_text(usage: Usage) -> str:
    """Write what a call used."""
    if not usage.reported:
        return "not reported"
    words = [f"input {count(usage.input_tokens)}", f"output {count(usage.output_tokens)}"]
    if usage.cached_input_tokens:
        words.append(f"cached input {count(usage.cached_input_tokens)}")
    if usage.cache_write_tokens:
        words.append(f"written to cache {count(usage.cache_write_tokens)}")
    return ", ".join(words)


def blocks_table(response: Response) -> TextTable:
    """Return the blocks of a reply in order, each with its length in characters and its beginning."""
    from bardo.surfaces.render.tables import Column, table

    columns = (Column("#", right=True), Column("block"), Column("length", right=True), Column("beginning", cut=True))
    rows = ((str(place), *_block(block)) for place, block in enumerate(response.blocks, 1))
    return table(columns, rows)


def _block(block: ReplyBlock) -> tuple[str, str, str]:
    match block:
        case TextBlock(text=text):
            return _row("text", text)
        case ReasoningBlock() if block.readable:
            return _row("reasoning" if block.text else "reasoning summary", block.readable)
        case ReasoningBlock():
            return "reasoning, unreadable", NOT_REPORTED, ", ".join(opaque.kind for opaque in block.opaque)
        case ToolCallBlock(name=name, arguments=arguments):
            return "tool call", count(len(arguments)), excerpt(f"{name}({arguments})", _BEGINNING)
        case RefusalBlock(text=text):
            return _row("refusal", text)
        case _:
            kind = block.value.get("type") if isinstance(block.value, dict) else None
            return f"{kind or 'unknown'}", NOT_REPORTED, f"a block of {block.dialect} only"


def _row(kind: str, text: str) -> tuple[str, str, str]:
    return kind, count(len(text)), excerpt(text, _BEGINNING)
