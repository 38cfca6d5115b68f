"""All regular expressions of the program, and hostile texts for each: a process of its own that a test can end.

`python expressions.py SEED [EXPRESSION]` reads each expression, says which one it tries, and writes those whose time grows faster
than the text. Time is compared for two lengths of one text, since what a step costs depends on the machine; an expression whose time is
exponential never comes back, and whoever started this process knows by its last line which it was.
"""

from __future__ import annotations

import ast
import importlib
import json
import pkgutil
import random
import re
import sys
import time
import tomllib
import warnings
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    codes = importlib.import_module("re._constants")
    parser = importlib.import_module("re._parser")

SMALL, LARGE = 700, 5_600
LONG, LONGEST = 1_500, 12_000
# The larger text is eight times as long: a linear expression needs about eight times the time for it, a quadratic one 64 times.
SUSPICIOUS, TOO_MUCH = 16, 24
_TRIES = 3
# Units that look suspicious are measured with long texts, which takes long.
_MOST_SUSPICIOUS = 3
_USUAL = " a1_-.\n"
_MOST_SIGNS = 14
_END = "\x00"

Expression = tuple[str, int]


def expressions() -> dict[Expression, str]:
    """Return the expressions of the source and of the rows, each with a place where it is used."""
    found: dict[Expression, str] = {}
    compiled = re._compile  # type: ignore[attr-defined]

    def recording(pattern: Any, flags: Any) -> Any:
        made = compiled(pattern, flags)
        if isinstance(made.pattern, str):
            frame = sys._getframe(2)
            name = str(frame.f_globals.get("__name__", ""))
            if name.startswith("bardo"):
                found.setdefault((made.pattern, made.flags), f"{name}:{frame.f_lineno}")
        return made

    re._compile = recording  # type: ignore[attr-defined]
    try:
        import bardo

        for module in pkgutil.walk_packages(bardo.__path__, "bardo."):
            if module.name.rpartition(".")[2] not in ("__main__", "env"):
                importlib.import_module(module.name)
    finally:
        re._compile = compiled  # type: ignore[attr-defined]
    root = Path(bardo.__path__[0])
    for path in sorted(root.rglob("*.py")):
        for pattern, flags, line, method in _literals(ast.parse(path.read_text())):
            found.setdefault((pattern, re.compile(pattern, flags).flags), f"{path.relative_to(root)}:{line}:{method}")
    for path in sorted(root.rglob("*.toml")):
        for table, rows in tomllib.loads(path.read_text()).items():
            for text in filter(looks_like_expression, _strings(rows)):
                found.setdefault((text, re.compile(text, re.IGNORECASE).flags), f"{path.relative_to(root)} {table}")
    return found


def _literals(tree: ast.AST) -> Iterator[tuple[str, int, int, str]]:
    """Yield the expressions that are written in calls of `re`, also in functions that no import runs, and what is done with each."""
    done = {id(one.value): one.attr for one in ast.walk(tree) if isinstance(one, ast.Attribute)}
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            continue
        if (
            isinstance(node.func.value, ast.Name)
            and node.func.value.id == "re"
            and isinstance(node.args[0], ast.Constant)
        ):
            pattern = node.args[0].value
            names = {
                one.attr
                for one in ast.walk(node)
                if isinstance(one, ast.Attribute) and one.attr in re.RegexFlag.__members__
            }
            if isinstance(pattern, str) and node.func.attr != "escape":
                flags = 0
                for name in names:
                    flags |= re.RegexFlag[name]
                yield pattern, flags, node.lineno, done.get(id(node), node.func.attr)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _strings(one)
    elif isinstance(value, list):
        for one in value:
            yield from _strings(one)


def looks_like_expression(text: str) -> bool:
    """Return whether a text of a row repeats something as expressions do, and is one."""
    if not re.search(r"[\])}.sdw\S][*+?]|\{\d+,?\d*\}|\\[bdsw]|\(\?", text) or not re.search(r"[\\\[(|^$]", text):
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            re.compile(text)
    except (re.error, Warning, OverflowError):
        return False
    return True


def hostile_units(pattern: str, flags: int, chance: random.Random) -> Iterator[str]:
    """Yield what a hostile text may repeat: one sign, two signs in turn, and what fits the expression nearly."""
    tree = parser.parse(pattern, flags)
    signs = list(dict.fromkeys([*_signs(tree), *_USUAL]))
    if len(signs) > _MOST_SIGNS:
        signs = [*signs[: _MOST_SIGNS // 2], *chance.sample(signs[_MOST_SIGNS // 2 :], _MOST_SIGNS // 2)]
    yield from signs
    pairs = [one + other for one, other in product(signs, signs) if one != other]
    yield from chance.sample(pairs, min(len(pairs), 24))
    for _ in range(8):
        written = _example(tree, chance)[:300]
        yield written
        yield written[:-1]
        yield written[1:]
        if written:
            cut = chance.randrange(len(written))
            yield written[:cut] + chance.choice(signs) + written[cut + 1 :]
            yield written[: cut + 1]


def _signs(tree: Any) -> Iterator[str]:
    for code, value in tree:
        if code in (codes.LITERAL, codes.NOT_LITERAL):
            yield chr(value)
        elif code is codes.IN:
            yield from _members(value)
        elif code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            yield from _signs(value[2])
        elif code is codes.SUBPATTERN:
            yield from _signs(value[3])
        elif code is codes.BRANCH:
            for branch in value[1]:
                yield from _signs(branch)
        elif code in (codes.ASSERT, codes.ASSERT_NOT):
            yield from _signs(value[1])
        elif code is codes.ATOMIC_GROUP:
            yield from _signs(value)


_CATEGORIES = {
    codes.CATEGORY_DIGIT: "7",
    codes.CATEGORY_NOT_DIGIT: "x",
    codes.CATEGORY_SPACE: " \t\n",
    codes.CATEGORY_NOT_SPACE: "x",
    codes.CATEGORY_WORD: "w_",
    codes.CATEGORY_NOT_WORD: "-",
}


def _members(members: Any) -> list[str]:
    found: list[str] = []
    negated = members[0][0] is codes.NEGATE
    for code, value in members:
        if code is codes.LITERAL:
            found.append(chr(value))
        elif code is codes.RANGE:
            found.extend({chr(value[0]), chr(value[1])})
        elif code is codes.CATEGORY:
            found.extend(_CATEGORIES[value])
    return [*found, "~"] if negated else found


def _example(tree: Any, chance: random.Random) -> str:
    """Return a text that the expression may fit; what stands around it is not looked at."""
    written = []
    for code, value in tree:
        if code is codes.LITERAL:
            written.append(chr(value))
        elif code is codes.NOT_LITERAL:
            written.append("x")
        elif code is codes.ANY:
            written.append(chance.choice("a "))
        elif code is codes.IN:
            negated = value[0][0] is codes.NEGATE
            members = _members(value)
            written.append(
                next((one for one in "xa1 _-" if one not in members), "x") if negated else chance.choice(members)
            )
        elif code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            least, most, inner = value
            for _ in range(min(int(least) + chance.randrange(4), int(most), 60)):
                written.append(_example(inner, chance))
        elif code is codes.SUBPATTERN:
            written.append(_example(value[3], chance))
        elif code is codes.BRANCH:
            written.append(_example(chance.choice(value[1]), chance))
        elif code is codes.ATOMIC_GROUP:
            written.append(_example(value, chance))
    return "".join(written)


class _Use:
    """An expression as it is used: looked for in a text, tried at one place of it, or with all of it."""

    def __init__(self, pattern: re.Pattern[str], methods: frozenset[str]) -> None:
        self._pattern = pattern
        self._methods = methods

    def growth(self, unit: str, small: int, large: int, tries: int) -> float:
        """Return how much longer a large text takes than a small one."""
        measured = [(self._seconds(_text(unit, small)), self._seconds(_text(unit, large))) for _ in range(tries)]
        return min(large for _, large in measured) / max(min(small for small, _ in measured), 2e-5)

    def _seconds(self, text: str) -> float:
        begin = time.thread_time()
        if not self._methods or not self._methods <= {"match", "fullmatch"}:
            for _ in self._pattern.finditer(text):
                pass
        if "match" in self._methods:
            self._pattern.match(text)
        if "fullmatch" in self._methods:
            self._pattern.fullmatch(text)
        return time.thread_time() - begin


def _methods(place: str) -> frozenset[str]:
    """Return what is done with an expression, by its name in its module; nothing where that is not known: then it is looked for."""
    module, _, line = place.rpartition(":")
    if not module.startswith("bardo"):
        return _KNOWN_USES.get(place, frozenset({line} if line in ("match", "fullmatch") else ()))
    source = importlib.import_module(module).__file__
    assert source is not None
    text = Path(source).read_text()
    # An expression of several lines is compiled at the line of its name or below.
    name = next((found[1] for one in reversed(text.splitlines()[: int(line)]) if (found := _NAME.match(one))), "")
    if not name.startswith("_"):
        return _KNOWN_USES.get(f"{module}.{name}", frozenset())
    return frozenset(re.findall(rf"(?<![\w.]){name}\b(?!\s*[:=] )(?:\.(\w+))?", text))


_KNOWN_USES = {
    "bardo.streams.fences.FENCE_LINE": frozenset({"match"}),
    # `Following.whole` is tried behind a string, on no more than 300 characters.
    "bardo.tools.jsontext.ARGUMENT": frozenset({"match"}),
    "bardo.tools.jsontext.LISTED_ARGUMENT": frozenset({"match"}),
    # What an address and a name of a prompt begin with.
    "catalog/data/kept_ids.toml address": frozenset({"match"}),
    "catalog/data/kept_ids.toml model": frozenset({"match"}),
    "catalog/data/models.toml cloud_ids": frozenset({"fullmatch"}),
}
_NAME = re.compile(r"(\w+)(?:: [^=]+)? = (?:\w+\()?re\.compile\(")


def _text(unit: str, length: int) -> str:
    return (unit * (length // len(unit) + 1))[:length] + _END


def main(seed: int, only: str = "") -> None:
    """Try all expressions, or only one, with the texts of a seed, and write what is wrong."""
    known = {(only, re.compile(only).flags): ""} if only else expressions()
    for (text, flags), place in sorted(known.items()):
        chance = random.Random(f"{seed} {text}".encode("utf-8", "surrogatepass"))
        use = _Use(re.compile(text, flags), _methods(place))
        print(json.dumps({"tries": text, "place": place}), flush=True)
        suspicious = 0
        for unit in dict.fromkeys(one for one in hostile_units(text, flags, chance) if one):
            # Exponential time shows at fifty signs already, so that nothing longer is needed to see it.
            if use.growth(unit, SMALL, LARGE, 1) < SUSPICIOUS or use.growth(unit, SMALL, LARGE, _TRIES) < SUSPICIOUS:
                continue
            suspicious += 1
            growth = use.growth(unit, LONG, LONGEST, _TRIES)
            if growth > TOO_MUCH:
                print(json.dumps({"slow": text, "place": place, "unit": unit, "growth": round(growth, 1)}), flush=True)
                break
            if suspicious == _MOST_SUSPICIOUS:
                break
    print(json.dumps({"done": True}), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
