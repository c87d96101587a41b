"""Frames of version 1, the words between host and device: fixed size, little-endian, with a checksum.

 0  magic    4 bytes "SPTA"        8  seq    uint32, counts the sender's frames of this kind
 4  version  uint8, 1             12  echo   uint32, the newest seq of the other side (see below)
 5  kind     uint8                16  time   uint64, the sender's clock [ns]
 6  flags    uint8                24  count values of float32, in physical units
 7  count    uint8                    and a CRC-32 (that of zlib and Ethernet) over everything before it

A sensor frame echoes the command that acted in the step before it; a command echoes the frame that it answers. A
contract frame has JSON text in place of the values. A frame is only ever data: what does not fit exactly is dropped.
"""

import struct
import zlib

import numpy as np

MAGIC = b"SPTA"
VERSION = 1
HELLO, CONTRACT, SENSOR, COMMAND, BUSY, BYE = range(1, 7)
"""Kinds: host asks, device introduces itself, measures; host commands; device has a controller already; host leaves."""
WATCHDOG = 1
"""The flag of a sensor frame whose device has set its command to zero, because none came. Commands carry the phase."""

HEADER = struct.Struct("<4sBBBBIIQ")
CHECKSUM = struct.Struct("<I")
LONGEST = 1400
"""Bytes of the longest frame: one packet on any network."""
MOST_VALUES = 64
WORD = 2**32


def size_of(count: int) -> int:
    """Bytes of a frame with that many values."""
    return HEADER.size + 4 * count + CHECKSUM.size


def newer(seq: int, than: int) -> bool:
    """Whether a sequence number comes after another; they start again at zero after 2³² frames."""
    return 0 < (seq - than) % WORD < WORD // 2


class Outbox:
    """Writes frames of one kind into one buffer, again and again."""

    def __init__(self, kind: int, count: int):
        """Allocate everything that sending will need."""
        _check_count(count)
        self.kind, self.count = kind, count
        self.buffer = bytearray(size_of(count))
        self._values = np.frombuffer(self.buffer, "<f4", count, HEADER.size)
        self._body = memoryview(self.buffer)[: -CHECKSUM.size]

    def write(self, seq: int, echo: int, time: int, values: np.ndarray, flags: int = 0) -> bytearray:
        """The frame, in a buffer that the next one overwrites."""
        HEADER.pack_into(self.buffer, 0, MAGIC, VERSION, self.kind, flags, self.count, seq % WORD, echo % WORD, time)
        self._values[:] = values
        CHECKSUM.pack_into(self.buffer, len(self._body), zlib.crc32(self._body))
        return self.buffer


class Inbox:
    """Reads frames of one kind, of which the newest counts; receive into `buffer`, then `take` what has arrived."""

    def __init__(self, kind: int, count: int):
        """Allocate everything that receiving will need."""
        _check_count(count)
        self.kind, self.count, self.size = kind, count, size_of(count)
        self.buffer = bytearray(LONGEST + 1)
        self.flags = self.seq = self.echo = self.time = 0
        self.taken = self.damaged = self.old = 0
        # no cast, in which strange NaNs would raise warnings
        self.values: np.ndarray = np.zeros(count, np.float32)
        self._values = np.frombuffer(self.buffer, "<f4", count, HEADER.size)
        self._body = memoryview(self.buffer)[: self.size - CHECKSUM.size]

    def take(self, size: int) -> bool:
        """Whether the first `size` bytes are a whole frame, newer than the last one; if so its fields are set."""
        if not self._whole(size):
            self.damaged += 1
            return False
        _, _, _, flags, _, seq, echo, time = HEADER.unpack_from(self.buffer)
        if self.taken and not newer(seq, self.seq):
            self.old += 1
            return False
        self.taken += 1
        self.flags, self.seq, self.echo, self.time = flags, seq, echo, time
        self.values[:] = self._values
        return True

    def forget(self) -> None:
        """Begin anew: the next frame may have any number."""
        self.taken = 0

    def _whole(self, size: int) -> bool:
        if size != self.size:
            return False
        magic, version, kind, _, count, *_ = HEADER.unpack_from(self.buffer)
        if (magic, version, kind, count) != (MAGIC, VERSION, self.kind, self.count):
            return False
        return CHECKSUM.unpack_from(self.buffer, size - CHECKSUM.size)[0] == zlib.crc32(self._body)


def signal_frame(kind: int, text: bytes = b"", seq: int = 0) -> bytes:
    """A frame outside the loop: hello, contract, busy or bye, with text in place of values."""
    body = HEADER.pack(MAGIC, VERSION, kind, 0, 0, seq, 0, 0) + text
    if len(body) + CHECKSUM.size > LONGEST:
        raise ValueError(f"A frame of {len(body) + CHECKSUM.size} bytes; the longest has {LONGEST}: use shorter names.")
    return body + CHECKSUM.pack(zlib.crc32(body))


def read_signal(data: bytes | bytearray | memoryview) -> tuple[int, bytes] | None:
    """Kind and text of a frame outside the loop; None if it is anything else."""
    if not HEADER.size + CHECKSUM.size <= len(data) <= LONGEST:
        return None
    magic, version, kind, _, count, *_ = HEADER.unpack_from(data)
    if (magic, version, count) != (MAGIC, VERSION, 0) or kind not in (HELLO, CONTRACT, BUSY, BYE):
        return None
    body = bytes(data[: -CHECKSUM.size])
    if CHECKSUM.unpack_from(data, len(body))[0] != zlib.crc32(body):
        return None
    return kind, body[HEADER.size :]


def _check_count(count: int) -> None:
    if not 0 < count <= MOST_VALUES:
        raise ValueError(f"A frame of {count} values; frames have 1 to {MOST_VALUES}.")
