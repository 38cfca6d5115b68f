"""What Discord is sent: an answer's Markdown in messages of at most 2,000 characters, in which nobody is mentioned.

Discord reads three backticks anywhere as the beginning or the end of code, so that blocks of code are taken apart here by the rules of
Markdown and written anew: one that crosses two messages is closed in the first and opened again, with its language, in the second.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from bardo.surfaces.chat.text import cleaned, cut_place, is_blank, utf16_length
from bardo.values.reasoning import ReasoningChain

LIMIT = 2000
"""Characters of a message. Counted in UTF-16 units here, which are never fewer."""


_ZERO_WIDTH_SPACE = "\u200b"


# However far it is indented: inside a list it is, and Discord knows no code by indentation.
_FENCE_LINE = re.compile(r"( *)(`{3,}|~{3,})([^\n]*)")


_LANGUAGE = re.compile(r"[A-Za-z0-9_+.#-]{1,20}")


_FENCE = "```"


# Everybody, users and roles, channels, commands, and pages of a server.
_MENTION = re.compile(r"@(?=everyone|here)|<(?=@|#|/[^\n<>]{1,100}:[0-9]|id:)")


_MASKED_LINK = re.compile(r"\[([^\[\]\n]{1,300})\]\(<?(https?://[^\s()<>]{1,2000})>?(?:[ \t][^()\n]{0,200})?\)")


_ADDRESS = re.compile(r"://|www\.|[^\s.]\.[A-Za-z]{2}")


_TWO_OF_THREE = re.compile(r"``(?=`)")


_LEAST_FREE = 40
"""Where a message has less left than this, what follows begins the next one."""


class Section(msgspec.Struct, frozen=True):
    """A stretch of prose, or of code in a language that may be empty."""

    text: str
    is_code: bool = False
    language: str = ""

    @property
    def overhead(self) -> int:
        """How many characters the fences of a piece take."""
        return 2 * len(_FENCE) + len(self.language) + 3 if self.is_code else 0

    def written(self, start: int, end: int) -> str:
        """Return a piece of it as Discord is sent it."""
        piece = self.text[start:end]
        line_end = "" if piece.endswith("\n") else "\n"
        return f"{_FENCE}{self.language}\n{piece}{line_end}{_FENCE}\n" if self.is_code else piece


class DiscordPart(msgspec.Struct, frozen=True):
    """One message. `pieces` are the stretches of the sections that it shows, `reveals` the key of the thinking its button shows."""

    text: str
    pieces: tuple[str, ...] = ()
    reveals: str = ""


def discord_messages(markdown: str, *, reveals: str = "") -> list[DiscordPart]:
    """Return the messages that show an answer; none where it shows nothing. `reveals` is given to the last."""
    parts = [part for part in split_sections(sections_of(markdown)) if not is_blank(part.text)]
    if parts and reveals:
        parts[-1] = msgspec.structs.replace(parts[-1], reveals=reveals)
    return parts


def discord_reasoning(chain: ReasoningChain) -> list[DiscordPart]:
    """Return the messages that reveal the thinking of an answer, or say how much of it there was where it cannot be read."""
    if chain.content:
        return discord_messages(chain.content)
    count = f"{chain.reasoning_tokens:,} tokens" if chain.reasoning_tokens else "an unknown number of tokens"
    return [DiscordPart(f"Reasoning performed (not visible): {count}.")]


def sections_of(markdown: str) -> list[Section]:
    """Split Markdown into prose and code blocks. A block that is not closed ends with the text."""
    found: list[Section] = []
    lines: list[str] = []
    fence = language = indent = ""
    for line in cleaned(markdown).splitlines(keepends=True):
        mark = _FENCE_LINE.match(line)
        if fence and mark and mark[2].startswith(fence) and not mark[3].strip():
            found.append(_code(lines, language))
            fence, lines = "", []
        elif not fence and mark and not ("`" in mark[2] and "`" in mark[3]):
            found.extend(_prose(lines))
            (indent, fence), lines = mark.group(1, 2), []
            name = mark[3].strip().partition(" ")[0]
            language = name if _LANGUAGE.fullmatch(name) else ""
        else:
            lines.append(line.removeprefix(indent) if fence else line)
    found.extend([_code(lines, language)] if fence else _prose(lines))
    return found


def split_sections(sections: Sequence[Section], limit: int = LIMIT) -> list[DiscordPart]:
    """Return messages that show all of the sections, each within the limit."""
    parts: list[DiscordPart] = []
    shown: list[str] = []
    pieces: list[str] = []
    used = 0
    for section in sections:
        place = 0
        while place < len(section.text):
            free = limit - used - section.overhead
            rest = utf16_length(section.text[place : place + limit + 1])
            if shown and rest > free and (free < _LEAST_FREE or used > limit // 2):
                parts.append(DiscordPart("".join(shown), tuple(pieces)))
                shown, pieces, used = [], [], 0
                continue
            end = cut_place(section.text, place, free)
            shown.append(section.written(place, end))
            pieces.append(section.text[place:end])
            used += utf16_length(shown[-1])
            place = end
    return [*parts, DiscordPart("".join(shown), tuple(pieces))] if shown else parts


def _code(lines: Sequence[str], language: str) -> Section:
    body = _unfenced("".join(lines).removesuffix("\n"))
    return Section(body or " ", is_code=True, language=language)


def _prose(lines: Sequence[str]) -> Iterator[Section]:
    text = "".join(lines)
    if text:
        plain = _MASKED_LINK.sub(_open_link, text)
        yield Section(_MENTION.sub(rf"\g<0>{_ZERO_WIDTH_SPACE}", _unfenced(plain)))


def _unfenced(text: str) -> str:
    """Return text without three backticks in a row, which would begin or end a block of code."""
    return _TWO_OF_THREE.sub(rf"\g<0>{_ZERO_WIDTH_SPACE}", text)


def _open_link(link: re.Match[str]) -> str:
    """Return a link whose text is no other address: then the address is shown too."""
    label, address = link[1], link[2]
    return f"{label} (<{address}>)" if _ADDRESS.search(label) and label != address else f"[{label}](<{address}>)"
