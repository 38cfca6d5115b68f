"""Forms with files, in whatever pieces they arrive."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.surfaces.gateway.files import FileBegin, FilePiece, FormField, FormReader, boundary_of
from bardo.values.errors import InvalidRequest, UnsupportedMediaType

BOUNDARY = b"a-boundary"


def form_of(content: bytes, *, purpose: str = "batch") -> bytes:
    field = f'--a-boundary\r\ncontent-disposition: form-data; name="purpose"\r\n\r\n{purpose}\r\n'
    file = (
        '--a-boundary\r\ncontent-disposition: form-data; name="file"; filename="r.jsonl"\r\ncontent-type: x/y\r\n\r\n'
    )
    return b"".join([field.encode(), file.encode(), content, b"\r\n--a-boundary--\r\n"])


def read(body: bytes, cuts: list[int]) -> tuple[dict[str, str], str, bytes]:
    """Return the fields, the file's name and its content of a form that arrives in pieces."""
    reader, places = FormReader(BOUNDARY), sorted({0, len(body), *(cut % (len(body) + 1) for cut in cuts)})
    fields: dict[str, str] = {}
    name, content = "", b""
    for begin, end in itertools.pairwise(places):
        for part in reader.feed(body[begin:end]):
            match part:
                case FormField():
                    fields[part.name] = part.value
                case FileBegin():
                    name = part.filename
                case FilePiece():
                    content += part.data
    reader.finish()
    return fields, name, content


@given(
    content=st.binary(max_size=400)
    | st.sampled_from([b"", b"\r\n", b"\r\n--a-boundar", b"--a-boundary", b"\r\n\r\n--"]),
    cuts=st.lists(st.integers(0, 2000), max_size=20),
)
def test_a_form_is_the_same_however_it_is_cut(content: bytes, cuts: list[int]) -> None:
    assert read(form_of(content), cuts) == ({"purpose": "batch"}, "r.jsonl", content)


@given(body=st.binary(max_size=300), cuts=st.lists(st.integers(0, 400), max_size=10))
def test_what_is_no_form_is_refused(body: bytes, cuts: list[int]) -> None:
    with pytest.raises(InvalidRequest):
        read(body, cuts)


@pytest.mark.parametrize("kind", ["", "application/json", "multipart/form-data", "multipart/mixed; boundary=a"])
def test_another_content_type_is_refused(kind: str) -> None:
    with pytest.raises(UnsupportedMediaType):
        boundary_of(kind)


def test_a_boundary_may_be_quoted() -> None:
    assert boundary_of('multipart/form-data; boundary="a b"') == b"a b"
