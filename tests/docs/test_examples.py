"""The examples of the pages run.

`<!-- run -->` above a fenced block has it run here: `python` is executed, `toml` is read as a bardo.toml, and in `console` each line
`$ bardo …` is a command; `sh` is run by bash. `<!-- output -->` above the block that follows holds what it prints. The gateway's
address and folder are those of the fixtures.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import unicodedata
from pathlib import Path
from typing import NamedTuple

import pytest

from bardo.adapters.config.settings import parse_settings
from bardo.surfaces.cli import main
from support.offenders import each_case
from support.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
ADDRESS = "http://127.0.0.1:8484"
_BLOCK = re.compile(
    r"<!-- run -->\n```(?P<language>\w+)\n(?P<text>.*?)^```\n(?:\n<!-- output -->\n```\w*\n(?P<output>.*?)^```$)?",
    re.DOTALL | re.MULTILINE,
)


class Example(NamedTuple):
    """One block to run, and what it prints where the page says so."""

    place: str
    language: str
    text: str
    output: str | None


def examples(page: Path) -> list[Example]:
    """Return the blocks of a page that are to be run."""
    text = page.read_text(encoding="utf-8")
    return [
        Example(
            f"{page.relative_to(ROOT)}:{text.count(chr(10), 0, found.start()) + 1}",
            found["language"],
            found["text"],
            found["output"],
        )
        for found in _BLOCK.finditer(text)
    ]


EXAMPLES = [example for page in PAGES for example in examples(page)]


def run_python(example: Example, address: str) -> None:
    text = example.text.replace(ADDRESS, address)
    exec(compile(text, example.place, "exec"), {"__name__": "__main__"})


def run_console(example: Example, address: str) -> None:
    for line in example.text.replace(ADDRESS, address).splitlines():
        program, *arguments = shlex.split(line.removeprefix("$ "))
        assert program == "bardo", "a console example holds commands of bardo, one a line"
        assert main(arguments) == 0


def shell_output(example: Example, address: str) -> str:
    if shutil.which("bash") is None or shutil.which("curl") is None:
        pytest.skip("bash and curl are not here")
    command = ["bash", "-euo", "pipefail", "-c", example.text.replace(ADDRESS, address)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.place)
@pytest.mark.usefixtures("folder")
def test_an_example_runs_and_prints_what_the_page_says(
    example: Example, gateway: str, capsys: pytest.CaptureFixture[str]
) -> None:
    match example.language:
        case "python":
            run_python(example, gateway)
        case "toml":
            assert parse_settings(example.text).source == "bardo.toml"
        case "console":
            run_console(example, gateway)
        case "sh":
            print(shell_output(example, gateway))
        case other:
            pytest.fail(f"no way to run {other}")
    if example.output is not None:
        assert _shown(capsys.readouterr().out) == _shown(example.output)


def _shown(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().splitlines()]


def test_every_marked_block_is_found() -> None:
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    assert len(EXAMPLES) == sum(text.count("<!-- run -->\n") for text in texts)
    assert sum(example.output is not None for example in EXAMPLES) == sum(
        text.count("<!-- output -->\n") for text in texts
    )
    assert len(EXAMPLES) > 15


@each_case("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    local = [link for link in links if not link.startswith(("http://", "https://"))]
    lost = [link for link in local if not (page.parent / link).exists()]
    assert not lost, f"no file stands where these links lead: {', '.join(lost)}"


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as Python-Markdown makes them, which builds the site."""
    text = re.sub(r"^(`{3,}|~{3,}).*?^\1`*$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    titles = [
        re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title) for title in re.findall(r"^#{1,6} +(.*)$", text, re.MULTILINE)
    ]
    found: set[str] = set()
    for title in titles:
        plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
        slug = name = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())
        number = 0
        while name in found:
            number += 1
            name = f"{slug}_{number}"
        found.add(name)
    return found


@each_case("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_anchors_of_links_are_there(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", page.read_text(encoding="utf-8"))
    local = [(name, anchor) for name, anchor in links if not name.startswith(("http://", "https://"))]
    targets = [((page.parent / name) if name else page, anchor) for name, anchor in local]
    lost = [f"{target.name}#{anchor}" for target, anchor in targets if anchor not in anchors(target)]
    assert not lost, f"no heading makes these anchors: {', '.join(lost)}"


def test_no_example_overwrites_the_readers_bardo_toml() -> None:
    texts = [*(page.read_text(encoding="utf-8") for page in PAGES)]
    texts += [file.read_text(encoding="utf-8") for file in (ROOT / "src" / "bardo" / "surfaces" / "cli").glob("*.py")]
    assert [found for text in texts for found in re.findall(r".*> ?bardo\.toml.*|.*bardo\.toml.*write_.*", text)] == []
