"""`bardo doctor --watch`: a running gateway's providers, again and again."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from bardo.simulators import Fault
from support.any_model import Simulator
from support.gateway import SECRET, house
from support.patience import PATIENCE, read_line
from support.talk import ask
from surfaces.cli.support import PROGRAM, bardo

MODEL = "shared-model"


def test_each_look_is_one_line_of_json_and_ctrl_c_ends_it(folder: Path) -> None:
    with house([Simulator("deepseek", fault=Fault("status", status=500))], each={"models": (MODEL,)}) as running:
        command = [*PROGRAM, "doctor", "--watch", "--json", "--every", "0.1", "--url", running.address]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder) as process:
            first = json.loads(read_line(process.stdout))
            assert [(one["provider"], one["connection"]["state"]) for one in first["providers"]] == [
                ("deepseek", "unknown")
            ]
            for _ in range(4):
                ask(running.address, "openai_chat", MODEL)
            while "down" not in (line := read_line(process.stdout)):
                assert line
            (model,) = json.loads(line)["providers"][0]["models"]
            assert (model["model"], model["state"], model["faults"]) == (MODEL, "down", {"server": model["failed"]})
            process.send_signal(signal.SIGINT)
            _, complaints = process.communicate(timeout=PATIENCE)
        assert (process.returncode, complaints) == (0, b"")
        assert SECRET not in line


def test_a_gateway_that_is_not_there_is_a_clear_error(folder: Path) -> None:
    with Simulator("deepseek").running() as server:
        address = server.root
    ran = bardo("doctor", "--watch", "--url", address)
    assert ran.code == 3
    assert f"no gateway answers at {address}" in ran.err
    assert "bardo serve" in ran.err


def test_another_server_is_a_clear_error(folder: Path) -> None:
    with Simulator("deepseek").running() as server:
        ran = bardo("doctor", "--watch", "--url", server.root)
    assert ran.code == 3
    assert "name a bardo gateway with --url" in ran.err


def test_the_gateway_that_is_configured_here_is_asked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BARDO_HOST", "0.0.0.0")
    monkeypatch.setenv("BARDO_PORT", "1")
    ran = bardo("doctor", "--watch")
    assert ran.code == 3
    assert "127.0.0.1:1" in ran.err


def test_tables_name_the_state_of_each_model(folder: Path) -> None:
    with house([Simulator("deepseek")], each={"models": (MODEL,)}) as running:
        for _ in range(12):
            ask(running.address, "openai_chat", MODEL)
        command = [*PROGRAM, "doctor", "--watch", "--every", "0.1", "--url", running.address]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder) as process:
            lines = [read_line(process.stdout) for _ in range(5)]
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=PATIENCE)
    assert running.address in lines[0]
    row = next(line for line in lines if MODEL in line)
    assert row.startswith("healthy")
    assert "0 of 12" in row
