"""A device in some 40 lines, for whatever runs Python: python device.py 9095. Replace measure() and act()."""

import json
import math
import socket
import struct
import sys
import time
import zlib

HELLO, CONTRACT, SENSOR, COMMAND, BUSY, BYE = range(1, 7)
HEAD, DT, WATCHDOG, FORGOTTEN = struct.Struct("<4sBBBBIIQ"), 0.002, 0.006, 1.0
SIGNALS = [["x", "m", -0.357, 0.357], ["alpha_error", "rad", -3.1416, 3.1416]]
SIGNALS += [["x_dot", "m/s", -2, 2], ["alpha_dot", "rad/s", -25, 25]]
ABOUT = {"format": 1, "platform": "cart-pole-swing-up", "dt": DT, "watchdog": WATCHDOG, "safe": [0.0]}
ABOUT |= {"observations": SIGNALS, "actions": [["V", "V", -8.0, 8.0]]}
cart = [0.0, 0.0]


def measure():
    """What the sensors read, in the order of the contract."""
    return cart[0], math.pi, cart[1], 0.0


def act(volts):
    """Let the command act for one step."""
    cart[1] += DT * (1.4 * volts - 12 * cart[1])
    cart[0] += DT * cart[1]


def frame(kind, body, count=0, flags=0, seq=0, echo=0):
    """A frame with its checksum."""
    data = HEAD.pack(b"SPTA", 1, kind, flags, count, seq, echo, time.monotonic_ns()) + body
    return data + struct.pack("<I", zlib.crc32(data))


line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
line.bind(("127.0.0.1", int(sys.argv[1])))
host, command, newest, seq, heard, due = None, 0.0, None, 0, 0.0, time.monotonic()
while True:
    due = max(due + DT, time.monotonic() - DT)  # what was missed is skipped
    while (left := due - time.monotonic()) > 0:
        line.settimeout(left)
        try:
            data, sender = line.recvfrom(1500)
        except (TimeoutError, ConnectionError):
            continue
        if len(data) < 28 or data[:5] != b"SPTA\1" or struct.pack("<I", zlib.crc32(data[:-4])) != data[-4:]:
            continue
        kind, count, number = data[5], data[7], HEAD.unpack_from(data)[5]
        if kind == HELLO and sender != host is not None and time.monotonic() - heard < FORGOTTEN:
            line.sendto(frame(BUSY, b""), sender)
        elif kind == HELLO:
            host, command, newest, heard = sender, 0.0, None, time.monotonic()
            line.sendto(frame(CONTRACT, json.dumps(ABOUT).encode()), host)
        elif sender == host and kind == BYE:
            host, command = None, 0.0
        elif sender == host and (kind, count, len(data)) == (COMMAND, 1, 32):
            (volts,) = struct.unpack_from("<f", data, 24)
            if math.isfinite(volts) and (newest is None or 0 < (number - newest) % 2**32 < 2**31):
                command, newest, heard = min(8.0, max(-8.0, volts)), number, time.monotonic()
    held = time.monotonic() - heard > WATCHDOG
    command, echo, seq = (0.0, 0, seq + 1) if held else (command, newest or 0, seq + 1)
    act(command)
    if host is not None:
        line.sendto(frame(SENSOR, struct.pack("<4f", *measure()), 4, int(held), seq, echo), host)
