"""Shorter forms of a text: without a loss (JSON without space, tables without padding, lines without trailing space), and by cutting."""

from __future__ import annotations

import csv
import io
import re
from typing import Any

import msgspec

# JSON has no text without an end; for one the expression takes the rest, so that its time grows with the text whatever it is given.
_JSON_PIECE = re.compile(r'"(?:[^"\\]|\\.)*+"?|\s++', re.DOTALL)
_BLANK_LINES = re.compile(r"\n{3,}+")
_CELL_SPACE = re.compile(r" {2,}+")
_RULE_CELL = re.compile(r"-{4,}+")
_LEAST_BLOB = 400
_BLOB = re.compile(rf"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{{{_LEAST_BLOB},}}+={{0,2}}")
_HEAD_SHARE = 0.6
_MOST_JSON = 8_000_000


def without_padding(text: str) -> str:
    """Return a text that says the same in fewer characters: JSON without space between its tokens, lines and tables without padding."""
    return compact_json(text) or _trimmed(text)


def compact_json(text: str) -> str:
    """Return JSON text without space between its tokens, each token as it was written; empty for text that is no JSON object or list."""
    bare = text.strip()
    if not bare or bare[0] not in "{[" or len(bare) > _MOST_JSON or _decoded(bare) is None:
        return ""
    return _JSON_PIECE.sub(lambda found: found.group() if found.group()[0] == '"' else "", bare)


def comma_separated(text: str) -> str:
    """Return a JSON list of objects with the same plain fields as comma-separated values with a header; empty for any other text.

    The values are kept, their types are not: `"1"` and `1` are the same cell.
    """
    bare = text.strip()
    rows = _decoded(bare) if bare.startswith("[") and len(bare) <= _MOST_JSON else None
    if not isinstance(rows, list) or len(rows) < 2 or not all(isinstance(row, dict) and row for row in rows):
        return ""
    columns = list(rows[0])
    if any(list(row) != columns or not all(map(_is_plain, row.values())) for row in rows):
        return ""
    written = io.StringIO()
    table = csv.writer(written, lineterminator="\n")
    table.writerow(columns)
    table.writerows([[_cell(value) for value in row.values()] for row in rows])
    return written.getvalue().rstrip("\n")


def without_blobs(text: str) -> str:
    """Return a text with each long run of base64 replaced by a mark that says how long it was."""
    if max(map(len, text.split()), default=0) < _LEAST_BLOB:
        return text
    return _BLOB.sub(lambda found: f"[{len(found.group())} characters of encoded data left out]", text)


def cut_middle(text: str, longest: int, *, gone: int = 0) -> str:
    """Return a text of about `longest` characters: its beginning and its end, cut between lines where that is near, and a mark between.

    The mark says how many characters are left out, with those that were `gone` before.
    """
    if len(text) <= longest:
        return text
    head, tail = int(longest * _HEAD_SHARE), longest - int(longest * _HEAD_SHARE)
    end = _line_end(text, head)
    begin = _line_begin(text, len(text) - tail)
    return f"{text[:end]}\n[... {begin - end + gone} characters left out ...]\n{text[begin:]}"


def _line_end(text: str, place: int) -> int:
    found = text.rfind("\n", place - place // 4, place)
    return place if found < 0 else found


def _line_begin(text: str, place: int) -> int:
    found = text.find("\n", place, place + (len(text) - place) // 4)
    return place if found < 0 else found + 1


def _trimmed(text: str) -> str:
    if " \n" in text or "\t\n" in text or text[-1:] in " \t":
        text = "\n".join([line.rstrip(" \t") for line in text.split("\n")])
    if "\n\n\n" in text:
        text = _BLANK_LINES.sub("\n\n", text)
    if "|\n" not in text:
        return text
    lines = text.split("\n")
    return "\n".join([_table_row(line) if line.startswith("|") and line.endswith("|") else line for line in lines])


def _table_row(line: str) -> str:
    if not line.strip("|-: "):
        return _RULE_CELL.sub("---", _CELL_SPACE.sub(" ", line))
    return _CELL_SPACE.sub(" ", line)


def _decoded(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float | bool)


def _cell(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value
