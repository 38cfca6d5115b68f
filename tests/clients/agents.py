"""Claude Code and Codex as subprocesses, with a home of their own. They are found on the path, or below `BARDO_TEST_CLIENTS`.

`BARDO_TEST_CLIENTS` is a folder where `npm install @anthropic-ai/claude-code @openai/codex` was run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

_PATIENCE = 120.0
_CODEX = """
model = "{model}"
model_provider = "bardo"
[model_providers.bardo]
name = "bardo"
base_url = "{address}/v1"
env_key = "BARDO_KEY"
wire_api = "responses"
"""


def command(name: str) -> str:
    """Return the path of an agent's program; the test is skipped where it is not installed."""
    folder = os.environ.get("BARDO_TEST_CLIENTS", "")
    local = Path(folder) / "node_modules" / ".bin" / name
    found = str(local) if folder and local.exists() else shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def run(arguments: list[str], folder: Path, environment: dict[str, str]) -> str:
    """Return what an agent printed. It starts no program of its own but in `folder`, and reaches this machine alone."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    work = folder / "work"
    work.mkdir(exist_ok=True)
    known = {"PATH": os.environ["PATH"], "HOME": str(home), "NO_PROXY": "*", **environment}
    done = subprocess.run(
        arguments,
        cwd=work,
        env=known,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def claude_code(address: str, model: str, question: str, folder: Path) -> str:
    """Return what Claude Code prints for one question: the last block of the last reply. It may run commands."""
    said = [command("claude"), "-p", question, "--model", model, "--allowedTools", "Bash"]
    environment = {
        "ANTHROPIC_BASE_URL": address,
        "ANTHROPIC_API_KEY": "k",
        "ANTHROPIC_SMALL_FAST_MODEL": model,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }
    return run(said, folder, environment)


def codex(address: str, model: str, question: str, folder: Path) -> str:
    """Return the answer of Codex to a question; it may run commands."""
    settings = folder / "home" / ".codex"
    settings.mkdir(parents=True, exist_ok=True)
    (settings / "config.toml").write_text(_CODEX.format(model=model, address=address))
    said = [command("codex"), "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", question]
    return run(said, folder, {"BARDO_KEY": "k"})
