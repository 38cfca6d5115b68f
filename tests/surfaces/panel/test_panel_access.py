"""Who may look at the panel, by which cookie, and which forms are taken."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

from bardo.services.accounts.key_store import KeyStore, open_keys
from bardo.surfaces.panel import panel as sign_in_limits
from bardo.surfaces.panel.serving import check_machine, cookie_name, next_page, session_cookie
from bardo.surfaces.panel.sessions import Sessions
from bardo.values.errors import Forbidden
from support.keyed_gateway import KeyedGateway, keyed_gateway, make_key
from support.panel_pages import PanelReader, SeenPage
from support.patience import PATIENCE

FORM = {"content-type": "application/x-www-form-urlencoded"}


def scope_of(*, client: str = "127.0.0.1", **headers: str) -> dict[str, Any]:
    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return {"type": "http", "client": (client, 1), "headers": pairs, "scheme": "http", "path": "/panel"}


def test_without_keys_the_panel_is_open_on_this_machine(anybody: PanelReader) -> None:
    page = anybody.page("")
    assert "Live requests" in page.text
    assert "Sign out" not in page.text


@pytest.mark.parametrize(
    "scope",
    [
        scope_of(client="192.0.2.7"),
        scope_of(client="::ffff:192.0.2.7"),
        scope_of(x_forwarded_for="192.0.2.7"),
        scope_of(forwarded="for=192.0.2.7"),
        scope_of(x_real_ip="192.0.2.7"),
        scope_of(client="unknown"),
        {**scope_of(), "client": None},
    ],
    ids=["another", "mapped", "proxy", "proxy by RFC 7239", "nginx", "no address", "nobody"],
)
def test_without_keys_another_machine_is_refused(scope: dict[str, Any]) -> None:
    with pytest.raises(Forbidden, match="machine that bardo runs on"):
        check_machine(scope)


@pytest.mark.parametrize("client", ["127.0.0.1", "127.8.0.1", "::1", "::ffff:127.0.0.1"])
def test_without_keys_this_machine_is_let_in(client: str) -> None:
    check_machine(scope_of(client=client))


def test_a_proxy_is_refused_with_a_page_that_says_what_to_do(keyless: KeyedGateway) -> None:
    found = httpx.get(f"{keyless.address}/panel", headers={"x-forwarded-for": "192.0.2.7"})
    assert found.status_code == 403
    assert "bardo keys create NAME --operator" in found.text


@pytest.mark.parametrize("path", ["", "/requests", "/requests/req_1", "/costs", "/nothing"])
def test_with_keys_every_page_asks_to_sign_in(keyed: KeyedGateway, path: str) -> None:
    found = httpx.get(f"{keyed.address}/panel{path}", params={"a": "b"})
    assert found.status_code == 303
    assert found.headers["location"].startswith("/panel/sign-in?next=%2Fpanel")


@pytest.mark.parametrize("path", ["/events", "/live/req_1"])
def test_with_keys_no_data_is_given_to_whoever_did_not_sign_in(keyed: KeyedGateway, path: str) -> None:
    found = httpx.get(f"{keyed.address}/panel{path}")
    assert found.status_code in (303, 401)
    assert "event:" not in found.text


def test_a_bearer_key_opens_no_page(keyed: KeyedGateway) -> None:
    """Only the form signs in: a page that a program can ask for by a header is one that a proxy may open for everybody."""
    found = httpx.get(f"{keyed.address}/panel", headers={"authorization": f"Bearer {keyed.key(operator=True)}"})
    assert found.status_code == 303


@pytest.mark.parametrize("key", ["", "mistaken-key", "bardo_000000000000_" + "0" * 42])
def test_a_wrong_key_is_told_and_signs_nobody_in(keyed: KeyedGateway, key: str) -> None:
    with closing(PanelReader(keyed.address)) as reader:
        found = reader.send("/sign-in", {"key": key})
        assert found.status_code == 401
        assert 'role="alert"' in found.text
        assert not key or key not in found.text
        assert reader.get("/requests").status_code == 303


def test_whoever_signs_in_comes_to_the_page_they_wanted(keyed: KeyedGateway) -> None:
    with closing(PanelReader(keyed.address)) as reader:
        wanted = reader.get("/costs", period="7d").headers["location"]
        token = SeenPage(reader.client.get(wanted)).csrf
        fields = {"key": keyed.key(), "csrf": token, "next": "/panel/costs?period=7d"}
        found = reader.client.post("/panel/sign-in", content=urlencode(fields), headers=FORM)
        assert (found.status_code, found.headers["location"]) == (303, "/panel/costs?period=7d")


@pytest.mark.parametrize(
    "address",
    [
        "https://evil.example/",
        "//evil.example",
        "/panel//evil\\",
        "/panelx",
        "/panel/sign-out",
        "javascript:alert(1)",
        "",
    ],
)
def test_nobody_is_led_elsewhere_after_signing_in(address: str) -> None:
    assert next_page(address) == "/panel"


def test_the_cookie_is_for_no_script_and_no_other_site_and_holds_no_key(keyed: KeyedGateway) -> None:
    key = keyed.key(name="cookie")
    with closing(PanelReader(keyed.address)) as reader:
        found = reader.send("/sign-in", {"key": key})
        cookie = found.headers["set-cookie"]
        assert {"HttpOnly", "SameSite=Strict", "Path=/panel", "Max-Age=43200"} <= set(cookie.split("; "))
        assert "Secure" not in cookie
        assert key not in cookie


def test_the_cookie_is_for_https_alone_where_the_page_came_by_it() -> None:
    sessions = Sessions(b"x", lambda: 0.0)
    for scope in ({**scope_of(), "scheme": "https"}, scope_of(x_forwarded_proto="https")):
        assert session_cookie(scope, sessions, sessions.begin())[1].endswith("; Secure")


def test_gateways_of_one_machine_do_not_share_a_cookie() -> None:
    assert cookie_name(scope_of(host="localhost:8484")) == "bardo_panel_8484"
    assert cookie_name(scope_of(host="[::1]:8485")) == "bardo_panel_8485"
    assert cookie_name(scope_of(host="bardo.example")) == "bardo_panel"


def test_whoever_signs_out_is_out_also_with_the_old_cookie(keyed: KeyedGateway) -> None:
    with closing(PanelReader(keyed.address, keyed.key())) as reader:
        cookies = dict(reader.client.cookies)
        assert reader.send("/sign-out", {}, at="").status_code == 303
        assert reader.get("").status_code == 303
        assert httpx.get(f"{keyed.address}/panel", cookies=cookies).status_code == 303


def test_a_revoked_key_ends_its_sessions(keyed: KeyedGateway) -> None:
    account, key = make_key(keyed.state, name="short")
    with closing(PanelReader(keyed.address, key)) as reader:
        assert reader.get("").status_code == 200
        engine = open_keys(keyed.state)
        KeyStore(engine).change(account.id, {}, revoked=1.0)
        engine.dispose()
        give_up = time.monotonic() + PATIENCE
        while reader.get("").status_code != 303:
            assert time.monotonic() < give_up, "the session of a revoked key goes on"
            time.sleep(0.05)


def test_a_key_is_told_who_it_is_and_an_operator_that_it_is_one(keyed: KeyedGateway, operator: PanelReader) -> None:
    assert "operator" in operator.page("").text
    with closing(PanelReader(keyed.address, keyed.key(name="Grace"))) as reader:
        text = reader.page("").text
        assert "Grace" in text
        assert "operator" not in text


SENT: Mapping[str, tuple[dict[str, str], dict[str, str], int]] = {
    "no token": ({"key": "x"}, FORM, 403),
    "a wrong token": ({"key": "x", "csrf": "0" * 64}, FORM, 403),
    "another type": ({"key": "x"}, {"content-type": "text/plain"}, 415),
    "no type": ({"key": "x"}, {}, 415),
    "another origin": ({"key": "x"}, {**FORM, "origin": "https://evil.example"}, 403),
    "an origin that is none": ({"key": "x"}, {**FORM, "origin": "null"}, 403),
}


@pytest.mark.parametrize("name", SENT)
def test_a_form_of_another_page_is_refused_with_a_page(keyed: KeyedGateway, name: str) -> None:
    fields, headers, status = SENT[name]
    with httpx.Client(base_url=keyed.address, timeout=PATIENCE) as client:
        client.get("/panel/sign-in")
        found = client.post("/panel/sign-in", content=urlencode(fields), headers=headers)
    assert found.status_code == status
    assert found.headers["content-type"] == "text/html; charset=utf-8"


def test_a_token_is_of_one_session(keyed: KeyedGateway) -> None:
    with closing(PanelReader(keyed.address)) as one, closing(PanelReader(keyed.address)) as other:
        token = SeenPage(one.get("/sign-in")).csrf
        other.get("/sign-in")
        fields = {"key": keyed.key(), "csrf": token}
        assert other.client.post("/panel/sign-in", content=urlencode(fields), headers=FORM).status_code == 403


def test_a_page_that_may_call_the_gateway_may_not_read_its_panel(tmp_path: Path) -> None:
    toml = '[gateway]\nallowed_origins = ["*"]\n'
    with keyed_gateway(tmp_path, [], toml=toml, first_key=False) as running:
        foreign = {"origin": "https://evil.example"}
        found = httpx.get(f"{running.address}/panel", headers=foreign)
        assert found.status_code == 403
        assert "csrf" not in found.text
        assert httpx.get(f"{running.address}/panel", headers={"origin": running.address}).status_code == 200


def test_a_foreign_name_of_the_gateway_gets_a_page_that_says_so(keyless: KeyedGateway) -> None:
    found = httpx.get(f"{keyless.address}/panel", headers={"host": "evil.example"})
    assert found.status_code == 403
    assert "allowed_hosts" in found.text
    assert found.headers["content-type"] == "text/html; charset=utf-8"


def test_whoever_tries_wrong_keys_is_told_to_wait_and_signs_in_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sign_in_limits, "OF_ONE", sign_in_limits.Allowance(3, 1_000_000.0))
    with keyed_gateway(tmp_path, []) as running, closing(PanelReader(running.address)) as reader:
        key = running.key()
        found = [reader.send("/sign-in", {"key": "wrong"}) for _ in range(4)]
        assert [one.status_code for one in found] == [401, 401, 401, 429]
        assert int(found[-1].headers["retry-after"]) > 0
        assert reader.send("/sign-in", {"key": key}).status_code == 429
        # The same key signs in from elsewhere, as seen by the proxy before bardo.
        reader.client.headers["x-forwarded-for"] = "10.0.0.1"
        assert reader.send("/sign-in", {"key": key}).status_code == 303
