"""`bardo conform`: check a server or gateway against the laws that clients of its API rely on, and report as lines, JSON or HTML."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from bardo.adapters.net.client import HttpTransport
from bardo.dialects import DEFAULT_DIALECT
from bardo.operators.conform.checked_server import CheckedServer
from bardo.operators.conform.checks import WIRES, Checker, CheckOptions
from bardo.operators.conform.laws import LAWS, Finding, Report
from bardo.surfaces.cli.options import AsJson
from bardo.surfaces.render.console import print_stderr, show, show_json
from bardo.values.errors import ConfigError, InvalidRequest, Unreachable
from bardo.values.secrets import shown_url

_LAWS = {law.id: law for law in LAWS}
_SIGNS = {"kept": "ok", "broken": "BROKEN", "unclear": "unclear", "skipped": "skipped"}
_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1d1d1f;background:#fff}
table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.5rem;border-top:1px solid #8886}
pre{white-space:pre-wrap;overflow-wrap:anywhere;font-size:.8rem;margin:.3rem 0 0}
.kept{color:#0a6b2d}.broken{color:#a8071a;font-weight:700}.unclear,.skipped{color:#5c5c66}
@media (prefers-color-scheme:dark){body{color:#eee;background:#16161a}
.kept{color:#6fdc8c}.broken{color:#ff8389}.unclear,.skipped{color:#a8a8b3}}
"""


def finding_line(finding: Finding) -> str:
    """Return one finding as a line, with its faults below it."""
    law = _LAWS[finding.law]
    head = f"{_SIGNS[finding.status]:8} {finding.law:17} {law.title}"
    return "\n".join([head, *(f"{'':27}{fault}" for fault in finding.faults)])


def summary_line(report: Report) -> str:
    """Return how many laws hold, do not, and could not be told."""
    counts = {status: sum(finding.status == status for finding in report.findings) for status in _SIGNS}
    return f"{counts['kept']} hold, {counts['broken']} broken, {counts['unclear']} unclear, {counts['skipped']} skipped"


def report_json(report: Report) -> dict[str, Any]:
    """Return a report for programs."""
    laws = [
        {**msgspec.to_builtins(finding), "title": _LAWS[finding.law].title, "why": _LAWS[finding.law].why}
        for finding in report.findings
    ]
    return {**msgspec.to_builtins(report), "findings": laws, "conforms": not report.broken}


def report_page(report: Report) -> str:
    """Return a report as one page that needs no other file. Nothing of what the server sent is markup in it."""
    when = datetime.fromtimestamp(report.at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    head = f"{escape(report.model)} at {escape(report.address)}, {escape(report.dialect)}"
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>Conformance of {head}</title><style>{_STYLE}</style>"
        f"<main><h1>Conformance of {head}</h1><p>{when}: {summary_line(report)}.</p>"
        f'<table><thead><tr><th scope="col">Law<th scope="col">Found<th scope="col">What</thead>'
        f"<tbody>{''.join(map(_row, report.findings))}</tbody></table></main></html>\n"
    )


def _row(finding: Finding) -> str:
    law = _LAWS[finding.law]
    faults = "<br>".join(escape(fault) for fault in finding.faults)
    evidence = f"<pre>{escape(finding.evidence)}</pre>" if finding.evidence else ""
    title = f"{escape(law.title)}<br><small>{escape(law.why)}</small>"
    return f'<tr><th scope="row">{title}<td class="{finding.status}">{_SIGNS[finding.status]}<td>{faults}{evidence}'


def law_lines() -> Sequence[str]:
    """Return all laws, with why each is one."""
    return [f"{law.id:17} {law.title}: {law.why}" for law in LAWS]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("conform", epilog="Example: bardo conform http://127.0.0.1:8484/v1 --model lab/m1")(conform)


def conform(
    url: Annotated[str, typer.Argument(metavar="URL", help="The base URL of SDKs, such as http://host/v1.")] = "",
    model: Annotated[str, typer.Option("--model", "-m", metavar="MODEL", help="A model of the server.")] = "",
    dialect: Annotated[str, typer.Option(metavar="DIALECT", help=f"One of {', '.join(WIRES)}.")] = DEFAULT_DIALECT,
    key_env: Annotated[str, typer.Option(metavar="NAME", help="The variable that holds the key.")] = "",
    no_thinking: Annotated[bool, typer.Option("--no-thinking", help="The model does not think.")] = False,
    cut_model: Annotated[str, typer.Option(metavar="MODEL", help="A model whose streams break.")] = "",
    overflow: Annotated[
        int,
        typer.Option(min=0, metavar="TOKENS", help="A prompt size that exceeds the context window; 0 skips this law."),
    ] = 0,
    only: Annotated[
        list[str] | None, typer.Option(metavar="LAW", help="Only this law, or those of a group, as tools; repeatable.")
    ] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write a page.")] = None,
    list_only: Annotated[bool, typer.Option("--list", help="List the laws and end.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check a server against the laws that clients of its API rely on.

    Sends about fifteen short requests, which may cost money. Exits with 1 where a law is broken. A result that depends on the model is
    unclear, and no fault of the server.
    """
    if list_only:
        for line in law_lines():
            show(line)
        return
    _check_options(url, model, dialect, only or [])
    key = _key(key_env)
    asked = CheckOptions(
        model=model, thinks=not no_thinking, cut_model=cut_model, overflow_tokens=overflow, has_key=bool(key)
    )
    report = asyncio.run(_report(url, dialect, key, asked, tuple(only or ()), quiet=as_json))
    if html is not None:
        html.write_text(report_page(report), encoding="utf-8")
    if as_json:
        show_json(report_json(report))
    else:
        show(summary_line(report))
    if report.broken:
        raise typer.Exit(1)


async def _report(
    url: str, dialect: str, key: str, asked: CheckOptions, only: tuple[str, ...], *, quiet: bool
) -> Report:
    wire = WIRES[dialect]()
    transport = HttpTransport()
    findings: list[Finding] = []
    began = time.time()
    try:
        checker = Checker(CheckedServer(transport, url, wire.auth(key) if key else {}), wire, asked)
        async for finding in checker.findings(only):
            findings.append(finding)
            if not quiet:
                show(finding_line(finding))
    except Unreachable as problem:
        hint = "start the server, or give the address at which it listens"
        raise Unreachable(f"no server answers at {shown_url(url)}: {problem.message}", hint=hint) from problem
    finally:
        await transport.close()
    return Report(address=shown_url(url), dialect=dialect, model=asked.model, at=began, findings=tuple(findings))


def _check_options(url: str, model: str, dialect: str, only: list[str]) -> None:
    if not url:
        raise InvalidRequest(
            "no server was named", hint="give its base URL: bardo conform http://127.0.0.1:8484/v1 -m MODEL"
        )
    if not url.startswith(("http://", "https://")):
        raise InvalidRequest(f"{url} is no URL", hint="give the base URL, as http://127.0.0.1:8484/v1")
    if not model:
        raise InvalidRequest("no model was named", hint="name one with --model")
    if dialect not in WIRES:
        raise InvalidRequest(f"{dialect} cannot be checked", hint=f"one of: {', '.join(WIRES)}")
    known = {part for law in LAWS for part in (law.id, law.id.partition(".")[0])}
    for name in only:
        if name not in known:
            raise InvalidRequest(f"there is no law {name}", hint="bardo conform --list names them")


def _key(variable: str) -> str:
    if not variable:
        return ""
    if not os.environ.get(variable):
        raise ConfigError(f"{variable} is not set", hint=f"set {variable} to the key of the server")
    print_stderr(f"the key is that of {variable}")
    return os.environ[variable]
