"""`bardo memory`: search the thinking of past calls, show one call's, forget it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from bardo.adapters.config.settings import load_settings
from bardo.surfaces.cli.groups import CommandGroup
from bardo.surfaces.cli.options import AsJson, Config, Since, since_time
from bardo.surfaces.render.console import print_stderr, show, show_json, show_text
from bardo.surfaces.render.tables import Column, TextTable, facts, table
from bardo.surfaces.render.wording import count, dollars, moment
from bardo.values.episodes import Episode, EpisodeMatch, MemoryStats
from bardo.values.errors import InvalidRequest
from bardo.values.reasoning import ReasoningChain, ReasoningVisibility
from bardo.wiring import open_memory

if TYPE_CHECKING:
    from rich.table import Table

    from bardo.adapters.stores.memory.reasoning_memory import ReasoningMemory

Tenant = Annotated[str | None, typer.Option("--tenant", help="Only this tenant's, as the log has it.")]
Key = Annotated[str | None, typer.Option("--key", metavar="ID", help="Only calls of this client's key.")]
Session = Annotated[str | None, typer.Option("--session", help="Only this conversation, by its name or its digest.")]


class SearchBy(StrEnum):
    """What a search compares."""

    BOTH = "both"
    WORDS = "words"
    MEANING = "meaning"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    memory = typer.Typer(cls=CommandGroup, no_args_is_help=True, rich_markup_mode=None)
    memory.callback(epilog='Example: bardo memory search "why two high tides"')(_memory)
    memory.command("search", epilog='Example: bardo memory search "high tides" --since 7d')(search)
    memory.command("show", epilog="Example: bardo memory show ep_2b7b702b")(show_episode)
    memory.command("forget", epilog="Example: bardo memory forget --before 30d --yes")(forget)
    memory.command("stats", epilog="Example: bardo memory stats --json")(stats)
    app.add_typer(memory, name="memory")


def _memory() -> None:
    """Search past thinking, show one call's, or delete it. [memory] in bardo.toml turns this on."""


def search(
    text: Annotated[str, typer.Argument(help='Words, "phrases in quotes", begin*.')],
    since: Since = None,
    model: Annotated[str | None, typer.Option(help="Only calls this model served.")] = None,
    tenant: Tenant = None,
    key: Key = None,
    session: Session = None,
    subsystem: Annotated[str | None, typer.Option(help="Only this subsystem or workload.")] = None,
    by: Annotated[SearchBy, typer.Option(help="What is compared.")] = SearchBy.BOTH,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100, help="How many episodes.")] = 10,
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """Search questions, thinking and answers by words and by meaning."""
    from bardo.adapters.stores.memory.episodes import EpisodeSelection

    now = time.time()
    chosen = EpisodeSelection(
        tenant=tenant, key=key, session=session, subsystem=subsystem, model=model, since=since_time(since, now)
    )
    with _opened(config) as memory:
        found = memory.search(text, chosen, limit=limit, by=by.value)
    if as_json:
        show_json(found)
    elif found:
        show(matches_table(found, now))
    else:
        print_stderr("no episodes that fit")


def show_episode(
    episode: Annotated[str, typer.Argument(metavar="ID", help="The episode's id or its call's, or their beginning.")],
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """Show one episode in full: the question, the reasoning steps, the answer."""
    from bardo.adapters.stores.memory.episodes import episode_fields

    with _opened(config) as memory:
        found = memory.show(episode)
    if found is None:
        raise InvalidRequest(f"no episode has the id {episode!r}", hint="`bardo memory search` lists ids")
    if as_json:
        show_json(episode_fields(found))
    else:
        show(episode_facts(found, time.time()))
        show_text(episode_text(found))


def forget(
    episode: Annotated[str | None, typer.Argument(metavar="ID", help="The whole id of an episode or its call.")] = None,
    before: Annotated[
        str | None, typer.Option("--before", metavar="TIME", help="Only older ones, written like --since of search.")
    ] = None,
    tenant: Tenant = None,
    key: Key = None,
    session: Session = None,
    everything: Annotated[bool, typer.Option("--all", help="All episodes.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """Remove episodes for good, and the content of their calls from the log.

    The rows of the calls stay, with tokens and costs. The file of the log is written anew.
    """
    from bardo.adapters.stores.memory.episodes import EpisodeSelection

    chosen = EpisodeSelection(
        id=episode, tenant=tenant, key=key, session=session, before=since_time(before, time.time(), option="--before")
    )
    if everything is (chosen != EpisodeSelection()):
        hint = "give an id, --before, --tenant, --key or --session, which may be combined; or --all"
        raise InvalidRequest("it must be said which episodes are forgotten", hint=hint)
    with _opened(config) as memory:
        number = memory.count(chosen)
        if number and not yes:
            # Ask whether so many episodes are to be forgotten.
            if not sys.stdin.isatty():
                raise InvalidRequest(
                    f"{_plural(number, 'episode')} would be forgotten", hint="add --yes where nobody can be asked"
                )
            typer.confirm(f"Forget {_plural(number, 'episode')} for good?", abort=True, err=True)
        erased = memory.forget(chosen)
    if as_json:
        show_json(erased)
        return
    print_stderr(
        f"{_plural(erased.episodes, 'episode')} forgotten, the content of {_plural(erased.calls, 'call')} erased"
    )
    if not erased.file_clean:
        print_stderr("the database could not be written anew now: parts may be left in its files until that is done")


def stats(tenant: Tenant = None, as_json: AsJson = False, config: Config = None) -> None:
    """Show what the memory holds."""

    with _opened(config) as memory:
        found = memory.stats(tenant=tenant)
    if as_json:
        show_json(msgspec.to_builtins(found))
    else:
        show(stats_facts(found, time.time()))


def _plural(number: int, what: str) -> str:
    return f"{count(number)} {what}{'' if number == 1 else 's'}"


@contextmanager
def _opened(config: Path | None) -> Iterator[ReasoningMemory]:
    memory: Any = open_memory(load_settings(config))
    try:
        yield memory
    finally:
        memory.close()


_COLUMNS = (
    Column("time", least=8),
    Column("id", least=12, keep=True),
    Column("model", keep=True, least=10),
    Column("thinking", right=True, least=8, drop=1),
    Column("found by", drop=2),
    Column("question", wrap=True),
    Column("excerpt", wrap=True),
)
_SHORT_ID = 15


def matches_table(found: Sequence[EpisodeMatch], now: float) -> TextTable:
    """Return what a search found, one episode a line."""
    return table(_COLUMNS, (_match(one, now) for one in found))


def _match(one: EpisodeMatch, now: float) -> tuple[str, ...]:
    by = "+".join(one.found_by)
    similar = "" if one.cosine is None else f" {one.cosine:.2f}"
    hidden = one.visibility == ReasoningVisibility.OPAQUE.value
    return (
        moment(one.started_at, now),
        one.id[:_SHORT_ID],
        one.model,
        "not visible" if hidden else count(one.reasoning_tokens),
        f"{by}{similar}",
        one.question[:120],
        one.excerpt,
    )


def episode_facts(episode: Episode, now: float) -> Table:
    """Return the facts about an episode besides its texts."""
    scores = ", ".join(f"{score:g} of 1" for score in episode.feedback)
    fits = {None: "", True: "fits its schema", False: "does not fit its schema"}[episode.schema_ok]
    pairs = (
        ("id", episode.id),
        ("call", episode.request_id),
        ("time", moment(episode.started_at, now)),
        ("served by", f"{episode.provider}/{episode.model}"),
        ("tenant", episode.tenant),
        ("key", episode.key_id),
        ("session", episode.session),
        ("subsystem", episode.subsystem),
        ("outcome", ", ".join(part for part in (episode.outcome, episode.verdict, fits) if part)),
        ("feedback", scores),
        ("thinking", _thinking(episode.reasoning)),
        ("tokens", f"{count(episode.input_tokens)} in, {count(episode.output_tokens)} out"),
        ("cost", dollars(episode.cost_usd)),
        ("tags", ", ".join(episode.tags)),
    )
    return facts((name, value) for name, value in pairs if value)


def episode_text(episode: Episode) -> str:
    """Return the texts of an episode: the question, each reasoning step with its kind, the answer."""
    return "\n\n".join(["", "question", episode.question.strip(), *_steps(episode), "answer", episode.answer.strip()])


def _steps(episode: Episode) -> Iterator[str]:
    if episode.reasoning.content is None:
        yield f"thinking: {_thinking(episode.reasoning)}"
    for step in episode.reasoning.steps:
        yield f"thinking: {step.step_type.value}"
        yield step.content.strip()


def _thinking(chain: ReasoningChain) -> str:
    tokens = f"{count(chain.reasoning_tokens, estimated=chain.tokens_approx)} tokens"
    return tokens if chain.content is not None else f"not visible, {tokens}"


def stats_facts(found: MemoryStats, now: float) -> Table:
    """Return what the memory holds."""
    vectors = ", ".join(f"{count(number)} of {name}" for name, number in found.vectors.items())
    pairs = (
        ("episodes", count(found.episodes)),
        ("not visible", count(found.not_visible)),
        ("tenants", count(found.tenants)),
        ("sessions", count(found.sessions)),
        ("thinking", f"{count(found.reasoning_tokens)} tokens"),
        ("oldest", "" if found.oldest is None else moment(found.oldest, now)),
        ("newest", "" if found.newest is None else moment(found.newest, now)),
        ("vectors", vectors or "none"),
    )
    return facts((name, value) for name, value in pairs if value)
