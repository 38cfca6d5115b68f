"""Every field of every row of the catalog and of the agent is read by code: a fact that nothing acts on is a comment, not a field.

Readers are found by the name of the attribute, so that a field whose name another type has too may count as read.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec
import pytest

from support.offenders import offenders
from support.source import ROOT, importers, reached, trees

NOT_READ: Mapping[str, str] = {
    "bardo.catalog.forms.WireForm.exclusive": "a law of tests/reasoning/control holds every plan against it",
    "bardo.catalog.endpoint_choice.DialectModels.source": "says where a fact is from; for people who read the row",
    "bardo.catalog.models.ModelRow.note": "bardo probe writes there which audit file holds the evidence, for people who read the row",
    "bardo.catalog.replay.StateRule.source": "says where a fact is from; for people who read the row",
    "bardo.catalog.replay.TextRule.source": "says where a fact is from; for people who read the row",
    "bardo.catalog.replay.RequiredThinking.source": "says where a fact is from; for people who read the row",
    "bardo.catalog.replay.Binding.source": "says where a fact is from; for people who read the row",
    "bardo.structured.subsets.Subset.source": "says where a fact is from; for people who read the row",
    "bardo.reasoning.formats.ReasoningFormat.notes": "an operator may write notes in a format of bardo.toml",
}
"""Fields that no code reads, each with the reason why it is there all the same."""

WORDS_NOT_READ: Mapping[str, str] = {
    "bardo.catalog.replay.TextRule.foreign: drop": "what is done where it is no other word",
}
"""Words that no code reads, each with the reason why they are there all the same."""


TABLES = {path.name for path in (ROOT / "catalog" / "data").iterdir()}
OF_THE_AGENT = frozenset(
    ("bardo.golem.rows", *(f"bardo.routing.{name}" for name in ("budgets", "fallback_route", "pipelines", "pressure")))
) | {"bardo.routing.tiers"}
"""Where the rows of the agent's tables are typed."""


def holds_rows(module: str) -> bool:
    """Return whether a module belongs to the catalog, or speaks of one of its tables."""
    return (
        module.startswith("bardo.catalog")
        or module in OF_THE_AGENT
        or any(
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and TABLES & set(re.findall(r"[a-z_]+\.toml", node.value))
            for node in ast.walk(trees()[module])
        )
    )


@cache
def fields() -> tuple[tuple[str, str, str], ...]:
    """Return module, class and name of each field of each row, where it is defined."""
    return tuple(
        (module, row.__name__, name)
        for module in filter(holds_rows, trees())
        for row in vars(import_module(module)).values()
        if isinstance(row, type) and issubclass(row, msgspec.Struct) and row.__module__ == module
        for name in inspect.get_annotations(row)
    )


@cache
def readers() -> Mapping[str, frozenset[str]]:
    """Return which modules read an attribute of each name: with a dot, in a `match`, or by a name that `getattr` is given."""
    found: dict[str, set[str]] = defaultdict(set)
    for module, tree in trees().items():
        for name in attributes_read(tree):
            found[name].add(module)
    return {name: frozenset(modules) for name, modules in found.items()}


def attributes_read(tree: ast.Module) -> set[str]:
    """Return the names of attributes that a module reads."""
    nodes = list(ast.walk(tree))
    read = {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)}
    read |= {name for node in nodes if isinstance(node, ast.MatchClass) for name in node.kwd_attrs}
    if any(map(_reads_by_variable, nodes)):
        read |= {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return read


def _reads_by_variable(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "getattr"
        and not isinstance(node.args[1], ast.Constant)
    )


def is_read(module: str, field: str) -> bool:
    """Return whether a module that may hold the row, because it imports its module, directly or not, reads such an attribute."""
    return bool(readers().get(field, frozenset()) & those_that_may_hold(module))


@cache
def those_that_may_hold(module: str) -> set[str]:
    """Return the modules that import a module, directly or not."""
    return reached({module}, importers())


def test_every_field_of_a_row_has_a_reader() -> None:
    assert len(fields()) > 500
    unread = [".".join(field) for field in fields() if not is_read(field[0], field[2])]
    offenders(
        [name for name in unread if name not in NOT_READ],
        "fields are read by no code: read each, or take it out of its module and of the table; what only people read is a comment there",
    )


def words_of(hint: Any) -> Iterator[str]:
    """Yield the words of which a field may have one."""
    for part in get_args(hint):
        if isinstance(part, str):
            yield from [part] if get_origin(hint) is Literal and part else []
        else:
            yield from words_of(part)


def test_every_word_that_a_row_may_have_is_read_somewhere() -> None:
    """A rule of `request_shapes.toml` by a new name would be listed, and nothing would keep to it."""
    said, listed = Counter[str](), Counter[str]()
    for node in (node for tree in trees().values() for node in ast.walk(tree)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            said[node.value] += 1
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "Literal":
            words = (one.value for one in ast.walk(node.slice) if isinstance(one, ast.Constant))
            listed.update(word for word in words if isinstance(word, str))
    found = {
        f"{module}.{row}.{name}: {word}"
        for module, row, name in fields()
        if module.startswith("bardo.catalog")
        for word in words_of(get_type_hints(getattr(import_module(module), row))[name])
        if said[word] <= listed[word]
    }
    offenders(sorted(found - WORDS_NOT_READ.keys()), "word of a Literal that no code reads: act on it, or take it out")


def test_every_field_of_the_agents_rows_is_read_where_the_agent_runs() -> None:
    """Names such as `share` are too usual to count as read by any module."""
    near = {name for name in trees() if name.startswith(NEAR_THE_AGENT)}
    unread = [
        ".".join(field)
        for field in fields()
        if field[0] in OF_THE_AGENT and not readers().get(field[2], frozenset()) & near
    ]
    offenders(
        [name for name in unread if name not in ON_PAGES],
        "fields of the agent's rows are read by no code that runs the agent: read each, or take it out of the table",
    )


NEAR_THE_AGENT = (
    *("bardo.golem.", "bardo.routing.", "bardo.services.accounts.agent_", "bardo.surfaces.panel.views.costs"),
    *("bardo.services.pipeline.", "bardo.planning.workloads"),
)
ON_PAGES: Mapping[str, str] = dict.fromkeys(
    (
        "bardo.golem.rows.ProfileRow.group",
        "bardo.routing.pipelines.PipelineProfile.milliseconds",
        "bardo.routing.pipelines.PipelineProfile.purpose",
        "bardo.routing.tiers.TierRow.cost_usd",
    ),
    "tools/golem_reference.py writes it on the agent's page, or a table of the documents is checked by it",
)


def test_what_is_not_read_names_fields_that_exist() -> None:
    assert NOT_READ.keys() | ON_PAGES.keys() <= {".".join(field) for field in fields()}


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("row.limit", {"limit"}),
        ("match row:\n    case Row(limit=1): pass", {"limit"}),
        ("for name in ('limit',): getattr(row, name)", {"limit"}),
        ("row.limit = 1", set()),
        ("Row(limit=1)", set()),
        ("{'limit': 1}", set()),
        ("getattr(row, 'other', 'limit')", set()),
    ],
)
def test_a_reader_is_told_from_a_writer(source: str, names: set[str]) -> None:
    assert attributes_read(ast.parse(source)) == names
