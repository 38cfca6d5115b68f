"""The requests of the log: a list in pages, with filters; the page of one; and what would be sent for a request, and why, as `bardo
explain` shows it.

The page of one request says what was asked, sent, seen and answered and what it cost, and has a form that sends it again. It shows a
call as parts: turns, thinking, calls of tools and their results. Where a request is explained, nothing is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from bardo.adapters.config.pipeline import profile_names
from bardo.adapters.stores.database.problems import LogMissing
from bardo.adapters.stores.log import LogReader
from bardo.adapters.stores.log.row import CallFilter, CallPage, Feedback, LogRow
from bardo.call.open import open_call
from bardo.dialects import DEFAULT_DIALECT, DIALECTS
from bardo.planning.explanation import Explanation
from bardo.planning.route import Provider
from bardo.surfaces.library.asking import ANY, SAMPLE_TEXT, decode_body, sample_bodies, with_intent, with_reasoning
from bardo.surfaces.library.explaining import RoutePlanner, explain_by, read_request
from bardo.surfaces.library.memory import read_past
from bardo.surfaces.panel.pages import Page, PanelRequest, Redirect, Viewer, query_text
from bardo.surfaces.panel.tables import Cell, Head, Table
from bardo.surfaces.render.calls import call_fields, dialects, model_cell, outcome, served_by
from bardo.surfaces.render.explained import explanation_sections
from bardo.surfaces.render.wording import count, difference, dollars, excerpt, moment, policy_of, seconds
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


ROWS = 50
OUTCOMES = ("ok", "error", "broken", "cancelled")
_BADGES = {"ok": "ok", "cancelled": "warn"}
_SPANS: Mapping[str, tuple[str, float]] = {
    "1h": ("the last hour", 3600.0),
    "24h": ("the last 24 hours", 86_400.0),
    "7d": ("the last 7 days", 7 * 86_400.0),
    "30d": ("the last 30 days", 30 * 86_400.0),
}
_FIELDS = ("model", "provider", "outcome", "key", "span", "id")
_LONGEST = 200
_SHORT_ID = 16


async def show_requests(panel: Panel, request: PanelRequest) -> Page:
    """Return a page of calls. A key that is no operator's sees its own alone."""
    query = {name: request.query[name].strip()[:_LONGEST] for name in _FIELDS if request.query.get(name, "").strip()}
    now = panel.context.services.clock()
    written = request.query.get("before", "")
    before = int(written) if written.isascii() and written.isdecimal() and len(written) < 16 else None
    span, own = _SPANS.get(query.get("span", "")), request.viewer.key_id
    wanted = CallFilter(
        provider=query.get("provider"),
        model=query.get("model"),
        outcome=query["outcome"] if query.get("outcome") in OUTCOMES else None,
        key_id=own if own is not None else query.get("key"),
        since=None if span is None else now - span[1],
        id_part=query.get("id", ""),
    )

    def read(log: LogReader) -> CallPage:
        return log.calls_before(wanted, before, limit=ROWS)

    try:
        page = await panel.read_log(read)
    except LogMissing:
        page = CallPage(rows=(), before=None)
    shown_keys = request.viewer.operator and panel.context.accounts is not None
    values = {
        "table": _table(page.rows, now, _key_names(panel) if shown_keys else None, filtered=bool(query)),
        "older": f"/panel/requests?{query_text(query, before=page.before)}" if page.before else "",
        "newest": f"/panel/requests?{query_text(query)}" if before is not None else "",
        "complete": len(page.rows) == ROWS or page.before is None,
        **_form(panel, query),
        "keys": _key_choices(panel) if shown_keys else None,
    }
    return Page("requests.html", "Requests", values)


def _form(panel: Panel, query: Mapping[str, str]) -> dict[str, Any]:
    """Return what the fields of the filters hold and offer."""
    return {
        "query": {name: query.get(name, "") for name in _FIELDS},
        "providers": [("", "any"), *((one.id, one.id) for one in panel.context.services.directory.providers)],
        "outcomes": [("", "any"), *((one, one) for one in OUTCOMES)],
        "spans": [("", "any time"), *((name, words) for name, (words, _) in _SPANS.items())],
    }


def _key_names(panel: Panel) -> dict[str, str]:
    accounts = panel.context.accounts
    return {} if accounts is None else {one.id: one.name or one.id for one in accounts.known}


def _key_choices(panel: Panel) -> list[tuple[str, str]]:
    named = sorted(_key_names(panel).items(), key=lambda pair: pair[1])
    return [("", "any"), *((own, name if name == own else f"{name} ({own})") for own, name in named)]


def _table(rows: tuple[LogRow, ...], now: float, keys: Mapping[str, str] | None, *, filtered: bool) -> Table:
    heads = (
        Head("Time"),
        Head("Id"),
        Head("Model", wrap=True),
        Head("Outcome"),
        Head("Duration", number=True),
        Head("In", number=True),
        Head("Out", number=True),
        Head("Reasoning", number=True),
        Head("Cost", number=True),
        Head("Dialects"),
        *([] if keys is None else [Head("Key")]),
    )
    return Table(
        name="requests",
        caption="Requests, newest first",
        heads=heads,
        rows=tuple(_row(row, now, keys) for row in rows),
        empty="No request matches these filters." if filtered else "The log has no requests yet.",
    )


def _row(row: LogRow, now: float, keys: Mapping[str, str] | None) -> tuple[Cell | str, ...]:
    verdict = row.reasoning_verdict if row.reasoning_verdict not in (None, "unknown", "honoured") else ""
    cells: tuple[Cell | str, ...] = (
        moment(row.started_at, now),
        Cell(row.request_id[:_SHORT_ID] or "–", href=f"/panel/requests/{quote(row.request_id, safe='')}"),
        Cell(excerpt(model_cell(row), 80), below=row.error_class or ""),
        Cell(outcome(row), badge=_BADGES.get(row.outcome, "bad")),
        seconds(row.seconds),
        count(row.input_tokens),
        count(row.output_tokens, estimated=row.tokens_approx and row.outcome != "ok"),
        Cell(count(row.reasoning_tokens, estimated=row.tokens_approx), below=verdict or ""),
        dollars(row.cost_usd),
        dialects(row),
    )
    return cells if keys is None else (*cells, keys.get(row.key_id or "", row.key_id or "–"))


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
    return tuple([Turn(role=message.role, parts=tuple(_parts(message.blocks))) for message in request.messages])


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
# A row is in the log within half a second after its call has ended.
_LOOKS, _SECONDS_BETWEEN_LOOKS = 6, 0.3
_EFFORT_OFF = "off"


def without_content(row: LogRow) -> LogRow:
    """Return a row without what was asked, answered and sent."""
    return msgspec.structs.replace(row, request_content=None, reply_content=None, sent_content=None)


async def show_request(panel: Panel, request: PanelRequest) -> Page:
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


MOST_TEXT = 500_000
"""How many characters a request may have here."""
_LONGEST_NAME = 300
_FIELDS_OF = (
    ("dialect", "dialect"),
    ("model", "model"),
    ("provider", "provider"),
    ("bardo.pipeline", "pipeline"),
    ("bardo.reasoning", "reasoning"),
    ("bardo.intent", "intent"),
    ("intent", "intent"),
    ("prompt", "prompt"),
)
"""Which field of the form an error is about, by the beginning of what it names. The body is what is left."""
ROW_HEADS: Mapping[str, tuple[str, ...]] = {
    "route": ("candidate", "asked first", "why"),
    "where each field comes from": ("field", "layer", "why"),
}


class ExplainForm(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody wrote into the form."""

    dialect: str = DEFAULT_DIALECT
    model: str = ""
    provider: str = ""
    workload: str = ""
    reasoning: str = ""
    intent: str = ""
    pipeline: str = ""
    prompt: str = ""
    body: str = ""


async def show_explained(panel: Panel, request: PanelRequest) -> Page:
    """Return the form, and what would be sent for the request that was written into it."""
    fields = request.form if request.method == "POST" else request.query
    written = {name: fields.get(name, "") for name in ExplainForm.__struct_fields__ if fields.get(name)}
    long = ("prompt", "body")
    form = ExplainForm(**{name: text if name in long else text.strip() for name, text in written.items()})
    values: dict[str, Any] = {
        **_choices(panel),
        "form": form,
        "sections": (),
        "problem": None,
        "field": "",
        "heads": ROW_HEADS,
    }
    if request.method != "POST":
        return Page("explain.html", "Explain", values)
    try:
        found = await asyncio.to_thread(_explain, panel, form, panel.context.services.directory.providers)
    except BardoError as problem:
        panel.context.services.clean(problem)
        return Page(
            "explain.html", "Explain", {**values, "problem": problem, "field": field_of(problem)}, status=problem.status
        )
    return Page("explain.html", "Explain", {**values, "sections": list(explanation_sections(found))})


def field_of(problem: BardoError) -> str:
    """Return the field of the form that an error is about."""
    param = str(getattr(problem, "param", None) or ("model" if type(problem).__name__ == "UnknownModel" else ""))
    return next((field for begin, field in _FIELDS_OF if param.startswith(begin)), "body")


def _choices(panel: Panel) -> dict[str, Any]:
    workloads = panel.context.services.directory.workloads
    return {
        "dialects": [(name, name) for name in DIALECTS],
        "efforts": ["off", "auto", *EFFORTS],
        "workloads": sorted(workloads.names),
        "pipelines": [
            ("", "as configured"),
            *((name, name) for name in profile_names(panel.settings.inference.pipeline)),
        ],
        "sample": SAMPLE_TEXT,
        "most_text": MOST_TEXT,
    }


def _explain(panel: Panel, form: ExplainForm, providers: list[Provider]) -> Explanation:
    """Return what would be sent. Raises BardoError."""
    for name, text in msgspec.structs.asdict(form).items():
        most = MOST_TEXT if name in ("prompt", "body") else 10_000 if name == "intent" else _LONGEST_NAME
        if len(text) > most:
            raise InvalidRequest(f"this is longer than {most:,} characters", hint="make it shorter", param=name)
    body = with_reasoning(_body_of(form), policy_of(form.reasoning) if form.reasoning else None)
    body = with_intent(body, form.workload, form.intent)
    if form.pipeline:
        own = body.get("bardo")
        body = {**body, "bardo": {**(own if isinstance(own, dict) else {}), "pipeline": form.pipeline}}
    model = form.model
    if not model and not body.get("model"):
        if not form.workload and not form.intent:
            raise InvalidRequest("no model is named", hint="name a model, a workload or an intent", param="model")
        model = ANY
    planner = RoutePlanner(panel.settings, providers)
    return explain_by(planner, read_request(body, form.dialect, model or None), form.provider)


def _body_of(form: ExplainForm) -> dict[str, Any]:
    """Return the body that was written, or a small request with the prompt."""
    if form.body.strip():
        return decode_body(form.body, "the body")
    samples = sample_bodies(form.prompt or SAMPLE_TEXT)
    if form.dialect not in samples and form.dialect in DIALECTS:
        hint = f"write the body, or choose one of {', '.join(samples)}"
        raise InvalidRequest(f"in {form.dialect[:100]} no request is made of a prompt", hint=hint, param="body")
    return samples.get(form.dialect, {})
