"""`bardo probe`: measure which reasoning settings a model honours, and print the plan, the progress and the result."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from bardo.accounting.cost import Price, computed_cost
from bardo.adapters.config.settings import Settings, load_settings
from bardo.adapters.net.client import Deadlines, HttpTransport
from bardo.adapters.net.keys import Keyring
from bardo.catalog.forms import builtin_forms
from bardo.operators.probe.audit import Audit, Plan, read_audit, resumed, write_audit, write_whole
from bardo.operators.probe.cells import output_limit
from bardo.operators.probe.overlay import overlay_toml
from bardo.operators.probe.prober import REPEATS, Limits, Sender, conclude, plan_probe, run_probe
from bardo.operators.probe.samples import Trial
from bardo.operators.probe.verdicts import SettingVerdict
from bardo.planning.knowledge import control_target
from bardo.reasoning.control import ResolvedFacts, know
from bardo.services.facts.directory import ProviderDirectory
from bardo.services.facts.price_book import PriceBook
from bardo.surfaces.cli.options import AsJson, Config, finite
from bardo.surfaces.presets import target_named
from bardo.surfaces.render.console import print_stderr, show, show_json
from bardo.surfaces.render.tables import Column, table
from bardo.surfaces.render.wording import dollars, printable
from bardo.values.errors import InvalidRequest
from bardo.values.usage import Usage, usd

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
    return [(verdict.setting, verdict.form, verdict.verdict, _evidence(verdict)) for verdict in verdicts]


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


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What to do, beside which model."""

    dry_run: bool
    forms: tuple[str, ...]
    repeats: int
    seed: int
    limits: Limits
    resume: Path | None
    out: Path | None
    as_json: bool
    yes: bool


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("probe", epilog="Example: bardo probe qwen/qwen3.6-27b --provider openrouter --max-cost 1")(probe)


def probe(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model's id, or provider/model.")],
    provider: Annotated[
        str, typer.Option("--provider", metavar="NAME", help="The provider, by its id or a preset.")
    ] = "",
    form: Annotated[
        list[str] | None, typer.Option("--form", metavar="FORM", help="A wire form to try; by default the one in use.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be sent, and send nothing.")] = False,
    repeats: Annotated[
        int,
        typer.Option(min=1, max=10, metavar="N", help="Repetitions of each request; fewer than 5 are inconclusive."),
    ] = REPEATS,
    max_calls: Annotated[int | None, typer.Option(min=1, metavar="N", help="The most requests to send now.")] = None,
    max_cost: Annotated[
        float | None,
        typer.Option(
            min=0, metavar="USD", callback=finite, help="The most to spend, where the provider says the cost."
        ),
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The audit file of an unfinished probe to continue.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The audit file; the catalog row is written beside it.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Orders the requests.")] = 0,
    yes: Annotated[bool, typer.Option("--yes", help="Send without asking.")] = False,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Measure which reasoning settings a model honours.

    Sends the same hard question with every value of every setting, several times, and compares how much the model thinks. Writes a row for
    the catalog and an audit of all requests and results. It costs money: it says how much at most, and asks on a terminal. Ends with 1
    where it is not finished.
    """
    options = Options(
        dry_run=dry_run,
        forms=tuple(form or ()),
        repeats=repeats,
        seed=seed,
        limits=Limits(calls=max_calls, cost_usd=max_cost),
        resume=resume,
        out=out,
        as_json=as_json,
        yes=yes,
    )
    finished = asyncio.run(_probe(model, provider, load_settings(config), options))
    if not finished:
        raise typer.Exit(1)


async def _probe(model: str, provider: str, settings: Settings, options: Options) -> bool:
    keyring, transport = Keyring(), HttpTransport()
    try:
        directory = ProviderDirectory.of(settings, transport, keyring, clock=time.monotonic)
        target = await target_named(model, provider, directory, discovers=not options.dry_run)
        known = know(control_target(target))
        timeouts = settings.timeouts
        deadlines = Deadlines(connect=timeouts.connect, first_byte=timeouts.first_byte, idle=timeouts.idle)
        sender = Sender(target, transport, keyring, deadlines=deadlines)
        forms = builtin_forms().forms
        for name in options.forms:
            if name not in forms:
                near = get_close_matches(name, forms, n=3)
                offered = known.endpoint.makers.get(known.found.maker, known.endpoint.forms)
                hint = f"did you mean {' or '.join(near)}?" if near else f"taken there: {', '.join(offered)}"
                raise InvalidRequest(f"no wire form is called {name!r}", hint=hint, param="--form")
        plan = plan_probe(
            target,
            known,
            forms=tuple(forms[name] for name in options.forms),
            repeats=options.repeats,
            seed=options.seed,
        )
        if options.dry_run:
            _print_plan(plan, sender, options)
            return True
        price = PriceBook(settings.prices).price(target.provider, target.model, time.time())
        return await _run(plan, sender, known, price, options)
    finally:
        await transport.close()


async def _run(plan: Plan, sender: Sender, known: ResolvedFacts, price: Price | None, options: Options) -> bool:
    audit = resumed(read_audit(options.resume), plan) if options.resume else Audit(plan=plan)
    file = _file(plan, options)
    if file.exists() and options.resume is None:
        hint = f"go on with --resume {file}, or name another file with --out"
        raise InvalidRequest(f"{file} is there already, and was paid for", hint=hint, param="--out")
    if not file.absolute().parent.is_dir():
        raise InvalidRequest(f"there is no folder {file.parent}", hint="make it, or name another file", param="--out")

    _ask_first(audit, price, output_limit(known, plan.cells), options)

    def keep(so_far: Audit) -> None:
        write_audit(so_far, file)
        print_stderr(progress_line(so_far))

    audit = await run_probe(audit, sender, limits=options.limits, keep=keep)
    day = datetime.now(UTC).date()
    audit = conclude(audit, known, day, f"by probing; the evidence is in {file.name}")
    write_audit(audit, file)
    row_file = _write_row(audit, file)
    if options.as_json:
        show_json(audit_json(audit, audit_file=str(file), row_file=str(row_file or "")))
    else:
        columns = (Column("setting"), Column("form"), Column("verdict"), Column("because", wrap=True))
        show(table(columns, verdict_rows(audit)))
    if options.limits.cost_usd is not None and audit.cost_usd is None:
        print_stderr("\nThe provider does not say what a call costs, so --max-cost could not be kept.")
    if audit.stopped:
        print_stderr(f"\nNot finished: {audit.stopped}. Go on with: --resume {file}")
    print_stderr(f"\naudit: {file}" + (f"\nrow:   {row_file}" if row_file else ""))
    return not audit.stopped


def _ask_first(audit: Audit, price: Price | None, limit: int, options: Options) -> None:
    """Say how many requests are sent and what they may cost, and on a terminal ask. `limit` is that of one reply. Raises Abort for a no."""
    plan = audit.plan
    calls = plan.calls - len(audit.settled)
    calls = calls if options.limits.calls is None else min(calls, options.limits.calls)
    # Four bytes are about a token, and each request is as long as the longest.
    prompt = max((len(msgspec.json.encode(sent.body)) for sent in plan.requests), default=0) // 4
    usage = Usage(input_tokens=calls * prompt, output_tokens=calls * limit)
    nanos = None if price is None else computed_cost(price, usage).nanos
    cost = "what that costs is not known" if nanos is None else f"at most about {dollars(usd(nanos))}"
    print_stderr(f"{calls} requests to {plan.provider}/{plan.model}, of up to {limit:,} tokens of output each: {cost}")
    if options.limits.cost_usd is not None:
        print_stderr(f"It stops at {dollars(options.limits.cost_usd)}, where the provider says what a call costs.")
    if not options.yes and sys.stdin.isatty():
        typer.confirm("Send them?", abort=True, err=True)


def _file(plan: Plan, options: Options) -> Path:
    """Return where the audit goes: the file that is named, that of the probe which goes on, or one named after the model."""
    named = options.out or options.resume
    if named is not None:
        return named if named.suffix == ".json" else named.with_name(f"{named.name}.json")
    slug = re.sub(r"[^a-z0-9.]+", "-", f"{plan.provider}-{plan.model}".lower()).strip("-.")
    return Path(f"probe-{slug}.json")


def _write_row(audit: Audit, file: Path) -> Path | None:
    """Write what follows for the catalog, where anything does. What an unfinished probe shows may change, so it is not written."""
    if audit.row is None or audit.stopped:
        return None
    plan = audit.plan
    heading = f"What `bardo probe` found out of {plan.model} at {plan.provider}: {len(audit.trials)} requests, see {file.name}."
    row_file = file.with_suffix(".toml")
    write_whole(row_file, overlay_toml(audit.row, heading).encode())
    return row_file


def _print_plan(plan: Plan, sender: Sender, options: Options) -> None:
    if options.as_json:
        show_json(plan_json(plan, sender))
        return
    show(table((Column("cell"), Column("laid into the request", wrap=True)), plan_rows(plan)))
    print_stderr(
        f"\n{plan.calls} requests to {sender.shown(plan.requests[0])}, {plan.repeats} of each; nothing was sent."
    )
    print_stderr("--json shows the whole bodies.")
