"""A user's suite: nothing stays behind when it fails, and it costs nothing where it asks for nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from simulators.suites import run_suite

FAILING = """
import socket
from urllib.parse import urlsplit
import pytest
from bardo.simulators import provider_fixture

one = provider_fixture("vllm", fault="stall")
all_of_them = provider_fixture("groq", scope="session")

def test_that_fails_with_a_request_under_way(one, all_of_them):
    parts = urlsplit(one.base_url)
    with socket.create_connection((parts.hostname, parts.port)) as connection:
        connection.sendall(b"POST /v1/chat/completions HTTP/1.1\\r\\nhost: x\\r\\n")
        assert one.requests == ["something else"]

def test_that_passes(one):
    assert one.requests == []
"""
ENDING = """
import threading

def pytest_unconfigure(config):
    print("left:", [thread.name for thread in threading.enumerate() if thread.name.startswith("simulator")])
"""
IDLE = """
import sys

def test_nothing_of_bardo_is_loaded_for_a_suite_that_does_not_ask():
    assert not [name for name in sys.modules if name.partition(".")[0] == "bardo"]
"""


@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["alone", "side by side"])
def test_a_failing_suite_ends_and_leaves_nothing(tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "test_theirs.py").write_text(FAILING)
    (tmp_path / "conftest.py").write_text(ENDING)
    ran = run_suite(tmp_path, *options)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "1 failed, 1 passed" in ran.stdout
    assert "left: []" in ran.stdout


def test_a_suite_without_simulators_pays_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_theirs.py").write_text(IDLE)
    ran = run_suite(tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_simulators_need_no_pytest() -> None:
    code = "import sys; import bardo.simulators; assert 'pytest' not in sys.modules"
    ran = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
