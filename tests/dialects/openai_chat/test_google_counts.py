"""A gateway that hands on Google's own counts beside its sums: what the output includes is what Google says."""

from __future__ import annotations

import json
from typing import Any

import pytest

import bardo

GOOGLE = {"promptTokenCount": 5, "candidatesTokenCount": 2, "thoughtsTokenCount": 25, "totalTokenCount": 32}


def usage(completion: int, *, total: int | None = 7, reasoning: int = 25) -> dict[str, Any]:
    counts = {"prompt_tokens": 5, "completion_tokens": completion, "total_tokens": total}
    return {**counts, "completion_tokens_details": {"reasoning_tokens": reasoning}}


def counted(frames: list[dict[str, Any]] | dict[str, Any], provider: str = "vercel") -> tuple[int | None, int | None]:
    if isinstance(frames, dict):
        response = bardo.decode(json.dumps(frames).encode(), provider=provider)
    else:
        body = "".join(f"data: {json.dumps(frame)}\n\n" for frame in frames) + "data: [DONE]\n\n"
        response = bardo.decode(body.encode(), provider=provider, streamed=True)
    assert response.degraded == ()
    return response.usage.output_tokens, response.usage.reasoning_tokens


def metadata(counts: dict[str, Any], owner: str = "google") -> dict[str, Any]:
    return {"provider_metadata": {owner: {"usageMetadata": counts}}}


@pytest.mark.parametrize("owner", ["google", "vertex"])
@pytest.mark.parametrize(
    ("completion", "total", "google", "expected"),
    [
        (2, 7, GOOGLE, (27, 25)),
        (2, 32, GOOGLE, (27, 25)),
        (2, None, GOOGLE, (27, 25)),
        (27, 32, GOOGLE, (27, 25)),
        (30, 35, {**GOOGLE, "candidatesTokenCount": 30}, (55, 25)),
    ],
    ids=["sums without thoughts", "sums with thoughts", "no total", "included", "fewer thoughts than answer"],
)
def test_googles_counts_say_whether_the_output_includes_thoughts(
    owner: str, completion: int, total: int | None, google: dict[str, Any], expected: tuple[int, int]
) -> None:
    told = usage(completion, total=total)
    message = {"role": "assistant", "content": "Hi.", **metadata(google, owner)}
    whole = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": told}
    assert counted(whole) == expected
    text = {"choices": [{"index": 0, "delta": {"content": "Hi."}}]}
    end = {"choices": [{"index": 0, "delta": metadata(google, owner), "finish_reason": "stop"}]}
    counts = {"choices": [], "usage": told}
    assert counted([text, {**end, "usage": told}]) == expected, "in one frame"
    assert counted([text, end, counts]) == expected, "before the usage"
    assert counted([text, {**end, **counts, "choices": end["choices"]}]) == expected


def test_more_thoughts_than_output_stand_beside_it_where_no_total_says_otherwise() -> None:
    message = {"role": "assistant", "content": "Hi."}
    whole = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage(2, total=None)}
    assert counted(whole) == counted(whole, "openrouter") == (27, 25)
