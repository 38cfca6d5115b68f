"""`bardo parse`: read a recorded reply, or the raw text of a model."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from bardo.planning.text_formats import ExplainedFormats
from bardo.reasoning.formats import example_of
from bardo.surfaces.cli.options import STDIN, AsJson, Config, read_bytes
from bardo.surfaces.library.decoding import decode, read_as, read_text
from bardo.surfaces.render.console import show, show_json, show_text
from bardo.surfaces.render.replies import blocks_table, reply_facts, reply_json
from bardo.surfaces.render.wording import one_line
from bardo.values.errors import InvalidRequest
from bardo.values.response import Response


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("parse", epilog="Example: bardo parse reply.sse --provider groq")(parse)


def parse(
    file: Annotated[str, typer.Argument(help="The file; - reads stdin.")] = STDIN,
    provider: Annotated[
        str, typer.Option("--provider", "-p", help="The provider of the reply: a name in `bardo catalog`.")
    ] = "",
    model: Annotated[str, typer.Option("--model", "-m", help="The model that wrote the text.")] = "",
    text_format: Annotated[
        str, typer.Option("--format", "-f", help="The reasoning format of the text: a name in `bardo catalog formats`.")
    ] = "",
    streamed: Annotated[
        bool | None,
        typer.Option(
            "--streamed/--whole", help="Whether the reply is a stream; by default detected.", show_default=False
        ),
    ] = None,
    inside: Annotated[
        bool | None,
        typer.Option(
            "--inside/--outside",
            help="Whether the text begins inside thinking; by default detected from the format and the text.",
            show_default=False,
        ),
    ] = None,
    prompt: Annotated[
        str,
        typer.Option(
            "--prompt",
            metavar="FILE",
            help="The rendered prompt: its end shows whether the text begins inside thinking.",
        ),
    ] = "",
    explain: Annotated[
        bool, typer.Option("--explain", help="Show which format the text is read in, where it begins, and why.")
    ] = False,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Show what a reply holds: thinking, answer, tool calls.

    With --provider FILE is a recorded body, whole or streamed; otherwise it is a model's raw text.
    """
    if provider and (explain or inside is not None or bool(prompt)):
        raise InvalidRequest(
            "--explain, --prompt, --inside and --outside are about a model's text",
            hint="leave --provider out, or the other: a provider's row says how its text is marked",
        )
    if provider and text_format:
        raise InvalidRequest(
            "--provider and --format exclude each other", hint="a provider's row says how its text is marked"
        )
    if streamed is not None and not provider:
        raise InvalidRequest("--streamed and --whole are about a provider's reply", hint="give --provider too")
    body = read_bytes(file)
    if provider:
        _show(decode(body, provider, streamed=streamed, model=model), None, as_json)
        return
    if not model and not text_format:
        _check_is_text(body)
    text = _text(body)
    before = _text(read_bytes(prompt)) if prompt else None
    reading = read_as(text, model=model, format=text_format, starts_inside=inside, prompt=before, config=config)
    _show(read_text(text, reading.formats, model=model), reading if explain else None, as_json)


def _text(body: bytes) -> str:
    return body.decode("utf-8", "replace").removeprefix("\ufeff")


def _check_is_text(body: bytes) -> None:
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


def _show(response: Response, reading: ExplainedFormats | None, as_json: bool) -> None:
    if as_json:
        explained = {} if reading is None else {"read_as": _reading_fields(reading)}
        show_json({**explained, **reply_json(response)})
        return
    if reading is not None:
        from bardo.surfaces.render.tables import facts

        row, formats = reading.choice.format, reading.formats
        begins = "inside thinking" if formats.starts_inside else "outside thinking"
        rows = [
            ("format", f"{row.name}, because {reading.choice.why}"),
            ("like", one_line(example_of(row))),
            ("begins", f"{begins}, because {reading.because}"),
            ("calls", f"{formats.calls.name}, because its pattern fits the model's name" if formats.calls else ""),
        ]
        show(facts((name, value) for name, value in rows if value))
        show_text()
    show(reply_facts(response))
    if response.blocks:
        show_text()
        show(blocks_table(response))


def _reading_fields(reading: ExplainedFormats) -> dict[str, Any]:
    choice, formats = reading.choice, reading.formats
    return {
        "format": choice.format.name,
        "chosen_by": choice.by,
        "matched": choice.matched,
        "starts_inside": formats.starts_inside,
        "because": reading.because,
        "calls": formats.calls.name if formats.calls else None,
    }
