"""`bardo demo`: every provider's thinking in one form, in a few seconds, without a key.

One question goes to every simulated provider, through a gateway, over HTTP, in every client dialect.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import msgspec
import typer

from bardo.adapters.config.settings import LogSettings, Settings
from bardo.adapters.net.client import Call, Deadlines, HttpTransport, Transport
from bardo.adapters.stores.log import LogReader, LogRow
from bardo.server.serving import BackgroundServer
from bardo.simulators import PRESETS, Simulator, presets, serve_many
from bardo.surfaces.cli.options import AsJson
from bardo.surfaces.cli.simulate import KEY_VARIABLE, checked_presets, entry_for
from bardo.surfaces.gateway.app import Gateway
from bardo.surfaces.gateway.main import gateway_of
from bardo.surfaces.library.decoding import decode
from bardo.surfaces.render.console import print_stderr, show, show_json, show_text
from bardo.surfaces.render.tables import Column, table
from bardo.surfaces.render.thinking_sign import THINKING, ThinkingSign
from bardo.surfaces.render.wording import count, excerpt
from bardo.values.errors import BardoError

QUESTION = "What is 27 * 43?"
ANSWER = "1161"
_DEADLINES = Deadlines(connect=5.0, first_byte=20.0, idle=20.0)
_LONGEST = 4 * 1024 * 1024


class DemoRequest(msgspec.Struct, frozen=True, kw_only=True):
    """How one client dialect asks. `reader` is the catalog's row whose replies look as the gateway's do in this dialect."""

    dialect: str
    reader: str
    path: Callable[[str, bool], str]
    body: Callable[[str, bool], dict[str, Any]]


def _chat(model: str, streamed: bool) -> dict[str, Any]:
    body = {"model": model, "messages": [{"role": "user", "content": QUESTION}], "reasoning_effort": "low"}
    return {**body, "stream": True, "stream_options": {"include_usage": True}} if streamed else body


def _responses(model: str, streamed: bool) -> dict[str, Any]:
    return {"model": model, "input": QUESTION, "reasoning": {"effort": "low", "summary": "auto"}, "stream": streamed}


def _messages(model: str, streamed: bool) -> dict[str, Any]:
    return {
        "model": model,
        "max_tokens": 4096,
        "messages": [{"role": "user", "content": QUESTION}],
        "thinking": {"type": "enabled", "budget_tokens": 2048},
        "stream": streamed,
    }


def _gemini(model: str, streamed: bool) -> dict[str, Any]:
    thinking = {"includeThoughts": True, "thinkingBudget": 2048}
    return {
        "contents": [{"role": "user", "parts": [{"text": QUESTION}]}],
        "generationConfig": {"thinkingConfig": thinking},
    }


def _gemini_path(model: str, streamed: bool) -> str:
    verb = "streamGenerateContent?alt=sse" if streamed else "generateContent"
    return f"/v1beta/models/{quote(model, safe='')}:{verb}"


_ASKS = (
    DemoRequest(dialect="openai_chat", reader="openai-chat", path=lambda *_: "/v1/chat/completions", body=_chat),
    DemoRequest(dialect="openai_responses", reader="openai", path=lambda *_: "/v1/responses", body=_responses),
    DemoRequest(dialect="anthropic_messages", reader="anthropic", path=lambda *_: "/v1/messages", body=_messages),
    DemoRequest(dialect="gemini", reader="gemini", path=_gemini_path, body=_gemini),
)


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """What one question gave. `answer` and `reasoning` are what the client read, the counts what bardo's log says of the call.

    `problem` is empty where all went well.
    """

    provider: str
    dialect: str
    client_dialect: str
    streamed: bool
    visibility: str = ""
    reasoning_tokens: int | None = None
    tokens_approx: bool = False
    reasoning: str = ""
    answer: str = ""
    problem: str = ""


def demonstrate(names: Sequence[str] = ()) -> list[Row]:
    """Ask the named simulators, by default all, and return what each gave. Leaves nothing running and nothing on disk."""
    with tempfile.TemporaryDirectory(prefix="bardo-demo-") as folder:
        log = Path(folder) / "log.db"
        rows = asyncio.run(_ask_all(names or presets(), log))
        with LogReader(log) as reader:
            logged = {call.provider: call for call in reader.recent(len(rows))}
        return [_with_counts(row, logged.get(row.provider)) for row in rows]


async def _ask_all(names: Sequence[str], log: Path) -> list[Row]:
    simulators = [Simulator(name) for name in names]
    async with serve_many(simulators) as addresses:
        entries = tuple(entry_for(simulator, addresses[simulator.provider.name]) for simulator in simulators)
        settings = Settings(providers=entries, log=LogSettings(path=str(log)))
        async with _serve_in_thread(gateway_of(settings, {KEY_VARIABLE: "simulated"})) as address:
            transport = HttpTransport()
            try:
                asked = (_ask_gateway(transport, address, place, name) for place, name in enumerate(names))
                return await asyncio.gather(*asked)
            finally:
                await transport.close()


@asynccontextmanager
async def _serve_in_thread(gateway: Gateway) -> AsyncIterator[str]:
    """Serve the gateway from a thread of its own; gives its address."""
    server = BackgroundServer(gateway)
    # Starting and stopping wait for that thread, which needs this loop for its simulators.
    await asyncio.to_thread(server.__enter__)
    try:
        yield server.address
    finally:
        await asyncio.to_thread(server.__exit__, None, None, None)


async def _ask_gateway(transport: Transport, address: str, place: int, name: str) -> Row:
    """Ask one provider; its place decides in which dialect, and whether streamed."""
    ask = _ASKS[place % len(_ASKS)]
    streamed = (place + place // len(_ASKS)) % 2 == 1
    provider = PRESETS[name]
    model = f"{name}/{provider.models[0]}"
    row = Row(provider=name, dialect=provider.dialect, client_dialect=ask.dialect, streamed=streamed)
    try:
        status, body = await _post(transport, address + ask.path(model, streamed), ask.body(model, streamed))
    except BardoError as problem:
        return msgspec.structs.replace(row, problem=str(problem))
    response = decode(body, ask.reader, streamed=streamed and status == 200)
    wrong = f"status {status}: {response.error.message}" if response.error is not None else ""
    return msgspec.structs.replace(
        row, reasoning=response.reasoning.content or "", answer=response.text.strip(), problem=wrong
    )


async def _post(transport: Transport, url: str, body: dict[str, Any]) -> tuple[int, bytes]:
    headers = {"content-type": "application/json", "authorization": "Bearer any"}
    reply = await transport.send(Call(url=url, headers=headers, body=msgspec.json.encode(body)), _DEADLINES)
    try:
        return reply.status, await reply.read(_LONGEST)
    finally:
        await reply.close()


def _with_counts(row: Row, call: LogRow | None) -> Row:
    """Add what the log says of the call, and the faults of what came back."""
    if call is None:
        return msgspec.structs.replace(row, problem=row.problem or "the call is not in the log")
    row = msgspec.structs.replace(
        row, visibility=call.visibility or "", reasoning_tokens=call.reasoning_tokens, tokens_approx=call.tokens_approx
    )
    return msgspec.structs.replace(row, problem=row.problem or _fault_of(row))


def _fault_of(row: Row) -> str:
    if row.answer != ANSWER:
        return f"the answer is not {ANSWER}"
    if row.visibility == "none":
        return "no sign of thinking"
    if row.visibility in ("visible", "summarized") and not row.reasoning:
        return "the thinking did not reach the client"
    return ""


_COLUMNS = (
    Column("provider", keep=True),
    Column("dialect", drop=1),
    Column("client dialect", drop=2),
    Column("reply"),
    Column("visibility"),
    Column("thinking", right=True),
    Column("answer", cut=True),
)


_LEGEND = """
dialect     what the provider speaks; the client asked in a dialect of its own
visibility  visible: the thinking came back in full; summarized: as a summary;
            opaque: there was some, and nobody may read it
thinking    its tokens; ~ where bardo estimates them from the text"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo", epilog="Example: bardo demo anthropic gemini vllm")(demo)


def demo(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="PRESET...", help="The simulated providers; by default all.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """See every provider's thinking in one form.

    Asks simulated providers one question through a gateway, in every client dialect, and compares what comes back. Needs no key and no
    network, and leaves nothing behind.
    """
    rows = _ask(checked_presets(names or ()))
    failed = [row for row in rows if row.problem]
    if as_json:
        show_json({"question": QUESTION, "ok": not failed, "rows": rows})
    else:
        show_text(f"{len(rows)} simulated providers were asked “{QUESTION}” through a bardo gateway.\n")
        show(table(_COLUMNS, (_cells(row) for row in rows)))
        show_text(_LEGEND)
        for row in failed:
            print_stderr(f"bardo: {row.provider}: {excerpt(row.problem, 300)}")
    if failed:
        raise typer.Exit(1)


def _ask(names: list[str]) -> list[Row]:
    sign = ThinkingSign(shown=sys.stderr.isatty())
    sign.show(THINKING)
    try:
        return demonstrate(names)
    finally:
        sign.hide()


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.provider,
        row.dialect,
        row.client_dialect,
        "stream" if row.streamed else "whole",
        row.visibility or "failed",
        count(row.reasoning_tokens, estimated=row.tokens_approx),
        excerpt(row.answer, 40) or "failed",
    )
