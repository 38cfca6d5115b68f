"""Requests are read and written in time that grows with them, also where all of one is of the rarest kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from bardo.catalog.rows import ProviderRow
from bardo.dialects.openai_chat.request_in import decode_request
from bardo.dialects.openai_chat.request_out import DECLARATION, encode_body
from bardo.dialects.shared.losses import Losses
from bardo.values.blocks import ImageBlock, TextBlock, ToolCallBlock, ToolResultBlock
from bardo.values.request import Message
from dialects.openai_chat.chat import request_of, row_with
from support.growth import check_growth

FEW, MANY, BELOW = 400, 3_200, 24


def words_of_the_system(count: int) -> list[Message]:
    return [Message("system", (TextBlock("Rule. " * 40),)) for _ in range(count)]


def calls_without_a_signature(count: int) -> list[Message]:
    return [Message("assistant", (ToolCallBlock(id="c", name="f"),)) for _ in range(count)]


def pictures_in_results(count: int) -> list[Message]:
    result = ToolResultBlock(call_id="c", content=(ImageBlock(url="u"),))
    return [Message("user", (result,)) for _ in range(count)]


WRITTEN: dict[str, tuple[Callable[[int], list[Message]], ProviderRow]] = {
    "words of the system": (words_of_the_system, row_with(one_system=True)),
    "calls without a signature": (calls_without_a_signature, row_with(signed_calls=("m",))),
    "pictures in results": (pictures_in_results, row_with()),
}


@pytest.mark.parametrize("case", WRITTEN)
def test_a_history_is_written_in_time_that_grows_with_it(case: str) -> None:
    history, row = WRITTEN[case]
    few, many = (request_of(*history(count)) for count in (FEW, MANY))
    check_growth(lambda request: encode_body(request, row, Losses(DECLARATION)), few, many, below=BELOW)


def thinking_between_words(count: int) -> bytes:
    details = [
        {"type": "reasoning.text", "text": "t", "index": place, "position": {"content": 20 * place, "tool_calls": 0}}
        for place in range(count)
    ]
    parts: list[Any] = [{"type": "text", "text": "a" * 10}] * count + [{"type": "text", "text": "b" * 10 * count}]
    message = {"role": "assistant", "content": parts, "reasoning_details": details}
    return msgspec.json.encode({"model": "m", "messages": [message]})


def test_thinking_is_put_between_words_in_time_that_grows_with_it() -> None:
    check_growth(decode_request, thinking_between_words(FEW), thinking_between_words(MANY), below=BELOW)
