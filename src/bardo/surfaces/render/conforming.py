"""What a check of a server found: as lines, as JSON, and as a page of HTML."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

import msgspec

from bardo.operators.conform.laws import LAWS, Finding, Report

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
