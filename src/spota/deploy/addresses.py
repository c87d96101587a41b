"""Where a device is: udp://HOST:PORT, quarc://HOST:PORT, serial://PORT?baud=N, or emulator://ENV?seed=N."""

import ipaddress
import socket
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

SCHEMES = ("udp", "quarc", "serial", "emulator")
QUARC_PORT = 9095
BAUD = 921_600
EXAMPLES = "udp://192.168.0.7:9095, quarc://192.168.0.7, serial:///dev/ttyACM0?baud=921600 or emulator://cart-pole"


@dataclass(frozen=True)
class Address:
    """A device's address, taken apart."""

    scheme: str
    place: str
    """A host, a serial port or a platform."""
    port: int = 0
    options: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        """As people write it."""
        port = f":{self.port}" if self.scheme in ("udp", "quarc") else ""
        options = "&".join(f"{name}={value}" for name, value in self.options.items())
        return f"{self.scheme}://{self.place}{port}{'?' + options if options else ''}"


def parse(text: str) -> Address:
    """Read an address; what is not one is refused with an example."""
    parts = urlsplit(text)
    if parts.scheme not in SCHEMES:
        raise ValueError(f"{text!r} is not the address of a device; write {EXAMPLES}.")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    if parts.scheme in ("udp", "quarc"):
        return Address(parts.scheme, parts.hostname or _missing(text, "host"), _port(text, parts.scheme), options)
    place = parts.netloc + parts.path
    return Address(parts.scheme, place or _missing(text, "place"), 0, options)


def is_loopback(host: str) -> bool:
    """Whether nobody outside this machine can reach a listener there."""
    try:
        return ipaddress.ip_address(socket.gethostbyname(host)).is_loopback
    except (OSError, ValueError):
        return False


def _port(text: str, scheme: str) -> int:
    try:
        port = urlsplit(text).port
    except ValueError as error:
        raise ValueError(f"{text!r}: a port is a number from 0 to 65535.") from error
    if port is None and scheme == "udp":
        _missing(text, "port")
    return QUARC_PORT if port is None else port


def _missing(text: str, what: str) -> str:
    raise ValueError(f"{text!r} has no {what}; write {EXAMPLES}.")
