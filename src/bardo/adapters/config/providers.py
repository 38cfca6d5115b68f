"""The providers and models of `bardo.toml`: `[[providers]]`, `[[models]]`, `[[reasoning_formats]]`, `[[prices]]` and `[aliases]`.

Each table is read, checked, and laid over the catalog's row that it names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date, datetime
from difflib import get_close_matches
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias, TypeVar
from urllib.parse import urlsplit

import msgspec

from bardo.adapters.config.mistakes import Mistakes, Place, choices_of, explain
from bardo.adapters.config.secrets import HeaderVariable, check_headers, check_key_variables, variable_for, variables_of
from bardo.catalog.field_refusals import builtin_field_refusals
from bardo.catalog.fragments import leaves
from bardo.catalog.load import builtin
from bardo.catalog.matching import canonical
from bardo.catalog.models import ModelRow
from bardo.catalog.prices import PriceRow, PriceTier, problem_of
from bardo.catalog.rows import DialectName, Payment, ProviderRow, ProviderTraits
from bardo.planning.model_names import AMOUNTS, Alias, Aliases
from bardo.planning.route import Provider, address_names, provider_before
from bardo.reasoning.formats import BadDelimiter, ReasoningFormat
from bardo.values.errors import ConfigError, InvalidRequest
from bardo.values.secrets import shown_url

MOST_ADDRESSES = 64
# What people copy from the documentation of an API together with its base URL.
_API_PATHS = (
    "/chat/completions",
    "/completions",
    "/responses",
    "/messages",
    "/embeddings",
    "/models",
    "/api/chat",
    "/api/generate",
)


class AddressEntry(Protocol):
    """The fields read from a `[[providers]]` table."""

    @property
    def id(self) -> str: ...
    @property
    def base_url(self) -> str: ...
    @property
    def base_urls(self) -> tuple[str, ...]: ...


E = TypeVar("E", bound=msgspec.Struct)


def is_http_address(url: str) -> bool:
    """Whether a text is an http(s) address with a host."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def check_addresses(entry: AddressEntry, where: Callable[[str], str]) -> None:
    """Raise ConfigError for an address that ends in a path of the API.

    Also where `base_urls` stands beside `base_url`, is too long, names no address, or names one twice.
    """
    urls = entry.base_urls
    for key, url in (("base_url", entry.base_url), *(("base_urls", url) for url in urls)):
        ending = next((path for path in _API_PATHS if url.rstrip("/").endswith(path)), "")
        if ending:
            shorter = shown_url(url.rstrip("/").removesuffix(ending).removesuffix("/"))
            message = f"{where(key)}: the address of provider {entry.id!r} ends in {ending}, which bardo adds itself"
            raise ConfigError(message, hint=f'write {key} = "{shorter}"')
    if not urls:
        return
    place = f"{where('base_urls')}: provider {entry.id!r}"
    if entry.base_url:
        raise ConfigError(f"{place} has base_url and base_urls", hint="list all its addresses in base_urls")
    if len(urls) > MOST_ADDRESSES:
        raise ConfigError(f"{place} has {len(urls)} addresses", hint=f"list at most {MOST_ADDRESSES}")
    wrong = next((url for url in urls if not is_http_address(url)), None)
    if wrong is not None:
        raise ConfigError(f"{place} has {shown_url(wrong)!r} as an address", hint="give http(s) addresses")
    names = address_names(urls)
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"{place} names the server {twice} twice", hint="name each server once")


def at_first_address(entry: E) -> E:
    """Return a table with the first of its `base_urls` as its `base_url`, by which the rest of it is read."""
    urls: tuple[str, ...] = getattr(entry, "base_urls", ())
    return msgspec.structs.replace(entry, base_url=urls[0]) if urls else entry


FILE_NAME = "bardo.toml"
Where: TypeAlias = Callable[[str], str]
"""Tells the place of one of a table's keys."""
_UNNAMED = "provider"
_ADDRESS_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:_-]{0,99}")


class ProviderEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[providers]]` table."""

    id: str
    preset: str = ""
    dialect: DialectName | None = None
    base_url: str = ""
    base_urls: tuple[str, ...] = ()
    api_key_env: str | tuple[str, ...] = ""
    models: tuple[str, ...] | None = None
    headers: dict[str, str | HeaderVariable] = {}
    scope: dict[str, str] = {}
    private: bool | None = None
    self_funding: bool | None = None
    context_engineering: bool | None = None
    payment: tuple[Payment, ...] | None = None
    searches_per_day: int | None = None
    account: str | None = None
    drain_cancelled: bool | None = None
    extra_body: dict[str, Any] = {}
    model_extra_body: dict[str, dict[str, Any]] = {}
    required_body: tuple[str, ...] | None = None
    auth: Literal["client"] | None = None


def read_providers(
    rows: Sequence[dict[str, Any]], text: str, source: str, mistakes: Mistakes
) -> tuple[ProviderEntry, ...]:
    """Return the tables of `text`, which is the file's; their faults are added to `mistakes`."""
    seen: set[str] = set()
    entries: list[ProviderEntry] = []
    for index, row in enumerate(rows):
        place = Place(text, source, "providers", index)
        read = partial(mistakes.read, kind=ProviderEntry, place=place, choices=choices_of(ProviderEntry))
        made = read(row, key_variable=_variable_for_key(row))
        if made.value is None and "id" not in row:
            # Its other keys are checked too.
            made = read({"id": _UNNAMED, **row}, key_variable=_variable_for_key(row))
        if made.value is not None:
            _check_entry(made.value, made.wrong, place, seen - {_UNNAMED}, mistakes)
            seen.add(made.value.id)
            entries.append(made.value)
    return tuple(entries)


def provider_ids(entries: Sequence[ProviderEntry]) -> tuple[str, ...]:
    """Return the ids that providers have: those of the file, or where it has none those of the catalog."""
    return tuple(entry.id for entry in entries) or tuple(builtin().names())


def _variable_for_key(row: Mapping[str, Any]) -> str:
    """Return the variable that may hold the key of a provider: that of its preset, else one named after the provider."""
    name = str(row.get("id") or "")
    preset = builtin().provider(str(row.get("preset") or name))
    return next(iter(preset.key_variables if preset else ()), "") or variable_for(name)


def _check_entry(
    entry: ProviderEntry, wrong: frozenset[str], place: Place, seen: Collection[str], mistakes: Mistakes
) -> None:
    """Collect the mistakes of a table besides the keys named `wrong`."""
    lines = mistakes.lines
    for check in (
        partial(_check_id, seen=seen),
        _check_searches,
        _check_account,
        _check_auth,
        check_headers,
        check_addresses,
    ):
        with mistakes.collected_elsewhere(lines):
            check(entry, place.of)
    if wrong & {"preset", "dialect"} or (entry.id == _UNNAMED and not entry.preset):
        return
    with mistakes.collected_elsewhere(lines):
        row = _row(entry, place.of)
        for check_row in _ROW_CHECKS:
            with mistakes.collected_elsewhere(lines):
                check_row(entry, row, place.of)


def _check_id(entry: ProviderEntry, where: Where, *, seen: Collection[str]) -> None:
    if entry.id in seen or not entry.id or "/" in entry.id:
        hint = "ids are unique, not empty, and hold no slash"
        raise ConfigError(f"{where('id')}: provider id {entry.id!r}", hint=hint)


def _check_searches(entry: ProviderEntry, where: Where) -> None:
    if entry.searches_per_day is not None and entry.searches_per_day < 0:
        raise ConfigError(f"{where('searches_per_day')}: searches_per_day is negative", hint="write 0 or more")


def _check_account(entry: ProviderEntry, where: Where) -> None:
    if entry.account is not None and not entry.account.strip():
        hint = "write a name of your own, the same for all entries of one account, or leave it out"
        raise ConfigError(f"{where('account')}: account is empty", hint=hint)


def _check_auth(entry: ProviderEntry, where: Where) -> None:
    if entry.auth == "client" and variables_of(entry):
        hint = "leave api_key_env out, and make another entry of a key of your own: calls fail over to it"
        raise ConfigError(f"{where('api_key_env')}: provider {entry.id!r} asks clients for their own logins", hint=hint)


def _check_key_variables(entry: ProviderEntry, row: ProviderRow, where: Where) -> None:
    check_key_variables(entry, row.key_variables, where)


def provider_of(entry: ProviderEntry, source: str = FILE_NAME, where: Where | None = None) -> Provider:
    """Return the provider that a table describes.

    Raises ConfigError for an unknown preset, a missing address, or a key in the place of its variable's name.

    `where` tells the place of one of the table's keys; `source` is named without it.
    """
    where = where or (lambda key: source or "the settings")
    preset = _row(entry, where)
    check_headers(entry, where)
    check_addresses(entry, where)
    for check in _ROW_CHECKS:
        check(entry, preset, where)
    entry = at_first_address(entry)
    row = _overridden(preset, entry)
    return Provider(
        id=entry.id,
        row=row,
        base_url=_address(entry, row, where),
        models=entry.models or (),
        configured_models=entry.models is not None,
        addresses=entry.base_urls if len(entry.base_urls) > 1 else (),
        private=entry.private,
        drain_cancelled=entry.drain_cancelled,
        extra_body=entry.extra_body,
        model_extra_body=tuple(entry.model_extra_body.items()),
        required_body=entry.required_body,
    )


def _check_extra_body(entry: ProviderEntry, row: ProviderRow, where: Where) -> None:
    _check_required_body(entry, where)
    if not entry.extra_body and not entry.model_extra_body:
        return
    # Loaded here, because it needs the dialects, and most files set no such fields.
    from bardo.planning.default_fields import check_default_fields

    changed = _overridden(row, entry)
    rows = (changed, *(msgspec.structs.replace(changed, dialect=endpoint.dialect) for endpoint in changed.endpoints))
    tables = [("extra_body", "extra_body", entry.extra_body)]
    tables += [("model_extra_body", f"model_extra_body.{glob!r}", own) for glob, own in entry.model_extra_body.items()]
    for key, name, fields in tables:
        try:
            check_default_fields(fields, rows, name)
        except InvalidRequest as problem:
            message = f"{where(key)}: provider {entry.id!r}: {problem.message}"
            raise ConfigError(message, hint=problem.hint) from problem


def _check_required_body(entry: ProviderEntry, where: Where) -> None:
    """Raise ConfigError for a required field that is no default field of the table, nor one that aliases are known to have."""
    paths_known = {*builtin_field_refusals().required_defaults}
    for fields in (entry.extra_body, *entry.model_extra_body.values()):
        paths = [path.split(".") for path, _ in leaves(fields)]
        paths_known |= {".".join(path[:end]) for path in paths for end in range(1, len(path) + 1)}
    unknown = next((path for path in entry.required_body or () if path not in paths_known), None)
    if unknown is not None:
        near = get_close_matches(unknown, paths_known, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else "name a dotted path of extra_body or model_extra_body"
        place = f"{where('required_body')}: provider {entry.id!r}"
        raise ConfigError(f"{place} requires {unknown!r}, which is none of its default fields", hint=hint)


def check_aliases(aliases: Mapping[str, Alias], configured: Sequence[Provider], place: Place) -> None:
    """Raise ConfigError for a default field of an alias that bardo writes itself, at the provider of its model."""
    own = {name: alias for name, alias in aliases.items() if alias.extra_body}
    if not own:
        return
    from bardo.planning.default_fields import check_default_fields

    for name, alias in own.items():
        provider = provider_before(alias.model, configured)
        rows = [entry.row for entry in configured] if provider is None else [place.row for place in provider.endpoints]
        try:
            check_default_fields(alias.extra_body, tuple(rows or [builtin().providers[0]]), "extra_body")
        except InvalidRequest as problem:
            message = f"{place.of(name)}: alias {name!r}: {problem.message}"
            raise ConfigError(message, hint=problem.hint) from problem


def _check_address(entry: ProviderEntry, row: ProviderRow, where: Where) -> None:
    _address(at_first_address(entry), row, where)


def _address(entry: ProviderEntry, row: ProviderRow, where: Where) -> str:
    """Return the address that calls go to. Raises ConfigError where there is none that can be used."""
    base_url = entry.base_url or _filled_address(entry, row, where)
    if not is_http_address(base_url):
        message = f"{where('base_url')}: provider {entry.id!r} has no usable base_url"
        raise ConfigError(message, hint="give its http(s) address")
    return base_url


def _filled_address(entry: ProviderEntry, row: ProviderRow, where: Where) -> str:
    """Return the row's address with the values of `scope`. Raises ConfigError for a missing value, or one that cannot be in an address."""
    if not row.address_fields:
        return row.base_url
    address = row.base_url
    for name in row.address_fields:
        value = entry.scope.get(name, "")
        if not _ADDRESS_PART.fullmatch(value):
            example = ", ".join(f'{field} = "…"' for field in row.address_fields)
            problem = f"names no {name}" if not value else f"has an invalid {name}"
            raise ConfigError(
                f"{where('scope')}: provider {entry.id!r} {problem}", hint=f"write scope = {{ {example} }}, or base_url"
            )
        host = row.hosts.get(value)
        if host:
            address = urlsplit(address)._replace(netloc=host).geturl()
        address = address.replace(f"{{{name}}}", value)
    return address


def _check_scope(entry: ProviderEntry, row: ProviderRow, where: Where) -> None:
    """Raise ConfigError for a field of `scope` that the provider's requests do not have."""
    fields = (*row.scope_fields, *row.address_fields)
    unknown = sorted(entry.scope.keys() - set(fields))
    if unknown:
        names = " or ".join(fields)
        hint = f"provider {row.id} takes {names}" if names else f"leave it out: provider {row.id} takes none"
        raise ConfigError(f"{where('scope')}: scope has no field {unknown[0]!r}", hint=hint)


_ROW_CHECKS: tuple[Callable[[ProviderEntry, ProviderRow, Where], None], ...] = (
    _check_key_variables,
    _check_scope,
    _check_address,
    _check_extra_body,
)
"""What of a table is compared with the catalog's row that it names. Each raises ConfigError."""


def _row(entry: ProviderEntry, where: Where) -> ProviderRow:
    catalog = builtin()
    wanted = entry.preset or entry.id
    row = catalog.generic(entry.dialect) if entry.dialect and _by_dialect(entry) else catalog.provider(wanted)
    if row is not None:
        endpoint = next((at for at in row.at_endpoints if at.dialect == entry.dialect), None)
        if endpoint is None:
            return row
        return msgspec.structs.replace(endpoint, endpoints=(), only_models=(), not_models=(), lacks=())
    near = get_close_matches(wanted, catalog.names(), n=3)
    own = 'add preset = "openai-compatible", or another preset of `bardo catalog`, or dialect = "anthropic_messages" or the like'
    hint = f"did you mean {' or '.join(near)}?" if near else own
    raise ConfigError(f"{where('preset' if entry.preset else 'id')}: no preset is called {wanted!r}", hint=hint)


def _by_dialect(entry: ProviderEntry) -> bool:
    """Whether the table's dialect alone says how to speak with the provider: neither `preset` nor `id` names a row that speaks it."""
    if entry.preset or not entry.dialect:
        return False
    named = builtin().provider(entry.id)
    return named is None or all(row.dialect != entry.dialect for row in named.at_endpoints)


def _overridden(row: ProviderRow, entry: ProviderEntry) -> ProviderRow:
    own_address = bool(entry.base_url) and entry.base_url.rstrip("/") != row.base_url.rstrip("/")
    changes: dict[str, Any] = {}
    if entry.dialect and entry.dialect != row.dialect:
        changes["dialect"] = entry.dialect
        changes["counts_tokens"] = False
    if entry.headers:
        given = {name.lower(): value for name, value in entry.headers.items()}
        fixed = {name: value for name, value in given.items() if isinstance(value, str)}
        changes["headers"] = {name: value for name, value in row.headers.items() if name not in given} | fixed
        changes["header_variables"] = {name: value.env for name, value in given.items() if not isinstance(value, str)}
    if entry.scope:
        changes["scope"] = entry.scope
    changes |= {name: value for name in ProviderTraits.__struct_fields__ if (value := getattr(entry, name)) is not None}
    if entry.searches_per_day is not None:
        changes["searches_per_day"] = entry.searches_per_day
    if entry.auth == "client":
        # Whatever its usual key is, calls go by the client's own.
        changes |= {"auth": "client", "key_variables": (), "several_keys": False}
        changes["endpoints"] = tuple(msgspec.structs.replace(endpoint, auth=None) for endpoint in row.endpoints)
    elif variables := variables_of(entry):
        changes["key_variables"] = variables
        changes["several_keys"] = len(variables) > 1
    elif own_address:
        # The vendor's key must not travel to somebody else's address.
        changes["key_variables"] = ()
    if own_address and _by_dialect(entry):
        # The row stands in for any server of its dialect: which models this one serves, only its list says.
        changes["models"] = ()
        if row.attribution:
            # It is unknown whether this one takes the block out of the prompt.
            changes["attribution"] = "stable"
    return msgspec.structs.replace(row, **changes) if changes else row


def read_aliases(table: Any, text: str, source: str) -> dict[str, Alias]:
    """Return the aliases of a file by their names. Raises ConfigError naming the line."""
    place = Place(text, source, "aliases")
    if not isinstance(table, Mapping):
        raise ConfigError(
            f"{place.of('')}: aliases is not a table", hint='write [aliases] and lines of "name" = "model"'
        )
    aliases = {name: _alias(name, value, place) for name, value in table.items()}
    try:
        Aliases(aliases)
    except ConfigError as problem:
        raise ConfigError(f"{place.of('')}: {problem.message}", hint=problem.hint) from problem
    return aliases


def _alias(name: str, value: Any, place: Place) -> Alias:
    if name.count("*") > 1:
        raise ConfigError(f"{place.of(name)}: alias {name!r} has more than one *", hint="one stands for any text")
    try:
        alias = msgspec.convert(_with_fallbacks(name, value, place), Alias)
    except msgspec.ValidationError as problem:
        choices = dict.fromkeys(("effort", "forced_effort", "max_effort"), AMOUNTS)
        raise explain(problem, place.inside(name), Alias.__struct_fields__, choices) from problem
    for model in (alias.model, *alias.fallbacks):
        if not model or ("*" in model and "*" not in name):
            raise ConfigError(f"{place.of(name)}: alias {name!r} names no model", hint='write "provider/model"')
    return alias


def _with_fallbacks(name: str, value: Any, place: Place) -> Any:
    """Return the table of an alias: a text is its model, and of a list of models those after the first are its fallbacks."""
    table = value if isinstance(value, Mapping) else {"model": value}
    models = table.get("model")
    if not isinstance(models, list):
        return table
    if not models or "fallbacks" in table:
        raise ConfigError(
            f"{place.of(name)}: alias {name!r} names no model, or its fallbacks twice",
            hint='write model = ["provider/model", "provider/other"]',
        )
    return {**table, "model": models[0], "fallbacks": models[1:]}


_HINTS = {
    "match": 'name models or globs: match = ["my-model*"]',
    "from": "write the day from which the price holds: from = 2026-11-23",
}
_AMOUNT = "prices are US dollars per million tokens: input = 3.0; leave out what is not known"
_ONE_OR_MORE = ("match", "provider")


def read_prices(tables: Sequence[Mapping[str, Any]], text: str, source: str) -> tuple[PriceRow, ...]:
    """Return the rows of `text`, which is the file's. Raises ConfigError naming the line."""
    return tuple(_price(table, Place(text, source, "prices", index)) for index, table in enumerate(tables))


def _price(table: Mapping[str, Any], place: Place) -> PriceRow:
    try:
        row = msgspec.convert({name: _plain(name, value) for name, value in table.items()}, PriceRow)
    except msgspec.ValidationError as problem:
        fields = (*PriceRow.__struct_encode_fields__, *PriceTier.__struct_encode_fields__)
        raise explain(problem, place, tuple(dict.fromkeys(fields))) from problem
    if wrong := problem_of(row):
        key, message = wrong
        raise ConfigError(f"{place.of(key)}: {message}", hint=_HINTS.get(key, _AMOUNT))
    return row


def _plain(name: str, value: Any) -> Any:
    """Return a value in the form of the row: a single glob is a list of one, and a day of TOML is its text."""
    if name in _ONE_OR_MORE and isinstance(value, str):
        return [value]
    if name == "from" and isinstance(value, date) and not isinstance(value, datetime):
        return value.isoformat()
    return value


_FORMATS = "reasoning_formats"


def read_formats(tables: Sequence[Mapping[str, Any]], text: str, source: str) -> tuple[ReasoningFormat, ...]:
    """Return the rows of `text`, which is the file's. Raises ConfigError naming the line."""
    seen: dict[str, str] = {}
    return tuple(_format(table, Place(text, source, _FORMATS, index), seen) for index, table in enumerate(tables))


def _format(table: Mapping[str, Any], place: Place, seen: dict[str, str]) -> ReasoningFormat:
    try:
        row = msgspec.convert(table, ReasoningFormat)
    except msgspec.ValidationError as problem:
        if isinstance(problem.__cause__, BadDelimiter):
            bad = problem.__cause__
            raise ConfigError(f"{place.of(bad.key)}: {bad.message}", hint=bad.hint) from bad
        raise explain(problem, place, ReasoningFormat.__struct_fields__, choices_of(ReasoningFormat)) from problem
    _check_name(row, place, seen)
    for key in _unset(row):
        raise ConfigError(f"{place.of(key)}: format {row.name!r} has no {key!r}", hint=f'add {key} = "…"')
    if not all(pattern.strip() for pattern in row.patterns):
        hint = 'an empty pattern fits every model: write "*" where that is meant'
        raise ConfigError(f"{place.of('patterns')}: format {row.name!r} has an empty pattern", hint=hint)
    return row


def _check_name(row: ReasoningFormat, place: Place, seen: dict[str, str]) -> None:
    name = canonical(row.name)
    if not name:
        raise ConfigError(f"{place.of('name')}: the format's name is empty", hint='give it one: name = "lab"')
    if name in seen:
        hint = "names are unique; case, - and _ make no difference"
        raise ConfigError(f"{place.of('name')}: a second format is called {row.name!r}", hint=hint)
    seen[name] = row.name


def _unset(row: ReasoningFormat) -> list[str]:
    """Return what a format that is read by delimiters lacks; it may have neither, and then leaves text as it is."""
    if row.machine != "delimiters" or not (row.starts or row.ends):
        return []
    return [key for key, given in (("start", row.starts), ("end", row.ends)) if not given]


_MODELS = "models"


def read_models(tables: Sequence[Mapping[str, Any]], text: str, source: str) -> tuple[ModelRow, ...]:
    """Return the rows of `text`, which is the file's. Raises ConfigError naming the line."""
    return tuple(_model(table, Place(text, source, _MODELS, index)) for index, table in enumerate(tables))


def _model(table: Mapping[str, Any], place: Place) -> ModelRow:
    try:
        row = msgspec.convert(table, ModelRow)
    except msgspec.ValidationError as problem:
        raise explain(problem, place, ModelRow.__struct_fields__, choices_of(ModelRow)) from problem
    if row.contradicts_itself:
        hint = "say one of the two: reasoning_wire is the control in one word"
        raise ConfigError(
            f"{place.of('reasoning_wire')}: the row says another control than its reasoning_wire", hint=hint
        )
    if not row.match or not all(row.match):
        hint = 'name models or globs: match = ["my-model*"]'
        raise ConfigError(f"{place.of('match')}: the row fits no model", hint=hint)
    return row
