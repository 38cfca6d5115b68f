"""The health of the panel is that of `/v1/bardo/health`; the times of calls are those of the log, and a key sees its own."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from bardo.adapters.stores.log.row import CallTimes
from bardo.simulators import Fault
from bardo.surfaces.panel.views.health import BUCKETS, histories, percentile
from support.any_model import Simulator
from support.gateway import SECRET
from support.keyed_gateway import KeyedGateway, keyed_gateway
from support.panel_pages import PanelReader
from support.patience import PATIENCE
from surfaces.panel.views.conftest import TOML, FilledGateway

ASK = {"messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture(scope="module")
def troubled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedGateway]:
    """A gateway with a provider that answers, and one that is down after the calls that were made to it."""
    down = Simulator("mistral", fault=Fault("status", status=500))
    folder = tmp_path_factory.mktemp("health")
    toml = f"{TOML}[failover]\nretries = 0\n"
    with keyed_gateway(folder, [Simulator("deepseek"), down], toml=toml, first_key=True) as gateway:
        key = gateway.key(name="operator", operator=True)
        (folder / "operator").write_text(key)
        headers = {"authorization": f"Bearer {key}"}
        for model in ("deepseek/m1", *["mistral/m2"] * 8):
            httpx.post(
                f"{gateway.address}/v1/chat/completions",
                json={**ASK, "model": model},
                headers=headers,
                timeout=PATIENCE,
            )
        yield gateway


def reader_of(gateway: KeyedGateway) -> PanelReader:
    return PanelReader(gateway.address, (Path(gateway.variables["XDG_DATA_HOME"]) / "operator").read_text())


def test_states_are_those_of_the_endpoint(troubled: KeyedGateway) -> None:
    reader = reader_of(troubled)
    key = (Path(troubled.variables["XDG_DATA_HOME"]) / "operator").read_text()
    told = httpx.get(f"{troubled.address}/v1/bardo/health", headers={"authorization": f"Bearer {key}"}).json()
    page = reader.page("/health")
    reader.close()
    table = page.table("Providers and models")
    for provider in told["providers"]:
        seen = {
            row[1]: dict(zip(table.heads, row, strict=True)) for row in table.rows if row[0] == provider["provider"]
        }
        for target in (provider["connection"], *provider["models"]):
            cells = seen[target["model"] or "connection"]
            assert cells["state"] == target["state"]
            if target["calls"]:
                assert cells["failed"] == f"{target['failed']} of {target['calls']}"
            for fault, number in target["faults"].items():
                assert f"{fault} {number}" in cells["errors"]
    assert "down" in table.column("state")
    assert "down" in table.column("why")[table.column("state").index("down")]


def test_no_page_shows_a_key(troubled: KeyedGateway) -> None:
    reader = reader_of(troubled)
    pages = [reader.page(path).html for path in ("/health", "/catalog", "/keys", "/reports", "/costs", "/explain")]
    reader.close()
    assert not any(SECRET in page for page in pages)


def test_times_are_those_of_the_log(filled: FilledGateway, operator: PanelReader) -> None:
    seen = operator.page("/health", span="7d").table("Latency in the last 7 days")
    with filled.log() as log:
        times = log.call_times(10_000, since=0.0)
    newest = max(one.started_at for one in times)
    wanted = [
        one
        for one in times
        if one.started_at > newest - 6.9 * 86_400 and (one.provider, one.model) == ("deepseek", "m1")
    ]
    row = seen.row("m1")
    assert row["calls"] == str(len(wanted))
    answered = sorted(one.seconds for one in wanted if one.outcome == "ok")
    assert row["p50"] == f"{answered[math.ceil(len(answered) / 2) - 1]:.2f} s"
    failed = sum(one.outcome != "ok" for one in wanted)
    assert row["failed"].startswith(f"{failed} (")
    assert row["errors"] == f"RateLimited {failed}"


def test_a_key_sees_states_and_its_own_times(filled: FilledGateway, member: PanelReader) -> None:
    page = member.page("/health", span="7d")
    assert page.table("Providers and the models").heads == ["provider", "model", "state", "retry in"]
    with filled.log() as log:
        newest = max(one.started_at for one in log.call_times(10_000, since=0.0))
        own = log.call_times(10_000, since=newest - 6.9 * 86_400, key=filled.own.id)
    assert sum(int(one) for one in page.table("Latency").column("calls")) == len(own)
    assert "Prompt caches" not in page.html


def test_medians_by_time_have_gaps_where_there_were_no_calls() -> None:
    def took(at: float, seconds: float, outcome: str = "ok") -> CallTimes:
        return CallTimes(at, "p", "m", seconds, None, outcome, None)  # type: ignore[arg-type]

    found = histories([took(0, 1.0), took(1, 3.0), took(2, 2.0), took(23.5, 9.0), took(12, 5.0, "broken")], 0.0, 24.0)
    assert len(found) == 1
    assert found[0].medians[:3] == (1.0, 3.0, 2.0)
    assert found[0].medians[-1] == 9.0
    assert [one for one in found[0].medians[3:-1] if one is not None] == []
    assert len(found[0].medians) == BUCKETS
    assert (found[0].calls, found[0].failed, dict(found[0].errors)) == (5, 1, {"broken": 1})


@pytest.mark.parametrize(("part", "found"), [(0.5, 2.0), (0.95, 3.0), (0.0, 1.0), (1.0, 3.0)])
def test_percentiles_are_of_the_nearest_rank(part: float, found: float) -> None:
    assert percentile([1.0, 2.0, 3.0], part) == found
    assert percentile([], part) is None
