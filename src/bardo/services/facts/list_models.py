"""Ask a provider for the ids of its models."""

from __future__ import annotations

import asyncio
import time

import msgspec

from bardo.adapters.net.client import Call, Deadlines, Transport
from bardo.adapters.net.keys import Keyring
from bardo.planning.route import Provider
from bardo.values.errors import MalformedReply

_LIST_LIMIT = 8 * 1024 * 1024
ASKING = Deadlines(connect=2.0, first_byte=5.0, idle=5.0, total=20.0)
KEY_REFUSED = (401, 403)
"""Who answers so is there, and does not know the key."""


async def list_models(
    provider: Provider, transport: Transport, keyring: Keyring, deadlines: Deadlines = ASKING, key: str = ""
) -> tuple[str, ...]:
    """Return the ids a provider lists, asked with its first key or the one of a label. Raises BardoError where it does not answer so."""
    headers = {**provider.row.headers, "accept": "application/json"}
    call = Call(
        method="GET", url=provider.url(provider.row.model_list), headers=headers, body=b"", provider=provider.id
    )
    reply = await transport.send(keyring.sign(call, provider, clock=time.time, key=key), deadlines)
    try:
        body = await reply.read(_LIST_LIMIT)
    finally:
        await reply.close()
    if reply.status in KEY_REFUSED:
        raise MalformedReply(f"it refuses the key, with status {reply.status}", provider=provider.id)
    if reply.status != 200:
        raise MalformedReply(f"its model list answered with status {reply.status}", provider=provider.id)
    try:
        listed = msgspec.json.decode(body, type=_List)
    except msgspec.MsgspecError as problem:
        raise MalformedReply(f"its model list is not one: {problem}", provider=provider.id) from problem
    if listed.data is None and listed.models is None:
        raise MalformedReply("its model list is not one", provider=provider.id)
    rows = listed.data if listed.data is not None else listed.models or []
    return tuple(_id(row) for row in rows if row.id or row.name)


async def list_models_of(
    provider: Provider, transport: Transport, keyring: Keyring, deadlines: Deadlines = ASKING
) -> tuple[str, ...]:
    """Return the ids that a provider lists: of several servers, all that answer are heard. Raises BardoError where none answers."""
    servers = provider.servers
    if len(servers) == 1:
        return await list_models(provider, transport, keyring, deadlines)
    asked = (list_models(server, transport, keyring, deadlines) for server in servers)
    answers = await asyncio.gather(*asked, return_exceptions=True)
    lists = [answer for answer in answers if isinstance(answer, tuple)]
    if not lists:
        raise next(answer for answer in answers if isinstance(answer, BaseException))
    return tuple(dict.fromkeys(name for names in lists for name in names))


class _Listed(msgspec.Struct):
    id: str = ""
    name: str = ""
    owned_by: object = None


class _List(msgspec.Struct):
    data: list[_Listed] | None = None
    models: list[_Listed] | None = None


def _id(row: _Listed) -> str:
    """Return by which name a model is asked for. Google writes `models/` before it in both of its lists; others mean a path by that."""
    name = row.id or row.name
    return name.removeprefix("models/") if not row.id or row.owned_by == "google" else name
