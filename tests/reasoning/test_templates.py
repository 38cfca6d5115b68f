"""Formats made of the response template that a checkpoint declares."""

from __future__ import annotations

from typing import Any

import pytest

from bardo.reasoning.formats import format_of_template
from bardo.reasoning.starting import starting_state
from bardo.values.errors import CallerError
from support.splitting import cuts, read

TEMPLATE: dict[str, Any] = {
    "version": 1,
    "defaults": {"role": "assistant"},
    "start_anchor": "<bot>",
    "fields": {
        "thinking": {"open": "<th>", "close": "</th>"},
        "tool_calls": {"open": "<call>", "close": "</call>", "repeats": True, "content": "json"},
        "content": {"close": "<eot>"},
    },
}


def fields(**given: dict[str, Any]) -> dict[str, Any]:
    return {**TEMPLATE, "fields": given}


CASES: dict[str, tuple[dict[str, Any], str, str]] = {
    "thinking, a call and an answer": (TEMPLATE, "<th>a</th>b<call>{}</call>c<eot>", "‹a›b<call>{}</call>c"),
    "one block": (TEMPLATE, "<th>a</th>b<th>c</th>", "‹a›b<th>c</th>"),
    "several blocks": (
        fields(reasoning={"open": "<th>", "close": "</th>", "repeats": True}, content={}),
        "<th>a</th>b<th>c</th>d",
        "‹a›b‹c›d",
    ),
    "several spellings": (
        fields(thinking={"open": ["<t>", "<th>"], "close": ["</t>", "</th>"]}, content={}),
        "<th>a</t>b",
        "‹a›b",
    ),
    "thinking without an end": (
        fields(thinking={"open": "<th>"}, content={"open": "<say>", "close": "<eot>"}),
        "<th>a<say>b<eot>",
        "‹a›b",
    ),
    "no thinking": (fields(content={}), "<th>a</th>b", "<th>a</th>b"),
}


@pytest.mark.parametrize(("template", "text", "expected"), CASES.values(), ids=CASES.keys())
def test_a_reply_is_read_as_its_template_says(template: dict[str, Any], text: str, expected: str) -> None:
    assert {read(format_of_template(template), pieces) for pieces in cuts(text)} == {expected}


def test_the_prompt_says_where_a_reply_begins() -> None:
    row = format_of_template(TEMPLATE, name="kolibri")
    assert starting_state(row, prompt="<user>hi<bot><th>so")
    assert not starting_state(row, prompt="<user><th><bot>")
    assert not starting_state(row)


@pytest.mark.parametrize(
    "template",
    [{}, {"fields": {"thinking": "<th>"}}, fields(thinking={"open_pattern": "<t.>", "close": "</t>"})],
    ids=["nothing", "a field that is none", "a pattern"],
)
def test_what_cannot_be_read_is_refused(template: dict[str, Any]) -> None:
    with pytest.raises(CallerError):
        format_of_template(template)
