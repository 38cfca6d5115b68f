"""Episodes of the reasoning memory as people read them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from bardo.surfaces.render.tables import Column, TextTable, facts, table
from bardo.surfaces.render.wording import count, dollars, moment
from bardo.values.episodes import Episode, EpisodeMatch, MemoryStats
from bardo.values.reasoning import ReasoningChain, ReasoningVisibility

if TYPE_CHECKING:
    from rich.table import Table

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
    """Return what is known of an episode besides its texts."""
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
