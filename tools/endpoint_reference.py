"""The generated parts of the page about endpoints: those of each provider, ranks of losses, and the fields of OpenAI's dialects."""

from __future__ import annotations

from collections.abc import Iterator

from bardo.catalog.endpoint_choice import RANKS, choice_rows
from bardo.catalog.load import builtin
from bardo.catalog.rows import ProviderRow
from bardo.catalog.shared_fields import shared_between

CHAT, RESPONSES = "openai_chat", "openai_responses"
# What a request says in another form in either dialect, and bardo writes in the form of each.
SAID = {
    "messages": "input, instructions",
    "max_completion_tokens": "max_output_tokens",
    "max_tokens": "max_output_tokens",
    "response_format": "text.format",
    "reasoning_effort": "reasoning.effort",
    "logprobs": "include: message.output_text.logprobs",
    "verbosity": "text.verbosity",
    "function_call": "tool_choice",
    "functions": "tools",
}
SAME_FORM = ("model", "parallel_tool_calls", "stream", "stream_options", "temperature", "tool_choice", "tools", "top_p")


def endpoints() -> Iterator[tuple[str, ...]]:
    """Yield each provider's endpoints where it has several: its first one, and the others."""
    for row in builtin().providers:
        if row.endpoints:
            yield f"`{row.id}`", _shown(row.at_endpoints[0]), "; ".join(map(_shown, row.at_endpoints[1:]))


def _shown(row: ProviderRow) -> str:
    parts = [f"`{row.dialect}`"]
    if row.only_models:
        parts.append(f"only {_code(row.only_models)}")
    if row.not_models:
        parts.append(f"not {_code(row.not_models)}")
    if row.lacks:
        parts.append(f"without {', '.join(row.lacks)} in replies")
    return ", ".join(parts)


def _code(words: tuple[str, ...]) -> str:
    return " ".join(f"`{word}`" for word in words)


def ranks() -> Iterator[tuple[str, str]]:
    """Yield each rank of losses, what matters most first, and the names of differences that are of it."""
    rows = choice_rows().loss
    for rank in RANKS:
        found = [name for row in rows if row.rank == rank for name in row.names]
        yield rank, _code(tuple(found)) if found else "all that no other rank names"


def openai_fields() -> Iterator[tuple[str, str, str]]:
    """Yield each field of a request that OpenAI's library names for one of its dialects, where the other has it, and what becomes of it."""
    from openai.types.chat import completion_create_params as chat
    from openai.types.responses import response_create_params as responses

    shared = shared_between(CHAT, RESPONSES)[0]
    of_chat = set(chat.CompletionCreateParamsBase.__annotations__) | {"stream"}
    of_responses = set(responses.ResponseCreateParamsBase.__annotations__) | {"stream"}
    same = {path.partition(".")[0] for path in shared.same}
    written = {name for names in SAID.values() for name in names.replace(":", ",").split(", ")}
    paired = {name.partition(".")[0] for name in written}
    for name in sorted(of_chat):
        if name in same | set(SAME_FORM):
            yield f"`{name}`", f"`{name}`", "carried"
        elif name in SAID:
            yield f"`{name}`", SAID[name], "carried, in the other's form"
        else:
            yield f"`{name}`", "", "lost, which is reported; or this endpoint is taken"
    for name in sorted(of_responses - of_chat - paired):
        yield "", f"`{name}`", "lost, which is reported or refused; or this endpoint is taken"
