"""Conversations of `bardo ask`: earlier turns kept in files of the user's own, reasoning and its signatures among them."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import msgspec

from bardo.adapters.chance import CHANCE
from bardo.values.errors import InvalidRequest, OperatorError
from bardo.values.request import Message

_NAME = re.compile(r"[\w][\w.-]{0,63}")
_ENDING = ".json"
_MOST_BYTES = 256 * 1024 * 1024


class Conversation(msgspec.Struct, frozen=True, kw_only=True):
    """One conversation: its turns, the model that was asked last, and its system prompt. `changed_at` is Unix time."""

    name: str
    model: str = ""
    system: str = ""
    changed_at: float = 0.0
    messages: tuple[Message, ...] = ()
    version: int = 1

    @property
    def questions(self) -> int:
        """How many questions were asked."""
        return sum(message.role == "user" for message in self.messages)


class ConversationUnusable(OperatorError):
    """A conversation's file cannot be read or written, or holds something else."""


class Conversations:
    """The conversations in a folder. Only its user can read them: they hold what was asked and answered."""

    def __init__(self, data_folder: Path) -> None:
        self._folder = data_folder / "conversations"

    def load(self, name: str) -> Conversation:
        """Return a conversation, a new one where there is none of that name. Raises InvalidRequest or ConversationUnusable."""
        file = self._file(name)
        try:
            if file.stat().st_size > _MOST_BYTES:
                raise ConversationUnusable(f"{file} is too large", hint="begin another conversation")
            return msgspec.json.decode(file.read_bytes(), type=Conversation)
        except FileNotFoundError:
            return Conversation(name=name)
        except OSError as problem:
            raise ConversationUnusable(f"cannot read {file}: {problem.strerror or problem}") from problem
        except msgspec.DecodeError as problem:
            raise ConversationUnusable(
                f"{file} holds no conversation: {problem}", hint="move it away, or use another name"
            ) from problem

    def latest(self) -> Conversation:
        """Return the conversation that was changed last. Raises InvalidRequest where there is none."""
        names = self.names()
        if not names:
            raise InvalidRequest("there is no conversation to continue", hint="begin one: bardo ask -c NAME …")
        return self.load(names[0])

    def names(self) -> list[str]:
        """Return the names of all conversations, the one changed last first."""
        try:
            found = [(entry.stat().st_mtime, entry.name) for entry in os.scandir(self._folder)]
        except FileNotFoundError:
            return []
        except OSError as problem:
            raise ConversationUnusable(f"cannot read {self._folder}: {problem.strerror or problem}") from problem
        kept = sorted(found, reverse=True)
        names = [name.removesuffix(_ENDING) for _, name in kept if name.endswith(_ENDING)]
        return [name for name in names if _NAME.fullmatch(name)]

    def store(self, conversation: Conversation, *messages: Message, model: str, system: str) -> None:
        """Keep a conversation with further turns: in one step, so that a reader never finds half of it. Raises ConversationUnusable."""
        changed = msgspec.structs.replace(
            conversation,
            model=model,
            system=system,
            changed_at=time.time(),
            messages=(*conversation.messages, *messages),
        )
        file = self._file(conversation.name)
        beside = file.with_name(f".{file.name}.{CHANCE.getrandbits(48):012x}")
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            beside.touch(mode=0o600, exist_ok=False)
            with beside.open("wb") as opened:
                opened.write(msgspec.json.encode(changed))
            beside.replace(file)
        except OSError as problem:
            beside.unlink(missing_ok=True)
            raise ConversationUnusable(f"cannot write {file}: {problem.strerror or problem}") from problem

    def forget(self, name: str) -> None:
        """Delete a conversation. Raises InvalidRequest where there is none."""
        try:
            self._file(name).unlink()
        except FileNotFoundError as problem:
            hint = "`bardo history` lists them"
            raise InvalidRequest(f"there is no conversation {name!r}", hint=hint) from problem

    def _file(self, name: str) -> Path:
        if not _NAME.fullmatch(name):
            hint = "use letters, digits, - _ and ., up to 64"
            raise InvalidRequest(f"{name!r} is no name of a conversation", hint=hint)
        return self._folder / f"{name}{_ENDING}"
