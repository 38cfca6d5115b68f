"""The distributions of this tree, built once for each process of the tests."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from support.empty_environment import EmptyEnvironment

ROOT = Path(__file__).parents[2]


class Distributions(NamedTuple):
    """The source distribution and the wheel that was built from it."""

    source: Path
    wheel: Path


class Builder:
    """An environment with the packages that build bardo."""

    def __init__(self, folder: Path) -> None:
        self.environment = EmptyEnvironment(folder)
        self.environment.install("build", "hatchling")

    def build(self, tree: Path, output: Path) -> Distributions:
        """Build the distributions of a tree."""
        self.environment.run("python", "-m", "build", "--no-isolation", "--outdir", str(output), str(tree))
        return Distributions(next(output.glob("*.tar.gz")), next(output.glob("*.whl")))


@pytest.fixture(scope="session")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Builder:
    """Return what builds bardo."""
    return Builder(tmp_path_factory.mktemp("builder"))


@pytest.fixture(scope="session")
def distributions(builder: Builder, tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    """Return the distributions of this tree."""
    return builder.build(ROOT, tmp_path_factory.mktemp("built"))
