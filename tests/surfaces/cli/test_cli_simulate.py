"""`bardo simulate`: servers that run until Ctrl-C, and the configuration that points at them."""

from __future__ import annotations

import signal
import socket
import subprocess
from pathlib import Path

import pytest

from bardo.adapters.config.settings import parse_settings, provider_of
from bardo.simulators import PRESETS, presets
from bardo.surfaces.cli.simulate import configuration, entry_for
from support.any_model import Simulator
from surfaces.cli.support import PROGRAM, bardo, ended, line_with, running


def test_all_are_listed_with_the_preset_that_reads_them() -> None:
    lines = [line.split() for line in bardo("simulate", "--list").out.splitlines()[1:]]
    assert [line[0] for line in lines] == presets()
    assert ["inline_think", "openai_chat", "vllm"] in [line[:3] for line in lines]
    found = bardo("simulate", "--list", "--json", "gemini").json
    assert [one["preset"] for one in found["simulators"]] == ["gemini"]


def test_the_configuration_of_all_is_one_bardo_can_load() -> None:
    entries = [entry_for(Simulator(name), f"http://127.0.0.1:1{PRESETS[name].base_path}") for name in presets()]
    settings = parse_settings(configuration(entries))
    assert [entry.id for entry in settings.providers] == presets()
    for entry in settings.providers:
        assert provider_of(entry).row.dialect == PRESETS[entry.id].dialect


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_runs_until_told_to_end_and_its_configuration_can_be_asked(number: signal.Signals, folder: Path) -> None:
    script = folder / "script.toml"
    script.write_text('[[turns]]\ntext = "scripted"\nreasoning = "as told"\n', encoding="utf-8")
    with (folder / "bardo.toml").open("wb") as configured:
        process = subprocess.Popen(
            [*PROGRAM, "simulate", "vllm", "--any-model", "--script", str(script)],
            stdout=configured,
            stderr=subprocess.PIPE,
        )
    with process:
        try:
            line_with(process.stderr, "Ctrl-C ends")
            while b"base_url" not in (folder / "bardo.toml").read_bytes():
                assert process.poll() is None
            assert bardo("ask", "x", "-m", "vllm/any").out == "scripted\n"
            assert ended(process, number) == 0
            assert process.stderr is not None
            assert b"Traceback" not in process.stderr.read()
        finally:
            process.kill()


def test_a_model_that_is_not_listed_is_unknown() -> None:
    with running("simulate", "vllm") as process:
        assert "Qwen/Qwen3-0.6B" in line_with(process.stderr, "vllm")
        line_with(process.stderr, "Ctrl-C ends")
        configured = line_with(process.stdout, "base_url")
        Path("bardo.toml").write_text(f'[[providers]]\nid = "vllm"\npreset = "vllm"\n{configured}\n', encoding="utf-8")
        assert "does not exist" in bardo("ask", "x", "-m", "vllm/no-such-model").err
        assert bardo("ask", "x", "-m", "vllm/Qwen/Qwen3-0.6B").out


def test_ports_count_up_from_the_first_and_faults_strike() -> None:
    first = free_ports(2)
    with running("simulate", "vllm", "groq", "--port", str(first), "--fault", "status=503", "--json") as process:
        line_with(process.stdout, f"http://127.0.0.1:{first}/v1")
        line_with(process.stdout, f"http://127.0.0.1:{first + 1}/openai/v1")
        Path("bardo.toml").write_text(f'[[providers]]\nid = "vllm"\nbase_url = "http://127.0.0.1:{first}/v1"\n')
        ran = bardo("ask", "x", "-m", "vllm/q")
        assert (ran.code, "503" in ran.err) == (3, True)
        assert ended(process, signal.SIGTERM) == 0


def free_ports(count: int) -> int:
    """Find `count` ports in a row that were free just now."""
    while True:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            first: int = probe.getsockname()[1]
        try:
            for port in range(first, first + count):
                socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        return first


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["antropic"], "did you mean anthropic"),
        (["vllm", "--fault", "flood"], "no fault is called 'flood'"),
        (["vllm", "--fault", "status=x"], "write it as in status=429"),
        (["vllm", "--script", "missing.toml"], "cannot read the script"),
        (["vllm", "--script", "wrong.toml"], "cannot read the script"),
        (["vllm", "--script", "empty.toml"], "holds no script"),
    ],
)
def test_what_is_not_understood_is_said(arguments: list[str], said: str) -> None:
    Path("wrong.toml").write_text("[[turns]]\ntext = 3\n")
    Path("empty.toml").write_text("")
    ran = bardo("simulate", *arguments)
    assert ran.code == 2
    assert said in ran.err


def test_a_port_in_use_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        ran = bardo("simulate", "vllm", "--port", str(held.getsockname()[1]))
    assert ran.code == 2
    assert "already in use" in ran.err
