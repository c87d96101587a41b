"""What an engine does for us: it takes tasks, gives what became of each, and passes on what they say meanwhile."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable


@dataclass(frozen=True)
class Done:
    """A task ended with this value."""

    value: Any
    worker: str
    cpu: str
    seconds: float


@dataclass(frozen=True)
class Failed:
    """A task raised: the simulator or the solver is wrong, and will be wrong again."""

    text: str
    worker: str


@dataclass(frozen=True)
class Lost:
    """A task was lost with its worker or its machine, or was killed for its memory: another one may do it."""

    why: str


HANGS = "hangs"
"""The last word of a worker whose simulator does not answer."""
Outcome = Done | Failed | Lost
Said = tuple[str, dict[str, Any]]
"""The name of a task, and what its worker says about it."""
Handle = Any
"""A task that was submitted, as the engine knows it."""


@runtime_checkable
class Engine(Protocol):
    """Runs functions elsewhere."""

    workers: int
    """How many tasks there can be at once."""

    def share(self, function: Any, common: Any) -> Any:
        """Keep what all tasks of a block have in common where every worker finds it."""
        ...

    def submit(self, name: str, shared: Any, own: Any, cores: int) -> Handle:
        """Let a worker compute function(common, own, tell)."""
        ...

    def wait(self, handles: Sequence[Handle], seconds: float) -> list[tuple[Handle, Outcome]]:
        """Those that have ended, as soon as one has; none after that time."""
        ...

    def heard(self) -> list[Said]:
        """What workers have said since it was asked last."""
        ...

    def cancel(self, handles: Sequence[Handle]) -> None:
        """Nobody waits for these any more."""
        ...
