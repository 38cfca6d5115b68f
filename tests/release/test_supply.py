"""What a release is made of: exact versions with hashes, a list of all of them, and workflows that trust no name that can move."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from bardo._version import __version__
from release.conftest import ROOT, Distributions
from support.empty_environment import EmptyEnvironment, run_online

DEPLOY = ROOT / "deploy"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = ("postgres", "redis", "privacy", "telemetry")
"""Of the container."""
_PIN = re.compile(r"(?P<name>[-\w.]+)==(?P<version>\S+)(?: ; (?P<marker>[^\\]+))? \\")
_HASH = re.compile(r"    --hash=sha256:[0-9a-f]{64}(?: \\)?")
_ACTION = re.compile(r"uses: [-\w]+/[-\w/]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")


def pins(file: Path) -> dict[str, list[Version]]:
    """Return the versions of each package in a file; one may have several, for different Pythons. Every line is a pin or a hash of it."""
    found: dict[str, list[Version]] = {}
    hashes = 1
    for line in file.read_text().splitlines():
        pin = _PIN.fullmatch(line)
        if pin is None:
            assert _HASH.fullmatch(line), line
            hashes += 1
            continue
        assert hashes, f"no hash before {line}"
        found.setdefault(str(canonicalize_name(pin["name"])), []).append(Version(pin["version"]))
        hashes = 0
    assert hashes
    return found


def assert_pinned(wanted: list[str], file: Path) -> None:
    locked = pins(file)
    for requirement in map(Requirement, wanted):
        versions = locked.get(canonicalize_name(requirement.name), [])
        assert versions, f"{requirement} is not in {file.name}: run `make lock`"
        assert all(requirement.specifier.contains(one, prereleases=True) for one in versions), requirement


def test_the_container_installs_what_the_project_asks_for_in_exact_versions() -> None:
    project = PROJECT["project"]
    extras = [line for name in EXTRAS for line in project["optional-dependencies"][name]]
    assert_pinned([*project["dependencies"], *extras], DEPLOY / "requirements.txt")


def asked_for() -> list[Requirement]:
    """Return what bardo needs and what its extras need."""
    extras = PROJECT["project"]["optional-dependencies"].values()
    return [Requirement(line) for lines in (PROJECT["project"]["dependencies"], *extras) for line in lines]


def test_every_dependency_and_every_extra_has_a_bound_on_both_sides() -> None:
    def unbounded(requirement: Requirement) -> bool:
        operators = {one.operator for one in requirement.specifier}
        return not operators & {">=", "==", "~="} or not operators & {"<", "==", "~="}

    assert [str(one) for one in asked_for() if unbounded(one)] == []


def test_the_checks_ask_for_the_versions_that_the_extras_ask_for() -> None:
    bounds = {canonicalize_name(one.name): one for one in asked_for()}
    wanted = map(Requirement, PROJECT["dependency-groups"]["dev"])
    assert [str(one) for one in wanted if one != bounds.get(canonicalize_name(one.name), one)] == []


def test_the_versions_of_the_checks_lie_within_the_bounds() -> None:
    bounds = {canonicalize_name(one.name): one.specifier for one in asked_for()}
    lines = (ROOT / "tools" / "constraints.txt").read_text().splitlines()
    exact = [line.partition(" ;")[0].partition("==") for line in lines]
    within = {name: bounds[canonicalize_name(name)] for name, _, _ in exact if canonicalize_name(name) in bounds}
    assert [(name, version) for name, _, version in exact if name in within and version not in within[name]] == []


def test_the_tools_of_a_release_have_exact_versions() -> None:
    assert_pinned(PROJECT["dependency-groups"]["release"], DEPLOY / "requirements-build.txt")


def test_the_checks_install_exact_versions() -> None:
    lines = (ROOT / "tools" / "constraints.txt").read_text().splitlines()
    named = {canonicalize_name(line.partition("==")[0]) for line in lines}
    groups = PROJECT["dependency-groups"]
    wanted = [Requirement(line) for line in [*PROJECT["project"]["dependencies"], *groups["dev"], *groups["docs"]]]
    assert [one.name for one in wanted if canonicalize_name(one.name) not in named] == [], "run `make lock`"


def test_the_container_file_installs_nothing_else() -> None:
    installs = [line for line in (DEPLOY / "Containerfile").read_text().splitlines() if "pip install" in line]
    assert installs
    assert all("--require-hashes" in line or "--no-index --no-deps" in line for line in installs)
    lock = (ROOT / "Makefile").read_text()
    assert re.findall(r"--extra (\w+)", lock) == list(EXTRAS)


@pytest.mark.parametrize("file", sorted((ROOT / ".github" / "workflows").iterdir()), ids=lambda file: file.name)
def test_actions_are_named_by_what_cannot_move(file: Path) -> None:
    lines = [line.strip().removeprefix("- ") for line in file.read_text().splitlines() if "uses:" in line]
    assert lines
    assert not [line for line in lines if not _ACTION.fullmatch(line)]


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform == "win32", reason="a virtual environment looks different there")
def test_the_bill_of_materials_names_all_that_is_installed(distributions: Distributions, tmp_path: Path) -> None:
    tools = EmptyEnvironment(tmp_path / "tools")
    tools.install("--require-hashes", "--requirement", str(DEPLOY / "requirements-build.txt"))
    output = tmp_path / "bardo.cdx.json"
    make = str(ROOT / "tools" / "make_sbom.py")
    run_online([str(tools.programs / "python"), make, str(distributions.wheel.parent), str(output)])
    bill = json.loads(output.read_text())
    assert bill["bomFormat"] == "CycloneDX"
    listed = {str(canonicalize_name(one["name"])): one["version"] for one in bill["components"]}
    locked = pins(DEPLOY / "requirements.txt")
    assert listed.pop("bardo") == __version__
    # Some pins are for other platforms and Pythons.
    assert {name for name in listed if Version(listed[name]) not in locked.get(name, [])} == set()
    asked = {canonicalize_name(Requirement(line).name) for line in PROJECT["project"]["dependencies"]}
    assert asked <= listed.keys()
    [uses] = [set(one["dependsOn"]) for one in bill["dependencies"] if one["ref"] == f"bardo=={__version__}"]
    assert asked <= {canonicalize_name(one.partition("==")[0]) for one in uses}
    assert str(tmp_path) not in output.read_text()
    assert "file:" not in output.read_text()
