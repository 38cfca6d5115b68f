"""bardo's random numbers do not depend on the state that the rest of the process shares, and do not change it."""

from __future__ import annotations

import ast
import random
import subprocess
import sys
from pathlib import Path

import pytest

import bardo
from bardo.call.call import new_request_id

pytestmark = pytest.mark.each_python

SOURCES = Path(bardo.__file__).parent


def test_a_program_that_seeds_random_does_not_repeat_request_ids() -> None:
    random.seed(0)
    first = new_request_id(0.0)
    random.seed(0)
    assert new_request_id(0.0) != first


def test_drawing_leaves_the_shared_state_alone() -> None:
    before = random.getstate()
    new_request_id(0.0)
    assert random.getstate() == before


def test_a_forked_process_draws_its_own() -> None:
    program = """
import os
from bardo.adapters.chance import CHANCE
read, write = os.pipe()
if os.fork() == 0:
    os.write(write, f"{CHANCE.getrandbits(64):016x}".encode())
    os._exit(0)
os.wait()
print(os.read(read, 16).decode(), f"{CHANCE.getrandbits(64):016x}")
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    child, parent = ran.stdout.split()
    assert child != parent


def test_no_module_uses_the_shared_functions_of_random() -> None:
    """`random.Random` and `random.SystemRandom` have a state of their own; everything else of `random` has the process's."""
    shared = [
        f"{path.relative_to(SOURCES)}:{node.lineno}"
        for path in sorted(SOURCES.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "random"
        and node.attr in dir(random)
        and node.attr not in ("Random", "SystemRandom")
    ]
    allowed = [
        place for place in shared if place.startswith("routing/learned/")
    ]  # a parameter of that name, of type Random
    assert shared == allowed
