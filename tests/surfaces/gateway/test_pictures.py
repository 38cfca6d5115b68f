"""Pictures in replies reach clients of other dialects that have a place for them, whole and streamed; elsewhere they are reported."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from surfaces.gateway.cells import whole_and_streamed
from surfaces.gateway.scripted import scripted

DATA = base64.b64encode(b"\x89PNG\r\n\x1a\n a small picture").decode()
URL = f"data:image/png;base64,{DATA}"
CALL = {"type": "image_generation_call", "id": "ig_1", "status": "completed", "output_format": "png", "result": DATA}


def from_gemini(stream: bool) -> Any:
    parts = [{"text": "Here."}, {"inlineData": {"mimeType": "image/png", "data": DATA}}]
    ends: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
    reply: dict[str, Any] = {"candidates": [ends], "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2}}
    return [reply] if stream else reply


def from_openrouter(stream: bool) -> Any:
    message = {"role": "assistant", "content": "Here.", "images": [{"type": "image_url", "image_url": {"url": URL}}]}
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    named: dict[str, Any] = {"id": "gen-1", "model": "google/gemini-2.5-flash-image", "created": 1}
    if not stream:
        return {**named, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}
    chunk: dict[str, Any] = {"choices": [{"index": 0, "delta": message}]}
    end: dict[str, Any] = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage}
    return [named | chunk, named | end, "[DONE]"]


def from_openai(stream: bool) -> Any:
    text = {"type": "output_text", "text": "Here.", "annotations": []}
    said = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]}
    usage = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    whole: dict[str, Any] = {
        "id": "resp_1",
        "object": "response",
        "model": "gpt-5",
        "status": "completed",
        "output": [said, CALL],
    }
    whole |= {"usage": usage}
    if not stream:
        return whole
    items = [
        {"type": f"response.output_item.{word}", "output_index": place, "item": item}
        for place, item in enumerate((said, CALL))
        for word in ("added", "done")
    ]
    begun = {"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}}
    return [begun, *items, {"type": "response.completed", "response": whole}]


PROVIDERS = {
    "gemini/gemini-2.5-flash-image": from_gemini,
    "openrouter/google/gemini-2.5-flash-image": from_openrouter,
    "openai-responses/gpt-5": from_openai,
}
PRESETS = {"gemini": "gemini", "openrouter": "openrouter", "openai-responses": "openai"}


def asked(client: str, model: str, stream: bool) -> tuple[str, dict[str, Any]]:
    question = {"role": "user", "content": "Draw."}
    match client:
        case "chat":
            return "/v1/chat/completions", {"model": model, "messages": [question], "stream": stream}
        case "responses":
            return "/v1/responses", {"model": model, "input": "Draw.", "stream": stream}
        case "messages":
            return "/v1/messages", {"model": model, "max_tokens": 99, "messages": [question], "stream": stream}
        case _:
            method = "streamGenerateContent?alt=sse" if stream else "generateContent"
            return f"/v1beta/models/{model}:{method}", {"contents": [{"role": "user", "parts": [{"text": "Draw."}]}]}


def frames_of(body: bytes, stream: bool) -> list[Any]:
    if not stream:
        return [json.loads(body)]
    lines = [line.removeprefix("data: ") for line in body.decode().splitlines() if line.startswith("data: {")]
    return list(map(json.loads, lines))


def pictures_in(client: str, frames: list[Any], stream: bool) -> list[str]:
    """Return the data of the pictures where an SDK of the client's dialect, or its users, look for them."""
    found: list[str] = []
    for frame in frames:
        match client:
            case "chat":
                for choice in frame.get("choices", ()):
                    listed = choice["delta" if stream else "message"].get("images") or ()
                    found += [one["image_url"]["url"].removeprefix("data:image/png;base64,") for one in listed]
            case "responses":
                items = [frame["item"]] if frame.get("type") == "response.output_item.done" else frame.get("output", ())
                found += [item["result"] for item in items if item["type"] == "image_generation_call"]
            case _:
                parts = [
                    part for one in frame.get("candidates", ()) for part in one.get("content", {}).get("parts", ())
                ]
                found += [part["inlineData"]["data"] for part in parts if "inlineData" in part]
    return found


@whole_and_streamed
@pytest.mark.parametrize("model", PROVIDERS)
@pytest.mark.parametrize("client", ["chat", "responses", "gemini"])
def test_a_picture_in_a_reply_reaches_the_client(client: str, model: str, stream: bool) -> None:
    preset = model.partition("/")[0]
    with scripted([PRESETS[preset]]) as played:
        played.replies = [PROVIDERS[model](stream)]
        path, body = asked(client, model.replace(preset, PRESETS[preset], 1), stream)
        headers, answer = played.post(path, body)
    frames = frames_of(answer, stream)
    assert pictures_in(client, frames, stream) == [DATA]
    assert not {"message.images", "content.inlineData"} & set(headers.get("x-bardo-degraded", "").split(", "))


@pytest.mark.parametrize("model", PROVIDERS)
def test_a_client_without_a_place_for_pictures_is_told(model: str) -> None:
    preset = model.partition("/")[0]
    with scripted([PRESETS[preset]]) as played:
        played.replies = [PROVIDERS[model](False)]
        path, body = asked("messages", model.replace(preset, PRESETS[preset], 1), False)
        headers, answer = played.post(path, body)
    assert DATA not in answer.decode()
    lost = {"message.images", "content.inlineData", "content.image_generation_call"}
    assert lost & set(headers["x-bardo-degraded"].split(", "))
