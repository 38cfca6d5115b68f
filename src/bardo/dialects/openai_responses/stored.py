"""Responses that are kept for later requests: the stored form of one, and how a request goes on from it.

A request that goes on from an earlier response, or within a conversation, becomes one that holds all items itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from bardo.dialects.openai_responses.wire import digest_of, is_made, made_id
from bardo.dialects.shared.json_values import JsonObject, JsonValue, encode_json, optional, take
from bardo.streams.sse import encode_sse
from bardo.values.errors import InvalidRequest, UnknownPreviousResponse
from bardo.values.request import Request

_PREFIXES = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "function_call_output": "fco",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctco",
}
_ENDINGS = (b"event: response.completed\n", b"event: response.incomplete\n")
_DATA = b"\ndata: "
Item = JsonObject


class StoredResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A response as its client got it, and the items of its own input, each with an id.

    `earlier` are the ids of the responses that it goes on from, the oldest first.
    """

    response: Item
    input: list[Item]
    earlier: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """Its id, by which clients ask for it."""
        return str(self.response["id"])

    @property
    def items(self) -> list[Item]:
        """The items that a later request goes on from: its input and its output, without a call in which the reply broke off."""
        return [*self.input, *(item for item in self.response["output"] if not _is_broken_call(item))]

    @property
    def item_ids(self) -> list[str]:
        """The ids of items that stand in no other response: those of its output, and those that bardo gave."""
        own = digest_of(self.id)
        made = [item["id"] for item in self.input if own in item["id"]]
        return [*made, *(item["id"] for item in self.response["output"] if isinstance(item.get("id"), str))]


class StorageOptions(msgspec.Struct, frozen=True, kw_only=True):
    """A request's options for stored responses. `elsewhere`: it needs state that only its provider has."""

    keep: bool
    previous: str
    conversation: str
    elsewhere: bool


def read_wish(request: Request) -> StorageOptions:
    """Return what a request says of responses that are kept. Raises InvalidRequest."""
    body = request.body or {}
    store = optional(body, "store", bool)
    previous = optional(body, "previous_response_id", str) or ""
    conversation: JsonValue = optional(body, "conversation", (str, dict)) or ""
    if isinstance(conversation, dict):
        conversation = take(conversation.get("id"), str, "conversation.id")
    if previous and conversation:
        message = "previous_response_id and conversation cannot be given together"
        raise InvalidRequest(message, hint="give one of them", param="previous_response_id")
    elsewhere = bool(body.get("background")) or body.get("prompt") is not None
    return StorageOptions(keep=store is not False, previous=previous, conversation=conversation, elsewhere=elsewhere)


def input_of(request: Request) -> list[Item]:
    """Return the items of a request's own input."""
    return listed((request.body or {}).get("input"))


def listed(value: JsonValue) -> list[Item]:
    """Return an input as items: a string is a message of the user."""
    if isinstance(value, str):
        return [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": value}]}]
    return [_typed(item) for item in value or () if isinstance(item, dict)]


def with_ids(items: Iterable[Item], owner: str) -> list[Item]:
    """Return the items with ids, those of `owner` where they have none."""
    digest = digest_of(owner)
    return [
        item if isinstance(item.get("id"), str) else {"id": _item_id(item, f"{digest}i", place), **item}
        for place, item in enumerate(items)
    ]


def references(items: Iterable[Item]) -> list[str]:
    """Return the ids of the items that are referred to."""
    return [item["id"] for item in items if _is_reference(item)]


def with_references(items: Sequence[Item], referred: Mapping[str, Item], history: Sequence[Item]) -> list[Item]:
    """Return the items with those that are referred to in the places of references, without references to what the history has.

    Raises InvalidRequest for one that bardo made and does not keep any more.
    """
    result: list[Item] = []
    there = {item["id"] for item in history if isinstance(item.get("id"), str)}
    for place, item in enumerate(items):
        if not _is_reference(item):
            result.append(item)
        elif item["id"] in there:
            continue
        elif item["id"] in referred:
            result.append(referred[item["id"]])
        elif is_made(item["id"]):
            message = f"Item with id '{item['id']}' not found."
            raise InvalidRequest(message, hint="send the item itself", param=f"input[{place}].id")
        else:
            result.append(item)
    return result


_GONE = "it was deleted, or is no longer kept: send the whole conversation as input"


def missing_response(response_id: str, hint: str = _GONE) -> UnknownPreviousResponse:
    """Return the error for a response that is not kept, in the words of OpenAI's servers."""
    return UnknownPreviousResponse(
        f"Previous response with id '{response_id}' not found.", hint=hint, param="previous_response_id"
    )


def whole_body(body: Item, items: Sequence[Item]) -> bytes:
    """Return the body of a request that holds all `items` itself. The provider is not asked to store anything."""
    left_out = ("previous_response_id", "conversation", "input")
    return encode_json({**{name: value for name, value in body.items() if name not in left_out}, "input": list(items)})


def closing_response(frame: bytes) -> Item | None:
    """Return the finished response in the last frame of a stream, or None if the stream did not end well."""
    if not frame.startswith(_ENDINGS):
        return None
    fields = msgspec.json.decode(frame.partition(_DATA)[2])
    return fields["response"] if isinstance(fields.get("response"), dict) else None


def with_closing_response(frame: bytes, response: Item) -> bytes:
    """Return the last frame of a stream with another response in it."""
    fields = msgspec.json.decode(frame.partition(_DATA)[2])
    return encode_sse(encode_json({**fields, "response": response}), fields["type"])


def page(
    items: Sequence[Item], *, limit: int, descending: bool, after: str, missing: Callable[[str], Exception]
) -> Item:
    """Return a page of a list of items, as OpenAI's servers do. Raises what `missing` makes of an unknown id."""
    ordered = list(reversed(items)) if descending else list(items)
    begin = 0
    if after:
        place = next((number for number, item in enumerate(ordered) if item.get("id") == after), None)
        if place is None:
            raise missing(after)
        begin = place + 1
    data = ordered[begin : begin + limit]
    return {
        "object": "list",
        "data": data,
        "first_id": data[0].get("id") if data else None,
        "last_id": data[-1].get("id") if data else None,
        "has_more": begin + limit < len(ordered),
    }


def _is_broken_call(item: Item) -> bool:
    return str(item.get("type")).endswith("_call") and item.get("status") == "incomplete"


def _is_reference(item: Item) -> bool:
    return item.get("type") == "item_reference" and isinstance(item.get("id"), str)


def _typed(item: Item) -> Item:
    if "type" in item:
        return item
    return {"type": "message" if "role" in item else "item_reference", **item}


def _item_id(item: Item, digest: str, place: int) -> str:
    return made_id(_PREFIXES.get(str(item.get("type")), "item"), digest, place)
