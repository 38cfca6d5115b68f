"""What a frame says of the reply as a whole: its id and model, its usage, and fields bardo has no word for."""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.dialects.openai_chat.constants import NAME
from bardo.dialects.openai_chat.plain_frame import PlainFrame
from bardo.dialects.openai_chat.usage import decode_usage, google_counts
from bardo.values.events import Degraded, Event, ReplyFields, ReplyStart, UsageUpdate
from bardo.values.usage import Usage

# Random filler against traffic analysis, new in every frame.
_FILLER = frozenset({"obfuscation", "p"})
_READ = frozenset({"id", "object", "created", "model", "choices", "usage", "error"}) | _FILLER
_LARGEST_TIME = 1 << 53
_NO_START = ReplyStart()


class ReplyFieldsDecoder:
    """Reads these, and tells each thing once. `excludes_reasoning` is the provider's fact about reasoning tokens."""

    def __init__(self, *, excludes_reasoning: bool | None) -> None:
        self._excludes_reasoning = excludes_reasoning
        self._start: ReplyStart | None = None
        self._fields: dict[str, Any] = {}
        self._usage: Usage | None = None
        self._raw: dict[str, Any] | None = None
        self._google: dict[str, Any] | None = None

    def begin(self, body: dict[str, Any]) -> list[Event]:
        """Tell the id, the model and the time, as soon as each is known."""
        created = body.get("created")
        in_range = isinstance(created, int | float) and abs(created) < _LARGEST_TIME
        return self._begin(_text(body.get("id")), _text(body.get("model")), int(created) if in_range else None)  # type: ignore[arg-type]

    def begin_plain(self, frame: PlainFrame) -> list[Event]:
        """Tell them of a plain frame."""
        return self._begin(frame.id, frame.model, frame.created)

    def fields(self, body: dict[str, Any]) -> list[Event]:
        """Tell the usage, and whatever else is new."""
        new = self._news({name: value for name, value in body.items() if name not in _READ})
        raw, google = body.get("usage") or _usage_beside(body), google_counts(body)
        if google is not None:
            self._google = google
        if isinstance(raw, dict):
            self._raw = raw
        elif google is None or self._raw is None:
            return new
        return new + self._usage_of()

    def plain_fields(self, frame: PlainFrame) -> list[Event]:
        """Tell the same of a plain frame."""
        fields = frame.fields
        new = self._news(fields) if fields else []
        if not frame.usage:
            return new
        self._raw = frame.usage
        return new + self._usage_of()

    def _begin(self, reply: str, model: str, created: int | None) -> list[Event]:
        known = self._start or _NO_START
        if known.id and known.model and known.created:
            return []
        # Azure's first frame is about the prompt, and has no time.
        time = known.created if created is None else known.created or created
        start = ReplyStart(id=known.id or reply, model=known.model or model, created=time)
        if start == self._start:
            return []
        self._start = start
        return [start]

    def _news(self, fields: dict[str, Any]) -> list[Event]:
        known, new = self._fields, {}
        if fields == known:
            return []
        for name, value in fields.items():
            if name not in known or known[name] != value:
                new[name] = _grown(known.get(name), value)
                known[name] = value
        return [ReplyFields(NAME, new)] if new else []

    def _usage_of(self) -> list[Event]:
        usage, doubts = decode_usage(
            self._raw or {},
            excludes_reasoning=self._excludes_reasoning,
            cost=self._fields.get("cost"),
            tier=self._fields.get("service_tier"),
            google=self._google,
        )
        usage = _filled(usage, self._usage)
        if usage == self._usage:
            return []
        self._usage = usage
        return [UsageUpdate(usage), *(Degraded(doubt) for doubt in doubts)]


def _grown(before: Any, value: Any) -> Any:
    """Return what a list has more than before, since lists are joined; any other value as it is."""
    if isinstance(before, list) and isinstance(value, list) and value[: len(before)] == before:
        return value[len(before) :]
    return value


def _filled(usage: Usage, before: Usage | None) -> Usage:
    """Return a later report with the counts that only an earlier one had."""
    if before is None:
        return usage
    missing = {
        name: held
        for name, held in msgspec.structs.asdict(before).items()
        if held is not None and getattr(usage, name) is None
    }
    return msgspec.structs.replace(usage, **missing) if missing else usage


def _usage_beside(body: dict[str, Any]) -> Any:
    """Return usage that stands elsewhere: Groq's own object has it a frame earlier, Moonshot puts it on the choice."""
    own = body.get("x_groq")
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    for holder in (own, first):
        if isinstance(holder, dict) and holder.get("usage"):
            return holder["usage"]
    return None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
