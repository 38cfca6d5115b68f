"""Rewrite a whole schema: its root, its definitions, and an object around a root that is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bardo.structured.rewrite.build import build
from bardo.structured.rewrite.entries import Inexpressible, Place, Rewrite, Schema, Work
from bardo.structured.rewrite.inverse import Inverse, Named, Unwrapped, acting
from bardo.structured.rewrite.limits import check_limits
from bardo.structured.rewrite.older import is_older, modern
from bardo.structured.rewrite.references import needs_unrolling, recursive, target_of
from bardo.structured.rewrite.words import LISTED, NAMED, SINGLE
from bardo.structured.subsets import Subset

WRAPPER = "value"


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A schema as a target takes it, what was changed, and the way back. It is shared: nothing in it may be changed."""

    schema: Schema
    rewrites: tuple[Rewrite, ...] = ()
    _inverse: Inverse | None = None
    _named: Named | None = None

    @property
    def changes_answers(self) -> bool:
        """Whether an answer differs from what the caller is given."""
        return self._inverse is not None

    def restore(self, value: Any) -> Any:
        """Return an answer under this schema as one under the caller's; of another shape, as it is."""
        if self._inverse is None:
            return value
        try:
            return self._inverse.restore(value, self._named or {})
        except RecursionError:
            return value


def rewrite(schema: Schema | bool, subset: Subset) -> Rewritten:
    """Return a valid JSON Schema as `subset` takes it.

    Raises Inexpressible where the subset has no words for it, and InvalidRequest where a reference leads nowhere.
    """
    root = schema if isinstance(schema, dict) else {} if schema else {"not": {}}
    if subset.verbatim:
        return _verbatim(root, subset)
    entries: tuple[Rewrite, ...] = ()
    if is_older(root):
        root = modern(root)
        entries = (
            Rewrite(
                kind="draft_updated", path="", effect="lossless", note="an older draft is said in the words of 2020-12"
            ),
        )
    found = recursive(root)
    unroll = subset.recursion == "unroll" or (subset.recursion == "optional" and needs_unrolling(root, found))
    work = Work(root, subset, recursive=found, unroll=unroll)
    return _rewritten(work, entries)


def _rewritten(work: Work, entries: tuple[Rewrite, ...]) -> Rewritten:
    built = build(work.root, Place(), work)
    if built is None:
        raise Inexpressible("", "no value at all is valid")
    schema, inverse = dict(built.schema), built.inverse
    if work.subset.root_object and (schema.get("type") != "object" or "nullable" in schema):
        work.note("root_wrapped", Place(), "lossless", f"the answer stands in an object, as its member {WRAPPER}")
        schema, inverse = _wrapped(schema), Unwrapped(WRAPPER, inverse)
    named = _definitions(work)
    if work.definitions:
        schema["$defs"] = work.definitions
    check_limits(schema, work.subset.limits)
    return Rewritten(schema, (*entries, *work.entries), inverse if acting(inverse, named) else None, named)


def _definitions(work: Work) -> Named:
    """Write the bodies of all kept definitions, including those that only definitions need."""
    named: dict[str, Inverse | None] = {}
    while work.waiting:
        reference, name = work.waiting.popleft()
        place = Place(path=reference.removeprefix("#"), depth=1)
        built = build(target_of(reference, work.root), place, work)
        if built is None:
            raise Inexpressible(place.path, "no value is valid under this definition")
        work.definitions[name], named[name] = built.schema, built.inverse
        if reference != f"#/$defs/{name}":
            work.note("definitions_moved", place, "lossless", f"{reference} stands in $defs as {name}")
    return named


def _wrapped(schema: Schema) -> Schema:
    return {"type": "object", "properties": {WRAPPER: schema}, "required": [WRAPPER], "additionalProperties": False}


def _verbatim(root: Schema, subset: Subset) -> Rewritten:
    """Return a schema as it is, save words of the root that are refused, and an object around a root that is none."""
    recursive(root)
    entries = tuple(_stripped(word) for word in root if word in subset.stripped)
    schema = {word: value for word, value in root.items() if word not in subset.stripped}
    if subset.root_object and schema.get("type") != "object" and (opened := _opened(schema, root)) is not None:
        note = f"the root is written out, in place of its reference {schema['$ref']}"
        entries = (*entries, Rewrite(kind="root_opened", path="", effect="lossless", note=note))
        schema = opened
    if not subset.root_object or schema.get("type") == "object":
        return Rewritten(schema, entries)
    inner = _moved(schema, lambda reference: "#/properties/" + WRAPPER + reference[1:])
    note = f"the answer stands in an object, as its member {WRAPPER}"
    wrapping = Rewrite(kind="root_wrapped", path="", effect="lossless", note=note)
    dialect = {"$schema": inner.pop("$schema")} if "$schema" in inner else {}
    return Rewritten({**dialect, **_wrapped(inner)}, (*entries, wrapping), Unwrapped(WRAPPER, None), {})


# What may stand beside a root's reference without ruling anything out.
_BESIDE = frozenset({"$schema", "$id", "$comment", "$defs", "definitions", "title", "description"})


def _opened(schema: Schema, root: Schema) -> Schema | None:
    """Return a root that is only a reference to an object as that object: so Python's libraries write a class. Else None."""
    reference = schema.get("$ref")
    if not isinstance(reference, str) or schema.keys() - _BESIDE - {"$ref"}:
        return None
    target = target_of(reference, root)
    if not isinstance(target, dict) or target.get("type") != "object" or target.keys() & {"$id", "$anchor", "$defs"}:
        return None
    return {**{word: value for word, value in schema.items() if word != "$ref"}, **target}


def _stripped(word: str) -> Rewrite:
    return Rewrite(
        kind="annotation_stripped", path="", effect="lossless", note=f"{word} is not taken, and makes no answer invalid"
    )


def _moved(schema: Any, move: Callable[[str], str]) -> Any:
    """Return a schema whose references point elsewhere."""
    if not isinstance(schema, dict):
        return schema
    return {word: _moved_inside(word, value, move) for word, value in schema.items()}


def _moved_inside(word: str, value: Any, move: Callable[[str], str]) -> Any:
    if word == "$ref" and isinstance(value, str):
        return move(value)
    if word in SINGLE:
        return _moved(value, move)
    if word in LISTED and isinstance(value, list):
        return [_moved(one, move) for one in value]
    if word in NAMED and isinstance(value, dict):
        return {name: _moved(one, move) for name, one in value.items()}
    return value
