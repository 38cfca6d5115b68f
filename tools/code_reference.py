"""The parts of the pages that are read from the code: which package imports which, the commands, the library's names."""

from __future__ import annotations

import ast
import inspect
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cached_property
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import FunctionType

import typer
from typer.core import TyperGroup
from typer.testing import CliRunner

import bardo
from bardo.surfaces.cli.app import COMMANDS, make_app

SOURCE = Path(__file__).resolve().parents[1] / "src" / "bardo"
_IN_PARTS = ("surfaces",)
_INTERNAL = re.compile(r"\bbardo(\.[a-z_]+)+\.(?=[A-Z])")


def package_of(module: str) -> str:
    """Return the package a module belongs to, as the diagram names it: `bardo.adapters.stores.log.row` is `adapters`."""
    parts = module.split(".")[1:]
    return "/".join(parts[: 2 if parts[0] in _IN_PARTS else 1])


def package_imports() -> dict[str, set[str]]:
    """Return which packages each package imports."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in SOURCE.rglob("*.py"):
        package = package_of(".".join(("bardo", *path.relative_to(SOURCE).with_suffix("").parts)))
        if path.parent == SOURCE:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            found[package] |= {package_of(name) for name in _imported(node) if package_of(name) != package}
    return dict(found)


def _imported(node: ast.AST) -> Iterator[str]:
    names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
    names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
    return (name for name in names if name.startswith("bardo.") and (SOURCE / name.split(".")[1]).is_dir())


def reduced(imports: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Return the imports without those that follow from others: an arrow that a longer way replaces is left out."""

    def reached(package: str) -> set[str]:
        direct = imports.get(package, set())
        return direct.union(*map(reached, direct)) if direct else set()

    return {
        package: direct - set().union(*(reached(one) for one in direct))
        for package, direct in imports.items()
        if direct
    }


def diagram() -> str:
    """The packages and their imports, as a Mermaid graph: an arrow goes from a package to one that it imports."""
    arrows = sorted((above, below) for above, direct in reduced(package_imports()).items() for below in direct)
    lines = [f"    {_node(above)} --> {_node(below)}" for above, below in arrows]
    return "```mermaid\ngraph TD\n" + "\n".join(lines) + "\n```\n"


def _node(package: str) -> str:
    return f'{package.replace("/", "_")}["{package}"]'


def commands() -> str:
    """Each command of `bardo` with its own help."""
    app = typer.main.get_command(make_app())
    assert isinstance(app, TyperGroup)
    parts = [f"## `bardo {name}`\n\n```text\n{_help(name)}\n```\n" for name in COMMANDS]
    return "\n".join(parts)


def _help(name: str) -> str:
    # The runner writes for 80 columns, whatever the terminal has.
    shown = CliRunner().invoke(make_app(), [name, "--help"], prog_name="bardo")
    assert shown.exit_code == 0, shown.output
    return "\n".join(line.rstrip() for line in shown.output.strip().splitlines())


def library() -> str:
    """Each name that `bardo` exports: its signature, what it promises, and its public methods."""
    entries = {name: getattr(bardo, name) for name in bardo.__all__ if not name.startswith("_")}
    return "\n".join(_entry(name, value) for name, value in sorted(entries.items()))


def _entry(name: str, value: object) -> str:
    text = f"## `{name}`\n\n"
    if inspect.isclass(value) and issubclass(value, Enum):
        return text + _doc(value) + "\n" + "".join(f"- `{member.value}`\n" for member in value)
    if inspect.isclass(value):
        fields = "".join(f"- `{field}`: `{kind}`\n" for field, kind in _fields(value))
        properties = "".join(f"- `{one}`: `{kind}`. {about}\n" for one, kind, about in _properties(value))
        methods = "\n".join(_method(name, method) for method in _methods(value))
        parts = (_bases(value), _doc(value), fields, properties, methods)
        return text + "\n".join(part for part in parts if part)
    if isinstance(value, FunctionType):
        return text + f"```python\n{name}{_signature(value)}\n```\n\n" + _doc(value)
    return text + f"{_value_doc(name)}\n\n`{_plain(str(value))}`\n"


def _fields(value: type) -> Iterator[tuple[str, str]]:
    if issubclass(value, BaseException):
        return
    for parent in reversed(value.__mro__[:-1]):
        for field, kind in vars(parent).get("__annotations__", {}).items():
            if not field.startswith("_"):
                yield (
                    field,
                    _plain(
                        kind
                        if isinstance(kind, str)
                        else getattr(kind, "__forward_arg__", None) or inspect.formatannotation(kind)
                    ),
                )


def _value_doc(name: str) -> str:
    """The docstring below the assignment of a public name that is no class and no function, empty where there is none."""
    source = inspect.getsource(import_module(bardo._MODULES[name]))
    body = ast.parse(source).body
    for statement, below in pairwise(body):
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        named = any(isinstance(target, ast.Name) and target.id == name for target in targets)
        if named and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            return inspect.cleandoc(str(below.value.value))
    return ""


def undocumented() -> list[str]:
    """Return the public names, methods and properties of `bardo` that have no docstring of their own."""
    found: list[str] = []
    for name in bardo.__all__:
        value = getattr(bardo, name)
        if name.startswith("_"):
            continue
        if inspect.isclass(value):
            own = value.__dict__.get("__doc__") or ""
            found += [name] if not own or own.startswith(f"{name}(") else []
            found += [f"{name}.{method.__name__}" for method in _methods(value) if not method.__doc__]
            found += [f"{name}.{one}" for one, _, about in _properties(value) if not about]
        elif not (value.__doc__ if isinstance(value, FunctionType) else _value_doc(name)):
            found.append(name)
    return found


def _bases(value: type) -> str:
    """The public classes that a class is a kind of, as links."""
    named = [base.__name__ for base in value.__bases__ if getattr(bardo, base.__name__, None) is base]
    return f"A kind of {', '.join(f'[`{name}`](#{name.lower()})' for name in named)}.\n" if named else ""


def _properties(value: type) -> Iterator[tuple[str, str, str]]:
    """Yield the public properties of a class: name, type, and what each is."""
    for name, found in vars(value).items():
        if isinstance(found, property | cached_property) and not name.startswith("_"):
            getter = found.fget if isinstance(found, property) else found.func
            assert getter is not None
            kind = _plain(str(getter.__annotations__.get("return", "Any")).strip("'"))
            yield name, kind, " ".join((inspect.getdoc(getter) or "").split())


def _methods(value: type) -> list[FunctionType]:
    found = {name: _function_of(method) for name, method in vars(value).items() if not name.startswith("_")}
    return [method for method in found.values() if isinstance(method, FunctionType)]


def _function_of(method: object) -> object:
    return method.__func__ if isinstance(method, classmethod | staticmethod) else method


def _method(owner: str, method: FunctionType) -> str:
    return f"```python\n{owner}.{method.__name__}{_signature(method)}\n```\n\n{_doc(method)}"


def _signature(function: FunctionType) -> str:
    signature = inspect.signature(function)
    parameters = [one.replace(annotation=_bare(one.annotation)) for one in signature.parameters.values()]
    return _plain(str(signature.replace(parameters=parameters, return_annotation=_bare(signature.return_annotation))))


class _Bare(str):
    """An annotation that is written as it stands in the source, without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _bare(annotation: object) -> object:
    return _Bare(annotation) if isinstance(annotation, str) else annotation


def _doc(value: object) -> str:
    text = inspect.getdoc(value) or ""
    return text + "\n" if not text.startswith(f"{getattr(value, '__name__', '')}(") else ""


def _plain(text: str) -> str:
    return _INTERNAL.sub("", text)
