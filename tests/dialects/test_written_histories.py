"""What is lost of a conversation is reported once by each call, however it is put together from what is kept."""

from __future__ import annotations

import pytest

from bardo.dialects.openai_chat.request_out import DECLARATION
from bardo.dialects.shared.losses import Losses, fold_without_loss
from bardo.values.blocks import TextBlock
from bardo.values.histories import Messages
from bardo.values.request import Message


@pytest.mark.parametrize("lossy", [0, 5, 19])
def test_a_loss_anywhere_is_reported_once_by_each_call(lossy: int) -> None:
    messages = tuple(Message("user", (TextBlock(str(number)),)) for number in range(20))
    read: list[str] = []
    begin: list[str] = []

    def extend(found: list[str], messages: Messages, place: int) -> list[str]:
        for message in messages[place:]:
            read.append(message.text)
            if message.text == str(lossy):
                losses.lose("a part", message.text, "it has no place")
        return [*found, *(message.text for message in messages[place:])]

    for size in (10, 12, 20, 20):
        losses, earlier = Losses(DECLARATION), read.copy()
        found = fold_without_loss(messages[:size], "test", None, losses, begin, extend)
        assert found == [message.text for message in messages[:size]]
        assert losses.notes == (1 if lossy < size else 0)
        assert len(read) - len(earlier) <= size
