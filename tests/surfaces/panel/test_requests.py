"""The requests of the log in the panel: the list, one request, whose they are, what is shown of their content, and sending one again."""

from __future__ import annotations

import html
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from bardo.adapters.stores.log import LogReader, LogRow, LogWriter
from bardo.simulators import Script, Turn
from support.any_model import Simulator
from support.hostile_rows import hostile_row
from support.hostile_text import HOSTILE
from support.keyed_gateway import KeyedGateway, keyed_gateway, make_key
from support.panel_pages import PanelReader, SeenPage
from support.patience import PATIENCE
from support.talk import ask
from surfaces.panel.conftest import CONTENT, MODEL, QUIET

CALLS = 130
ANSWER = "It is **1161**.\n\n```python\nprint(27 * 43)\n```"
QUESTION = "What is 27 * 43?"


class TwoKeys:
    """A gateway whose log holds calls of two keys, and their browsers."""

    def __init__(self, gateway: KeyedGateway) -> None:
        self.gateway = gateway
        self.own, key = make_key(gateway.state, name="Grace")
        self.other, _ = make_key(gateway.state, name="Linus")
        self.fill()
        self.operator = PanelReader(gateway.address, gateway.key(name="Ada", operator=True))
        self.owner = PanelReader(gateway.address, key)

    def fill(self) -> None:
        now = time.time()
        with LogWriter(self.gateway.log) as log:
            for number in range(CALLS):
                log.write(
                    LogRow(
                        request_id=f"req_{number:04}",
                        started_at=now - CALLS + number,
                        provider=("deepseek", "gone")[number % 2],
                        model=f"m{number % 3}",
                        model_asked=f"m{number % 3}",
                        outcome="error" if number % 13 == 0 else "ok",
                        key_id=(self.own.id, self.other.id)[number % 5 == 0],
                    )
                )


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoKeys]:
    with keyed_gateway(tmp_path_factory.mktemp("two"), [Simulator("deepseek")], toml=QUIET) as gateway:
        made = TwoKeys(gateway)
        yield made
        made.operator.close()
        made.owner.close()


def ids(page: SeenPage) -> list[str]:
    return page.table("Requests").column("Id")


def all_ids(reader: PanelReader, **query: str) -> list[str]:
    """Return the ids of all pages, as a reader follows the link to the older ones."""
    found: list[str] = []
    page = reader.page("/requests", **query)
    while True:
        found += ids(page)
        older = [link for link in page.links if "before=" in link]
        if not older:
            return found
        page = SeenPage(reader.client.get(html.unescape(older[0])))


def test_an_operator_sees_every_call_once_newest_first(two: TwoKeys) -> None:
    assert all_ids(two.operator) == [f"req_{number:04}" for number in reversed(range(CALLS))]


def test_a_key_sees_its_own_calls_alone(two: TwoKeys) -> None:
    own = [f"req_{number:04}" for number in reversed(range(CALLS)) if number % 5]
    assert all_ids(two.owner) == own
    # Also where it names another key.
    assert all_ids(two.owner, key=two.other.id) == own
    assert two.owner.get("/requests/req_0001").status_code == 200


def test_whose_call_it_is_is_not_told(two: TwoKeys) -> None:
    foreign, absent = two.owner.get("/requests/req_0005"), two.owner.get("/requests/req_none")
    assert (foreign.status_code, absent.status_code) == (404, 404)
    assert foreign.text.replace("req_0005", "") == absent.text.replace("req_none", "")
    assert two.owner.get("/requests/req_0001", of="req_0005").status_code == 404
    assert two.owner.get("/requests/req_").status_code == 404


@pytest.mark.parametrize(
    ("query", "fits"),
    [
        ({"model": "m1"}, lambda number: number % 3 == 1),
        ({"provider": "gone"}, lambda number: number % 2 == 1),
        ({"outcome": "error"}, lambda number: number % 13 == 0),
        ({"id": "_007"}, lambda number: 70 <= number < 80),
        ({"span": "1h"}, lambda number: True),
        ({"model": "m1", "outcome": "error"}, lambda number: number % 3 == 1 and number % 13 == 0),
        ({"model": "' OR 1=1 --"}, lambda number: False),
        ({"outcome": "unknown"}, lambda number: True),
        ({"before": "x"}, lambda number: True),
    ],
    ids=["model", "provider", "outcome", "id", "span", "two", "quote", "no outcome", "no number"],
)
def test_filters(two: TwoKeys, query: dict[str, str], fits: Any) -> None:
    wanted = [f"req_{number:04}" for number in reversed(range(CALLS)) if fits(number)]
    if wanted:
        assert all_ids(two.operator, **query) == wanted
    else:
        assert "No request matches" in two.operator.page("/requests", **query).text


def test_an_operator_filters_by_key(two: TwoKeys) -> None:
    assert len(all_ids(two.operator, key=two.other.id)) == CALLS // 5
    assert two.operator.page("/requests").table("Requests").row("")["Key"] in ("Grace", "Linus")
    assert "Key" not in two.owner.page("/requests").table("Requests").heads


def test_filters_stay_in_the_form_and_on_the_next_page(two: TwoKeys) -> None:
    page = two.operator.page("/requests", provider="gone", model='m1"><i>')
    assert page.fields["model"]["value"] == 'm1"><i>'
    page = two.operator.page("/requests", provider="gone")
    assert any("provider=gone" in link and "before=" in link for link in page.links)


def test_a_log_that_does_not_exist_yet_is_empty(tmp_path: Path) -> None:
    with (
        keyed_gateway(tmp_path, [], toml=QUIET, first_key=False) as gateway,
        closing(PanelReader(gateway.address)) as one,
    ):
        assert "The log has no requests yet." in one.page("/requests").text


def last_id(reader: PanelReader, wanted: int = 1) -> str:
    """Return the id of the newest call, once the log holds so many."""
    give_up = time.monotonic() + PATIENCE
    while True:
        page = reader.page("/requests")
        if page.tables and len(ids(page)) >= wanted:
            return next(link for link in page.links if "/requests/req_" in link).rpartition("/")[2]
        assert time.monotonic() < give_up, "the call is not in the log"
        time.sleep(0.05)


def simulator() -> Simulator:
    return Simulator("deepseek", script=Script((Turn(reasoning="First *27 * 40*.", text=ANSWER),)))


def test_one_request_tells_what_was_asked_sent_seen_and_answered(tmp_path: Path) -> None:
    with (
        keyed_gateway(tmp_path, [simulator()], toml=CONTENT, first_key=False) as gateway,
        closing(PanelReader(gateway.address)) as reader,
    ):
        ask(gateway.address, "openai_chat", MODEL, thinks=True)
        found = reader.get(f"/requests/{last_id(reader)}")
        page = SeenPage(found)
        assert QUESTION in page.text
        assert "<strong>1161</strong>" in found.text
        assert '<span class="hl-nb">print</span>' in found.text
        assert "First <em>27 * 40</em>." in found.text
        for word in ("thinking asked", "thinking sent", "decided by", "verdict", "served by", "frames", "finish"):
            assert word in page.text
        costs = page.table("Cost by cause")
        assert {row[0] for row in costs.rows} >= {"input", "answer"}
        assert "Receipt as JSON" in page.text


def test_content_is_shown_only_where_it_is_logged(tmp_path: Path) -> None:
    """Also content that the log holds from before, when the operator kept it."""
    with keyed_gateway(tmp_path, [simulator()], toml=CONTENT, first_key=False) as gateway:
        ask(gateway.address, "openai_chat", MODEL)
        with closing(PanelReader(gateway.address)) as reader:
            name = last_id(reader)
    with (
        keyed_gateway(tmp_path, [simulator()], toml=QUIET) as gateway,
        closing(PanelReader(gateway.address, gateway.key(operator=True))) as reader,
    ):
        text = reader.page(f"/requests/{name}").text
        assert QUESTION not in text
        assert "1161" not in text
        assert "does not log content" in text
        assert "Send again" not in text
        sent = reader.send(f"/requests/{name}/again", {"model": MODEL}, at="")
        assert sent.status_code == 400


def test_hidden_thinking_is_counted(tmp_path: Path) -> None:
    with keyed_gateway(tmp_path, [], toml=QUIET, first_key=False) as gateway:
        with LogWriter(gateway.log) as log:
            log.write(LogRow(request_id="req_x", started_at=1.0, visibility="opaque", reasoning_tokens=1234))
        with closing(PanelReader(gateway.address)) as reader:
            assert "Reasoning performed (not visible) · 1,234 tokens" in reader.page("/requests/req_x").text


def test_a_request_is_sent_again_with_another_model_and_effort(tmp_path: Path) -> None:
    with (
        keyed_gateway(tmp_path, [simulator(), Simulator("anthropic")], toml=CONTENT, first_key=False) as gateway,
        closing(PanelReader(gateway.address)) as reader,
    ):
        ask(gateway.address, "openai_chat", MODEL, stream=True)
        first = last_id(reader)
        sent = reader.send(
            f"/requests/{first}/again",
            {"model": "anthropic/claude-sonnet-4-5", "effort": "low"},
            at=f"/requests/{first}",
        )
        assert sent.status_code == 303, sent.text
        page = SeenPage(reader.client.get(sent.headers["location"]))
        assert page.table("Sent again").row("Model")["Now"] == "anthropic/claude-sonnet-4-5"
        assert QUESTION in page.text
        arrived: Any = gateway.servers["anthropic"].requests[-1].body
        assert arrived["messages"][0]["content"]
        assert arrived["thinking"]["type"] == "enabled"
        with LogReader(gateway.log) as log:
            rows = log.recent(5)
        assert [row.provider for row in rows] == ["anthropic", "deepseek"]
        assert rows[0].reasoning_intent == "low"


def test_a_request_that_fails_again_shows_why(tmp_path: Path) -> None:
    with (
        keyed_gateway(tmp_path, [simulator()], toml=CONTENT, first_key=False) as gateway,
        closing(PanelReader(gateway.address)) as reader,
    ):
        ask(gateway.address, "openai_chat", MODEL)
        first = last_id(reader)
        sent = reader.send(f"/requests/{first}/again", {"model": "nobody/x"}, at=f"/requests/{first}")
        assert sent.status_code == 303
        assert "UnknownModel" in reader.client.get(sent.headers["location"]).text
        wrong = reader.send(f"/requests/{first}/again", {"effort": "much"}, at=f"/requests/{first}")
        assert wrong.status_code == 400


def test_sending_again_counts_for_whoever_does_it_and_only_for_calls_they_see(tmp_path: Path) -> None:
    with keyed_gateway(tmp_path, [simulator()], toml=CONTENT) as gateway:
        (own, own_key), (_, other_key) = make_key(gateway.state), make_key(gateway.state)
        ask(gateway.address, "openai_chat", MODEL, headers={"authorization": f"Bearer {own_key}"})
        with (
            closing(PanelReader(gateway.address, own_key)) as reader,
            closing(PanelReader(gateway.address, other_key)) as other,
        ):
            first = last_id(reader)
            assert other.send(f"/requests/{first}/again", {}, at="").status_code == 404
            assert reader.send(f"/requests/{first}/again", {}, at="").status_code == 303
            last_id(reader, 2)
        with LogReader(gateway.log) as log:
            assert [row.key_id for row in log.recent(5)] == [own.id, own.id]


@pytest.mark.parametrize("name", list(HOSTILE)[::6])
def test_hostile_rows_are_shown(tmp_path: Path, name: str) -> None:
    row = hostile_row(HOSTILE[name])
    with keyed_gateway(tmp_path, [], toml=CONTENT, first_key=False) as gateway:
        with LogWriter(gateway.log, keep_content=True) as log:
            log.write(row)
        with LogReader(gateway.log) as reading:
            stored = reading.recent(1)[0].request_id
        with closing(PanelReader(gateway.address)) as reader:
            assert len(ids(reader.page("/requests"))) == 1
            if "/" not in stored:
                page = reader.page(f"/requests/{quote(stored, safe='')}")
                # The two files of the frame are all the scripts that a page may have.
                assert page.tags.count("script") == 1
                assert not {"img", "iframe", "object", "embed", "math", "style", "video"} & set(page.tags)
