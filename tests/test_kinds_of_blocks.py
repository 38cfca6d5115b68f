"""What is done with texts is done with those of every kind of block: masked, counted, scanned, part of the prompt, and shown.

A new kind of block fails here at each place that leaves it out. Which dialects write it is asked in `tests/dialects/test_declarations.py`.
"""

from __future__ import annotations

from typing import Any, get_args

import msgspec

import bardo
from bardo.context.injection.provenance import all_spans
from bardo.context.privacy.layer import TextChanger
from bardo.context.steps.compress import transcript
from bardo.planning.token_counting import estimate_request
from bardo.reasoning.replay import prefix_of
from bardo.reasoning.replay.keys import history_of
from bardo.surfaces.panel.views.requests import _parts
from bardo.values.blocks import (
    Block,
    DocumentBlock,
    ImageBlock,
    ReasoningBlock,
    RefusalBlock,
    ResultPart,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
)
from bardo.values.request import Message, Request
from support.offenders import each_case, offenders

WORDS = "write to jane today"
BLOCKS: dict[type, Block] = {
    TextBlock: TextBlock(WORDS),
    ImageBlock: ImageBlock(media_type="image/png", data="AAAA"),
    DocumentBlock: DocumentBlock(text=WORDS),
    ReasoningBlock: ReasoningBlock(text=WORDS),
    ToolCallBlock: ToolCallBlock(id="call_1", name="look", arguments='{"who": "write to jane today"}'),
    ToolResultBlock: ToolResultBlock(call_id="call_1", content=(TextBlock(WORDS),)),
    RefusalBlock: RefusalBlock(WORDS),
    UnknownBlock: UnknownBlock("anthropic_messages", {"type": "note", "text": WORDS}),
}
"""A block of each kind."""

NO_WORDS = {
    "*.media_type": "a type of files",
    "*.data": "the bytes of a file",
    "*.url": "the address of a file, which is fetched by it",
    "*.id": "names the call",
    "*.call_id": "names the call",
    "*.name": "names a tool, by which it is called",
    "*.format": "names a format",
    "*.dialect": "names a dialect",
    "*.detail": "a setting",
}
"""The fields of blocks that hold no words of anybody, and why."""

FROM_NOBODY_ELSE = {
    ReasoningBlock: "the model's own",
    ToolCallBlock: "the model's own",
    RefusalBlock: "the model's own",
    ImageBlock: "has no text",
}
"""The kinds of blocks in which no instruction of a stranger is looked for, and why."""

NOT_IN_SUMMARIES = {
    ReasoningBlock: "what was thought is not what was said",
    UnknownBlock: "its words are not known as such",
}
"""The kinds of blocks that no summary of earlier turns is made of, and why."""


def asked(*blocks: Block, role: Any = "user") -> Request:
    return Request(model="m", messages=(Message("user", (TextBlock("Hi."),)), Message(role, blocks)))


def with_words(kind: type, words: str) -> Any:
    """Return the example of a kind with other words."""
    return msgspec.convert(_replaced(msgspec.to_builtins(BLOCKS[kind]), words), Block)


def _replaced(value: Any, words: str) -> Any:
    if isinstance(value, dict):
        return {name: _replaced(one, words) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_replaced(one, words) for one in value]
    return value.replace("AAAA", "BBBB").replace(WORDS, words) if isinstance(value, str) else value


def test_each_kind_has_an_example_and_is_public() -> None:
    kinds = get_args(Block)
    offenders((one.__name__ for one in kinds if one not in BLOCKS), "kind without an example in BLOCKS of this file")
    missing = (one.__name__ for one in kinds if getattr(bardo, one.__name__, None) is not one)
    offenders(missing, "kind of block that src/bardo/__init__.py does not export")


@each_case("kind", BLOCKS, ids=lambda kind: kind.__name__)
def test_every_text_of_a_block_is_masked(kind: type) -> None:
    left = []
    for one in msgspec.structs.fields(kind):
        if one.type is str and f"*.{one.name}" not in NO_WORDS:
            block = msgspec.structs.replace(BLOCKS[kind], **{one.name: f'"{WORDS}"'})
            if getattr(TextChanger(str.upper).block(block), one.name) == getattr(block, one.name):
                left.append(one.name)
    offenders(
        left, "field that TextChanger of context/privacy/layer.py leaves as it is: change it, or name it in NO_WORDS"
    )
    if kind is not ImageBlock:
        assert WORDS not in str(TextChanger(str.upper).block(BLOCKS[kind]))


@each_case("kind", get_args(ResultPart), ids=lambda kind: kind.__name__)
def test_what_a_part_of_a_result_says_is_masked(kind: type) -> None:
    result = ToolResultBlock(call_id="call_1", content=(BLOCKS[kind],))  # type: ignore[arg-type]
    assert WORDS not in str(TextChanger(str.upper).block(result))


@each_case("kind", BLOCKS.keys() - {UnknownBlock}, ids=lambda kind: kind.__name__)
def test_every_block_that_is_known_costs_tokens(kind: type) -> None:
    alone = estimate_request(asked(BLOCKS[kind])) - estimate_request(asked())
    assert alone > 0, "block_tokens of values/usage.py counts nothing"
    if kind in get_args(ResultPart):
        result = ToolResultBlock(call_id="call_1", content=(BLOCKS[kind],))  # type: ignore[arg-type]
        assert estimate_request(asked(result)) - estimate_request(asked()) == alone


@each_case("kind", BLOCKS, ids=lambda kind: kind.__name__)
def test_other_words_are_another_prompt(kind: type) -> None:
    made, now = asked(BLOCKS[kind]), asked(with_words(kind, "others"))
    assert prefix_of(made) != prefix_of(now), "the prefix of a reply (reasoning/replay/prefix.py) is the same"
    if kind not in (ReasoningBlock, ToolCallBlock):
        # Those stand in a model's turns, which have keys of their own.
        assert history_of(made) != history_of(now), (
            "the keys of the turn behind it (reasoning/replay/keys.py) are the same"
        )


@each_case("kind", BLOCKS, ids=lambda kind: kind.__name__)
def test_instructions_are_looked_for_in_every_block_of_others(kind: type) -> None:
    found = " ".join(span.text for span in all_spans(asked(BLOCKS[kind])))
    assert (WORDS in found) is (kind not in FROM_NOBODY_ELSE), "see context/injection/provenance.py"


@each_case("kind", BLOCKS.keys() - NOT_IN_SUMMARIES.keys(), ids=lambda kind: kind.__name__)
def test_the_summary_of_earlier_turns_is_made_of_every_block(kind: type) -> None:
    plain, said = (
        transcript(asked(*blocks, role="assistant").messages, "", 10_000) for blocks in ((), (BLOCKS[kind],))
    )
    assert plain != said, "context/steps/compress.py leaves it out of what is summed up"


@each_case("kind", BLOCKS, ids=lambda kind: kind.__name__)
def test_the_panel_shows_every_block(kind: type) -> None:
    assert [*_parts((BLOCKS[kind],))], "surfaces/panel/views/requests.py shows nothing of it"
