"""Run somebody else's test suite in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from support.patience import PATIENCE


def run_suite(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the tests in a folder as their owner would, with warnings as errors and none of this suite's settings."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
    command = [sys.executable, "-W", "error", "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", *options]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
