"""Earlier reasoning on its way back: kept where clients drop it, sent only where it may be read, and never behind another prefix.

`remember` says what of a reply is kept, `Conversation` by which keys it is found again, `restore` writes it back for one target.
"""

from bardo.reasoning.replay.guard import amended
from bardo.reasoning.replay.keys import Conversation, History, has_history, keys_in, turns_in, turns_of
from bardo.reasoning.replay.memory import (
    Memory,
    Origins,
    ReplyRecord,
    answers_tools,
    decode_kept,
    encode_kept,
    is_only_text,
    remember,
)
from bardo.reasoning.replay.prefix import Prefix, prefix_of
from bardo.reasoning.replay.restore import (
    NOTHING,
    Recalled,
    Refusers,
    RestoredRequest,
    name_of,
    named_states,
    restore,
    state_data,
    without_refused,
    without_thinking_now,
)
from bardo.reasoning.replay.switch import loop_calls, may_lack_thinking

__all__ = [
    "NOTHING",
    "Conversation",
    "History",
    "Memory",
    "Origins",
    "Prefix",
    "Recalled",
    "Refusers",
    "ReplyRecord",
    "RestoredRequest",
    "amended",
    "answers_tools",
    "decode_kept",
    "encode_kept",
    "has_history",
    "is_only_text",
    "keys_in",
    "loop_calls",
    "may_lack_thinking",
    "name_of",
    "named_states",
    "prefix_of",
    "remember",
    "restore",
    "state_data",
    "turns_in",
    "turns_of",
    "without_refused",
    "without_thinking_now",
]
