"""Reasoning items as OpenAI makes and checks them.

A ciphertext is read by the model that wrote it, and an item of reasoning is refused without the item it led to. Source: issues of
openai/codex and continuedev/continue, as of 2026-11, for the words and for what follows a switch of models.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence

from bardo.simulators import marks
from bardo.simulators.fields import Fields, text
from bardo.simulators.refusal import Refusal

_SIGNER = "openai"
_OPENING = "gAAAAAB"


def encrypted(model: str, reasoning: str, *, size: int) -> str:
    """Give the ciphertext of some reasoning."""
    bound = {"model": model, "said": marks.fingerprint(reasoning)}
    return _OPENING + base64.urlsafe_b64encode(marks.sign(_SIGNER, bound, size=size)).decode()


def check(items: Sequence[Fields], model: str) -> None:
    """Refuse ciphertexts that cannot be read, and reasoning that leads to nothing."""
    for place, item in enumerate(items):
        if item.get("type") != "reasoning":
            continue
        if held := text(item.get("encrypted_content")):
            check_one(held, model)
        if not _is_led_to(items[place + 1] if place + 1 < len(items) else {}):
            words = f"Item '{item.get('id') or 'rs_unknown'}' of type 'reasoning' was provided without its required following item."
            raise Refusal("trouble", words, parameter="input", status=400)


def check_one(held: str, model: str) -> None:
    """Refuse a ciphertext that another model wrote, or nobody."""
    opens = held.startswith(_OPENING)
    bound = marks.opened(_SIGNER, marks.read(held.removeprefix(_OPENING))) if opens else None
    if bound is None or bound.get("model") != model:
        words = f"The encrypted content {held[:4]}...{held[-4:]} could not be verified."
        reason = "Reason: Encrypted content could not be decrypted or parsed."
        raise Refusal("bad_ciphertext", f"{words} {reason}")


def _is_led_to(item: Fields) -> bool:
    kind = item.get("type", "message" if item else "")
    if kind == "message":
        return item.get("role") == "assistant"
    return kind not in ("", "function_call_output", "custom_tool_call_output")
