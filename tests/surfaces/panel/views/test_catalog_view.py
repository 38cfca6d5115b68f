"""The catalog of the panel: models with who says what, search, pages, and one model as `bardo catalog show` has it."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from bardo.catalog.load import builtin
from bardo.catalog.models import builtin_models
from bardo.surfaces.panel.tables import PAGE_ROWS
from support.any_model import Simulator
from support.keyed_gateway import keyed_gateway, make_key
from support.panel_pages import PanelReader, SeenPage
from surfaces.panel.views.conftest import TOML, FilledGateway

OWN_FACTS = """
[[models]]
match = ["strange-*"]
provider = "deepseek"
control = ["effort"]
efforts = ["low", "high"]
"""


@pytest.fixture(scope="module")
def strange(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PanelReader]:
    """A gateway whose operator says something of a model."""
    folder = tmp_path_factory.mktemp("catalog")
    with keyed_gateway(folder, [Simulator("deepseek")], toml=TOML + OWN_FACTS) as gateway:
        reader = PanelReader(gateway.address, gateway.key(operator=True))
        yield reader
        reader.close()


def test_each_fact_has_its_layer_and_date(operator: PanelReader) -> None:
    row = next(one for one in builtin_models().rows if one.efforts and one.date and not one.assumed)
    name = row.match[0].replace("*", "")
    page = operator.page("/catalog/model", provider=row.provider, model=name)
    told = page.table("What is known of its thinking").row("efforts")
    assert told["value"] == ", ".join(row.efforts or ())
    assert told["layer"] == "L2, the catalog"
    assert row.date is not None
    assert told["as of"] == row.date.isoformat()


def test_an_operators_word_goes_first(strange: PanelReader) -> None:
    page = strange.page("/catalog/model", provider="deepseek", model="strange-9")
    row = page.table("What is known of its thinking").row("efforts")
    assert (row["value"], row["layer"]) == ("low, high", "operator, the operator's override")


def test_providers_are_searched(operator: PanelReader) -> None:
    wanted = next(row for row in builtin().providers if row.key_variables)
    found = operator.page("/catalog", list="providers", q=wanted.key_variables[0].lower()).table("Providers")
    assert wanted.id in found.column("preset")
    assert len(found.rows) < len(builtin().providers)
    nothing = operator.page("/catalog", list="providers", q="nobody is called so")
    assert "Nothing matches all of these words." in nothing.text


def test_facts_are_paged_and_none_is_missing(operator: PanelReader) -> None:
    rows = builtin_models().rows
    seen: list[str] = []
    page = operator.page("/catalog", list="facts")
    for number in range(1, math.ceil(len(rows) / PAGE_ROWS) + 1):
        page = operator.page("/catalog", list="facts", page=number)
        seen += page.table("Built-in facts").column("models")
    assert seen == [", ".join(row.match) for row in rows]
    assert not any("page=" in link and f"page={number + 1}" in link for link in page.links)


def test_a_provider_that_is_none_is_said(operator: PanelReader) -> None:
    page = SeenPage(operator.get("/catalog/model", provider="nobody at all", model="m"))
    assert page.status == 400
    assert "no provider is called" in page.text


def test_a_key_sees_the_models_that_it_may_ask(filled: FilledGateway) -> None:
    _, key = make_key(filled.gateway.state, models=("nothing/*",))
    reader = PanelReader(filled.gateway.address, key)
    page = SeenPage(reader.get("/catalog/model", provider="deepseek", model="m1"))
    reader.close()
    assert page.status == 404
