"""The lines of a file of requests, as OpenAI's clients write them: each is a request, or has one problem that is named."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bardo.dialects.batches.clients import BatchLine, LineProblem, read_line

CHAT = "/v1/chat/completions"


def line(**fields: Any) -> bytes:
    return json.dumps({"custom_id": "a", "method": "POST", "url": CHAT, "body": {"model": "m"}, **fields}).encode()


def test_a_request_keeps_its_id_and_its_body_as_it_was_written() -> None:
    written = b'{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body": { "model" :"m","n":1.50 }}'
    seen = {"b"}
    assert read_line(written, 1, endpoint=CHAT, seen_ids=seen) == BatchLine("a", b'{ "model" :"m","n":1.50 }')
    assert seen == {"a", "b"}


@pytest.mark.parametrize(
    ("written", "code", "param"),
    [
        (b'{"custom_id":', "invalid_json_line", None),
        (b"[]", "invalid_json_line", None),
        (b'{"custom_id": "\xff"}', "invalid_json_line", None),
        (line(custom_id=""), "missing_required_parameter", "custom_id"),
        (line(custom_id=7), "missing_required_parameter", "custom_id"),
        (line(custom_id="a" * 513), "invalid_custom_id", "custom_id"),
        (line(custom_id="b"), "duplicate_custom_id", "custom_id"),
        (line(method="GET"), "invalid_method", "method"),
        (line(url="/v1/responses"), "mismatched_url", "url"),
        (line(body=[]), "invalid_request", "body"),
        (line(body=None), "invalid_request", "body"),
    ],
)
def test_a_line_that_is_no_request_has_a_problem_and_takes_no_id(written: bytes, code: str, param: str | None) -> None:
    seen = {"b"}
    problem = read_line(written, 3, endpoint=CHAT, seen_ids=seen)
    assert isinstance(problem, LineProblem)
    assert (problem.code, problem.param, problem.line) == (code, param, 3)
    assert seen == {"b"}


def test_an_id_has_up_to_512_characters() -> None:
    assert isinstance(read_line(line(custom_id="a" * 512), 1, endpoint=CHAT, seen_ids=set()), BatchLine)
