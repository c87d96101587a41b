"""An engine that needs no Ray: tasks run in this process, one after the other, and workers are lost on demand."""

import pickle
from collections.abc import Callable, Sequence
from typing import Any

from spota.cluster.engine import Done, Failed, Lost, Outcome, Said


class InProcess:
    """`lose` says of a task's name and attempt whether its worker is lost."""

    workers = 1

    def __init__(self, lose: Callable[[str, int], bool] = lambda *_: False, first: int = 0):
        self.lose, self.first = lose, first
        self.asked: list[str] = []
        self.cancelled: list[str] = []
        self._tasks: dict[int, tuple[str, Any, bytes]] = {}
        self._said: list[Said] = []

    def share(self, function: Any, common: Any) -> Any:
        return function, common

    def submit(self, name: str, shared: Any, own: Any, cores: int) -> int:
        del cores
        number = len(self.asked)
        self.asked.append(name)
        self._tasks[number] = name, shared, pickle.dumps(own)
        return number

    def wait(self, handles: Sequence[int], seconds: float) -> list[tuple[int, Outcome]]:
        del seconds
        number = handles[self.first % len(handles)]
        return [(number, self._outcome(*self._tasks.pop(number)))]

    def heard(self) -> list[Said]:
        said, self._said = self._said, []
        return said

    def cancel(self, handles: Sequence[int]) -> None:
        self.cancelled += [self._tasks[handle][0] for handle in handles]

    def _outcome(self, name: str, shared: Any, own: bytes) -> Outcome:
        if self.lose(name, self.asked.count(name)):
            return Lost("its process died")
        function, common = shared
        try:
            value = function(common, pickle.loads(own), lambda said: self._said.append((name, said)))
        except ValueError as error:
            return Failed(str(error), "here/1")
        return Done(value, "here/1", "a CPU", 0.1)
