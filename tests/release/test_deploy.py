"""The files that run bardo as a service: read by the tools that will read them, and agreeing with bardo."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from bardo._version import __version__
from bardo.adapters.config.gateway import GatewaySettings
from bardo.surfaces.gateway.routes import find_route
from support.patience import PATIENCE

DEPLOY = Path(__file__).parents[2] / "deploy"
CHART = DEPLOY / "helm" / "bardo"


def run(program: str, *arguments: str | Path) -> str:
    """Run a program of this environment or of the machine; the test is skipped where it is not there."""
    beside = Path(sys.executable).with_name(program)
    found = str(beside) if beside.exists() else shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not here")
    done = subprocess.run([found, *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_container_file_has_no_fault() -> None:
    run("hadolint", DEPLOY / "Containerfile")


def test_the_container_runs_without_rights() -> None:
    lines = (DEPLOY / "Containerfile").read_text().splitlines()
    assert "USER 10001:10001" in lines
    assert 'ENTRYPOINT ["bardo"]' in lines


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--set", "persistence.enabled=true", "--set", "persistence.storageClass=fast", "--set", "existingSecret=keys"),
        ("--set", "replicas=3", "--set", "workers=2", "--set-json", 'tolerations=[{"operator":"Exists"}]'),
    ],
    ids=["plain", "kept", "several"],
)
def test_the_chart_has_no_fault_and_can_be_filled_in(options: Sequence[str]) -> None:
    run("helm", "lint", "--strict", CHART, *options)
    configuration = DEPLOY.parent / "pyproject.toml"  # Any TOML with quotes and braces in it.
    filled = run("helm", "template", "release", CHART, "--set-file", f"configuration={configuration}", *options)
    assert filled.count("kind: ") >= 3
    assert "readOnlyRootFilesystem: true" in filled


def test_the_probes_ask_what_bardo_answers_where_it_listens() -> None:
    filled = (CHART / "templates" / "deployment.yaml").read_text()
    for path in set(re.findall(r"httpGet: \{path: (\S+),", filled)):
        assert find_route("GET", path, b"").endpoint in ("health", "ready")
    port = str(GatewaySettings().port)
    assert f"containerPort: {port}" in filled
    assert f"port: {port}" in (CHART / "values.yaml").read_text()
    for file in ("Containerfile", "compose.yaml"):
        assert port in (DEPLOY / file).read_text()


def test_the_version_of_the_chart_is_that_of_bardo() -> None:
    chart = (CHART / "Chart.yaml").read_text()
    assert f"version: {__version__}" in chart
    assert f'appVersion: "{__version__}"' in chart


def test_systemd_reads_the_unit(tmp_path: Path) -> None:
    program = shutil.which("true")
    unit = tmp_path / "bardo.service"
    unit.write_text((DEPLOY / "bardo.service").read_text().replace("/opt/bardo/bin/bardo", str(program)))
    said = run("systemd-analyze", "verify", unit)
    assert str(unit) not in said
    assert "bardo.service" not in said
