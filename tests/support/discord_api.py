"""A fake of Discord's API: REST v10 and the gateway v10. It keeps channels, and refuses what the real one refuses, by its codes.

By https://discord.com/developers/docs: opcodes and close codes of the gateway, JSON error codes, and the headers of rate limits.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from aiohttp import WSMsgType, web

from support.chat_server import ChatServer, RateWindow, now

TOKEN = "MTIzNDU2.Gfake.token-of-a-bot-that-nobody-has-0123456789"
BOT = {"id": "500", "username": "bardo", "discriminator": "0", "avatar": None, "global_name": None, "bot": True}
GUILD, CHANNEL, THREAD = 900, 901, 902
EPHEMERAL = 64
SUPPRESS_EMBEDS = 4
_EVERY_PING = ("@everyone", "@here", "<@", "<@&")


class Refused(Exception):
    """What the API answers with an error."""

    def __init__(self, status: int, code: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        self.status = status
        self.body: dict[str, Any] = {"code": code, "message": message}
        self.headers = dict(headers or {})


@dataclass
class Shown:
    """A message of the bot as it is shown."""

    id: int
    channel: int
    content: str
    flags: int = 0
    components: list[dict[str, Any]] = field(default_factory=list)
    reply_to: int | None = None
    versions: list[str] = field(default_factory=list)

    @property
    def buttons(self) -> list[dict[str, Any]]:
        """The buttons below it."""
        return [button for row in self.components for button in row["components"]]


@dataclass
class Pressed:
    """An interaction, and what its user alone sees of the answers to it."""

    id: int
    token: str
    user: int
    made: float
    answered: bool = False
    seen: list[str] = field(default_factory=list)
    flags: list[int] = field(default_factory=list)
    files: list[bytes] = field(default_factory=list)


class FakeDiscord(ChatServer):
    """The API and its gateway. `shown` are the messages of the bot that everybody sees, `pressed` the interactions."""

    def __init__(self, *, window: RateWindow | None = None, deadline: float = 60.0) -> None:
        super().__init__()
        self.shown: list[Shown] = []
        self.pressed: list[Pressed] = []
        self.pinged: list[str] = []
        self.refused: list[str] = []
        self.commands: list[dict[str, Any]] = []
        self.typed = 0
        self.identified = 0
        self.resumed = 0
        self.files: dict[str, bytes] = {}
        self.limit_next = 0
        self.forgets_sessions = False
        self._deadline = deadline
        self._window = window or RateWindow(1000, 1.0)
        self._ids = 1000
        self._socket: web.WebSocketResponse | None = None
        self._sequence = 0
        self._deflate: Any = None
        self._missed: list[dict[str, Any]] = []

    def routes(self, app: web.Application) -> None:
        app.router.add_get("/gateway", self._gateway)
        app.router.add_get("/cdn/{name}", self._file)
        app.router.add_route("*", "/api/v10/{path:.+}", self._call)

    @property
    def api_url(self) -> str:
        """What a bot is configured with."""
        return f"{self.address}/api/v10"

    # What a test does.

    async def say(self, text: str, *, user: int = 7, channel: int | None = None, **fields: Any) -> int:
        """Have a user write in a channel, or to the bot alone, and return the message's id."""
        self._ids += 1
        mentions = [BOT] if "<@500>" in text or fields.get("referenced_message") else []
        # A bot without the privileged intent gets no text but of what is said to it.
        content = text if channel is None or mentions else ""
        message = {
            **self._message(self._ids, channel or 10_000 + user, content),
            "author": _person(user),
            "mentions": mentions,
            **({"guild_id": str(GUILD), "member": _member(user)} if channel else {}),
            **fields,
        }
        await self._dispatch("MESSAGE_CREATE", message)
        return self._ids

    async def send_file(self, name: str, data: bytes, text: str = "") -> int:
        """Have a user send a file to the bot."""
        self.files[name] = data
        url = f"{self.address}/cdn/{name}"
        file = {"id": "77", "filename": name, "size": len(data), "url": url, "proxy_url": url}
        return await self.say(text, attachments=[file])

    async def press(self, message: Shown, *, user: int = 7) -> Pressed:
        """Have a user press the first button of a message."""
        button = message.buttons[0]
        data = {"custom_id": button["custom_id"], "component_type": 2}
        return await self._interact(
            3, user, data, message.channel, self._message(message.id, message.channel, message.content)
        )

    async def command(self, name: str, /, *, user: int = 7, channel: int | None = None, **options: str) -> Pressed:
        """Have a user give a command."""
        given = [{"name": key, "type": 3, "value": value} for key, value in options.items()]
        data = {"id": "1", "name": name, "type": 1, "options": given}
        return await self._interact(2, user, data, channel or 10_000 + user)

    async def drop_connection(self) -> None:
        """Close the gateway's connection, as Discord does now and then."""
        assert self._socket is not None
        await self._socket.close(code=4000)

    def in_channel(self, channel: int = 10_007) -> list[str]:
        """Return what the bot's messages in a channel show: by default in the private one of user 7."""
        return [message.content for message in self.shown if message.channel == channel]

    def reply_to(self, message: Shown) -> dict[str, Any]:
        """Return the fields of a user's message that replies to one of the bot."""
        return {
            "type": 19,
            "message_reference": {"message_id": str(message.id), "channel_id": str(message.channel)},
            "referenced_message": self._message(message.id, message.channel, message.content),
        }

    # The gateway.

    async def _gateway(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        assert request.query["v"] == "10"
        assert request.query["encoding"] == "json"
        kind = request.query.get("compress", "")
        self._deflate = _compressor(kind)
        self._socket = socket
        await self._send({"op": 10, "d": {"heartbeat_interval": 41_250}, "s": None, "t": None})
        async for message in socket:
            if message.type is WSMsgType.TEXT and not await self._heard(json.loads(message.data)):
                break
        await self.changed()
        return socket

    async def _heard(self, said: dict[str, Any]) -> bool:
        """Answer what the bot says, and return whether the connection goes on."""
        assert self._socket is not None
        match said["op"]:
            case 1:
                await self._send({"op": 11})
            case 2:
                if said["d"]["token"] != TOKEN:
                    await self._socket.close(code=4004)
                    return False
                self.identified += 1
                self._sequence = 0
                await self._ready()
            case 6:
                if self.forgets_sessions:
                    await self._send({"op": 9, "d": False})
                    return True
                self.resumed += 1
                missed, self._missed = self._missed, []
                for event in missed:
                    await self._send(event)
                await self._dispatch("RESUMED", {})
        await self.changed()
        return True

    async def _ready(self) -> None:
        ready = {
            "v": 10, "user": BOT, "guilds": [{"id": str(GUILD), "unavailable": True}], "session_id": "s1",
            "resume_gateway_url": self._gateway_url, "application": {"id": "600", "flags": 0}, "shard": [0, 1],
        }  # fmt: skip
        await self._dispatch("READY", ready)
        text = {"id": str(CHANNEL), "type": 0, "name": "general", "position": 0, "permission_overwrites": []}
        thread = {
            "id": str(THREAD), "type": 11, "name": "t", "parent_id": str(CHANNEL), "owner_id": "7", "message_count": 0,
            "member_count": 1, "guild_id": str(GUILD),
            "thread_metadata": {"archived": False, "auto_archive_duration": 60, "archive_timestamp": "2026-01-01T00:00:00+00:00"},
        }  # fmt: skip
        role = {"id": str(GUILD), "name": "@everyone", "permissions": "8", "position": 0, "color": 0}
        guild = {
            "id": str(GUILD), "name": "g", "owner_id": "7", "roles": [role], "channels": [text], "threads": [thread],
            "members": [_member(500) | {"user": BOT}], "emojis": [], "features": [], "member_count": 2,
        }  # fmt: skip
        await self._dispatch("GUILD_CREATE", guild)

    async def _dispatch(self, name: str, data: Any) -> None:
        self._sequence += 1
        event = {"op": 0, "t": name, "s": self._sequence, "d": data}
        if self._socket is None or self._socket.closed:
            self._missed.append(event)
        else:
            await self._send(event)

    async def _send(self, event: dict[str, Any]) -> None:
        assert self._socket is not None
        text = json.dumps(event)
        if self._deflate is None:
            await self._socket.send_str(text)
        else:
            await self._socket.send_bytes(self._deflate(text.encode()))

    @property
    def _gateway_url(self) -> str:
        return f"{self.address.replace('http', 'ws')}/gateway"

    async def _interact(
        self, kind: int, user: int, data: dict[str, Any], channel: int, message: dict[str, Any] | None = None
    ) -> Pressed:
        self._ids += 1
        pressed = Pressed(self._ids, f"token-{self._ids}", user, now())
        self.pressed.append(pressed)
        in_guild = channel in (CHANNEL, THREAD)
        event = {
            "id": str(pressed.id), "application_id": "600", "type": kind, "token": pressed.token, "version": 1,
            "channel_id": str(channel), "channel": {"id": str(channel), "type": 0 if in_guild else 1, "name": "c",
            "permissions": "8"}, "data": data, "entitlements": [], "attachment_size_limit": 10_000_000,
            "authorizing_integration_owners": {}, "context": 0,
            **({"guild_id": str(GUILD), "member": _member(user)} if in_guild else {"user": _person(user)}),
            **({"message": message} if message else {}),
        }  # fmt: skip
        await self._dispatch("INTERACTION_CREATE", event)
        return pressed

    # REST.

    async def _call(self, request: web.Request) -> web.Response:
        fields, files = await _body(request)
        path = request.match_info["path"].split("/")
        try:
            status, answer = await self._answer(request, path, fields, files)
        except Refused as refusal:
            self.refused.append(f"{request.method} {path[-1]}: {refusal.body['code']}")
            await self.changed()
            return _json(refusal.body, refusal.status, refusal.headers)
        await self.changed()
        headers = {
            "X-RateLimit-Bucket": "b", "X-RateLimit-Limit": str(self._window.most),
            "X-RateLimit-Remaining": str(self._window.left), "X-RateLimit-Reset-After": f"{self._window.reset_after(now()):.3f}",
        }  # fmt: skip
        if status == 204:
            return web.Response(status=204, headers=headers)
        return _json(answer, status, headers)

    async def _answer(
        self, request: web.Request, path: list[str], fields: dict[str, Any], files: list[bytes]
    ) -> tuple[int, Any]:
        if path[0] not in ("interactions", "webhooks") and request.headers.get("Authorization") != f"Bot {TOKEN}":
            raise Refused(401, 0, "401: Unauthorized")
        if path[0] == "channels":
            self._count()
        match (request.method, *path):
            case ("GET", "users", "@me"):
                return 200, BOT
            case ("GET", "applications" | "oauth2", *_):
                return 200, _APPLICATION
            case ("GET", "gateway", "bot"):
                session = {"total": 1000, "remaining": 999, "reset_after": 1, "max_concurrency": 1}
                return 200, {"url": self._gateway_url, "shards": 1, "session_start_limit": session}
            case ("PUT", "applications", _, "commands"):
                self.commands = list(fields["list"])
                return 200, [
                    {**one, "id": str(place), "application_id": "600", "version": "1"}
                    for place, one in enumerate(self.commands)
                ]
            case ("POST", "channels", channel, "typing"):
                self.typed += 1
                return 204, None
            case ("POST", "channels", channel, "messages"):
                return 200, self._create(int(channel), fields, files)
            case ("PATCH", "channels", channel, "messages", message):
                return 200, self._edit(self._of(channel, message), fields)
            case ("DELETE", "channels", channel, "messages", message):
                self.shown.remove(self._of(channel, message))
                return 204, None
            case ("POST", "interactions", _, token, "callback"):
                return self._call_back(token, fields)
            case ("POST", "webhooks", _, token):
                return 200, self._follow_up(token, fields, files)
        raise Refused(404, 0, "404: Not Found")

    def _count(self) -> None:
        wait = self._window.wait(now())
        if self.limit_next:
            self.limit_next -= 1
            wait = 0.3
        if wait > 0:
            headers = {"Retry-After": f"{wait:.3f}", "X-RateLimit-Scope": "shared", "Via": "1.1 google"}
            refusal = Refused(429, 0, "You are being rate limited.", headers)
            refusal.body |= {"retry_after": wait, "global": False}
            raise refusal

    def _create(self, channel: int, fields: dict[str, Any], files: list[bytes]) -> dict[str, Any]:
        _check(fields, files)
        self._ids += 1
        reference = fields.get("message_reference")
        flags = int(fields.get("flags") or 0)
        if flags & ~(SUPPRESS_EMBEDS | 4096):
            raise Refused(400, 50035, "Invalid Form Body")
        shown = Shown(
            self._ids, channel, fields["content"].strip(), flags, fields.get("components") or [],
            int(reference["message_id"]) if reference else None, [fields["content"]],
        )  # fmt: skip
        self._note_pings(fields)
        self.shown.append(shown)
        return self._message(shown.id, channel, shown.content, shown.components)

    def _edit(self, shown: Shown, fields: dict[str, Any]) -> dict[str, Any]:
        _check({"content": shown.content, **fields}, [])
        self._note_pings(fields)
        shown.content = fields.get("content", shown.content).strip()
        shown.components = fields.get("components", shown.components) or []
        shown.versions.append(shown.content)
        return self._message(shown.id, shown.channel, shown.content, shown.components)

    def _of(self, channel: str, message: str) -> Shown:
        for shown in self.shown:
            if (shown.channel, shown.id) == (int(channel), int(message)):
                return shown
        raise Refused(404, 10008, "Unknown Message")

    def _call_back(self, token: str, fields: dict[str, Any]) -> tuple[int, Any]:
        pressed = self._pressed(token)
        if now() > pressed.made + self._deadline:
            raise Refused(404, 10062, "Unknown interaction")
        if pressed.answered:
            raise Refused(400, 40060, "Interaction has already been acknowledged.")
        pressed.answered = True
        data = fields.get("data") or {}
        if fields["type"] == 4:
            _check(data, [])
            pressed.seen.append(data["content"])
        pressed.flags.append(int(data.get("flags", 0)))
        message = self._message(pressed.id + 1, 1, str(data.get("content", "")))
        resource = {"type": fields["type"], "message": message}
        interaction = {"id": str(pressed.id), "type": 3, "response_message_id": message["id"]}
        return 200, {"interaction": interaction, "resource": resource}

    def _follow_up(self, token: str, fields: dict[str, Any], files: list[bytes]) -> dict[str, Any]:
        pressed = self._pressed(token)
        if not pressed.answered:
            raise Refused(404, 10015, "Unknown Webhook")
        _check(fields, files)
        self._ids += 1
        pressed.seen.append(fields["content"])
        pressed.flags.append(int(fields.get("flags", 0)))
        pressed.files.extend(files)
        return self._message(self._ids, 1, fields["content"])

    def _pressed(self, token: str) -> Pressed:
        for pressed in self.pressed:
            if pressed.token == token:
                return pressed
        raise Refused(404, 10015, "Unknown Webhook")

    def _note_pings(self, fields: Mapping[str, Any]) -> None:
        """Note who is pinged: without `allowed_mentions` everybody who is named, and the author of the message that is replied to."""
        allowed = fields.get("allowed_mentions")
        if allowed is None or allowed.get("parse"):
            self.pinged += [ping for ping in _EVERY_PING if ping in fields.get("content", "")]
        if fields.get("message_reference") and (allowed is None or allowed.get("replied_user")):
            self.pinged.append("author")

    def _message(self, message: int, channel: int, content: str, components: Any = ()) -> dict[str, Any]:
        return {
            "id": str(message), "channel_id": str(channel), "author": BOT, "content": content, "type": 0, "tts": False,
            "timestamp": "2026-01-01T00:00:00+00:00", "edited_timestamp": None, "mention_everyone": False, "mentions": [],
            "mention_roles": [], "attachments": [], "embeds": [], "pinned": False, "components": _numbered(components), "flags": 0,
        }  # fmt: skip

    async def _file(self, request: web.Request) -> web.Response:
        return web.Response(body=self.files[request.match_info["name"]])


_APPLICATION = {
    "id": "600", "name": "bardo", "icon": None, "description": "", "bot_public": False, "bot_require_code_grant": False,
    "verify_key": "00", "flags": 0, "owner": {**BOT, "id": "7", "bot": False}, "summary": "", "team": None,
}  # fmt: skip


def _json(value: Any, status: int, headers: Mapping[str, str]) -> web.Response:
    """Return a value as Discord sends it: its content type names no character set."""
    fields = {**headers, "Content-Type": "application/json"}
    return web.Response(body=json.dumps(value).encode(), status=status, headers=fields)


def _person(user: int) -> dict[str, Any]:
    return {"id": str(user), "username": f"user{user}", "discriminator": "0", "avatar": None, "global_name": None}


def _member(user: int) -> dict[str, Any]:
    return {
        "user": _person(user), "roles": [], "joined_at": "2026-01-01T00:00:00+00:00", "deaf": False, "mute": False,
        "flags": 0, "permissions": "8",
    }  # fmt: skip


def _numbered(components: Any) -> list[dict[str, Any]]:
    return [{**row, "id": place + 1} for place, row in enumerate(components)]


def _check(fields: Mapping[str, Any], files: list[bytes]) -> None:
    """Raise Refused for a message that the API refuses."""
    content = fields.get("content") or ""
    if len(content) > 2000:
        raise Refused(400, 50035, "Invalid Form Body: content: Must be 2000 or fewer in length.")
    if not content.strip() and not files:
        raise Refused(400, 50006, "Cannot send an empty message")
    for row in fields.get("components") or ():
        for button in row["components"]:
            if not 1 <= len(button.get("custom_id", "")) <= 100 or len(button.get("label", "")) > 80:
                raise Refused(400, 50035, "Invalid Form Body: components")


async def _body(request: web.Request) -> tuple[dict[str, Any], list[bytes]]:
    """Return the fields of a request, and the files that came with it."""
    if request.content_type.startswith("multipart/"):
        form = await request.post()
        files = [part.file.read() for part in form.values() if isinstance(part, web.FileField)]
        return json.loads(str(form["payload_json"])), files
    data = await request.read()
    fields = json.loads(data) if data else {}
    return ({"list": fields} if isinstance(fields, list) else fields), []


def _compressor(kind: str) -> Any:
    """Return what compresses the events of one connection; None where they are not compressed."""
    if kind == "zlib-stream":
        packer = zlib.compressobj()
        return lambda data: packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH)
    if kind == "zstd-stream":
        # The library asks for it where this is installed.
        zstandard = import_module("zstandard")
        stream = zstandard.ZstdCompressor().compressobj()
        return lambda data: stream.compress(data) + stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    return None
