"""A reply for people: in one line, and as HTML for a notebook, where nothing of what a model wrote is markup."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from typing import Any

_SHOWN = 60


def one_line(name: str, parts: Iterable[tuple[str, Any]]) -> str:
    """Return `Name(part=value, …)` with the parts that say something, long texts shortened."""
    said = (f"{part}={short(value)}" for part, value in parts if value is False or value not in (None, "", 0, (), []))
    return f"{name}({', '.join(said)})"


def html_of(response: Any) -> str:
    """Return a reply as HTML: its thinking folded, its answer, its calls, and what was changed, folded too."""
    return f'<div class="bardo-response">{"".join(_blocks(response))}</div>'


def _blocks(response: Any) -> Iterator[str]:
    thinking = "\n\n".join(block.readable for block in response.reasoning_blocks if block.readable)
    if thinking:
        yield _folded("Thinking", _text(thinking))
    if response.text:
        yield _text(response.text)
    if response.refusal:
        yield f"<p><strong>Refused:</strong></p>{_text(response.refusal)}"
    for call in response.tool_calls:
        yield f"<p><code>{escape(call.name)}({escape(call.raw_arguments)})</code></p>"
    if response.error is not None:
        yield f"<p><strong>{escape(type(response.error).__name__)}:</strong> {escape(str(response.error))}</p>"
    if response.degraded:
        changes = "".join(f"<li>{escape(one.what)}: {escape(one.why)}</li>" for one in response.degraded)
        yield _folded(f"{len(response.degraded)} changed", f"<ul>{changes}</ul>")
    yield f"<p><small>{escape(_facts(response))}</small></p>"


def _facts(response: Any) -> str:
    usage = response.usage
    counts = [f"{usage.input_tokens} tokens in"] if usage.input_tokens is not None else []
    counts += [f"{usage.output_tokens} out"] if usage.output_tokens is not None else []
    counts += [f"{usage.reasoning_tokens} of them thinking"] if usage.reasoning_tokens else []
    named = [part for part in (response.provider, response.model) if part]
    return " · ".join(["/".join(named), *counts, response.finish.raw or response.finish.reason]).strip(" ·")


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{escape(title)}</summary>{body}</details>"


def _text(text: str) -> str:
    return f'<div style="white-space: pre-wrap">{escape(text)}</div>'


def short(value: Any) -> str:
    """Return the `repr` of a value, cut where it is long."""
    if isinstance(value, str):
        return repr(value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…")
    shown = repr(value)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
