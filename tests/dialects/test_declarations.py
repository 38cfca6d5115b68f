"""Each dialect declares what of a request it can express; what it lacks is reported, and what it expresses is written.

A new field of Request, Sampling, a tool or a block fails here for every dialect that does not name it. To add one: name it in the
declaration of each dialect (`request_out.py`, or the one module that it is), under `expresses` where `encode_body` writes it, else under
`lacks` with the reason that a caller reads.
"""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest

from bardo.catalog.rows import ProviderRow
from bardo.dialects import DIALECTS, dialect
from bardo.dialects.shared.declaration import (
    BLOCKS,
    COMMON,
    NOT_DECLARED,
    PARTS,
    Declaration,
    reported_name,
    vocabulary,
)
from bardo.values.blocks import (
    Block,
    DocumentBlock,
    ImageBlock,
    ReasoningBlock,
    RefusalBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
)
from bardo.values.request import NEUTRAL, Message, OutputFormat, Request, Role, Sampling, Tool, ToolChoice
from bardo.values.wire import Arrival, WireRequest
from support.offenders import each_case, offenders

OWN = tuple(name for name in DIALECTS if dialect(name).wraps is None)
"""The dialects with a declaration of their own: one that wraps others has theirs."""

BLOCKS_NOT_DECLARED = {UnknownBlock: "goes to its own dialect only"}
"""The kinds of blocks that no dialect declares, and why."""

WITHOUT_NEUTRAL_VALUE = {
    "top_k": "its neutral value is the size of the vocabulary",
    "seed": "any seed is a choice",
    "stop": "empty is its default",
}
"""The sampling parameters of which no value asks for nothing, and why."""

TOOL = Tool(name="look", schema={"type": "object", "properties": {}})
CALL = ToolCallBlock(id="call_1", name="look", arguments="{}")
BLOCK: dict[str, Block] = {
    "text": TextBlock("Hello."),
    "image": ImageBlock(media_type="image/png", data="AAAA"),
    "document": DocumentBlock(media_type="application/pdf", data="AAAA"),
    "reasoning_block": ReasoningBlock(text="Hm."),
    "tool_call": CALL,
    "tool_result": ToolResultBlock(call_id="call_1", content=(TextBlock("a cat"),)),
    "refusal": RefusalBlock("No."),
}
WHOLE: dict[str, Any] = {
    "tools": (TOOL,),
    "tool_choice": ToolChoice(mode="required"),
    "output_format": OutputFormat(mode="json_schema", name="answer", schema={"type": "object"}),
    "tools.schema": {"type": "object", "properties": {"place": {"type": "string"}}},
}


def place_of(name: str) -> str:
    """Return the file where a dialect's requests are declared and written."""
    module = "" if name in ("bedrock_invoke", "watsonx_text") else "/request_out"
    return f"src/bardo/dialects/{name}{module}.py"


def declaration(name: str) -> Declaration:
    return dialect(name).declaration


def request(**fields: Any) -> Request:
    return Request(**{"model": "m", "messages": (Message("user", (TextBlock("Hi."),)),), **fields})


def encode(name: str, asked: Request) -> WireRequest:
    return dialect(name).encode_request(
        asked, msgspec.convert({"id": name, "name": name, "dialect": name}, ProviderRow)
    )


def value_of(struct: type[msgspec.Struct], attribute: str, name: str) -> Any:
    """Return a value of the field's type that is not its default."""
    if name in WHOLE:
        return WHOLE[name]
    kind = struct.__annotations__[attribute]
    for word, value in (("bool", True), ("int", 5), ("float", 0.5), ("tuple[str", ("END",)), ("str", "high")):
        if word in str(kind):
            return value
    raise AssertionError(f"give WHOLE of tests/dialects/test_declarations.py a value of {name}")


def pair(name: str) -> tuple[Request, Request]:
    """Return a request, and the same request which says `name` too."""
    part, _, attribute = name.rpartition(".")
    if name in BLOCKS:
        said = conversation(name, BLOCK[name])
        return request(messages=tuple(without(message, BLOCK[name]) for message in said)), request(messages=said)
    if not part:
        tools = {"tools": (TOOL,)} if name == "tool_choice" else {}
        return request(**tools), request(**{name: value_of(Request, name, name)}, **tools)
    value = {attribute: value_of(PARTS[part], attribute, name)}
    if part == "sampling":
        return request(), request(sampling=Sampling(**value))
    if part in BLOCKS:
        plain = BLOCK[part]
        return (
            request(messages=conversation(part, plain)),
            request(messages=conversation(part, msgspec.structs.replace(plain, **value))),
        )
    plain_part = {"tools": TOOL, "tool_choice": ToolChoice(), "output_format": WHOLE["output_format"]}[part]
    said = msgspec.structs.replace(plain_part, **value)
    if part == "tools":
        return request(tools=(plain_part,)), request(tools=(said,))
    tools = {"tools": (TOOL,)} if part == "tool_choice" else {}
    return request(**{part: plain_part}, **tools), request(**{part: said}, **tools)


def conversation(kind: str, block: Block) -> tuple[Message, ...]:
    """Return messages with the block where its kind belongs."""
    if kind == "tool_result":
        return Message("user", (TextBlock("Hi."),)), Message("assistant", (CALL,)), Message("user", (block,))
    role: Role = "user" if kind in ("text", "image", "document") else "assistant"
    after = () if kind == "tool_call" else (TextBlock("So."),)
    return Message("user", (TextBlock("Hi."),)), Message(role, (block, *after))


def without(message: Message, block: Block) -> Message:
    """Return the message without the block."""
    return msgspec.structs.replace(message, blocks=tuple(one for one in message.blocks if one is not block))


def differs(name: str, asked: tuple[Request, Request]) -> bool:
    """Whether what is said more in the second request is written, or reported."""
    plain, said = (encode(name, one) for one in asked)
    new = [one for one in said.degraded if one not in plain.degraded]
    return (plain.path, plain.body) != (said.path, said.body) or bool(new)


def test_every_field_is_declared() -> None:
    missing = {name: sorted(vocabulary() - declaration(name).declared) for name in OWN}
    offenders(
        (f"{', '.join(fields)}: {place_of(name)}" for name, fields in missing.items() if fields),
        "dialect that does not declare all fields. Put each in its Declaration under `expresses` (and write it in encode_body), or under "
        "`lacks` with the reason that a caller reads. What says nothing of its own, as the text that a block is, goes with its reason into "
        "NOT_DECLARED of src/bardo/dialects/shared/declaration.py",
    )


def test_every_kind_of_block_is_declared_or_excepted() -> None:
    kinds = {*BLOCKS.values(), *BLOCKS_NOT_DECLARED}
    missing = [kind.__name__ for kind in get_args(Block) if kind not in kinds]
    if missing:
        pytest.fail(
            f"BLOCKS in dialects/shared/declaration.py does not name the kinds of blocks {', '.join(missing)}. Name each there, then "
            "each dialect is asked for it; or in BLOCKS_NOT_DECLARED of this file, with the reason",
            pytrace=False,
        )
    without_example = [name for name in BLOCKS if name not in BLOCK]
    assert not without_example, f"give BLOCK of this file a block of each of the kinds {', '.join(without_example)}"


@each_case("name", OWN)
def test_nothing_is_declared_that_no_request_has(name: str) -> None:
    declared = declaration(name)
    assert declared.expresses | declared.own | declared.lacks.keys() | COMMON <= vocabulary()
    assert not declared.expresses & declared.lacks.keys()


def test_what_no_dialect_declares_is_a_field() -> None:
    fields = {f"{part}.{name}".lstrip(".") for part, struct in PARTS.items() for name in struct.__struct_fields__}
    assert {name for name in NOT_DECLARED if not name.startswith("*.")} <= fields


@each_case("name", OWN)
@each_case("field", sorted(vocabulary()))
def test_a_field_is_written_or_reported(name: str, field: str) -> None:
    declared = declaration(name)
    if field not in declared.declared or field.partition(".")[0] in BLOCKS.keys() - BLOCK.keys():
        # The tests above say what is missing.
        return
    plain, said = pair(field)
    lack = declared.lacks.get(field)
    if field.rpartition(".")[0] in declared.lacks or (lack is not None and lack.same):
        # It is lost with all of its part; or some values mean the same without it, which another test looks at.
        return
    if not differs(name, (plain, said)):
        pytest.fail(
            f"the dialect {name} declares that it expresses {field}, and encode_request leaves it out: write it in {place_of(name)}, "
            "or declare it under `lacks`",
            pytrace=False,
        )
    if lack is not None or field in declared.own:
        assert reported_name(field) in {one.what for one in encode(name, said).degraded}


@each_case("name", OWN)
def test_values_that_mean_the_same_without_their_field_are_the_only_ones_that_go_unsaid(name: str) -> None:
    declared = declaration(name)
    for field, lack in declared.lacks.items():
        for value in lack.same:
            part, _, attribute = field.rpartition(".")
            opposite = (not value) if isinstance(value, bool) else "high"
            plain = {"tools": TOOL, "tool_choice": ToolChoice(), "output_format": WHOLE["output_format"]}.get(part)
            kept = {"tools": (TOOL,)} if part == "tool_choice" else {}
            for held, expected in ((value, False), (opposite, True)):
                if plain is None:
                    said = request(
                        messages=conversation(part, msgspec.structs.replace(BLOCK[part], **{attribute: held}))
                    )
                else:
                    changed = msgspec.structs.replace(plain, **{attribute: held})
                    said = request(**{part: (changed,) if part == "tools" else changed}, **kept)
                assert (reported_name(field) in {one.what for one in encode(name, said).degraded}) is expected


@pytest.mark.parametrize("name", [name for name in OWN if dialect(name).reply is not None])
def test_sampling_reads_back_as_it_was_written(name: str) -> None:
    declared, sampled = declaration(name), {}
    for one in msgspec.structs.fields(Sampling):
        if f"sampling.{one.name}" in COMMON | declared.expresses | declared.own:
            sampled[one.name] = value_of(Sampling, one.name, f"sampling.{one.name}")
    sampling = Sampling(**sampled)
    wire = encode(name, request(sampling=sampling, dialect=name, max_output_tokens=9))
    back = dialect(name).decode_request(wire.body, Arrival(model="m"))
    assert (back.sampling, wire.degraded) == (sampling, ())


def test_each_sampling_parameter_has_a_neutral_value_or_none() -> None:
    missing = [name for name in Sampling.__struct_fields__ if name not in {*NEUTRAL, *WITHOUT_NEUTRAL_VALUE}]
    assert not missing, (
        f"NEUTRAL in src/bardo/values/request.py has no value of {', '.join(missing)} that asks for nothing, which is left out without a "
        "report: add it there, or to WITHOUT_NEUTRAL_VALUE of this file"
    )


def test_a_parameter_at_its_neutral_value_is_no_loss() -> None:
    asked = request(sampling=Sampling(frequency_penalty=0, presence_penalty=0, min_p=0, repetition_penalty=1))
    assert encode("anthropic_messages", asked).degraded == ()


def test_fields_and_headers_of_another_dialect_are_reported() -> None:
    asked = request(dialect="anthropic_messages", extra={"container": "c"}, headers={"anthropic-beta": "b"})
    assert {one.what for one in encode("openai_chat", asked).degraded} == {"container", "anthropic-beta"}


@each_case("name", OWN)
def test_a_picture_in_the_system_prompt_does_not_vanish(name: str) -> None:
    words = Message("system", (TextBlock("Be brief."),))
    picture = Message("system", (TextBlock("Be brief."), ImageBlock(media_type="image/png", data="AAAA")))
    user = Message("user", (TextBlock("Hi."),))
    assert differs(name, (request(messages=(words, user)), request(messages=(picture, user))))
