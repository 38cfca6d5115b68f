"""Each rule of `parameters.toml` can hold for some model, and is about parameters that a request can have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

import check_facts

from bardo.catalog.forms import builtin_forms
from bardo.catalog.load import builtin
from bardo.catalog.models import builtin_models
from bardo.catalog.parameters import ParameterRule, builtin_parameters
from bardo.catalog.rows import DialectName
from bardo.values.request import Sampling
from support.offenders import each_case, offenders

RULES = builtin_parameters().rule
IDS = [f"{place}-{rule.name}" for place, rule in enumerate(RULES)]
OTHER_PARAMETERS = {"choices", "logit_bias", "logprobs", "max_output_tokens", "reasoning_format", "top_logprobs"}
"""Parameters beside those of Sampling: fields of Request, and of `extra` by their names in Chat."""
PARAMETERS = {*Sampling.__struct_fields__, *OTHER_PARAMETERS}
EFFECTS = (
    "drop", "within", "limits", "one_of", "rename", "choices", "stops", "no_forced_tool", "drop_foreign", "replace", "call_ids",
    "no_prefill", "trimmed_prefill", "no_thinking_back",
)  # fmt: skip


def parameters_of(rule: ParameterRule) -> Iterator[str]:
    """Yield the names of the parameters that a rule is about."""
    for named in (rule.drop, rule.within, rule.limits, *rule.one_of, rule.rename, rule.drop_foreign, rule.replace):
        yield from named


@each_case("rule", RULES, ids=IDS)
def test_a_rule_is_about_parameters_of_a_request(rule: ParameterRule) -> None:
    unknown = sorted({*parameters_of(rule)} - PARAMETERS)
    assert not unknown, (
        f"the rule {rule.name} of parameters.toml names {unknown}, which no request has: correct it, or name a field of `extra` in "
        "OTHER_PARAMETERS of this file"
    )


@each_case("rule", RULES, ids=IDS)
def test_a_rule_has_an_effect(rule: ParameterRule) -> None:
    assert any(getattr(rule, name) for name in EFFECTS), f"the rule {rule.name} of parameters.toml changes nothing"


@each_case("rule", RULES, ids=IDS)
def test_a_rule_can_hold_for_some_model(rule: ParameterRule) -> None:
    owners = {row.id for row in builtin().providers} | {one.owner for one in builtin_forms().endpoints}
    assert {*rule.owners} <= owners, f"the rule {rule.name} names owners that no endpoint has: {rule.owners}"
    assert {*rule.dialects} <= {*get_args(DialectName)}, f"the rule {rule.name} names an unknown dialect"
    named = {name for row in builtin_models().rows for name in row.rules or ()}
    if rule.of_row or not (rule.owners or rule.dialects):
        assert rule.name in named, f"the rule {rule.name} holds only for models whose row names it, and none does"


def test_openai_is_sent_no_parameter_that_its_sdk_does_not_have() -> None:
    """OpenAI refuses a field that it does not know. Whether another provider of the dialect does, only its documentation says."""
    own = {
        word
        for row in check_facts.accepted()
        if (row.sdk, row.kind) == ("openai_chat", "field of bardo's own")
        for word in row.words
    }
    beyond = {name for name in Sampling.__struct_fields__ if f"Request.{name}" in own}
    assert {"top_k", "min_p"} <= beyond
    dropped = {
        name for rule in builtin_parameters().rules("openai", "openai_chat", "gpt-5.1", ()) for name in rule.drop
    }
    offenders(
        sorted(beyond - dropped),
        "parameter that OpenAI's SDK does not have: `drop` it in the rule `openai` of parameters.toml, and in those of all that refuse it",
    )
