"""The password of an address stands in no output of a command and in no line of the log, whichever setting holds the address."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from sqlalchemy import make_url

from bardo.adapters import log_filter
from bardo.adapters.config.secrets import address_secrets
from bardo.adapters.config.settings import load_settings, parse_settings
from surfaces.cli.support import bardo

PASSWORD = "hunter2-of-the-database"
# Nothing listens at port 1: a connection is refused at once.
NOWHERE = f"postgresql://bardo:{PASSWORD}@127.0.0.1:1/bardo"
SETTINGS = {
    "log.url": '[log]\nurl = "{}"',
    "log.url_env": '[log]\nurl_env = "PLACE"',
    "state.url": '[state]\nurl = "{}"',
    "state.url_env": '[state]\nurl_env = "PLACE"',
    "replay.store": '[replay]\nstore = "{}"',
    "replay.store_env": '[replay]\nstore_env = "PLACE"',
    "responses.store": '[responses]\nstore = "{}"',
    "provider_ids.store_env": '[provider_ids]\nstore_env = "PLACE"',
    "cache.store": '[inference.pipeline.cache]\nstore = "{}"',
    "telemetry": '[telemetry]\notlp = "{}"',
    "search": '[search]\nbase_url = "{}"',
    "provider": '[[providers]]\nid = "p"\npreset = "vllm"\nbase_url = "{}"\nmodels = ["m"]',
}


@pytest.fixture(autouse=True)
def nothing_known_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_filter, "_VALUES", set())


@pytest.mark.parametrize("name", SETTINGS)
def test_it_is_found_in_every_setting(name: str) -> None:
    address = NOWHERE if "store" in name or "url" in name else NOWHERE.replace("postgresql", "http")
    settings = parse_settings(SETTINGS[name].format(address))
    assert PASSWORD in address_secrets(settings, {"PLACE": address, "OTHER": "http://a:of-nobody@b"})
    assert "of-nobody" not in address_secrets(settings, {"PLACE": address, "OTHER": "http://a:of-nobody@b"})


@pytest.mark.parametrize(
    ("address", "secret"),
    [
        ("postgresql://u:pa%2Fss-word-1@h/d", "pa/ss-word-1"),
        ("postgresql://u:pa/ss-word-1@h/d", "ss-word-1"),
        ("redis://:pass-word-12@h:6379/0", "pass-word-12"),
        ("postgresql://u:pass@word-1@h/d", "pass@word-1"),
        ("postgresql://h/d?password=pass-word-12", "pass-word-12"),
        ("postgresql://u:pass-word-12@h:no-port/d", "pass-word-12"),
    ],
)
def test_it_is_found_however_the_address_is_written(address: str, secret: str) -> None:
    assert secret in address_secrets(parse_settings(f'[state]\nurl = "{address}"'), {})


@pytest.mark.parametrize(
    "command", ["doctor", "doctor --json", "log", "costs", "keys list", "memory search x", "payments list"]
)
@pytest.mark.parametrize(
    "ending", ["@127.0.0.1:1/bardo", "/@127.0.0.1:1/bardo", "@127.0.0.1:port/bardo", "@127.0.0.1:1/bardo?sslmode=none"]
)
def test_no_command_prints_it_where_the_database_cannot_be_used(folder: Path, command: str, ending: str) -> None:
    address = f"postgresql://bardo:{PASSWORD}{ending}"
    (folder / "bardo.toml").write_text(f'[log]\nurl = "{address}"\n[memory]\nenabled = true\n')
    ran = bardo(*command.split())
    assert ran.out + ran.err
    assert PASSWORD not in ran.out + ran.err


def test_doctor_does_not_print_the_address_of_a_database_without_tables(folder: Path, postgres_url: str) -> None:
    address = make_url(postgres_url).set(password=PASSWORD).render_as_string(hide_password=False)
    (folder / "bardo.toml").write_text(f'[log]\nurl = "{address}"\n')
    ran = bardo("doctor", "--json")
    assert PASSWORD not in ran.out + ran.err
    (finding,) = [one for one in ran.json["findings"] if one["area"] == "log"]
    assert (finding["status"], finding["found"]) == ("ok", "a database, whose tables are made at the first start")


def test_no_line_of_the_log_holds_it(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    (folder / "bardo.toml").write_text(f'[log]\nurl = "{NOWHERE}"\n')
    load_settings(folder / "bardo.toml")
    log_filter.clean_log_lines()
    logging.getLogger("bardo.log").warning("cannot be used: %s", NOWHERE)
    assert "cannot be used" in caplog.text
    assert PASSWORD not in caplog.text
