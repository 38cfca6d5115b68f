"""The pages of the cookbook: each says whether it is run here, and what is run here prints what its page says.

`<!-- run by KIND -->` above a fenced block has it run as a program of its own, with the gateway's address in the place of bardo's usual
one, and `<!-- prints -->` above the block that follows holds its standard output. `<!-- run -->` is for `test_examples.py`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import pytest

from bardo.simulators import Script, Turn, running_many
from clients.installed import AGENTS, INSTRUCTOR, PYTHON_CLIENTS, SDKS, PipPackages, modules, program
from docs.conftest import ENTRY, KEY, PROVIDERS, SETTINGS
from docs.test_examples import ADDRESS, ROOT
from support.any_model import Simulator
from support.offenders import each_case

FOLDER = ROOT / "docs" / "cookbook"
INDEX = FOLDER / "README.md"
PAGES = sorted(page for page in FOLDER.glob("*.md") if page != INDEX)
RUN, BY_HAND = "Run in CI with ", "Not run in CI; tried by hand on "
_PATIENCE = 200.0
_NOWHERE = "http://127.0.0.1:9"
_BLOCK = re.compile(
    r"<!-- run by (?P<kind>\w+) -->\n```\w+\n(?P<text>.*?)^```\n\n<!-- prints -->\n```\w*\n(?P<output>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
# Versions that are not pinned by the tests: whoever runs them has what they have.
_NOT_PINNED = ("curl.md",)
_OF_THE_DEV_GROUP = ("openai", "anthropic", "google-genai")


class Recipe(NamedTuple):
    """One block to run."""

    place: str
    kind: str
    text: str
    output: str


def recipes(page: Path) -> list[Recipe]:
    text = page.read_text(encoding="utf-8")
    return [
        Recipe(
            f"{page.name}:{text.count(chr(10), 0, found.start()) + 1}", found["kind"], found["text"], found["output"]
        )
        for found in _BLOCK.finditer(text)
    ]


RECIPES = [recipe for page in PAGES for recipe in recipes(page)]


def by_node(text: str, folder: Path) -> list[str]:
    (folder / "node_modules").symlink_to(modules() / "node_modules")
    (folder / "example.mjs").write_text(text, encoding="utf-8")
    return [shutil.which("node") or "node", "example.mjs"]


def by_python_of(packages: PipPackages) -> Callable[[str, Path], list[str]]:
    def command(text: str, folder: Path) -> list[str]:
        python = packages.python()
        if text.startswith("export "):
            return ["sh", "-ec", f'PATH="{Path(python).parent}:$PATH"\n{text}']
        (folder / "example.py").write_text(text, encoding="utf-8")
        return [python, "example.py"]

    return command


def by_sh(text: str, folder: Path) -> list[str]:
    if shutil.which("curl") is None:
        pytest.skip("curl is not here")
    return ["sh", "-ec", text]


def by_agents(text: str, folder: Path) -> list[str]:
    # The agent is the program after `bardo run` and its options, before `--`.
    [name] = re.findall(r"(\w+) --(?= )", text.split("bardo run", 1)[1])
    path = f"{Path(sys.executable).parent}:{Path(program(name)).parent}"
    return ["sh", "-ec", f'PATH="{path}:$PATH"\n{text}']


KINDS: dict[str, Callable[[str, Path], list[str]]] = {
    "node": by_node,
    "clients": by_python_of(PYTHON_CLIENTS),
    "instructor": by_python_of(INSTRUCTOR),
    "sh": by_sh,
    "agents": by_agents,
}


def environment(folder: Path) -> dict[str, str]:
    """Return an environment with a home of its own, without a network but this machine's, and with the key of the examples."""
    told = {name: os.environ[name] for name in ("PATH", KEY)}
    outside = {"HTTP_PROXY": _NOWHERE, "HTTPS_PROXY": _NOWHERE, "NO_PROXY": "127.0.0.1,localhost"}
    return {**told, **outside, "HOME": str(folder), "OPENCODE_DISABLE_MODELS_FETCH": "1"}


@pytest.fixture(scope="session")
def for_agents() -> Iterator[str]:
    """A bardo.toml over models that answer at once: agents offer tools, which the models of the other examples would call."""
    said = Script((Turn(text="1161", reasoning="I need to work out 27 * 43."),))
    with running_many([Simulator(name, script=said) for name in PROVIDERS.values()]) as servers:
        entries = [ENTRY.format(id=name, base_url=servers[who].base_url, key=KEY) for name, who in PROVIDERS.items()]
        yield SETTINGS + "".join(entries)


@pytest.mark.timeout(280)
@pytest.mark.sampled(3)
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.place)
def test_a_recipe_prints_what_its_page_says(recipe: Recipe, gateway: str, folder: Path, for_agents: str) -> None:
    if recipe.kind == "agents":
        (folder / "bardo.toml").write_text(for_agents, encoding="utf-8")
    command = KINDS[recipe.kind](recipe.text.replace(ADDRESS, gateway), folder)
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment(folder),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert [line.rstrip() for line in done.stdout.rstrip().splitlines()] == recipe.output.rstrip().splitlines(), (
        done.stderr
    )


def status_of(page: Path) -> str:
    """Return the line below the title."""
    return page.read_text(encoding="utf-8").splitlines()[2]


@each_case("page", PAGES, ids=lambda page: page.name)
def test_a_page_says_whether_it_is_run(page: Path) -> None:
    text, status = page.read_text(encoding="utf-8"), status_of(page)
    marked = len(recipes(page)) + text.count("<!-- run -->\n")
    assert text.count("<!-- run by ") == len(recipes(page))
    if status.startswith(RUN):
        assert marked > 0
    else:
        assert re.match(re.escape(BY_HAND) + r"\d{4}-\d{2}-\d{2} with .*\d", status), status
        assert marked == 0
    assert all(f"## {part}" in text for part in ("Point it at bardo", "Where the reasoning is", "What is lost"))
    assert "sk for thinking" in text


@each_case("page", PAGES, ids=lambda page: page.name)
def test_the_index_says_the_same_as_the_page(page: Path) -> None:
    title = page.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
    status = status_of(page)
    tried = status.split(" with ", 1)[1].rstrip(".")
    row = f"| [{title}]({page.name}) | {tried} | {'yes' if status.startswith(RUN) else 'no'} |"
    assert row in INDEX.read_text(encoding="utf-8").splitlines()


@each_case("page", [page for page in PAGES if status_of(page).startswith(RUN)], ids=lambda page: page.name)
def test_a_page_names_the_versions_that_are_run(page: Path) -> None:
    if page.name in _NOT_PINNED:
        return
    named = set(re.findall(r"\d+\.\d+(?:\.\d+)?", status_of(page)))
    assert named <= installed_versions(), "the page names another version than tests/clients/installed.py"


def installed_versions() -> set[str]:
    """Return the versions of everything that pages are run with. Those of the development group are the pages' own affair."""
    pinned = {one for group in (*AGENTS.values(), SDKS, PYTHON_CLIENTS, INSTRUCTOR) for one in group.packages}
    of_pages = {number for name in ("openai", "anthropic", "google") for number in _versions(FOLDER / f"{name}.md")}
    return {one.rpartition("@")[2].rpartition("==")[2] for one in pinned} | of_pages


def _versions(page: Path) -> list[str]:
    return re.findall(r"(\d+\.\d+\.\d+) for Python", status_of(page))


@pytest.mark.parametrize("name", _OF_THE_DEV_GROUP)
def test_pages_of_official_sdks_are_of_this_major_version(name: str) -> None:
    page = FOLDER / f"{name.partition('-')[0]}.md"
    [named] = _versions(page)
    assert named.partition(".")[0] == version(name).partition(".")[0], f"try {page.name} with {version(name)}"


def test_each_kind_is_used() -> None:
    used: Mapping[str, int] = {kind: sum(recipe.kind == kind for recipe in RECIPES) for kind in KINDS}
    assert min(used.values()) > 0
    assert {recipe.kind for recipe in RECIPES} == set(KINDS)
