"""Where earlier reasoning may go: who reads which state, what becomes of foreign text, and which models bind state to its prefix.

A state is legal at a target where the first row that fits says so. Globs are of formats, platforms and model ids (dots are dashes); what
is not known of an origin fits every glob, because a dialect only ever writes state of its own format.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple

import msgspec
import tomli

from bardo.catalog.matching import matches_any, matches_glob, plain_id
from bardo.catalog.rows import ProviderRow
from bardo.values.blocks import Origin
from bardo.values.errors import ConfigError

Foreign = Literal["text", "drop"]
_DEFAULT_WHY = "only the provider that made it can read it"
_LONGEST_REFUSAL = 4000
_OTHER_ACCOUNT = "only the account that it was made with can read it"


class Platform(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Provider rows that read each other's state.

    `separate`: of these rows nothing is known but the dialect, so that each configured provider is a platform of its own.
    """

    name: str
    providers: tuple[str, ...]
    separate: bool = False


class StateRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether state of a format may go from where it was made to where it is to be read.

    `made_at` and `read_at` are platforms, `made_by` and `read_by` models. `bound_to`: it is legal only where this is the same on both
    sides; for `provider` that is the configured provider. Whatever a row says, state goes only to the account that made it.
    """

    format: str
    made_at: tuple[str, ...] = ("*",)
    made_by: tuple[str, ...] = ("*",)
    read_at: tuple[str, ...] = ("*",)
    read_by: tuple[str, ...] = ("*",)
    bound_to: Literal["", "platform", "provider", "model"] = ""
    legal: bool = True
    why: str = _DEFAULT_WHY
    source: str = ""


class TextRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The treatment of readable thinking that was made elsewhere.

    `required`: where the provider refuses a message without thinking; `fill` is what stands there when there is none.
    """

    providers: tuple[str, ...]
    foreign: Foreign = "text"
    required: Literal["", "tool_calls"] = ""
    fill: str = ""
    source: str = ""


class RequiredThinking(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Models that think only where the calls whose results they get still have their thinking.

    Among `expected`: those that think on without it, and less well, so that its loss is reported; `states`: what they take back is
    opaque state alone. Among `signed`: those that refuse thinking without a signature.
    """

    platforms: tuple[str, ...]
    models: tuple[str, ...]
    states: bool = False
    source: str = ""


class Binding(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Models whose state holds only behind the prefix it was made behind.

    `ask` holds the fields sent, with `headers`, to have state that does not hold left out; `defaults` are fields that `ask` needs,
    sent where the request has none of its own.
    """

    format: str
    platforms: tuple[str, ...]
    models: tuple[str, ...]
    ask: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    headers: dict[str, str] = {}
    source: str = ""


class DialectState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rules of opaque state in one dialect.

    `formats` are what the dialect's native state may be, since its fields do not say. `bound_ids`: an item's id is refused where the
    reasoning item it belongs to is left out. `plain`: servers take their readable thinking back in it. `written_by_clients` are formats
    of thinking that clients write themselves, whatever the model thought.
    """

    name: str
    formats: tuple[str, ...] = ()
    bound_ids: bool = False
    plain: bool = False
    written_by_clients: tuple[str, ...] = ()
    source: str = ""


class StateRefusal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a provider refuses earlier state: by words that `pattern` finds, or by one of `codes`.

    `lacks`: it refuses that thinking is missing.
    """

    pattern: str
    codes: tuple[str, ...] = ()
    lacks: bool = False
    source: str = ""


class Reader(msgspec.Struct, frozen=True, kw_only=True):
    """Who is to read earlier reasoning: a configured provider, the platform its row belongs to, and a model.

    `account` is a digest of whose account is asked, empty where that is not known.
    """

    provider: str
    row: ProviderRow
    platform: str
    model: str
    account: str = ""

    def origin(self, prefix: str = "") -> Origin:
        """Return the stamp of what this model makes."""
        return Origin(
            provider=self.provider,
            platform=self.platform,
            model=self.model,
            dialect=self.row.dialect,
            prefix=prefix,
            account=self.account,
        )

    def shares_account(self, origin: Origin) -> bool:
        """Whether state was made with the account that is asked: what was kept before accounts were, at the same configured provider."""
        if origin.account and self.account:
            return origin.account == self.account
        return origin.provider == self.provider or not (origin.account or self.account)


class ReaderRules(NamedTuple):
    """The rules of a reader, for everything it reads.

    `text`: what becomes of foreign text. `binding`: how state is bound to its prefix, or None if it is not. `needs_thinking`: it can think
    only behind calls that have their thinking. `expects_thinking`: it is given the thinking behind earlier calls back, so that a loss of
    it is reported; `expects_states`: that is its opaque state alone. `signed`: it refuses thinking that has no signature.
    """

    text: TextRule
    binding: Binding | None
    needs_thinking: bool
    expects_thinking: bool
    expects_states: bool
    signed: bool


class ReplayRules:
    """All rows. Never changed once made."""

    def __init__(
        self,
        platforms: Iterable[Platform],
        states: Iterable[StateRule],
        texts: Iterable[TextRule],
        bindings: Iterable[Binding],
        needed: Iterable[RequiredThinking] = (),
        expected: Iterable[RequiredThinking] = (),
        signed: Iterable[RequiredThinking] = (),
        dialects: Iterable[DialectState] = (),
        refusals: Iterable[StateRefusal] = (),
        *,
        account_headers: Iterable[str] = (),
    ) -> None:
        self._platforms = {row: platform for platform in platforms for row in platform.providers}
        self.states = tuple(states)
        self.texts = tuple(texts)
        self.bindings = tuple(bindings)
        # Asked for every call; the names of models come from clients.
        self._of = lru_cache(maxsize=1024)(self._find)
        self._binds_anywhere = lru_cache(maxsize=1024)(self._find_binding_of)
        self.needed = tuple(needed)
        self.expected = tuple(expected)
        self.signed = tuple(signed)
        self._dialects = {row.name: row for row in dialects}
        self.written_by_clients = frozenset(name for row in self._dialects.values() for name in row.written_by_clients)
        """Formats of thinking that clients write themselves, whatever the model thought."""
        self.refusals = tuple(refusals)
        self._refusal_words = [(re.compile(row.pattern, re.IGNORECASE), row) for row in self.refusals]
        self.account_headers = frozenset(account_headers)
        """Headers that say whose account a call is for, where one key has several."""

    def reader(self, provider: str, row: ProviderRow, model: str, account: str = "") -> Reader:
        """Return who reads at a configured provider."""
        platform = self._platforms.get(row.id)
        name = row.id if platform is None else platform.name
        if platform is not None and platform.separate:
            name = f"{name}:{provider}"
        return Reader(provider=provider, row=row, platform=name, model=model, account=account)

    def refusal(self, format_name: str, origin: Origin | None, reader: Reader) -> str:
        """Return why state may not go to `reader`, empty where it may."""
        for rule in self.states:
            if _fits(rule, format_name, origin, reader):
                if not rule.legal or not _same(rule, origin, reader):
                    return rule.why
                return "" if origin is None or reader.shares_account(origin) else _OTHER_ACCOUNT
        return _DEFAULT_WHY

    def refusal_of_state(self, words: str, code: str = "") -> StateRefusal | None:
        """Return the row of a provider's refusal of earlier state; None for a refusal of anything else."""
        excerpt = words[:_LONGEST_REFUSAL]
        return next((row for words, row in self._refusal_words if code in row.codes or words.search(excerpt)), None)

    def of(self, reader: Reader) -> ReaderRules:
        """Return what holds for `reader`, whatever it is to read."""
        return self._of(reader.row.id, reader.platform, reader.model)

    def native(self, dialect: str, format_name: str) -> bool:
        """Whether native state of `dialect` may be of this format."""
        row = self._dialects.get(dialect)
        return row is not None and format_name in row.formats

    def binds_ids(self, dialect: str) -> bool:
        """Whether the ids of a dialect's items are refused without the reasoning items they belong to."""
        row = self._dialects.get(dialect)
        return row is not None and row.bound_ids

    def takes_own_thinking(self, reader: Reader) -> bool:
        """Whether a reader gets the readable thinking back that it has itself produced.

        A server of which only the dialect is known gets the field that it was seen to write.
        """
        row = self._dialects.get(reader.row.dialect)
        return reader.row.quirks.replay != "none" or reader.row.generic or (row is not None and row.plain)

    def may_bind(self, model: str) -> bool:
        """Whether a model binds state to its prefix at any platform."""
        return self._binds_anywhere(model)

    def _find_binding_of(self, model: str) -> bool:
        return any(_any(plain_id(model), binding.models) for binding in self.bindings)

    def _find(self, row: str, platform: str, model: str) -> ReaderRules:
        expected = [rule for rule in self.expected if _matches(platform, model, rule)]
        return ReaderRules(
            text=next((rule for rule in self.texts if _any(row, rule.providers)), TextRule(providers=("*",))),
            binding=next((rule for rule in self.bindings if _matches(platform, model, rule)), None),
            needs_thinking=any(_matches(platform, model, rule) for rule in self.needed),
            expects_thinking=bool(expected),
            expects_states=any(rule.states for rule in expected),
            signed=any(_matches(platform, model, rule) for rule in self.signed),
        )


def _any(name: str, globs: Iterable[str]) -> bool:
    return matches_any(name, globs)


def _matches(platform: str, model: str, rule: Binding | RequiredThinking) -> bool:
    return _any(platform, rule.platforms) and _any(plain_id(model), rule.models)


def _fits(rule: StateRule, format_name: str, origin: Origin | None, reader: Reader) -> bool:
    read = _any(reader.platform, rule.read_at) and _any(plain_id(reader.model), rule.read_by)
    if not read or not matches_glob(format_name, rule.format):
        return False
    # A row for the state of certain models does not apply to state of an unknown maker.
    if origin is None:
        return rule.made_by == ("*",) or rule.legal
    return _any(origin.platform, rule.made_at) and _any(plain_id(origin.model), rule.made_by)


def _same(rule: StateRule, origin: Origin | None, reader: Reader) -> bool:
    if origin is None:
        return True
    match rule.bound_to:
        case "platform":
            return origin.platform == reader.platform
        case "provider":
            return origin.provider == reader.provider
        case "model":
            return origin.platform == reader.platform and plain_id(origin.model) == plain_id(reader.model)
        case _:
            return True


@cache
def builtin_replay() -> ReplayRules:
    """Return the rows that come with bardo."""
    return read_replay(tomli.loads(files("bardo.catalog").joinpath("data/replay.toml").read_text(encoding="utf-8")))


def read_replay(data: Mapping[str, Any]) -> ReplayRules:
    """Return typed rows. Raises ConfigError naming the mistake."""
    try:
        return ReplayRules(
            msgspec.convert(data.get("platform", []), list[Platform]),
            msgspec.convert(data.get("state", []), list[StateRule]),
            msgspec.convert(data.get("text", []), list[TextRule]),
            msgspec.convert(data.get("binding", []), list[Binding]),
            msgspec.convert(data.get("needed", []), list[RequiredThinking]),
            msgspec.convert(data.get("expected", []), list[RequiredThinking]),
            msgspec.convert(data.get("signed", []), list[RequiredThinking]),
            msgspec.convert(data.get("dialect", []), list[DialectState]),
            msgspec.convert(data.get("refusal", []), list[StateRefusal]),
            account_headers=msgspec.convert(data.get("account_headers", []), list[str]),
        )
    except msgspec.ValidationError as problem:
        raise ConfigError(f"replay.toml: {problem}") from problem
