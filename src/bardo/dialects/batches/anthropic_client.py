"""Anthropic's Message Batches as its clients ask for them."""

from __future__ import annotations

import re

import msgspec

from bardo.dialects.batches.openai_client import BatchLine
from bardo.dialects.shared.json_values import decode_object, take
from bardo.values.errors import InvalidRequest

_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_KNOWN_FIELDS = ("custom_id", "params")


class _Requests(msgspec.Struct):
    requests: list[dict[str, msgspec.Raw]]


def decode_message_batch(body: bytes, *, most: int) -> list[BatchLine]:
    """Read the requests of a batch, each as it was written. Raises InvalidRequest naming the field."""
    fields = decode_object(body)
    listed = take(fields.get("requests"), list, "requests")
    if not listed:
        raise InvalidRequest("requests: List should have at least 1 item after validation, not 0", param="requests")
    if len(listed) > most:
        hint = "make several batches, or raise max_items under [batches]"
        raise InvalidRequest(f"requests: a batch holds at most {most} requests", hint=hint, param="requests")
    for name in fields:
        if name != "requests":
            raise InvalidRequest(f"{name[:100]}: Extra inputs are not permitted", param=name[:100])
    for place, one in enumerate(listed):
        take(one, dict, f"requests.{place}")
    try:
        raw = msgspec.json.decode(body, type=_Requests).requests
    except msgspec.MsgspecError as problem:
        raise InvalidRequest(f"requests: {problem}", param="requests") from problem
    seen_ids: set[str] = set()
    return [_line(place, item, one, seen_ids) for place, (item, one) in enumerate(zip(listed, raw, strict=True))]


def _line(place: int, item: dict[str, object], raw: dict[str, msgspec.Raw], seen_ids: set[str]) -> BatchLine:
    for name in item:
        if name not in _KNOWN_FIELDS:
            param = f"requests.{place}.{name[:100]}"
            raise InvalidRequest(f"{param}: Extra inputs are not permitted", param=param)
    custom_id, params = item.get("custom_id"), item.get("params")
    where = f"requests.{place}"
    if not isinstance(custom_id, str) or not _ID.fullmatch(custom_id):
        message = f"{where}.custom_id: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'"
        raise InvalidRequest(message, param=f"{where}.custom_id")
    if custom_id in seen_ids:
        message = f"{where}.custom_id: {custom_id!r} is the id of another request of the batch"
        raise InvalidRequest(message, hint="ids are unique within a batch", param=f"{where}.custom_id")
    if not isinstance(params, dict):
        raise InvalidRequest(f"{where}.params: Field required", param=f"{where}.params")
    seen_ids.add(custom_id)
    return BatchLine(custom_id, bytes(raw["params"]))
