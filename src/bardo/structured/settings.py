"""The settings of structured outputs: `[inference.structured_outputs]` of the configuration."""

from __future__ import annotations

from typing import Annotated

import msgspec


class StructuredSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How answers in a schema are asked for and judged."""

    enabled: bool = True
    """Whether schemas are sent at all. When false, answers are free text and read with `from_text`."""
    prefer_schema_enforcement: bool = True
    """Whether the provider's own schema field is used where a tool would do too."""
    validation: bool = True
    """Whether answers are judged by the caller's schema."""
    retry_on_validation_failure: bool = True
    """Whether an answer that breaks the schema is asked for again, with what was wrong."""
    max_retries: Annotated[int, msgspec.Meta(ge=0, le=5)] = 1
    """How often at most."""
