"""How old data are, although two clocks tell the time: the fastest packet of the last seconds is the yardstick."""

SPAN = 1_000_000_000
"""Nanoseconds after which a yardstick is renewed; in two of them clocks drift apart by less than a millisecond."""


class Age:
    """The age of a frame over that of the fastest one; a delay that all packets share cannot be seen from here."""

    def __init__(self) -> None:
        """No frame yet."""
        self._old = self._new = None
        self._since = 0

    def of(self, now: int, sent: int) -> float:
        """Seconds since it was measured, at the time `now` of our clock [ns]."""
        offset = now - sent
        if self._new is None or now - self._since > SPAN:
            self._old, self._new, self._since = self._new, offset, now
        self._new = min(self._new, offset)
        fastest = self._new if self._old is None else min(self._old, self._new)
        return (offset - fastest) / 1e9
