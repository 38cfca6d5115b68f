"""A name that cannot be a model's is refused, in every dialect and in the library, before anybody is asked."""

from __future__ import annotations

from urllib.parse import quote

import pytest

import bardo
from bardo.planning.route import MAX_MODEL_NAME
from bardo.values.errors import InvalidRequest
from support.gateway import House
from support.talk import ALL_CLIENTS, ask, body_for, path_for, request
from surfaces.gateway.cells import whole_and_streamed
from surfaces.gateway.refusals import refusal

NAMES = {
    "too long": "deepseek/" + "m" * MAX_MODEL_NAME,
    "16 kB": "deepseek/" + "a-" * 8_000,
    "line break": "deepseek/m1\nx",
    "escape": "deepseek/\x1b[31mm1",
    "nul": "deepseek/m\x00",
    "tab": "deepseek/m\t1",
    "delete": "deepseek/m\x7f",
    "C1": "deepseek/m\x85",
    "right to left": "deepseek/\u202em1",
}
each_name = pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)


@pytest.mark.parametrize("client", ALL_CLIENTS)
@each_name
@whole_and_streamed
def test_a_name_that_is_none_is_refused(town: House, client: str, name: str, stream: bool) -> None:
    before = len(town.arrived("deepseek"))
    path = path_for(client, quote(name, safe="/"), stream=stream)
    answer = request(town.address, "POST", path, body_for(client, name, stream=stream))
    assert answer.status == 400
    assert "model name" in refusal(client, answer)
    assert len(answer.body) < 1_000
    assert len(town.arrived("deepseek")) == before


@pytest.mark.parametrize("client", ALL_CLIENTS)
def test_the_longest_name_is_taken(town: House, client: str) -> None:
    answer = ask(town.address, client, "deepseek/" + "m" * (MAX_MODEL_NAME - len("deepseek/")))
    assert answer.status == 200


@each_name
def test_the_library_refuses_it_too(name: str) -> None:
    with bardo.Client() as client, pytest.raises(InvalidRequest, match="model name"):
        client.respond("x", model=name)


@pytest.mark.parametrize("name", ["a%2Fb", "50%", "a%25b"])
def test_a_name_in_a_path_is_decoded_once(town: House, name: str) -> None:
    asked = quote(f"deepseek/{name}", safe="")
    for client, path in (
        ("gemini", f"/v1beta/models/{asked}:generateContent"),
        ("bedrock_converse", f"/model/{asked}/converse"),
    ):
        assert request(town.address, "POST", path, body_for(client, f"deepseek/{name}")).status == 200
        assert town.last("deepseek")["model"] == name
