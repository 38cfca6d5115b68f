"""Bodies of requests that are packed: each form is taken, within a bound on what it unpacks to, and what is broken is told."""

from __future__ import annotations

import gzip
import json
import os
import sys
import zlib
from collections.abc import Callable, Iterator

import brotli
import pytest

from bardo.surfaces.gateway.context import encodings_of, unpacked
from bardo.surfaces.gateway.http import too_large
from bardo.values.errors import InvalidRequest, TooLarge, UnsupportedMediaType
from support.any_model import Simulator
from support.gateway import House, house
from support.raw import RawClient, RawReply, head, post
from support.talk import ALL_CLIENTS, body_for, path_for

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

LIMIT = 1 << 20


def without_header(body: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(body) + packer.flush()


PACKERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "an old name": ("x-gzip", gzip.compress),
    "members of gzip": ("gzip", lambda body: gzip.compress(body[:9]) + gzip.compress(body[9:])),
    "deflate": ("deflate", zlib.compress),
    "deflate without a header": ("deflate", without_header),
    "brotli": ("br", lambda body: brotli.compress(body, quality=5)),
    "zstd": ("zstd", zstd.compress),
    "frames of zstd": ("Zstd", lambda body: zstd.compress(body[:9]) + zstd.compress(body[9:])),
    "twice": ("gzip, zstd", lambda body: zstd.compress(gzip.compress(body))),
    "with identity": ("identity,br,", brotli.compress),
    "not at all": ("identity", bytes),
}
each_packer = pytest.mark.parametrize(("encoding", "pack"), PACKERS.values(), ids=PACKERS)


@pytest.fixture(scope="module")
def town() -> Iterator[House]:
    with house([Simulator("deepseek")], gateway={"max_body_bytes": LIMIT}) as running:
        yield running


def sent(town: House, body: bytes, encoding: str, client: str = "openai_chat") -> RawReply:
    with RawClient(town.address) as raw:
        raw.send(post(raw.host, path_for(client, "deepseek/m1"), body, content_encoding=encoding))
        return raw.reply()


def plain(client: str = "openai_chat", **more: object) -> bytes:
    return json.dumps({**body_for(client, "deepseek/m1"), **more}).encode()


@each_packer
def test_a_packed_body_is_served_as_what_it_holds(town: House, encoding: str, pack: Callable[[bytes], bytes]) -> None:
    reply = sent(town, pack(plain()), encoding)
    assert reply.status == 200, reply.body
    assert "1161" in reply.json["choices"][0]["message"]["content"]


@pytest.mark.parametrize("client", ALL_CLIENTS)
def test_every_dialect_takes_a_packed_body(town: House, client: str) -> None:
    assert sent(town, zstd.compress(plain(client)), "zstd", client).status == 200


@each_packer
def test_what_unpacks_to_more_than_a_body_may_have_is_413(
    town: House, encoding: str, pack: Callable[[bytes], bytes]
) -> None:
    bomb = pack(plain(user="0" * (4 * LIMIT)))
    reply = sent(town, bomb, encoding)
    assert reply.status == 413
    assert "max_body_bytes" in reply.json["error"]["message"]
    assert sent(town, pack(plain()), encoding).status == 200


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd"])
def test_what_cannot_be_unpacked_is_400_and_names_the_form(town: House, encoding: str) -> None:
    packed = next(pack for name, pack in PACKERS.values() if name == encoding)(plain())
    for broken in (b"\x00{}", packed[:-1], packed[: len(packed) // 2], packed + b"{}"):
        reply = sent(town, broken, encoding)
        assert reply.status == 400
        assert f"content-encoding {encoding}" in reply.json["error"]["message"]


@pytest.mark.parametrize("encoding", ["compress", "snappy", "aws-chunked", "gzip, br, zstd"])
def test_another_form_is_415_and_told_with_those_that_are_read(town: House, encoding: str) -> None:
    reply = sent(town, plain(), encoding)
    assert reply.status == 415
    assert reply.headers["accept-encoding"] == "gzip, deflate, br, zstd"


def test_a_form_with_a_file_is_read_as_it_is() -> None:
    with house(toml="[batches]\nenabled = true") as running, RawClient(running.address) as raw:
        raw.send(head(raw.host, "/v1/files", content_encoding="gzip", content_length="0"))
        assert raw.reply().status in (404, 415)


def test_what_is_unpacked_counts_among_all_bodies_until_the_reply() -> None:
    bounds = {"max_body_bytes": LIMIT, "max_total_body_bytes": 200_000}
    with house([Simulator("deepseek")], gateway=bounds) as running:
        packed = zstd.compress(plain(user="0" * 250_000))
        for _ in range(2):
            reply = sent(running, packed, "zstd")
            assert reply.status == 503
            assert "max_total_body_bytes" in reply.json["error"]["message"]
        fits = zstd.compress(plain(metadata={"a": "0" * 150_000}))
        assert [sent(running, fits, "zstd").status for _ in range(3)] == [200] * 3


@each_packer
def test_every_length_comes_out_as_it_went_in(encoding: str, pack: Callable[[bytes], bytes]) -> None:
    encodings = encodings_of([(b"content-encoding", encoding.encode())])
    for size in (0, 1, 65_535, 65_536, 65_537, 300_000):
        for body in (os.urandom(size), b"a" * size):
            assert unpacked(pack(body), encodings, LIMIT, too_large) == body
    at_the_bound = b"a" * LIMIT
    assert unpacked(pack(at_the_bound), encodings, LIMIT, too_large) == at_the_bound
    if encodings:
        with pytest.raises(TooLarge):
            unpacked(pack(at_the_bound + b"a"), encodings, LIMIT, too_large)


def test_headers_that_stand_apart_are_one_list() -> None:
    lines = [(b"content-encoding", b"gzip"), (b"host", b"br"), (b"content-encoding", b"zstd")]
    assert encodings_of(lines) == ("gzip", "zstd")
    with pytest.raises(UnsupportedMediaType):
        encodings_of([*lines, (b"content-encoding", b"br")])


@pytest.mark.parametrize(
    ("encoding", "empty"), [("gzip", gzip.compress(b"", mtime=0)), ("zstd", zstd.compress(b""))], ids=["gzip", "zstd"]
)
def test_a_body_of_endless_empty_streams_is_refused_soon(encoding: str, empty: bytes) -> None:
    assert unpacked(empty * 50, (encoding,), LIMIT, too_large) == b""
    with pytest.raises(InvalidRequest):
        unpacked(empty * 200_000, (encoding,), LIMIT, too_large)
