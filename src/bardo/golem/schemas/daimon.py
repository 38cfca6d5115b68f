"""What the daimon answers with: a feeling on three axes (002, DaimonAppraisal)."""

from __future__ import annotations

from typing import Annotated

from bardo.golem.schemas.base import Answer, Signed, Text, Words

EMOTIONS = ("joy", "trust", "fear", "surprise", "sadness", "disgust", "anger", "anticipation")


class DaimonAppraisal(Answer, frozen=True, kw_only=True):
    """How the agent feels about what happened. The three axes are -1 to 1; `memory_bias` says what to remember by it."""

    pleasure: Signed
    arousal: Signed
    dominance: Signed
    primary_emotion: Annotated[str, Words(EMOTIONS, "anticipation")]
    secondary_emotion: str | None
    trigger: Annotated[str, Text(longest=100)]
    memory_bias: Annotated[str, Text(default="neutral")]
