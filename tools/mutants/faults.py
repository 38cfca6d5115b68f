"""Small faults that can be planted in a Python file, each one edit that leaves every other byte as it is.

Left out is what no test should hold: texts of messages, logging, annotations, decorators, type aliases, `__all__`, `__repr__`, asserts,
overloads, and code for type checkers.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

_COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Eq: (r"==", "!="),
    ast.NotEq: (r"!=", "=="),
    ast.Lt: (r"<", "<="),
    ast.LtE: (r"<=", "<"),
    ast.Gt: (r">", ">="),
    ast.GtE: (r">=", ">"),
    ast.In: (r"\bin\b", "not in"),
    ast.NotIn: (r"\bnot\s+in\b", "in"),
    ast.Is: (r"\bis\b", "is not"),
    ast.IsNot: (r"\bis\s+not\b", "is"),
}
_OPPOSITES = (ast.Eq, ast.NotEq, ast.In, ast.NotIn, ast.Is, ast.IsNot)
_NOTHING = {"str": '""', "bytes": 'b""', "list": "[]", "dict": "{}", "tuple": "()", "Sequence": "()", "Mapping": "{}"}
_LOGGERS = re.compile(r"\b_?(log|logger|logging)\.(debug|info|warning|error|exception|critical|log)$", re.IGNORECASE)
_NOT_CALLED = {"assert_never", "TypeVar", "ParamSpec", "NewType", "TypeAliasType"}
_NAMES_OF_NAMES = {"__all__", "__slots__", "__match_args__"}
_LARGEST_NUMBER = 100
_BESIDE = 90
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Placed = ast.expr | ast.stmt | ast.keyword


@dataclass(frozen=True, slots=True)
class Fault:
    """One edit: the bytes from `start` to `end` of a file become `text`. `function` is empty outside of functions."""

    path: str
    line: int
    kind: str
    function: str
    start: int
    end: int
    text: str

    def planted(self, source: bytes) -> bytes:
        """Return the file with this fault."""
        return source[: self.start] + self.text.encode() + source[self.end :]

    def change(self, source: bytes) -> tuple[str, str]:
        """Return the changed line before and after, without the parts of a long one that are far from the change."""
        first = source.rfind(b"\n", 0, self.start) + 1
        last = source.find(b"\n", self.end)
        left = source[first : self.start].decode().lstrip()[-_BESIDE:]
        right = source[self.end : len(source) if last < 0 else last].decode()[:_BESIDE]
        texts = (source[self.start : self.end].decode(), self.text)
        before, after = (" ".join(f"{left}{text[:_BESIDE]}{right}".split()) for text in texts)
        return before, after


def find_faults(path: str, source: bytes) -> list[Fault]:
    """Return every fault that can be planted in a file, in the order of the file."""
    finder = _Finder(path, source)
    finder.statements(ast.parse(source).body, "")
    return sorted(set(finder.found), key=lambda fault: (fault.start, fault.end, fault.kind, fault.text))


def compiles(source: bytes) -> bool:
    """Return whether a file can be compiled, without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            compile(source, "fault", "exec", dont_inherit=True)
        except (SyntaxError, SyntaxWarning, ValueError):
            return False
    return True


class _Finder:
    """A walk over one syntax tree that notes the faults of each node."""

    def __init__(self, path: str, source: bytes) -> None:
        self.found: list[Fault] = []
        self._path = path
        self._source = source
        self._lines = [0]
        for line in source.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))
        self._function = ""
        self._returns = ""

    def statements(self, body: Sequence[ast.stmt], scope: str) -> None:
        """Note the faults of statements; `scope` is the qualified name of the class or function that they stand in."""
        for node in body:
            if isinstance(node, _Function):
                self._visit_function(node, scope)
            elif isinstance(node, ast.ClassDef):
                self.statements(node.body, _join(scope, node.name))
            else:
                self._visit(node, scope)

    def _visit_function(self, node: _Function, scope: str) -> None:
        decorators = {ast.unparse(one).rpartition(".")[2] for one in node.decorator_list}
        if node.name == "__repr__" or "overload" in decorators:
            return
        outer = self._function, self._returns
        name = self._function = _join(scope, node.name)
        self._returns = ast.unparse(node.returns) if node.returns else ""
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self._visit(default, name)
        body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
        if self._returns == "None":
            for one in body[1:]:
                if not isinstance(one, ast.Return | ast.Raise | ast.Pass | ast.Assert | _Function | ast.ClassDef):
                    self._note(one, "early return", "return")
        self.statements(body, name)
        self._function, self._returns = outer

    def _visit(self, node: ast.AST, scope: str) -> None:
        if not self._enters(node):
            return
        match node:
            case ast.If() | ast.While() | ast.IfExp():
                self._negate(node.test)
            case ast.comprehension():
                for test in node.ifs:
                    self._negate(test)
            case ast.match_case(guard=ast.expr() as guard):
                self._negate(guard)
            case ast.BoolOp():
                self._change_operands(node)
            case ast.Compare():
                self._change_comparison(node)
            case ast.Constant():
                self._change_constant(node)
            case ast.BinOp(op=ast.Add() | ast.Sub()):
                plus = isinstance(node.op, ast.Add)
                self._replace_between(node.left, node.right, r"\+" if plus else "-", "-" if plus else "+", "arithmetic")
            case ast.UnaryOp(op=ast.Not()):
                self._note(node, "not", self._text(node.operand))
            case ast.Slice():
                self._move_bounds(node)
            case ast.Call():
                self._change_call(node)
            case ast.Tuple(ctx=ast.Load()) | ast.List(ctx=ast.Load()) | ast.Set():
                self._drop_each([self._span(one) for one in node.elts], "element", tuple_=isinstance(node, ast.Tuple))
            case ast.Dict():
                pairs = zip(node.keys, node.values, strict=True)
                self._drop_each([(self._entry(key, value), self._span(value)[1]) for key, value in pairs], "element")
            case _:
                self._change_statement(node)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, _Function | ast.ClassDef):
                self.statements([child], scope)
            else:
                self._visit(child, scope)

    def _enters(self, node: ast.AST) -> bool:
        """Return whether the faults of a node, and those within it, count."""
        match node:
            case ast.Assert() | ast.Expr(value=ast.Constant()) | ast.Import() | ast.ImportFrom() | ast.JoinedStr():
                return False
            case ast.If():
                return ast.unparse(node.test).rpartition(".")[2] not in {"TYPE_CHECKING", "__name__ == '__main__'"}
            case ast.AnnAssign():
                if node.value is not None and not ast.unparse(node.annotation).endswith("TypeAlias"):
                    self._change_statement(node)
                    self._visit(node.value, self._function)
                return False
            case ast.Assign(targets=[ast.Name(id=name)]):
                alias = not self._function and isinstance(node.value, ast.Subscript | ast.BinOp) and not name.isupper()
                return name not in _NAMES_OF_NAMES and not (alias and name.lstrip("_")[:1].isupper())
            case ast.Call():
                called = ast.unparse(node.func)
                if called.rpartition(".")[2] == "cast" and len(node.args) == 2:
                    self._visit(node.args[1], self._function)
                    return False
                return called not in _NOT_CALLED and not _LOGGERS.search(called)
            case _:
                return True

    def _negate(self, test: ast.expr) -> None:
        if isinstance(test, ast.Constant) or (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)):
            return
        if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], _OPPOSITES)):
            self._note(test, "condition", f"not ({self._text(test)})")

    def _change_operands(self, node: ast.BoolOp) -> None:
        word, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._replace_between(left, right, rf"\b{word}\b", other, "and/or")
        self._drop_each([self._span(one) for one in node.values], "operand")

    def _change_comparison(self, node: ast.Compare) -> None:
        for left, op, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
            pattern, other = _COMPARISONS[type(op)]
            self._replace_between(left, right, pattern, other, "comparison")

    def _change_constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._note(node, "constant", str(not node.value))
        elif isinstance(node.value, int) and node.value < _LARGEST_NUMBER and self._text(node).isdigit():
            self._note(node, "number", str(node.value + 1))

    def _move_bounds(self, node: ast.Slice) -> None:
        for bound in (node.lower, node.upper):
            if bound is not None and not isinstance(bound, ast.Constant):
                self._note(bound, "number", f"({self._text(bound)}) + 1")

    def _change_call(self, node: ast.Call) -> None:
        called = ast.unparse(node.func).rpartition(".")[2]
        kind = "field" if called.lstrip("_")[:1].isupper() else "argument"
        parts: list[ast.expr | ast.keyword] = [*node.args, *node.keywords]
        if not any(isinstance(part, ast.GeneratorExp) for part in parts):
            keep = {index for index, part in enumerate(parts) if _is_message(part)}
            self._drop_each(sorted(self._span(part) for part in parts), kind, keep=keep)
        for left, right in zip(node.args, node.args[1:], strict=False):
            one, other = self._text(left), self._text(right)
            if called in {"min", "max"} or _is_message(left) or _is_message(right):
                continue
            if one != other and not isinstance(left, ast.Starred) and not isinstance(right, ast.Starred):
                start, middle, after, end = *self._span(left), *self._span(right)
                between = self._source[middle:after].decode()
                self._edit(start, end, left.lineno, "swap", other + between + one)
        if called == "range":
            for bound in node.args[:2]:
                if not isinstance(bound, ast.Constant):
                    self._note(bound, "number", f"({self._text(bound)}) + 1")

    def _change_statement(self, node: ast.AST) -> None:
        match node:
            case ast.Expr(value=ast.Call() as call) | ast.Expr(value=ast.Await(value=ast.Call() as call)):
                if self._enters(call):
                    self._note(node, "call", "pass")
            case ast.Assign(targets=[target]) | ast.AugAssign(target=target) | ast.AnnAssign(target=target):
                if isinstance(target, ast.Attribute | ast.Subscript) or isinstance(node, ast.AugAssign):
                    self._note(node, "assignment", "pass")
            case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
                text = _NOTHING.get(re.split(r"\W", self._returns)[0], "None")
                text = f"not ({self._text(value)})" if self._returns == "bool" else text
                if text.replace(" ", "") != self._text(value).replace(" ", ""):
                    self._note(node, "return", f"return {text}")
            case ast.Break():
                self._note(node, "loop", "continue")
            case ast.Continue():
                self._note(node, "loop", "break")
            case ast.ExceptHandler(body=[ast.Pass()]):
                self._note(node.body[0], "except", "raise")
            case ast.ExceptHandler():
                self._edit(self._at(node.body[0]), self._span(node.body[-1])[1], node.body[0].lineno, "except", "pass")

    def _drop_each(
        self,
        spans: Sequence[tuple[int, int]],
        kind: str,
        *,
        keep: Collection[int] = (),
        tuple_: bool = False,
    ) -> None:
        """Note the loss of each part of a list that commas, `and` or `or` stand between."""
        for index, (start, end) in enumerate(spans):
            if index in keep or (len(spans) == 1 and kind in ("operand", "element")):
                continue
            line = self._source.count(b"\n", 0, start) + 1
            if index + 1 < len(spans):
                text = "" if not tuple_ or len(spans) > 2 else self._source[spans[1][0] : spans[1][1]].decode() + ","
                self._edit(start, spans[1][1] if text else spans[index + 1][0], line, kind, text)
            elif index:
                self._edit(spans[index - 1][1], end, line, kind, "," if tuple_ and len(spans) == 2 else "")
            else:
                self._edit(start, end, line, kind, "")

    def _replace_between(self, left: ast.AST, right: ast.AST, pattern: str, text: str, kind: str) -> None:
        start, end = self._span(left)[1], self._at(right)
        between = self._source[start:end].decode()
        match = re.search(pattern, between)
        if match and "#" not in between:
            first = start + len(between[: match.start()].encode())
            line = self._source.count(b"\n", 0, first) + 1
            self._edit(first, first + len(match[0]), line, kind, text)

    def _note(self, node: ast.AST, kind: str, text: str) -> None:
        start, end = self._span(node)
        self._edit(start, end, self._source.count(b"\n", 0, start) + 1, kind, text)

    def _edit(self, start: int, end: int, line: int, kind: str, text: str) -> None:
        self.found.append(Fault(self._path, line, kind, self._function, start, end, text))

    def _text(self, node: ast.AST) -> str:
        start, end = self._span(node)
        return self._source[start:end].decode()

    def _entry(self, key: ast.expr | None, value: ast.expr) -> int:
        return self._at(key) if key is not None else self._source.rindex(b"**", 0, self._at(value))

    def _span(self, node: ast.AST) -> tuple[int, int]:
        assert isinstance(node, _Placed)
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._at(node), self._lines[node.end_lineno - 1] + node.end_col_offset

    def _at(self, node: ast.AST) -> int:
        assert isinstance(node, _Placed)
        return self._lines[node.lineno - 1] + node.col_offset


def _join(scope: str, name: str) -> str:
    return f"{scope}.{name}" if scope else name


def _is_message(part: ast.expr | ast.keyword) -> bool:
    """Return whether an argument is a text for people."""
    value = part.value if isinstance(part, ast.keyword) else part
    if isinstance(value, ast.Constant):
        return isinstance(value.value, str) and " " in value.value
    return isinstance(value, ast.JoinedStr) or (
        isinstance(part, ast.keyword) and part.arg in {"hint", "message", "help"}
    )


def functions(tree: ast.Module) -> Iterator[tuple[str, _Function]]:
    """Yield every function of a module with its qualified name."""

    def below(node: ast.AST, scope: str) -> Iterator[tuple[str, _Function]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, _Function | ast.ClassDef):
                name = _join(scope, child.name)
                if isinstance(child, _Function):
                    yield name, child
                yield from below(child, name)
            else:
                yield from below(child, scope)

    return below(tree, "")
