"""The frame of a reply: who sent it, how it ended, what it used, and the fields bardo has no word for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bardo.catalog.rows import ProviderRow
from bardo.dialects.billed_counts import tools_of_response
from bardo.dialects.counts import token_count
from bardo.dialects.openai_responses.errors import refusal_in_reply
from bardo.dialects.openai_responses.reply_parts import fields_of
from bardo.dialects.openai_responses.state import NAME
from bardo.dialects.openai_responses.usage import decode_usage
from bardo.values.events import Degraded, Event, Failed, Finish, FinishReason, ReplyFields, ReplyStart, UsageUpdate

LENGTH_WORDS = frozenset({"max_output_tokens", "max_tokens", "max_messages"})
REFUSAL_WORDS = frozenset({"content_filter"})


class ReplyFrame:
    """Collects the `response` objects of a reply. The first id stays: Copilot sends another one each time."""

    def __init__(self, row: ProviderRow) -> None:
        self._excludes_reasoning = row.quirks.output_excludes_reasoning
        self._start = ReplyStart()
        self._response: dict[str, Any] = {}
        self._fields_given = False

    def take(self, response: dict[str, Any], out: list[Event]) -> None:
        """Take a `response` object; what it says first, or says newly, is told."""
        self._response = response
        created = response.get("created_at")
        start = ReplyStart(
            id=self._start.id or _as_text(response.get("id")),
            model=_as_text(response.get("model")) or self._start.model,
            created=token_count(created) if self._start.created is None else self._start.created,
        )
        if start != self._start:
            self._start = start
            out.append(start)

    def end(
        self,
        status: str,
        additional: dict[str, Any],
        *,
        called: bool,
        others: Sequence[dict[str, Any]] = (),
        out: list[Event],
    ) -> None:
        """Take the end of the reply: fields, usage, and Finish or Failed. `others` are the items of the provider's own tools."""
        self.give_fields(out, additional)
        usage = self._response.get("usage")
        if usage is not None:
            tier, tools = self._response.get("service_tier"), tools_of_response(self._response, others)
            counts, doubts = decode_usage(fields_of(usage), self._excludes_reasoning, tier, tools)
            out.append(UsageUpdate(counts))
            out.extend(Degraded(doubt) for doubt in doubts)
        if status == "failed":
            out.append(Failed(refusal_in_reply(self._response.get("error"))))
        else:
            out.append(_finish(status, _incomplete_reason(self._response), called=called))

    def give_fields(self, out: list[Event], additional: dict[str, Any] | None = None) -> None:
        """Tell the reply's own fields, once: they are repeated and completed by each `response` object."""
        if self._fields_given or not self._response:
            return
        self._fields_given = True
        fields = {name: value for name, value in self._response.items() if name not in _READ}
        if isinstance(fields.get("reasoning"), str):
            # mistral.rs writes the thinking itself here; it was read as such.
            del fields["reasoning"]
        if _incomplete_reason(self._response) not in LENGTH_WORDS | REFUSAL_WORDS | {""}:
            fields["incomplete_details"] = self._response["incomplete_details"]
        out.append(ReplyFields(NAME, {**fields, **(additional or {})}))


_READ = frozenset(
    {"id", "object", "created_at", "model", "output", "output_text", "usage", "status", "error", "incomplete_details"}
)
"""`output_text` is a copy that some servers add."""


def _finish(status: str, why: str, *, called: bool) -> Finish:
    if status == "completed":
        return Finish("tool_calls" if called else "stop", status)
    reason: FinishReason = "length" if why in LENGTH_WORDS else "refusal" if why in REFUSAL_WORDS else "unknown"
    return Finish(reason if status == "incomplete" else "unknown", (status == "incomplete" and why) or status)


def _incomplete_reason(response: dict[str, Any]) -> str:
    details = response.get("incomplete_details")
    return _as_text(details.get("reason")) if isinstance(details, dict) else ""


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else ""
