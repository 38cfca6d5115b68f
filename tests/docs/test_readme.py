"""The README from its top to its bottom, in one clean environment, as somebody who has just cloned the repository runs it.

Left out are `make`, which builds environments, and what installs bardo. A free port stands for the gateway's, and nobody sleeps.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from support.patience import PATIENCE, read_line

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(
    r"^```(?P<language>sh|console|python)\n(?P<text>.*?)^```\n(?:\n<!-- output -->\n```text\n(?P<output>.*?)^```\n)?",
    re.DOTALL | re.MULTILINE,
)
_ADDRESS = "http://127.0.0.1:8484"


@pytest.mark.skipif(shutil.which("bash") is None or shutil.which("curl") is None, reason="bash and curl are not here")
def test_the_readme_runs_from_its_top_to_its_bottom(tmp_path: Path) -> None:
    environment = {
        "HOME": str(tmp_path),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }
    address, ran = "", []
    with ExitStack() as stack:
        for found in _BLOCK.finditer((ROOT / "README.md").read_text(encoding="utf-8")):
            language, text, output = found["language"], found["text"], found["output"]
            if text.startswith("make "):
                continue
            if "bardo serve --simulated & sleep" in text:
                serve = ["bardo", "serve", "--simulated", "--port", "0"]
                gateway = stack.enter_context(_running(serve, tmp_path, environment, None))
                while "bardo listens on" not in (line := read_line(gateway.stderr)):
                    assert line, "the gateway ended"
                address = line.split()[3]
                text = text.partition("\n")[2]
            if begun := re.match(
                r"bardo simulate (?P<names>.*) > (?P<file>\S+) & sleep \d+\nexport (?P<set>.*)\n", text
            ):
                simulate = ["bardo", "simulate", *begun["names"].split()]
                file = tmp_path / begun["file"]
                stack.enter_context(_running(simulate, tmp_path, environment, file))
                until = time.monotonic() + PATIENCE
                while file.read_text().count("[[providers]]") < len(begun["names"].split()):
                    assert time.monotonic() < until
                environment |= dict(pair.split("=", 1) for pair in begun["set"].split())
                continue
            text = text.replace(_ADDRESS, address)
            program = [sys.executable, "-c", text] if language == "python" else ["bash", "-euc", text.replace("$ ", "")]
            done = subprocess.run(
                program, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
            )
            assert done.returncode == 0, f"{text}\n{done.stderr}"
            assert output is None or done.stdout.rstrip() == output.rstrip(), text
            assert output is not None or "1161" in done.stdout, text
            ran.append(language)
    assert ran.count("python") >= 6
    assert ran.count("sh") >= 2


@contextmanager
def _running(
    command: list[str], folder: Path, environment: dict[str, str], file: Path | None
) -> Iterator[subprocess.Popen[str]]:
    """Run a program until the block ends; what it prints goes to `file`."""
    with (
        (file or Path(os.devnull)).open("wb") as output,
        subprocess.Popen(
            command, cwd=folder, env=environment, stdout=output, stderr=subprocess.PIPE, text=True
        ) as process,
    ):
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=PATIENCE)
