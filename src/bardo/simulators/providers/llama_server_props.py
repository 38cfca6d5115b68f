"""What llama-server tells of itself, and the prompts it renders: a model whose template opens the thinking unless told not to."""

from __future__ import annotations

from bardo.simulators.fields import Fields, at, joined_text, rows

_TEMPLATE = (
    "{% for message in messages %}[{{ message.role }}]{{ message.content }}{% endfor %}[assistant]"
    "{% if enable_thinking is defined and enable_thinking is false %}<think></think>{% else %}<think>{% endif %}"
)


def props(model: str) -> Fields:
    """Give `/props`."""
    settings: Fields = {"params": {"temperature": 0.8, "reasoning_format": "auto"}, "n_ctx": 40960}
    caps: Fields = {"supports_preserve_reasoning": False, "supports_reasoning_effort": False, "supports_tools": True}
    return {
        "default_generation_settings": settings,
        "total_slots": 4,
        "model_alias": model,
        "model_path": f"models/{model}",
        "chat_template": _TEMPLATE,
        "chat_template_caps": caps,
        "build_info": "b10499-6d05498",
    }


def rendered(body: Fields) -> str:
    """Give the prompt that the template makes of a request."""
    said = "".join(
        f"[{message.get('role')}]{joined_text(message.get('content'))}" for message in rows(body.get("messages"))
    )
    off = at(body, "chat_template_kwargs.enable_thinking") is False or body.get("reasoning_effort") == "none"
    return f"{said}[assistant]{'<think></think>' if off else '<think>'}"
