"""`bardo doctor`: what does not work is found, and the fix is said."""

from __future__ import annotations

import os
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bardo.adapters.net.client import Deadlines
from bardo.adapters.stores.log import LogRow
from bardo.simulators import Fault
from bardo.surfaces.cli import provider_checks
from support.any_model import Simulator
from surfaces.cli.support import Ran, bardo, simulated, write_log


def found(ran: Ran, area: str) -> dict[str, Any]:
    """Return the one finding of an area."""
    matching: list[dict[str, Any]] = [one for one in ran.json["findings"] if one["area"] == area]
    assert len(matching) == 1
    return matching[0]


def test_all_that_works_is_ok_and_the_key_is_named_not_shown(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_KEY", "sk-secret-value")
    write_log([LogRow(request_id="req_1", started_at=1.0)])
    with simulated(Simulator("anthropic"), Simulator("vllm"), folder=folder):
        ran = bardo("doctor", "--json")
        shown = bardo("doctor")
    assert (ran.code, ran.json["ok"]) == (0, True)
    assert "2 models, key in SIMULATED_KEY" in found(ran, "provider anthropic")["found"]
    assert "1 model, no key needed" in found(ran, "provider vllm")["found"]
    assert "log.db, 1 call" in found(ran, "log")["found"]
    assert found(ran, "configuration")["found"] == "bardo.toml: 2 providers"
    assert "all that is configured works" in shown.out
    assert "sk-secret-value" not in ran.out + shown.out + shown.err


def test_a_missing_key_is_a_problem_with_the_variable_to_set(folder: Path) -> None:
    with simulated(Simulator("anthropic"), folder=folder):
        ran = bardo("doctor", "--json")
    assert (ran.code, ran.json["ok"]) == (1, False)
    assert found(ran, "provider anthropic")["status"] == "problem"
    assert "set SIMULATED_KEY" in found(ran, "provider anthropic")["fix"]


def test_a_proxy_that_cannot_be_used_is_a_problem_of_the_providers_behind_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-value")
    monkeypatch.setenv("ALL_PROXY", "socks5://somebody:sk-other-value@127.0.0.1:1")
    (folder / "bardo.toml").write_text('[[providers]]\nid = "openai"\n')
    ran = bardo("doctor", "--json")
    assert ran.code == 1
    assert "in ALL_PROXY is of the kind socks5" in found(ran, "provider openai")["found"]
    assert "NO_PROXY" in found(ran, "provider openai")["fix"]
    assert "sk-other-value" not in ran.out


def test_a_refused_key_is_told_from_a_missing_server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_KEY", "sk-wrong-value")
    with simulated(Simulator("groq", key="right"), Simulator("vllm", fault=Fault("refused")), folder=folder):
        ran = bardo("doctor", "--json")
    assert ran.code == 1
    assert "refuses the key (401)" in found(ran, "provider groq")["found"]
    assert found(ran, "provider groq")["fix"] == "check the key in SIMULATED_KEY"
    assert found(ran, "provider vllm")["status"] == "problem"
    assert found(ran, "provider vllm")["fix"]
    assert "sk-wrong-value" not in ran.out


@contextmanager
def slow(*, drips: bool) -> Iterator[str]:
    """Serve one client a body that never ends: a byte now and then, or nothing at all."""

    def serve() -> None:
        client, _ = listener.accept()
        with client:
            client.recv(65536)
            client.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9999\r\n\r\n")
            while not select.select([client], [], [], 0.02 if drips else None)[0]:
                client.sendall(b" ")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = threading.Thread(target=serve)
        serving.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        serving.join()


@pytest.mark.parametrize(
    ("drips", "bound", "value"),
    [
        (False, "_ASKING", Deadlines(connect=5.0, first_byte=5.0, idle=0.2)),
        (True, "_LONGEST_SECONDS", 0.3),
    ],
    ids=["stalling", "dripping"],
)
def test_a_server_that_keeps_one_waiting_is_a_problem(
    drips: bool, bound: str, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider_checks, bound, value)
    with slow(drips=drips) as base_url:
        Path("bardo.toml").write_text(f'[[providers]]\nid = "lab"\npreset = "vllm"\nbase_url = "{base_url}"\n')
        ran = bardo("doctor", "--json")
    assert ran.code == 1
    assert found(ran, "provider lab")["status"] == "problem"
    assert found(ran, "provider lab")["fix"]


def test_a_server_without_a_list_of_models_is_fine_where_they_are_configured(folder: Path) -> None:
    with simulated(Simulator("vllm", fault=Fault("status", status=404)), folder=folder) as servers:
        unnamed = bardo("doctor", "--json")
        Path("bardo.toml").write_text(
            f'[[providers]]\nid = "lab"\npreset = "vllm"\nbase_url = "{servers[0].base_url}"\nmodels = ["m"]\n'
        )
        named = bardo("doctor", "--json")
    assert (unnamed.code, found(unnamed, "provider vllm")["status"]) == (0, "warning")
    assert "name its models" in found(unnamed, "provider vllm")["fix"]
    assert (named.code, found(named, "provider lab")["status"]) == (0, "ok")


def test_configured_models_that_are_not_listed_are_named(folder: Path) -> None:
    with simulated(Simulator("vllm"), folder=folder) as servers:
        Path("bardo.toml").write_text(
            f'[[providers]]\nid = "lab"\npreset = "vllm"\nbase_url = "{servers[0].base_url}"\nmodels = ["typo"]\n'
        )
        ran = bardo("doctor", "--json")
    assert found(ran, "provider lab")["status"] == "warning"
    assert "does not list typo" in found(ran, "provider lab")["found"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[gateway", "bardo.toml is not valid TOML"),
        ("[gateway]\nprot = 1\n", "line 2: unknown key 'prot'"),
        ('[[providers]]\nid = "x"\npreset = "nix"\n', "no preset is called 'nix'"),
    ],
)
def test_a_broken_configuration_is_a_problem_with_its_place(text: str, said: str) -> None:
    Path("bardo.toml").write_text(text)
    ran = bardo("doctor", "--json")
    assert ran.code == 1
    assert said in found(ran, "configuration")["found"]
    assert bardo("doctor").out.endswith("1 to mend\n")


def test_nothing_configured_is_no_failure_but_says_what_to_do() -> None:
    ran = bardo("doctor", "--json")
    assert ran.code == 0
    assert "no bardo.toml here" in found(ran, "configuration")["found"]
    areas = {one["area"] for one in ran.json["findings"]}
    assert areas & {"providers", "local server"}


def test_a_port_in_use_is_a_warning() -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        Path("bardo.toml").write_text(f"[gateway]\nport = {held.getsockname()[1]}\n")
        ran = bardo("doctor", "--json")
    assert ran.code == 0
    assert found(ran, "port")["status"] == "warning"
    assert "is in use" in found(ran, "port")["found"]


def test_a_log_that_cannot_be_used_is_a_problem(folder: Path) -> None:
    (folder / "no.db").write_text("this is no database, it is prose " * 100)
    Path("bardo.toml").write_text('[log]\npath = "no.db"\n')
    ran = bardo("doctor", "--json")
    assert ran.code == 1
    assert found(ran, "log")["status"] == "problem"
    Path("bardo.toml").write_text("[log]\nenabled = false\n")
    assert found(bardo("doctor", "--json"), "log")["found"] == "off, as configured"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_a_problem(folder: Path) -> None:
    (folder / "closed").mkdir(mode=0o500)
    Path("bardo.toml").write_text('[log]\npath = "closed/log.db"\n')
    assert found(bardo("doctor", "--json"), "log")["status"] == "problem"


def test_looking_creates_nothing(folder: Path) -> None:
    assert bardo("doctor").code == 0
    assert list(folder.iterdir()) == []


def test_each_of_several_keys_is_tried(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY_ONE", "sk-wrong-value")
    monkeypatch.setenv("KEY_TWO", "right")
    with Simulator("groq", key="right").running() as server:
        names = '["KEY_ONE", "KEY_TWO", "KEY_THREE"]'
        (folder / "bardo.toml").write_text(
            f'[[providers]]\nid = "groq"\nbase_url = "{server.base_url}"\napi_key_env = {names}\n'
        )
        ran = bardo("doctor", "--json")
    assert [(one["status"], one["found"]) for one in ran.json["findings"] if one["area"] == "keys of groq"] == [
        ("problem", "the key in KEY_ONE is refused (401)"),
        ("ok", "the key in KEY_TWO is taken"),
        ("warning", "KEY_THREE is not set"),
    ]
    assert "sk-wrong-value" not in ran.out + ran.err
