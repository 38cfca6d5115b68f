"""`bardo ask`: one question, and the answer on stdout as it arrives."""

from __future__ import annotations

import asyncio
from typing import Annotated

import msgspec
import typer

from bardo.edge.assembly import assemble
from bardo.edge.settings import Settings, load_settings
from bardo.surfaces.cli.options import AsJson, Config, policy_of, read_prompt
from bardo.surfaces.library.asking import Options, build_request
from bardo.surfaces.library.stream import AsyncReplyStream
from bardo.surfaces.render.answer import AnswerWriter
from bardo.surfaces.render.console import say, show_json
from bardo.surfaces.render.replies import reply_json
from bardo.surfaces.render.wording import difference
from bardo.values.request import Request
from bardo.values.response import Response


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("ask", epilog='Example: git diff | bardo ask "Review this" --model claude-opus-4-8 --reasoning low')(
        ask
    )


def ask(
    model: Annotated[str, typer.Option("--model", "-m", help="A model's id, or provider/model.")],
    prompt: Annotated[
        str | None, typer.Argument(metavar="PROMPT", help="The question; - or nothing reads it from stdin.")
    ] = None,
    reasoning: Annotated[
        str | None,
        typer.Option("--reasoning", "-r", metavar="HOW", help="off, auto, low, medium, high …, or a budget in tokens."),
    ] = None,
    system: Annotated[str, typer.Option("--system", "-s", metavar="TEXT", help="A system prompt.")] = "",
    show_reasoning: Annotated[bool, typer.Option("--show-reasoning", help="Print the thinking, on stderr.")] = False,
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """Ask a model. The answer goes to stdout, all else to stderr; what is piped in is added to the prompt."""
    options: Options = {"system": system}
    if reasoning is not None:
        options["reasoning"] = policy_of(reasoning)
    request = build_request(read_prompt(prompt), model, options, stream=True)
    settings = load_settings(config)
    writer = None if as_json else AnswerWriter(show_reasoning=show_reasoning)
    response = asyncio.run(_ask(settings, request, writer))
    if as_json:
        show_json(reply_json(response))
    else:
        _tell(response)
    if response.error is not None:
        raise response.error


async def _ask(settings: Settings, request: Request, writer: AnswerWriter | None) -> Response:
    """Return the whole reply, written as it arrives where there is a writer."""
    # One call is over before a server's answer to a question about it would be of use.
    quiet = msgspec.structs.replace(settings.reasoning, introspect=False)
    assembly = assemble(msgspec.structs.replace(settings, reasoning=quiet))
    try:
        if writer is None:
            async with AsyncReplyStream(lambda: assembly.runner, request) as reply:
                return await reply.response()
        with writer:
            async with AsyncReplyStream(lambda: assembly.runner, request) as reply:
                async for event in reply.events:
                    writer.feed(event)
                return await reply.response()
    finally:
        await assembly.close()


def _tell(response: Response) -> None:
    """Say on stderr what the answer alone does not."""
    for degradation in response.degraded:
        say(f"bardo: changed: {difference(degradation)}")
    if response.refusal:
        say("bardo: the model refused")
    if response.finish.reason == "length":
        say("bardo: the answer is cut: the model reached its output limit")
    if not response.text and not response.refusal and response.error is None:
        say(f"bardo: the model gave no answer (it finished with {response.finish.raw or response.finish.reason})")
