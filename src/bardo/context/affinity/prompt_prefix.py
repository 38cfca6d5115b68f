"""The part of a prompt that many conversations share, its tools and system prompt, as a chain of blocks that servers may have cached.

Each block's number follows from all that is before it, so that two prompts have the same numbers as far as they are the same. The numbers
hold in this process only. The blocks of one text are computed once: another request is compared with it, which is much faster.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import takewhile
from typing import NamedTuple

from bardo.values.request import Message, Request, Tool
from bardo.values.usage import estimate_tokens

BLOCK_CHARACTERS = 2048
"""The length of a block of text: about 500 tokens."""
MOST_BLOCKS = 64
"""Of a longer beginning the rest tells no more."""
_MOST_KEPT = 512
_MOST_CHARACTERS = 16 * 1024 * 1024
"""How many beginnings are kept to compare with, and how many characters of them."""
_SAMPLE = 48


class PromptPrefix(NamedTuple):
    """The tools and the system prompt of a request. `blocks` are their numbers, `tokens` an estimate of what ends with each of them."""

    blocks: tuple[int, ...]
    tokens: tuple[int, ...]


NO_PREFIX = PromptPrefix((), ())
_Tools = tuple[tuple[str, int], ...]
_Key = tuple[_Tools, int, str, str]


class PrefixReader:
    """Reads the beginnings of prompts, and keeps those that came last."""

    def __init__(self) -> None:
        self._kept: OrderedDict[_Key, tuple[str, PromptPrefix]] = OrderedDict()
        self._characters = 0

    def read(self, request: Request) -> PromptPrefix:
        """Return the beginning of a request's prompt; an empty one where it has neither tools nor a system prompt."""
        text = system_text(request)
        if not text and not request.tools:
            return NO_PREFIX
        tools: _Tools = tuple([(tool.name, len(tool.description)) for tool in request.tools]) if request.tools else ()
        key = (tools, len(text), text[:_SAMPLE], text[-_SAMPLE:])
        kept = self._kept.get(key)
        if kept is not None and kept[0] == text:
            return kept[1]
        made = prefix_of(tools, text, request.tools)
        self._keep(key, text, made)
        return made

    def _keep(self, key: _Key, text: str, made: PromptPrefix) -> None:
        before = self._kept.pop(key, None)
        self._characters += len(text) - (0 if before is None else len(before[0]))
        self._kept[key] = (text, made)
        while len(self._kept) > _MOST_KEPT or self._characters > _MOST_CHARACTERS:
            _, (gone, _) = self._kept.popitem(last=False)
            self._characters -= len(gone)


def system_text(request: Request) -> str:
    """Return the system prompt: the messages before the first of another role."""
    messages = request.messages
    if len(messages) > 1 and messages[0].role == "system" and messages[1].role != "system":
        return messages[0].text
    return "\n".join([message.text for message in takewhile(_is_of_system, messages)])


def _is_of_system(message: Message) -> bool:
    return message.role == "system"


def prefix_of(named: _Tools, text: str, tools: tuple[Tool, ...]) -> PromptPrefix:
    """Return the blocks of tools and a system prompt. Tools stand first, as the prompt templates of most models put them."""
    number, tokens = hash(named), 0
    blocks: list[int] = []
    counts: list[int] = []
    if named:
        tokens = sum(estimate_tokens(f"{one.name}{one.description}{one.schema}") for one in tools)
        blocks.append(number)
        counts.append(tokens)
    for start in range(0, len(text), BLOCK_CHARACTERS):
        if len(blocks) >= MOST_BLOCKS:
            break
        part = text[start : start + BLOCK_CHARACTERS]
        number = hash((number, part))
        tokens += estimate_tokens(part)
        blocks.append(number)
        counts.append(tokens)
    return PromptPrefix(tuple(blocks), tuple(counts))
