"""What people install: the wheel made from the source distribution, in an empty environment."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST_WHEEL_BYTES = 14_500_000
MOST_INSTALLED_BYTES = 80_000_000
"""Of bardo and what it needs, without pip and without byte code: most is SQLAlchemy, jsonschema-rs, uvloop and bardo's own tables."""
MOST_MODULES = 45
"""That `import bardo` loads: a name is looked up where it is first used."""
_UNREACHABLE = (
    "No matching distribution",
    "Could not find a version",
    "Connection",
    "Temporary failure in name resolution",
)
_TIME_LIMIT = 280.0


class Environment:
    """A virtual environment, with nothing in it but pip."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder, with_pip=True)
        self.programs = folder / ("Scripts" if os.name == "nt" else "bin")
        self.packages = next(folder.glob("lib/python*/site-packages"), folder / "Lib" / "site-packages")

    def run(self, *command: str, cwd: Path | None = None) -> str:
        """Run a program of the environment, and return what it printed."""
        program, *rest = command
        environment = {"PATH": os.defpath, "HOME": str(self.programs.parent), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [str(self.programs / program), *rest],
            env=environment,
            cwd=cwd or self.programs.parent,
            capture_output=True,
            text=True,
            timeout=_TIME_LIMIT,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    def install(self, *packages: str) -> None:
        """Install packages; the test is skipped where no registry can be reached. pip reads its usual settings."""
        command = [str(self.programs / "python"), "-m", "pip", "install", "--quiet", "--no-compile", *packages]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIME_LIMIT, check=False)
        if done.returncode and any(words in done.stderr for words in _UNREACHABLE):
            pytest.skip("no registry of packages can be reached")
        assert done.returncode == 0, done.stderr[-3000:]

    def bytes_of(self, *without: str) -> int:
        """Return the size of all that is installed, without some packages."""
        folders = [one for one in self.packages.iterdir() if one.name.split("-")[0] not in without]
        return sum(file.stat().st_size for folder in folders for file in _files(folder))


def _files(folder: Path) -> list[Path]:
    return [folder] if folder.is_file() else [file for file in folder.rglob("*") if file.is_file()]


@pytest.fixture
def distributions(tmp_path: Path) -> tuple[Path, Path]:
    """Return the source distribution of this tree and the wheel that is built from it."""
    builder = Environment(tmp_path / "builder")
    builder.install("build", "hatchling")
    made = tmp_path / "made"
    builder.run("python", "-m", "build", "--no-isolation", "--outdir", str(made), str(ROOT))
    return next(made.glob("*.tar.gz")), next(made.glob("*.whl"))


@pytest.mark.skipif(sys.platform == "win32", reason="a virtual environment looks different there")
def test_the_wheel_installs_and_runs_in_an_empty_environment(distributions: tuple[Path, Path], tmp_path: Path) -> None:
    source, wheel = distributions
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml", "src/bardo/py.typed"} <= names
    with zipfile.ZipFile(wheel) as packed:
        packaged = packed.namelist()
    assert "bardo/catalog/data/providers.toml" in packaged
    assert {name.partition("/")[0] for name in packaged if ".dist-info" not in name} == {"bardo"}
    assert any(name.endswith("licenses/LICENSE") for name in packaged)
    assert not [name for name in packaged if "test" in Path(name).name.split("_")]
    assert wheel.stat().st_size <= MOST_WHEEL_BYTES

    user = Environment(tmp_path / "user")
    user.install(str(wheel))
    assert "bardo" in user.run("bardo", "--version")
    assert "visible" in user.run("bardo", "demo")
    count = "import sys; before = set(sys.modules); import bardo; print(len(set(sys.modules) - before))"
    assert int(user.run("python", "-c", count)) <= MOST_MODULES
    assert user.bytes_of("pip", "setuptools", "pkg_resources", "_distutils_hack") <= MOST_INSTALLED_BYTES
    page = user.run("python", "-c", "from importlib.metadata import metadata; print(metadata('bardo')['Description'])")
    assert page.startswith("# bardo")
