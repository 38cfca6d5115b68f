"""The parameters of requests and the headers of replies: those that bardo reads, and those that it adds."""

from __future__ import annotations

import re
from typing import Any

from bardo.dialects.shared.options import INCLUDABLE, REASONING_WORDS
from bardo.surfaces.gateway.openapi.json_schema import BOOLEAN, NUMBER, STRING, Schema, one_of
from bardo.surfaces.gateway.openapi.listing import ListedRoute

_LISTED = ", ".join(f"`{name}`" for name in INCLUDABLE)

REQUEST_HEADERS: dict[str, tuple[Schema, str]] = {
    "X-Bardo-Include": (STRING, f"What is put into the reply, separated by commas: {_LISTED}."),
    "X-Bardo-Reasoning": (one_of(*REASONING_WORDS), "How thinking is shown in the reply."),
    "X-Bardo-Allow-Loss": (
        STRING,
        "Losses that are reported instead of refused, by name, separated by commas; `*` is all.",
    ),
    "X-Bardo-Intent": (STRING, "What the call needs: `quality=high; require=vision`, or a JSON object."),
    "X-Bardo-Subsystem": (STRING, "The workload whose needs and profile the call has."),
    "X-Bardo-Vitality": (NUMBER, "What is left of the agent that asks, from 0 to 1."),
    "X-Bardo-Deadline-Seconds": (NUMBER, "Within how many seconds a stream has to begin, and a whole reply to end."),
    "X-Bardo-Allow-Stale": (NUMBER, "How many seconds old a reply may be that is given where nobody answers."),
    "X-Bardo-Pipeline": (STRING, "The profile whose layers work on the call, or `off`."),
    "X-Bardo-Session": (STRING, "The conversation that the call belongs to."),
    "X-Bardo-Verify": (STRING, "A second model that is asked whether it agrees, as `provider/model`."),
    "Cache-Control": (STRING, "How kept replies are used: `no-store`, `no-cache`, `max-age=60`."),
}
"""The headers that a request for a reply, for vectors or for a count may have."""

REPLY_HEADERS: dict[str, tuple[Schema, str]] = {
    "X-Bardo-Request-Id": (STRING, "The call's id, the same as in the log."),
    "X-Bardo-Provider": (STRING, "The id of the provider that served it."),
    "X-Bardo-Model": (STRING, "The model's name there."),
    "X-Bardo-Route": (STRING, "How it was found who answers, where the request named a workload or gave an intent."),
    "X-Bardo-Degraded": (STRING, "The names of what was changed or lost."),
    "X-Bardo-Reasoning": (STRING, "What was asked for, sent and observed of the model's thinking."),
    "X-Bardo-Reasoning-Tokens": (STRING, "Tokens of thinking, or `unknown`; whole replies only."),
    "X-Bardo-Reasoning-Tokens-Approx": (one_of("true"), "The count of thinking tokens is an estimate."),
    "X-Bardo-Cost-Usd": (
        STRING,
        "US dollars, exactly; whole replies whose cost is known, and streams out of the cache.",
    ),
    "X-Bardo-Cost-Approx": (one_of("true"), "Tokens of an attempt that broke off are estimated."),
    "X-Bardo-Cache": (STRING, "What the layer `cache` did."),
    "X-Bardo-Stale": (STRING, "The age in seconds of an old reply that was given because nobody answered."),
    "X-Bardo-Upstream-Request-Id": (STRING, "The id that the provider gave the request."),
    "X-Request-Id": (STRING, "The id of the request, as OpenAI's libraries read it."),
    "Request-Id": (STRING, "The id of the request, as Anthropic's libraries read it."),
}
"""The headers of a reply of a model."""

ERROR_HEADERS: dict[str, tuple[Schema, str]] = {
    "X-Bardo-Error": (STRING, "The error's code."),
    "X-Bardo-Limit": (STRING, "The limit of the key that has too little left."),
    "Retry-After": (STRING, "After how many seconds another try may work."),
}
"""The headers of an error."""

_PATH_WORDS = {
    "model": "The model's name. Slashes in it may stand as they are.",
    "publisher": "`google`, or a provider's id, which stands before the model's name then.",
    "project": "Any name: Vertex AI's clients send one.",
    "location": "Any name: Vertex AI's clients send one.",
    "episode_id": "The id of an episode, or of its call.",
    "lesson_id": "The id of a lesson.",
    "response_id": "The id of a response.",
    "conversation_id": "The id of a conversation.",
    "item_id": "The id of an item of the conversation.",
    "file_id": "The id of a file.",
    "batch_id": "The id of a batch.",
    "message_batch_id": "The id of a message batch.",
}
_LIMIT: Schema = {"type": "integer", "minimum": 1}
_AFTER = "The id after which the page begins."
QUERIES: dict[str, dict[str, tuple[Schema, str]]] = {
    "list_input": {
        "limit": ({**_LIMIT, "maximum": 100}, "How many items, 20 where it is left out."),
        "order": (one_of("asc", "desc"), "The order of the items; `desc` where it is left out."),
        "after": (STRING, _AFTER),
    },
    "list_files": {
        "limit": ({**_LIMIT, "maximum": 10_000}, "How many files."),
        "order": (one_of("asc", "desc"), "The order of the files; `desc` where it is left out."),
        "after": (STRING, _AFTER),
        "purpose": (STRING, "Only files of this purpose."),
    },
    "list_batches": {"limit": ({**_LIMIT, "maximum": 100}, "How many batches."), "after": (STRING, _AFTER)},
    "list_message_batches": {
        "limit": ({**_LIMIT, "maximum": 1000}, "How many batches."),
        "after_id": (STRING, _AFTER),
        "before_id": (STRING, "The id before which the page ends."),
    },
    "events": {
        "request_id": (STRING, "Only events of this call."),
        "subsystem": (STRING, "Only events of this workload."),
        "event": (STRING, "Only events whose names begin so, separated by commas."),
        "last_event_id": (STRING, "The last event that was seen, as the header `Last-Event-ID`."),
    },
    "search_memory": {
        "query": (STRING, 'Words, `"phrases"` and `begin*` that stand in questions, thinking and answers.'),
        "limit": ({**_LIMIT, "maximum": 100}, "How many episodes, 10 where it is left out."),
        "by": (one_of("both", "words", "meaning"), "What is compared; `both` where it is left out."),
        "session": (STRING, "Only this conversation."),
        "subsystem": (STRING, "Only this workload."),
        "model": (STRING, "Only calls that this model served."),
        "since": (NUMBER, "Only calls since this Unix time."),
        "before": (NUMBER, "Only calls before this Unix time."),
    },
    "show_response": {"stream": (BOOLEAN, "`true` is refused: a kept response is not streamed again.")},
    "streamGenerateContent": {"alt": (one_of("sse"), "Server-sent events in the place of a JSON array.")},
}
QUERIES["list_items"] = QUERIES["list_input"]
"""The parameters in the query, by endpoint."""

OPTION_ENDPOINTS = frozenset(("generate", "generate_or_load", "respond", "complete", "embed", "count_tokens"))
"""The endpoints that ask a model, and so take and answer with bardo's headers."""


def header_components() -> dict[str, Any]:
    """Return the headers of replies and errors, as components."""
    return {
        name: {"description": description, "schema": schema}
        for name, (schema, description) in {**REPLY_HEADERS, **ERROR_HEADERS}.items()
    }


def parameter_components() -> dict[str, Any]:
    """Return the headers of requests, as components."""
    return {name: _parameter("header", name, *row) for name, row in REQUEST_HEADERS.items()}


def parameters_of(route: ListedRoute) -> list[dict[str, Any]]:
    """Return the parameters of one path and method."""
    names = re.findall(r"\{(\w+)\}", route.path)
    found = [{**_parameter("path", name, STRING, _PATH_WORDS[name]), "required": True} for name in names]
    verb = route.path.rpartition(":")[2]
    query = QUERIES.get(route.route.endpoint) or QUERIES.get(verb) or {}
    found += [_parameter("query", name, *row) for name, row in query.items()]
    if route.route.endpoint in OPTION_ENDPOINTS:
        found += [{"$ref": f"#/components/parameters/{name}"} for name in REQUEST_HEADERS]
    return found


def _parameter(place: str, name: str, schema: Schema, description: str) -> dict[str, Any]:
    return {"name": name, "in": place, "description": description, "schema": schema}
