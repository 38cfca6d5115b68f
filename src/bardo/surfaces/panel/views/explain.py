"""What would be sent for a request, and why: as `bardo explain` shows it. Nothing is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from bardo.adapters.config.pipeline import profile_names
from bardo.dialects import DEFAULT_DIALECT, DIALECTS
from bardo.planning.explanation import Explanation
from bardo.planning.route import Provider
from bardo.surfaces.library.asking import ANY, SAMPLE_TEXT, decode_body, sample_bodies, with_intent, with_reasoning
from bardo.surfaces.library.explaining import RoutePlanner, explain_by, read_request
from bardo.surfaces.panel.pages import Page, PanelRequest
from bardo.surfaces.render.explained import explanation_sections
from bardo.surfaces.render.wording import policy_of
from bardo.values.errors import BardoError, InvalidRequest
from bardo.values.request import EFFORTS

if TYPE_CHECKING:
    from bardo.surfaces.panel.panel import Panel

MOST_TEXT = 500_000
"""How many characters a request may have here."""
_LONGEST_NAME = 300
_FIELDS_OF = (
    ("dialect", "dialect"),
    ("model", "model"),
    ("provider", "provider"),
    ("bardo.pipeline", "pipeline"),
    ("bardo.reasoning", "reasoning"),
    ("bardo.intent", "intent"),
    ("intent", "intent"),
    ("prompt", "prompt"),
)
"""Which field of the form an error is about, by the beginning of what it names. The body is what is left."""
ROW_HEADS: Mapping[str, tuple[str, ...]] = {
    "route": ("candidate", "asked first", "why"),
    "where each field comes from": ("field", "layer", "why"),
}


class ExplainForm(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody wrote into the form."""

    dialect: str = DEFAULT_DIALECT
    model: str = ""
    provider: str = ""
    workload: str = ""
    reasoning: str = ""
    intent: str = ""
    pipeline: str = ""
    prompt: str = ""
    body: str = ""


async def show(panel: Panel, request: PanelRequest) -> Page:
    """Return the form, and what would be sent for the request that was written into it."""
    fields = request.form if request.method == "POST" else request.query
    written = {name: fields.get(name, "") for name in ExplainForm.__struct_fields__ if fields.get(name)}
    long = ("prompt", "body")
    form = ExplainForm(**{name: text if name in long else text.strip() for name, text in written.items()})
    values: dict[str, Any] = {
        **_choices(panel),
        "form": form,
        "sections": (),
        "problem": None,
        "field": "",
        "heads": ROW_HEADS,
    }
    if request.method != "POST":
        return Page("explain.html", "Explain", values)
    try:
        found = await asyncio.to_thread(_explain, panel, form, panel.context.services.directory.providers)
    except BardoError as problem:
        panel.context.services.clean(problem)
        return Page(
            "explain.html", "Explain", {**values, "problem": problem, "field": field_of(problem)}, status=problem.status
        )
    return Page("explain.html", "Explain", {**values, "sections": list(explanation_sections(found))})


def field_of(problem: BardoError) -> str:
    """Return the field of the form that an error is about."""
    param = str(getattr(problem, "param", None) or ("model" if type(problem).__name__ == "UnknownModel" else ""))
    return next((field for begin, field in _FIELDS_OF if param.startswith(begin)), "body")


def _choices(panel: Panel) -> dict[str, Any]:
    workloads = panel.context.services.directory.workloads
    return {
        "dialects": [(name, name) for name in DIALECTS],
        "efforts": ["off", "auto", *EFFORTS],
        "workloads": sorted(workloads.names),
        "pipelines": [
            ("", "as configured"),
            *((name, name) for name in profile_names(panel.settings.inference.pipeline)),
        ],
        "sample": SAMPLE_TEXT,
        "most_text": MOST_TEXT,
    }


def _explain(panel: Panel, form: ExplainForm, providers: list[Provider]) -> Explanation:
    """Return what would be sent. Raises BardoError."""
    for name, text in msgspec.structs.asdict(form).items():
        most = MOST_TEXT if name in ("prompt", "body") else 10_000 if name == "intent" else _LONGEST_NAME
        if len(text) > most:
            raise InvalidRequest(f"this is longer than {most:,} characters", hint="make it shorter", param=name)
    body = with_reasoning(_body_of(form), policy_of(form.reasoning) if form.reasoning else None)
    body = with_intent(body, form.workload, form.intent)
    if form.pipeline:
        own = body.get("bardo")
        body = {**body, "bardo": {**(own if isinstance(own, dict) else {}), "pipeline": form.pipeline}}
    model = form.model
    if not model and not body.get("model"):
        if not form.workload and not form.intent:
            raise InvalidRequest("no model is named", hint="name a model, a workload or an intent", param="model")
        model = ANY
    planner = RoutePlanner(panel.settings, providers)
    return explain_by(planner, read_request(body, form.dialect, model or None), form.provider)


def _body_of(form: ExplainForm) -> dict[str, Any]:
    """Return the body that was written, or a small request with the prompt."""
    if form.body.strip():
        return decode_body(form.body, "the body")
    samples = sample_bodies(form.prompt or SAMPLE_TEXT)
    if form.dialect not in samples and form.dialect in DIALECTS:
        hint = f"write the body, or choose one of {', '.join(samples)}"
        raise InvalidRequest(f"in {form.dialect[:100]} no request is made of a prompt", hint=hint, param="body")
    return samples.get(form.dialect, {})
