"""The catalog's rows of models: how each thinks, which row an id means at a provider, and how good its answers are.

A row says what a model can do; how a provider writes it down is a wire form (`forms.py`). A host's row stands over its maker's: it says
only the differences.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Literal, TypeAlias

import msgspec
import tomli

from bardo.catalog.matching import best_specificity, lies_within, matches_any, matches_glob, plain_id, specificity
from bardo.values.errors import ConfigError
from bardo.values.request import Effort, Quality

Control = Literal["adaptive", "effort", "level", "budget", "toggle", "fixed", "model_id", "none"]
ReasoningWire = Literal["provider", "model_id", "none", "effort", "tokens"]
_CONTROL_OF_WIRE: Mapping[ReasoningWire, tuple[Control, ...]] = {
    "model_id": ("model_id",),
    "none": ("none",),
    "effort": ("effort",),
    "tokens": ("budget",),
}
"""The control that each word of 001 §1 stands for. `provider` leaves it to what the provider's kind of server takes."""
ForcedTool = Literal["yes", "named", "named_not_thinking", "not_thinking", "not_budgeted", "never"]
Rank = tuple[bool, bool, int, int]
"""How far a glob goes before others: without wildcards, of a row that goes first, by its letters, by its classes."""
How = Literal["exact", "glob", "resolved", "assumed", "unclassified"]
_WILDCARDS = re.compile(r"[*?\[]")
_LETTERS = 3


class BudgetRange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which budgets in tokens a model takes. `max` None: as many as the output limit leaves. `dynamic` is the word for `auto`."""

    min: int = 1
    max: int | None = None
    dynamic: int | None = None


class ModelIds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the id of a model holds where it thinks, and what stands there in the id of the same model that does not."""

    thinking: str
    plain: str

    def __post_init__(self) -> None:
        """Raise ValueError where the two ids cannot be told apart."""
        if not self.thinking or not self.plain or self.thinking.lower() == self.plain.lower():
            raise ValueError("the thinking and the plain id must differ, and neither may be empty")

    def of(self, model: str, *, thinks: bool) -> str | None:
        """Return the id by which `model` is called to think, or not to, or None if its id holds neither word."""
        # The longer word may hold the shorter one: `-non-reasoning`.
        for word in sorted((self.thinking, self.plain), key=len, reverse=True):
            at = model.lower().rfind(word.lower())
            if at >= 0:
                return f"{model[:at]}{self.thinking if thinks else self.plain}{model[at + len(word) :]}"
        return None


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts that one source states of a model's thinking, each None if it is not stated.

    `control` lists the ways it is told how to think. `efforts` are its levels as they are spelled on the wire; `aliases` says as which
    level another one acts. `omit`: whether it thinks when nothing is sent. `off`: whether thinking can be turned off, `off_up_to`
    beside which highest effort, `nearest_off` by which fragment of the wire form where it cannot. `form` names a wire form, `switch` the
    variable of the chat template that turns thinking on and off, where it is not `enable_thinking`. `model_ids` are the words by which
    the ids of a pair say whether the model thinks. `output_limit` is in tokens, `shutdown` the first day on which it may not answer any
    more.
    """

    control: tuple[Control, ...] | None = None
    efforts: tuple[str, ...] | None = None
    aliases: dict[str, Effort] | None = None
    default_effort: str | None = None
    omit: Literal["on", "off"] | None = None
    off: bool | None = None
    off_up_to: Effort | None = None
    nearest_off: str | None = None
    budget: BudgetRange | None = None
    form: str | None = None
    switch: str | None = None
    model_ids: ModelIds | None = None
    output_limit: int | None = None
    shutdown: datetime.date | None = None


class ModelRow(Facts, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One family of models at its maker, or at a host that differs from its maker.

    `match` are globs of ids; dots and dashes are the same. `assumed`: nothing was read of these models, the row is a guess by their
    name. `like`: what the row leaves open is as at the model of this id; a row without facts of its own is so a guess that a new model of a
    line is like the newest one. `goes_first`: its globs go before those of other rows that have more letters. `hosted`: others made these
    models, which only this provider serves under these ids. `rules` name rows of `parameters.toml`.
    `open_weights`: the weights are published, so the fields of `API_FIELDS` hold at the maker's own API and not where others serve them.
    """

    provider: str
    match: tuple[str, ...]
    reasoning_wire: ReasoningWire | None = None
    """The control in one word, as 001 §1 has it, where `control` is not said."""
    assumed: bool = False
    like: str = ""
    goes_first: bool = False
    hosted: bool = False
    open_weights: bool = False
    default_display: Literal["summarized", "omitted"] | None = None
    rules: tuple[str, ...] | None = None
    forced_tool: ForcedTool | None = None
    tools_in: str | None = None
    """The only dialect in which its maker lets it call tools while it thinks."""
    signed_calls: bool | None = None
    """Whether the calls of the current turn must have their signatures; models that want them take media inside results too."""
    context: int | None = None
    """How many tokens a prompt and its answer may have together."""
    source: str = ""
    date: datetime.date | None = None
    note: str = ""

    def __post_init__(self) -> None:
        """Take the control from `reasoning_wire` where the row says no other."""
        if self.control is None and self.reasoning_wire is not None:
            msgspec.structs.force_setattr(self, "control", _CONTROL_OF_WIRE.get(self.reasoning_wire))

    @property
    def contradicts_itself(self) -> bool:
        """Whether the row says another control than its `reasoning_wire` does."""
        control = None if self.reasoning_wire is None else _CONTROL_OF_WIRE.get(self.reasoning_wire)
        return control is not None and self.control != control


API_FIELDS = ("rules", "forced_tool", "tools_in", "output_limit", "budget")
"""The fields of a row that are about the maker's API and not about the model itself."""


class FoundModel(msgspec.Struct, frozen=True, kw_only=True):
    """The row an id means at a provider, the id as the catalog spells it, who made the model, and how the row was found."""

    row: ModelRow | None
    id: str
    maker: str
    how: How


class Source(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who says what the rows of one provider say, as of when.

    `host`: it serves the models of others. `runs_weights`: it is a server of weights that its operator names as they like, so that no rule
    of any maker's API holds there.
    """

    id: str
    source: str
    date: datetime.date
    host: bool = False
    runs_weights: bool = False


class Shutdown(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When models end at a provider: on `date` they may not answer any more."""

    provider: str
    match: tuple[str, ...]
    date: datetime.date


class Spelling(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A way an id is spelled where it is served: what `pattern` finds becomes `replace`."""

    pattern: str
    replace: str = ""
    only: str = ""


class CloudIds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How clouds spell the ids of one maker's models.

    `holds` stands in each of them. `pattern` fits a whole id: its first group is the maker's own id, its second the day of a snapshot where
    that stands apart.
    """

    holds: str
    pattern: str


_Globs: TypeAlias = "list[tuple[ModelRow, list[tuple[str, Rank, str]]]]"
"""Rows with each of their globs, its rank, and what it begins with."""


class Models:
    """Rows of models, found by what a provider calls them. Never changed once made."""

    def __init__(
        self,
        tables: Iterable[Mapping[str, Any]],
        *,
        sources: Iterable[Source],
        spellings: Iterable[Spelling],
        shutdowns: Iterable[Shutdown] = (),
        cloud_ids: Iterable[CloudIds] = (),
    ) -> None:
        self.sources = {source.id: source for source in sources}
        typed = [self._typed(table) for table in tables]
        self._globs = _ranked(typed)
        self._about = lru_cache(maxsize=1024)(self.rows_about)
        self.rows = tuple(self._filled(row) for row in typed)
        self._globs = _ranked(self.rows)
        self._about.cache_clear()
        self._spellings = tuple(spellings)
        self._shutdowns = tuple(shutdowns)
        self._rules = [(re.compile(spelling.pattern), spelling) for spelling in self._spellings]
        self.find = lru_cache(maxsize=4096)(self._find)
        self._cloud_ids = [(cloud_id, re.compile(cloud_id.pattern)) for cloud_id in cloud_ids]
        self.ids_at_maker = lru_cache(maxsize=4096)(self._ids_at_maker)

    def over(self, tables: Iterable[Mapping[str, Any]]) -> Models:
        """Return rows with further ones over them: an operator's row wins over a built-in one of the same provider and length."""
        added = list(tables)
        providers = set(self.sources)
        sources = [*self.sources.values()]
        for name in {str(table.get("provider", "")) for table in added} - providers:
            sources.append(Source(id=name, source="operator", date=datetime.date.min, host=True))
        own = [{"source": "operator", **table} for table in added]
        return Models(
            [*own, *map(_table, self.rows)],
            sources=sources,
            spellings=self._spellings,
            shutdowns=self._shutdowns,
            cloud_ids=[row for row, _ in self._cloud_ids],
        )

    def may_be_of_cloud(self, model: str) -> bool:
        """Whether a name holds what the ids of a cloud hold: most names do not, and need no second look."""
        return any(row.holds in model for row, _ in self._cloud_ids)

    def _ids_at_maker(self, model: str) -> tuple[str, ...]:
        """Return the ids by which its maker has a model that a cloud calls so, that of the snapshot first, or none if no row fits."""
        name = model.rpartition("/")[2].lower()
        for row, pattern in self._cloud_ids:
            match = pattern.fullmatch(name) if row.holds in name else None
            if match is not None:
                snapshot = f"{match[1]}-{match[2]}" if match[2] else match[1]
                return tuple(dict.fromkeys((snapshot, self.spelled(name))))
        return ()

    def _typed(self, table: Mapping[str, Any]) -> ModelRow:
        try:
            row = msgspec.convert(table, ModelRow)
        except msgspec.ValidationError as problem:
            raise ConfigError(
                f"model row {table.get('match', '?')} of {table.get('provider', '?')}: {problem}"
            ) from problem
        source = self.sources.get(row.provider)
        if source is None or row.source:
            return row
        return msgspec.structs.replace(row, source=source.source, date=source.date)

    def _filled(self, row: ModelRow) -> ModelRow:
        """Return a row with what it leaves open taken from the model that it is like. Raises ConfigError where there is none."""
        if not row.like:
            return row
        name = plain_id(row.like)
        original = self._longest(name, name, lambda other: other.provider == row.provider and not other.like)
        if original is None:
            raise ConfigError(
                f"model row {row.match} of {row.provider}: no row is about {row.like!r}, which it is like"
            )
        own = {
            field: value for field, value in _table(row).items() if value != "" and (value or field != "open_weights")
        }
        return msgspec.structs.replace(original, **{"note": "", **own})

    def spelled(self, model: str) -> str:
        """Return an id as the catalog spells it: without the path, geography, host's prefix, variant or date around it."""
        name = model.strip().lower().rpartition("/")[2]
        for pattern, rule in self._rules:
            if not rule.only or matches_glob(name, rule.only):
                name = pattern.sub(rule.replace, name)
        return name

    def _find(self, owner: str, model: str) -> FoundModel:
        """Return the row of `model` at `owner`, which is a maker or a host; a row of what it differs in stands over its maker's."""
        name = self.spelled(model)
        asked, spelled = plain_id(model), plain_id(name)
        own = self._longest(spelled, asked, lambda row: row.provider == owner)
        made = self._longest(spelled, asked, lambda row: row.provider != owner and not self._host(row))
        made = self._as_served(made, owner)
        row = _laid_over(own, made) if own and self._host(own) else own or made
        maker = (own if own and not self._host(own) else made or own).provider if (own or made) else ""  # type: ignore[union-attr]
        row = self._dated(row, owner, spelled)
        return FoundModel(row=row, id=name, maker=maker, how=_match_kind(row, asked, spelled))

    def _as_served(self, made: ModelRow | None, owner: str) -> ModelRow | None:
        """Return a maker's row without the rules of the maker's API where `owner` does not have them."""
        source = self.sources.get(owner)
        if made is None or not (made.open_weights or (source is not None and source.runs_weights)):
            return made
        return msgspec.structs.replace(made, **dict.fromkeys(API_FIELDS))

    def _dated(self, row: ModelRow | None, owner: str, spelled: str) -> ModelRow | None:
        """Return a row with the day on which the model shuts down at `owner`, where one is known."""
        days = (row.date for row in self._shutdowns if row.provider == owner and matches_any(spelled, row.match))
        day = next(days, None)
        return row if row is None or day is None or row.shutdown else msgspec.structs.replace(row, shutdown=day)

    def _host(self, row: ModelRow) -> bool:
        source = self.sources.get(row.provider)
        return row.hosted or (source is not None and source.host)

    def _longest(self, spelled: str, asked: str, wanted: Callable[[ModelRow], bool]) -> ModelRow | None:
        """Return the first of the rows whose glob decides: an assumption goes before a row only where it is about a part of its models."""
        best: dict[bool, tuple[Rank, ModelRow, str]] = {}
        for row, globs in self._about(spelled[:_LETTERS], asked[:_LETTERS]):
            if not wanted(row):
                continue
            before = best.get(row.assumed)
            for glob, rank, prefix in globs:
                if not (spelled.startswith(prefix) or asked.startswith(prefix)):
                    continue
                if (before is None or rank > before[0]) and (matches_glob(spelled, glob) or matches_glob(asked, glob)):
                    before = best[row.assumed] = (rank, row, glob)
        certain, assumed = best.get(False), best.get(True)
        if certain and assumed:
            return assumed[1] if lies_within(assumed[2], certain[2]) and assumed[2] != certain[2] else certain[1]
        return (certain or assumed or (None, None))[1]

    def rows_about(self, *beginnings: str) -> _Globs:
        """Return the rows, each with its globs, that may be about ids with one of these beginnings.

        Most globs begin with a maker's own word, and a list may have sixty thousand ids.
        """
        begun = {first[:length] for first in beginnings for length in range(_LETTERS + 1)}
        matching = [(row, [glob for glob in globs if glob[2][:_LETTERS] in begun]) for row, globs in self._globs]
        return [(row, globs) for row, globs in matching if globs]


def _ranked(rows: Iterable[ModelRow]) -> _Globs:
    """Return rows with each of their globs, its rank, and what it begins with."""
    return [
        (row, [(glob, _rank(glob, row), _WILDCARDS.split(glob, maxsplit=1)[0]) for glob in map(plain_id, row.match)])
        for row in rows
    ]


def _rank(glob: str, row: ModelRow) -> Rank:
    exact, letters, classes = specificity(glob)
    return exact, row.goes_first, letters, classes


def _match_kind(row: ModelRow | None, asked: str, spelled: str) -> How:
    if row is None:
        return "unclassified"
    if row.assumed:
        return "assumed"
    if asked != spelled:
        return "resolved"
    return "exact" if any(plain_id(glob) == asked for glob in row.match) else "glob"


def _table(row: ModelRow) -> dict[str, Any]:
    return {name: value for name, value in msgspec.structs.asdict(row).items() if value is not None}


def _laid_over(host: ModelRow, maker: ModelRow | None) -> ModelRow:
    """Return the host's row, with what it leaves open taken from the maker's."""
    if maker is None:
        return host
    return msgspec.structs.replace(maker, **{n: v for n, v in _table(host).items() if v != "" and n != "assumed"})


@cache
def builtin_models() -> Models:
    """Return the rows that come with bardo."""
    text = files("bardo.catalog").joinpath("data/models.toml").read_text(encoding="utf-8")
    data = tomli.loads(text)
    return Models(
        data["models"],
        sources=msgspec.convert(data["source"], list[Source]),
        spellings=msgspec.convert(data["spelling"], list[Spelling]),
        shutdowns=msgspec.convert(data["shutdown"], list[Shutdown]),
        cloud_ids=msgspec.convert(data["cloud_ids"], list[CloudIds]),
    )


class ModelQuality(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The class of some models' answers, by globs of ids as the catalog spells them."""

    match: tuple[str, ...]
    quality: Quality


class ModelQualities:
    """All rows. The most specific glob decides.

    Source: `catalog/data/model_quality.toml`.
    """

    def __init__(self, rows: tuple[ModelQuality, ...]) -> None:
        self.rows = rows
        self._plain = tuple(
            msgspec.structs.replace(row, match=tuple(plain_id(glob) for glob in row.match)) for row in rows
        )
        self.find = lru_cache(maxsize=4096)(self._find)

    def _find(self, model: str) -> Quality | None:
        """Return the class of a model's plain id, or None if it is unknown."""
        fitting = [row for row in self._plain if matches_any(model, row.match)]
        row = max(fitting, key=lambda row: best_specificity(model, row.match), default=None)
        return None if row is None else row.quality


@cache
def model_qualities() -> ModelQualities:
    """Return the rows that come with bardo."""
    text = files("bardo.catalog").joinpath("data/model_quality.toml").read_text(encoding="utf-8")
    return ModelQualities(msgspec.convert(tomli.loads(text)["model"], tuple[ModelQuality, ...]))
