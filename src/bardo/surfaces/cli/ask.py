"""`bardo ask`: one question, and the answer on stdout as it arrives."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Mapping
from typing import Any

import msgspec
import typer
from typer.core import TyperCommand

from bardo.adapters.config.settings import Settings, data_folder, load_settings
from bardo.structured import UnusableAnswer
from bardo.surfaces.cli import UNUSABLE_ANSWER
from bardo.surfaces.cli import ask_options as option
from bardo.surfaces.cli.ask_attachments import attached_blocks
from bardo.surfaces.cli.ask_conversations import Conversation, Conversations
from bardo.surfaces.cli.ask_models import chosen_model
from bardo.surfaces.cli.ask_prompt import question_of
from bardo.surfaces.cli.options import STDIN, AsJson, policy_of, read_schema
from bardo.surfaces.cli.running_gateway import PROVIDER, not_running, through_gateway, with_key
from bardo.surfaces.library.asking import Options, build_request
from bardo.surfaces.library.stream import AsyncReplyStream
from bardo.surfaces.library.typed import AnswerType, TypedResponse
from bardo.surfaces.render.answer import AnswerText, AnswerWriter, PlainText, ReasoningStyle
from bardo.surfaces.render.console import print_problem, print_stderr, show_json
from bardo.surfaces.render.replies import call_line, reasoning_text, reply_json
from bardo.surfaces.render.wording import difference
from bardo.values.blocks import TextBlock
from bardo.values.errors import InvalidRequest, Unreachable
from bardo.values.request import Message, Request
from bardo.values.response import Response
from bardo.wiring import assemble


class _AskCommand(TyperCommand):
    """The command, whose `--show-reasoning` may stand without a value: it takes none from the word behind it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        options = ["--show-reasoning=full" if word == "--show-reasoning" else word for word in args[:end]]
        return super().parse_args(ctx, [*options, *args[end:]])


def register(app: typer.Typer) -> None:
    """Add the command."""
    example = 'Example: git diff | bardo ask "Review this" -m claude-opus-4-8 --effort low'
    app.command("ask", epilog=example, cls=_AskCommand)(ask)


def ask(
    words: option.Words = None,
    model: option.Model = "",
    reasoning: option.Reasoning = None,
    system: option.System = "",
    attach: option.Attach = None,
    template: option.TemplateName = "",
    conversation: option.ConversationName = "",
    go_on: option.ContinueWithResults = False,
    schema: option.SchemaFile = None,
    max_tokens: option.MaxTokens = None,
    temperature: option.Temperature = None,
    show_reasoning: option.Show = None,
    plain: option.Plain = False,
    gateway: option.Gateway = "",
    key: option.Key = "",
    as_json: AsJson = False,
    verbose: option.Verbose = False,
    config: option.ConfigFile = None,
) -> None:
    """Ask a model. The answer goes to stdout, everything else to stderr."""
    settings = load_settings(config)
    kept = Conversations(data_folder(settings))
    earlier = _load_conversation(kept, conversation, go_on=go_on)
    question = question_of(words or (), template, stdin_taken=STDIN in (attach or ()))
    question = question.with_options(model=model, system=system, reasoning=reasoning).after(earlier)
    turn = Message("user", (*attached_blocks(attach or ()), TextBlock(question.prompt)))
    options: Options = {"system": question.system, "max_output_tokens": max_tokens, "temperature": temperature}
    if question.reasoning is not None:
        options["reasoning"] = policy_of(str(question.reasoning))
    wanted = None if schema is None else AnswerType(read_schema(schema))
    messages = (*(earlier.messages if earlier else ()), turn)
    request = build_request(messages, question.model, options, stream=True)
    style = show_reasoning or ReasoningStyle.NONE
    writer = None if as_json or wanted else AnswerWriter(style=style, answer=_answer(plain=plain))
    if gateway:
        settings = through_gateway(settings, gateway)
    began = time.monotonic()
    asked, response = _run(_ask(settings, with_key(key), request, writer, wanted, PROVIDER if gateway else ""))
    _show(response, as_json=as_json)
    if style != ReasoningStyle.NONE and response.reasoning.visibility == "opaque":
        print_stderr(f"bardo: reasoning performed (not visible): {reasoning_text(response.reasoning)}")
    if verbose:
        print_stderr(f"bardo: {call_line(response, time.monotonic() - began)}")
    if response.error is not None:
        raise response.error
    if earlier is not None:
        answer = Message("assistant", response.blocks)
        kept.store(earlier, turn, answer, model=asked, system=question.system)


def _load_conversation(kept: Conversations, name: str, *, go_on: bool) -> Conversation | None:
    if name and go_on:
        raise InvalidRequest("--continue and --conversation are two ways to say it", hint="leave one of them out")
    return kept.latest() if go_on else kept.load(name) if name else None


def _answer(*, plain: bool) -> AnswerText:
    """Return what writes the answer: as Markdown where stdout is a terminal that can draw."""
    if plain or not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        return PlainText()
    from bardo.surfaces.render.markdown import MarkdownText

    return MarkdownText()


def _run(call: Any) -> tuple[str, Response]:
    """Run the call. Ends the program where the model's answer does not conform, after showing what it said."""
    try:
        result: tuple[str, Response] = asyncio.run(call)
    except UnusableAnswer as problem:
        print_stderr(problem.extraction.text)
        print_problem(problem)
        raise typer.Exit(UNUSABLE_ANSWER) from problem
    return result


async def _ask(
    settings: Settings,
    environment: Mapping[str, str],
    request: Request,
    writer: AnswerWriter | None,
    wanted: AnswerType | None,
    only: str,
) -> tuple[str, Response]:
    """Return which model was asked, and the whole reply, written as it arrives where there is a writer."""
    # One call is over before a server's answer to a question about it would be of use.
    quiet = msgspec.structs.replace(settings.reasoning, introspect=False)
    assembly = assemble(msgspec.structs.replace(settings, reasoning=quiet), environment=environment)
    try:
        runner = assembly.runner
        name = await chosen_model(runner.directory, runner.keyring, request.model, only=only)
        request = msgspec.structs.replace(request, model=name)
        stream = AsyncReplyStream(lambda: runner, request, wanted)
        if writer is None:
            async with stream as reply:
                return name, await reply.response() if wanted is None else await reply.typed_response()
        with writer:
            async with stream as reply:
                async for event in reply.events:
                    writer.feed(event)
                return name, await reply.response()
    except Unreachable as problem:
        if only:
            raise not_running(assembly.runner.directory.providers[0].base_url, problem, "--gateway") from problem
        raise
    finally:
        await assembly.close()


def _show(response: Response, *, as_json: bool) -> None:
    if as_json:
        show_json({**reply_json(response), "cost_usd": response.bardo.get("cost_usd")})
        return
    if isinstance(response, TypedResponse):
        show_json(response.parsed)
    _print_notes(response)


def _print_notes(response: Response) -> None:
    """Print model, usage, cost and degradations to stderr."""
    for degradation in response.degraded:
        print_stderr(f"bardo: changed: {difference(degradation)}")
    if response.refusal:
        print_stderr("bardo: the model refused")
    if response.finish.reason == "length":
        print_stderr("bardo: the answer is cut: the model reached its output limit")
    if not response.text and not response.refusal and response.error is None:
        print_stderr(
            f"bardo: the model gave no answer (it finished with {response.finish.raw or response.finish.reason})"
        )
