"""`bardo doctor`: what is configured, what works, and how to mend what does not."""

from __future__ import annotations

import typer

from bardo.surfaces.cli.checks import examine
from bardo.surfaces.cli.findings import Finding
from bardo.surfaces.cli.options import AsJson, Config
from bardo.surfaces.render.console import show, show_json, show_text
from bardo.surfaces.render.tables import Column, table


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("doctor", epilog="Example: bardo doctor --config bardo.toml")(doctor)


def doctor(config: Config = None, as_json: AsJson = False) -> None:
    """Check what is configured, and say how to mend it.

    Looks at the configuration, keys, providers, local servers, the log and the port; takes a few seconds and changes nothing. Ends with
    1 where something configured does not work. Keys are never shown.
    """
    findings = examine(config)
    problems = [finding for finding in findings if finding.status == "problem"]
    if as_json:
        show_json({"ok": not problems, "findings": findings})
    else:
        _show(findings, len(problems))
    if problems:
        raise typer.Exit(1)


def _show(findings: list[Finding], problems: int) -> None:
    columns = (Column(""), Column("what"), Column("found", wrap=True))
    show(table(columns, (_cells(finding) for finding in findings), head=False))
    show_text(f"\n{problems} to mend" if problems else "\nall that is configured works")


def _cells(finding: Finding) -> tuple[str, str, str]:
    fix = f"\n→ {finding.fix}" if finding.fix else ""
    return finding.status, finding.area, finding.found + fix
