"""What a probe would send, is sending, and found out, in words and for programs."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from bardo.operators.probe.audit import Audit, Plan
from bardo.operators.probe.prober import Sender
from bardo.operators.probe.samples import Trial
from bardo.operators.probe.verdicts import SettingVerdict
from bardo.surfaces.render.wording import printable

_NOTHING = "–"


def plan_rows(plan: Plan) -> list[tuple[str, str]]:
    """Return each cell with what is laid into its request."""
    return [(sent.cell.id, _fields(sent.cell.fields, sent.cell.system)) for sent in plan.requests]


def plan_json(plan: Plan, sender: Sender) -> dict[str, Any]:
    """Return exactly what would be sent: every request once, with how often. Keys are put on only when it is sent."""
    calls = [(sent, sender.call(sent)) for sent in plan.requests]
    requests = [
        {
            "cell": sent.cell.id,
            "method": call.method,
            "url": sender.shown(sent),
            "body": sent.body,
            "times": plan.repeats,
        }
        for sent, call in calls
    ]
    return {**_plan_facts(plan), "dry_run": True, "calls": plan.calls, "requests": requests}


def progress_line(audit: Audit) -> str:
    """Return what the last request gave."""
    trial = audit.trials[-1]
    return f"{len(audit.trials)}/{audit.plan.calls}  {trial.cell}: {printable(_result(trial))}"


def verdict_rows(audit: Audit) -> list[tuple[str, str, str, str]]:
    """Return each setting with its form, its verdict and why, and its medians."""
    verdicts = audit.decision.verdicts if audit.decision is not None else ()
    return [(one.setting, one.form, one.verdict, _evidence(one)) for one in verdicts]


def audit_json(audit: Audit, *, audit_file: str, row_file: str) -> dict[str, Any]:
    """Return what was found out, and where it stands."""
    found: dict[str, Any] = msgspec.to_builtins(audit.decision) if audit.decision is not None else {}
    about = {
        **_plan_facts(audit.plan),
        "calls": len(audit.trials),
        "cost_usd": audit.cost_usd,
        "stopped": audit.stopped,
    }
    row = None if audit.row is None else msgspec.to_builtins(audit.row)
    return {**about, **found, "row": row, "audit_file": audit_file, "row_file": row_file}


def _plan_facts(plan: Plan) -> dict[str, Any]:
    return {"provider": plan.provider, "dialect": plan.dialect, "model": plan.model, "forms": list(plan.forms)}


def _fields(fields: dict[str, Any], system: str) -> str:
    said = [json.dumps(fields)] if fields else []
    return ", ".join([*said, *([f"system prompt {system!r}"] if system else [])]) or _NOTHING


def _result(trial: Trial) -> str:
    if trial.outcome != "answered":
        return f"{trial.outcome} with status {trial.status}: {trial.message}"
    if trial.reasoning_tokens is None:
        return f"no count of thinking, {trial.output_tokens or 0:,} tokens of output"
    return f"{trial.reasoning_tokens:,} tokens of thinking{'' if trial.reported else ', estimated'}"


def _evidence(one: SettingVerdict) -> str:
    medians = ", ".join(f"{value} {tokens:,.0f}" for value, tokens in one.medians.items())
    chance = f"p = {one.test.p:.3f}" if one.test is not None else ""
    refused = ", ".join(said.value for said in one.refused)
    parts = (one.why, f"medians: {medians}" if medians else "", chance, f"refused: {refused}" if refused else "")
    return printable("; ".join(part for part in parts if part))
