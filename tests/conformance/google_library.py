"""Google's library, generateContent. It has no accumulator: its users join the parts of all chunks."""

from __future__ import annotations

from functools import cache
from typing import Any

from google import genai
from google.genai import types

from bardo.values.events import FinishReason
from conformance.heard import Counts, Heard, answer, http, plain

_GEMINI_FINISHES: dict[str, FinishReason] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "refusal",
    "PROHIBITED_CONTENT": "refusal",
}


@cache
def _gemini() -> genai.Client:
    options = types.HttpOptions(base_url="http://bardo.test", httpx_client=http())
    return genai.Client(api_key="k", vertexai=False, http_options=options)


def gemini(body: bytes, *, stream: bool, status: int = 200) -> Heard:
    """generateContent. The library has no accumulator: its users join the parts of all chunks."""
    answer(body, stream=stream, status=status)
    asked: Any = {"model": "m", "contents": "hi"}
    if not stream:
        return _chunks([_gemini().models.generate_content(**asked)])
    return _chunks(list(_gemini().models.generate_content_stream(**asked)))


def _chunks(chunks: list[Any]) -> Heard:
    candidates = [chunk.candidates[0] for chunk in chunks if chunk.candidates]
    parts = [part for one in candidates if one.content for part in one.content.parts or ()]
    calls = [part.function_call for part in parts if part.function_call]
    finishes = [one.finish_reason.value for one in candidates if one.finish_reason]
    usages = [chunk.usage_metadata for chunk in chunks if chunk.usage_metadata]
    return Heard(
        text="".join(part.text for part in parts if part.text and not part.thought),
        refusal="",
        thinking="".join(part.text for part in parts if part.text and part.thought),
        calls=[(call.id or "", call.name, call.args) for call in calls],
        finish=_gemini_finish(finishes[-1], called=bool(calls)),
        counts=_gemini_counts(usages[-1]) if usages else Counts(),
        id=chunks[-1].response_id or "",
        model=chunks[-1].model_version or "",
        turn=lambda: {"contents": [{"role": "model", "parts": _joined(candidates)}]},
    )


def _joined(candidates: list[Any]) -> list[dict[str, Any]]:
    """Return the parts as a client keeps them: text or a thought that begins a chunk continues that of the chunk before."""
    joined: list[dict[str, Any]] = []
    for one in candidates:
        for place, part in enumerate((one.content.parts or ()) if one.content else ()):
            sent = plain(part, by_alias=True)
            if not place and joined and joined[-1].keys() == sent.keys() <= {"text", "thought"}:
                joined[-1] = {**sent, "text": joined[-1]["text"] + sent["text"]}
            elif sent != {"text": ""}:
                joined.append(sent)
    return joined


def _gemini_finish(word: str, *, called: bool) -> FinishReason:
    reason = _GEMINI_FINISHES.get(word, "unknown")
    return "tool_calls" if reason == "stop" and called else reason


def _gemini_counts(usage: Any) -> Counts:
    answer, thoughts = usage.candidates_token_count, usage.thoughts_token_count
    prompt, tool = usage.prompt_token_count, usage.tool_use_prompt_token_count
    # A count of 0 is left out, and the total with it where the output is not known.
    known = answer is not None or usage.total_token_count is not None
    return Counts(
        input=None if prompt is None else prompt + (tool or 0),
        output=(answer or 0) + (thoughts or 0) if known else None,
        reasoning=thoughts,
        cached=usage.cached_content_token_count,
    )
