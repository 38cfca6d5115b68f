"""Claude Code's contract with gateways, a test for each line of the table in docs/reference/clients.md.

The contract is what Anthropic publishes as "Claude Code gateway compatibility guide" (code.claude.com, llm-gateway-protocol, 2026-11).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import quote

import anthropic
import msgspec
import pytest

from bardo.adapters.config.settings import parse_settings, provider_of
from bardo.adapters.net.client import Call
from bardo.adapters.net.fake import FakeReply
from bardo.catalog.load import builtin
from bardo.dialects import dialect
from bardo.simulators import Fault, Script, Turn
from bardo.values.blocks import TextBlock
from bardo.values.request import Message, Request
from docs.test_examples import ROOT
from support.any_model import Simulator
from support.gateway import House, house
from support.keyed_gateway import PRICE, KeyedGateway, keyed_gateway
from support.scripted import Scripted
from support.talk import QUESTION, request
from support.upstream_replies import REPLIES

boto3: Any = pytest.importorskip("boto3")
config: Any = pytest.importorskip("botocore.config")
exceptions: Any = pytest.importorskip("botocore.exceptions")

JSON = {"content-type": "application/json"}
TURNS: Any = [{"role": "user", "content": QUESTION}]
VERTEX = "/v1/projects/p/locations/us-east5/publishers/anthropic/models/"
UPSTREAMS = {
    "anthropic": "claude-sonnet-4-5-20250929",
    "deepseek": "deepseek-v4-pro",
    "openai_responses": "gpt-5",
    "gemini": "gemini-2.5-flash",
}
"""Models at providers of four dialects."""


@pytest.fixture(scope="module")
def running() -> Iterator[House]:
    with house([Simulator(name, models=[model]) for name, model in UPSTREAMS.items()]) as it:
        yield it


def bedrock(address: str, service: str = "bedrock-runtime", **options: Any) -> Any:
    """Return AWS's own client, which has a bearer token of Bedrock unless told otherwise."""
    own = {"aws_access_key_id": "id", "aws_secret_access_key": "secret", **options}
    quick = config.Config(retries={"total_max_attempts": 1}, connect_timeout=5)
    return boto3.client(service, region_name="us-east-1", endpoint_url=address, config=quick, **own)


def vertex(address: str) -> anthropic.AnthropicVertex:
    """Return Anthropic's own client of Vertex AI."""
    return anthropic.AnthropicVertex(
        region="us-east5", project_id="p", base_url=f"{address}/v1", access_token="any", max_retries=0
    )


@pytest.mark.parametrize("provider", UPSTREAMS)
def test_the_client_of_messages_is_answered_over_each_dialect(running: House, provider: str) -> None:
    name = f"{provider}/{UPSTREAMS[provider]}"
    with closing(anthropic.Anthropic(base_url=running.address, api_key="k", max_retries=0)) as client:
        whole = client.beta.messages.create(model=name, max_tokens=500, messages=TURNS)
        assert whole.content[-1].text == "1161"  # type: ignore[union-attr]
        with client.beta.messages.stream(model=name, max_tokens=500, messages=TURNS) as stream:
            assert stream.get_final_text() == "1161"
        assert client.beta.messages.count_tokens(model=name, messages=TURNS).input_tokens > 0


@pytest.mark.parametrize("provider", UPSTREAMS)
def test_the_client_of_bedrock_is_answered_over_each_dialect(running: House, provider: str) -> None:
    body = json.dumps({"anthropic_version": "bedrock-2023-05-31", "max_tokens": 500, "messages": TURNS})
    client = bedrock(running.address)
    with closing(client):
        name = f"{provider}/{UPSTREAMS[provider]}"
        whole = json.loads(client.invoke_model(modelId=name, body=body)["body"].read())
        assert (whole["type"], whole["content"][-1]["text"]) == ("message", "1161")
        chunks = client.invoke_model_with_response_stream(modelId=name, body=body)["body"]
        events = [json.loads(chunk["chunk"]["bytes"]) for chunk in chunks]
        text = "".join(event["delta"].get("text", "") for event in events if event["type"] == "content_block_delta")
        assert (events[0]["type"], events[-1]["type"], text) == ("message_start", "message_stop", "1161")


@pytest.mark.parametrize("provider", UPSTREAMS)
def test_the_client_of_vertex_is_answered_over_each_dialect(running: House, provider: str) -> None:
    name = f"{provider}/{UPSTREAMS[provider]}"
    with closing(vertex(running.address)) as client:
        whole = client.messages.create(model=name, max_tokens=500, messages=TURNS)
        assert whole.content[-1].text == "1161"  # type: ignore[union-attr]
        with client.messages.stream(model=name, max_tokens=500, messages=TURNS) as stream:
            assert stream.get_final_text() == "1161"
        assert client.messages.count_tokens(model=name, messages=TURNS).input_tokens > 0


def test_betas_of_a_body_reach_anthropic_as_its_header_beside_those_of_a_header(running: House) -> None:
    body = {
        "anthropic_version": "bedrock-2023-05-31",
        "anthropic_beta": ["context-1m-2025-08-07", "one-to-come-2027-01-01"],
        "max_tokens": 50,
        "messages": TURNS,
    }
    name = quote(f"anthropic/{UPSTREAMS['anthropic']}", safe="")
    for path in (f"/model/{name}/invoke", f"{VERTEX}{name}:rawPredict"):
        answer = request(running.address, "POST", path, body, {"anthropic-beta": "of-the-header"})
        assert answer.status == 200, answer.text
        betas = running.arrived("anthropic")[-1].headers["anthropic-beta"]
        assert betas == "context-1m-2025-08-07,one-to-come-2027-01-01, of-the-header"
        sent = running.last("anthropic")
        assert sent["model"] == UPSTREAMS["anthropic"]
        assert not {"anthropic_version", "anthropic_beta"} & sent.keys()


HEADERS = {
    "anthropic-version": "2023-06-01",
    "anthropic-beta": "claude-code-20250219,interleaved-thinking-2025-05-14",
    "anthropic-workspace-id": "wrkspc_01",
    "anthropic-one-to-come": "value",
    "x-claude-code-session-id": "s-1",
    "x-claude-code-agent-id": "a-1",
    "x-claude-code-parent-agent-id": "a-0",
}


def test_headers_of_anthropics_are_an_open_list_that_goes_to_anthropic_unchanged(running: House) -> None:
    body = {"model": UPSTREAMS["anthropic"], "max_tokens": 50, "messages": TURNS}
    assert request(running.address, "POST", "/v1/messages?beta=true", body, HEADERS).status == 200
    sent = running.arrived("anthropic")[-1].headers
    assert {name: sent.get(name) for name in HEADERS} == HEADERS


def test_elsewhere_what_they_asked_for_is_reported_and_the_version_is_no_loss(running: House) -> None:
    body = {"model": UPSTREAMS["deepseek"], "max_tokens": 50, "messages": TURNS}
    answer = request(running.address, "POST", "/v1/messages?beta=true", body, HEADERS)
    assert answer.status == 200
    assert not [name for name in running.arrived("deepseek")[-1].headers if name.startswith("anthropic-")]
    lost = answer.headers["x-bardo-degraded"]
    assert all(name in lost for name in ("anthropic-beta", "anthropic-workspace-id", "anthropic-one-to-come"))
    assert "anthropic-version" not in lost


def test_a_key_in_a_header_of_anthropics_goes_nowhere_and_a_word_for_one_is_no_key(running: House) -> None:
    body = {"model": UPSTREAMS["anthropic"], "max_tokens": 50, "messages": TURNS}
    for key, passes in (("bardo_secret_key", False), ("any", True)):
        headers = {"x-api-key": key, "anthropic-mistake": f"of {key}"}
        assert request(running.address, "POST", "/v1/messages", body, headers).status == 200
        assert ("anthropic-mistake" in running.arrived("anthropic")[-1].headers) == passes


def test_errors_reach_aws_clients_in_their_form(running: House) -> None:
    with closing(bedrock(running.address)) as client, pytest.raises(exceptions.ClientError) as caught:
        client.invoke_model(
            modelId="nobody/has-this", body=json.dumps({"anthropic_version": "x", "max_tokens": 1, "messages": TURNS})
        )
    assert caught.value.response["Error"]["Code"] == "ResourceNotFoundException"
    answer = request(running.address, "POST", "/model/m/invoke", b"{")
    assert (answer.status, answer.headers["x-amzn-errortype"]) == (400, "ValidationException")


BLOCK = "x-anthropic-billing-header: cc_version=2.1.330.a3f; cc_entrypoint=sdk-cli; cch=71fea;"
SYSTEM = [
    {"type": "text", "text": BLOCK},
    {"type": "text", "text": "You are Claude Code.", "cache_control": {"type": "ephemeral"}},
]


def with_block(block: str, model: str, **further: Any) -> dict[str, Any]:
    system = [{"type": "text", "text": block}, *SYSTEM[1:]]
    return {"model": model, "max_tokens": 50, "system": system, "messages": TURNS, **further}


@pytest.mark.parametrize("further", [{}, {"stop_sequences": [" "]}], ids=["forwarded", "rewritten"])
def test_the_attribution_block_reaches_anthropic_byte_for_byte(running: House, further: Any) -> None:
    answer = request(running.address, "POST", "/v1/messages", with_block(BLOCK, UPSTREAMS["anthropic"], **further))
    assert answer.status == 200
    assert running.last("anthropic")["system"] == SYSTEM
    assert "attribution" not in answer.headers.get("x-bardo-degraded", "")


@pytest.mark.parametrize("provider", sorted(set(UPSTREAMS) - {"anthropic"}))
def test_elsewhere_the_attribution_block_changes_no_byte_of_the_prompt(running: House, provider: str) -> None:
    bodies = []
    for block in (BLOCK, "x-anthropic-billing-header: cc_version=2.1.331.fff; cc_entrypoint=cli; cch=00000; cc_x=1;"):
        answer = request(running.address, "POST", "/v1/messages", with_block(block, UPSTREAMS[provider]))
        assert answer.status == 200, answer.text
        assert "attribution" in answer.headers["x-bardo-degraded"]
        bodies.append(running.last(provider))
    assert bodies[0] == bodies[1]
    assert "x-anthropic-billing-header" not in json.dumps(bodies)


def test_a_cloud_of_claude_gets_the_attribution_that_is_the_same_in_all_requests() -> None:
    name = "claude-sonnet-4-5@20250929"
    with house([Simulator("vertex_anthropic")]) as running:
        for change in ("a3f; cc_entrypoint=cli; cch=71fea;", "b00; cc_entrypoint=cli; cch=00000; cc_prompt_id=1;"):
            body = with_block(f"x-anthropic-billing-header: cc_version=2.1.330.{change}", f"vertex_anthropic/{name}")
            answer = request(running.address, "POST", "/v1/messages", body)
            assert answer.status == 200, answer.text
            said = running.last("vertex_anthropic")["system"][0]["text"]
            assert said == "x-anthropic-billing-header: cc_version=2.1.330; cc_entrypoint=cli;"
            assert "attribution" in answer.headers["x-bardo-degraded"]


@pytest.mark.parametrize(
    ("system", "left"),
    [
        (f"{BLOCK}\nBe short.", "Be short."),
        ([{"type": "text", "text": f"{BLOCK}\nBe short."}], "Be short."),
        ([{"type": "text", "text": BLOCK}], None),
        (BLOCK, None),
        (f"Be short.\n{BLOCK}", f"Be short.\n{BLOCK}"),
        ("x-anthropic-billing-header: " + "x" * 3000, "x-anthropic-billing-header: " + "x" * 3000),
    ],
    ids=["joined", "joined in a block", "alone", "alone as text", "not at the head", "too long"],
)
def test_only_the_line_at_the_head_is_attribution(running: House, system: Any, left: str | None) -> None:
    body = {"model": UPSTREAMS["deepseek"], "max_tokens": 50, "system": system, "messages": TURNS}
    assert request(running.address, "POST", "/v1/messages", body).status == 200
    sent = [one["content"] for one in running.last("deepseek")["messages"] if one["role"] == "system"]
    assert sent == ([] if left is None else [left])


def test_a_reply_that_was_kept_is_given_whatever_the_attribution() -> None:
    layers = '[inference.pipeline]\nprofile = "own"\n[inference.pipeline.profiles.own]\nlayers = ["cache"]\n[inference.pipeline.cache]\n'
    with house([Simulator("deepseek")], toml=layers) as running:
        for cache, end in (("miss", "a3f; cc_entrypoint=cli; cch=1;"), ("hit", "b00; cc_entrypoint=cli; cch=2;")):
            body = with_block(f"x-anthropic-billing-header: cc_version=2.1.330.{end}", "deepseek/m1")
            answer = request(running.address, "POST", "/v1/messages", body)
            assert answer.headers["x-bardo-cache"].startswith(cache)


def test_each_row_of_a_provider_says_what_becomes_of_the_attribution() -> None:
    request = Request(
        model="m", messages=(Message("user", (TextBlock("hi"),)),), dialect="anthropic_messages", attribution=BLOCK
    )
    stable = "x-anthropic-billing-header: cc_version=2.1.330; cc_entrypoint=sdk-cli;"
    kept = {"whole": BLOCK, "stable": stable, "": None}
    rows = [row for row in builtin().providers if row.dialect in ("anthropic_messages", "bedrock_invoke")]
    assert {row.attribution for row in rows} == {"whole", "stable"}
    assert [row.id for row in rows if row.attribution == "whole"] == ["anthropic"]
    for row in (one for first in builtin().providers for one in first.at_endpoints):
        asked = msgspec.structs.replace(request, model="anthropic.claude-opus-4-8")
        wire = dialect(row.dialect).encode_request(asked, row)
        body = json.loads(wire.body)
        wanted = kept[row.attribution]
        assert body.get("system") == wanted if wanted else "x-anthropic-billing-header" not in str(body), row.id
        assert ("attribution" in [one.what for one in wire.degraded]) == (wanted != BLOCK), row.id
    # Nothing that is the same in all requests is nothing to send.
    nameless = msgspec.structs.replace(
        request, model="anthropic.claude-opus-4-8", attribution="x-anthropic-billing-header: cch=1;"
    )
    vertex_row = builtin().provider("vertex-anthropic")
    assert vertex_row is not None
    assert "system" not in json.loads(dialect("anthropic_messages").encode_request(nameless, vertex_row).body)


def test_a_server_of_which_only_the_dialect_is_known_gets_the_stable_attribution() -> None:
    text = '[[providers]]\nid = "mine"\ndialect = "anthropic_messages"\nbase_url = "http://one.invalid/v1"\n'
    text += '[[providers]]\nid = "other"\npreset = "anthropic"\nbase_url = "http://two.invalid/v1"\n'
    settings = parse_settings(text)
    assert [provider_of(entry, "").row.attribution for entry in settings.providers] == ["stable", "whole"]


def test_a_marker_of_the_attribution_block_is_reported_where_the_block_is_left_out(running: House) -> None:
    block = {"type": "text", "text": BLOCK, "cache_control": {"type": "ephemeral"}}
    body = {"model": UPSTREAMS["deepseek"], "max_tokens": 50, "system": [block, *SYSTEM[1:]], "messages": TURNS}
    answer = request(running.address, "POST", "/v1/messages", body)
    assert "attribution.cache_control" in answer.headers["x-bardo-degraded"]
    assert "x-anthropic-billing-header" not in json.dumps(running.last("deepseek"))


DISCOVERY = {"anthropic-version": "2023-06-01", "authorization": "Bearer any"}


def discovered(address: str, query: str = "?limit=1000", headers: Any = None) -> Any:
    answer = request(address, "GET", f"/v1/models{query}", headers=DISCOVERY if headers is None else headers)
    assert answer.status == 200, answer.text
    return answer.json


def test_every_model_has_a_name_that_claude_code_shows_and_that_name_is_answered(running: House) -> None:
    listed = {one["id"]: one for one in discovered(running.address)["data"]}
    for provider, model in UPSTREAMS.items():
        name = model if provider == "anthropic" else f"anthropic/{model}"
        assert listed[name]["display_name"] == model
        assert listed[name]["created_at"]
        for path in (
            "/v1/messages",
            f"/model/{quote(name, safe='')}/invoke",
            f"{VERTEX}{quote(name, safe='')}:rawPredict",
        ):
            body = {"anthropic_version": "x", "max_tokens": 50, "messages": TURNS}
            if path == "/v1/messages":
                body = {"model": name, "max_tokens": 50, "messages": TURNS}
            answer = request(running.address, "POST", path, body)
            assert (answer.status, answer.json["model"]) == (200, name), answer.text
        chat = request(running.address, "POST", "/v1/chat/completions", {"model": name, "messages": TURNS})
        assert (chat.status, chat.json["model"]) == (200, name)
        assert request(running.address, "GET", f"/v1/models/{name}", headers=DISCOVERY).json["id"] == name


def test_the_list_of_models_stays_as_it_is_for_other_clients(running: House) -> None:
    names = {one["id"] for one in request(running.address, "GET", "/v1/models").json["data"]}
    assert names >= set(UPSTREAMS.values())
    assert not [name for name in names if name.startswith("anthropic/")]


def test_claude_code_is_known_by_its_own_name_too(running: House) -> None:
    agent = {"user-agent": "claude-cli/2.1.330 (external, cli)"}
    assert discovered(running.address, headers=agent) == discovered(running.address)


def test_a_list_of_models_has_pages(running: House) -> None:
    whole = [one["id"] for one in discovered(running.address)["data"]]
    with closing(anthropic.Anthropic(base_url=running.address, api_key="k", max_retries=0)) as client:
        assert [one.id for one in client.models.list(limit=3)] == whole
        page = client.models.list(limit=2, after_id=whole[1])
        assert (page.first_id, page.last_id, page.has_more) == (whole[2], whole[3], True)
        before = client.models.list(limit=2, before_id=whole[3])
        assert ([one.id for one in before.data], before.has_more) == (whole[1:3], True)
    last = discovered(running.address, f"?after_id={quote(whole[-1])}")
    assert (last["data"], last["has_more"], last["first_id"], last["last_id"]) == ([], False, None, None)


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "limit=x", "limit=", "after_id=nobody", "before_id=nobody"])
def test_a_page_that_there_cannot_be_is_refused_in_anthropics_form(running: House, query: str) -> None:
    answer = request(running.address, "GET", f"/v1/models?{query}", headers=DISCOVERY)
    assert (answer.status, answer.json["error"]["type"]) == (400, "invalid_request_error")
    assert answer.json["error"]["param"] == query.partition("=")[0]


def test_an_alias_of_the_operators_stands_in_the_place_of_the_longer_name() -> None:
    aliases = '[aliases]\nclaude-deep = "deepseek/m1"\nother = "deepseek/m2"\n'
    with house([Simulator("deepseek", models=["m1", "m2"])], toml=aliases) as running:
        listed = [one["id"] for one in discovered(running.address)["data"]]
        assert {"claude-deep", "anthropic/m2", "anthropic/other"} <= set(listed)
        assert "anthropic/m1" not in listed
        assert [name.startswith(("claude", "anthropic")) for name in listed] == sorted(
            (name.startswith(("claude", "anthropic")) for name in listed), reverse=True
        )


def test_a_name_that_a_provider_has_itself_is_its_own() -> None:
    own = {"anthropic": ["m1", "claude-x"], "deepseek": ["m1", "m2"]}
    with house([Simulator("deepseek", models=own["deepseek"]), Simulator("anthropic", models=own["anthropic"])]) as it:
        listed = {one["id"]: one.get("display_name") for one in discovered(it.address)["data"]}
        assert listed["anthropic/m1"] == "anthropic/m1"
        assert listed["anthropic/deepseek/m1"] == "m1"
        for name, provider in (
            ("anthropic/m1", "anthropic"),
            ("anthropic/deepseek/m1", "deepseek"),
            ("anthropic/m2", "deepseek"),
        ):
            before = len(it.arrived(provider))
            body = {"model": name, "max_tokens": 50, "messages": TURNS}
            assert request(it.address, "POST", "/v1/messages", body).status == 200
            assert len(it.arrived(provider)) == before + 1


def test_inference_profiles_are_listed_to_aws_clients_and_can_be_invoked(running: House) -> None:
    with closing(bedrock(running.address, "bedrock")) as client, closing(bedrock(running.address)) as runtime:
        found: list[Any] = []
        more: dict[str, str] = {}
        while True:
            page = client.list_inference_profiles(typeEquals="SYSTEM_DEFINED", maxResults=3, **more)
            found += page["inferenceProfileSummaries"]
            if "nextToken" not in page:
                break
            more = {"nextToken": page["nextToken"]}
        ids = [one["inferenceProfileId"] for one in found]
        assert len(ids) == len(set(ids))
        assert {"claude-sonnet-4-5-20250929", "anthropic/deepseek-v4-pro", "deepseek-v4-pro"} <= set(ids)
        one = client.get_inference_profile(inferenceProfileIdentifier="anthropic/deepseek-v4-pro")
        assert (one["status"], one["type"]) == ("ACTIVE", "SYSTEM_DEFINED")
        body = json.dumps({"anthropic_version": "bedrock-2023-05-31", "max_tokens": 50, "messages": TURNS})
        for name in (one["inferenceProfileArn"], one["inferenceProfileId"]):
            assert json.loads(runtime.invoke_model(modelId=name, body=body)["body"].read())["model"] == name
        assert client.list_inference_profiles(typeEquals="APPLICATION")["inferenceProfileSummaries"] == []
        with pytest.raises(exceptions.ClientError) as caught:
            client.get_inference_profile(inferenceProfileIdentifier="nobody/has-this")
        assert caught.value.response["Error"]["Code"] == "ResourceNotFoundException"


def test_aws_clients_count_the_tokens_of_either_body(running: House) -> None:
    body = json.dumps({"anthropic_version": "bedrock-2023-05-31", "max_tokens": 50, "messages": TURNS})
    converse = {"messages": [{"role": "user", "content": [{"text": QUESTION}]}]}
    with closing(bedrock(running.address)) as client:
        for given in ({"invokeModel": {"body": body}}, {"converse": converse}):
            counted = client.count_tokens(modelId="anthropic/deepseek-v4-pro", input=given)
            assert counted["inputTokens"] > 0


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ({}, "input"),
        ({"input": {}}, "input.invokeModel"),
        ({"input": {"invokeModel": {}}}, "input.invokeModel.body"),
        ({"input": {"invokeModel": {"body": "?"}}}, "input.invokeModel.body"),
        ({"input": {"invokeModel": {"body": "\u00e9"}}}, "input.invokeModel.body"),
    ],
)
def test_what_cannot_be_counted_is_refused_in_awss_form(running: House, given: Any, param: str) -> None:
    answer = request(running.address, "POST", "/model/m1/count-tokens", given)
    assert (answer.status, answer.headers["x-amzn-errortype"]) == (400, "ValidationException")
    assert answer.json["bardo"]["param"] == param


NAMES = [
    "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "anthropic.claude-sonnet-4-5-20250929-v1:0",
    "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "claude-sonnet-4-5@20250929",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_clouds_name_of_claude_finds_the_model_that_is_configured(running: House, name: str) -> None:
    body = {"anthropic_version": "x", "max_tokens": 50, "messages": TURNS}
    for path in (f"/model/{quote(name, safe='')}/invoke", f"{VERTEX}{quote(name, safe='@')}:rawPredict"):
        answer = request(running.address, "POST", path, body)
        assert (answer.status, answer.json["model"]) == (200, name), answer.text
        assert running.last("anthropic")["model"] == UPSTREAMS["anthropic"]


@pytest.mark.parametrize(
    "name", ["claude-sonnet-4-5@20250514", "us.anthropic.claude-opus-9-v1:0", "us.amazon.nova-pro-v1:0"]
)
def test_another_model_is_not_taken_for_it(name: str) -> None:
    with house([Simulator("vllm", models=["claude-sonnet-4-5-20250929"])]) as running:
        body = {"anthropic_version": "x", "max_tokens": 50, "messages": TURNS}
        answer = request(running.address, "POST", f"{VERTEX}{quote(name)}:rawPredict", body)
        assert (answer.status, answer.json["error"]["type"]) == (404, "not_found_error")


def test_the_nearest_snapshot_is_asked() -> None:
    lists = {
        "vllm": ["claude-a-1-20250101", "claude-a-1-20260101", "claude-b-1", "claude-b-1-20250101", "claude-c-1.5"],
        "sglang": ["other"],
    }
    wanted = {
        "us.anthropic.claude-a-1": "claude-a-1-20260101",
        "claude-a-1@20250101": "claude-a-1-20250101",
        "claude-b-1@default": "claude-b-1",
        "claude-b-1@20250101": "claude-b-1-20250101",
        "claude-b-1@20260101": "claude-b-1",
        "anthropic.claude-c-1-5-20250101-v1:0": "claude-c-1.5",
    }
    with house([Simulator(name, models=models) for name, models in lists.items()]) as running:
        for name, model in wanted.items():
            body = {"model": name, "max_tokens": 50, "messages": TURNS}
            answer = request(running.address, "POST", "/v1/messages", body)
            assert (answer.status, running.last("vllm")["model"]) == (200, model), (name, answer.text)


def test_an_alias_for_claude_holds_for_the_names_that_clouds_have_for_it() -> None:
    aliases = (
        '[aliases]\n"claude-sonnet-4-5" = "deepseek/m1"\n"claude-opus-*" = "deepseek/m2"\n'
        '"arn:aws:bedrock:us-east-1:1:application-inference-profile/abc" = "deepseek/m3"\n"of-mine" = "deepseek/m4"\n'
    )
    wanted = {
        NAMES[0]: "m1",
        NAMES[3]: "m1",
        "global.anthropic.claude-opus-4-8": "m2",
        "arn:aws:bedrock:us-east-1:1:application-inference-profile/abc": "m3",
        "arn:aws:bedrock:us-east-1:1:application-inference-profile/of-mine": "m4",
    }
    with house([Simulator("deepseek")], toml=aliases) as running:
        for name, model in wanted.items():
            body = {"anthropic_version": "x", "max_tokens": 50, "messages": TURNS}
            answer = request(running.address, "POST", f"/model/{quote(name, safe='')}/invoke", body)
            assert answer.status == 200, answer.text
            assert (running.last("deepseek")["model"], answer.json["model"]) == (model, name)


def test_a_probe_of_the_connection_is_answered(running: House) -> None:
    for path in ("/", "/api/hello"):
        assert request(running.address, "HEAD", path).status == 200


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedGateway]:
    """A gateway that asks for keys, with an alias that leads elsewhere than its name says."""
    folder = tmp_path_factory.mktemp("keyed")
    aliases = '[aliases]\n"claude-haiku-4-5" = "deepseek/m2"\n'
    with keyed_gateway(
        folder, [Simulator("anthropic"), Simulator("deepseek", models=["m1", "m2"])], toml=PRICE + aliases
    ) as it:
        yield it


def test_the_key_comes_in_every_form_that_claude_code_has_for_it(
    keyed: KeyedGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = keyed.key(name="one")
    body = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 50, "messages": TURNS}
    paths = (
        "/model/deepseek%2Fm1/invoke",
        f"{VERTEX}deepseek%2Fm1:rawPredict",
        f"{VERTEX}deepseek%2Fm1:streamRawPredict",
    )
    for path in paths:
        for headers in (
            {"authorization": f"Bearer {key}"},
            {"x-api-key": key},
            {"authorization": f"Bearer {key}", "x-api-key": key},
        ):
            assert request(keyed.address, "POST", path, body, headers).status == 200
        assert request(keyed.address, "POST", path, body).status == 401
        assert request(keyed.address, "POST", path, body, {"x-api-key": "bardo_other"}).status == 401
    for path in ("/v1/models?limit=1000", "/inference-profiles"):
        assert (
            request(
                keyed.address, "GET", path, headers={"x-api-key": key, **DISCOVERY, "authorization": f"Bearer {key}"}
            ).status
            == 200
        )
        assert request(keyed.address, "GET", path).status == 401
    # boto3 itself sends such a token over TLS alone.
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", key)
    own: Any = anthropic.AnthropicBedrock(aws_region="us-east-1", base_url=keyed.address, max_retries=0)
    with closing(own) as client:
        reply = client.beta.messages.create(model="deepseek/m1", max_tokens=50, messages=TURNS, betas=["one-to-come"])
        assert reply.content[-1].text == "1161"
        with client.messages.stream(model="anthropic/m1", max_tokens=50, messages=TURNS) as stream:
            assert stream.get_final_text() == "1161"


def test_a_signature_of_awss_is_refused_with_what_to_do_and_beside_a_key_it_says_nothing(keyed: KeyedGateway) -> None:
    body = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 50, "messages": TURNS}
    with closing(bedrock(keyed.address)) as client, pytest.raises(exceptions.ClientError) as caught:
        client.invoke_model(modelId="deepseek/m1", body=json.dumps(body))
    assert caught.value.response["Error"]["Code"] == "UnrecognizedClientException"
    assert "AWS_BEARER_TOKEN_BEDROCK" in caught.value.response["Error"]["Message"]
    signed = {"authorization": "AWS4-HMAC-SHA256 Credential=AKID/20261130/us-east-1/bedrock/aws4_request, Signature=0"}
    both = {**signed, "x-api-key": keyed.key(name="beside")}
    assert request(keyed.address, "POST", "/model/deepseek%2Fm1/invoke", body, both).status == 200


def test_a_name_for_the_picker_opens_no_model_that_a_key_may_not_ask(keyed: KeyedGateway) -> None:
    body = {"max_tokens": 50, "messages": TURNS}
    allowed: dict[str, tuple[list[str], list[str]]] = {
        "anthropic/*": (["anthropic/claude-x"], ["anthropic/m1", "anthropic/deepseek/m1", "m1"]),
        "m1": (["m1", "anthropic/m1", "anthropic/deepseek/m1"], ["m2", "anthropic/m2"]),
        "us.anthropic.*": ([], ["us.anthropic.claude-haiku-4-5-20251001-v1:0"]),
        "claude-haiku-4-5": (["us.anthropic.claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5@20251001"], ["m2"]),
    }
    for glob, (may, may_not) in allowed.items():
        headers = {"x-api-key": keyed.key(name="limited", models=(glob,)), "anthropic-version": "2023-06-01"}
        for name in (*may, *may_not):
            answer = request(keyed.address, "POST", "/v1/messages", {**body, "model": name}, headers)
            refused = "the key may not ask" in answer.text
            assert refused == (name in may_not), (glob, name, answer.text)
        names = {one["id"] for one in request(keyed.address, "GET", "/v1/models", headers=headers).json["data"]}
        assert not names.intersection(may_not), glob


@pytest.mark.parametrize(
    "path", [f"{VERTEX}:rawPredict", f"{VERTEX}m1:predict", "/projects/p/locations/l/publishers/anthropic/models/m1:x"]
)
def test_a_path_of_claude_on_vertex_that_there_is_not_is_refused_in_anthropics_form(running: House, path: str) -> None:
    answer = request(running.address, "POST", path, {})
    assert (answer.status, answer.json["error"]["type"]) == (404, "not_found_error")


CLOSED = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
FEATURES: dict[str, tuple[str, dict[str, Any]]] = {
    "adaptive thinking": ("", {"thinking": {"type": "adaptive"}}),
    "context management": (
        "context-management-2025-06-27",
        {"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}},
    ),
    "a header without a field": ("context-1m-2025-08-07,interleaved-thinking-2025-05-14", {}),
    "fields of tools": (
        "advanced-tool-use-2025-11-20",
        {
            "tools": [
                {"name": "one", "input_schema": CLOSED, "strict": True},
                {"name": "two", "input_schema": {"type": "object"}, "defer_loading": True},
            ]
        },
    ),
    "effort": ("effort-2025-11-24", {"output_config": {"effort": "low"}}),
    "caching": (
        "",
        {"system": [{"type": "text", "text": "Be short.", "cache_control": {"type": "ephemeral", "ttl": "1h"}}]},
    ),
    "a field to come": ("one-to-come-2027-01-01", {"one_to_come": {"a": [1]}}),
}
"""What Claude Code asks for by a header, by fields, or by both."""


def scripted(reply: FakeReply, calls: list[Call], model: str = "claude-sonnet-5") -> Scripted:
    """Return a gateway over Anthropic, which answers so."""

    def answer(call: Call) -> FakeReply:
        calls.append(call)
        return reply

    return Scripted("anthropic_messages", answer, models=(model,))


@pytest.mark.parametrize("feature", FEATURES)
def test_a_feature_reaches_anthropic_with_both_of_its_halves(feature: str) -> None:
    beta, fields = FEATURES[feature]
    whole = FakeReply(status=200, headers=JSON, chunks=[REPLIES["anthropic_messages"].whole])
    calls: list[Call] = []
    body = {"model": "claude-sonnet-5", "max_tokens": 3000, "messages": TURNS, **fields}
    headers = {"anthropic-beta": beta} if beta else {}
    assert scripted(whole, calls).post("/v1/messages?beta=true", body, headers).status == 200
    assert json.loads(calls[0].body or b"") == body
    assert calls[0].headers.get("anthropic-beta", "") == beta


@pytest.mark.parametrize("provider", sorted(set(UPSTREAMS) - {"anthropic"}))
@pytest.mark.parametrize("feature", FEATURES)
def test_elsewhere_a_feature_is_translated_or_reported_and_refused_by_nobody(
    running: House, feature: str, provider: str
) -> None:
    beta, fields = FEATURES[feature]
    body = {"model": UPSTREAMS[provider], "max_tokens": 3000, "messages": TURNS, **fields}
    answer = request(running.address, "POST", "/v1/messages?beta=true", body, {"anthropic-beta": beta} if beta else {})
    assert answer.status == 200, answer.text
    lost = answer.headers.get("x-bardo-degraded", "")
    assert ("anthropic-beta" in lost) == bool(beta)
    for name in {"context_management", "one_to_come"} & fields.keys():
        assert name in lost


def test_a_refusal_of_anthropics_keeps_its_words_and_says_whether_and_when_to_try_again() -> None:
    words = "thinking.2: Input tag 'adaptive' found using 'type' does not match any of the expected tags: 'disabled', 'enabled'"
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": words}, "request_id": "req_1"}
    refusal = FakeReply(status=400, headers={**JSON, "x-should-retry": "false"}, chunks=[json.dumps(error).encode()])
    answer = scripted(refusal, []).post(
        "/v1/messages", {"model": "claude-sonnet-5", "max_tokens": 5, "messages": TURNS}
    )
    assert (answer.status, answer.headers["x-should-retry"]) == (400, "false")
    assert (answer.json["error"]["type"], answer.json["error"]["message"]) == ("invalid_request_error", words)
    limits = {"anthropic-ratelimit-unified-status": "rejected", "retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}
    error = {"type": "error", "error": {"type": "rate_limit_error", "message": "weekly limit"}}
    refusal = FakeReply(status=429, headers={**JSON, **limits}, chunks=[json.dumps(error).encode()])
    answer = scripted(refusal, []).post(
        "/v1/messages", {"model": "claude-sonnet-5", "max_tokens": 5, "messages": TURNS}
    )
    assert (answer.status, answer.json["error"]["message"]) == (429, "weekly limit")
    assert answer.headers["anthropic-ratelimit-unified-status"] == "rejected"
    assert answer.headers["retry-after"].isdigit()


@pytest.mark.parametrize("provider", UPSTREAMS)
def test_a_stream_comes_as_its_format_has_it_and_ends_with_its_last_event_or_an_error(provider: str) -> None:
    words = Script((Turn(text="one two three four five six seven eight nine ten " * 4),))
    with house([Simulator(provider, script=words)]) as running:
        model = f"{provider}/{UPSTREAMS[provider]}"
        for fault, last in (("", "message_stop"), ("+fault:early-end=6", "error"), ("+fault:cut=6", "error")):
            body = {"model": model + fault, "max_tokens": 500, "messages": TURNS, "stream": True}
            answer = request(running.address, "POST", "/v1/messages", body)
            assert answer.headers["content-type"].startswith("text/event-stream")
            assert answer.events[-1][0] == last
        body = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 500, "messages": TURNS}
        path = f"/model/{quote(model, safe='')}/invoke-with-response-stream"
        kind = request(running.address, "POST", path, body).headers["content-type"]
        assert kind == "application/vnd.amazon.eventstream"
        path = f"{VERTEX}{quote(model, safe='')}:streamRawPredict"
        assert request(running.address, "POST", path, body).events[-1][0] == "message_stop"
        with closing(bedrock(running.address)) as client:
            name = f"{model}+fault:cut=6"
            stream = client.invoke_model_with_response_stream(modelId=name, body=json.dumps(body))["body"]
            with closing(stream), pytest.raises(exceptions.EventStreamError):
                list(stream)


def test_other_headers_of_the_client_go_nowhere_and_bardos_own_are_heeded(running: House) -> None:
    body = {"model": UPSTREAMS["anthropic"], "max_tokens": 50, "messages": TURNS}
    headers = {"x-org-route": "prod", "x-bardo-include": "receipt"}
    answer = request(running.address, "POST", "/v1/messages", body, headers)
    assert "receipt" in answer.json["bardo"]
    assert not {"x-org-route", "x-bardo-include"} & running.arrived("anthropic")[-1].headers.keys()


def test_a_list_of_models_comes_without_a_redirect_and_without_the_lists_that_are_late() -> None:
    slow = Simulator("vllm", models=["m1"])
    slow.fail(Fault("stall", after=0))
    with house([slow, Simulator("deepseek", models=["m2"])]) as it:
        answer = request(it.address, "GET", "/v1/models?limit=1000", headers=DISCOVERY)
        assert (answer.status, answer.headers["x-bardo-missing-lists"]) == (200, "vllm")
        assert "anthropic/m2" in [one["id"] for one in answer.json["data"]]


LINES = {
    "Messages: `POST /v1/messages?beta=true`": test_the_client_of_messages_is_answered_over_each_dialect,
    "Messages: `POST /v1/messages/count_tokens`": test_the_client_of_messages_is_answered_over_each_dialect,
    "Bedrock: `POST /model/{model}/invoke` and `/invoke-with-response-stream`": test_the_client_of_bedrock_is_answered_over_each_dialect,
    "Bedrock: `POST /model/{model}/count-tokens`": test_aws_clients_count_the_tokens_of_either_body,
    "Bedrock: `GET /inference-profiles` and": test_inference_profiles_are_listed_to_aws_clients_and_can_be_invoked,
    "Vertex AI: `…/publishers/anthropic/models/{model}:rawPredict`": test_the_client_of_vertex_is_answered_over_each_dialect,
    "Vertex AI: `…/models/count-tokens:rawPredict`": test_the_client_of_vertex_is_answered_over_each_dialect,
    "`HEAD /` and `HEAD /api/hello` when it starts": test_a_probe_of_the_connection_is_answered,
    "a cloud's name of a model": test_a_clouds_name_of_claude_finds_the_model_that_is_configured,
    "`Authorization: Bearer …`": test_the_key_comes_in_every_form_that_claude_code_has_for_it,
    "a request signed as AWS's are": test_a_signature_of_awss_is_refused_with_what_to_do_and_beside_a_key_it_says_nothing,
    "`anthropic-version`": test_elsewhere_what_they_asked_for_is_reported_and_the_version_is_no_loss,
    "`anthropic-beta`": test_headers_of_anthropics_are_an_open_list_that_goes_to_anthropic_unchanged,
    "`anthropic_beta` and `anthropic_version`": test_betas_of_a_body_reach_anthropic_as_its_header_beside_those_of_a_header,
    "`anthropic-workspace-id`": test_a_key_in_a_header_of_anthropics_goes_nowhere_and_a_word_for_one_is_no_key,
    "`x-claude-code-*`": test_headers_of_anthropics_are_an_open_list_that_goes_to_anthropic_unchanged,
    "other headers": test_other_headers_of_the_client_go_nowhere_and_bardos_own_are_heeded,
    "features with a header": test_a_feature_reaches_anthropic_with_both_of_its_halves,
    "the same features": test_elsewhere_a_feature_is_translated_or_reported_and_refused_by_nobody,
    "streams": test_a_stream_comes_as_its_format_has_it_and_ends_with_its_last_event_or_an_error,
    "refusals of Anthropic's": test_a_refusal_of_anthropics_keeps_its_words_and_says_whether_and_when_to_try_again,
    "`retry-after`": test_a_refusal_of_anthropics_keeps_its_words_and_says_whether_and_when_to_try_again,
    "the attribution block at the head": test_the_attribution_block_reaches_anthropic_byte_for_byte,
    "the attribution block, to Claude at a cloud": test_a_cloud_of_claude_gets_the_attribution_that_is_the_same_in_all_requests,
    "the attribution block, to any other provider": test_elsewhere_the_attribution_block_changes_no_byte_of_the_prompt,
    "the attribution block, and what bardo keeps": test_a_reply_that_was_kept_is_given_whatever_the_attribution,
    "`GET /v1/models?limit=1000`": test_every_model_has_a_name_that_claude_code_shows_and_that_name_is_answered,
    "the list for other clients": test_the_list_of_models_stays_as_it_is_for_other_clients,
    "pages of the list": test_a_list_of_models_has_pages,
    "the list within 3 seconds": test_a_list_of_models_comes_without_a_redirect_and_without_the_lists_that_are_late,
    "a model chosen from the list": test_every_model_has_a_name_that_claude_code_shows_and_that_name_is_answered,
    "a key with models of its own": test_a_name_for_the_picker_opens_no_model_that_a_key_may_not_ask,
}
"""The test of each line of the contract's table in the documentation, by how the line begins."""


def test_each_line_of_the_table_has_a_test() -> None:
    page = (ROOT / "docs/reference/clients.md").read_text(encoding="utf-8").partition("## Claude Code's contract")[2]
    lines = [line.removeprefix("| ") for line in page.splitlines() if line.startswith("| ")][1:]
    assert len(lines) == len(LINES)
    assert [begin for begin, line in zip(LINES, lines, strict=True) if not line.startswith(begin)] == []
