"""A request that another program could read otherwise is refused before the application sees it, and nothing behind it is executed."""

from __future__ import annotations

import asyncio
from random import Random

import httptools
import pytest

from bardo.server.framing import ChunkedBody
from bardo.server.protocol import Connection
from bardo.values.errors import HeadersTooLarge
from support.offenders import each_case
from support.one_connection import OneConnection
from support.sampling import sample

pytestmark = pytest.mark.each_python

SMUGGLED = b"GET /smuggled HTTP/1.1\r\nhost: x\r\n\r\n"


def get(line: bytes, *headers: bytes) -> bytes:
    """Return a request without a body."""
    return b"\r\n".join([line, b"host: x", *headers, b"", b""])


def post(*headers: bytes, body: bytes = b"") -> bytes:
    """Return a request with a body."""
    return get(b"POST /hostile HTTP/1.1", *headers) + body


def chunked(body: bytes) -> bytes:
    """Return a request whose body comes in chunks."""
    return post(b"transfer-encoding: chunked", body=body)


END = b"0\r\n\r\n"
LINES = {
    "two spaces before the target": get(b"GET  /hostile HTTP/1.1"),
    "two spaces before the version": get(b"GET /hostile  HTTP/1.1"),
    "a space behind the version": get(b"GET /hostile HTTP/1.1 "),
    "a space before the method": get(b" GET /hostile HTTP/1.1"),
    "a tab before the target": get(b"GET\t/hostile HTTP/1.1"),
    "a tab before the version": get(b"GET /hostile\tHTTP/1.1"),
    "a space in the target": get(b"GET /hos tile HTTP/1.1"),
    "a form feed in the target": get(b"GET /hos\x0ctile HTTP/1.1"),
    "a null in the target": get(b"GET /hos\x00tile HTTP/1.1"),
    "a letter outside of ASCII in the target": get(b"GET /hos\xe9tile HTTP/1.1"),
    "no version": get(b"GET /hostile"),
    "RTSP/1.0": get(b"GET /hostile RTSP/1.0"),
    "RTSP/1.1": get(b"GET /hostile RTSP/1.1"),
    "ICE/1.0": get(b"GET /hostile ICE/1.0"),
    "http/1.1": get(b"GET /hostile http/1.1"),
    "HTTP/1.10": get(b"GET /hostile HTTP/1.10"),
    "HTTP/01.1": get(b"GET /hostile HTTP/01.1"),
    "HTTP/1.": get(b"GET /hostile HTTP/1."),
    "HTTP/1": get(b"GET /hostile HTTP/1"),
    "HTTP 1.1": get(b"GET /hostile HTTP 1.1"),
    "a method in small letters": get(b"get /hostile HTTP/1.1"),
    "an unknown method": get(b"SMUGGLE /hostile HTTP/1.1"),
    "a whole URL": get(b"GET http://example.com/hostile HTTP/1.1"),
    "a tunnel": get(b"CONNECT example.com:443 HTTP/1.1"),
    "a star": get(b"OPTIONS * HTTP/1.1"),
    "a line feed before the method": b"\n" + get(b"GET /hostile HTTP/1.1"),
    "a carriage return before the method": b"\r" + get(b"GET /hostile HTTP/1.1"),
    "three line breaks before the method": b"\r\n\r\n\r\n" + get(b"GET /hostile HTTP/1.1"),
    "line feeds alone": b"GET /hostile HTTP/1.1\nhost: x\n\n",
    "carriage returns alone": b"GET /hostile HTTP/1.1\rhost: x\r\r\r\n\r\n",
    "a line feed behind the line": b"GET /hostile HTTP/1.1\nhost: x\r\n\r\n",
}
VERSIONS = {
    "HTTP/2.0": get(b"GET /hostile HTTP/2.0"),
    "the preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "HTTP/0.9": get(b"GET /hostile HTTP/0.9"),
    "HTTP/1.2": get(b"GET /hostile HTTP/1.2"),
    "HTTP/3.0": get(b"GET /hostile HTTP/3.0"),
    "HTTP/9.9": get(b"GET /hostile HTTP/9.9"),
}
FIELDS = {
    "a space before the colon": post(b"a : b"),
    "a tab before the colon": post(b"a\t: b"),
    "a space in a name": post(b"a b: c"),
    "no colon": post(b"abc"),
    "no name": post(b": b"),
    "a name outside of ASCII": post(b"\xe9: b"),
    "a folded line": post(b"a: b\r\n c"),
    "a line folded by a tab": post(b"a: b\r\n\tc"),
    "a folded first line": get(b"POST /hostile HTTP/1.1\r\n folded: x"),
    "a null in a value": post(b"a: b\x00c"),
    "a null in a name": post(b"a\x00b: c"),
    "a carriage return in a value": post(b"a: b\rc: d"),
    "a line feed in a value": post(b"a: b\nc: d"),
    "an escape in a value": post(b"a: \x1b[2J"),
    "a delete in a value": post(b"a: \x7f"),
    "a folded length": post(b"content-length:\r\n 5", body=b"12345"),
    "a length before a space and a colon": post(b"content-length : 5", body=b"12345"),
}
LENGTHS = {
    f"a length of {length!r}": post(b"content-length: " + length, body=b"12345")
    for length in (
        b"+5",
        b"-5",
        b"0x5",
        b"5, 5",
        b"5,6",
        b"5 5",
        b"5.0",
        b"5e0",
        b"",
        b"five",
        b"1_0",
        b"'5'",
        b"\x0b5",
    )
} | {
    "a length beyond all bounds": post(b"content-length: 18446744073709551617"),
    "two lengths": post(b"content-length: 5", b"content-length: 6", body=b"123456"),
    "one length twice": post(b"content-length: 5", b"content-length: 5", body=b"12345"),
    "a length and chunks": post(b"content-length: 5", b"transfer-encoding: chunked", body=END),
    "chunks and a length": post(b"transfer-encoding: chunked", b"content-length: 5", body=END),
    "a length and another coding": post(b"content-length: 5", b"transfer-encoding: identity", body=b"12345"),
}
CODINGS = {
    f"a coding of {coding!r}": post(b"transfer-encoding: " + coding, body=END)
    for coding in (
        b"gzip",
        b"identity",
        b"xchunked",
        b"chunked, chunked",
        b"gzip, chunked, chunked",
        b"chunked, identity",
        b"chunked,",
        b",chunked",
        b"chunked;q=1",
        b'"chunked"',
        b"chunked chunked",
        b"chun ked",
        b"",
        b"\x0bchunked",
        b"chunked\x00",
    )
} | {
    "chunked twice": post(b"transfer-encoding: chunked", b"transfer-encoding: chunked", body=END),
    "chunked and then another coding": post(b"transfer-encoding: chunked", b"transfer-encoding: gzip", body=END),
    "a coding and no coding": post(b"transfer-encoding:", b"transfer-encoding: chunked", body=END),
    "chunks in HTTP/1.0": get(b"POST /hostile HTTP/1.0", b"transfer-encoding: chunked") + END,
}
FURTHER_CODINGS = {
    "gzip, chunked": post(b"transfer-encoding: gzip, chunked", body=END),
    "identity, chunked": post(b"transfer-encoding: identity,chunked", body=END),
    "gzip and then chunked": post(b"transfer-encoding: gzip", b"transfer-encoding: chunked", body=END),
}
CHUNKS = {
    "digits that are none": chunked(b"zz\r\nhello\r\n" + END),
    "no digits": chunked(b"\r\nhello\r\n" + END),
    "a sign": chunked(b"+5\r\nhello\r\n" + END),
    "a minus": chunked(b"-5\r\nhello\r\n" + END),
    "0x": chunked(b"0x5\r\nhello\r\n" + END),
    "a space before the size": chunked(b" 5\r\nhello\r\n" + END),
    "a space behind the size": chunked(b"5 \r\nhello\r\n" + END),
    "a line feed alone behind the size": chunked(b"5\nhello\r\n" + END),
    "a carriage return alone behind the size": chunked(b"5\rhello\r\n" + END),
    "a line feed alone behind a chunk": chunked(b"5\r\nhello\n" + END),
    "nothing behind a chunk": chunked(b"5\r\nhello" + END),
    "more than the size": chunked(b"5\r\nhello!\r\n" + END),
    "a line feed in an extension": chunked(b"5;a\nb\r\nhello\r\n" + END),
    "a carriage return in an extension": chunked(b"5;a\rb\r\nhello\r\n" + END),
    "a null in an extension": chunked(b'5;a="\x00"\r\nhello\r\n' + END),
    "an extension without a name": chunked(b"5;\r\nhello\r\n" + END),
    "an extension that does not end": chunked(b'5;a="b\r\nhello\r\n' + END),
    "a size of more digits than there are": chunked(b"ffffffffffffffff1\r\n"),
    "seventeen zeros": chunked(b"0" * 17 + b"\r\n\r\n"),
    "zeros before a size": chunked(b"0" * 40 + b"5\r\nhello\r\n" + END),
    "a folded trailer": chunked(b"0\r\na: b\r\n c\r\n\r\n"),
    "a trailer without a colon": chunked(b"0\r\nabc\r\n\r\n"),
    "a trailer with a space before its colon": chunked(b"0\r\na : b\r\n\r\n"),
    "a trailer with a null": chunked(b"0\r\na: \x00\r\n\r\n"),
    "a trailer that ends with a line feed": chunked(b"0\r\na: b\n\r\n"),
    "a length as a trailer": chunked(b"0\r\nContent-Length: 5\r\n\r\n"),
    "a coding as a trailer": chunked(b"0\r\ntransfer-encoding: chunked\r\n\r\n"),
    "a line feed alone behind the last chunk": chunked(b"0\r\n\n"),
}
TOO_MUCH = {
    "100 KB of zeros": chunked(b"0" * 100_000 + b"5\r\nhello\r\n" + END),
    "a long extension": chunked(b"5;a=" + b"b" * 100_000 + b"\r\nhello\r\n" + END),
    "many extensions": chunked(b"1;a=%b\r\nx\r\n" % (b"b" * 1000) * 100 + END),
    "a long trailer": chunked(b"0\r\na: " + b"b" * 100_000 + b"\r\n\r\n"),
    "long trailers": chunked(b"0\r\n" + b"a: %b\r\n" % (b"b" * 1000) * 100 + b"\r\n"),
    "many trailers": chunked(b"0\r\n" + b"a: b\r\n" * 200 + b"\r\n"),
    "a long target": get(b"GET /" + b"x" * 100_000 + b" HTTP/1.1"),
    "many headers": get(b"GET /hostile HTTP/1.1", *[b"a: b"] * 200),
    "long headers": get(b"GET /hostile HTTP/1.1", *[b"a: " + b"b" * 1000] * 100),
}
TABLES = (
    (400, LINES),
    (505, VERSIONS),
    (400, FIELDS),
    (400, LENGTHS),
    (400, CODINGS),
    (501, FURTHER_CODINGS),
    (400, CHUNKS),
    (431, TOO_MUCH),
)
HOSTILE = [(name, status, request) for status, table in TABLES for name, request in table.items()]
"""Each with the status that it is refused with."""
NAMES = [name for name, _, _ in HOSTILE]


async def refused(pieces: list[bytes]) -> tuple[list[int], list[str], bool]:
    """Return the statuses of the replies, the paths that were answered, and whether the connection was closed."""
    with OneConnection() as client:
        await client.send(*pieces)
        answered = [path for path in client.paths if path != "/hostile"]
        return client.statuses, answered, client.wire.is_closing()


@each_case("name, status, request_bytes", HOSTILE, ids=NAMES)
def test_it_is_refused_and_nothing_behind_it_is_executed(name: str, status: int, request_bytes: bytes) -> None:
    for before in (b"", b"GET /before HTTP/1.1\r\nhost: x\r\n\r\n"):
        whole = before + request_bytes + SMUGGLED
        first = ([200], ["/before"]) if before else ([], [])
        assert asyncio.run(refused([whole])) == ([*first[0], status], first[1], True), name


def test_extensions_are_counted_together_also_where_each_chunk_is_cut() -> None:
    body = ChunkedBody(1000, 10)
    for _ in range(1000 // len(";name=value")):
        for piece in (b"1;name=", b"value\r\nx\r\n"):
            body.feed(piece, 0)
    body.feed(b"1;name=", 0)
    with pytest.raises(HeadersTooLarge):
        body.feed(b"value\r\n", 0)


def test_what_looks_like_a_chunk_inside_one_is_its_text() -> None:
    for inside in (b"1\r\nx\r\n", b"0\r\n\r\n"):
        body = ChunkedBody(1000, 10)
        whole = b"%x\r\n%b\r\n" % (len(inside), inside)
        assert body.feed(whole[:3], 0) == (b"", 3)
        assert body.feed(whole[3:] + END, 0) == (inside, len(whole) - 3 + len(END))
        assert body.complete


@pytest.mark.parametrize("sees_end", [True, False], ids=["before it is here", "never"])
def test_a_parser_that_sees_another_end_of_a_head_is_not_believed(
    sees_end: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class OtherParser:
        def __init__(self, protocol: Connection) -> None:
            self.protocol = protocol

        def feed_data(self, data: bytes) -> None:
            if sees_end:
                self.protocol.on_headers_complete()

        def should_keep_alive(self) -> bool:
            return True

    async def ask() -> None:
        with OneConnection() as client:
            if sees_end:
                await client.send(SMUGGLED[:20])
            else:
                await client.send(SMUGGLED)
            assert client.statuses == [400]
            assert not client.paths

    monkeypatch.setattr(httptools, "HttpRequestParser", OtherParser)
    asyncio.run(ask())


@each_case("name, status, request_bytes", HOSTILE, ids=NAMES)
def test_any_cut_of_it_is_refused_alike(name: str, status: int, request_bytes: bytes) -> None:
    whole = request_bytes + SMUGGLED
    is_long = len(whole) > 1000
    cuts = sample(range(1, len(whole), 997 if is_long else 1), 8, law=name)

    async def cut() -> None:
        for at in cuts:
            assert await refused([whole[:at], whole[at:]]) == ([status], [], True), (name, at)
        if not is_long:
            assert await refused([bytes([byte]) for byte in whole]) == ([status], [], True), name

    asyncio.run(cut())


@each_case("name, status, request_bytes", HOSTILE, ids=NAMES)
def test_the_application_is_not_asked(name: str, status: int, request_bytes: bytes) -> None:
    async def ask() -> None:
        with OneConnection() as client:
            await client.send(request_bytes)
            assert not client.paths, name

    asyncio.run(ask())


GOOD = {
    "a plain request": (get(b"GET /good HTTP/1.1"), b""),
    "HTTP/1.0": (get(b"GET /good HTTP/1.0"), b""),
    "an empty line before it": (b"\r\n" + get(b"GET /good HTTP/1.1"), b""),
    "a length": (get(b"POST /good HTTP/1.1", b"content-length: 5") + b"hello", b"hello"),
    "a length with zeros and spaces": (get(b"POST /good HTTP/1.1", b"content-length: \t005 ") + b"hello", b"hello"),
    "a length of zero": (get(b"POST /good HTTP/1.1", b"content-length: 0"), b""),
    "chunks": (
        get(b"POST /good HTTP/1.1", b"Transfer-Encoding: Chunked ") + b"5\r\nhello\r\n1\r\n!\r\n" + END,
        b"hello!",
    ),
    "sixteen digits": (
        get(b"POST /good HTTP/1.1", b"transfer-encoding: chunked") + b"0000000000000005\r\nhello\r\n" + END,
        b"hello",
    ),
    "a chunk that looks like chunks": (
        get(b"POST /good HTTP/1.1", b"transfer-encoding: chunked") + b"b\r\n1\r\nx\r\n0\r\n\r\n\r\n" + END,
        b"1\r\nx\r\n0\r\n\r\n",
    ),
    "extensions and trailers": (
        get(b"POST /good HTTP/1.1", b"transfer-encoding: chunked")
        + b'A;name;other=value;third="a \\" b"\r\n0123456789\r\n0;last\r\nx-trailer: \xe9 y\r\nx: \r\n\r\n',
        b"0123456789",
    ),
    "a wish for another protocol": (
        get(b"POST /good HTTP/1.1", b"connection: upgrade", b"upgrade: h2c", b"content-length: 5") + b"hello",
        b"hello",
    ),
    "a value outside of ASCII": (get(b"GET /good HTTP/1.1", b"x: \xe9\t\xff"), b""),
}


@each_case("name, request_bytes, body", [(name, *case) for name, case in GOOD.items()], ids=GOOD)
def test_what_is_sound_is_answered_in_any_cut(name: str, request_bytes: bytes, body: bytes) -> None:
    async def cut() -> None:
        for pieces in (
            *([request_bytes[:at], request_bytes[at:]] for at in sample(range(1, len(request_bytes)), 20, law=name)),
            [request_bytes],
            [bytes([byte]) for byte in request_bytes],
        ):
            with OneConnection() as client:
                await client.send(*pieces)
                assert client.statuses == [200], (name, pieces)
                assert bytes(client.wire.written).endswith(b"/good " + body), (name, pieces)
                if b"HTTP/1.0" not in request_bytes:
                    await client.send(request_bytes)
                    assert client.statuses == [200, 200], (name, pieces)

    asyncio.run(cut())


PARTS = (
    b"\r\n",
    b"\n",
    b"\r",
    b" ",
    b"\t",
    b"0",
    b";",
    b":",
    b"\x00",
    END,
    SMUGGLED,
    b"HTTP/1.1",
    b"HTTP/1.0",
    b"transfer-encoding: chunked\r\n",
    b"content-length: 5\r\n",
    b"connection: close\r\n",
    b"connection: upgrade\r\nupgrade: websocket\r\n",
)


def damaged(request_bytes: bytes, random: Random) -> bytes:
    """Return a request with a few bytes that are added, lost or changed."""
    damaged = bytearray(request_bytes)
    for _ in range(random.randint(0, 3)):
        at = random.randrange(len(damaged) + 1)
        damaged[at : at + random.randint(0, 2)] = random.choice(PARTS)
    return bytes(damaged)


@each_case("number", sample(range(3000), 150, law="damaged requests"))
def test_the_same_requests_are_answered_however_broken_ones_are_cut(number: int) -> None:
    """Where more than one thing is wrong, the refusal may name another of them."""
    random = Random(number)
    sound = [request for _, _, request in HOSTILE if len(request) < 500] + [request for request, _ in GOOD.values()]
    whole = b"".join(damaged(random.choice(sound), random) for _ in range(3))
    at = sorted(random.choices(range(1, len(whole)), k=3))
    pieces = [whole[: at[0]], whole[at[0] : at[1]], whole[at[1] : at[2]], whole[at[2] :]]

    async def answers(pieces: list[bytes]) -> tuple[list[bytes], int, bool]:
        with OneConnection() as client:
            await client.send(*filter(None, pieces))
            told = bytes(client.wire.written).replace(b"HTTP/1.1 100 Continue\r\n\r\n", b"").split(b"HTTP/1.1 ")[1:]
            answered = [reply.partition(b"\r\n\r\n")[2] for reply in told if reply.startswith(b"200")]
            return answered, len(told) - len(answered), client.wire.is_closing()

    async def both() -> None:
        in_one = await answers([whole])
        assert in_one == await answers(pieces), (whole, at)
        assert in_one[1] <= 1, "nothing follows a refusal"

    asyncio.run(both())
