"""What a run of SPOTA tells while it goes on, to whoever listens: displays, metrics, pages."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from spota.certify.certificate import Certificate
from spota.cluster.jobs import AtWork
from spota.files.blocks import Arrays
from spota.polopt.solve import Progress, Watch


@dataclass(frozen=True)
class BlockStarted:
    """A block begins: that many problems, of `n` domains each; 0 where it needs none."""

    iteration: int
    block: str
    n: int
    problems: int = 1


@dataclass(frozen=True)
class BlockFinished:
    """A block ended with these arrays; `replayed` if the memo had them."""

    iteration: int
    block: str
    seconds: float
    """What it has cost when it was computed."""
    replayed: bool
    arrays: Arrays = field(repr=False)


@dataclass(frozen=True)
class Solving:
    """A solver's word from inside a block."""

    iteration: int
    block: str
    progress: Progress


@dataclass(frozen=True)
class Assessed:
    """An iteration ended with this certificate; `best` has the lowest bound so far, and `policy` belongs to it."""

    iteration: int
    certificate: Certificate
    best: Certificate
    policy: Any = field(repr=False)


@dataclass(frozen=True)
class Told:
    """Something that whoever waits should know before it begins."""

    text: str


Event = BlockStarted | BlockFinished | Solving | Assessed | Told | AtWork
Listener = Callable[[Event], None]


def to_all(*listeners: Listener | None) -> Listener:
    """One listener that tells several, in their order."""

    def tell(event: Event) -> None:
        for listener in listeners:
            if listener is not None:
                listener(event)

    return tell


def listening(listener: Listener) -> Callable[[str, int], Watch]:
    """A listener as `training.train` wants one: it hears that a block begins, then what the solver says in it."""

    def begin(block: str, n: int) -> Watch:
        listener(BlockStarted(1, block, n))
        return lambda progress: listener(Solving(1, block, progress))

    return begin
