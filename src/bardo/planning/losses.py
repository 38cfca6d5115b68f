"""Losses that change what a request means: refused before anything is sent, unless the caller allows them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from bardo.catalog.hosted_tools import hosted_tools
from bardo.catalog.meaningful import MeaningfulFields, builtin_meaningful
from bardo.catalog.shared_fields import default_dialect
from bardo.dialects.shared.media import sound_of, takes_sound
from bardo.values.blocks import Block, DocumentBlock, ImageBlock, ToolResultBlock, UnknownBlock
from bardo.values.degradation import UNLISTED, Degradation
from bardo.values.errors import Unsupported
from bardo.values.request import Request, ToolChoice

ALL = "*"
_MEANINGFUL = frozenset((UnknownBlock, DocumentBlock, ImageBlock))


class Loss(NamedTuple):
    """What would be lost: the names it may be allowed by (the first is told), why, what to do instead, and the dialect's code."""

    names: tuple[str, ...]
    why: str
    instead: str = "leave it out"
    code: str = ""


def refuse_losses(
    request: Request,
    provider: str,
    spoken: Collection[str | None],
    reported: Iterable[Degradation],
    *,
    choice: ToolChoice | None,
    parts: Collection[type[Block]],
) -> None:
    """Raise Unsupported where the request would lose what changes its meaning, and the caller does not allow it.

    `spoken` are the dialects that the provider reads as they come, `reported` what the encoder says of the request. `choice` is the
    caller's own among the tools: an answer by schema may be a call that bardo forces. `parts` are the classes of blocks in its messages.
    """
    names = {degradation.what for degradation in reported}
    if not names and not request.extra:
        return
    rows = builtin_meaningful()
    allowed = request.options.allow_loss
    if ALL in allowed:
        return
    # A list of differences that is full names no more of them: then whatever the provider does not speak counts as lost.
    all_lost = UNLISTED in names and request.dialect not in spoken
    losses = [*_fields(request, provider, rows, names, all_lost=all_lost)]
    if names:
        if not _MEANINGFUL.isdisjoint(parts):
            losses += _parts(request, rows, spoken, names)
        losses += _tools(request, spoken, names, choice)
    refused = [loss for loss in dict.fromkeys(losses) if not set(loss.names) & set(allowed)]
    if refused:
        raise _refusal(refused, provider)


def _fields(
    request: Request, provider: str, rows: MeaningfulFields, reported: Collection[str], *, all_lost: bool
) -> Iterator[Loss]:
    for row in rows.fields.get(request.dialect, ()):
        value = request.extra.get(row.name)
        if value is not None and row.matters(value) and (all_lost or row.name in reported or row.absent(provider)):
            yield Loss((row.name,), row.why, row.instead, row.code)


def _parts(
    request: Request, rows: MeaningfulFields, spoken: Collection[str | None], reported: Collection[str]
) -> Iterator[Loss]:
    for message in request.messages:
        for block in _with_results(message.blocks):
            if isinstance(block, UnknownBlock) and block.dialect not in spoken:
                if takes_sound(spoken) and sound_of(block) is not None:
                    continue
                kind = rows.part(block.dialect, message.role, block.value)
                if kind:
                    yield Loss((kind, *_plain_names(kind, block.value)), "the provider does not take such a part")
            elif isinstance(block, DocumentBlock) and message.role == "user" and "document" in reported:
                why = "the provider does not take this document"
                yield Loss(("document", "file", "input_file"), why, "send it in another form, or leave it out")
            elif isinstance(block, ImageBlock) and message.role == "user" and "image" in reported:
                yield Loss(("image",), "the provider does not take this picture", "send its data, or leave it out")


def _with_results(blocks: Iterable[Block]) -> Iterator[Block]:
    """Return blocks, and what the results of tools among them hold: a model that is not shown it answers something else."""
    for block in blocks:
        if isinstance(block, ToolResultBlock):
            yield from block.content
        else:
            yield block


def _plain_names(kind: str, value: object) -> Iterator[str]:
    """Return what else a part is called: the medium that its own type or its content names."""
    for medium in ("audio", "video", "document", "file"):
        inner = value.get(kind) if isinstance(value, dict) else None
        content = str(inner.get("mimeType") or inner.get("mime_type") or "") if isinstance(inner, dict) else ""
        if medium in kind.lower() or content.startswith(f"{medium}/"):
            yield medium


def _tools(
    request: Request, spoken: Collection[str | None], reported: Collection[str], choice: ToolChoice | None
) -> Iterator[Loss]:
    """Return hosted tools that must be called, or may be the call that must be made, or are all the tools there are."""
    foreign = [
        tool
        for tool in request.tools
        if tool.hosted
        and (tool.carried is None or tool.carried.dialect not in spoken)
        # One that is not reported has a counterpart there.
        and (f"tool {tool.name}" in reported or UNLISTED in reported)
    ]
    if request.extra and not request.tools:
        yield from _hosted_fields(request, reported)
    if not foreign:
        return
    forced = choice is not None and choice.mode in ("required", "named")
    if not forced and len(foreign) < len(request.tools):
        return
    instead = "give a function of your own, or leave the choice to the model"
    for tool in foreign:
        if not forced:
            why = f"{tool.name} is run by its own provider alone, and without it the answer would come from the model's memory"
            yield Loss(("tools", tool.name), why, "ask a model whose provider runs it, or give a function of your own")
        elif choice is not None and (choice.mode == "required" or choice.name == tool.name):
            why = f"a tool must be called, and only its own provider runs {tool.name}"
            yield Loss(("tool_choice", "tools", tool.name), why, instead)


def _hosted_fields(request: Request, reported: Collection[str]) -> Iterator[Loss]:
    """Return fields that are a hosted tool, where there is no other tool: Chat's `web_search_options`."""
    for tool in hosted_tools():
        form = tool.form_of(request.dialect or default_dialect())
        if form is None or form.field not in request.extra or form.field not in reported:
            continue
        why = "nothing would be searched, and the answer would come from the model's memory"
        instead = "ask a model whose provider searches, or set [search] in bardo.toml"
        yield Loss((form.field, "tools", tool.name), why, instead)


def _refusal(refused: list[Loss], provider: str) -> Unsupported:
    names = list(dict.fromkeys(loss.names[0] for loss in refused))
    listed = ", ".join(f'"{name}"' for name in names)
    first = refused[0]
    message = (
        f"{provider} cannot take {', '.join(names)}, and without it the request would mean something else: {first.why}"
    )
    hint = f'{first.instead}; or allow the loss with "bardo": {{"allow_loss": [{listed}]}}'
    code = next((loss.code for loss in refused if loss.code), "")
    details = {**({"error_code": code} if code else {}), "unsupported": names}
    return Unsupported(message, hint=hint, param=names[0], details=details)
