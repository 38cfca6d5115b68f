"""The texts of a prompt that layers may shorten: where each stands, how long it is, and what must stay as it is.

A user's texts, the results of tools and the text of documents are parts. What a model said, what the system prompt says, opaque state,
calls, and everything from the last turns on are none, so a layer that changes only parts cannot break them.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Literal

import msgspec

from bardo.catalog.replay import builtin_replay
from bardo.values.blocks import Block, Carried, DocumentBlock, ImageBlock, TextBlock, ToolCallBlock, ToolResultBlock
from bardo.values.request import Message
from bardo.values.usage import IMAGE_TOKENS, MESSAGE_TOKENS, block_tokens, estimate_tokens

PartKind = Literal["result", "text", "document", "picture"]
TEXTS: frozenset[PartKind] = frozenset({"result", "text", "document"})


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One text, or a picture that a tool gave back, whose text is its data or its address.

    `message`, `block` and `piece` say where it stands; `piece` is the place in a tool's result, -1 outside of one. `key` names it by its
    text and by how many parts with this text stand before it, so it is the same in every turn. `before` is how many tokens of the
    conversation stand before it, `tokens` how many it has; both are estimates. `source` says for a person where it is from.
    """

    message: int
    block: int
    piece: int
    kind: PartKind
    text: str
    key: str
    before: int
    tokens: int
    source: str


def parts_of(
    messages: Sequence[Message], *, least_characters: int, until: int, kinds: Container[PartKind] = TEXTS
) -> list[Part]:
    """Return the parts of some kinds in the messages before the place `until`, in order: pictures, and texts of at least some length."""
    parts: list[Part] = []
    counts: dict[str, int] = {}
    names = _tool_names(messages[:until])
    before = 0
    for place, message in enumerate(messages[:until]):
        before += MESSAGE_TOKENS
        for number, block in enumerate(message.blocks):
            for piece, kind, text, source in _texts(message, block, names):
                if kind in kinds and (kind == "picture" or len(text) >= least_characters):
                    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
                    counts[digest] = counts.get(digest, 0) + 1
                    parts.append(
                        Part(
                            message=place,
                            block=number,
                            piece=piece,
                            kind=kind,
                            text=text,
                            key=f"{digest}.{counts[digest]}",
                            before=before,
                            tokens=IMAGE_TOKENS if kind == "picture" else estimate_tokens(text),
                            source=source,
                        )
                    )
            before += block_tokens(block)
    return parts


def message_tokens(message: Message) -> int:
    """Estimate how many tokens a message has."""
    return MESSAGE_TOKENS + sum(map(block_tokens, message.blocks))


def is_prompt(message: Message) -> bool:
    """Whether a message is something that a user said, and not only what tools gave back."""
    return message.role == "user" and not all(isinstance(block, ToolResultBlock) for block in message.blocks)


def last_prompt(messages: Sequence[Message]) -> int:
    """Return the place of the last thing that a user said; -1 where there is none."""
    return next((place for place in reversed(range(len(messages))) if is_prompt(messages[place])), -1)


def turns_so_far(messages: Sequence[Message]) -> int:
    """Return how many turns of the model a conversation has, one at least."""
    return max(1, sum(message.role == "assistant" for message in messages))


def kept_from(messages: Sequence[Message], turns: int) -> int:
    """Return from which place on everything stays: the last `turns` turns of the model, one at least, with all that follows them.

    0 where there are not as many: then the whole conversation stays.
    """
    seen = 0
    for place in reversed(range(len(messages))):
        if messages[place].role == "assistant":
            seen += 1
            if seen >= turns:
                return place
    return 0


def is_bound(model: str) -> bool:
    """Whether a model's thinking is valid only behind the prompt that it was made behind. Source: catalog/data/replay.toml."""
    return builtin_replay().may_bind(model)


def with_texts(messages: Sequence[Message], texts: Mapping[tuple[int, int, int], str]) -> tuple[Message, ...]:
    """Return messages with other texts for some parts, which are named by message, block and piece. The rest is the same."""
    changed = list(messages)
    by_message: dict[int, dict[tuple[int, int], str]] = {}
    for (place, block, piece), text in texts.items():
        by_message.setdefault(place, {})[block, piece] = text
    for place, inner in by_message.items():
        blocks = list(messages[place].blocks)
        for (number, piece), text in inner.items():
            blocks[number] = _with_text(blocks[number], piece, text)
        changed[place] = msgspec.structs.replace(messages[place], blocks=tuple(blocks))
    return tuple(changed)


def _texts(message: Message, block: Block, names: Mapping[str, str]) -> Iterator[tuple[int, PartKind, str, str]]:
    """Yield the piece, the kind, the text and the source of each part of a block."""
    if message.role != "user":
        return
    match block:
        case TextBlock(text=text, opaque=()):
            yield -1, "text", text, "what the user wrote"
        # Citations name places in a document by their characters, so a document that is to be cited stays whole.
        case DocumentBlock(text=text, name=name, carried=carried) if text and not _is_cited(carried):
            yield -1, "document", text, f"the document {name}" if name else "a document"
        case ToolResultBlock(call_id=call_id, content=content):
            name = block.name or names.get(call_id, "")
            source = f"the result of {name}" if name else "the result of a tool"
            for piece, inner in enumerate(content):
                if isinstance(inner, TextBlock) and not inner.opaque:
                    yield piece, "result", inner.text, source
                elif isinstance(inner, ImageBlock):
                    yield piece, "picture", inner.data or inner.url, source
        case _:
            return


def _is_cited(carried: Carried | None) -> bool:
    return carried is not None and "citations" in carried.fields


def _marker(carried: Carried | None) -> Carried | None:
    """Return the client's marker for the cache, which stays where it is; other fields belong to the picture that was there."""
    if carried is None or "cache_control" not in carried.fields:
        return None
    return Carried(carried.dialect, {"cache_control": carried.fields["cache_control"]})


def _tool_names(messages: Sequence[Message]) -> dict[str, str]:
    return {
        block.id: block.name
        for message in messages
        if message.role == "assistant"
        for block in message.blocks
        if isinstance(block, ToolCallBlock)
    }


def _with_text(block: Block, piece: int, text: str) -> Block:
    if isinstance(block, ToolResultBlock):
        content = list(block.content)
        inner = content[piece]
        content[piece] = (
            msgspec.structs.replace(inner, text=text)
            if isinstance(inner, TextBlock)
            else TextBlock(text, carried=_marker(inner.carried if isinstance(inner, ImageBlock) else None))
        )
        return msgspec.structs.replace(block, content=tuple(content))
    assert isinstance(block, TextBlock | DocumentBlock)
    return msgspec.structs.replace(block, text=text)
