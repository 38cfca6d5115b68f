"""Which models there are, and one of them: in the shape of each client's library, with that library's error for one there is not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import cohere
import httpx
import pytest

from bardo.routing.workloads import builtin_workloads
from support.any_model import Simulator
from support.gateway import House, house
from support.sdk import anthropic_client, gemini_client, openai_client
from support.talk import request

ROUTES = {f"bardo/{name}" for name in builtin_workloads().names}
NAMES = ["m1", "org/m2", "deep/er/m3:latest", "gemini-embedding-001"]
ABSENT = ("nobody/has-this", "m9", "vllm/m9")


@pytest.fixture(scope="module")
def running() -> Iterator[House]:
    with house([Simulator("vllm", models=NAMES[:3]), Simulator("gemini", models=["gemini-embedding-001", "m1"])]) as it:
        yield it


@pytest.mark.parametrize("name", [*NAMES, "gemini/m1", "vllm/org/m2"])
def test_each_library_finds_a_model_by_its_id(running: House, name: str) -> None:
    with closing(openai_client(running.address)) as client:
        found = client.models.retrieve(name)
        assert (found.id, found.object) == (name, "model")
        assert found.owned_by in ("vllm", "gemini")
    with closing(anthropic_client(running.address)) as client:
        model = client.models.retrieve(name)
        assert (model.id, model.type, model.display_name) == (name, "model", name)
        assert model.created_at.year == 1970
    with closing(gemini_client(running.address)) as google:
        assert google.models.get(model=name).name == f"models/{name}"


def test_each_library_lists_the_same_models(running: House) -> None:
    wanted = {*NAMES, "gemini/m1", *ROUTES}
    with closing(openai_client(running.address)) as client:
        assert {model.id for model in client.models.list()} == wanted
    with closing(anthropic_client(running.address)) as client:
        listed = {model.id for model in client.models.list()}
        # Claude Code shows names that begin so alone; what makes vectors is nothing to it.
        assert listed == {*wanted, *(f"anthropic/{name}" for name in wanted - {"gemini-embedding-001"})}
    with closing(gemini_client(running.address)) as google:
        assert {str(model.name).removeprefix("models/") for model in google.models.list()} == wanted


def test_coheres_library_lists_them_too(running: House) -> None:
    with httpx.Client() as connections:
        client = cohere.ClientV2(api_key="key", base_url=running.address, httpx_client=connections)
        listed = {model.name: model.endpoints for model in client.models.list().models}
        assert listed.keys() == {*NAMES, "gemini/m1", *ROUTES}
        assert listed["gemini-embedding-001"] == ["embed"]
        assert "chat" in (client.models.get("org/m2").endpoints or [])


def test_google_is_told_what_a_model_is_for(running: House) -> None:
    with closing(gemini_client(running.address)) as google:
        vectors = google.models.get(model="gemini-embedding-001")
        assert vectors.supported_actions == ["embedContent", "batchEmbedContents"]
        assert "generateContent" in (google.models.get(model="gemini/m1").supported_actions or [])


@pytest.mark.parametrize("name", ABSENT)
def test_each_library_raises_its_own_error_for_a_model_there_is_not(running: House, name: str) -> None:
    import anthropic
    import openai
    from google.genai import errors

    with closing(openai_client(running.address)) as client, pytest.raises(openai.NotFoundError) as of_openai:
        client.models.retrieve(name)
    assert of_openai.value.type == "invalid_request_error"
    with closing(anthropic_client(running.address)) as client, pytest.raises(anthropic.NotFoundError) as of_anthropic:
        client.models.retrieve(name)
    assert of_anthropic.value.body["error"]["type"] == "not_found_error"  # type: ignore[index]
    with closing(gemini_client(running.address)) as google, pytest.raises(errors.ClientError) as of_google:
        google.models.get(model=name)
    assert (of_google.value.code, of_google.value.status) == (404, "NOT_FOUND")


def test_a_model_is_only_read(running: House) -> None:
    assert request(running.address, "HEAD", "/v1/models/m1").status == 200
    for path in ("/v1/models/m1", "/v1/models/org/m2:free", "/v1beta/models/m1"):
        refused = request(running.address, "DELETE", path)
        assert (refused.status, refused.headers["allow"]) == (405, "GET, HEAD")
    assert request(running.address, "POST", "/v1beta/models/m1:unheardOf").status == 404
    assert request(running.address, "GET", "/models/org/m2").json["id"] == "org/m2"
    assert request(running.address, "GET", "/models/org%2Fm2").json["id"] == "org/m2"


def test_a_provider_that_lists_nothing_serves_what_its_row_says() -> None:
    with house([Simulator("bedrock")]) as alone:
        name = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
        assert request(alone.address, "GET", f"/v1/models/{name}").json["id"] == name
        assert request(alone.address, "GET", "/v1/models/gpt-5").status == 404


def test_a_failing_provider_hides_no_model_of_another() -> None:
    first, second = Simulator("vllm", models=["m1"]), Simulator("sglang", models=["m2"])
    from bardo.simulators.faults import Fault

    first.fail(Fault(kind="status", status=500))
    with house([first, second]) as running:
        listed: Any = request(running.address, "GET", "/v1/models").json
        assert [model["id"] for model in listed["data"] if "bardo" not in model] == ["m2"]


def test_every_model_of_the_list_is_found_by_its_name() -> None:
    table = (
        '[aliases]\nsmall = "vllm/m1"\nunlisted = "vllm/m9"\nfar = { model = "deepseek/deepseek-chat", effort = "high" }\n'
        'chain = "unlisted"\n"claude-*" = "vllm/m1"\n[workloads.mine]\nmodel = "vllm/m1"'
    )
    with house([Simulator("vllm", models=["m1", "m2"]), Simulator("deepseek", models=["m2"])], toml=table) as running:
        listed = {one["id"]: one for one in request(running.address, "GET", "/v1/models").json["data"]}
        assert {"small", "unlisted", "far", "chain", "m1", "m2", "deepseek/m2", "bardo/mine"} <= listed.keys()
        for name, shown in listed.items():
            found = request(running.address, "GET", f"/v1/models/{name}")
            assert (found.status, found.json) == (200, shown), name
        # A name that only the operator's pattern gives a meaning stands in no list, and is found.
        assert request(running.address, "GET", "/v1/models/claude-sonnet-5").status == 200
        assert request(running.address, "GET", "/v1/models/vllm/m9").status == 404


def test_aliases_and_workloads_are_marked_as_routes() -> None:
    table = (
        '[aliases]\nsmall = "vllm/m1"\nwork = "bardo/mine"\n[workloads.mine]\nabout = "what I do"\nmodel = "vllm/m1"'
    )
    with house([Simulator("vllm", models=["m1"])], toml=table) as running:
        listed = {one["id"]: one for one in request(running.address, "GET", "/v1/models").json["data"]}
        assert "bardo" not in listed["m1"]
        assert listed["small"]["bardo"] == {"route": "alias"}
        assert listed["bardo/mine"]["bardo"] == listed["work"]["bardo"] == {"route": "workload", "about": "what I do"}
        assert listed["bardo/cheap"]["owned_by"] == "bardo"
        one = request(running.address, "GET", "/v1/models/bardo/mine").json
        assert one["bardo"]["route"] == "workload"
        with closing(gemini_client(running.address)) as google:
            found = google.models.get(model="bardo/mine")
            assert (found.name, found.description) == ("models/bardo/mine", "what I do")
        with closing(anthropic_client(running.address)) as client:
            assert client.models.retrieve("bardo/mine").id == "bardo/mine"
        unknown = request(running.address, "GET", "/v1/models/bardo/mien")
        assert unknown.status == 404
        assert "did you mean bardo/mine" in unknown.text
