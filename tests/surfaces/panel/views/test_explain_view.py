"""What the panel explains is what `bardo explain` shows; nothing is sent, and mistakes are said beside their field."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bardo.surfaces.library.asking import sample_bodies
from bardo.surfaces.library.explaining import RoutePlanner, explain_by, read_request
from bardo.surfaces.panel.views.requests import MOST_TEXT
from bardo.surfaces.render.explained import explanation_lines
from support.panel_pages import PanelReader, SeenPage
from surfaces.panel.views.conftest import FilledGateway

MODEL = "deepseek/deepseek-v4-flash"


def asked(operator: PanelReader, **form: str) -> SeenPage:
    return SeenPage(operator.send("/explain", form))


def told(filled: FilledGateway, body: dict[str, Any], dialect: str) -> dict[str, list[str]]:
    """Return the lines of the command by their headings."""
    planner = RoutePlanner(filled.gateway.settings)
    return dict(explanation_lines(explain_by(planner, read_request(body, dialect, MODEL))))


@pytest.mark.parametrize("dialect", sample_bodies(""))
def test_it_shows_what_the_command_shows(filled: FilledGateway, operator: PanelReader, dialect: str) -> None:
    page = asked(operator, dialect=dialect, model=MODEL, prompt="Why is the sky blue?")
    assert page.status == 200
    sections = told(filled, sample_bodies("Why is the sky blue?")[dialect], dialect)
    assert [text.lower() for tag, text in page.headings if tag == "h2"] == list(sections)
    seen = " ".join(page.text.split())
    for line in (line for lines in sections.values() for line in lines):
        for word in line.replace("<-", "").split():
            assert word.lstrip("-") in seen, line


def test_a_body_goes_before_the_prompt(operator: PanelReader) -> None:
    body = {"model": MODEL, "messages": [{"role": "user", "content": "from the body"}], "reasoning_effort": "low"}
    page = asked(operator, body=msgspec.json.encode(body).decode(), prompt="from the prompt")
    assert "from the body" in page.text
    assert page.text.count("from the prompt") == 1, "it stays in its field"


def test_nothing_is_sent(filled: FilledGateway, operator: PanelReader) -> None:
    before = len(filled.gateway.servers["deepseek"].requests)
    assert "Nothing was sent." in asked(operator, model=MODEL, reasoning="high", pipeline="minimal").text
    posted = [one for one in filled.gateway.servers["deepseek"].requests[before:] if one.method == "POST"]
    assert posted == []


def test_layers_tell_what_they_did(operator: PanelReader) -> None:
    page = asked(operator, model=MODEL, pipeline="full", prompt="hello")
    assert ("h2", "Layers") in page.headings
    assert "full" in page.text


@pytest.mark.parametrize(
    ("form", "field", "said"),
    [
        ({"model": MODEL, "body": "{bad"}, "body", "not valid JSON"),
        ({"model": MODEL, "body": "[1]"}, "body", "no JSON object"),
        ({"model": MODEL, "body": "[" * 100_000}, "body", "not valid JSON"),
        ({"model": MODEL, "body": '{"messages": 3}'}, "body", "messages"),
        ({"prompt": "hi"}, "model", "no model is named"),
        ({"model": "nobody-serves-this"}, "model", "nobody-serves-this"),
        ({"model": MODEL, "dialect": "klingon"}, "dialect", "no dialect is called"),
        ({"model": MODEL, "provider": "nobody"}, "provider", "no provider is called"),
        ({"model": MODEL, "intent": "quality"}, "intent", "has no value"),
        ({"model": MODEL, "reasoning": "sideways"}, "reasoning", "sideways"),
        ({"model": MODEL, "pipeline": "none such"}, "pipeline", "none such"),
        ({"model": "m" * 301}, "model", "longer than"),
        ({"model": MODEL, "prompt": "x" * (MOST_TEXT + 1)}, "prompt", "longer than"),
        ({"model": MODEL, "dialect": "cohere"}, "body", "no request is made of a prompt"),
    ],
    ids=lambda one: one if isinstance(one, str) else None,
)
def test_a_mistake_is_said_beside_its_field(operator: PanelReader, form: dict[str, str], field: str, said: str) -> None:
    page = asked(operator, **form)
    assert 400 <= page.status < 500
    assert said in page.text
    assert page.fields[field].get("aria-invalid") == "true"
    assert page.fields[field].get("aria-describedby") == "problem"


def test_what_was_written_stays(operator: PanelReader) -> None:
    page = asked(operator, model="a model & <b>", body="{bad", intent="quality=high")
    assert page.fields["model"]["value"] == "a model & <b>"
    assert page.fields["intent"]["value"] == "quality=high"
    assert "<b>" not in page.html


def test_only_operators_explain(member: PanelReader) -> None:
    assert member.get("/explain").status_code == 403
    assert member.send("/explain", {"model": MODEL}, at="/costs").status_code == 403


def test_the_models_page_leads_here(operator: PanelReader) -> None:
    assert operator.page("/explain", model=MODEL).fields["model"]["value"] == MODEL
