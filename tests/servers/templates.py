"""Chat templates of our own with the shapes that vendors' templates have: where thinking is opened, and what turns it off.

The shapes are those of rendered prompts in the wild: always open (DeepSeek-R1), open unless told off (Qwen3.5), left to the model (Qwen3),
open or closed without a line (DeepSeek-V3.1), and open in a template in which a server finds no thinking.
"""

from __future__ import annotations

_TOOLS = """{%- if tools %}{{- '<|im_start|>system\\nTools, called as <tool_call>{"name": …, "arguments": …}</tool_call>:' }}
{%- for tool in tools %}{{- '\\n' + (tool | tojson) }}{%- endfor %}{{- '<|im_end|>\\n' }}{%- endif %}
"""
_TURNS = """{%- for message in messages %}
{%- if message.role == 'assistant' %}
{{- '<|im_start|>assistant\\n' }}
{%- if message.reasoning_content %}{{- '<think>\\n' + message.reasoning_content + '\\n</think>\\n\\n' }}{%- endif %}
{{- message.content or '' }}
{%- for call in message.tool_calls or [] %}
{{- '<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}
{{- call.function.arguments if call.function.arguments is string else call.function.arguments | tojson }}
{{- '}\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- else %}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endif %}
{%- endfor %}
"""
_BEGIN = "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}"
_OFF = "enable_thinking is defined and enable_thinking is false"


def _template(generation: str) -> str:
    return f"{_TOOLS}{_TURNS}{_BEGIN}{generation}{{%- endif %}}"


_EMPTY_PAIR = "{{- '<think>\\n\\n</think>\\n\\n' }}"
TEMPLATES: dict[str, str] = {
    "always-open": _template("{{- '<think>\\n' }}"),
    "open-unless-off": _template(f"{{%- if {_OFF} %}}{_EMPTY_PAIR}{{%- else %}}{{{{- '<think>\\n' }}}}{{%- endif %}}"),
    "left-to-the-model": _template(f"{{%- if {_OFF} %}}{_EMPTY_PAIR}{{%- endif %}}"),
    "open-or-closed": _template(
        f"{{%- if {_OFF} %}}{{{{- '</think>' }}}}{{%- else %}}{{{{- '<think>' }}}}{{%- endif %}}"
    ),
    # Nothing in its history says what thinking looks like, so that llama.cpp leaves it in the text, without its opener.
    "open-unnoticed": (
        "{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}"
        "{%- endfor %}" + _BEGIN + "{{- '<think>\\n' }}{%- endif %}"
    ),
}
"""Templates by their shape."""
