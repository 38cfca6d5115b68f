"""Fields that an operator adds to bodies: below what the client said, for one provider, model or alias, told, and none of bardo's own."""

from __future__ import annotations

import json
from typing import Any, get_args

import msgspec
import pytest

from bardo.adapters.config.settings import parse_settings
from bardo.catalog.load import builtin
from bardo.catalog.rows import DialectName
from bardo.dialects import dialect
from bardo.planning.attempt import Attempt
from bardo.planning.default_fields import check_default_fields
from bardo.planning.exchange import attempts
from bardo.planning.knowledge import BUILTIN
from bardo.planning.model_names import Alias, Aliases, with_alias_fields
from bardo.planning.planner import attempt_of, decide, draft_of, plan
from bardo.planning.refusals import RefusedField
from bardo.planning.route import Provider, Target
from bardo.planning.token_counting import count_attempt
from bardo.planning.unary import Course, embed_attempt, unary_attempts
from bardo.values.errors import ConfigError, InvalidRequest, RequiredFieldRefused, UpstreamRefused
from bardo.values.operations import Embeddings, EmbedRequest
from bardo.values.request import BardoOptions, Request
from bardo.values.wire import Arrival

ROUTER = builtin().provider("openrouter")
assert ROUTER is not None


def target(model: str = "lab/m", **said: Any) -> Target:
    assert ROUTER is not None
    return Target(provider=Provider(id="router", row=ROUTER, base_url="http://x", **said), model=model)


def chat(**fields: Any) -> Request:
    body = {"model": "lab/m", "messages": [{"role": "user", "content": "hi"}], **fields}
    return dialect("openai_chat").decode_request(json.dumps(body).encode(), Arrival())


def sent(request: Request, at: Target) -> tuple[dict[str, Any], dict[str, Any]]:
    attempt = plan(request, at)
    told = {one.what: one.sent for one in attempt.degraded if "default" in one.why}
    return json.loads(attempt.wire.body), told


def plan_without(refused: tuple[RefusedField, ...], request: Request, at: Target) -> Attempt:
    """Return the attempt at a target that has refused some fields."""
    draft = draft_of(request, at, BUILTIN, may_forward=True)
    return attempt_of(decide(msgspec.structs.replace(draft, refused_fields=refused)))


PLACES = {"order": ["a", "b"], "data_collection": "deny", "max_price": {"prompt": 1}}


def test_fields_are_merged_below_what_the_client_said() -> None:
    at = target(extra_body={"provider": PLACES, "service_tier": "flex"})
    body, told = sent(chat(), at)
    assert (body["provider"], body["service_tier"]) == (PLACES, "flex")
    assert told == {"provider": None, "service_tier": "flex"}
    own = {"order": ["c"], "max_price": {"completion": 2}}
    body, told = sent(chat(provider=own, service_tier=None), at)
    assert body["provider"] == {"order": ["c"], "data_collection": "deny", "max_price": {"completion": 2, "prompt": 1}}
    assert body.get("service_tier", "absent") in (None, "flex")
    assert {"provider.data_collection": "deny", "provider.max_price.prompt": 1}.items() <= told.items()
    assert "provider.order" not in told
    assert sent(chat(provider=[1], service_tier="auto"), at)[0]["provider"] == [1]
    assert sent(chat(provider=[1], service_tier="auto"), at)[1] == {}


def test_the_client_wins_under_the_other_name_of_a_limit() -> None:
    at = target(extra_body={"max_completion_tokens": 77, "service_tier": "flex"})
    body, told = sent(chat(max_tokens=10), at)
    assert (body["max_tokens"], body.get("max_completion_tokens")) == (10, None)
    assert told.keys() == {"service_tier"}
    assert sent(chat(), at)[0]["max_completion_tokens"] == 77


@pytest.mark.parametrize(
    "defaults",
    [
        {"generationConfig": {"topK": 3, "topP": 0.5}, "safetySettings": []},
        {"generation_config": {"top_k": 3, "top_p": 0.5}, "safety_settings": []},
    ],
)
@pytest.mark.parametrize(
    "said",
    [
        {"generation_config": {"top_k": 9}, "safety_settings": [{"category": "c", "threshold": "BLOCK_NONE"}]},
        {"generationConfig": {"topK": 9}, "safetySettings": [{"category": "c", "threshold": "BLOCK_NONE"}]},
    ],
)
def test_the_client_wins_in_the_other_spelling_of_gemini(said: dict[str, Any], defaults: dict[str, Any]) -> None:
    row = builtin().provider("gemini")
    assert row is not None
    at = Target(provider=Provider(id="g", row=row, base_url="http://x", extra_body=defaults), model="gemini-2.5-flash")
    raw = json.dumps({"contents": [{"role": "user", "parts": [{"text": "hi"}]}], **said}).encode()
    request = dialect("gemini").decode_request(raw, Arrival(model="gemini-2.5-flash"))
    body = sent(request, at)[0]
    plain = {name.replace("_", "").lower(): value for name, value in body.items()}
    assert len(plain) == len(body)
    config = {name.replace("_", "").lower(): value for name, value in plain["generationconfig"].items()}
    assert len(config) == len(plain["generationconfig"])
    assert (config["topk"], config["topp"]) == (9, 0.5)
    assert len(plain["safetysettings"]) == 1


def test_two_spellings_of_one_field_in_the_operators_own_tables_are_sent_once() -> None:
    row = builtin().provider("gemini")
    assert row is not None
    provider = Provider(
        id="g",
        row=row,
        base_url="http://x",
        extra_body={"generationConfig": {"topK": 1, "seed": 5}, "safety_settings": []},
        model_extra_body=(("gemini*", {"generation_config": {"top_k": 2}}),),
    )
    raw = json.dumps({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}).encode()
    request = dialect("gemini").decode_request(raw, Arrival(model="gemini-2.5-flash"))
    aliases = Aliases({"mine": Alias(model="g/gemini-2.5-flash", extra_body={"safetySettings": [{"category": "c"}]})})
    at = Target(provider=provider, model="gemini-2.5-flash")
    body = sent(with_alias_fields(request, aliases.find("mine")), at)[0]
    assert body["generation_config"] == {"seed": 5, "top_k": 2}
    assert body["safetySettings"] == [{"category": "c"}]
    assert not {"generationConfig", "safety_settings"} & body.keys()
    limits = target(extra_body={"max_tokens": 5}, model_extra_body=(("lab/*", {"max_completion_tokens": 7}),))
    plain = sent(chat(), limits)[0]
    assert (plain.get("max_tokens"), plain["max_completion_tokens"]) == (None, 7)


def test_every_other_byte_stays_as_the_client_sent_it() -> None:
    raw = b'{"model": "lab/m",  "messages": [{"role": "user", "content": "\\u00e9"}], "seed":15 }'
    request = dialect("openai_chat").decode_request(raw, Arrival())
    wire = plan(request, target(extra_body={"service_tier": "flex"})).wire.body
    plain = plan(request, target()).wire.body
    assert wire == plain[:-1] + b',"service_tier":"flex"}'


def test_those_of_a_model_go_before_those_of_its_provider_and_those_of_an_alias_before_both() -> None:
    at = target(
        extra_body={"a": 1, "b": 1, "c": {"x": 1}},
        model_extra_body=(("lab/*", {"b": 2, "c": {"y": 2}}), ("else*", {"b": 9})),
    )
    assert {name: sent(chat(), at)[0].get(name) for name in "abc"} == {"a": 1, "b": 2, "c": {"x": 1, "y": 2}}
    found = Aliases(
        {"mine": Alias(model="inner", extra_body={"b": 4}), "inner": Alias(model="lab/m", extra_body={"b": 3, "d": 3})}
    )
    request = with_alias_fields(chat(), found.find("mine"))
    body, told = sent(request, at)
    assert {name: body.get(name) for name in "abcd"} == {"a": 1, "b": 4, "c": {"x": 1, "y": 2}, "d": 3}
    assert told.keys() == {"a", "b", "c", "d"}


def test_fields_of_an_alias_reach_no_fallback_and_that_is_told() -> None:
    found = Aliases({"mine": Alias(model="router/lab/m", fallbacks=("other/n",), extra_body={"provider": PLACES})})
    request = with_alias_fields(chat(), found.find("mine"))
    assert sent(request, target())[0]["provider"] == PLACES
    body, told = sent(request, target("n"))
    assert "provider" not in body
    assert told == {"provider": None}


def test_a_secret_among_them_is_told_to_no_caller() -> None:
    secret = "sk-proj-" + "a1B2" * 12
    body, told = sent(chat(), target(extra_body={"azure_key": secret, "long": "x" * 100}))
    assert body["azure_key"] == secret
    assert told == {"azure_key": None, "long": None}


@pytest.mark.parametrize("path", ["azure", "azure.key"])
def test_a_default_field_that_the_provider_refuses_is_told_as_left_out_and_without_its_value(path: str) -> None:
    at = target(extra_body={"azure": {"key": "sk-proj-" + "a1B2" * 12}, "seed": 1})
    refused = (RefusedField(path), RefusedField("temperature"))
    attempt = plan_without(refused, chat(temperature=0.5), at)
    body = json.loads(attempt.wire.body)
    assert not body.get("azure")
    told = [(one.what, one.asked, one.sent) for one in attempt.degraded]
    assert "a1B2" not in repr(attempt.degraded)
    assert ("seed", None, 1) in told
    assert ("temperature", 0.5, None) in told
    of_azure = [one for one in attempt.degraded if one.what == path]
    assert [one.why for one in of_azure] == ["the provider refuses this default field of the operator"]
    plan_without(refused[:1], chat(bardo={"on_impossible": "fail"}), at)


def refuse(said: str, request: Request, *targets: Target) -> list[str]:
    """Return the providers that are asked, of which the first refuses a field."""
    exchange = attempts(request, targets)
    asked = [next(exchange).target.provider.id]
    try:
        asked.append(exchange.send(UpstreamRefused(said, status=400, provider="router")).target.provider.id)
    except StopIteration:
        asked.append("nobody")
    return asked


@pytest.mark.parametrize("refused", ["provider", "provider.data_collection"])
def test_without_a_field_on_privacy_that_a_provider_refuses_it_is_not_asked(refused: str) -> None:
    said = f"Unknown parameter: '{refused}'."
    at = target(extra_body={"provider": PLACES, "seed": 1})
    with pytest.raises(RequiredFieldRefused) as caught:
        refuse(said, chat(), at)
    assert caught.value.param == "provider.data_collection"
    assert "required_body" in caught.value.hint
    other = msgspec.structs.replace(at, provider=msgspec.structs.replace(at.provider, id="other"))
    assert refuse(said, chat(), at, other) == ["router", "other"]


def test_what_an_operator_does_not_require_is_left_out() -> None:
    said = "Unknown parameter: 'provider'."
    fields = {"provider": PLACES, "seed": 1}
    assert refuse(said, chat(), target(extra_body=fields, required_body=())) == ["router", "router"]
    assert refuse(said, chat(), target(extra_body={"provider": {"sort": "price"}})) == ["router", "router"]
    assert refuse("Unknown parameter: 'seed'.", chat(), target(extra_body=fields)) == ["router", "router"]
    with pytest.raises(RequiredFieldRefused):
        refuse("Unknown parameter: 'seed'.", chat(), target(extra_body=fields, required_body=("seed",)))
    # What the client said itself is the client's to lose.
    assert refuse("Unknown parameter: 'store'.", chat(store=False), target(extra_body={"store": False}))[1] == "router"


def test_a_field_on_privacy_is_sent_whatever_an_earlier_call_was_told() -> None:
    at = target(extra_body={"store": False, "seed": 1})
    body = json.loads(plan_without((RefusedField("store"), RefusedField("seed")), chat(), at).wire.body)
    assert body["store"] is False
    assert "seed" not in body


@pytest.mark.parametrize("name", [one for one in get_args(DialectName) if one != "watsonx_text"])
def test_what_bardo_writes_itself_is_refused_in_every_dialect(name: DialectName) -> None:
    row = next(one for one in builtin().providers if one.dialect == name)
    tools: dict[str, Any] = {"toolConfig": {"tools": []}} if name == "bedrock_converse" else {"tools": []}
    template = {"chat_template_kwargs": {"enable_thinking": False}}
    own: list[dict[str, Any]] = [
        {"model": "m"}, {"stream": False}, tools, {"think": True}, {"reasoning": {"effort": "low"}}, template,
    ]  # fmt: skip
    for fields in own:
        with pytest.raises(InvalidRequest) as caught:
            check_default_fields(fields, (row,), "extra_body")
        assert caught.value.hint
    check_default_fields(
        {"service_tier": "flex", "provider": PLACES, "temperature": 0.2, "deep": {"model": 1}}, (row,), "extra_body"
    )


@pytest.mark.parametrize(
    ("toml", "words"),
    [
        ('[[providers]]\nid = "openrouter"\nextra_body = { model = "x" }', ["line 3", "openrouter", "model", "leave it out"]),
        ('[[providers]]\nid = "openrouter"\nextra_body = { reasoning = { effort = "low" } }', ["effort", "alias"]),
        ('[[providers]]\nid = "openrouter"\n[providers.model_extra_body."a/*"]\nmessages = []', ["a/*", "messages"]),
        ('[[providers]]\nid = "openrouter"\nextra_body = 1', ["extra_body"]),
        ('[[providers]]\nid = "openrouter"\nextra_body = { day = 2026-11-30 }', ["day", "JSON"]),
        ('[[providers]]\nid = "openrouter"\nextra_body = { a = { bad = [nan] } }', ["a.bad", "JSON"]),
        ('[[providers]]\nid = "openrouter"\n[aliases]\nx = { model = "openrouter/m", extra_body = { stream = true } }', ["x", "stream"]),
        ('[[providers]]\nid = "gemini"\nextra_body = { generation_config = { thinking_config = { thinking_budget = 1 } } }', ["effort"]),
        ('[[providers]]\nid = "gemini"\nextra_body = { system_instruction = {} }', ["system_instruction"]),
        ('[[providers]]\nid = "openrouter"\nextra_body = { a = { b = 1 } }\nrequired_body = ["store", "a.c"]', ["line 4", "'a.c'", "a.b"]),
        ('[aliases]\nx = { model = "m", extra_body = { input = [] } }', ["x", "input"]),
    ],
)  # fmt: skip
def test_a_mistake_is_named_when_the_file_is_read(toml: str, words: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_settings(toml)
    said = f"{caught.value.message} {caught.value.hint}"
    assert all(word in said for word in words), said


def vectors(*at: Target, **said: Any) -> Course[Embeddings]:
    request = EmbedRequest(model="lab/text-embedding-m", inputs=("a",), options=BardoOptions(**said))
    return unary_attempts(at, lambda one: embed_attempt(request, one))


def test_a_request_for_vectors_has_the_default_fields_on_privacy_alone() -> None:
    fields = {"provider": PLACES, "service_tier": "flex", "store": False}
    at = target("lab/text-embedding-m", extra_body=fields)
    attempt, _ = next(vectors(at))
    assert json.loads(attempt.wires[0].body)["provider"] == {"data_collection": "deny"}
    assert json.loads(attempt.wires[0].body).keys().isdisjoint(("service_tier", "store"))
    assert [(one.what, one.sent) for one in attempt.degraded] == [("provider", None)]
    attempt, _ = next(vectors(at, alias_fields={"provider": {"zdr": True}}, alias_model="lab/text-embedding-m"))
    assert json.loads(attempt.wires[0].body)["provider"] == {"data_collection": "deny", "zdr": True}
    asked = next(vectors(target("lab/text-embedding-m", extra_body=fields, required_body=("service_tier",))))[0]
    body = json.loads(asked.wires[0].body)
    assert (body["service_tier"], body.get("provider")) == ("flex", None)
    asked = next(vectors(target("lab/text-embedding-m", extra_body=fields, required_body=())))[0]
    assert json.loads(asked.wires[0].body).keys().isdisjoint(fields)
    assert asked.degraded == ()


def test_where_a_field_on_privacy_is_refused_another_provider_makes_the_vectors_or_none() -> None:
    at = target("lab/text-embedding-m", extra_body={"provider": PLACES})
    refusal = UpstreamRefused("Unknown parameter: 'provider'.", status=400, provider="router")
    course = vectors(at)
    next(course)
    with pytest.raises(RequiredFieldRefused) as caught:
        course.send(refusal)
    assert caught.value.param == "provider.data_collection"
    other = msgspec.structs.replace(at, provider=msgspec.structs.replace(at.provider, id="other", extra_body={}))
    course = vectors(at, other)
    next(course)
    attempt, lost = course.send(refusal)
    assert attempt.target is other
    assert "data_collection" in lost[0].why


def test_a_prompt_is_counted_by_nobody_who_takes_no_field_on_privacy_with_it() -> None:
    row = builtin().provider("anthropic")
    assert row is not None
    request = msgspec.structs.replace(chat(), model="claude-sonnet-4-5")
    for fields, sent in (({"inference_geo": "us"}, 0), ({"service_tier": "flex"}, 1), ({}, 1)):
        provider = Provider(id="anthropic", row=row, base_url="http://x", extra_body=fields)
        attempt = count_attempt(request, Target(provider=provider, model="claude-sonnet-4-5"), BUILTIN)
        assert len(attempt.wires) == sent
        assert any("inference_geo" in one.why for one in attempt.degraded) == (not sent)
