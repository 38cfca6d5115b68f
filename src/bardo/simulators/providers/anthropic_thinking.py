"""Signatures of thinking blocks as Anthropic makes and checks them.

A signature is bound to the words of its block. Newer models bind it to all that stood before it too: the system prompt, the tools and
the messages. Source: platform.claude.com, Extended thinking and Preserved thinking, as of 2026-11; the words are those users report.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from bardo.simulators import marks
from bardo.simulators.exchange import Incoming, Refusal
from bardo.simulators.fields import Fields, at, rows, text, without

_SIGNER = "claude-api"
_HEADS = {"thinking": b"\x12\xc8\x02\n", "redacted_thinking": b"\x12\xc9\x02"}
_SEALED = {"thinking": "signature", "redacted_thinking": "data"}
_BINDS = re.compile(r"claude-(?:(?:fable|mythos)-5[-.][1-9]|(?:opus|sonnet|haiku)-5[-.]5)")
_BETA = "thinking-binding-controls-2026-08-01"
_BOUND = (
    "Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set "
    f'`thinking.block_binding.prefix_mismatch_behavior` to "drop_block". That setting requires the `{_BETA}` value in '
    "the `anthropic-beta` header."
)
_EXPECTED = (
    "Expected `thinking` or `redacted_thinking`, but found `{found}`. When `thinking` is enabled, a final `assistant` "
    "message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). We "
    "recommend you include thinking blocks from previous turns. To avoid this requirement, disable `thinking`. Please "
    "consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking"
)
_MODIFIED = (
    "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as "
    "they were in the original response."
)
_FIRST = (
    "If an assistant message contains any thinking blocks, the first block must be `thinking` or `redacted_thinking`. "
    "Found `{found}`."
)
_DISABLED = (
    "When thinking is disabled, an `assistant` message in the final position cannot contain `thinking`. To use thinking "
    "blocks, enable `thinking` in your request."
)


def block(body: Fields, model: str, kind: str, shown: str, reasoning: str) -> Fields:
    """Return a block that the model thinks in answer to `body`, with its signature."""
    bound: dict[str, object] = {"model": model, "kind": kind, "said": marks.fingerprint([shown, reasoning])}
    bound["shown"] = marks.fingerprint(shown)
    if _BINDS.search(model):
        messages = rows(body.get("messages"))
        bound |= {"prefix": _prefix(body, messages), "before": _last_sealed(messages)}
    sealed = marks.encode_base64(marks.sign(_SIGNER, bound, size=300, head=_HEADS[kind]))
    if kind == "redacted_thinking":
        return {"type": kind, "data": sealed}
    return {"type": kind, "thinking": shown, "signature": sealed}


def check(incoming: Incoming) -> None:
    """Refuse thinking that was altered, that stands behind another prefix, or that is missing."""
    body = incoming.fields
    behavior = at(body, "thinking.block_binding")
    if behavior is not None and _BETA not in incoming.headers.get("anthropic-beta", ""):
        raise Refusal(
            "bad_value", f"thinking.{text(at(body, 'thinking.type'))}.block_binding: Extra inputs are not permitted"
        )
    drops = at(body, "thinking.block_binding.prefix_mismatch_behavior") == "drop_block"
    messages = rows(body.get("messages"))
    latest = max((index for index, message in enumerate(messages) if message.get("role") == "assistant"), default=-1)
    before = ""
    for index, message in enumerate(messages):
        _check_order(index, message, latest=index == latest)
        for position, item in _thinking(message):
            where = f"messages.{index}.content.{position}"
            bound = _verify(where, item)
            if not drops:
                _check_prefix(where, bound, body, messages[:index], before)
            before = text(item.get(_SEALED[text(item.get("type"))]))
    _check_start(body, messages)
    _check_end(body, messages)


def _check_order(index: int, message: Fields, *, latest: bool) -> None:
    """Refuse thinking that does not stand where the model put it: before all else of its message, each block once."""
    blocks = list(_thinking(message))
    moved = next((position for number, (position, _) in enumerate(blocks) if position != number), None)
    sealed = [text(item.get(_SEALED[text(item.get("type"))])) for _, item in blocks]
    if moved is None and len(set(sealed)) == len(sealed):
        return
    where = f"messages.{index}.content.{blocks[-1][0] if moved is None else moved}"
    first = text(rows(message.get("content"))[0].get("type"))
    if latest or first in _SEALED:
        raise Refusal("bad_value", f"{where}: {_MODIFIED}")
    raise Refusal("bad_value", f"messages.{index}.content.0: {_FIRST.format(found=first)}")


def _check_end(body: Fields, messages: Sequence[Fields]) -> None:
    """Refuse thinking in an answer that the model is to go on with, at its end or while it does not think.

    A loop of calls and results is one such answer: BerriAI/litellm#18926 and tailcallhq/forgecode#1853.
    """
    last = len(messages) - 1
    blocks = rows(messages[last].get("content")) if messages and messages[last].get("role") == "assistant" else []
    if blocks and blocks[-1].get("type") in _SEALED:
        words = f"The final block in an assistant message cannot be `{text(blocks[-1].get('type'))}`."
        raise Refusal("bad_value", f"messages.{last}: {words}")
    thinks = at(body, "thinking.type") in ("enabled", "adaptive")
    held = next((position for position, item in enumerate(blocks) if item.get("type") in _SEALED), None)
    if held is not None and not thinks:
        raise Refusal("bad_value", f"messages.{last}.content.{held}: {_DISABLED}")
    if at(body, "thinking.type") == "disabled":
        for place in _loop_turns(messages):
            for position, _ in _thinking(messages[place]):
                raise Refusal("bad_value", f"messages.{place}.content.{position}: {_DISABLED}")


def _loop_turns(messages: Sequence[Fields]) -> Iterator[int]:
    """Yield the places of the turns in the loop of calls and results that the last message goes on with, from the last one on."""
    for place in range(len(messages) - 1, 0, -2):
        if all(block.get("type") != "tool_result" for block in rows(messages[place].get("content"))):
            return
        yield place - 1


def _thinking(message: Fields) -> Iterator[tuple[int, Fields]]:
    if message.get("role") == "assistant":
        for position, item in enumerate(rows(message.get("content"))):
            if item.get("type") in _SEALED:
                yield position, item


def _verify(where: str, item: Fields) -> dict[str, object]:
    kind = text(item.get("type"))
    field = _SEALED[kind]
    if not isinstance(item.get(field), str):
        raise Refusal("missing_field", f"{where}.{kind}.{field}: Field required")
    bound = marks.verify(_SIGNER, marks.decode_base64(text(item[field])), head=_HEADS[kind])
    altered = bound is None or bound.get("kind") != kind
    if altered or (kind == "thinking" and bound and bound["shown"] != marks.fingerprint(text(item.get("thinking")))):
        raise Refusal("bad_value", f"{where}: Invalid `{field}` in `{kind}` block")
    return bound or {}


def _check_prefix(where: str, bound: dict[str, object], body: Fields, messages: Sequence[Fields], before: str) -> None:
    """The prefix counts for a model that reads the block; another one passes over what it cannot read."""
    prefix = bound.get("prefix")
    if not isinstance(prefix, dict) or bound.get("model") != body.get("model"):
        return
    now = _prefix(body, messages)
    for part, words in (("system", "`system` prompt differs"), ("tools", "`tools` list differs")):
        if prefix[part] != now[part]:
            raise Refusal("bad_value", f"{where}: {_BOUND} The {words} from the one this block was created with.")
    for index, (made, held) in enumerate(zip(_listed(prefix), _listed(now), strict=False)):
        if made != held:
            words = f"The message at `messages.{index}` differs from the one this block was created with."
            raise Refusal("bad_value", f"{where}: {_BOUND} {words}")
    if len(_listed(prefix)) != len(_listed(now)):
        raise Refusal("bad_value", f"{where}: {_BOUND} The number of `messages` before it differs.")
    if bound.get("before") and bound["before"] != marks.fingerprint(before):
        words = "The `thinking` block that preceded this one when it was created is missing from this request."
        raise Refusal("bad_value", f"{where}: {_BOUND} {words}")


def _check_start(body: Fields, messages: Sequence[Fields]) -> None:
    """With a budget, the loop of calls and results that is being answered must have thinking where one of its turns begins.

    A turn within a loop may lack it: BerriAI/litellm#18926, 2026-01, quotes such a loop that Opus made and that was taken back.
    """
    if at(body, "thinking.type") != "enabled":
        return
    place, found = 0, ""
    for place in _loop_turns(messages):
        first = next(iter(rows(messages[place].get("content"))), {})
        if messages[place].get("role") != "assistant" or first.get("type") in _SEALED:
            return
        found = text(first.get("type"))
    if found:
        raise Refusal("bad_value", f"messages.{place}.content.0.type: {_EXPECTED.format(found=found)}")


def _prefix(body: Fields, messages: Sequence[Fields]) -> dict[str, object]:
    return {
        "system": marks.fingerprint(_blocks(body.get("system"))),
        "tools": marks.fingerprint([without(tool, ["cache_control"]) for tool in rows(body.get("tools"))]),
        "messages": [marks.fingerprint([message.get("role"), _blocks(message.get("content"))]) for message in messages],
    }


def _listed(prefix: dict[str, object]) -> list[object]:
    messages = prefix.get("messages")
    return messages if isinstance(messages, list) else []


def _blocks(content: object) -> list[Fields]:
    """Return content as blocks, without thinking and without cache marks: moving those changes nothing."""
    blocks: list[Fields] = [{"type": "text", "text": content}] if isinstance(content, str) else rows(content)
    return [without(item, ["cache_control", "caller"]) for item in blocks if item.get("type") not in _SEALED]


def _last_sealed(messages: Sequence[Fields]) -> str:
    sealed = [text(item.get(_SEALED[text(item.get("type"))])) for message in messages for _, item in _thinking(message)]
    return marks.fingerprint(sealed[-1]) if sealed else ""
