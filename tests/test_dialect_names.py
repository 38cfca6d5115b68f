"""Facts about a dialect are rows or declarations of the dialect: outside `dialects/`, code names one only where a surface must.

The gateway says which path is spoken to in which dialect; simulators share no code with what they test.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from bardo.dialects import DIALECTS
from support.offenders import offenders
from support.source import trees

MAY_NAME: Mapping[str, str] = {
    "bardo.catalog.rows": "the type of a row's column",
    "bardo.operators.conform.checks": "which strict reader is whose",
    "bardo.services.facts.introspect.readers": "adapters of introspection that are called like their server",
    "bardo.surfaces.cli.demo": "the requests that the demonstration's clients send",
    "bardo.surfaces.library.asking": "a small request in each client's dialect",
}
"""The modules outside `dialects/` that name a dialect, each with the reason."""


def names_in(tree: ast.Module) -> set[str]:
    """Return the dialects that a module names in its strings."""
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and node.value in DIALECTS}


def may_not_name(module: str) -> bool:
    return not module.startswith(("bardo.dialects", "bardo.simulators", "bardo.surfaces.gateway"))


def test_no_module_outside_dialects_names_one() -> None:
    found = {module: names_in(tree) for module, tree in trees().items() if may_not_name(module)}
    offenders(
        [
            f"{module}: {', '.join(sorted(names))}"
            for module, names in found.items()
            if names and module not in MAY_NAME
        ],
        "modules name dialects: make each fact a row of the catalog or a field of Dialect, or give the reason in MAY_NAME",
    )
    offenders(
        [module for module in MAY_NAME if not found.get(module)],
        "modules of MAY_NAME name no dialect: take them out of it",
    )


def compared_in(tree: ast.Module) -> set[str]:
    """Return the dialects that a module compares something with, or chooses a branch by."""
    compared = [node for node in ast.walk(tree) if isinstance(node, ast.Compare | ast.MatchValue)]
    return names_in(ast.Module(body=[ast.Expr(one) for one in compared], type_ignores=[]))  # type: ignore[arg-type]


def test_no_module_outside_dialects_branches_by_the_name_of_one() -> None:
    found = {module: compared_in(tree) for module, tree in trees().items() if not module.startswith("bardo.dialects")}
    offenders(
        [f"{module}: {', '.join(sorted(names))}" for module, names in found.items() if names],
        "modules branch by the name of a dialect: make it a field of Dialect, of Route, or of a row",
    )


def test_branches_by_a_dialects_name_are_found() -> None:
    code = """
if row.dialect == "openai_chat":
    pass
match name:
    case "gemini" | "ollama":
        pass
chosen = 1 if name in ("cohere", "x") else 2
other = {"watsonx_text": 1}
"""
    assert compared_in(ast.parse(code)) == {"openai_chat", "gemini", "ollama", "cohere"}
