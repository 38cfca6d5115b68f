"""Programs of npm that tests run: each is installed once into a folder that is kept from one run of the tests to the next.

`BARDO_TEST_CLIENTS` names a folder with a `node_modules` of one's own instead; `BARDO_TEST_INSTALL=no` installs nothing. Where npm or its
registry cannot be had, the tests are skipped. `python tests/clients/installed.py` installs all of them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

_TIME_LIMIT = 240.0
_REST = 1800.0
"""Seconds in which an installation that failed is not tried again."""
_NPM = ("npm", "install", "--no-save", "--no-audit", "--no-fund", "--fetch-retries=1", "--fetch-timeout=60000")


@dataclass(frozen=True)
class NpmPackages:
    """Packages that belong together, with their versions."""

    name: str
    packages: tuple[str, ...]

    @property
    def folder(self) -> Path:
        """Where they are, once they are installed; another version has another folder."""
        versions = "-".join(one.rpartition("@")[2] for one in self.packages)
        return _cache() / f"{self.name}-{versions}"

    def install(self) -> str:
        """Install them unless they are there, and return why not where that fails. One process does, the others wait for it."""
        done, failed = self.folder / ".installed", self.folder / ".failed"
        if done.exists():
            return ""
        if os.environ.get("BARDO_TEST_INSTALL") == "no" or shutil.which("npm") is None or shutil.which("node") is None:
            return "npm is not here, or is not to be used"
        self.folder.mkdir(parents=True, exist_ok=True)
        with _locked(self.folder / ".lock"):
            if done.exists():
                return ""
            if failed.exists() and time.time() - failed.stat().st_mtime < _REST:
                return failed.read_text(encoding="utf-8")
            why = self._install()
            (failed if why else done).write_text(why, encoding="utf-8")
            return why

    def _install(self) -> str:
        try:
            ran = subprocess.run(
                [*_NPM, *self.packages],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_TIME_LIMIT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return "npm took too long"
        return "" if ran.returncode == 0 else f"npm cannot install {self.name}: {ran.stderr[-300:]}"


AGENTS = {
    "claude": NpmPackages("claude", ("@anthropic-ai/claude-code@2.1.330",)),
    "codex": NpmPackages("codex", ("@openai/codex@0.169.0",)),
    "gemini": NpmPackages("gemini", ("@google/gemini-cli@0.61.0",)),
    "opencode": NpmPackages("opencode", ("opencode-ai@1.18.33",)),
}
"""Coding agents, by the names of their commands."""
SDKS = NpmPackages(
    "sdks",
    (
        "openai@7.57.0",
        "@anthropic-ai/sdk@1.12.0",
        "@google/genai@3.1.0",
        "ai@7.0.173",
        "@ai-sdk/anthropic@4.0.105",
        "@ai-sdk/openai-compatible@3.0.92",
    ),
)
"""Libraries of JavaScript, which the examples of the documentation use."""


def program(name: str) -> str:
    """Return the path of an agent's program; the test is skipped where it cannot be had."""
    folder = os.environ.get("BARDO_TEST_CLIENTS", "")
    packages = AGENTS[name]
    why = "" if folder else packages.install()
    found = Path(folder or packages.folder) / "node_modules" / ".bin" / name
    if why or not found.exists():
        pytest.skip(why or f"{name} is not in {folder}")
    return str(found)


def modules() -> Path:
    """Return the folder that holds the `node_modules` of the libraries; the test is skipped where they cannot be had."""
    if why := SDKS.install():
        pytest.skip(why)
    return SDKS.folder


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "bardo-tests"


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    """Hold a lock that other processes wait for; where there is none, a test worker may do the work of another again."""
    with file.open("w") as held:
        if sys.platform != "win32":
            import fcntl

            fcntl.flock(held, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    for one in (*AGENTS.values(), SDKS):
        print(one.name, one.install() or f"is in {one.folder}")
