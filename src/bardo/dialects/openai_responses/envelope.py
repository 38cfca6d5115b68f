"""The `response` object around the output: what was asked, echoed as OpenAI's servers do, and how it ended.

A reply that came in this dialect brings its own fields; they are written as they came, and nothing is added to them.
"""

from __future__ import annotations

import hashlib
from typing import Self

import msgspec

from bardo.dialects.openai_responses.errors import error_object
from bardo.dialects.openai_responses.reply_in import LENGTH_WORDS
from bardo.dialects.openai_responses.usage import encode_usage
from bardo.dialects.openai_responses.wire import NAME, STATUSES
from bardo.dialects.shared.json_values import JsonObject
from bardo.values.errors import BardoError
from bardo.values.events import Event, Extension, Finish, ReplyFields, ReplyStart, UsageUpdate
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.usage import Usage

_DEFAULTS: JsonObject = {
    "background": False,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "service_tier": "default",
    "store": False,
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": None,
    "truncation": "disabled",
    "user": None,
}
# What the gateway keeps is told by `kept_as`, and none runs in the background; a provider that keeps or does so says it in its own fields.
_NOT_ECHOED = frozenset({"store", "background", "service_tier", "previous_response_id"})


class Envelope:
    """The known fields of the reply beside its items."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self.start = ReplyStart()
        self.usage = Usage()
        self.finish = Finish("unknown")
        self.error: BardoError | None = None
        self.extension: JsonObject = {}
        self._fields: JsonObject | None = None
        self._id = ""

    @classmethod
    def of(cls, response: Response, request: Request) -> Self:
        """Return the facts about a whole reply."""
        envelope = cls(request)
        envelope.start = ReplyStart(id=response.id, model=response.model, created=response.created)
        envelope.usage, envelope.finish = response.usage, response.finish
        envelope.error, envelope.extension = response.error, response.bardo
        if response.carried is not None and response.carried.dialect == NAME:
            envelope._fields = dict(response.carried.fields)
        return envelope

    @property
    def id(self) -> str:
        """The reply's id, which does not change once it was told. Made from the request where the provider gave none."""
        if not self._id and self._request.kept_as is not None:
            self._id = self._request.kept_as.id
        if not self._id:
            self._id = self.start.id
        if not self._id:
            seed = msgspec.json.encode([self._request.model, self._request.body, self.start.created])
            self._id = f"resp_bardo_{hashlib.sha256(seed).hexdigest()[:24]}"
        return self._id

    def take(self, event: Event) -> None:
        """Take an event that says something of the reply as a whole."""
        match event:
            case ReplyStart(id=reply_id, model=model, created=created):
                start = self.start
                created = start.created if created is None else created
                self.start = ReplyStart(id=reply_id or start.id, model=model or start.model, created=created)
            case ReplyFields(dialect=dialect, fields=fields, choice=None) if dialect == NAME:
                self._fields = {} if self._fields is None else self._fields
                self._fields.update(fields)
            case UsageUpdate(usage=usage):
                self.usage = usage
            case Finish(choice=0):
                self.finish = event
            case Extension(fields=fields):
                self.extension = {**self.extension, **fields}
            case _:
                pass

    @property
    def status(self) -> str:
        """How the reply ended, in this dialect's words."""
        if self.error is not None or self.finish.reason == "error":
            return "failed"
        if self.finish.reason in ("length", "refusal") or self._incomplete_details is not None:
            return "incomplete"
        raw = self.finish.raw
        return raw if self.finish.reason == "unknown" and raw in STATUSES else "completed"

    @property
    def item_status(self) -> str:
        """The status of an item that was still open at the end: cut off, unless the provider's own items say themselves what they are."""
        cut = self.finish.reason == "length" and self._fields is None
        return "incomplete" if cut or self.error is not None else "completed"

    def opening(self) -> JsonObject:
        """Return the response as it is announced."""
        return self._object("in_progress", [], self._echo())

    def closing(self, output: list[JsonObject]) -> JsonObject:
        """Return the finished response; bardo's own words stand last, under `bardo`."""
        response = self._object(self.status, output, self._echo() if self._fields is None else self._fields)
        response["usage"] = encode_usage(self.usage, "" if self.usage.reasoning_tokens else _thinking_in(output))
        response["incomplete_details"] = self._incomplete_details
        if self.error is not None:
            told = error_object(self.error)
            response["error"] = {"code": told["code"], "message": told["message"]}
        if self.extension:
            response["bardo"] = self.extension
        return response

    def _object(self, status: str, output: list[JsonObject], fields: JsonObject) -> JsonObject:
        return {
            "id": self.id,
            "object": "response",
            "created_at": self.start.created or 0,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "model": self.start.model or self._request.model,
            "output": output,
            "usage": None,
            **fields,
            **self._storage(),
        }

    def _storage(self) -> JsonObject:
        """Return the report on how the gateway keeps the reply."""
        stored = self._request.kept_as
        if stored is None:
            return {}
        conversation = {"conversation": {"id": stored.conversation}} if stored.conversation else {}
        return {"store": stored.store, "previous_response_id": stored.previous or None, **conversation}

    def _echo(self) -> JsonObject:
        body = self._request.body if self._request.dialect == NAME else None
        if not body:
            return _DEFAULTS
        asked = {name: body[name] for name in _DEFAULTS if body.get(name) is not None and name not in _NOT_ECHOED}
        return {**_DEFAULTS, **asked}

    @property
    def _incomplete_details(self) -> JsonObject | None:
        if self.finish.reason == "length":
            # Anthropic's word for it is max_tokens, which is no reason of this API, though some servers of it say it.
            is_length = self.finish.raw in LENGTH_WORDS and self.finish.raw != "max_tokens"
            return {"reason": self.finish.raw if is_length else "max_output_tokens"}
        if self.finish.reason == "refusal":
            return {"reason": "content_filter"}
        own = (self._fields or {}).get("incomplete_details")
        return own if isinstance(own, dict) else None


def _thinking_in(output: list[JsonObject]) -> str:
    thoughts = [item for item in output if item.get("type") == "reasoning"]
    parts = [part for item in thoughts for name in ("summary", "content") for part in item.get(name) or ()]
    return "\n\n".join([str(part.get("text", "")) for part in parts if isinstance(part, dict)])
