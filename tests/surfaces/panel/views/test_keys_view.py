"""Keys in the panel: made and shown once, changed, revoked, by operators alone; each key sees what it used itself."""

from __future__ import annotations

import re
import time
from pathlib import Path

import httpx
import pytest

from bardo.accounting.limits import KeyLimits, LeasedUsage, period_of
from bardo.adapters.config.accounts import NANOS, Account
from bardo.adapters.stores.log import CallSums, LogWriter
from bardo.services.accounts.key_store import opened_keys
from bardo.services.accounts.usage import KeyUsage, ModelUsage
from bardo.surfaces.panel.cost_tables import exact_text
from bardo.surfaces.panel.tables import Cell
from bardo.surfaces.panel.views.keys import KeySpending, keys_table, limit_uses, models_table
from support.any_model import Simulator
from support.keyed_gateway import keyed_gateway, make_key
from support.panel_pages import PanelReader, SeenPage
from support.patience import PATIENCE
from surfaces.panel.views.conftest import TOML, FilledGateway, call

KEY = re.compile(r"bardo_[0-9a-z]{12}_[0-9A-Za-z]{42}")


def usage(filled: FilledGateway, key: str) -> httpx.Response:
    headers = {"authorization": f"Bearer {key}"}
    return httpx.get(f"{filled.gateway.address}/v1/bardo/usage", headers=headers, timeout=PATIENCE)


def test_a_key_is_made_shown_once_and_works(filled: FilledGateway, operator: PanelReader) -> None:
    form = {
        "name": "made here", "usd_per_day": "2.5", "concurrency": "4", "models": "deepseek/*, swift",
        "tags": "a b", "expires": "90d",
    }  # fmt: skip
    answer = operator.send("/keys", form)
    assert answer.headers["cache-control"] == "no-store"
    found = KEY.findall(answer.text)
    assert len(found) == 1
    told = usage(filled, found[0]).json()
    assert told["key"]["name"] == "made here"
    assert told["key"]["models"] == ["deepseek/*", "swift"]
    assert told["key"]["tags"] == ["a", "b"]
    assert {name: one["limit"] for name, one in told["limits"].items()} == {"usd_per_day": 2.5, "concurrency": 4}
    pages = operator.page("/keys").html + operator.page(f"/keys/{told['key']['id']}").html
    assert found[0] not in pages
    assert KEY.search(pages) is None


def test_a_second_key_of_one_name_is_refused(operator: PanelReader) -> None:
    assert KEY.search(operator.send("/keys", {"name": "only once"}).text)
    again = SeenPage(operator.send("/keys", {"name": "only once"}))
    assert again.status == 400
    assert "a key is called 'only once' already" in again.text
    assert KEY.search(again.text) is None


def test_limits_are_changed_and_taken_away(filled: FilledGateway, operator: PanelReader) -> None:
    account, key = make_key(filled.gateway.state, name="to change", usd_per_day=1, concurrency=2)
    assert usage(filled, key).status_code == 200
    page = operator.page(f"/keys/{account.id}")
    assert (page.fields["usd_per_day"]["value"], page.fields["concurrency"]["value"]) == ("1", "2")
    answer = operator.send(
        f"/keys/{account.id}", {"action": "limits", "usd_per_month": "0.123456789", "tokens_per_minute": "1,000"}
    )
    assert (answer.status_code, answer.headers["location"]) == (303, f"/panel/keys/{account.id}")
    with opened_keys(filled.gateway.state) as store:
        changed = next(one.account for one in store.load()[1] if one.account.id == account.id)
    limits = changed.limits
    assert (limits.usd_per_day, limits.concurrency, limits.tokens_per_minute) == (None, None, 1_000)
    assert limits.usd_per_month == 123_456_789
    assert operator.page(f"/keys/{account.id}").fields["usd_per_month"]["value"] == "0.123456789"


def test_a_key_is_revoked(filled: FilledGateway, operator: PanelReader) -> None:
    account, key = make_key(filled.gateway.state, name="to revoke")
    assert usage(filled, key).status_code == 200
    unsure = SeenPage(operator.send(f"/keys/{account.id}", {"action": "revoke"}))
    assert unsure.status == 400
    assert "say that you are sure" in unsure.text
    assert usage(filled, key).status_code == 200
    operator.send(f"/keys/{account.id}", {"action": "revoke", "sure": "yes"})
    assert usage(filled, key).status_code == 401
    assert operator.page("/keys").table("Client keys").row("to revoke")["state"] == "revoked"


def test_nobody_revokes_the_key_they_are_signed_in_with(filled: FilledGateway, operator: PanelReader) -> None:
    own = filled.operator_key.split("_")[1]
    answer = SeenPage(operator.send(f"/keys/{own}", {"action": "revoke", "sure": "yes"}, at="/keys"))
    assert answer.status == 400
    assert operator.page("/keys").table("Client keys").row("the operator")["state"] == "active"


@pytest.mark.parametrize(
    ("field", "written"),
    [
        ("concurrency", "0"),
        ("concurrency", "-1"),
        ("requests_per_minute", "many"),
        ("tokens_per_minute", "9" * 30),
        ("usd_per_day", "-2"),
        ("usd_per_month", "nan"),
        ("expires", "some day"),
        ("name", "x" * 201),
        ("name", "  "),
    ],
)
def test_a_mistake_is_said_beside_its_field(operator: PanelReader, field: str, written: str) -> None:
    answer = operator.send("/keys", {"name": "of a mistake", field: written, "tags": "kept"})
    page = SeenPage(answer)
    assert page.status == 400
    assert page.fields[field].get("aria-invalid") == "true"
    assert page.fields["tags"]["value"] == "kept"
    assert KEY.search(answer.text) is None


def test_a_form_without_its_token_makes_nothing(filled: FilledGateway, operator: PanelReader) -> None:
    headers = {"origin": filled.gateway.address, "content-type": "application/x-www-form-urlencoded"}
    answer = operator.client.post("/panel/keys", content="name=forged", headers=headers)
    assert answer.status_code == 403
    assert "forged" not in operator.page("/keys").html


def test_what_keys_spent_is_exact(filled: FilledGateway, operator: PanelReader) -> None:
    row = operator.page("/keys").table("Client keys").row("own")
    told = usage(filled, filled.own_key).json()
    nanos = round(told["this_month"]["spent_usd"] * NANOS)
    assert row["spent this month"].startswith(exact_text(nanos))
    assert row["calls this month"] == str(told["this_month"]["calls"])


def test_with_a_spread_keys_are_shown_what_they_are_charged_and_the_cost_beside_it(tmp_path: Path) -> None:
    with keyed_gateway(tmp_path, [Simulator("deepseek")], toml=f"{TOML}[budgets]\nspread_percent = 20\n") as gateway:
        account, key = make_key(gateway.state, name="charged")
        # A fifth more than 7 and than 11 nano-dollars is rounded up for each: 9 and 14.
        with LogWriter(gateway.log) as writer:
            for number, (model, cost) in enumerate([("m1", 7), ("m2", 11), ("m3", None)]):
                of = {"provider": "deepseek", "model": model, "key_id": account.id, "outcome": "ok"}
                writer.write(call(number, time.time(), cost_nanos=cost, **of))
        reader = PanelReader(gateway.address, gateway.key(operator=True))
        row = reader.page("/keys").table("Client keys").row("charged")
        page = reader.page(f"/keys/{account.id}")
        reader.close()
        headers = {"authorization": f"Bearer {key}"}
        told = httpx.get(f"{gateway.address}/v1/bardo/usage", headers=headers, timeout=PATIENCE).json()
    assert (told["this_month"]["spent_usd"], told["this_month"]["cost_usd"]) == (23 / NANOS, 18 / NANOS)
    words = "cost $0.000000018, and 1 of unknown cost"
    assert row["spent today"] == row["spent this month"] == f"$0.000000023{words}"
    assert page.text.count(words) == 2
    models = page.table("Calls this month")
    assert models.column("charged") == ["$0.000000014", "$0.000000009", "unknown", "$0.000000023"]
    assert models.column("cost") == ["$0.000000011", "$0.000000007", "unknown", "$0.000000018"]


def test_a_key_sees_its_own_page_alone(filled: FilledGateway, member: PanelReader) -> None:
    assert member.get("/keys").headers["location"] == f"/panel/keys/{filled.own.id}"
    page = member.page(f"/keys/{filled.own.id}")
    told = usage(filled, filled.own_key).json()
    assert "of $5.00" in page.text
    models = page.table("Calls this month").column("calls")
    assert sum(map(int, models[:-1])) == told["this_month"]["calls"] == int(models[-1])
    assert "usd_per_day" not in page.fields
    assert member.get(f"/keys/{filled.other.id}").status_code == 404
    assert member.send("/keys", {"name": "mine"}, at="/costs").status_code == 303
    assert member.send(f"/keys/{filled.own.id}", {"action": "limits"}, at="/costs").status_code == 403
    with opened_keys(filled.gateway.state) as store:
        own = next(one.account for one in store.load()[1] if one.account.id == filled.own.id)
    assert own.limits == filled.own.limits


def test_a_configured_key_is_shown_and_not_changed(tmp_path: Path) -> None:
    toml = f'{TOML}[[keys]]\nid = "from-toml"\nkey_env = "TEAM_KEY"\n'
    variables = {"TEAM_KEY": "team-key-0123456789"}
    with keyed_gateway(tmp_path, [Simulator("deepseek")], toml=toml, variables=variables) as gateway:
        reader = PanelReader(gateway.address, gateway.key(operator=True))
        page = reader.page("/keys/from-toml")
        answer = SeenPage(reader.send("/keys/from-toml", {"action": "limits", "concurrency": "1"}, at="/keys"))
        reader.close()
    assert "Change it under [[keys]]" in page.text
    assert "concurrency" not in page.fields
    assert answer.status == 400


def test_the_first_key_is_made_on_this_machine(tmp_path: Path) -> None:
    with keyed_gateway(tmp_path, [Simulator("deepseek")], toml=TOML, first_key=False) as gateway:
        reader = PanelReader(gateway.address)
        page = reader.page("/keys")
        answer = reader.send("/keys", {"name": "first of all", "operator": "yes"})
        reader.close()
        assert "There are no keys" in page.text
        assert "after the next restart" in answer.text
        with opened_keys(gateway.state) as store:
            made = store.load()[1][0].account
    assert (made.name, made.operator) == ("first of all", True)


def test_no_budget_without_a_log(tmp_path: Path) -> None:
    toml = f"{TOML}[log]\nenabled = false\n"
    with keyed_gateway(tmp_path, [Simulator("deepseek")], toml=toml) as gateway:
        reader = PanelReader(gateway.address, gateway.key(operator=True))
        page = SeenPage(reader.send("/keys", {"name": "any", "usd_per_month": "1"}))
        listed = reader.page("/keys")
        reader.close()
    assert "the log is off" in page.text
    assert "spending per key is unknown" in listed.text


def test_what_is_spent_and_what_is_reserved_are_told_apart() -> None:
    account = Account(id="k1", name="alice", limits=KeyLimits(usd_per_day=10 * NANOS, usd_per_month=100 * NANOS))
    spent = ModelUsage(
        provider="p",
        model="m",
        calls=2,
        failed=0,
        input_tokens=1,
        output_tokens=1,
        nanos=3 * NANOS,
        cost_known=2,
        estimated_nanos=NANOS,
        charged=3 * NANOS,
    )
    used = LeasedUsage({"usd_per_day": {period_of("usd_per_day", 0.0): NANOS // 2}}, 3 * NANOS, 3 * NANOS)
    usage = KeyUsage(account=account, used=used, today=(spent,), models=(spent,))
    day, month = limit_uses(usage)
    assert day.words == "$3.50 ($3.00 spent, $0.50 reserved) of $10.00, $6.50 left"
    assert month.words == "$3.00 of $100.00, $97.00 left"
    sums = CallSums(calls=2, cost_known=2, cost_nanos=3 * NANOS, estimated_nanos=NANOS)
    spending = {"k1": KeySpending(sums=sums, charged=3 * NANOS)}
    (row,) = keys_table([account], spending, spending, {"k1": usage}, 0.0).rows
    assert row[5:7] == (Cell("~$3.00", below="and $0.50 reserved"), Cell("~$3.00"))
    assert models_table((spent,)).rows[0][6] == models_table((spent,)).foot[6] == "~$3.00"
    assert usage.fields()["today"] == {
        "calls": 2,
        "failed": 0,
        "input_tokens": 1,
        "output_tokens": 1,
        "spent_usd": 3.0,
        "cost_usd": 3.0,
        "estimated_usd": 1.0,
        "reserved_usd": 0.5,
        "calls_of_unknown_cost": 0,
    }
