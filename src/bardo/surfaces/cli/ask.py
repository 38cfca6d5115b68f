"""`bardo ask`: one question, and the answer on stdout as it arrives.

The question is brought together here: words of the command line, piped text, a template, files, and the model that is meant.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import time
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from typer.core import TyperCommand

from bardo.adapters.config.settings import Settings, data_folder, load_settings
from bardo.adapters.net.keys import Keyring
from bardo.dialects.shared.media import sound_block
from bardo.services.facts.directory import PLACING_SECONDS, ProviderDirectory
from bardo.services.facts.model_list import first_model, listed_models
from bardo.structured import UnusableAnswer
from bardo.surfaces.cli.ask_conversations import Conversation, Conversations
from bardo.surfaces.cli.ask_templates import Templates, split_words
from bardo.surfaces.cli.options import (
    STDIN,
    AsJson,
    checked_prompt,
    finite,
    gateway_option,
    given_text,
    policy_of,
    read_schema,
)
from bardo.surfaces.cli.running_gateway import PROVIDER, not_running, through_gateway, with_key
from bardo.surfaces.cli.streams import UNUSABLE_ANSWER
from bardo.surfaces.library.asking import Options, build_request
from bardo.surfaces.library.stream import AsyncReplyStream
from bardo.surfaces.library.typed import AnswerType, TypedResponse
from bardo.surfaces.render.answer import AnswerText, AnswerWriter, PlainText, ReasoningStyle
from bardo.surfaces.render.console import print_problem, print_stderr, show_json
from bardo.surfaces.render.replies import call_line, reasoning_text, reply_json
from bardo.surfaces.render.wording import difference
from bardo.values.blocks import Block, DocumentBlock, ImageBlock, TextBlock
from bardo.values.errors import InvalidRequest, UnknownModel, Unreachable
from bardo.values.file_kinds import file_kind
from bardo.values.request import Message, Request
from bardo.values.response import Response
from bardo.wiring import assemble

Words = Annotated[list[str] | None, typer.Argument(metavar="PROMPT...", help="The question; - or nothing reads stdin.")]
Model = Annotated[
    str, typer.Option("--model", "-m", metavar="NAME", help="A model's id, provider/model, or a part of one id.")
]
Reasoning = Annotated[
    str | None, typer.Option("--reasoning", "--effort", "-r", metavar="HOW", help="off, auto, low … or tokens.")
]
System = Annotated[str, typer.Option("--system", "-s", metavar="TEXT", help="A system prompt.")]
Attach = Annotated[
    list[str] | None, typer.Option("--attach", "-a", metavar="FILE", help="A picture, PDF, sound or text; - is stdin.")
]
TemplateName = Annotated[
    str, typer.Option("--template", "-t", metavar="NAME", help="A template; its NAME=VALUE go before PROMPT.")
]
ConversationName = Annotated[
    str, typer.Option("--conversation", metavar="NAME", help="Continue and keep this conversation.")
]
ContinueWithResults = Annotated[bool, typer.Option("--continue", help="Continue the latest conversation.")]
SchemaFile = Annotated[
    Path | None, typer.Option("--schema", metavar="FILE", help="A JSON Schema that the answer must match.")
]
MaxTokens = Annotated[
    int | None, typer.Option("--max-tokens", metavar="N", min=1, help="The most tokens of the reply.")
]
Temperature = Annotated[float | None, typer.Option("--temperature", metavar="T", min=0.0, callback=finite)]
Show = Annotated[
    ReasoningStyle | None,
    typer.Option("--show-reasoning", metavar="[=HOW]", help="Thinking on stderr: none, line, full or panel."),
]
Plain = Annotated[bool, typer.Option("--plain", help="Print the text without Markdown.")]
Gateway = Annotated[str, gateway_option("Ask through a running gateway, by default $BARDO_INFERENCE_URL.")]
Key = Annotated[str, typer.Option("--key", metavar="KEY", help="The gateway's key, or $BARDO_API_KEY.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Model, tokens, cost and time, on stderr.")]
ConfigFile = Annotated[Path | None, typer.Option("--config", "-c", metavar="FILE", help="The configuration.")]


_MEGABYTE = 1024 * 1024
_MOST_BYTES = 20 * _MEGABYTE
_MOST_TEXT = 2 * _MEGABYTE
_MOST_IN_ALL = 40 * _MEGABYTE
_KINDS = "PNG, JPEG, GIF, WebP, PDF, WAV, MP3, FLAC, Ogg or text in UTF-8"


def attached_blocks(names: Sequence[str]) -> tuple[Block, ...]:
    """Return the blocks of files, of stdin as `-`, or of http(s) addresses. Raises InvalidRequest for anything that cannot be sent.

    They are pictures, PDF, sound and text, each known by its bytes.
    """
    if list(names).count(STDIN) > 1:
        raise InvalidRequest("stdin is attached twice", hint="give - once")
    blocks, size = [], 0
    for name in names:
        if name.startswith(("http://", "https://")):
            blocks.append(_address(name))
            continue
        try:
            if name == STDIN:
                data = sys.stdin.buffer.read(_MOST_BYTES + 1)
            else:
                with Path(name).open("rb") as file:
                    data = file.read(_MOST_BYTES + 1)
        except OSError as problem:
            hint = "give a file, - for stdin, or an address that begins with https://"
            raise InvalidRequest(f"cannot read {name}: {problem.strerror or problem}", hint=hint) from problem
        if len(data) > _MOST_BYTES:
            raise InvalidRequest(f"{name} has more than {_MOST_BYTES // _MEGABYTE} MB", hint="attach a smaller file")
        if not data:
            raise InvalidRequest(f"{name} is empty", hint="attach a file that holds something")
        size += len(data)
        if size > _MOST_IN_ALL:
            raise InvalidRequest(
                f"the attachments have more than {_MOST_IN_ALL // _MEGABYTE} MB together",
                hint="attach fewer or smaller files",
            )
        blocks.append(_block(name, data))
    return tuple(blocks)


def _address(url: str) -> Block:
    """Return the block of an address, which the provider opens: a PDF by its ending, else a picture."""
    path = url.partition("?")[0]
    if path.lower().endswith(".pdf"):
        return DocumentBlock(media_type="application/pdf", url=url, name=path.rpartition("/")[2])
    return ImageBlock(url=url)


def _block(name: str, data: bytes) -> Block:
    shown = "stdin" if name == STDIN else Path(name).name
    kind = file_kind(data)
    if not kind:
        # Every model reads text, and not every provider takes documents.
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text:
            raise InvalidRequest(f"{name} is of no kind that can be sent", hint=f"attach {_KINDS}")
        if len(data) > _MOST_TEXT:
            raise InvalidRequest(
                f"{name} has more than {_MOST_TEXT // _MEGABYTE} MB of text", hint="attach a part of it"
            )
        return TextBlock(f'<file name="{shown}">\n{text.rstrip()}\n</file>')
    encoded = b64encode(data).decode()
    if kind.startswith("image/"):
        return ImageBlock(media_type=kind, data=encoded)
    if kind.startswith("audio/"):
        return sound_block(kind, encoded)
    return DocumentBlock(media_type=kind, data=encoded, name=shown)


_MOST_SHOWN = 12
_WORD = re.compile(r"[^0-9a-z]+")


class AmbiguousModel(UnknownModel):
    """A part of a name that several models have."""


async def chosen_model(directory: ProviderDirectory, keyring: Keyring, wanted: str, *, only: str = "") -> str:
    """Return the name of the model to ask. Where it is not as it was written, it is said on stderr.

    `only`: the provider that is asked for whatever name nobody knows, because it knows more names than it lists. Raises UnknownModel where
    there is none, AmbiguousModel where several fit.
    """
    if wanted and not only and directory.workload(wanted) is not None:
        return wanted
    if not wanted:
        name = await first_model(directory, keyring)
    else:
        try:
            await directory.placement(wanted)
        except UnknownModel as problem:
            found = await _find_match(directory, keyring, wanted, problem, only=only)
            if found is None:
                return f"{only}/{wanted}"
            name = found
        else:
            return wanted
    print_stderr(f"bardo: asking {name}")
    return name


async def _find_match(
    directory: ProviderDirectory, keyring: Keyring, wanted: str, problem: UnknownModel, *, only: str
) -> str | None:
    """Return the one served model that a part of a name means, or None if the only provider may know it. Raises as `best_match`."""
    try:
        lacking = {provider.id for provider in directory.providers if keyring.lacks(provider)}
        models = await listed_models(directory, seconds=PLACING_SECONDS)
        return best_match(
            wanted, [one.id for one in models if "generate" in one.operations and one.provider not in lacking], problem
        )
    except AmbiguousModel:
        raise
    except UnknownModel:
        if only:
            return None
        raise


def best_match(wanted: str, served: Sequence[str], problem: UnknownModel) -> str:
    """Return the one model that a part of a name means.

    Models whose names hold it as whole words go before others. Of names of which one begins all others, it is that one: the others are
    dated or further named forms of it. Raises `problem` where none fits, AmbiguousModel where several do.
    """
    parts = _whole_words(wanted)
    fitting = [name for name in served if parts and all(part in name.lower() for part in parts)]
    whole = [name for name in fitting if set(parts) <= set(_whole_words(name))]
    found: dict[str, str] = {}
    for name in whole or fitting:
        # The same model at several providers is one model, at the first of them.
        found.setdefault(name.rpartition("/")[2].lower(), name)
    shortest = min(found, key=len, default="")
    if not found:
        raise problem
    if any(not name.startswith(shortest) or name[len(shortest) :][:1].isalnum() for name in found):
        names = list(found.values())
        more = f" and {len(names) - _MOST_SHOWN} more" if len(names) > _MOST_SHOWN else ""
        raise AmbiguousModel(
            f"{wanted!r} may be one of {len(names)} models: {', '.join(names[:_MOST_SHOWN])}{more}",
            hint="write more of its name",
        )
    return found[shortest]


def _whole_words(name: str) -> list[str]:
    return [word for word in _WORD.split(name.lower()) if word]


_INPUT = "input"


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A question with what is set for it; what is empty or None is left to others."""

    prompt: str
    model: str = ""
    system: str = ""
    reasoning: str | int | None = None

    def with_options(self, *, model: str, system: str, reasoning: str | None) -> Question:
        """Return the question with what the command line says, which goes before the template."""
        return msgspec.structs.replace(
            self,
            model=model or self.model,
            system=system or self.system,
            reasoning=self.reasoning if reasoning is None else reasoning,
        )

    def after(self, earlier: Conversation | None) -> Question:
        """Return the question as the next one of a conversation, whose model and system prompt hold where no others are named."""
        if earlier is None:
            return self
        return msgspec.structs.replace(self, model=self.model or earlier.model, system=self.system or earlier.system)


def question_of(words: Sequence[str], template: str, *, stdin_taken: bool) -> Question:
    """Return the question. `stdin_taken`: stdin is an attachment. Raises InvalidRequest where nothing is asked."""
    if not template:
        return Question(prompt=checked_prompt(given_text(" ".join(words), stdin_taken=stdin_taken, alone=True)))
    found = Templates().load(template)
    given, rest = split_words(words)
    text = given_text(" ".join(rest), stdin_taken=stdin_taken, alone=False)
    if _INPUT in found.names and _INPUT not in given and (text or _INPUT not in found.variables):
        if not text:
            raise InvalidRequest("the template needs a text", hint="write it behind the variables, or pipe it in")
        given, text = {**given, _INPUT: text}, ""
    filled = found.filled(given)
    prompt = f"{filled.prompt.rstrip()}\n\n{text}" if text else filled.prompt
    return Question(prompt=checked_prompt(prompt), model=filled.model, system=filled.system, reasoning=filled.reasoning)


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
    words: Words = None,
    model: Model = "",
    reasoning: Reasoning = None,
    system: System = "",
    attach: Attach = None,
    template: TemplateName = "",
    conversation: ConversationName = "",
    go_on: ContinueWithResults = False,
    schema: SchemaFile = None,
    max_tokens: MaxTokens = None,
    temperature: Temperature = None,
    show_reasoning: Show = None,
    plain: Plain = False,
    gateway: Gateway = "",
    key: Key = "",
    as_json: AsJson = False,
    verbose: Verbose = False,
    config: ConfigFile = None,
) -> None:
    """Ask a model. The answer goes to stdout, everything else to stderr."""
    settings = load_settings(config)
    kept = Conversations(data_folder(settings))
    if conversation and go_on:
        raise InvalidRequest("--continue and --conversation are two ways to say it", hint="leave one of them out")
    earlier = kept.latest() if go_on else kept.load(conversation) if conversation else None
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
        services = assembly.services
        name = await chosen_model(services.directory, services.keyring, request.model, only=only)
        request = msgspec.structs.replace(request, model=name)
        stream = AsyncReplyStream(lambda: services, request, wanted)
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
            raise not_running(assembly.services.directory.providers[0].base_url, problem, "--gateway") from problem
        raise
    finally:
        await assembly.close()


def _show(response: Response, *, as_json: bool) -> None:
    if as_json:
        show_json({**reply_json(response), "cost_usd": response.bardo.get("cost_usd")})
        return
    if isinstance(response, TypedResponse):
        show_json(response.parsed)
    # Print model, usage, cost and degradations to stderr.
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
