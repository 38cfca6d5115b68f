"""Programs and libraries that tests run and bardo does not need: each is installed once, into a folder that is kept between runs.

What was installed before is used. More is installed only where BARDO_TEST_INSTALL is `yes`, or `all` with what is large, as at night.
`BARDO_TEST_CLIENTS` names a folder with a `node_modules` of one's own for the agents instead.
Where npm, pip or their registries cannot be had, the tests are skipped. `python tests/clients/installed.py` installs all of them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

_TIME_LIMIT = 240.0
_REST = 1800.0
"""Seconds in which an installation that failed is not tried again."""


@dataclass(frozen=True)
class Packages:
    """Packages that belong together, with their versions."""

    name: str
    packages: tuple[str, ...]
    nightly: bool = False
    """Whether they are installed only where all are wanted."""

    @property
    def folder(self) -> Path:
        """Where they are, once they are installed; another version has another folder."""
        versions = "-".join(re.split("@|==", one)[-1] for one in self.packages)
        return _cache() / f"{self.name}-{versions}"

    def commands(self) -> Iterator[Sequence[str]]:
        """Return the commands that install them, each run in their folder."""
        raise NotImplementedError

    def missing(self) -> str:
        """Return which program there must be and is not, or nothing."""
        return ""

    def install(self) -> str:
        """Install them unless they are there, and return why not where that fails. One process does, the others wait for it."""
        done, failed = self.folder / ".installed", self.folder / ".failed"
        if done.exists():
            return ""
        wanted = os.environ.get("BARDO_TEST_INSTALL") or "no"
        if wanted == "no":
            return f"{self.name} is installed at night, or where BARDO_TEST_INSTALL is yes"
        if self.nightly and wanted != "all":
            return f"{self.name} is installed where BARDO_TEST_INSTALL is all"
        if missing := self.missing():
            return missing
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
        for command in self.commands():
            try:
                ran = subprocess.run(
                    command,
                    cwd=self.folder,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    timeout=_TIME_LIMIT,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                return f"installing {self.name} took too long"
            if ran.returncode:
                return f"{self.name} cannot be installed: {ran.stderr[-300:]}"
        return ""


class NpmPackages(Packages):
    """Packages of npm."""

    def missing(self) -> str:
        """Return which of Node.js and npm is not there."""
        return next((f"{name} is not here" for name in ("node", "npm") if shutil.which(name) is None), "")

    def commands(self) -> Iterator[Sequence[str]]:
        """Return npm's command."""
        options = ("--no-save", "--no-audit", "--no-fund", "--fetch-retries=1", "--fetch-timeout=60000")
        yield ("npm", "install", *options, *self.packages)


class PipPackages(Packages):
    """Packages of Python, in an environment of their own."""

    def commands(self) -> Iterator[Sequence[str]]:
        """Return the commands that make the environment."""
        yield (sys.executable, "-m", "venv", "--clear", "venv")
        yield (
            "venv/bin/python",
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--retries=1",
            *self.packages,
        )

    def python(self) -> str:
        """Return the path of their Python; the test is skipped where they cannot be had."""
        if why := self.install():
            pytest.skip(why)
        return str(self.folder / "venv" / "bin" / "python")


AGENTS = {
    "claude": NpmPackages("claude", ("@anthropic-ai/claude-code@2.1.332",)),
    "codex": NpmPackages("codex", ("@openai/codex@0.171.0",)),
    "gemini": NpmPackages("gemini", ("@google/gemini-cli@0.61.0",)),
    "opencode": NpmPackages("opencode", ("opencode-ai@1.18.33",)),
    # It needs a newer Node.js than is usual, which npm brings.
    "qwen": NpmPackages("qwen", ("@qwen-code/qwen-code@0.24.4", "node@22.23.3"), nightly=True),
    "copilot": NpmPackages("copilot", ("@github/copilot@1.0.102",), nightly=True),
    "cline": NpmPackages("cline", ("cline@3.0.65",), nightly=True),
    "goose": NpmPackages("goose", ("@aaif/goose-acp@1.50.0",), nightly=True),
    "kilo": NpmPackages("kilo", ("@kilocode/cli@7.7.7",), nightly=True),
    "aider": PipPackages("aider", ("aider-chat==0.86.2",), nightly=True),
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
        "@ai-sdk/google@4.0.121",
        "@ai-sdk/openai@4.0.118",
        "@ai-sdk/openai-compatible@3.0.92",
    ),
)
"""Libraries of JavaScript, which the examples of the documentation use."""
FURTHER_SDKS = NpmPackages("further-sdks", ("ollama@0.6.4", "cohere-ai@8.1.0"), nightly=True)
LANGCHAIN_JS = NpmPackages(
    "langchain-js",
    (
        "@langchain/core@1.4.0",
        "@langchain/openai@1.5.8",
        "@langchain/anthropic@1.5.11",
        "@langchain/google-genai@2.3.2",
    ),
    nightly=True,
)
"""The newest versions for the oldest Node.js that the tests run on, 20."""
MASTRA = NpmPackages("mastra", ("@mastra/core@1.71.0", "zod@4.6.7"), nightly=True)


PYTHON_CLIENTS = PipPackages(
    "python",
    (
        "langchain-openai==1.7.3",
        "langchain-anthropic==1.7.7",
        "pydantic-ai-slim[openai]==2.68.0",
        "openai-agents==0.24.0",
        "llm==0.36",
        "openai==3.54.0",
        "anthropic==2.12.0",
    ),
)
INSTRUCTOR = PipPackages("instructor", ("instructor==1.17.0", "openai==3.3.0"))
"""Libraries of Python that the documentation uses; instructor takes no newer version of OpenAI's SDK."""
OTHER_FRAMEWORKS = PipPackages(
    "frameworks",
    ("llama-index-llms-openai==0.8.3", "llama-index-llms-openai-like==0.8.1", "smolagents==1.26.0"),
    nightly=True,
)
LITELLM = PipPackages("litellm", ("dspy==3.4.1", "litellm==1.110.2"), nightly=True)
GOOGLE_CLIENTS = PipPackages(
    "google", ("langchain-google-genai==4.4.2", "pydantic-ai-slim[google]==2.68.0"), nightly=True
)
GOOGLE_ADK = PipPackages("adk", ("google-adk==2.13.0",), nightly=True)
STRANDS = PipPackages("strands", ("strands-agents[anthropic,openai]==1.62.0",), nightly=True)
AGENT_FRAMEWORK = PipPackages(
    "agent-framework", ("agent-framework-core==1.23.0", "agent-framework-openai==1.17.0"), nightly=True
)
AGNO = PipPackages("agno", ("agno==3.1.10", "openai==3.57.0", "anthropic==2.14.0", "google-genai==3.6.1"), nightly=True)
HAYSTACK = PipPackages(
    "haystack", ("haystack-ai==3.4.1", "anthropic-haystack==8.0.1", "google-genai-haystack==7.0.0"), nightly=True
)
"""Frameworks with packages so many that they are installed every night, and not for each change."""
TOOL_SERVERS = NpmPackages(
    "tool-servers",
    (
        "@modelcontextprotocol/server-filesystem@2026.8.31",
        "@modelcontextprotocol/server-github@2025.4.8",
        "@modelcontextprotocol/server-gitlab@2025.4.25",
        "@modelcontextprotocol/server-slack@2025.4.25",
        "@playwright/mcp@0.0.83",
        "chrome-devtools-mcp@1.11.0",
        "@notionhq/notion-mcp-server@2.5.2",
    ),
    nightly=True,
)
"""Servers of the Model Context Protocol, of which only the lists of their tools are asked for."""
ALL = (
    *AGENTS.values(),
    SDKS,
    FURTHER_SDKS,
    LANGCHAIN_JS,
    MASTRA,
    PYTHON_CLIENTS,
    INSTRUCTOR,
    OTHER_FRAMEWORKS,
    LITELLM,
    GOOGLE_CLIENTS,
    GOOGLE_ADK,
    STRANDS,
    AGENT_FRAMEWORK,
    AGNO,
    HAYSTACK,
    TOOL_SERVERS,
)


def tool_server(name: str) -> str:
    """Return the path of a tool server's program; the test is skipped where it cannot be had."""
    if why := TOOL_SERVERS.install():
        pytest.skip(why)
    return str(TOOL_SERVERS.folder / "node_modules" / ".bin" / name)


def program(name: str) -> str:
    """Return the path of an agent's program; the test is skipped where it cannot be had."""
    folder = os.environ.get("BARDO_TEST_CLIENTS", "")
    packages = AGENTS[name]
    why = "" if folder else packages.install()
    place = "venv/bin" if isinstance(packages, PipPackages) else "node_modules/.bin"
    found = Path(folder or packages.folder) / place / name
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
    os.environ.setdefault("BARDO_TEST_INSTALL", "all")
    for one in ALL:
        print(one.name, one.install() or f"is in {one.folder}")
