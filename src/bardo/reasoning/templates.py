"""Make a reasoning format of the template that a checkpoint's tokenizer declares for its replies.

Such a `response_template` names the fields of a reply and the text that opens and closes each; transformers 5 defines it.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from bardo.reasoning.formats import ReasoningFormat, spellings
from bardo.values.errors import InvalidRequest

THINKING = ("thinking", "reasoning", "reasoning_content")
ANSWER = "content"


class _Field(msgspec.Struct, frozen=True):
    open: str | tuple[str, ...] = ()
    close: str | tuple[str, ...] = ()
    open_pattern: str = ""
    close_pattern: str = ""
    repeats: bool = False


class _Template(msgspec.Struct, frozen=True):
    fields: dict[str, _Field]
    start_anchor: str | tuple[str, ...] = ()


def format_of_template(template: Mapping[str, Any], *, name: str = "response_template") -> ReasoningFormat:
    """Return the format that a response template means; where it declares no thinking, all is answer.

    What opens and closes the answer is dropped, calls stay in the text. Raises InvalidRequest for what is no template, and
    for thinking that is opened or closed by a pattern instead of a text.
    """
    try:
        read = msgspec.convert(template, _Template)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"this is no response template: {error}", hint="give the tokenizer's own") from error
    thinking = next((read.fields[word] for word in THINKING if word in read.fields), _Field())
    if thinking.open_pattern or thinking.close_pattern:
        raise InvalidRequest(
            f"the template {name!r} marks thinking by a pattern", hint="write a row with the texts it stands for"
        )
    return _format(name, read, thinking)


def _format(name: str, template: _Template, thinking: _Field) -> ReasoningFormat:
    answer = template.fields.get(ANSWER, _Field())
    others = [field for field in template.fields.values() if field is not thinking]
    # Thinking without an end of its own lasts until another field begins.
    following = tuple(opener for field in others for opener in spellings(field.open))
    return ReasoningFormat(
        name=name,
        start=thinking.open,
        end=thinking.close,
        implicit_ends=() if spellings(thinking.close) else following,
        starts_inside="prompt",
        blocks="multi" if thinking.repeats else "single",
        dropped=(*spellings(answer.open), *spellings(answer.close)),
        turns=spellings(template.start_anchor),
    )
