"""Where requests name what a provider keeps, and where replies give the ids of it, from `catalog/data/kept_ids.toml`."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec
import tomli


class KeptIdField(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fields that name something kept: a text or a list of texts, compared without case, dashes and underscores.

    `what` is the word for it in an error, `code` the error's code where the dialect has one. `has_id`: an object in the field names it by
    its `id`; `only_id`: a text does not. `address`: the field holds an address, which names something kept where it begins like one of
    `kept`, and in a field `of_provider` also where it is none of the web. `common`: not where the object around it has one of these types,
    whose ids are everybody's. `outermost`: only among the fields of the body itself. `paths`: where the ids stand in objects of the field.
    `public`: what begins so is everybody's.
    """

    what: str
    names: tuple[str, ...]
    code: str = ""
    has_id: bool = False
    only_id: bool = False
    address: Literal["", "any", "of_provider"] = ""
    common: tuple[str, ...] = ()
    outermost: bool = False
    paths: tuple[str, ...] = ()
    public: tuple[str, ...] = ()


class KeptInInstructions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Texts of a system prompt that are ids, where they begin with `begins`: one, or several with a separator."""

    what: str
    begins: str
    separator: str


class KeptItems(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Items of a history in `field` that are known by their `id`.

    An item that has the field of `whole` for its type, or whose type ends like one of `whole_ends`, holds all of itself: its id finds
    nothing.
    """

    dialect: str
    field: str
    what: str
    whole: dict[str, str]
    whole_ends: tuple[str, ...]


class KeptIdReply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the replies of a dialect hold such ids: dotted paths, `*` for each of a list, in a whole reply and in an event of a stream.

    An event that holds none of `marks` has no id. `asked_by`: ids of these places are kept only where the request has this field.
    """

    dialect: str
    marks: tuple[str, ...]
    whole: tuple[str, ...]
    events: tuple[str, ...]
    asked_by: str = ""


class KeptModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Names of models that name something of an account: they begin with one of `begins`, or do behind a provider's name."""

    what: str
    begins: tuple[str, ...]


class _Address(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    kept: tuple[str, ...]


class KeptIds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of it. `content` are fields that are not looked into, `content_of_calls` those of an object that has one of `marks_of_calls`.

    Such a mark is the name of a field, or the object's type.
    """

    content: frozenset[str]
    content_of_calls: frozenset[str]
    marks_of_calls: frozenset[str]
    field: tuple[KeptIdField, ...]
    address: _Address
    instructions: KeptInInstructions
    items: KeptItems
    reply: tuple[KeptIdReply, ...]
    model: KeptModel

    def of_reply(self, dialect: str, asked: Collection[str]) -> KeptIdReply | None:
        """Return where the replies of a dialect to a request with some fields hold ids, or None if they hold none."""
        rows = [row for row in self.reply if row.dialect == dialect and (not row.asked_by or row.asked_by in asked)]
        if len(rows) < 2:
            return rows[0] if rows else None
        return KeptIdReply(
            dialect=dialect,
            marks=tuple(mark for row in rows for mark in row.marks),
            whole=tuple(path for row in rows for path in row.whole),
            events=tuple(path for row in rows for path in row.events),
        )


def plain_name(name: str) -> str:
    """Return a field's name without what dialects write differently: case, dashes, underscores and white space."""
    return re.sub(r"[\s_-]", "", name).lower()


@cache
def kept_ids() -> KeptIds:
    """Return the rows that come with bardo."""
    text = files("bardo.catalog").joinpath("data/kept_ids.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomli.loads(text), KeptIds)


@cache
def fields_by_name() -> dict[str, KeptIdField]:
    """Return the fields by their plain names."""
    return {plain_name(name): row for row in kept_ids().field for name in row.names}


@cache
def kept_address() -> re.Pattern[str]:
    """Return what an address of something kept begins with."""
    return re.compile("|".join(kept_ids().address.kept))


@cache
def kept_model() -> re.Pattern[str]:
    """Return what finds the part of a model's name that names something of an account."""
    return re.compile(rf"(?:\A|/)((?:{'|'.join(kept_ids().model.begins)}).*)", re.IGNORECASE | re.DOTALL)


@cache
def names_in_json() -> re.Pattern[bytes]:
    """Return what stands in every body that names something kept: one of the fields, or a letter of ASCII that was escaped."""
    names = "|".join(r"[\s_-]*".join(map(re.escape, name.split("_"))) for row in kept_ids().field for name in row.names)
    texts = re.escape(kept_ids().instructions.begins).replace("/", r"\\?/")
    return re.compile(rf'"(?:{names})"\s*:|item[_-]?reference|{texts}|\\u00[2-7]'.encode(), re.IGNORECASE)
