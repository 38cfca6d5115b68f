"""Virtual environments with nothing in them but pip, and the Pythons of this machine that can make one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

VERSIONS = ("3.11", "3.12", "3.13", "3.14")
"""Of Python, on which bardo runs."""
_UNREACHABLE = (
    "No matching distribution",
    "Could not find a version",
    "Connection",
    "Temporary failure in name resolution",
    "dns error",
    "error sending request",
)
_TIME_LIMIT = 280.0


@cache
def python_of(version: str) -> str:
    """Return a Python of a version such as 3.12: this one, one on PATH, or one of pyenv. The test is skipped where there is none."""
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return sys.executable
    kept = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    for candidate in (shutil.which(f"python{version}"), *map(str, kept)):
        if candidate is not None and _runs(candidate, version):
            return candidate
    pytest.skip(f"Python {version} is not here")


def _runs(python: str, version: str) -> bool:
    probe = "import ensurepip, ssl, sys, venv; print('%d.%d' % sys.version_info[:2])"
    ended = subprocess.run([python, "-c", probe], capture_output=True, text=True, timeout=_TIME_LIMIT, check=False)
    return ended.stdout.strip() == version


def run_online(command: list[str], **variables: str) -> str:
    """Run a program that needs a registry, with this machine's settings, and return its output; skipped where none can be reached."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    ended = subprocess.run(
        command, env=environment | variables, capture_output=True, text=True, timeout=_TIME_LIMIT, check=False
    )
    if ended.returncode and any(words in ended.stderr for words in _UNREACHABLE):
        pytest.skip("no registry of packages can be reached")
    assert ended.returncode == 0, ended.stderr[-3000:]
    return ended.stdout


class EmptyEnvironment:
    """A virtual environment, with nothing in it but pip."""

    def __init__(self, folder: Path, *, python: str = sys.executable) -> None:
        subprocess.run([python, "-m", "venv", str(folder)], check=True, timeout=_TIME_LIMIT)
        self.programs = folder / ("Scripts" if os.name == "nt" else "bin")
        self.packages = next(folder.glob("lib/python*/site-packages"), folder / "Lib" / "site-packages")

    def run(self, program: str, *arguments: str) -> str:
        """Run a program of the environment without anything of this machine's, and return what it printed."""
        environment = {"PATH": os.defpath, "HOME": str(self.programs.parent), "PYTHONDONTWRITEBYTECODE": "1"}
        ended = subprocess.run(
            [str(self.programs / program), *arguments],
            env=environment,
            cwd=self.programs.parent,
            capture_output=True,
            text=True,
            timeout=_TIME_LIMIT,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr[-3000:]
        return ended.stdout

    def install(self, *options: str) -> None:
        """Install packages; the test is skipped where no registry can be reached. pip reads its usual settings."""
        run_online([str(self.programs / "python"), "-m", "pip", "install", "--quiet", "--no-compile", *options])

    def size(self, *without: str) -> int:
        """Return the bytes of all that is installed, without some packages."""
        folders = [one for one in self.packages.iterdir() if one.name.split("-")[0] not in without]
        return sum(file.stat().st_size for folder in folders for file in _files(folder))


def _files(folder: Path) -> list[Path]:
    return [folder] if folder.is_file() else [file for file in folder.rglob("*") if file.is_file()]
