"""The inference log as people read it: calls, one call in full, and the receipts of its thinking and of its layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from bardo.adapters.stores.log.row import Feedback, LogRow
from bardo.surfaces.render.tables import Column, TextTable, facts, table
from bardo.surfaces.render.wording import (
    NOT_REPORTED,
    count,
    difference,
    dollars,
    excerpt,
    moment,
    printable,
    seconds,
    short_dialect,
)
from bardo.values.attempts import AttemptRecord
from bardo.values.degradation import Degradation
from bardo.values.usage import usd

if TYPE_CHECKING:
    from rich.table import Table


def layer_facts(pipeline: Mapping[str, Any] | None) -> Iterator[tuple[str, str]]:
    """Return the profile of a call and what each of its layers did; empty for a call without layers."""
    if pipeline is None:
        return
    yield "pipeline", printable(str(pipeline.get("profile", "")))
    for one in pipeline.get("layers", ()):
        before, after = one.get("tokens_before"), one.get("tokens_after")
        spent = one.get("microseconds")
        saw = ", ".join(f"{name} {value}" for name, value in (one.get("saw") or {}).items())
        words = (
            one.get("did") or "changed nothing",
            f"{before} to {after} tokens" if before is not None and after is not None and before != after else "",
            f"saw {saw}" if saw else "",
            f"{spent} µs" if spent is not None else "",
            f"off by {one['off']}" if one.get("off") else "",
        )
        yield f"layer {printable(str(one.get('layer', '')))}", printable("; ".join(word for word in words if word))


def cache_fact(row: LogRow) -> str:
    """Write what the cache of replies did with a call, and what that saved; empty for a call without it."""
    if not row.cache:
        return ""
    saved = "" if row.reply_saved_nanos is None else f", saved {dollars(usd(row.reply_saved_nanos))}"
    return f"{row.cache}{saved}"


LAYERS = {
    "operator": "the operator's override",
    "L1": "the server itself",
    "listing": "the provider's list of models",
    "L2": "the catalog",
    "L3": "an assumption",
}
REASONS = {
    "exact": "the model takes it as it is",
    "alias": "at this model one level acts as another",
    "nearest level": "the nearest level the model offers",
    "budget from level": "the model takes tokens, so the level's budget",
    "level from budget": "the model takes levels, so the nearest one",
    "range": "as near as the model's range and the output limit allow",
    "no room": "the output limit leaves no room for thinking",
    "only on or off": "the model knows no amounts",
    "the provider translates": "the provider puts levels into the model's own control",
    "no control": "the model cannot be told how to think",
    "no field": "the provider has no field for it",
    "off": "it can be turned off",
    "does not think": "the model does not think unless it is told to",
    "cannot be off": "the model always thinks, so the least there is",
    "gave way": "something else in the request does not go with thinking",
    "a level is needed": "silence would be off",
    "not asked": "the model does as it is used to",
    "assumed": "no row is about this model; it is taken to be like the newest one of its line",
    "unclassified": "nothing is known of this model",
}
VERDICTS = {
    "honoured": "the model did as asked",
    "clamped": "another amount was sent than asked for",
    "floored": "off was asked; this model always thinks, so the least there is was sent",
    "hidden_only": "off was asked; the model thought, and its text is not shown",
    "void": "what was asked moved nothing",
    "contradicted": "the reply shows the opposite of what was asked",
    "unknown": "nothing was asked, or nothing shows what became of it",
}


def receipt_facts(receipt: Mapping[str, Any] | None, said: str | None) -> list[tuple[str, str]]:
    """Return a receipt, one fact a line; `said` is what was sent in a word. Nothing for a call from before there were receipts."""
    if receipt is None or "layer" not in receipt:
        return []
    seen = receipt.get("observed") or {}
    fields = receipt.get("emitted")
    sent = printable(msgspec.json.encode(fields).decode()) if fields else ""
    tokens = seen.get("reasoning_tokens")
    how = "estimated" if seen.get("approx") else "reported"
    counted = "tokens not reported" if tokens is None else f"{count(tokens)} tokens {how}"
    return [
        ("thinking asked", intent_text(str(receipt.get("intent")))),
        ("thinking sent", " as ".join(part for part in (intent_text(said or ""), sent) if part) or "nothing"),
        ("decided by", decision_text(str(receipt["layer"]), str(receipt.get("reason") or ""))),
        (
            "seen",
            f"{counted}, {'its text' if seen.get('text_seen') else 'no text'} ({seen.get('visibility') or 'none'})",
        ),
        ("verdict", verdict_text(str(receipt.get("verdict")))),
    ]


def intent_text(intent: str) -> str:
    """Write what was asked for: `low`, `off`, `a budget of 2,048 tokens`, `nothing`."""
    if intent == "none":
        return "nothing"
    name, _, tokens = intent.partition(":")
    return f"a budget of {int(tokens):,} tokens" if name == "budget" and tokens.isdecimal() else intent


def decision_text(layer: str, reason: str) -> str:
    """Write who decided, and why: `L2, the catalog: nearest level`."""
    who = f"{layer}, {LAYERS[layer]}" if layer in LAYERS else layer
    told = f"{reason} ({REASONS[reason]})" if reason in REASONS else reason
    return printable(f"{who}: {told}" if told else who)


def verdict_text(verdict: str) -> str:
    """Write a verdict with what it means."""
    return f"{verdict}: {VERDICTS[verdict]}" if verdict in VERDICTS else printable(verdict)


# The second in which a call began, and as many random digits.
_SHORT_ID = 12
_LONGEST_NAME = 160
"""Letters of a model's name in a list: a client may have sent any name."""
_MOST_ASKED = 3

_CALL_COLUMNS = (
    Column("time", least=8),
    Column("id", least=_SHORT_ID, keep=True),
    Column("dialects", least=16, drop=4),
    Column("model", keep=True, least=14),
    Column("in", right=True, least=5),
    Column("out", right=True, least=5),
    Column("thinking", right=True, least=8, drop=2),
    Column("took", right=True, least=6, drop=3),
    Column("outcome", least=7),
)


def calls_table(rows: Sequence[LogRow], now: float, *, head: bool = True) -> TextTable:
    """Return calls, one a line. `now` is Unix time."""
    return table(_CALL_COLUMNS, (_call(row, now) for row in rows), head=head)


def _call(row: LogRow, now: float) -> tuple[str, ...]:
    return (
        moment(row.started_at, now),
        row.request_id[:_SHORT_ID],
        dialects(row),
        excerpt(model_cell(row), _LONGEST_NAME),
        count(row.input_tokens),
        count(row.output_tokens, estimated=row.tokens_approx and row.outcome != "ok"),
        count(row.reasoning_tokens, estimated=row.tokens_approx),
        seconds(row.seconds),
        outcome(row),
    )


def dialects(row: LogRow) -> str:
    """Write which way a call went: the client's dialect, then the provider's where it is another."""
    client, provider = short_dialect(row.client_dialect or "python"), short_dialect(row.provider_dialect)
    return client if client == provider or not row.provider_dialect else f"{client}→{provider}"


def served_by(row: LogRow) -> str:
    """Write who served which model; where nobody did, what was asked for."""
    return f"{row.provider}/{row.model}" if row.provider else row.model_asked


def model_cell(row: LogRow) -> str:
    """Write who served which model, and after it what was asked of it unless that was a reply."""
    return served_by(row) if row.operation == "generate" else f"{served_by(row)} {row.operation}"


def outcome(row: LogRow) -> str:
    """Write how a call ended, with the status where it failed."""
    return f"{row.outcome} {row.status}" if row.outcome == "error" and row.status else row.outcome


def call_facts(row: LogRow, now: float, feedback: Sequence[Feedback] = ()) -> Table:
    """Return one call in full, with what was thought of its answer."""
    return facts(call_fields(row, now, feedback))


def call_fields(row: LogRow, now: float, feedback: Sequence[Feedback] = ()) -> list[tuple[str, str]]:
    """Return the facts about one call as names and words, without what is empty."""
    cached = f", of them {count(row.cached_input_tokens)} from the cache" if row.cached_input_tokens else ""
    parts = ", ".join(f"{cause} {dollars(usd(nanos))}" for cause, nanos in (row.cost_parts or {}).items())
    words = [dollars(row.cost_usd), *([f"({parts})"] if parts else [])]
    reported, computed = row.reported_cost_nanos, row.computed_cost_nanos
    if reported is not None and computed is not None and reported != computed:
        words.append(f"as reported; {dollars(usd(computed))} by the prices")
    pairs: list[tuple[str, str]] = [
        ("id", row.request_id),
        ("time", f"{moment(row.started_at, now)}, took {seconds(row.seconds)}{_first_byte(row)}"),
        ("asked for", f"{row.model_asked} in {row.client_dialect or 'python'}{', streamed' if row.streamed else ''}"),
        ("operation", row.operation),
        ("session", row.session or ""),
        ("agent", row.agent or ""),
        ("repository", row.repository or ""),
        ("served by", f"{served_by(row)} in {row.provider_dialect}" if row.provider else "nobody"),
        *(_route(row.route) if row.route else ()),
        ("attempts", str(row.attempts)),
        ("frames", _frames(row)),
        ("outcome", outcome(row)),
        ("error", f"{row.error_class}: {printable(row.error_message or '')}" if row.error_class else ""),
        ("finish", _finish(row)),
        ("visibility", row.visibility or NOT_REPORTED),
        ("thinking", _thinking(row)),
        ("input", f"{count(row.input_tokens)} tokens{cached}"),
        ("output", f"{count(row.output_tokens, estimated=row.tokens_approx and row.outcome != 'ok')} tokens"),
        ("cost", " ".join(words)),
        *((f"attempt {number}", _attempt(one)) for number, one in enumerate(row.attempt_records, start=1)),
        *(("degraded", difference(msgspec.convert(given, Degradation))) for given in row.degraded),
        ("cache", cache_fact(row)),
        *layer_facts(row.pipeline),
        *receipt_facts(row.receipt, row.reasoning_emitted),
        *(("feedback", _feedback(one, now)) for one in feedback),
        ("usage as sent", _json(row.usage_raw)),
        ("request", printable(row.request_content or "")),
        ("reply", printable(row.reply_content or "")),
        ("sent", printable(row.sent_content or "")),
    ]
    return [(name, value) for name, value in pairs if value]


def _route(route: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the workload of a call, the vitality of its agent, and how its target was chosen."""
    yield "workload", printable(str(route.get("workload", "")))
    yield "vitality", str(route.get("vitality", ""))
    asked = [_candidate(one) for one in route.get("candidates", ())]
    yield "route", printable(f"by {route.get('strategy', 'order')}: {', then '.join(asked[:_MOST_ASKED])}")
    refused = [f"{_target_text(one)} ({', '.join(one.get('reasons', ()))})" for one in route.get("refused", ())]
    more = len(refused[_MOST_ASKED:]) + route.get("more_refused", 0)
    further = f"; and {more} more" if more else ""
    yield "not asked", printable("; ".join(refused[:_MOST_ASKED]) + further)


def _candidate(one: Mapping[str, Any]) -> str:
    lacks = f"lacks {', '.join(one['degraded'])}" if one.get("degraded") else ""
    cost = one.get("estimated_cost_usd")
    words = "; ".join(word for word in (lacks, "" if cost is None else f"about {dollars(cost)}") if word)
    return f"{_target_text(one)} ({words})" if words else _target_text(one)


def _target_text(one: Mapping[str, Any]) -> str:
    return f"{one.get('provider', '')}/{one.get('model', '')}"


def _feedback(given: Feedback, now: float) -> str:
    said = f": {printable(given.comment)}" if given.comment else ""
    return f"{given.score:g} of 1, {moment(given.given_at, now)}{said}"


def _first_byte(row: LogRow) -> str:
    return "" if row.first_byte_seconds is None else f" (first piece after {seconds(row.first_byte_seconds)})"


def _frames(row: LogRow) -> str:
    if not row.client_dialect or not row.provider:
        return ""
    return "passed through" if row.passed_through else "rebuilt for the client"


def _finish(row: LogRow) -> str:
    if row.finish_raw and row.finish_raw != row.finish_reason:
        return f"{row.finish_reason} ({row.finish_raw})"
    return row.finish_reason or ""


def _thinking(row: LogRow) -> str:
    if row.reasoning_tokens is None:
        return "tokens not reported"
    how = "estimated from its text" if row.tokens_approx else "reported by the provider"
    return f"{count(row.reasoning_tokens, estimated=row.tokens_approx)} tokens, {how}"


def _attempt(one: AttemptRecord) -> str:
    ended = one.error or ("ok" if one.seconds is not None else "not seen to its end")
    took = "" if one.seconds is None else f" after {seconds(one.seconds)}"
    cost = "unknown" if one.nanos is None else dollars(usd(one.nanos))
    why = f"; {printable(one.why)}" if one.why else ""
    at = f" at {printable(one.address)}" if one.address else ""
    return f"{one.cause}: {printable(one.provider)}/{printable(one.model)}{at}, {ended}{took}, cost {cost}{why}"


def _json(value: object) -> str:
    return "" if value is None else printable(msgspec.json.encode(value).decode())
