"""Turn the bytes of a reply into text, wherever they were cut."""

from codecs import utf_8_decode


class Utf8Feed:
    """Decodes UTF-8 in pieces; a code point that is not complete yet is held.

    `held` is what has come of it. Bytes that are not UTF-8 become U+FFFD, and `replaced` says for the whole reply that this happened.
    """

    __slots__ = ("held", "replaced")

    def __init__(self) -> None:
        self.held = b""
        self.replaced = False

    def feed(self, data: bytes) -> str:
        return self._decode(data, final=False)

    def finish(self) -> str:
        return self._decode(b"", final=True) if self.held else ""

    def _decode(self, data: bytes, *, final: bool) -> str:
        data = self.held + data
        try:
            text, used = utf_8_decode(data, "strict", final)
        except UnicodeDecodeError:
            self.replaced = True
            text, used = utf_8_decode(data, "replace", final)
        self.held = data[used:]
        return text
