"""Refusals of a prompt that is longer than the model's context, in the words of each provider and each dialect.

Agents shorten their conversation when they read their own API's words for it, so that an error of another dialect says it in those.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from bardo.values.once import pattern

_CODES = frozenset(
    {
        "context_length_exceeded",  # OpenAI and those who speak its dialects
        "exceed_context_size_error",  # llama.cpp
        "model_context_window_exceeded",  # Anthropic
        "model_max_prompt_tokens_exceeded",  # GitHub's models
        "1261",  # Z.ai
    }
)
# As users of each server report them in public, 2026-11.
_WORDS = pattern(
    r"prompt is too long|prompt too long"  # Anthropic, Vertex, Fireworks; Ollama
    r"|exceed(?:s|ed)? (?:the |max |the model'?s |model'?s )?(?:maximum |max )?context[ _](?:limit|window|length)"
    r"|exceeds the available context size"  # llama.cpp
    r"|context[ _](?:length|window|size|limit)[ _](?:has been |is )?exceed(?:ed|s)"  # LM Studio, MiniMax, proxies
    r"|(?:maximum|max) (?:context|prompt|model|(?:allowed )?input) length"  # OpenAI, vLLM, Mistral, xAI, OpenRouter, SGLang
    r"|context (?:length|size) (?:is|of) only|(?:longer|greater) than the (?:model'?s )?(?:maximum )?context"  # vLLM, LM Studio; SGLang
    r"|configured context size"  # DS4
    r"|input token count .{0,40}(?:exceeds the maximum number of tokens|model only supports up to)"  # Gemini, Vertex
    r"|input is too long|too many input tokens|input tokens exceed"  # Bedrock: Claude, Llama, Nova; OpenAI
    r"|reduce the length of the (?:messages|prompt|input)"  # Groq, Cerebras
    r"|too many tokens|exceeded (?:the )?model (?:token|context) limit|prompt exceeds max length"  # Cohere, Moonshot, Groq, Z.ai
    r"|token count of \d+ exceeds the limit|token limit exceeded"  # GitHub's models
    r"|must be less than max_seq_len|range of input length should be"  # SiliconFlow, Alibaba
    r"|input length .{0,12}exceeds the max"  # Volcengine
    r"|exceed max message tokens|input tokens .{0,12}cannot exceed the total tokens"  # Volcengine, watsonx
    r"|`inputs` (?:tokens \+ `max_new_tokens` must be|must have less than)",  # text-generation-inference, Together
    re.IGNORECASE,
)
_ABOUT_A_RATE = pattern(
    r"rate.?limit|throttl|quota|please wait|per (?:minute|day|hour|second)|\b[RT]P[MD]\b", re.IGNORECASE
)
"""Bedrock says "Too many tokens, please wait before trying again" of a rate."""
_NUMBER = pattern(r"(?<![\w.-])\d{3,9}(?![\w.-]*[a-zA-Z])")
_LIMIT = pattern(
    r"\d > (\d{1,12})|(\d{1,12}) maximum|length(?: is|:| of| is only)? \(?(\d{1,12})"
    r"|tokens allowed \(?(\d{1,12})|context size(?: is)? \(?(\d{1,12})"
    r"|limit(?: is| of|:)? (\d{1,12})|cannot exceed (\d{1,12})|window of (\d{1,12})|supports up to (\d{1,12})|max_seq_len \((\d{1,12})"
    r"|must be <= (\d{1,12})|less than (\d{1,12}) tokens|length should be \[\d{1,12}, (\d{1,12})|max input tokens: (\d{1,12})",
    re.IGNORECASE,
)
_PROMPT = pattern(r"(\d{1,12}) (?:in the messages|of text input|input tokens|tokens from the input|`inputs` tokens)")
_OUTPUT = pattern(
    r"(\d{1,12}) (?:in the (?:completion|output)|output tokens|tokens for the completion|`max_new_tokens`)"
)
_SUM = pattern(r"(\d{1,12}) \+ (\d{1,12}) > \d")
_DIFFERENCE = pattern(r"(\d{1,12}) > (\d{1,12}) - (\d{1,12})")
"""vLLM of an output limit that leaves no room: output, context, prompt."""
_LOOKED_AT = 2000
"""Characters of a message that are looked at."""


class Overflow(NamedTuple):
    """How long prompt and output limit were together and how long they may be, in tokens; 0 where the refusal did not say.

    `output` is the output limit that was counted in, 0 where the prompt alone was too long.
    """

    tokens: int = 0
    limit: int = 0
    output: int = 0


def find_overflow(message: str, code: str | None, kind: str | None, detail: Any) -> Overflow | None:
    """Return what a refusal says of a prompt that is too long, or None if it is about something else."""
    said = message[:_LOOKED_AT]
    if code not in _CODES and kind not in _CODES and not _is_about_it(said):
        return None
    if isinstance(detail, dict) and type(detail.get("n_prompt_tokens")) is int and type(detail.get("n_ctx")) is int:
        return Overflow(detail["n_prompt_tokens"], detail["n_ctx"])
    return _counted(said.replace(",", ""))


def _is_about_it(said: str) -> bool:
    return _WORDS.search(said) is not None and _ABOUT_A_RATE.search(said) is None


def _counted(said: str) -> Overflow:
    """Return the numbers of a refusal, where they make sense."""
    if (difference := _DIFFERENCE.search(said)) is not None:
        output, limit, prompt = map(int, difference.groups())
        return _parts(prompt, output, limit)
    limits = [int(next(filter(None, found.groups()))) for found in _LIMIT.finditer(said)]
    if not limits:
        return Overflow()
    if (added := _SUM.search(said)) is not None:
        return _parts(int(added[1]), int(added[2]), max(limits))
    prompt_said, output_said = _PROMPT.search(said), _OUTPUT.search(said)
    if prompt_said is not None and output_said is not None:
        return _parts(int(prompt_said[1]), int(output_said[1]), max(limits))
    limit = min(limits)  # the length of the prompt is worded as the bound is
    tokens = max((int(found.group()) for found in _NUMBER.finditer(said)), default=0)
    return Overflow(tokens, limit) if tokens > limit else Overflow()


def _parts(prompt: int, output: int, limit: int) -> Overflow:
    """Return the counts of a refusal that names the prompt and the output limit by themselves."""
    if prompt + output <= limit:
        return Overflow()
    return Overflow(prompt, limit) if prompt > limit else Overflow(prompt + output, limit, output)


def in_openai_words(found: Overflow) -> str:
    """Return the sentence of Chat Completions, or where no numbers are known that of Responses."""
    if not found.limit:
        return "Your input exceeds the context window of this model. Please adjust your input and try again."
    if found.output:
        return (
            f"This model's maximum context length is {found.limit} tokens. However, you requested {found.tokens} tokens "
            f"({found.tokens - found.output} in the messages, {found.output} in the completion). "
            "Please reduce the length of the messages or completion."
        )
    return (
        f"This model's maximum context length is {found.limit} tokens. However, your messages resulted in {found.tokens} tokens. "
        "Please reduce the length of the messages."
    )


def in_anthropic_words(found: Overflow) -> str:
    """Return the sentence of the Messages API. Claude Code lowers `max_tokens` by the numbers of the second one."""
    if not found.limit:
        return "prompt is too long"
    if found.output:
        return (
            f"input length and `max_tokens` exceed context limit: {found.tokens - found.output} + {found.output} > {found.limit}, "
            "decrease input length or `max_tokens` and try again"
        )
    return f"prompt is too long: {found.tokens} tokens > {found.limit} maximum"


def in_bedrock_words(found: Overflow) -> str:
    """Return the sentence of Converse, which has no numbers."""
    return "Input is too long for requested model."


def in_ollama_words(found: Overflow) -> str:
    """Return the sentence of Ollama's chat."""
    beyond = found.tokens - found.limit if found.limit else 0
    return f"prompt too long; exceeded max context length{f' by {beyond} tokens' if beyond > 0 else ''}"


def in_cohere_words(found: Overflow) -> str:
    """Return the sentence of Cohere's chat."""
    beyond = found.tokens - found.limit if found.limit else 0
    return f"too many tokens: size limit exceeded{f' by {beyond} tokens' if beyond > 0 else ''}. Try using shorter or fewer inputs."


def in_gemini_words(found: Overflow) -> str:
    """Return the sentence of generateContent."""
    count, limit = (f" ({number})" if number else "" for number in (found.tokens, found.limit))
    return f"The input token count{count} exceeds the maximum number of tokens allowed{limit}."
