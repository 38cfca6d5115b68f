"""The options of `bardo ask`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bardo.surfaces.cli.options import finite, gateway_option
from bardo.surfaces.render.answer import ReasoningStyle

Words = Annotated[list[str] | None, typer.Argument(metavar="PROMPT...", help="The question; - or nothing reads stdin.")]
Model = Annotated[
    str, typer.Option("--model", "-m", metavar="NAME", help="A model's id, provider/model, or a part of one id.")
]
Reasoning = Annotated[
    str | None,
    typer.Option("--reasoning", "--effort", "-r", metavar="HOW", help="off, auto, low … or tokens."),
]
System = Annotated[str, typer.Option("--system", "-s", metavar="TEXT", help="A system prompt.")]
Attach = Annotated[
    list[str] | None,
    typer.Option("--attach", "-a", metavar="FILE", help="A picture, PDF, sound or text; - is stdin."),
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
