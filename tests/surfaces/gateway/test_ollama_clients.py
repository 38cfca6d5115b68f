"""Ollama's own library finds in bardo what it finds in Ollama: models, what they can do, completions, and a server that is there."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest

from support.any_model import Simulator
from support.gateway import House, house, model_of
from support.keyed_gateway import KeyedGateway, keyed_gateway
from support.talk import QUESTION, THOUGHT, request
from surfaces.gateway.cells import whole_and_streamed

PICTURE = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(32)).decode()
NOBODY = "nobody-has-this"


@pytest.fixture(scope="module")
def lab() -> Iterator[House]:
    names = ("anthropic", "deepseek", "ollama_native", "watsonx")
    with house([Simulator(name) for name in names]) as running:
        yield running


@pytest.fixture(scope="module")
def client(lab: House) -> Iterator[Any]:
    import ollama

    with ollama.Client(lab.address) as client:
        yield client


def test_the_server_is_there(lab: House) -> None:
    for method in ("GET", "HEAD"):
        answer = request(lab.address, method, "/")
        assert (answer.status, answer.headers["content-type"]) == (200, "text/plain; charset=utf-8")
    version = request(lab.address, "GET", "/api/version").json["version"]
    assert all(part.isdigit() for part in version.split("."))


def test_models_are_listed_by_the_names_to_ask_with(lab: House, client: Any) -> None:
    listed = client.list().models
    names = [row["id"] for row in request(lab.address, "GET", "/v1/models").json["data"]]
    assert [model.model for model in listed] == names
    assert len({model.digest for model in listed}) == len(listed)
    assert client.ps().models == []


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("anthropic/claude-sonnet-4-5", ["completion", "vision", "tools", "thinking", "insert"]),
        ("anthropic/claude-3-haiku-20240307", ["completion", "vision", "tools", "insert"]),
        ("watsonx/m1", ["completion", "insert"]),
        ("bardo/cheap", ["completion", "tools", "thinking", "insert"]),
    ],
)
def test_a_model_shows_what_it_can_do(client: Any, model: str, expected: list[str]) -> None:
    shown = client.show(model)
    assert shown.capabilities == expected
    assert shown.modelinfo["general.basename"] == model


def test_a_model_that_nobody_has_is_an_error(client: Any) -> None:
    import ollama

    for ask in (
        lambda: client.show(NOBODY),
        lambda: client.generate(NOBODY, "Hello."),
        lambda: client.generate(NOBODY),
        lambda: list(client.chat(NOBODY, stream=True)),
    ):
        with pytest.raises(ollama.ResponseError) as caught:
            ask()
        assert caught.value.status_code == 404
        assert NOBODY in caught.value.error


def completed(client: Any, stream: bool, **asked: Any) -> Any:
    """Return a completion, that of a stream with its pieces joined."""
    if not stream:
        return client.generate(**asked)
    lines = list(client.generate(**asked, stream=True))
    assert [line.done for line in lines] == [False] * (len(lines) - 1) + [True]
    last = lines[-1]
    last.response = "".join(line.response for line in lines)
    last.thinking = "".join(line.thinking or "" for line in lines)
    return last


@whole_and_streamed
@pytest.mark.parametrize("provider", ["anthropic", "deepseek", "ollama_native"])
def test_a_prompt_is_completed(lab: House, client: Any, provider: str, stream: bool) -> None:
    found = completed(client, stream, model=model_of(provider), prompt=QUESTION, system="Be brief.", think="low")
    assert found.response.strip() == "1161"
    assert THOUGHT in found.thinking
    assert found.done_reason == "stop"
    assert found.eval_count
    assert b"Be brief." in lab.arrived(provider)[-1].raw


def test_thinking_can_be_turned_off(client: Any) -> None:
    assert not client.generate("anthropic/claude-sonnet-4-5", QUESTION, think=False).thinking


def test_pictures_and_formats_go_along(lab: House, client: Any) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    client.chat("anthropic/claude-sonnet-4-5", [{"role": "user", "content": "Look.", "images": [PICTURE]}])
    assert PICTURE.encode() in lab.arrived("anthropic")[-1].raw
    client.generate("ollama_native/m1", "Look.", images=[PICTURE], format=schema, keep_alive="5m", think=False)
    sent = lab.last("ollama_native")
    assert (sent["messages"][0]["images"], sent["keep_alive"]) == ([PICTURE], "5m")
    assert sent["format"]["properties"] == schema["properties"]


@whole_and_streamed
@pytest.mark.parametrize("provider", ["anthropic", "ollama_native"])
def test_a_request_without_a_question_loads_a_model(lab: House, client: Any, provider: str, stream: bool) -> None:
    before = len(lab.arrived(provider))
    model = model_of(provider)
    assert completed(client, stream, model=model).done_reason == "load"
    assert completed(client, stream, model=model, keep_alive=0).done_reason == "unload"
    last = client.chat(model) if not stream else list(client.chat(model, stream=True))[-1]
    assert (last.done, last.done_reason) == (True, "load")
    # Only an Ollama server has models to load.
    assert len(lab.arrived(provider)) - before == (3 if provider == "ollama_native" else 0)


def test_every_listed_model_shows_what_it_can_do(client: Any) -> None:
    for model in client.list().models:
        assert client.show(model.model).capabilities, model.model


@whole_and_streamed
def test_a_workload_is_loaded_as_a_model_is(client: Any, stream: bool) -> None:
    assert completed(client, stream, model="bardo/cheap").done_reason == "load"


def test_what_is_not_loaded_is_told(lab: House) -> None:
    answer = request(lab.address, "POST", "/api/generate", {"model": "anthropic/claude-sonnet-4-5"})
    assert answer.headers["x-bardo-degraded"] == "load"


def test_a_name_with_the_tag_that_clients_add_is_found(client: Any) -> None:
    assert client.chat("deepseek/m1:latest", [{"role": "user", "content": QUESTION}]).message.content == "1161"


@whole_and_streamed
def test_a_gap_is_filled_by_a_chat(lab: House, client: Any, stream: bool) -> None:
    found = completed(client, stream, model=model_of("anthropic"), prompt="def f():\n", suffix="\nprint(f())")
    assert found.done_reason == "stop"
    sent = lab.arrived("anthropic")[-1].raw
    assert b"<prefix>def f():" in sent
    assert b"<suffix>\\nprint(f())</suffix>" in sent
    answer = request(
        lab.address, "POST", "/api/generate", {"model": "deepseek/m1", "prompt": "a", "suffix": "b", "stream": False}
    )
    assert "suffix" in answer.headers["x-bardo-degraded"]


@pytest.mark.parametrize("model", ["anthropic/claude-sonnet-4-5", "deepseek/m1", "bardo/cheap"])
def test_what_is_shown_has_texts_where_kotlin_and_rust_read_texts(lab: House, model: str) -> None:
    shown = request(lab.address, "POST", "/api/show", {"name": model}).json
    texts = {name: shown["details"][name] for name in ("format", "family", "parameter_size", "quantization_level")}
    assert {type(text) for text in texts.values()} == {str}
    listed = request(lab.address, "GET", "/api/tags").json["models"]
    assert all(isinstance(one["details"]["family"], str) for one in listed)


def test_a_model_that_sees_says_so_to_lm_studios_clients(lab: House) -> None:
    listed = request(lab.address, "GET", "/api/v0/models").json["data"]
    seeing = [one for one in listed if one["type"] == "vlm"]
    assert seeing
    assert all("vision" in one["capabilities"] for one in seeing)
    assert not any("vision" in one["capabilities"] for one in listed if one["type"] != "vlm")


def test_a_gap_as_zed_asks_for_one_is_filled(lab: House) -> None:
    body = {
        "model": model_of("anthropic"),
        "prompt": "<fim_prefix>def f():\n<fim_suffix>\nprint(f())<fim_middle>",
        "raw": True,
        "stream": False,
        "options": {"num_predict": 64, "temperature": 0.2, "stop": ["<fim_prefix>", "<PRE>"]},
    }
    answer = request(lab.address, "POST", "/api/generate", body)
    assert answer.status == 200, answer.body
    assert answer.json["response"]
    assert b"<prefix>def f():" in lab.arrived("anthropic")[-1].raw
    assert "suffix" in answer.headers["x-bardo-degraded"]


KEYED = """
[aliases]
swift = "deepseek/m1"

[[models]]
provider = "deepseek"
match = ["*"]
context = 65536

[[keys]]
id = "of-the-file"
key_env = "TEAM_KEY"
models = ["swift", "deepseek/m1"]
"""


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedGateway]:
    simulators = [Simulator("deepseek"), Simulator("ollama_native")]
    folder = tmp_path_factory.mktemp("keyed")
    with keyed_gateway(folder, simulators, toml=KEYED, variables={"TEAM_KEY": "the-team"}) as running:
        yield running


def test_ollamas_library_finds_all_of_it_with_a_key(keyed: KeyedGateway) -> None:
    import ollama

    with ollama.Client(keyed.address, headers={"authorization": f"Bearer {keyed.key()}"}) as client:
        assert client.list().models
        shown = client.show("deepseek/m1")
        architecture = shown.modelinfo["general.architecture"]
        assert shown.modelinfo[f"{architecture}.context_length"] == 65536
        # Continue reads the parameter, and whether the template has a place for a suffix.
        assert shown.parameters == "num_ctx 65536"
        assert ".Suffix" in shown.template
        assert client.ps().models == []
        assert client.chat("deepseek/m1", [{"role": "user", "content": QUESTION}]).message.content
        assert client.generate("deepseek/m1", "a", suffix="b").response
        assert client.embed("ollama_native/m1", "hi").embeddings
    with ollama.Client(keyed.address, headers={"authorization": "Bearer wrong"}) as client:
        for ask in (client.list, client.ps, lambda: client.show("deepseek/m1")):
            with pytest.raises(ollama.ResponseError) as caught:
                ask()
            assert caught.value.status_code == 401


def test_lm_studios_list_has_what_the_key_may_ask_and_the_length_of_its_context(keyed: KeyedGateway) -> None:
    def read(path: str, key: str) -> Any:
        return request(keyed.address, "GET", path, headers={"authorization": f"Bearer {key}"})

    listed = read("/api/v0/models", keyed.key()).json
    assert listed["object"] == "list"
    assert {one["object"] for one in listed["data"]} == {"model"}
    own = read("/api/v0/models", "the-team").json["data"]
    assert own == [one for one in listed["data"] if one["id"] == "swift"]
    assert own
    name = listed["data"][0]["id"]
    one = read(f"/api/v0/models/{name}", keyed.key()).json
    assert (one["id"], one["type"], one["state"], one["max_context_length"]) == (name, "llm", "loaded", 65536)
    assert one["capabilities"] == ["tool_use"]
    # Zed refuses a list in which one of these is anything else.
    assert {(one["compatibility_type"], type(one["publisher"]), one["state"]) for one in listed["data"]} == {
        ("gguf", str, "loaded")
    }
    missing = read("/api/v0/models/nobody/has-this", keyed.key())
    assert missing.status == 404
    assert missing.json["error"]["code"] == "unknown_model"
    assert read("/api/v0/models", "wrong").status == 401
    body = {"model": "deepseek/m1", "messages": [{"role": "user", "content": QUESTION}]}
    told = request(
        keyed.address, "POST", "/api/v0/chat/completions", body, headers={"authorization": "Bearer the-team"}
    )
    assert told.json["choices"][0]["message"]["content"]
