"""`bardo ask`: one question, and the answer on stdout as it arrives."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from bardo.edge.assembly import assemble
from bardo.edge.keys import Keyring
from bardo.edge.model_list import first_model
from bardo.edge.settings import Settings, load_settings
from bardo.structured import UnusableAnswer
from bardo.surfaces.cli.options import AsJson, Config, policy_of, read_prompt, read_schema
from bardo.surfaces.cli.pictures import prompt_with
from bardo.surfaces.library.asking import Options, build_request
from bardo.surfaces.library.stream import AsyncReplyStream
from bardo.surfaces.library.typed import AnswerType, TypedResponse
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
    prompt: Annotated[
        str | None, typer.Argument(metavar="PROMPT", help="The question; - or nothing reads it from stdin.")
    ] = None,
    model: Annotated[
        str,
        typer.Option("--model", "-m", help="A model's id, or provider/model; by default the first that can be asked."),
    ] = "",
    reasoning: Annotated[
        str | None,
        typer.Option("--reasoning", "-r", metavar="HOW", help="off, auto, low, medium, high …, or a budget in tokens."),
    ] = None,
    system: Annotated[str, typer.Option("--system", "-s", metavar="TEXT", help="A system prompt.")] = "",
    image: Annotated[
        list[str] | None,
        typer.Option("--image", "-a", metavar="FILE", help="A picture: a file, or its http(s) address. Repeatable."),
    ] = None,
    schema: Annotated[
        Path | None, typer.Option("--schema", metavar="FILE", help="A JSON Schema: the answer is JSON that conforms.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", metavar="N", min=1, help="The longest reply, thinking included.")
    ] = None,
    temperature: Annotated[float | None, typer.Option("--temperature", "-t", metavar="T", min=0.0)] = None,
    show_reasoning: Annotated[bool, typer.Option("--show-reasoning", help="Print the thinking, on stderr.")] = False,
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """Ask a model. The answer goes to stdout, all else to stderr; what is piped in is added to the prompt."""
    options: Options = {"system": system, "max_output_tokens": max_tokens, "temperature": temperature}
    if reasoning is not None:
        options["reasoning"] = policy_of(reasoning)
    wanted = None if schema is None else AnswerType(read_schema(schema))
    request = build_request(prompt_with(read_prompt(prompt), image or ()), model, options, stream=True)
    writer = None if as_json or wanted else AnswerWriter(show_reasoning=show_reasoning)
    try:
        response = asyncio.run(_ask(load_settings(config), request, writer, wanted))
    except UnusableAnswer as problem:
        say(problem.extraction.text)
        raise
    _show(response, as_json=as_json)
    if response.error is not None:
        raise response.error


async def _ask(
    settings: Settings, request: Request, writer: AnswerWriter | None, wanted: AnswerType | None
) -> Response:
    """Return the whole reply, written as it arrives where there is a writer."""
    # One call is over before a server's answer to a question about it would be of use.
    quiet = msgspec.structs.replace(settings.reasoning, introspect=False)
    assembly = assemble(msgspec.structs.replace(settings, reasoning=quiet))
    try:
        if not request.model:
            name = await first_model(assembly.runner.directory, Keyring())
            say(f"bardo: asking {name}")
            request = msgspec.structs.replace(request, model=name)
        stream = AsyncReplyStream(lambda: assembly.runner, request, wanted)
        if writer is None:
            async with stream as reply:
                return await reply.response() if wanted is None else await reply.typed_response()
        with writer:
            async with stream as reply:
                async for event in reply.events:
                    writer.feed(event)
                return await reply.response()
    finally:
        await assembly.close()


def _show(response: Response, *, as_json: bool) -> None:
    if as_json:
        show_json(reply_json(response))
        return
    if isinstance(response, TypedResponse):
        show_json(response.parsed)
    _tell(response)


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
