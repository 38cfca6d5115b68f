"""Documents for Converse, which names them all and takes a few formats."""

from __future__ import annotations

import re
from typing import Any

from bardo.catalog.fragments import merge_fields
from bardo.dialects.bedrock_converse.constants import NAME
from bardo.dialects.documents import data_of, ending_of, type_by_name
from bardo.dialects.losses import Losses
from bardo.values.blocks import DocumentBlock, fields_for

Wire = dict[str, Any]
_FORMATS = ("pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md")
# "alphanumeric characters, whitespace characters (no more than one in a row), hyphens, parentheses, square brackets"
# (DocumentBlock in the API reference of Bedrock, 2026-11).
_NO_NAME = re.compile(r"[^0-9A-Za-z ()\[\]-]|(?<= ) ")
_LONGEST_NAME = 200


class DocumentWriter:
    """Writes the documents of one request, each under a name of its own. `own`: the request came in Converse."""

    def __init__(self, *, own: bool) -> None:
        self._own = own
        self._names: set[str] = set()

    def write(self, block: DocumentBlock, losses: Losses) -> list[Wire]:
        """Return the block, or nothing where Converse does not take the document, which is reported."""
        media_type, data = data_of(block)
        in_bucket = block.url.startswith("s3://")
        form = ending_of(media_type or type_by_name(block.url))
        if not data and not in_bucket:
            losses.lose("document", block.url, "Converse takes documents as bytes or from S3, not by their address")
            return []
        if form not in _FORMATS:
            losses.lose("document", media_type, f"Converse takes {', '.join(_FORMATS)}")
            return []
        source = {"bytes": data} if data else {"s3Location": {"uri": block.url}}
        if block.text and self._own:
            source = {"text": block.text}
        document = {"format": form, "name": self._name(block, losses), "source": source}
        return [merge_fields({"document": document}, fields_for(NAME, block.carried))]

    def _name(self, block: DocumentBlock, losses: Losses) -> str:
        name = _NO_NAME.sub("-", block.name).strip()[:_LONGEST_NAME] or "document"
        stem, number = name, 2
        while name in self._names:
            name, number = f"{stem} {number}", number + 1
        self._names.add(name)
        if block.name and name != block.name:
            why = "Converse takes letters, digits, spaces and ()[]- in a name, and each name once"
            losses.lose("document.name", block.name, why, sent=name, key=name)
        return name
