"""The catalog of the panel: models with who says what, search, pages, and one model as `bardo catalog show` has it."""

from __future__ import annotations

import math
from collections.abc import Iterator

import httpx
import pytest

from bardo.catalog.load import builtin
from bardo.catalog.models import builtin_models
from bardo.simulators import presets
from bardo.surfaces.panel.tables import PAGE_ROWS
from support.any_model import Simulator
from support.keyed_gateway import KeyedGateway, keyed_gateway, make_key
from support.panel_pages import PanelReader, SeenPage
from support.patience import PATIENCE
from support.sampling import NIGHTLY
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
    assert "ask fordeepseek/strange-9" in page.text, "a list that does not have it names it no other way"


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


NAMES = sorted(presets())


def lists_of(place: int, name: str) -> tuple[str, ...]:
    """Return what a provider lists: a name of its own, one that all have, and one that begins with the name of another."""
    other = NAMES[(place + 7) % len(NAMES)]
    return (f"own-of-{name}", "shared", f"{other}/shared", f"{other}/own-of-{other}")


@pytest.fixture(scope="module")
def side_by_side(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[KeyedGateway, PanelReader, str]]:
    """A gateway before a simulator of every preset, all of which list the same names and each other's."""
    simulators = [Simulator(name, models=lists_of(place, name)) for place, name in enumerate(NAMES)]
    with keyed_gateway(tmp_path_factory.mktemp("every"), simulators) as gateway:
        key = gateway.key(operator=True)
        reader = PanelReader(gateway.address, key)
        yield gateway, reader, key
        reader.close()


def reached(gateway: KeyedGateway, key: str, name: str) -> str:
    """Return the provider that a name reaches, whatever it answers."""
    body = {"model": name, "messages": [{"role": "user", "content": "2 + 2?"}]}
    answer = httpx.post(
        f"{gateway.address}/v1/chat/completions",
        json=body,
        headers={"authorization": f"Bearer {key}"},
        timeout=PATIENCE,
    )
    return str(answer.headers.get("x-bardo-provider", answer.text))


def test_every_id_that_the_panel_shows_reaches_the_provider_that_it_is_listed_for(
    side_by_side: tuple[KeyedGateway, PanelReader, str],
) -> None:
    gateway, reader, key = side_by_side
    listed = httpx.get(f"{gateway.address}/v1/models", headers={"authorization": f"Bearer {key}"}).json()["data"]
    names = {one["id"]: one["owned_by"] for one in listed if one["owned_by"] != "bardo"}
    shown: dict[str, str] = {}
    for number in range(1, 1 + math.ceil(len(NAMES) * 4 / PAGE_ROWS)):
        table = reader.page("/catalog", list="models", page=number).table("Models of the configured providers")
        shown |= dict(zip(table.column("model"), table.column("provider"), strict=True))
    assert shown == names
    providers = reader.page("/catalog", list="providers").table("Providers")
    examples = dict(zip(providers.column("preset"), providers.column("ask for, as an example"), strict=True))
    assert {names[example]: example for example in examples.values() if example} == {
        preset: example for preset, example in examples.items() if example
    }
    asked = {
        **{name: owner for name, owner in names.items() if NIGHTLY or "shared" in name},
        **{one: names[one] for one in examples.values() if one},
    }
    wrong = {name: (owner, found) for name, owner in asked.items() if (found := reached(gateway, key, name)) != owner}
    assert wrong == {}
