"""`bardo parse`: read a recorded reply, or the raw text of a model."""

from __future__ import annotations

from typing import Annotated

import typer

from bardo.surfaces.cli.inputs import STDIN, read_bytes
from bardo.surfaces.cli.options import AsJson
from bardo.surfaces.library.decoding import decode
from bardo.surfaces.library.decoding import parse as parse_text
from bardo.surfaces.render.console import show, show_json
from bardo.surfaces.render.replies import blocks_table, reply_facts, reply_json
from bardo.values.errors import InvalidRequest
from bardo.values.response import Response


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("parse", epilog="Example: bardo parse reply.sse --provider groq")(parse)


def parse(
    file: Annotated[str, typer.Argument(help="The file; - reads stdin.")] = STDIN,
    provider: Annotated[
        str, typer.Option("--provider", "-p", help="Whose reply it is: a name of `bardo catalog`.")
    ] = "",
    model: Annotated[str, typer.Option("--model", "-m", help="The model whose text it is.")] = "",
    text_format: Annotated[
        str,
        typer.Option("--format", "-f", help="How thinking is marked in the text: a name of `bardo catalog formats`."),
    ] = "",
    streamed: Annotated[
        bool | None,
        typer.Option(
            "--streamed/--whole", help="How the provider sent it; by default the bytes tell.", show_default=False
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what a reply holds: thinking, answer, tool calls.

    With --provider FILE is a recorded body, whole or streamed; otherwise it is a model's raw text.
    """
    _check(provider, text_format, streamed)
    body = read_bytes(file)
    if provider:
        response = decode(body, provider, streamed=streamed, model=model)
    else:
        if not model and not text_format:
            _refuse_a_body(body)
        response = parse_text(body.decode("utf-8", "replace").removeprefix("\ufeff"), model=model, format=text_format)
    if as_json:
        show_json(reply_json(response))
    else:
        _show(response)


def _check(provider: str, text_format: str, streamed: bool | None) -> None:
    if provider and text_format:
        raise InvalidRequest(
            "--provider and --format exclude each other", hint="a provider's row says how its text is marked"
        )
    if streamed is not None and not provider:
        raise InvalidRequest("--streamed and --whole are about a provider's reply", hint="give --provider too")


def _refuse_a_body(body: bytes) -> None:
    """Raise InvalidRequest where the bytes are a provider's reply and nobody said whose."""
    beginning = body[:4096].removeprefix(b"\xef\xbb\xbf").lstrip()
    if beginning.startswith((b"data:", b"event:", b"id:", b":")):
        kind = "a streamed reply"
    elif beginning.startswith((b"{", b"[{")):
        kind = "JSON"
    else:
        return
    hint = "a provider's reply: --provider openai-chat (or another name of `bardo catalog`); a model's text: --format think"
    raise InvalidRequest(f"this looks like {kind}; say whose it is", hint=hint)


def _show(response: Response) -> None:
    show(reply_facts(response))
    if response.blocks:
        print()
        show(blocks_table(response))
