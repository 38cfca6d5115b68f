"""Read the form by which a file is uploaded (multipart/form-data)."""

from __future__ import annotations

from email.parser import BytesParser
from email.policy import HTTP

from bardo.simulators.incoming import Incoming
from bardo.simulators.refusal import Refusal


def read_form(incoming: Incoming) -> tuple[dict[str, str], str, bytes]:
    """Return the fields of a form, and the name and the content of its file. Raises Refusal."""
    kind = incoming.headers.get("content-type", "")
    if not kind.startswith("multipart/form-data"):
        raise Refusal("bad_value", f"Invalid Content-Type header ({kind}), expected multipart/form-data.")
    head = f"content-type: {kind}\r\n\r\n".encode()
    form = BytesParser(policy=HTTP).parsebytes(head + incoming.raw)
    fields: dict[str, str] = {}
    name, content = "", b""
    for part in form.iter_parts():
        field = str(part.get_param("name", header="content-disposition") or "")
        filename = part.get_filename()
        payload = part.get_payload(decode=True)
        data = payload if isinstance(payload, bytes) else b""
        if filename is not None and field == "file":
            name, content = filename, data
        else:
            fields[field] = data.decode()
    if not name:
        raise Refusal("missing_field", "'file' is a required property", parameter="file")
    return fields, name, content
