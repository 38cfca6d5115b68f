"""A fake of Telegram's Bot API: it keeps chats, and refuses what the real one refuses, in its words.

By https://core.telegram.org/bots/api as of version 9: errors are `{"ok": false, "error_code", "description"}`.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from aiohttp import web

from support.chat_server import ChatServer, RateWindow, now

TOKEN = "123456789:AAfake-Token_of-a-bot-that-nobody-has00"
BOT = {"id": 123456789, "is_bot": True, "first_name": "Bardo", "username": "bardo_bot"}
_COUNTED = ("sendMessage", "editMessageText", "deleteMessage")
_KINDS = {"bold", "italic", "underline", "strikethrough", "spoiler", "code", "pre", "text_link", "blockquote"}


class Refused(Exception):
    """What the API answers with an error."""

    def __init__(self, code: int, description: str, **parameters: Any) -> None:
        self.body = {"ok": False, "error_code": code, "description": description}
        if parameters:
            self.body["parameters"] = parameters
        self.code = code


@dataclass
class Shown:
    """A message of the bot as it is shown, and every text that it had."""

    id: int
    chat: int
    text: str
    entities: list[dict[str, Any]]
    reply_to: int | None = None
    thread: int | None = None
    versions: list[str] = field(default_factory=list)


class FakeTelegram(ChatServer):
    """The Bot API. `shown` are the messages of the bot that are there, in order; `calls` what it asked for."""

    def __init__(self, *, window: RateWindow | None = None) -> None:
        super().__init__()
        self.shown: list[Shown] = []
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.refused: list[str] = []
        self.blocked: set[int] = set()
        self.files: dict[str, bytes] = {}
        self._window = window or RateWindow(1000, 1.0)
        self._updates: list[dict[str, Any]] = []
        self._chats: dict[int, str] = {}
        self._ids = 100
        self._polls = 0
        self._faults: list[tuple[str, Refused]] = []

    def routes(self, app: web.Application) -> None:
        app.router.add_route("*", "/bot{token}/{method}", self._call)
        app.router.add_get("/file/bot{token}/{path:.+}", self._file)

    # What a test does.

    async def say(
        self, text: str, *, user: int = 7, chat: int | None = None, kind: str = "private", **fields: Any
    ) -> int:
        """Have a user send a message, and return its id."""
        chat = user if chat is None else chat
        self._chats[chat] = kind
        self._ids += 1
        message = {
            "message_id": self._ids,
            "date": 1_790_000_000,
            "chat": {"id": chat, "type": kind},
            "from": {"id": user, "is_bot": False, "first_name": f"User {user}"},
            **({"text": text} if text else {}),
            **fields,
        }
        self._updates.append({"update_id": len(self._updates) + 1, "message": message})
        await self.changed()
        return int(message["message_id"])

    async def send_photo(self, data: bytes, caption: str = "", *, size: int | None = None, user: int = 7) -> int:
        """Have a user send a picture."""
        self.files["photo1"] = data
        photo = {"file_id": "photo1", "file_unique_id": "u1", "width": 9, "height": 9, "file_size": size or len(data)}
        return await self.say("", user=user, photo=[photo], caption=caption)

    def fail(self, method: str, code: int, description: str, **parameters: Any) -> None:
        """Have the next call of a method refused."""
        self._faults.append((method, Refused(code, description, **parameters)))

    def in_chat(self, chat: int = 7) -> list[str]:
        """Return what the bot's messages in a chat show."""
        return [message.text for message in self.shown if message.chat == chat]

    def asked(self, method: str) -> list[dict[str, Any]]:
        """Return what the calls of a method had."""
        return [fields for name, fields in self.calls if name == method]

    def reply_to(self, message: int) -> dict[str, Any]:
        """Return the fields of a user's message that replies to one of the bot."""
        (shown,) = [one for one in self.shown if one.id == message]
        chat = {"id": shown.chat, "type": self._chats[shown.chat]}
        return {"reply_to_message": {"message_id": message, "date": 1, "chat": chat, "from": BOT, "text": shown.text}}

    # What the API does.

    async def _call(self, request: web.Request) -> web.Response:
        method = request.match_info["method"]
        fields = {name: _value(value) for name, value in (await request.post()).items()}
        try:
            if request.match_info["token"] != TOKEN:
                raise Refused(401, "Unauthorized")
            self.calls.append((method, fields))
            result = await self._answer(method, fields)
        except Refused as refusal:
            # A caller that has left is told nothing.
            if request.transport is not None and not request.transport.is_closing():
                self.refused.append(f"{method}: {refusal.body['description']}")
            await self.changed()
            return web.json_response(refusal.body, status=refusal.code)
        await self.changed()
        return web.json_response({"ok": True, "result": result})

    async def _answer(self, method: str, fields: Mapping[str, Any]) -> Any:
        for place, (name, refusal) in enumerate(self._faults):
            if name == method:
                del self._faults[place]
                raise refusal
        if method in _COUNTED:
            wait = self._window.wait(now())
            if wait > 0:
                raise Refused(429, f"Too Many Requests: retry after {ceil(wait)}", retry_after=ceil(wait))
            self._check_chat(fields)
        match method:
            case "getMe":
                return BOT
            case "deleteWebhook" | "setMyCommands":
                return True
            case "getUpdates":
                return await self._poll(fields)
            case "sendChatAction":
                self._check_chat(fields)
                return True
            case "sendMessage":
                return self._send(fields)
            case "editMessageText":
                return self._edit(fields)
            case "deleteMessage":
                self.shown.remove(self._of(fields, "delete"))
                return True
            case "getFile":
                name = fields["file_id"]
                return {"file_id": name, "file_unique_id": "u", "file_path": f"photos/{name}.png"}
        raise Refused(404, "Not Found")

    async def _poll(self, fields: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the updates from an offset on, once there is one. A later call of the same ends this one with an error."""
        offset = int(fields.get("offset", 0))
        self._polls += 1
        own = self._polls
        await self.changed()
        try:
            async with asyncio.timeout(min(5.0, float(fields.get("timeout", 0)))), self._changed:
                await self._changed.wait_for(lambda: self._polls != own or len(self._updates) >= max(1, offset))
        except TimeoutError:
            return []
        if self._polls != own:
            raise Refused(409, "Conflict: terminated by other getUpdates request")
        return self._updates[max(0, offset - 1) :]

    def _check_chat(self, fields: Mapping[str, Any]) -> None:
        chat = int(fields["chat_id"])
        if chat not in self._chats:
            raise Refused(400, "Bad Request: chat not found")
        if chat in self.blocked:
            raise Refused(403, "Forbidden: bot was blocked by the user")

    def _send(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        entities = _checked(fields, "Bad Request: message is too long")
        self._ids += 1
        reply = fields.get("reply_parameters")
        shown = Shown(
            self._ids,
            int(fields["chat_id"]),
            fields["text"].strip(),
            entities,
            reply["message_id"] if reply else None,
            fields.get("message_thread_id"),
            [fields["text"]],
        )
        self.shown.append(shown)
        return self._message(shown)

    def _edit(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        shown = self._of(fields, "edit")
        entities = _checked(fields, "Bad Request: MESSAGE_TOO_LONG")
        if fields["text"].strip() == shown.text and entities == shown.entities:
            why = "specified new message content and reply markup are exactly the same as a current content"
            raise Refused(400, f"Bad Request: message is not modified: {why} and reply markup of the message")
        shown.text, shown.entities = fields["text"].strip(), entities
        shown.versions.append(fields["text"])
        return self._message(shown)

    def _of(self, fields: Mapping[str, Any], action: str) -> Shown:
        for shown in self.shown:
            if (shown.chat, shown.id) == (int(fields["chat_id"]), int(fields["message_id"])):
                return shown
        raise Refused(400, f"Bad Request: message to {action} not found")

    def _message(self, shown: Shown) -> dict[str, Any]:
        chat = {"id": shown.chat, "type": self._chats[shown.chat]}
        return {"message_id": shown.id, "date": 1_790_000_000, "chat": chat, "from": BOT, "text": shown.text}

    async def _file(self, request: web.Request) -> web.Response:
        name = request.match_info["path"].removeprefix("photos/").removesuffix(".png")
        if request.match_info["token"] != TOKEN or name not in self.files:
            return web.json_response({"ok": False, "error_code": 404, "description": "Not Found"}, status=404)
        return web.Response(body=self.files[name])


def _value(value: Any) -> Any:
    """Read a field of a form as the API does: lists and objects stand there as JSON."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _checked(fields: Mapping[str, Any], too_long: str) -> list[dict[str, Any]]:
    """Return the entities of a message. Raises Refused for a text or entities that the API refuses."""
    text = str(fields.get("text", ""))
    mode = fields.get("parse_mode")
    if mode == "MarkdownV2" and re.search(r"(?<!\\)[>#+\-=|{}.!]", text):
        raise Refused(400, "Bad Request: can't parse entities: Character is reserved and must be escaped")
    if mode == "HTML" and text.count("<") != text.count(">"):
        raise Refused(400, "Bad Request: can't parse entities: Unclosed start tag")
    units = text.encode("utf-16-le")
    if not text.strip():
        raise Refused(400, "Bad Request: message text is empty")
    if len(units) // 2 > 4096:
        raise Refused(400, too_long)
    entities: Sequence[dict[str, Any]] = fields.get("entities") or ()
    for entity in entities:
        begin, end = 2 * entity["offset"], 2 * (entity["offset"] + entity["length"])
        if entity["type"] not in _KINDS:
            raise Refused(400, f"Bad Request: can't parse MessageEntity: unsupported type {entity['type']}")
        if not 0 <= begin < end <= len(units):
            raise Refused(400, "Bad Request: entity beyond the text")
        try:
            units[begin:end].decode("utf-16-le")
        except UnicodeDecodeError as problem:
            raise Refused(400, "Bad Request: entity begins in a middle of a UTF-16 symbol") from problem
    return list(entities)[:100]
