"""Where workers are: `ray` (this machine), `ray:4` (four of its cores), or `ray://HOST:PORT` (a cluster that runs)."""

from dataclasses import dataclass

USAGE = "write ray for this machine, ray:4 for four workers on it, or ray://HOST:PORT for a cluster"
CLIENT_PORT = 10001
"""Where the head of a Ray cluster listens for clients unless it was told otherwise."""


@dataclass(frozen=True)
class Address:
    """This machine with so many workers, or all that its cores allow; or the head of a cluster."""

    workers: int | None = None
    host: str | None = None
    port: int = CLIENT_PORT

    @property
    def is_local(self) -> bool:
        """Whether it is this machine."""
        return self.host is None

    def __str__(self) -> str:
        """As a user writes it."""
        if self.host is not None:
            return f"ray://{self.host}:{self.port}"
        return "ray" if self.workers is None else f"ray:{self.workers}"


def parsed(text: str) -> Address:
    """What `--on` says."""
    engine, _, rest = text.partition(":")
    if engine != "ray":
        raise ValueError(f"--on {text}: there is no such engine; {USAGE}.")
    if not rest.startswith("//"):
        return Address(_number(text, rest) if rest or ":" in text else None)
    host, _, port = rest[2:].rpartition(":") if ":" in rest[2:] else (rest[2:], "", "")
    if not host:
        raise ValueError(f"--on {text}: it names no host; {USAGE}.")
    return Address(host=host, port=_number(text, port) if port else CLIENT_PORT)


def _number(text: str, digits: str) -> int:
    if not digits.isdecimal() or int(digits) < 1:
        raise ValueError(f"--on {text}: {digits!r} is no number of workers and no port; {USAGE}.")
    return int(digits)
