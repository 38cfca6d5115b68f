"""An Explanation as a person reads it: route, thinking, the exact request, where each field comes from, and what differs.

Lines keep to 80 columns, but for the request: that is as it would be sent.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from bardo.planning.explanation import AnswerForm, Candidate, Explanation
from bardo.surfaces.render.calls import decision_text, intent_text, layer_facts
from bardo.surfaces.render.wording import difference, printable
from bardo.values.profile import InferenceProfile, ResponseSchema
from bardo.values.request import Intent

WIDTH = 80
_ANY = Intent()
_EXPECTED = {True: "the model thinks", False: "the model does not think", None: "nobody knows whether the model thinks"}
_FORWARDED = "its frames go to the client as they come"
_REBUILT = "it is read, and written for the client"


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """One part of what is shown: facts by their names, rows of cells, a list of items, notes, and a text that keeps its lines."""

    heading: str
    facts: tuple[tuple[str, str], ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    items: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    text: str = ""


def explanation_sections(explanation: Explanation) -> Iterator[Section]:
    """Return the sections in their order."""
    yield _route(explanation)
    if explanation.pipeline is not None:
        yield Section(heading="layers", facts=tuple(layer_facts(explanation.pipeline)))
    if explanation.profile is not None and (applied := tuple(_profile(explanation.profile))):
        yield Section(heading="profile", facts=applied)
    yield _thinking(explanation)
    yield Section(heading="request", text=_request(explanation))
    sources = tuple((field.path, field.layer, field.reason) for field in explanation.fields)
    yield Section(heading="where each field comes from", rows=sources)
    if explanation.structured is not None:
        yield Section(heading="answer in a schema", facts=tuple(_answer(explanation.structured)))
    yield _differences(explanation)
    yield Section(heading="reply", notes=tuple(_reply(explanation)))


def explanation_lines(explanation: Explanation) -> Iterator[tuple[str, list[str]]]:
    """Yield each section's heading and lines."""
    for section in explanation_sections(explanation):
        yield section.heading, list(_lines(section))


def _lines(section: Section) -> Iterator[str]:
    yield from _columns(section.facts)
    if section.facts and section.rows:
        yield ""
    yield from _columns(section.rows)
    for item in section.items:
        yield from _wrap("  - ", printable(item))
    for note in section.notes:
        yield from _wrap("  ", note)
    if section.text:
        yield from (f"  {line}".rstrip() for line in section.text.split("\n"))


def explanation_json(explanation: Explanation) -> dict[str, Any]:
    """Return everything for a program. The body stands there as JSON."""
    plain: dict[str, Any] = msgspec.to_builtins(explanation, enc_hook=str, builtin_types=(bytes,))
    plain.pop("body_bytes")
    return plain


def _route(explanation: Explanation) -> Section:
    route = explanation.route
    found = []
    for place, one in enumerate(route.candidates, 1):
        asked = (route.provider, route.model, route.address)
        taken = (one.provider, one.model, one.address) == asked and not one.passed_over
        at = f" at {one.address}" if one.address else ""
        found.append((f"{place}. {one.provider}/{one.model}{at}", "<-" if taken else "", _candidate_notes(one)))
    more = (f"and {route.more} more that cannot be asked",) if route.more else ()
    return Section(heading="route", facts=tuple(_needs(explanation)), rows=tuple(found), notes=more)


def _needs(explanation: Explanation) -> list[tuple[str, str]]:
    """Return what the call needs, and how the candidates were put in order."""
    intent = explanation.intent
    if intent is None:
        return []
    said = {name: value for name, value in msgspec.structs.asdict(intent).items() if value != getattr(_ANY, name)}
    workload = said.pop("subsystem", "")
    words = "; ".join(f"{name} {_value_text(value)}" for name, value in said.items()) or "nothing in particular"
    pairs = [("needs", words), ("strategy", explanation.route.strategy or "none: the provider was named")]
    return [("workload", workload), *pairs] if workload else pairs


def _candidate_notes(one: Candidate) -> str:
    """Return why a candidate may be asked or not, what it lacks, and the facts about its score and its price."""
    words = [f"{one.why}; cannot be asked: {one.passed_over}" if one.passed_over else one.why]
    if one.degraded:
        words.append(f"lacks {', '.join(one.degraded)}")
    if one.score is not None:
        words.append(f"score {one.score:.2f}")
        cost = one.estimated_cost_usd
        words.append("price unknown" if cost is None else f"about ${cost:.6f}".rstrip("0").rstrip("."))
    return "; ".join(words)


def _profile(profile: InferenceProfile) -> Iterator[tuple[str, str]]:
    """Return what a profile sets."""
    for name, value in msgspec.structs.asdict(profile).items():
        if value is not None:
            yield name, value.name if isinstance(value, ResponseSchema) else _value_text(value)


def _value_text(value: Any) -> str:
    return ", ".join(value) if isinstance(value, tuple) else msgspec.json.encode(value).decode().strip('"')


def _thinking(explanation: Explanation) -> Section:
    receipt = explanation.receipt
    sent = intent_text(receipt.emitted_word) if receipt.emitted_word != "nothing" else "nothing"
    pairs = [
        ("asked", intent_text(receipt.intent)),
        ("sent", f"{sent}, in the form {receipt.form}" if receipt.form and receipt.emitted else sent),
        ("decided by", decision_text(receipt.layer, receipt.reason)),
        ("expected", _EXPECTED[receipt.thinks]),
    ]
    if receipt.assumed:
        pairs.append(("assumed", f"it is like {receipt.assumed}"))
    return Section(heading="thinking", facts=tuple(pairs))


def _request(explanation: Explanation) -> str:
    headers = [f"{name}: {value}" for name, value in explanation.headers.items()]
    keys = " or ".join(explanation.key_variables)
    body = msgspec.json.format(explanation.body_bytes, indent=2).decode()
    said = [f"POST {explanation.url}", *headers, *([f"(a key is read from {keys})"] if keys else []), "", body]
    return "\n".join(map(printable, said))


def _answer(asked: AnswerForm) -> list[tuple[str, str]]:
    instead = f" instead of {asked.wanted}" if asked.wanted != asked.mode else ""
    pairs = [("asked for", f"{asked.name}, by {asked.form} ({asked.mode}{instead})")]
    pairs += [("passed over", f"{one.form}: {one.reason}") for one in asked.skipped]
    pairs += [("rewritten", f"{one.path or 'the root'}: {one.note} ({one.effect})") for one in asked.rewrites]
    return pairs


def _differences(explanation: Explanation) -> Section:
    lost = tuple(map(difference, explanation.degraded))
    return Section(heading="what differs from what was asked", items=lost, notes=() if lost else ("nothing",))


def _reply(explanation: Explanation) -> list[str]:
    reading = explanation.reading
    said = [_FORWARDED if explanation.forwarded else _REBUILT]
    if reading.reasoning:
        inside = "may begin" if reading.undecided else "begins"
        begins = f", which {inside} inside it" if reading.starts_inside else ""
        said.append(f"thinking is looked for in its text{begins}, in the format {reading.reasoning}")
    if reading.tool_calls:
        said.append(f"tool calls are looked for in its text, in the format {reading.tool_calls}")
    return said


def _columns(rows: Iterable[tuple[str, ...]]) -> list[str]:
    """Return rows in columns, the last one wrapped under itself."""
    cells = [tuple(printable(cell) for cell in row) for row in rows]
    widths = [max(map(len, column)) for column in list(zip(*cells, strict=True))[:-1]]
    return [line for row in cells for line in _row(row, widths)]


def _row(row: tuple[str, ...], widths: list[int]) -> list[str]:
    head = "  " + "".join(f"{cell:<{width}}  " for cell, width in zip(row, widths, strict=False) if width)
    if len(head) > WIDTH // 2 + 8:
        return [head.rstrip(), *_wrap("      ", row[-1])]
    return _wrap(head, row[-1])


def _wrap(head: str, text: str) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=head, subsequent_indent=" " * len(head), break_on_hyphens=False
    ) or [head.rstrip()]
