"""The page on the architecture names files that are there, and each step of a request leads to functions that are where it says."""

import ast
import re

from docs.test_examples import ROOT
from support.offenders import each_case

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`([a-z_]+/[a-z_/]*(?:\.py|\.toml)?)`", PAGE)))
LINKS = sorted(set(re.findall(r"\[`([\w.]+)`\]\((\.\./src/[\w/]+\.py)\)", PAGE)))
STEPS = re.findall(
    r"(?ms)^\d\. .*?(?=^\d\. |\n\n)", PAGE.partition("## One request, step by step")[2].partition("\n## ")[0]
)


@each_case("name", NAMED)
def test_a_named_file_is_there(name: str) -> None:
    places = (ROOT / "src" / "bardo" / name, ROOT / name)
    assert any(place.exists() for place in places), "docs/architecture.md names a file that is not there"


def test_files_are_named() -> None:
    assert len(NAMED) > 20


@each_case("name, path", LINKS)
def test_a_linked_function_is_in_its_file(name: str, path: str) -> None:
    body: list[ast.stmt] = ast.parse((ROOT / "docs" / path).read_text(encoding="utf-8")).body
    for part in name.split("."):
        found = [node for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
        assert part in {node.name for node in found}, f"docs/architecture.md links {name}, which {path} does not define"
        body = next(node.body for node in found if node.name == part)


def test_each_step_of_a_request_has_links_to_functions() -> None:
    assert len(STEPS) == 9
    assert [step[:40] for step in STEPS if "](../src/" not in step] == []
