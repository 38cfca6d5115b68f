"""The results of a probe, as a row to lay over the catalog's: a TOML file for `Models.over`.

Only what was decided is said; what stayed open stays as the catalog has it.
"""

from __future__ import annotations

import datetime
import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

from bardo.catalog.models import Control, Models, builtin_models
from bardo.operators.probe.verdicts import Decision, SettingVerdict
from bardo.reasoning.control.target import ResolvedFacts

_BARE = re.compile(r"[A-Za-z0-9_-]+")
# What a row of a maker says beside its thinking goes with it: it stands in the place of the built-in one.
_NOT_KEPT = ("provider", "match", "assumed", "like", "goes_first", "hosted", "shutdown", "source", "date", "note")


def overlay_row(
    known: ResolvedFacts, decision: Decision, day: datetime.date, note: str, *, models: Models | None = None
) -> dict[str, Any] | None:
    """Return the row as a table, or None if nothing was decided. `note` says where the evidence is."""
    owner = known.endpoint.owner or known.target.provider
    form = _best_form(known, decision)
    facts = _facts(known, {verdict.setting: verdict for verdict in decision.verdicts if verdict.form == form}, decision)
    if not facts:
        return None
    named = {} if form == known.form.name else {"form": form}
    source = (models or builtin_models()).sources.get(owner)
    base = {} if source is None or source.host else _catalog_row(known)
    # As the catalog spells it, and as it is called there.
    about = {"provider": owner, "match": list(dict.fromkeys((known.found.id, known.target.model)))}
    return {**about, **base, **facts, **named, "source": "bardo probe", "date": day, "note": note}


def _best_form(known: ResolvedFacts, decision: Decision) -> str:
    """Return the form of which the model honours most settings; of several, the one in use."""
    honoured = Counter({known.form.name: 0})
    honoured.update(verdict.form for verdict in decision.verdicts if verdict.verdict == "honours")
    most = max(honoured.values())
    tried = {verdict.form for verdict in decision.verdicts}
    return next((form for form, count in honoured.items() if count == most and form in tried), known.form.name)


def _catalog_row(known: ResolvedFacts) -> dict[str, Any]:
    row = known.found.row
    plain: dict[str, Any] = msgspec.to_builtins(row) if row is not None else {}
    return {name: value for name, value in plain.items() if value is not None and name not in _NOT_KEPT}


def _facts(known: ResolvedFacts, verdicts: Mapping[str, SettingVerdict], decision: Decision) -> dict[str, Any]:
    settled = {setting: verdict for setting, verdict in verdicts.items() if verdict.verdict != "inconclusive"}
    if not settled:
        return {}
    facts: dict[str, Any] = {"control": list(_control(known, settled, decision))}
    effort, off = settled.get("effort"), settled.get("off")
    if effort is not None and effort.verdict == "honours":
        taken = [level for level in effort.medians if level]
        facts["efforts"] = [*(["none"] if "none" in (known.facts.efforts or ()) else []), *taken]
    if off is not None:
        facts["off"] = off.verdict == "honours"
    if decision.thinks_unasked is not None:
        facts["omit"] = "on" if decision.thinks_unasked else "off"
    return facts


def _control(known: ResolvedFacts, settled: Mapping[str, SettingVerdict], decision: Decision) -> tuple[Control, ...]:
    """Return the model's controls: those known before, without the settings that it ignores, with those that it honours."""
    control = list(known.control)
    for setting, ways in _WAYS.items():
        verdict = settled.get(setting)
        if verdict is not None and verdict.verdict == "honours":
            control += [] if set(ways) & set(control) else [ways[0]]
        elif verdict is not None and not _still_switches(setting, settled):
            control = [way for way in control if way not in ways]
    told = tuple(way for way in control if way not in ("none", "fixed"))
    return told or (("none",) if decision.thinks_unasked is False else ("fixed",))


def _still_switches(setting: str, settled: Mapping[str, SettingVerdict]) -> bool:
    """Whether the other side of a switch works: then it stays one."""
    off = settled.get("off")
    return setting == "on" and off is not None and off.verdict == "honours"


# An effort in an adaptive form is beside the switch, which stays.
_WAYS: dict[str, tuple[Control, ...]] = {"effort": ("effort", "level"), "budget": ("budget",), "on": ("toggle",)}


def overlay_toml(row: Mapping[str, Any], heading: str) -> str:
    """Return the row as a file of one table, with `heading` above it."""
    lines = [f"# {line}" for line in heading.splitlines()]
    return "\n".join([*lines, "", "[[models]]", *(f"{name} = {_toml_value(value)}" for name, value in row.items()), ""])


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        inside = ", ".join(
            f"{_name(name)} = {_toml_value(inner)}" for name, inner in value.items() if inner is not None
        )
        return f"{{ {inside} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml_value, value))}]"
    # JSON's strings are TOML's, but for its pairs of surrogates and the one control character that it lets through.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f") if isinstance(value, str) else str(value)


def _name(name: str) -> str:
    return name if _BARE.fullmatch(name) else json.dumps(name, ensure_ascii=False)
