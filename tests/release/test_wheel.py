"""What people install: the wheel made from the source distribution, in an empty environment of every Python that is here."""

from __future__ import annotations

import os
import shutil
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from release.conftest import ROOT, Builder, Distributions
from support.empty_environment import VERSIONS, EmptyEnvironment, python_of, run_online

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a virtual environment looks different there")

MOST_WHEEL_BYTES = 13_000_000
MOST_INSTALLED_BYTES = 80_000_000
"""Of bardo and what it needs, without pip and without byte code. Most is SQLAlchemy, jsonschema-rs, uvloop and bardo's own tables.

Machine code differs by 3 MB between versions of Python.
"""
MOST_MODULES = 45
"""That `import bardo` loads: a name is looked up where it is first used."""
NOT_INSTALLED = {"aiohttp", "yarl", "pydantic", "pydantic_core", "numpy", "requests", "httpx"}
"""What a plain install does without; each was there once, or is what a new dependency would bring."""


@pytest.mark.nightly
def test_the_distributions_hold_what_they_should_and_no_more(distributions: Distributions) -> None:
    with tarfile.open(distributions.source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml", "src/bardo/py.typed"} <= names
    assert {name.partition("/")[0] for name in names} == {
        *(".gitignore", "src", "LICENSES", "PKG-INFO", "README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml")
    }
    with zipfile.ZipFile(distributions.wheel) as packed:
        packaged = packed.namelist()
    assert "bardo/catalog/data/providers.toml" in packaged
    assert {name.partition("/")[0] for name in packaged if ".dist-info" not in name} == {"bardo"}
    assert any(name.endswith("licenses/LICENSE") for name in packaged)
    assert not [name for name in packaged if "test" in Path(name).name.split("_")]
    assert distributions.wheel.stat().st_size <= MOST_WHEEL_BYTES


@pytest.mark.nightly
@pytest.mark.parametrize("version", VERSIONS)
def test_the_wheel_installs_and_runs_in_an_empty_environment(
    distributions: Distributions, tmp_path: Path, version: str
) -> None:
    user = EmptyEnvironment(tmp_path / "user", python=python_of(version))
    # In the versions that the checks know: a larger release of something else says nothing of this wheel.
    user.install("--constraint", str(ROOT / "tools" / "constraints.txt"), str(distributions.wheel))
    assert "bardo" in user.run("bardo", "--version")
    assert "visible" in user.run("bardo", "demo")
    count = "import sys; before = set(sys.modules); import bardo; print(len(set(sys.modules) - before))"
    assert int(user.run("python", "-c", count)) <= MOST_MODULES
    assert not NOT_INSTALLED & {one.name for one in user.packages.iterdir()}
    assert user.size("pip", "setuptools", "pkg_resources", "_distutils_hack") <= MOST_INSTALLED_BYTES
    page = user.run("python", "-c", "from importlib.metadata import metadata; print(metadata('bardo')['Description'])")
    assert page.startswith("# bardo")


@pytest.mark.nightly
def test_uvx_runs_the_wheel_without_installing_it(distributions: Distributions, tmp_path: Path) -> None:
    tools = EmptyEnvironment(tmp_path / "tools")
    tools.install("uv")
    uv = [str(tools.programs / "uv"), "tool", "run", "--isolated", "--from", str(distributions.wheel)]
    folders = {name: str(tmp_path / name) for name in ("HOME", "UV_CACHE_DIR", "UV_TOOL_DIR")}
    told = run_online(
        [*uv, "bardo", "demo"], UV_PYTHON=sys.executable, UV_PYTHON_DOWNLOADS="never", UV_LINK_MODE="copy", **folders
    )
    assert "visible" in told


@pytest.mark.nightly
def test_two_builds_have_the_same_bytes(builder: Builder, distributions: Distributions, tmp_path: Path) -> None:
    tree = tmp_path / "elsewhere"
    tree.mkdir()
    for name in ("pyproject.toml", ".gitignore", "README.md", "CHANGELOG.md", "LICENSE"):
        shutil.copyfile(ROOT / name, tree / name)
    for folder in ("src", "LICENSES"):
        shutil.copytree(ROOT / folder, tree / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for number, file in enumerate(sorted(tree.rglob("*"))):
        os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))
    again = builder.build(tree, tmp_path / "again")
    for one, other in zip(distributions, again, strict=True):
        assert (one.name, one.read_bytes() == other.read_bytes()) == (other.name, True)
