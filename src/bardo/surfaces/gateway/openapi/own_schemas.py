"""The schemas of what is bardo's own: its replies and events by their types, and the `bardo` object of requests and replies."""

from __future__ import annotations

import inspect
from typing import Any

import msgspec

from bardo.dialects.shared.options import INCLUDABLE, ON_IMPOSSIBLE, REASONING_WORDS
from bardo.services.facts.health_report import HealthReport
from bardo.surfaces.gateway.openapi.json_schema import (
    ANY,
    BOOLEAN,
    INTEGER,
    NUMBER,
    OBJECT,
    STRING,
    Schema,
    array,
    described,
    either,
    fields,
    one_of,
    or_null,
    ref,
    structure,
)
from bardo.surfaces.gateway.own_replies import (
    CacheReply,
    EpisodeReply,
    EpisodesReply,
    FeedbackReply,
    ForgottenReply,
    LessonsReply,
    PurgedReply,
    ReadyReply,
    RunningReply,
    UsageReply,
    VersionReply,
)
from bardo.values.attempts import AttemptRecord
from bardo.values.degradation import Degradation
from bardo.values.inference_events import PublishedEvent
from bardo.values.intent import Intent
from bardo.values.profile import InferenceProfile
from bardo.values.request import EFFORTS, CacheOptions, StructuredOptions

OWN_REPLIES: dict[str, type[msgspec.Struct]] = {
    "health": RunningReply,
    "ready": ReadyReply,
    "version": VersionReply,
    "feedback": FeedbackReply,
    "usage": UsageReply,
    "show_cache": CacheReply,
    "purge_cache": PurgedReply,
    "search_memory": EpisodesReply,
    "show_episode": EpisodeReply,
    "forget_episode": ForgottenReply,
    "provider_health": HealthReport,
    "list_lessons": LessonsReply,
    "forget_lessons": PurgedReply,
    "forget_lesson": PurgedReply,
}
"""The types of bardo's own replies, by endpoint."""

_TYPES = (
    *OWN_REPLIES.values(),
    *(PublishedEvent, Degradation, AttemptRecord, Intent, InferenceProfile, CacheOptions, StructuredOptions),
)
_SECONDS: Schema = {"type": "number", "exclusiveMinimum": 0}
_NUMBER_OR_NULL = or_null(NUMBER)
_OPTIONS: dict[str, Schema] = {
    "include": described(array(one_of(*INCLUDABLE)), "What is put into the reply."),
    "reasoning": described(
        either(one_of("off", "auto", *EFFORTS, *REASONING_WORDS), {"type": "integer", "minimum": 0}),
        "How the model should think: off, auto, a level, or a number of tokens; or how thinking is shown.",
    ),
    "on_impossible": described(one_of(*ON_IMPOSSIBLE), "What becomes of `off` where the model always thinks."),
    "structured": ref("StructuredOptions"),
    "allow_loss": described(array(STRING), "Losses that are reported instead of refused; `*` is all."),
    "intent": ref("Intent"),
    "profile": ref("InferenceProfile"),
    "private": described(BOOLEAN, "Only providers that keep nothing of a call may be asked."),
    "vitality": {"type": "number", "minimum": 0, "maximum": 1},
    "tick": described(
        OBJECT, "The tick of an agent: signals by their names, and `type`, `cycle`, `sustainability` and `diem`."
    ),
    "deadline_seconds": _SECONDS,
    "allow_stale": _SECONDS,
    "verify": described(STRING, "A second model that is asked whether it agrees, as `provider/model`."),
    "pipeline": described(STRING, "The profile whose layers work on the call, or `off`."),
    "layers": described({"type": "object", "additionalProperties": BOOLEAN}, "Turns single layers on and off."),
    "session": described(STRING, "The conversation that the call belongs to."),
    "cache": ref("CacheOptions"),
}
_COST = fields(
    *("usd", "nanos", "parts", "source"),
    usd=_NUMBER_OR_NULL,
    nanos=or_null(INTEGER),
    parts=OBJECT,
    reported_usd=_NUMBER_OR_NULL,
    computed_usd=_NUMBER_OR_NULL,
    difference_usd=_NUMBER_OR_NULL,
    saved_usd=_NUMBER_OR_NULL,
    source=or_null(STRING),
)
_BARDO_REPLY = fields(
    request_id=STRING,
    provider=STRING,
    model=STRING,
    cost_usd=_NUMBER_OR_NULL,
    cost=_COST,
    attempts=array(ref("AttemptRecord")),
    degraded=array(ref("Degradation")),
    reasoning_chain=fields("visibility", "content", visibility=STRING, content=ANY, steps=array(OBJECT)),
    receipt=described(OBJECT, "What was asked for, sent and observed of the model's thinking."),
    structured=or_null(OBJECT),
    route=or_null(OBJECT),
)
_BATCH_FIGURES = fields(
    cost_usd=_NUMBER_OR_NULL, cost_nanos=or_null(INTEGER), priced_items=INTEGER, items={"type": "object"}
)


def own_schemas() -> dict[str, Any]:
    """Return the components of all that is bardo's own."""
    _, components = msgspec.json.schema_components(_TYPES, ref_template="#/components/schemas/{name}")
    found = {name: _in_plain_lines(schema) for name, schema in components.items()}
    found["BardoOptions"] = described(
        or_null(structure(_OPTIONS) | {"additionalProperties": False}), "What a request asks of bardo itself."
    )
    found["BardoReply"] = described(_BARDO_REPLY, "What bardo tells of a call, where the request asked for something.")
    found["BatchFigures"] = described(_BATCH_FIGURES, "What bardo tells of a batch.")
    found["MissedEvent"] = described(OBJECT, "Some events were missed: how many is not known.")
    return found


def _in_plain_lines(schema: Schema) -> Schema:
    """Return a schema of a type whose description is its docstring without the indentation of the source."""
    return {**schema, "description": inspect.cleandoc(schema["description"])} if "description" in schema else schema
