"""Draft one attempt: the form of the request that one target takes, what is lost by it, and what is refused because too much would be."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import msgspec

from bardo.catalog.field_refusals import builtin_field_refusals
from bardo.catalog.hosted_tools import hosted_tools
from bardo.catalog.layer_rows import unsent_headers
from bardo.catalog.meaningful import MeaningfulFields, builtin_meaningful
from bardo.catalog.replay import Binding, ReplayRules, builtin_replay
from bardo.catalog.request_shapes import RequestShape, shape_at
from bardo.catalog.shared_fields import default_dialect
from bardo.dialects import dialect
from bardo.dialects.shared.history_repair import refuse_repairs
from bardo.dialects.shared.media import sound_of, takes_sound
from bardo.planning.attempt import Attempt
from bardo.planning.default_fields import required_default, with_default_fields, without_refused_defaults
from bardo.planning.forwarded import keeps_fields, own_body, takes_history, with_history_as_it_came
from bardo.planning.hosted_search import SearchPlan, with_search
from bardo.planning.kept_budget import BudgetPlan, budget_to_keep, with_fields, without_loss, without_thinking
from bardo.planning.knowledge import BUILTIN, Knowledge, Lesson, RefusedThinking, TargetFacts
from bardo.planning.profiles import with_content_of_profile
from bardo.planning.prompt_caching import in_place_of_markers
from bardo.planning.refusals import ProviderWords, RefusedField, without_fields
from bardo.planning.request_shapes import ShapePlan, dialects_of, plan_shape, repaired, yielded
from bardo.planning.route import RouteRecord, Target
from bardo.planning.search_budget import within_budget, within_money
from bardo.planning.text_formats import PLAIN
from bardo.planning.tool_search import ToolSearchPlan, with_tool_search
from bardo.planning.tools import (
    WrittenToolNames,
    WrittenTools,
    with_written_names,
    with_written_schemas,
    written_tool_names,
    written_tool_schemas,
)
from bardo.planning.typed_answer import AnswerPlan, answer_plan
from bardo.reasoning.control import untold
from bardo.reasoning.replay import (
    History,
    Recalled,
    RestoredRequest,
    amended,
    has_history,
    loop_calls,
    may_lack_thinking,
    name_of,
    named_states,
    prefix_of,
    restore,
    state_data,
    without_refused,
    without_thinking_now,
)
from bardo.structured.modes import Form
from bardo.values.blocks import Block, DocumentBlock, ImageBlock, Origin, ToolResultBlock, UnknownBlock
from bardo.values.degradation import UNLISTED, Degradation, distinct
from bardo.values.errors import Unsupported, UpstreamRefused
from bardo.values.request import TRACE_HEADERS, HistoryFacts, Message, Request, Tool, ToolChoice, facts_of
from bardo.values.wire import WireRequest

ALL = "*"
_PART_MEDIA = ("audio", "video", "document", "file")
_MEANINGFUL = frozenset((UnknownBlock, DocumentBlock, ImageBlock))


class Loss(NamedTuple):
    """What would be lost: the names it may be allowed by (the first is told), why, what to do instead, and the dialect's code."""

    names: tuple[str, ...]
    why: str
    instead: str = "leave it out"
    code: str = ""


def refuse_losses(
    request: Request,
    provider: str,
    spoken: Collection[str | None],
    reported: Iterable[Degradation],
    *,
    choice: ToolChoice | None,
    parts: Collection[type[Block]],
) -> None:
    """Raise Unsupported where the request would lose what changes its meaning, and the caller does not allow it.

    `spoken` are the dialects that the provider reads as they come, `reported` what the encoder says of the request. `choice` is the
    caller's own among the tools: an answer by schema may be a call that bardo forces. `parts` are the classes of blocks in its messages.
    """
    names = {degradation.what for degradation in reported}
    if not names and not request.extra:
        return
    rows = builtin_meaningful()
    allowed = request.options.allow_loss
    if ALL in allowed:
        return
    # A list of differences that is full names no more of them: then whatever the provider does not speak counts as lost.
    all_lost = UNLISTED in names and request.dialect not in spoken
    losses: list[Loss] = []
    for row in rows.fields.get(request.dialect, ()) if request.extra else ():
        value = request.extra.get(row.name)
        if value is not None and row.matters(value) and (all_lost or row.name in names or row.absent(provider)):
            losses.append(Loss((row.name,), row.why, row.instead, row.code))
    if names:
        if not _MEANINGFUL.isdisjoint(parts):
            losses += _lost_parts(request, rows, spoken, names)
        if request.tools or request.extra:
            losses += _lost_tools(request, spoken, names, choice)
    refused = [loss for loss in dict.fromkeys(losses) if not set(loss.names) & set(allowed)]
    if not refused:
        return
    first, labels = refused[0], list(dict.fromkeys(loss.names[0] for loss in refused))
    listed, what = ", ".join(f'"{name}"' for name in labels), ", ".join(labels)
    message = f"{provider} cannot take {what}, and without it the request would mean something else: {first.why}"
    hint = f'{first.instead}; or allow the loss with "bardo": {{"allow_loss": [{listed}]}}'
    code = next((loss.code for loss in refused if loss.code), "")
    details = {**({"error_code": code} if code else {}), "unsupported": labels}
    raise Unsupported(message, hint=hint, param=labels[0], details=details)


def _lost_parts(
    request: Request, rows: MeaningfulFields, spoken: Collection[str | None], reported: Collection[str]
) -> Iterator[Loss]:
    for message in request.messages:
        # A model that is not shown what the result of a tool holds answers something else.
        held = [block.content if isinstance(block, ToolResultBlock) else (block,) for block in message.blocks]
        for block in chain.from_iterable(held):
            if isinstance(block, UnknownBlock) and block.dialect not in spoken:
                if takes_sound(spoken) and sound_of(block) is not None:
                    continue
                kind = rows.part(block.dialect, message.role, block.value)
                if not kind:
                    continue
                # A part is also called by the medium that its own type or its content names.
                inner = block.value.get(kind) if isinstance(block.value, dict) else None
                content = str(inner.get("mimeType") or inner.get("mime_type") or "") if isinstance(inner, dict) else ""
                media = [one for one in _PART_MEDIA if one in kind.lower() or content.startswith(f"{one}/")]
                yield Loss((kind, *media), "the provider does not take such a part")
            elif isinstance(block, DocumentBlock) and message.role == "user" and "document" in reported:
                why = "the provider does not take this document"
                yield Loss(("document", "file", "input_file"), why, "send it in another form, or leave it out")
            elif isinstance(block, ImageBlock) and message.role == "user" and "image" in reported:
                yield Loss(("image",), "the provider does not take this picture", "send its data, or leave it out")


def _lost_tools(
    request: Request, spoken: Collection[str | None], reported: Collection[str], choice: ToolChoice | None
) -> Iterator[Loss]:
    """Yield hosted tools that must be called, or may be the call that must be made, or are all the tools there are.

    None if no tool may be called.
    """
    if not request.tools:
        # Fields that are a hosted tool, where there is no other tool: Chat's `web_search_options`.
        for hosted in hosted_tools():
            form = hosted.form_of(request.dialect or default_dialect())
            if form is not None and form.field in request.extra and form.field in reported:
                why = "nothing would be searched, and the answer would come from the model's memory"
                instead = "ask a model whose provider searches, or set [search] in bardo.toml"
                yield Loss((form.field, "tools", hosted.name), why, instead)
        return
    foreign = [
        tool
        for tool in request.tools
        if tool.hosted
        and (tool.carried is None or tool.carried.dialect not in spoken)
        # One that is not reported has a counterpart there.
        and (f"tool {tool.name}" in reported or UNLISTED in reported)
    ]
    if not foreign or (choice is not None and choice.mode == "none"):
        return
    forced = choice is not None and choice.mode in ("required", "named")
    if not forced and len(foreign) < len(request.tools):
        return
    instead = "give a function of your own, or leave the choice to the model"
    for tool in foreign:
        if not forced:
            why = f"{tool.name} is run by its own provider alone, and without it the answer would come from the model's memory"
            yield Loss(("tools", tool.name), why, "ask a model whose provider runs it, or give a function of your own")
        elif choice is not None and (choice.mode == "required" or choice.name == tool.name):
            why = f"a tool must be called, and only its own provider runs {tool.name}"
            yield Loss(("tool_choice", "tools", tool.name), why, instead)


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A request at one target, before anything is decided of its thinking and its answer.

    `may_forward`: the client takes a reply in the framing providers are asked for, and the request is still its own. `degraded` is what is
    lost so far, and `route` how the target was found. `rules` and `history` are those of earlier thinking, `origin` is the stamp of what
    this target makes of it. `heeded` are the ways in which a refusal of earlier state was heeded, and `left_out` the states that were
    left out so, and the calls behind which thinking was turned off.
    """

    request: Request
    target: Target
    knowledge: Knowledge
    facts: TargetFacts
    may_forward: bool
    degraded: tuple[Degradation, ...]
    route: RouteRecord | None
    search: SearchPlan | None
    tool_search: ToolSearchPlan | None
    refused_fields: tuple[RefusedField, ...]
    rules: ReplayRules
    history: History | None = None
    origin: Origin | None = None
    ask: Binding | None = None
    heeded: frozenset[str] = frozenset()
    left_out: frozenset[str] = frozenset()


class Decision(msgspec.Struct, frozen=True):
    """A draft, and what was decided of it: the request as it is `shaped` for the target, how the model shall think, and how it answers."""

    draft: Draft
    shaped: Request
    planned: ShapePlan
    answer: AnswerPlan | None = None


def draft_of(
    request: Request,
    target: Target,
    knowledge: Knowledge,
    *,
    may_forward: bool = True,
    degraded: tuple[Degradation, ...] = (),
    route: RouteRecord | None = None,
) -> Draft:
    """Return the draft of a request at one target, without earlier thinking. `degraded` is what was lost before this target."""
    lacking = () if route is None else route.degraded_at(target)
    facts = knowledge.of(target)
    renamed: tuple[Degradation, ...] = ()
    if facts.known.facts.model_ids is not None:
        model = facts.known.id_for(request.options.reasoning or request.reasoning)
        if model is not None and model != target.model:
            why = "the id of this model says whether it thinks"
            renamed = (Degradation("model", asked=target.model, sent=model, why=why),)
            target = msgspec.structs.replace(target, model=model)
            facts = knowledge.of(target)
    row = target.provider.row
    search: SearchPlan | None = None
    if knowledge.search is not None:
        request, search = with_search(request, row, target.model, knowledge.search)
    tool_search: ToolSearchPlan | None = None
    if request.tools:
        request, tool_search = with_tool_search(request, row, target.model)
        may_forward = may_forward and tool_search is None
    if request.dialect and not (row.quirks.own_tools and request.dialect == row.dialect):
        # The target is not known to take other tools than functions.
        spoken, own = dialect(row.dialect), dialect(request.dialect)
        # What is wrapped is of the dialect of the model's payload, and no client's own.
        if spoken.wraps is not None or request.dialect not in spoken.declaration.speaks:
            request = own.as_functions(request)
        else:
            plain = own.own_tools_as_functions(request)
            request, may_forward = plain, may_forward and plain is request
    unplaced: tuple[Degradation, ...] = ()
    if request.options.profile is not None:
        request, unplaced = with_content_of_profile(request, target)
    return Draft(
        request=request,
        target=target,
        knowledge=knowledge,
        facts=facts,
        may_forward=may_forward,
        degraded=(*degraded, *request.degraded, *unplaced, *lacking, *renamed),
        route=route,
        search=search,
        tool_search=tool_search,
        refused_fields=facts.refused_fields,
        rules=builtin_replay(),
    )


def with_history(draft: Draft, recalled: Recalled) -> Draft:
    """Return the draft with the earlier thinking that the target takes; a history that had to change is not forwarded."""
    rules, target = recalled.rules or draft.rules, draft.target
    reader = rules.reader(target.provider.id, target.provider.row, target.model, target.provider.account)
    restored = RestoredRequest(request=draft.request)
    if has_history(draft.request):
        refused = recalled.refused.get(name_of(reader)) if recalled.refused else None
        accepted = without_refused(draft.request, reader, rules, refused) if refused else restored
        restored = restore(accepted.request, reader, recalled)
        if refused:
            # Also a history that lacks what was refused before is written anew: thinking may have to be off behind it.
            degraded = distinct((*accepted.degraded, *restored.degraded))
            restored = msgspec.structs.replace(restored, degraded=degraded, altered=restored.altered or bool(degraded))
            if may_lack_thinking(restored.request) and not loop_calls(restored.request).isdisjoint(refused):
                # This loop was refused for its missing thinking before.
                off = without_thinking_now(restored.request, reader, rules)
                degraded = distinct((*degraded, *off.degraded))
                restored = msgspec.structs.replace(restored, request=off.request, degraded=degraded, altered=True)
    prefix = prefix_of(restored.request).whole if rules.of(reader).binding is not None else ""
    return msgspec.structs.replace(
        draft,
        request=restored.request,
        rules=rules,
        history=recalled.history,
        origin=reader.origin(prefix),
        ask=restored.ask,
        degraded=(*draft.degraded, *recalled.degraded, *restored.degraded),
        may_forward=draft.may_forward and not restored.altered,
    )


def decide(draft: Draft, refused: frozenset[Form] = frozenset()) -> Decision:
    """Decide how the model shall think and how an answer in a schema is asked for, in none of the `refused` forms.

    Raises InvalidRequest and Unsupported.
    """
    target, facts, knowledge = draft.target, draft.facts, draft.knowledge
    shaped = msgspec.structs.replace(draft.request, model=target.model)
    planned = plan_shape(shaped, target, facts, knowledge)
    wanted = shaped.output_format
    if wanted is None:
        return Decision(draft, shaped, planned)
    answer = answer_plan(
        shaped,
        wanted,
        target,
        planned.controlled.plan,
        settings=knowledge.structured,
        refused=refused | facts.refused_forms,
    )
    if answer is None:
        return Decision(draft, shaped, planned)
    if not answer.as_asked:
        planned = plan_shape(answer.request, target, facts, knowledge)
    return Decision(draft, answer.request, planned, answer)


def thinking_mended(
    decision: Decision, words: ProviderWords, status: int
) -> tuple[Decision, tuple[RefusedThinking, ...]] | None:
    """Return what is decided by what a refusal says of the model's thinking, or None if it says nothing new of it.

    Beside it stands what it teaches: nothing where it is about a relation, or about this request alone.
    """
    draft, controlled = decision.draft, decision.planned.controlled
    target, facts, knowledge = draft.target, draft.facts, draft.knowledge
    repair = repaired(controlled.plan, words, status, decision.shaped, target, facts, knowledge)
    if repair is None:
        return None
    planned, fact = repair
    mended = msgspec.structs.replace(decision, planned=planned)
    if fact is None or words.is_about_relation(controlled.plan.fields.keys()):
        return mended, ()
    return mended, (RefusedThinking(target, fact, controlled.plan.emitted),)


def yielding_to_forced_tool(decision: Decision, words: ProviderWords, status: int) -> Decision | None:
    """Return the decision without thinking where a refusal says that no tool can be forced beside it; None for any other refusal."""
    choice = decision.shaped.tool_choice
    forced = choice is not None and choice.mode in ("required", "named")
    if status not in (400, 422) or not forced or not builtin_field_refusals().is_about_forced_tool(words.text):
        return None
    draft = decision.draft
    plan = decision.planned.controlled.plan
    planned = yielded(plan, decision.shaped, draft.target, draft.facts, draft.knowledge)
    return msgspec.structs.replace(decision, planned=planned)


def without_refused_state(draft: Draft, attempt: Attempt, refusal: UpstreamRefused) -> Decision | None:
    """Decide without the earlier state that a refusal is about, or None if it is about none, or none is left to leave out.

    What it names goes first, and all of it where it names none, or where it comes again. Where it misses thinking that nobody has, the
    model is asked not to think. Each of these is done once.
    """
    rules, request = draft.rules, draft.request
    if refusal.status not in (400, 422):
        return None
    try:
        detail = msgspec.json.encode(refusal.detail).decode() if refusal.detail else ""
    except (msgspec.MsgspecError, TypeError, RecursionError):
        detail = ""
    words = f"{refusal.message} {refusal.hint} {refusal.param or ''} {detail}"
    refused_state = rules.refusal_of_state(words, refusal.upstream_code or "")
    if refused_state is None:
        return None
    provider = draft.target.provider
    reader = rules.reader(provider.id, provider.row, draft.target.model, provider.account)
    if refused_state.lacks:
        step, changed = "thinking", without_thinking_now(request, reader, rules)
        refused = loop_calls(request)
    else:
        named = frozenset() if "named" in draft.heeded else named_states(request, attempt.wire.body, words)
        step = "named" if named else "all"
        changed = without_refused(request, reader, rules, named or None)
        refused = state_data(request) - state_data(changed.request)
    if step in draft.heeded or not changed.altered:
        return None
    return decide(
        msgspec.structs.replace(
            draft,
            request=changed.request,
            may_forward=False,
            heeded=draft.heeded | {step},
            left_out=draft.left_out | refused,
            degraded=(*draft.degraded, *changed.degraded),
        )
    )


def attempt_of(decision: Decision, teaches: tuple[Lesson, ...] = ()) -> Attempt:
    """Write the request, and return the attempt. Raises Unsupported where what matters would be lost.

    `teaches` is what an answer to it will have proved.
    """
    draft, asked, planned = decision.draft, decision.shaped, decision.planned
    target, row = draft.target, draft.target.provider.row
    done = planned.controlled
    shape = shape_at(row, asked.model)
    schemas, names = None, None
    if asked.tools:
        schemas = written_tool_schemas(asked.tools, shape)
        asked = with_written_schemas(asked, schemas)
        names = written_tool_names(asked.tools, shape.tool_names)
    formats = planned.formats
    if formats is not PLAIN:
        formats = formats.with_tools(asked.tools if names is None else names.tools, target.model)
    budget, words = None, draft.knowledge.kept_budgets
    if words is not None and decision.answer is None and draft.search is None:
        budget = budget_to_keep(decision.shaped, done.plan, row, planned.formats, words)
    if budget is not None:
        asked = msgspec.structs.replace(asked, stream=True, stream_usage=True)
    options = asked.options
    # The reply needs no translation, and nothing of it is changed. The client's own body does not have what a profile says.
    forward = (
        draft.may_forward
        and budget is None
        and names is None
        and schemas is None
        and formats == PLAIN
        and row.quirks.plain
        and asked.dialect == row.dialect
        and asked.body is not None
        and not (options.omit_reasoning or options.reasoning_tags or options.include)
        and options.profile is None
        and (decision.answer is None or decision.answer.as_asked)
    )
    withhold = forward and asked.stream and not asked.stream_usage and row.quirks.stream_usage
    facts = facts_of(asked.messages)
    wire, written, refitted = _written(
        decision, asked, schemas, names, shape, facts, forward=forward, withhold=withhold
    )
    wire, hints = in_place_of_markers(wire, asked, target, draft.knowledge)
    # A search that no budget has room for is not sent.
    unsearched: tuple[Degradation, ...] = ()
    if limits := draft.request.options.search_limits:
        wire, unsearched = within_money(wire, target, limits, draft.knowledge.searches_cost)
    if not unsearched and row.searches_per_day is not None:
        wire, unsearched = within_budget(wire, target, draft.knowledge.searches_today(target.provider.id))
    defaults: tuple[Degradation, ...] = ()
    if options.alias_fields or target.provider.extra_body or target.provider.model_extra_body:
        wire, defaults = with_default_fields(wire, target, options)
    plan, reported = done.plan, (*done.degraded, *refitted, *wire.degraded)
    if schemas is not None:
        reported = (*reported, *schemas.degraded)
    if draft.refused_fields:
        # A field that the operator requires is sent all the same: an earlier refusal may have been about another's value.
        given = [field for field in draft.refused_fields if not required_default(field.path, defaults, target, options)]
        wire, taken, lost = without_fields(wire, given)
        lost, defaults = without_refused_defaults(lost, defaults)
        plan, reported = untold(plan, taken), (*reported, *lost)
    if not draft.knowledge.repair_history:
        refuse_repairs((*draft.request.degraded, *reported), row.id)
    if budget is not None:
        reported = without_loss(reported, budget)
    if reported or asked.extra:
        spoken = dialects_of(target, draft.facts)
        refuse_losses(asked, row.id, spoken, reported, choice=draft.request.tool_choice, parts=facts.parts)
    shaping = () if decision.answer is None else decision.answer.degraded
    degraded = (*draft.degraded, *shaping, *unsearched, *reported, *defaults, *_lacking(decision))
    wire = with_own_headers(wire, asked, row.dialect)
    return Attempt(
        target=target,
        request=draft.request,
        wire=wire if draft.ask is None else amended(wire, draft.ask),
        formats=formats,
        off=planned.off,
        control=plan,
        forward=forward,
        withhold_usage=withhold,
        origin=draft.origin,
        ask=draft.ask,
        answer=decision.answer,
        written=written,
        route=draft.route,
        search=draft.search,
        tool_search=draft.tool_search,
        caching=hints,
        kept_budget=budget,
        tool_names={} if names is None else names.originals,
        tool_forms={} if schemas is None else schemas.forms,
        teaches=teaches,
        left_out=draft.left_out,
        history=draft.history,
        degraded=distinct(degraded) if degraded else degraded,
    )


def _written(
    decision: Decision,
    asked: Request,
    schemas: WrittenTools | None,
    names: WrittenToolNames | None,
    shape: RequestShape,
    facts: HistoryFacts,
    *,
    forward: bool,
    withhold: bool,
) -> tuple[WireRequest, Request | None, tuple[Degradation, ...]]:
    """Return the HTTP request, the Request that it was written of, and what that one lost.

    `asked` has the schemas that are sent, `shape` is what the model demands, `facts` are those of its messages. With `forward`, the
    provider gets the client's own body, of which nothing is written (None), or else its history, where it takes them.
    """
    row, controlled = decision.draft.target.provider.row, decision.planned.controlled
    may_keep_history = forward
    if forward and keeps_fields(decision.planned, asked, row, facts):
        may_keep_history = takes_history(asked, row, shape, facts)
        if may_keep_history:
            return own_body(asked, row, asks_usage=withhold), None, ()
    written, refitted = controlled.with_content(asked, facts)
    chosen = decision.shaped.tool_choice
    if schemas is not None and chosen is not None and (chosen.name in schemas.left_out or not asked.tools):
        written = msgspec.structs.replace(written, tool_choice=None)
        why = "the tool that was chosen is left out"
        refitted = (*refitted, Degradation("tool_choice", asked=chosen.name or chosen.mode, sent=None, why=why))
    written = with_written_names(written, names, shape.tool_names, facts)
    wire = with_history_as_it_came(written, asked, row, shape, facts) if may_keep_history else None
    return wire or dialect(row.dialect).encode_request(written, row, facts), written, refitted


def lost_before_writing(decision: Decision) -> tuple[Degradation, ...]:
    """Return what an attempt loses whatever its messages hold: nothing where a refusal or a kept budget may change what is told."""
    draft = decision.draft
    if draft.refused_fields or draft.knowledge.kept_budgets is not None:
        return ()
    shaping = () if decision.answer is None else decision.answer.degraded
    lost = (*draft.degraded, *shaping, *decision.planned.controlled.degraded, *_lacking(decision))
    return distinct(lost) if lost else lost


def _lacking(decision: Decision) -> Iterator[Degradation]:
    """Yield what replies of this endpoint leave out, and those of the provider's other endpoints hold."""
    row, planned = decision.draft.target.provider.row, decision.planned
    for name in row.lacks:
        if name != "reasoning" or not (planned.off or planned.controlled.plan.thinks is False):
            yield Degradation(name, why=f"{row.id} leaves it out of replies in the dialect {row.dialect}")


def plan(request: Request, target: Target, *, knowledge: Knowledge = BUILTIN, may_forward: bool = True) -> Attempt:
    """Return the request to one target for a request without earlier reasoning, and how its reply is treated."""
    return attempt_of(decide(draft_of(request, target, knowledge, may_forward=may_forward)))


def asked_again(
    attempt: Attempt, turns: Sequence[Message], knowledge: Knowledge, tools: Sequence[Tool] = ()
) -> Attempt:
    """Return the attempt with further turns at the end: what the model answered, and what was wrong with it; and with further `tools`."""
    assert attempt.request is not None
    request = msgspec.structs.replace(attempt.request, tools=(*attempt.request.tools, *tools))
    return _with_turns(attempt, request, turns, knowledge)


def continued(attempt: Attempt, turns: Sequence[Message], knowledge: Knowledge, plan: BudgetPlan) -> Attempt:
    """Return the attempt that goes on with an answer that `turns` begin, behind thinking that was cut."""
    assert attempt.request is not None
    quiet = msgspec.structs.replace(knowledge, kept_budgets=None)
    again = _with_turns(attempt, without_thinking(attempt.request), turns, quiet)
    return msgspec.structs.replace(again, wire=with_fields(again.wire, plan.fields))


def _with_turns(attempt: Attempt, request: Request, turns: Sequence[Message], knowledge: Knowledge) -> Attempt:
    """Return the attempt at a request with further turns at the end, by what was decided for an earlier one."""
    draft = msgspec.structs.replace(
        draft_of(request, attempt.target, knowledge, may_forward=False, route=attempt.route),
        origin=attempt.origin,
        ask=attempt.ask,
        search=attempt.search,
        tool_search=attempt.tool_search,
        history=attempt.history,
    )
    before = msgspec.structs.replace(draft.request, model=draft.target.model)
    if attempt.answer is not None:
        before = attempt.answer.request
    shaped = msgspec.structs.replace(before, messages=(*before.messages, *turns), body=None)
    planned = plan_shape(shaped, draft.target, draft.facts, knowledge)
    return attempt_of(Decision(draft, shaped, planned, attempt.answer))


def with_own_headers(wire: WireRequest, request: Request, spoken: str) -> WireRequest:
    """Return the wire request with the client's dialect headers, where the provider speaks that dialect, and those of a trace."""
    program = {name: value for name, value in request.client_headers.items() if name not in unsent_headers()}
    if request.dialect == spoken:
        own = {**program, **request.headers}
    elif not program:
        return wire
    else:
        own = {name: program[name] for name in TRACE_HEADERS if name in program}
    return msgspec.structs.replace(wire, headers={**wire.headers, **own}) if own else wire
