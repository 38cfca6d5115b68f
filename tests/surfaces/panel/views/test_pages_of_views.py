"""What holds of every data view: its structure, labels, regions that scroll, hostile names that stay text, and plans that use indexes."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Iterator

import pytest

from bardo.adapters.stores.log import LogWriter
from bardo.adapters.stores.log.database import address_of, open_readable
from support.any_model import Simulator
from support.keyed_gateway import KeyedGateway, keyed_gateway, make_key
from support.panel_pages import PanelReader, SeenPage
from surfaces.panel.views.conftest import TOML, FilledGateway, hostile_rows

PATHS = (
    "/costs", "/costs?by=model", "/costs?split=subsystem", "/costs?by=cause", "/health?span=7d", "/catalog", "/catalog?list=facts",
    "/catalog?list=providers", "/catalog/model?provider=deepseek&model=m1", "/explain", "/reports", "/keys",
)  # fmt: skip
TAGS_OF_OWN = {
    "script": 1,
    "img": 0,
    "iframe": 0,
    "object": 0,
    "embed": 0,
    "base": 0,
    "style": 0,
    "math": 0,
    "video": 0,
    "audio": 0,
}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[KeyedGateway, PanelReader]]:
    """A gateway whose calls, providers, models, subsystems and keys are called by hostile texts."""
    with keyed_gateway(tmp_path_factory.mktemp("hostile"), [Simulator("deepseek")], toml=TOML) as gateway:
        account, _ = make_key(gateway.state, name='"><script>window.__hit=1</script>', tags=("<img src=x onerror=1>",))
        with LogWriter(gateway.log) as writer:
            for row in hostile_rows(time.time(), account.id):
                writer.write(row)
        reader = PanelReader(gateway.address, gateway.key(name="operator", operator=True))
        yield gateway, reader
        reader.close()


@pytest.mark.parametrize("path", PATHS)
def test_a_view_can_be_read_without_eyes_and_without_a_mouse(operator: PanelReader, path: str) -> None:
    page = operator.page(path)
    assert [tag for tag, _ in page.headings].count("h1") == 1
    assert page.unlabelled() == []
    assert all(one.caption for one in page.tables)
    assert page.html.count('<div class="table-wrap') == page.html.count('class="table-wrap"') + page.html.count(
        "table-wrap inner"
    )
    assert page.html.count("<table>") == page.html.count('role="region" aria-labelledby=')
    assert page.html.count("<thead>") <= page.html.count('scope="col"')
    for heads in (one.heads for one in page.tables):
        assert all(heads), "each column has a head that can be read out"
    assert " style=" not in page.html
    assert "<style" not in page.html


@pytest.mark.parametrize("path", PATHS)
def test_hostile_names_stay_text(hostile: tuple[KeyedGateway, PanelReader], path: str) -> None:
    page = hostile[1].page(path)
    assert {tag: page.tags.count(tag) for tag in TAGS_OF_OWN} == TAGS_OF_OWN
    assert not any(link.lower().startswith(("javascript:", "data:")) for link in page.links)
    assert all(link.startswith(("/panel", "#")) for link in page.links)
    assert not any(one in page.html for one in "\x1b\x07\u202e\u2066\0")


@pytest.mark.parametrize("by", ["provider", "model", "subsystem", "key"])
def test_hostile_names_in_a_file_are_no_formulas(hostile: tuple[KeyedGateway, PanelReader], by: str) -> None:
    text = hostile[1].get("/costs.csv", by=by, period="all").text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert rows
    assert not any(row[by].startswith(("=", "+", "-", "@")) for row in rows)


def test_a_formula_in_a_file_gets_an_apostrophe() -> None:
    from bardo.surfaces.render.costs import costs_csv

    assert costs_csv([{"model": "=1+1", "calls": -3}], ["model", "calls"]) == "model,calls\n'=1+1,-3\n"


@pytest.mark.parametrize("path", [one for one in PATHS if not one.startswith("/explain")])
def test_a_key_sees_nothing_of_others(filled: FilledGateway, member: PanelReader, path: str) -> None:
    answer = member.get(path)
    if answer.status_code == 303:
        answer = member.client.get(answer.headers["location"])
    page = SeenPage(answer)
    assert page.status == 200
    assert filled.other.id not in page.html
    assert "the operator" not in page.html


@pytest.mark.parametrize("path", PATHS)
def test_nobody_sees_a_view_without_signing_in(filled: FilledGateway, path: str) -> None:
    stranger = PanelReader(filled.gateway.address)
    answer = stranger.get(path)
    stranger.close()
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/panel/sign-in?next=")


@pytest.mark.parametrize(
    ("query", "index"),
    [
        ("SELECT sum(calls) FROM inference_rollup WHERE day >= 1 GROUP BY provider", "ix_inference_rollup_day"),
        (
            "SELECT count(*) FROM inference_log WHERE cache IS NOT NULL AND started_at >= 1 GROUP BY cache",
            "ix_inference_log_started_at",
        ),
        (
            "SELECT provider FROM inference_log WHERE started_at >= 1 ORDER BY started_at DESC LIMIT 9",
            "ix_inference_log_started_at",
        ),
    ],
    ids=["days", "caches", "times"],
)
def test_reads_of_a_period_use_an_index(filled: FilledGateway, query: str, index: str) -> None:
    engine = open_readable(address_of(filled.gateway.log))
    try:
        with engine.connect() as connection:
            plan = " ".join(str(one) for one in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}"))
    finally:
        engine.dispose()
    assert index in plan
