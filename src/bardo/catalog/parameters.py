"""Which parameters a provider or a model does not take, takes within limits, or calls by another name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from typing import Any, Literal

import msgspec
import tomli

from bardo.catalog.matching import matches_any
from bardo.values.errors import ConfigError

Span = tuple[float, float]


class CallIds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which ids of tool calls are taken: those that `pattern` matches whole. Others become `prefix` and so many letters and digits."""

    pattern: str
    length: int
    prefix: str = ""


class ParameterRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The treatment of parameters and messages at some providers, or with models whose row names the rule.

    `owners` are owners of endpoints, `dialects` and `models` (globs) narrow them. `when`: always, while the model thinks, while it thinks
    within a budget, at `level`, or with models that are known not to think at all. `drop` names parameters that are taken out, `within`
    those that are taken out beyond a range, `limits` those that are brought into one, `one_of` those of which only the first may go.
    `choices` and `stops` are the most there may be. `rename` gives a parameter its path in the provider's body. `no_forced_tool`: no tool
    can be forced. `of_row`: the rule holds for models whose row names it, and `dialects` only narrow it. `drop_foreign` names parameters
    that are taken out where the client speaks another dialect than the provider; `replace` gives values that others stand in for, by
    parameter, and `with_tools_or_json` has the rule hold only for requests with tools or an answer in JSON.

    Of messages: `call_ids` are the ids that calls may have, `no_prefill` says that the last message must not be the assistant's,
    `trimmed_prefill` that it must not end with white space where it is, and `no_thinking_back` that earlier thinking is refused.
    """

    name: str
    owners: tuple[str, ...] = ()
    dialects: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    when: Literal["always", "thinking", "budgeted", "level", "cannot_think"] = "always"
    level: str = ""
    drop: tuple[str, ...] = ()
    within: dict[str, Span] = {}
    limits: dict[str, Span] = {}
    one_of: tuple[tuple[str, ...], ...] = ()
    rename: dict[str, str] = {}
    choices: int | None = None
    stops: int | None = None
    no_forced_tool: bool = False
    of_row: bool = False
    drop_foreign: tuple[str, ...] = ()
    replace: dict[str, dict[str, str]] = {}
    with_tools_or_json: bool = False
    call_ids: CallIds | None = None
    no_prefill: bool = False
    trimmed_prefill: bool = False
    no_thinking_back: bool = False
    why: str

    def fits(self, *, owner: str, dialect: str, model: str, named: Iterable[str]) -> bool:
        """Whether the rule is about this model here."""
        spoken = not self.dialects or dialect in self.dialects
        if self.name in named:
            return spoken
        here = owner in self.owners if self.owners else bool(self.dialects) and not self.of_row
        return here and spoken and (not self.models or matches_any(model, self.models))


class ParameterStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`top_k` up to `top_k` is about this `top_p`."""

    top_k: int
    top_p: float


class Parameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True, eq=False):
    """All rules, and what stands in for `top_k` where only `top_p` is known, in rising order."""

    rule: tuple[ParameterRule, ...]
    step: tuple[ParameterStep, ...]

    @cached_property
    def rules(self) -> Callable[[str, str, str, tuple[str, ...]], tuple[ParameterRule, ...]]:
        """The look-up of the rules about a model: by its endpoint's owner, dialect and id, and the names in its row."""
        return lru_cache(maxsize=2048)(self._rules)

    def _rules(self, owner: str, dialect: str, model: str, named: tuple[str, ...]) -> tuple[ParameterRule, ...]:
        return tuple(rule for rule in self.rule if rule.fits(owner=owner, dialect=dialect, model=model, named=named))


@cache
def builtin_parameters() -> Parameters:
    """Return the rules that come with bardo."""
    text = files("bardo.catalog").joinpath("data/parameters.toml").read_text(encoding="utf-8")
    return read_parameters(tomli.loads(text))


def read_parameters(data: Mapping[str, Any]) -> Parameters:
    """Return typed rules. Raises ConfigError naming the mistake."""
    try:
        return msgspec.convert(data, Parameters)
    except msgspec.ValidationError as problem:
        raise ConfigError(f"parameters.toml: {problem}") from problem
