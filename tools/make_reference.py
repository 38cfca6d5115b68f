"""Write the generated parts of the pages: what stands between `<!-- generated: name -->` and `<!-- end -->`.

Run it after a change of the catalog, the settings, the errors or the simulators; a test fails while a page is stale.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from bardo.catalog.load import builtin
from bardo.catalog.rows import ProviderRow, Quirks
from bardo.edge.settings import GatewaySettings, LogSettings, ProviderEntry, TimeoutSettings
from bardo.simulators import PRESETS, presets
from bardo.values.errors import (
    RETRYABLE_STATUSES,
    BardoError,
    CallerError,
    OperatorError,
    ProviderError,
    UpstreamRefused,
)

ROOT = Path(__file__).resolve().parents[1]
_SECTION = re.compile(r"(<!-- generated: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(map(_cell, line))} |\n" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", r"\|")


def code(words: Iterable[str]) -> str:
    """Return words as code, with commas."""
    return ", ".join(f"`{word}`" for word in words)


def providers() -> str:
    """Every preset: how it is spoken with and whose key it takes."""
    columns = ("preset", "who", "dialect", "key variable", "address", "bare model names")
    return table(columns, map(_provider, builtin().providers))


def _provider(row: ProviderRow) -> tuple[str, ...]:
    address = f"`{row.base_url}`" if row.base_url else "yours, as `base_url`"
    keys = " or ".join(f"`{name}`" for name in row.key_variables) or "yours, as `api_key_env`"
    return f"`{row.id}`", row.name, f"`{row.dialect}`", keys, address, code(row.models)


def provider_names() -> str:
    """Other names of the rows."""
    rows = ((f"`{row.id}`", code(row.aliases)) for row in builtin().providers if row.aliases)
    return table(("preset", "also called"), rows)


def quirks() -> str:
    """What is known of each provider beyond its dialect."""
    rows = ((f"`{row.id}`", ", ".join(_quirks(row))) for row in builtin().providers)
    return table(("preset", "differs in"), ((name, differs) for name, differs in rows if differs))


def _quirks(row: ProviderRow) -> Iterator[str]:
    plain = msgspec.structs.asdict(Quirks())
    for name, value in msgspec.structs.asdict(row.quirks).items():
        if value != plain[name]:
            yield f"`{name} = {_shown(value)}`"


def _shown(value: object) -> str:
    """Return a value as TOML writes it."""
    return msgspec.json.encode(value).decode()


MEANINGS = {
    "gateway.host": "the address to listen on",
    "gateway.port": "the port; 0 finds a free one",
    "gateway.workers": "processes that share the port",
    "gateway.max_body_bytes": "the largest request that is read",
    "gateway.max_reply_bytes": "the largest whole reply that is read from a provider",
    "timeouts.connect": "seconds to connect to a provider",
    "timeouts.first_byte": "seconds until the head of its reply, connecting included",
    "timeouts.idle": "seconds between two pieces of its reply",
    "log.enabled": "whether calls are logged at all",
    "log.path": "the log's file; empty: `bardo/log.db` in `XDG_DATA_HOME`, else in `~/.local/share`",
    "log.content": "whether prompts and replies are kept too",
    "providers.id": "any name, without a slash; clients may write `id/model`",
    "providers.preset": "a row of the [catalog](../reference/providers.md); empty: the row called like `id`",
    "providers.dialect": "instead of a preset, or to override the preset's: `openai_chat`, `openai_responses`, "
    "`anthropic_messages` or `gemini`",
    "providers.base_url": "the address up to and with the version; empty: the preset's",
    "providers.api_key_env": "the environment variable that holds the key; empty: the preset's, but none where "
    "`base_url` is your own",
    "providers.models": "the model ids it serves; left out: the provider is asked for its list",
    "providers.headers": "further headers of every call",
}
_TABLES: dict[str, type[msgspec.Struct]] = {
    "gateway": GatewaySettings,
    "timeouts": TimeoutSettings,
    "log": LogSettings,
    "providers": ProviderEntry,
}


def settings() -> str:
    """Every key of bardo.toml."""
    return table(("key", "default", "meaning"), _settings())


def _settings() -> Iterator[tuple[str, str, str]]:
    for name, struct in _TABLES.items():
        heading = f"[[{name}]]" if struct is ProviderEntry else f"[{name}]"
        for field in msgspec.structs.fields(struct):
            yield f"`{heading}` `{field.name}`", _default(field), MEANINGS[f"{name}.{field.name}"]


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "required"
    value = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    return "" if value is None else f"`{_shown(value)}`"


def errors() -> str:
    """Every error of a call."""
    columns = ("class", "`code`", "status", "whose turn", "another try", "what happened")
    return table(columns, map(_error, _below(BardoError)))


def _below(parent: type[BardoError]) -> Iterator[type[BardoError]]:
    for child in parent.__subclasses__():
        if child.__module__ == BardoError.__module__:
            yield child
            yield from _below(child)


def _error(error: type[BardoError]) -> tuple[str, ...]:
    own = issubclass(error, UpstreamRefused)
    retryable = "by its status" if own else "yes" if error.retryable else "no"
    said = (error.__doc__ or "").partition("\n")[0]
    status = "the provider's" if own else str(error.status)
    return f"`{error.__name__}`", f"`{error.__new__(error).code}`", status, _turn(error), retryable, said


def _turn(error: type[BardoError]) -> str:
    turns = ((CallerError, "the caller's"), (OperatorError, "the operator's"), (ProviderError, "the provider's"))
    return next((whose for parent, whose in turns if issubclass(error, parent)), "bardo's")


def retryable_statuses() -> str:
    """The statuses of a provider after which another provider is tried."""
    return code(map(str, sorted(RETRYABLE_STATUSES))) + "\n"


def simulators() -> str:
    """Every simulated provider."""
    return table(("simulator", "preset in `bardo.toml`", "models it lists"), map(_simulator, presets()))


def _simulator(name: str) -> tuple[str, ...]:
    provider = PRESETS[name]
    return f"`{name}`", f"`{provider.catalog_name}`", code(provider.models)


def decisions() -> str:
    """Every decision record, by its title."""
    records = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    titles = (record.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ") for record in records)
    rows = ((title.partition(" "), record.name) for title, record in zip(titles, records, strict=True))
    return table(("", ""), ((f"[{number}]({name})", title) for (number, _, title), name in rows))


SECTIONS: dict[str, Callable[[], str]] = {
    "decisions": decisions,
    "providers": providers,
    "provider-names": provider_names,
    "quirks": quirks,
    "settings": settings,
    "errors": errors,
    "retryable-statuses": retryable_statuses,
    "simulators": simulators,
}


def pages() -> list[Path]:
    """Return the pages that have generated parts."""
    return [page for page in sorted((ROOT / "docs").rglob("*.md")) if _SECTION.search(page.read_text(encoding="utf-8"))]


def renewed(text: str) -> str:
    """Return a page with its generated parts as they should be."""
    return _SECTION.sub(lambda found: f"{found[1]}\n{SECTIONS[found[2]]()}\n{found[3]}", text)


def names(text: str) -> list[str]:
    """Return which generated parts a page has."""
    return [found[2] for found in _SECTION.finditer(text)]


def main() -> None:
    """Renew every page."""
    for page in pages():
        text = page.read_text(encoding="utf-8")
        if renewed(text) != text:
            page.write_text(renewed(text), encoding="utf-8")
            print(f"renewed {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
