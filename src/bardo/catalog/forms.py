"""How a reasoning policy is written: wire forms, and which of them a provider takes in which dialect.

A wire form is a set of JSON fragments. In a fragment, the string `$effort` stands for the level, `$budget` for the tokens, and the name
`$switch` for the chat template's switch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import msgspec
import tomli

from bardo.catalog.fragments import Fragment
from bardo.catalog.models import Control, Facts
from bardo.values.errors import ConfigError
from bardo.values.request import Effort


class WireForm(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One way to write a policy. A fragment that is None cannot be expressed in it; an empty one is expressed by sending nothing.

    `needs`: what a model's control must hold for this form to be its own. `on` is thinking without an amount, `auto` what leaves the
    amount to the model. `off_level` is off for models with a level called `none`. `added_effort` writes an effort in addition to a budget
    or to off. `shown` and `hidden` go with thinking whose text is (not) wanted, `shown_asked` with a policy that is expressed by sending
    nothing, `shown_alone` where no policy was given. `levels`: the levels the provider translates itself for models with another control;
    `refused`: those that it takes of no model. `limit`: whether the output limit must be sent, always or with thinking. `exclusive` lists
    fields, by their paths, of which only one may be sent. `soft`: the model decides whether to think. `apart`: effort and thinking are
    separate fields, and the effort does not turn thinking on. `system_on` and `system_off` are written into the system prompt, for models
    that obey it.
    """

    name: str
    needs: tuple[Control, ...] = ()
    effort: Fragment | None = None
    budget: Fragment | None = None
    on: Fragment | None = None
    off: Fragment | None = None
    off_level: Fragment | None = None
    auto: Fragment | None = None
    added_effort: Fragment | None = None
    between_tools: Fragment | None = None
    shown: Fragment | None = None
    hidden: Fragment | None = None
    shown_alone: Fragment | None = None
    shown_asked: Fragment | None = None
    hidden_alone: Fragment | None = None
    levels: tuple[Effort, ...] = ()
    refused: tuple[Effort, ...] = ()
    least_budget: int = 0
    most_budget: int | None = None
    limit: Literal["", "required", "with_thinking"] = ""
    soft: bool = False
    apart: bool = False
    exclusive: tuple[tuple[str, ...], ...] = ()
    system_on: str = ""
    system_off: str = ""


class DifferentModels(Facts, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Facts of some models, by globs of their ids, that hold at one endpoint and not at their maker's."""

    match: tuple[str, ...]
    source: str = ""


class Endpoint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The wire forms that a provider takes in a dialect. The first of `forms` that a model's control fits is used, else the last.

    `providers` are ids of provider rows (`*`: any), `owner` whose model rows come first, `makers` forms by the maker of the model.
    `assumed` holds for models nothing is known of: the provider's static form. `payloads` are the dialects, by the maker of the model,
    that an endpoint only wraps. `own_words`: what a caller who spoke the dialect said of thinking goes on as it came to a model nothing is
    known of. `unknown_server`: nothing is known of the server, so it goes on as it came whatever is known of the model.
    `different` models are not there what their rows say.
    """

    providers: tuple[str, ...]
    dialects: tuple[str, ...]
    owner: str = ""
    forms: tuple[str, ...] = ()
    makers: dict[str, tuple[str, ...]] = {}
    assumed: Facts = Facts()
    payloads: dict[str, str] = {}
    own_words: bool = False
    unknown_server: bool = False
    different: tuple[DifferentModels, ...] = ()


class Refusal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Words of a refusal: what `pattern` finds means that `kind` is not taken as it was sent."""

    kind: Literal[
        "below_limit", "levels", "range", "least", "most", "no_off", "adaptive", "no_budget", "no_effort", "no_control"
    ]
    pattern: str


class WireForms:
    """Wire forms by name, and endpoints by provider and dialect. Never changed once made."""

    def __init__(
        self, forms: Iterable[WireForm], endpoints: Iterable[Endpoint], refusals: Iterable[Refusal] = ()
    ) -> None:
        self.forms = {form.name: form for form in forms}
        self.endpoints = tuple(endpoints)
        self.refusals = tuple(refusals)
        self._by_place = {
            (provider, dialect): endpoint
            for endpoint in reversed(self.endpoints)
            for provider in endpoint.providers
            for dialect in endpoint.dialects
        }
        self._check()

    def endpoint(self, provider: str, dialect: str) -> Endpoint:
        """Return what `provider` takes in `dialect`, or what any server of the dialect takes."""
        endpoint = self._by_place.get((provider, dialect)) or self._by_place.get(("*", dialect))
        return endpoint or Endpoint(providers=(provider,), dialects=(dialect,), owner=provider)

    def choose(self, endpoint: Endpoint, *, maker: str, control: Sequence[Control], named: str | None) -> WireForm:
        """Return the form of a model with this control; the one that was `named` where the endpoint takes it."""
        offered = endpoint.makers.get(maker, endpoint.forms)
        if named in self.forms and (named in offered or self.forms[named].system_off):
            return self.forms[named]
        for name in offered:
            if self.forms[name].needs and set(self.forms[name].needs) <= set(control):
                return self.forms[name]
        plain = [name for name in offered if not self.forms[name].needs]
        return self.forms[plain[0] if plain else offered[-1]] if offered else NOTHING

    def _check(self) -> None:
        named = {name for row in self.endpoints for names in (row.forms, *row.makers.values()) for name in names}
        if missing := named - self.forms.keys():
            raise ConfigError(f"wire_forms.toml names forms that it does not have: {', '.join(sorted(missing))}")


NOTHING = WireForm(name="none")
"""Where nothing can be said."""


@cache
def builtin_forms() -> WireForms:
    """Return the forms, endpoints and refusals that come with bardo."""
    return read_forms(tomli.loads(files("bardo.catalog").joinpath("data/wire_forms.toml").read_text(encoding="utf-8")))


def read_forms(data: Mapping[str, Any]) -> WireForms:
    """Return typed forms. Raises ConfigError naming the mistake."""
    try:
        return WireForms(
            msgspec.convert(data.get("form", []), list[WireForm]),
            msgspec.convert(data.get("endpoint", []), list[Endpoint]),
            msgspec.convert(data.get("refusal", []), list[Refusal]),
        )
    except msgspec.ValidationError as problem:
        raise ConfigError(f"wire_forms.toml: {problem}") from problem
