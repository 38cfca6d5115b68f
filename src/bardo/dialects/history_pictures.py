"""Pictures of earlier replies that a client sends back, for a target of another dialect.

A client has them in the form of its own dialect: a part, an item, or a list beside the content. Gemini, Interactions and Ollama take
pictures from the model; elsewhere only the user may send one, so there they open the user's next turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import is_
from typing import Any

import msgspec

from bardo.dialects.losses import Losses
from bardo.dialects.pictures import CHAT_PICTURES, INTERACTIONS_PICTURES, RESPONSES_PICTURES, PictureForm
from bardo.values.blocks import Block, Carried, ImageBlock, ToolResultBlock, UnknownBlock
from bardo.values.request import Message, Request

# Gemini's parts are pictures from the start.
_FORMS: Mapping[str, PictureForm] = {
    "openai_chat": CHAT_PICTURES,
    "openai_responses": RESPONSES_PICTURES,
    "gemini_interactions": INTERACTIONS_PICTURES,
}


_HOLDS_PICTURES = frozenset((ImageBlock, UnknownBlock))


def carry_pictures(request: Request, losses: Losses, parts: frozenset[type[Block]], *, from_model: bool) -> Request:
    """Return a request of another dialect whose earlier replies have their pictures where the target takes them.

    `parts` are as `parts_of` gives them; `from_model`: the target takes them in the model's own messages.
    """
    form = _FORMS.get(request.dialect)
    if not (form is not None and form.field) and _HOLDS_PICTURES.isdisjoint(parts):
        return request
    read = [_with_pictures(message, form) for message in request.messages]
    messages = read if from_model else _from_user(read, losses)
    unchanged = len(messages) == len(request.messages) and all(map(is_, messages, request.messages))
    return request if unchanged else msgspec.structs.replace(request, messages=tuple(messages))


def behind_results(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return wire messages in which what the user is shown of results comes behind all results of its turn."""
    ordered: list[dict[str, Any]] = []
    for message in messages:
        place = len(ordered)
        while message["role"] == "tool" and place and ordered[place - 1]["role"] == "user":
            place -= 1
        if place and ordered[place - 1]["role"] == "tool":
            ordered.insert(place, message)
        else:
            ordered.append(message)
    return ordered


def _with_pictures(message: Message, form: PictureForm | None) -> Message:
    """Return a message of the model with what its dialect writes for pictures as pictures."""
    if form is None or message.role != "assistant":
        return message
    if form.field:
        return _with_listed(message, form, form.field.rpartition(".")[2])
    if UnknownBlock not in message.kinds or not any(_pictures_of(block, form) for block in message.blocks):
        return message
    blocks = [one for block in message.blocks for one in _pictures_of(block, form) or (block,)]
    return msgspec.structs.replace(message, blocks=tuple(blocks))


def _pictures_of(block: Block, form: PictureForm) -> tuple[ImageBlock, ...]:
    return form.read(block.value) if isinstance(block, UnknownBlock) else ()


def _with_listed(message: Message, form: PictureForm, field: str) -> Message:
    carried = message.carried
    listed = carried.fields.get(field) if carried is not None else None
    if carried is None or not isinstance(listed, list):
        return message
    pictures = [picture for value in listed for picture in form.read(value)]
    others = [value for value in listed if not form.read(value)]
    if not pictures:
        return message
    fields = {name: value for name, value in carried.fields.items() if name != field} | (
        {field: others} if others else {}
    )
    kept = Carried(carried.dialect, fields) if fields else None
    return msgspec.structs.replace(message, blocks=(*message.blocks, *pictures), carried=kept)


def _from_user(messages: Sequence[Message], losses: Losses) -> list[Message]:
    """Return the messages with the model's pictures in the turn of the user that follows, or in one of its own."""
    moved: list[Message] = []
    waiting: list[ImageBlock] = []
    for message in messages:
        if message.role != "assistant":
            moved.append(_opened_by(message, waiting))
            waiting = []
            continue
        if ImageBlock not in message.kinds:
            moved.append(message)
            continue
        waiting += [block for block in message.blocks if isinstance(block, ImageBlock)]
        rest = tuple([block for block in message.blocks if not isinstance(block, ImageBlock)])
        losses.lose("image", "assistant", f"{losses.declaration.title} takes pictures only from the user", sent="user")
        if rest:
            moved.append(msgspec.structs.replace(message, blocks=rest))
    if waiting:
        moved.append(Message("user", tuple(waiting)))
    return moved


def _opened_by(message: Message, pictures: Sequence[ImageBlock]) -> Message:
    if not pictures:
        return message
    # Results of calls stand first in their message.
    place = next(
        (number for number, block in enumerate(message.blocks) if not isinstance(block, ToolResultBlock)),
        len(message.blocks),
    )
    blocks = (*message.blocks[:place], *pictures, *message.blocks[place:])
    return msgspec.structs.replace(message, blocks=blocks)
