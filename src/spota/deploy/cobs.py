"""Frames on a line without packets (COBS): no zero byte inside a frame, and one zero byte after each.

Whoever joins in the middle, or loses a byte, is right again at the next zero.
"""

FULL = 254
"""Bytes without a zero that one code byte can announce."""


def encode(data: bytes | bytearray | memoryview) -> bytes:
    """The frame as it goes over the line, with the zero that ends it."""
    out = bytearray()
    for piece in bytes(data).split(b"\0"):
        while len(piece) >= FULL:
            out += b"\xff" + piece[:FULL]
            piece = piece[FULL:]
        out += bytes([len(piece) + 1]) + piece
    return bytes(out + b"\0")


def decode(data: bytes | bytearray | memoryview) -> bytes | None:
    """The frame without its last zero, or None if these bytes cannot be one."""
    out, at, data = bytearray(), 0, bytes(data)
    while at < len(data):
        code = data[at]
        piece = data[at + 1 : at + code]
        if code == 0 or len(piece) != code - 1 or 0 in piece:
            return None
        out += piece
        at += code
        if code <= FULL and at < len(data):
            out += b"\0"
    return bytes(out) if data else None


class Unstuffer:
    """Collects bytes of a line and gives out what lies between zeros."""

    def __init__(self, longest: int):
        """Whatever is longer than that is noise."""
        self._longest = longest
        self._pending = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The frames that these bytes complete."""
        *ended, rest = (self._pending + data).split(b"\0")
        self._pending = rest[-self._longest :]
        return [frame for piece in ended if len(piece) <= self._longest and (frame := decode(piece)) is not None]
