"""The pieces a message is made of, in requests and replies alike.

Every block may carry opaque state (signatures, ciphertext) and fields of its dialect that bardo has no word for; both come
back out when the block returns to the dialect they belong to.

What they hold is texts and JSON, which has no cycles, so that no collector looks through the blocks of long histories (`gc=False`).
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

OpaqueKind = Literal["signature", "encrypted", "redacted", "id"]


class Origin(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """Where opaque state was made: at which configured provider, on which platform, by which model, in which dialect.

    `prefix` is a digest of all that stood before it (system, tools, messages), where the model binds its state to that. `account` is a
    digest of whose account it was made with, empty where that is not known.
    """

    provider: str
    platform: str
    model: str
    dialect: str
    prefix: str = ""
    account: str = ""


class Opaque(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """State only its provider can read. `format` says whose it is, e.g. `anthropic-claude-v1`; `origin` more, where that is known."""

    kind: OpaqueKind
    data: str
    format: str = ""
    origin: Origin | None = None


class Carried(msgspec.Struct, frozen=True, gc=False):
    """Fields of one dialect that bardo passes on without understanding them."""

    dialect: str
    fields: dict[str, Any]


class TextBlock(msgspec.Struct, frozen=True, gc=False, tag="text", omit_defaults=True):
    """Text of a prompt or an answer."""

    text: str
    opaque: tuple[Opaque, ...] = ()
    carried: Carried | None = None


class ImageBlock(msgspec.Struct, frozen=True, gc=False, tag="image", kw_only=True, omit_defaults=True):
    """A picture: base64 `data` of `media_type`, or a `url`."""

    media_type: str = ""
    data: str = ""
    url: str = ""
    detail: str = ""
    carried: Carried | None = None


class DocumentBlock(msgspec.Struct, frozen=True, gc=False, tag="document", kw_only=True, omit_defaults=True):
    """A document: base64 `data` of `media_type`, a `url`, or plain `text`. `name` is its file name or title.
    `source` is where its text was found: it is a result of the caller's own search then, which an answer may cite.

    A file that was uploaded to a provider is an UnknownBlock: only that provider knows its id.
    """

    media_type: str = ""
    data: str = ""
    url: str = ""
    text: str = ""
    name: str = ""
    source: str = ""
    carried: Carried | None = None


class ReasoningBlock(msgspec.Struct, frozen=True, gc=False, tag="reasoning", kw_only=True, omit_defaults=True):
    """One stretch of thinking: full `text`, or `summary` parts, or only opaque state.

    `format` is the provider format it came in, by OpenRouter's names where those exist (`anthropic-claude-v1`,
    `openai-responses-v1`, `google-gemini-v1`), else the field or tag (`reasoning_content`, `think-tags`).
    """

    text: str = ""
    summary: tuple[str, ...] = ()
    format: str = ""
    opaque: tuple[Opaque, ...] = ()
    carried: Carried | None = None

    @property
    def readable(self) -> str:
        """The text, or else the summary parts as paragraphs."""
        return self.text or "\n\n".join(self.summary)


class ToolCallBlock(msgspec.Struct, frozen=True, gc=False, tag="tool_call", kw_only=True, omit_defaults=True):
    """A call the model asks for. `arguments` is the JSON text exactly as the model wrote it.

    `own_id`: the provider that the call goes back to is known to have given it this id; False says nothing. `complete` False: no more of
    the call came, and nobody may execute it.
    """

    id: str
    name: str
    arguments: str = ""
    opaque: tuple[Opaque, ...] = ()
    carried: Carried | None = None
    own_id: bool = False
    complete: bool = True


class RefusalBlock(msgspec.Struct, frozen=True, gc=False, tag="refusal", omit_defaults=True):
    """The model declined, in words."""

    text: str
    carried: Carried | None = None


class UnknownBlock(msgspec.Struct, frozen=True, gc=False, tag="unknown"):
    """A whole block of a dialect that has no counterpart here: a server tool's result, audio, an uploaded file."""

    dialect: str
    value: Any


ResultPart = TextBlock | ImageBlock | DocumentBlock | UnknownBlock
"""What may stand in the result of a tool."""


class ToolResultBlock(msgspec.Struct, frozen=True, gc=False, tag="tool_result", kw_only=True, omit_defaults=True):
    """What a tool gave back for the call `call_id`."""

    call_id: str
    name: str = ""
    content: tuple[ResultPart, ...] = ()
    is_error: bool = False
    carried: Carried | None = None

    @property
    def text(self) -> str:
        """The textual part of the result."""
        if len(self.content) == 1 and type(self.content[0]) is TextBlock:
            return self.content[0].text
        return "".join(block.text for block in self.content if isinstance(block, TextBlock))


Block = (
    TextBlock
    | ImageBlock
    | DocumentBlock
    | ReasoningBlock
    | ToolCallBlock
    | ToolResultBlock
    | RefusalBlock
    | UnknownBlock
)
ReplyBlock = TextBlock | ReasoningBlock | ToolCallBlock | RefusalBlock | UnknownBlock


def has_no_arguments(text: str) -> bool:
    """Whether the arguments of a call say nothing: servers and clients write none, space or `null` where an empty object is meant."""
    return text.strip() in ("", "null")


def argument_text(text: str) -> str:
    """Return the arguments of a call as JSON text: an empty object where there are none."""
    return "{}" if has_no_arguments(text) else text


def fields_for(dialect: str, carried: Carried | None) -> dict[str, Any]:
    """Return the carried fields when they belong to `dialect`, else nothing."""
    return carried.fields if carried is not None and carried.dialect == dialect else {}
