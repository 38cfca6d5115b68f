"""The page of one request: what was asked, sent, seen and answered, what it cost, and a form that sends it again.

It shows a call as parts: turns, thinking, calls of tools and their results.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from bardo.adapters.stores.log import LogReader
from bardo.adapters.stores.log.row import Feedback, LogRow
from bardo.call.open import open_call
from bardo.surfaces.library.memory import read_past
from bardo.surfaces.panel.pages import Page, PanelRequest, Redirect, Viewer
from bardo.surfaces.panel.tables import Cell, Head, Table
from bardo.surfaces.render.calls import call_fields, outcome, served_by
from bardo.surfaces.render.wording import count, difference, dollars, excerpt, seconds
from bardo.values.blocks import (
    Block,
    DocumentBlock,
    ImageBlock,
    ReasoningBlock,
    RefusalBlock,
    ReplyBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
)
from bardo.values.degradation import Degradation
from bardo.values.effort import EFFORTS
from bardo.values.errors import BardoError, InvalidRequest, NotStored
from bardo.values.request import ReasoningPolicy, Request
from bardo.values.usage import usd

if TYPE_CHECKING:
    from bardo.surfaces.panel.panel import Panel

_STREAMED = ("stream", "stream_options")


class ContentPart(msgspec.Struct, frozen=True, kw_only=True):
    """One part. `kind` says how it is shown: `text` as Markdown, `thinking` likewise and folded, `json` and `plain` as they are."""

    kind: str
    text: str = ""
    title: str = ""


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """What one side said."""

    role: str
    parts: tuple[ContentPart, ...]


def asked_turns(row: LogRow) -> tuple[Turn, ...]:
    """Return what was asked, oldest first. Content that was cut, or is in no dialect, is shown as it stands in the log."""
    if row.request_content is None:
        return ()
    request = past_request(row)
    if request is None or not request.messages:
        return (Turn(role="request", parts=(ContentPart(kind="plain", text=row.request_content),)),)
    return tuple([Turn(role=one.role, parts=tuple(_parts(one.blocks))) for one in request.messages])


def answered_parts(row: LogRow) -> tuple[ContentPart, ...]:
    """Return what was answered, with its thinking."""
    if row.reply_content is None:
        return ()
    try:
        blocks = msgspec.json.decode(row.reply_content, type=tuple[ReplyBlock, ...])
    except (msgspec.DecodeError, RecursionError):
        return (ContentPart(kind="plain", text=row.reply_content),)
    return tuple(_parts(blocks))


def past_request(row: LogRow) -> Request | None:
    """Return what was asked as a request for a whole reply, or None if the log does not hold it."""
    content = row.request_content
    if content is None or not row.client_dialect:
        return None
    try:
        body = msgspec.json.decode(content)
        if not isinstance(body, dict):
            return None
        whole = msgspec.json.encode({name: value for name, value in body.items() if name not in _STREAMED})
        fields = {"request_id": row.request_id, "model_asked": row.model_asked, "client_dialect": row.client_dialect}
        line = msgspec.json.encode({**fields, "request_content": whole.decode(), "route": row.route})
        return read_past(line, row.client_dialect, {}).request
    except (msgspec.DecodeError, RecursionError, BardoError):
        return None


def _parts(blocks: Sequence[Block | ReplyBlock]) -> Iterator[ContentPart]:
    for block in blocks:
        match block:
            case TextBlock(text=text):
                yield ContentPart(kind="text", text=text)
            case ReasoningBlock():
                yield _thinking(block)
            case RefusalBlock(text=text):
                yield ContentPart(kind="text", text=text, title="Refusal")
            case ToolCallBlock(name=name, arguments=arguments):
                yield ContentPart(kind="json", text=_indented_json(arguments), title=f"Call of {name}")
            case ToolResultBlock(name=name, content=content, is_error=is_error):
                title = f"Result{f' of {name}' if name else ''}{', an error' if is_error else ''}"
                words = "\n".join(
                    [one.text if isinstance(one, TextBlock) else _block_description(one) for one in content]
                )
                yield ContentPart(kind="plain", text=words, title=title)
            case ImageBlock() | DocumentBlock():
                yield ContentPart(kind="plain", text=_block_description(block))
            case UnknownBlock(value=value):
                yield ContentPart(
                    kind="json", text=_indented_json(msgspec.json.encode(value).decode()), title="Other part"
                )


def _thinking(block: ReasoningBlock) -> ContentPart:
    text = block.text or "\n\n".join(block.summary)
    if not text:
        return ContentPart(kind="hidden")
    return ContentPart(kind="thinking", text=text, title="Thinking" if block.text else "Summary of thinking")


def _block_description(block: object) -> str:
    """Return a description of a part that is not text."""
    if isinstance(block, ImageBlock):
        return f"[picture: {block.media_type or 'by its address'}]"
    if isinstance(block, DocumentBlock):
        return f"[document: {block.name or block.media_type or 'without a name'}]{block.text and chr(10)}{block.text}"
    return "[part that is no text]"


def _indented_json(text: str) -> str:
    """Return JSON on several lines, and what is no JSON as it is."""
    try:
        return msgspec.json.format(text, indent=2)
    except (msgspec.DecodeError, RecursionError):
        return text


_THINKING = ("visibility", "thinking", "thinking asked", "thinking sent", "decided by", "seen", "verdict")
_CALL = (
    *("time", "asked for", "operation", "session", "agent", "repository", "served by", "attempts", "frames", "outcome"),
    *("finish", "input", "output"),
)
_ROUTE = ("workload", "vitality", "route", "not asked")
_FURTHER = ("cache", "pipeline", "feedback")
_BADGES = {"ok": "ok", "cancelled": "warn"}
# A row is in the log within half a second after its call has ended.
_LOOKS, _SECONDS_BETWEEN_LOOKS = 6, 0.3
_EFFORT_OFF = "off"


def without_content(row: LogRow) -> LogRow:
    """Return a row without what was asked, answered and sent."""
    return msgspec.structs.replace(row, request_content=None, reply_content=None, sent_content=None)


async def show(panel: Panel, request: PanelRequest) -> Page:
    """Return the page of one request. Raises NotStored where the viewer may see none of this id."""
    row, feedback = await _read(panel, request.viewer, request.parameters["id"])
    earlier = request.query.get("of", "")
    before = (await _read(panel, request.viewer, earlier))[0] if earlier else None
    now = panel.context.services.clock()
    words = call_fields(without_content(row), now, feedback)
    kept = panel.keeps_content
    layers = [(name, value) for name, value in words if name in _FURTHER or name.startswith("layer ")]
    made = [
        ("Call", [(name, value) for name, value in words if name in _CALL]),
        ("Thinking", [(name, value) for name, value in words if name in _THINKING]),
        ("Route", [(name, value) for name, value in words if name in _ROUTE]),
        ("Layers and feedback", layers),
    ]
    parts = tuple((cause, dollars(usd(nanos))) for cause, nanos in (row.cost_parts or {}).items())
    total = (Cell("Total"), Cell(dollars(row.cost_usd), below=f"by {row.price_source}" if row.price_source else ""))
    heads = (Head("Cause"), Head("US dollars", number=True))
    values = {
        "row": row,
        "name": served_by(row),
        "badge": _BADGES.get(row.outcome, "bad"),
        "outcome": outcome(row),
        "figures": _figures(row),
        "groups": [(title, pairs) for title, pairs in made if pairs],
        "degraded": list(_degradation_table(row)),
        "attempts": _attempts(row),
        "costs": Table(name="costs", caption="Cost by cause", heads=heads, rows=parts, foot=total),
        "turns": asked_turns(row) if kept else (),
        "answer": answered_parts(row) if kept else (),
        "opaque": row.visibility == "opaque" and bool(row.reasoning_tokens),
        "raw": list(_raw(row if kept else without_content(row))),
        "comparison": None if before is None else _comparison(before, row),
        "of": None if before is None else before.request_id,
        "may_repeat": kept and row.operation == "generate" and past_request(row) is not None,
        "efforts": [("", "as in the request"), (_EFFORT_OFF, "off"), *((one, one) for one in EFFORTS)],
    }
    return Page("request.html", f"Request {row.request_id}", values)


async def send_again(panel: Panel, request: PanelRequest) -> Redirect:
    """Send the request again, with another model or effort, and show the new call. Raises BardoError where it was not begun."""
    row, _ = await _read(panel, request.viewer, request.parameters["id"])
    past = past_request(row) if panel.keeps_content and row.operation == "generate" else None
    if past is None:
        raise InvalidRequest("the log does not hold this request", hint="set content = true under [log] in bardo.toml")
    changed = _apply_changes(past, request.form)
    account = request.viewer.account
    try:
        live = await open_call(
            panel.context.services,
            changed,
            may_forward=False,
            tenant="" if account is None else account.tenant,
            account=account,
        )
        try:
            await live.read()
        finally:
            await live.close()
        made = live.request_id
    except BardoError as problem:
        if not problem.request_id:
            raise
        made = problem.request_id
    return Redirect(f"/panel/requests/{quote(made, safe='')}?of={quote(row.request_id, safe='')}")


def _apply_changes(past: Request, form: Mapping[str, str]) -> Request:
    """Return the request with the model and the effort of a form. Raises InvalidRequest."""
    model, effort = form.get("model", "").strip() or past.model, form.get("effort", "")
    request = msgspec.structs.replace(past, model=model, stream=False)
    if not effort:
        return request
    if effort == _EFFORT_OFF:
        policy = ReasoningPolicy(mode="off")
    elif effort in EFFORTS:
        policy = ReasoningPolicy(mode="effort", effort=next(one for one in EFFORTS if one == effort))
    else:
        raise InvalidRequest(f"there is no effort {effort[:80]!r}", hint=f"use off, {', '.join(EFFORTS)}")
    return msgspec.structs.replace(request, options=msgspec.structs.replace(request.options, reasoning=policy))


async def read_call(panel: Panel, viewer: Viewer, own_id: str) -> LogRow:
    """Return a call that a viewer may see. One that has just ended is waited for. Raises NotStored."""
    return (await _read(panel, viewer, own_id))[0]


async def _read(panel: Panel, viewer: Viewer, own_id: str) -> tuple[LogRow, list[Feedback]]:
    """Return a call and what was thought of it. A call that has just ended is waited for. Raises NotStored."""

    def read(log: LogReader) -> tuple[LogRow | None, list[Feedback]]:
        row = log.get_exact(own_id)
        return row, [] if row is None else log.feedback(row.request_id)

    for look in range(_LOOKS):
        if look:
            await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)
        row, feedback = await panel.read_log(read)
        if row is not None:
            break
    key = viewer.key_id
    # Whose call it is, is not told to those who may not see it.
    if row is None or (key is not None and row.key_id != key):
        raise NotStored("the log has no such request", hint="a running call appears in the log when it ends")
    return row, feedback


def _figures(row: LogRow) -> list[tuple[str, str, str]]:
    first = "" if row.first_byte_seconds is None else f"first byte after {seconds(row.first_byte_seconds)}"
    cached = f"{count(row.cached_input_tokens)} from the cache" if row.cached_input_tokens else ""
    verdict = "" if row.reasoning_verdict in (None, "unknown") else f"requested effort: {row.reasoning_verdict}"
    return [
        ("Duration", seconds(row.seconds), first),
        ("Input tokens", count(row.input_tokens), cached),
        ("Output tokens", count(row.output_tokens, estimated=row.tokens_approx and row.outcome != "ok"), ""),
        ("Reasoning tokens", count(row.reasoning_tokens, estimated=row.tokens_approx), verdict),
        ("Cost", dollars(row.cost_usd), ""),
    ]


def _degradation_table(row: LogRow) -> Iterator[str]:
    for one in row.degraded:
        try:
            yield difference(msgspec.convert(one, Degradation))
        except msgspec.ValidationError:
            # Too many for the log: it holds their beginning.
            yield excerpt(msgspec.json.encode(one).decode(), 2000)


def _attempts(row: LogRow) -> Table:
    rows = []
    for number, one in enumerate(row.attempt_records, start=1):
        ended = one.error or ("ok" if one.seconds is not None else "incomplete")
        why = f"{one.cause}; {one.why}" if one.why else one.cause
        rows.append(
            (
                str(number),
                Cell(f"{one.provider}/{one.model}", below=one.address or ""),
                Cell(ended, badge="ok" if ended == "ok" else "bad"),
                why,
                "–" if one.seconds is None else seconds(one.seconds),
                dollars(None if one.nanos is None else usd(one.nanos)),
            )
        )
    heads = (
        Head("No."),
        Head("Sent to", wrap=True),
        Head("Ended", wrap=True),
        Head("Why", wrap=True),
        Head("Duration", number=True),
        Head("Cost", number=True),
    )
    return Table(name="attempts", caption="Attempts", heads=heads, rows=tuple(rows))


def _json(text: str) -> Any:
    """Return a JSON value; the text itself where it was too long to be kept whole."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def _raw(row: LogRow) -> Iterator[tuple[str, Any]]:
    """Yield what the log holds as JSON: receipts are more exact than sentences."""
    named = (("Receipt", row.receipt), ("Route", row.route), ("Layers", row.pipeline), ("Usage as sent", row.usage_raw))
    sent = () if row.sent_content is None else (("Request to the provider", _json(row.sent_content)),)
    for title, value in (*sent, *named):
        if value is not None:
            yield title, value


def _comparison(before: LogRow, after: LogRow) -> Table:
    """Return an earlier call and the one that sent it again, side by side."""
    pairs = [(_comparison_cells(before)[place], _comparison_cells(after)[place]) for place in range(len(_COMPARED))]
    rows = tuple((name, first, second) for name, (first, second) in zip(_COMPARED, pairs, strict=True))
    heads = (Head(""), Head("Before", wrap=True), Head("Now", wrap=True))
    return Table(name="comparison", caption="Sent again", heads=heads, rows=rows)


_COMPARED = ("Model", "Outcome", "Thinking sent", "Took", "Output", "Thinking", "Cost")


def _comparison_cells(row: LogRow) -> tuple[str, ...]:
    return (
        excerpt(served_by(row), 200),
        outcome(row),
        row.reasoning_emitted or "–",
        seconds(row.seconds),
        count(row.output_tokens, estimated=row.tokens_approx and row.outcome != "ok"),
        count(row.reasoning_tokens, estimated=row.tokens_approx),
        dollars(row.cost_usd),
    )
