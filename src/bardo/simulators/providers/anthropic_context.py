"""Context management of the Messages API: which edits there are, the beta that each needs, and what they are refused for.

platform.claude.com/docs, "Context editing" and "Compaction at a token threshold", 2026-11; the parameters of anthropic 2.12.0.
"""

from __future__ import annotations

from typing import Final

from bardo.simulators.fields import Fields, at, fields, number, rows, text
from bardo.simulators.incoming import Incoming
from bardo.simulators.refusal import Refusal

_BETAS: Final = {
    "clear_tool_uses_20250919": "context-management-2025-06-27",
    "clear_thinking_20251015": "context-management-2025-06-27",
    "compact_20260112": "compact-2026-01-12",
}
_COMPACTION: Final = frozenset(("type", "trigger", "instructions", "pause_after_compaction"))
_LEAST_TRIGGER: Final = 50_000


def check(incoming: Incoming) -> None:
    """Refuse edits that nobody knows, that lack their beta, or that would begin too early, and blocks of compaction without a beta."""
    betas = {one.strip() for one in incoming.headers.get("anthropic-beta", "").split(",")}
    for index, edit in enumerate(rows(at(incoming.fields, "context_management.edits"))):
        where, kind = f"context_management.edits.{index}", text(edit.get("type"))
        if kind not in _BETAS:
            known = ", ".join(repr(one) for one in sorted(_BETAS))
            raise Refusal("bad_value", f"{where}: Input tag '{kind}' does not match any of the expected tags: {known}")
        if _BETAS[kind] not in betas:
            raise Refusal(
                "bad_value", "context_management: Extra inputs are not permitted", parameter="context_management"
            )
        if kind == "compact_20260112":
            _check_compaction(where, edit)


def _check_compaction(where: str, edit: Fields) -> None:
    for name in sorted(edit.keys() - _COMPACTION):
        raise Refusal("bad_value", f"{where}.compact_20260112.{name}: Extra inputs are not permitted")
    trigger = edit.get("trigger")
    if trigger is None:
        return
    if text(fields(trigger).get("type")) != "input_tokens":
        raise Refusal("bad_value", f"{where}.compact_20260112.trigger.type: Input should be 'input_tokens'")
    value = number(fields(trigger).get("value"))
    if value is None or value < _LEAST_TRIGGER:
        words = f"Input should be greater than or equal to {_LEAST_TRIGGER}"
        raise Refusal("bad_value", f"{where}.compact_20260112.trigger.value: {words}")
