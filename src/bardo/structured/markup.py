"""Take well-known thinking markup out of a raw text, so that a draft in it is never taken for the answer.

This is the last line of defence, for texts nobody looked through before. Who knows the model's format removes its reasoning itself.
"""

from __future__ import annotations

import re

_NAMES = r"think|thinking|thought|thoughts|reasoning|reflection|scratchpad|analysis|seed:think|mm:think"
# One right behind a quotation mark is spoken about, not opened.
_OPENS = re.compile(
    rf"(?<![\"'\\\w])(?:<(?:{_NAMES})>|◁think▷|\[THINK\]|<\|START_THINKING\|>|<\|begin_of_thought\|>"
    r"|<\|channel\|>(?:analysis|commentary)\b)",
    re.I,
)
_CLOSES = re.compile(
    rf"</(?:{_NAMES})>|◁/think▷|\[/THINK\]|<\|END_THINKING\|>|<\|end_of_thought\|>"
    r"|<\|(?:end|return|call)\|>|<\|channel\|>final\b[^<]{0,40}<\|message\|>",
    re.I,
)
_LEFT_OVER = re.compile(r"<\|(?:start|end|return|call|message|START_RESPONSE|END_RESPONSE|eot_id|im_end)\|>", re.I)
# Text after an end mark that no begin mark went before: servers whose template writes the begin mark leave it out.
_EATEN = re.compile(rf"</(?:{_NAMES})>|◁/think▷|\[/THINK\]|<\|END_THINKING\|>|<\|end_of_thought\|>", re.I)


def without_reasoning(text: str) -> str:
    """Return the text without thinking markup and what stands in it. A text that begins as JSON is returned as it is."""
    start = text.lstrip()[:1]
    if start in ("{", '"') or (start == "[" and not _OPENS.match(text.lstrip())):
        return text
    if _OPENS.search(text) is None and _EATEN.search(text) is None:
        return text
    kept, position = [], 0
    while (opening := _OPENS.search(text, position)) is not None:
        kept.append(_after_eaten(text[position : opening.start()]))
        closing = _CLOSES.search(text, opening.end())
        if closing is None:
            position = len(text)
            break
        position = closing.end()
    rest = text[position:]
    eaten = list(_EATEN.finditer(rest))
    if eaten:
        # A nested or doubled end mark: everything before the last one is thinking.
        return rest[eaten[-1].end() :]
    return _LEFT_OVER.sub(" ", "".join([*kept, rest]))


def _after_eaten(text: str) -> str:
    ends = list(_EATEN.finditer(text))
    return text[ends[-1].end() :] if ends else text
