"""What the workers say about their tasks, as one word about all problems of a block."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from spota.files.blocks import Arrays
from spota.polopt.optimizer import Progress, Watch

FIGURES = ("returns", "survival", "best")


class Following:
    """Follows tasks and tells a watch: how many updates of all are done, and how those fare that have begun."""

    def __init__(self, pieces: Mapping[str, slice], kept: Mapping[str, Arrays], watch: Watch | None):
        """`kept` has what was finished before."""
        self._pieces, self._watch = pieces, watch
        self._shares: dict[str, float] = {}
        self._figures: dict[str, dict[str, np.ndarray]] = {}
        self._iterations, self._last = 1, (-1, -1)
        for name, arrays in kept.items():
            self._finish(name, arrays)

    def hear(self, name: str, said: dict[str, Any]) -> None:
        """A worker's word about its task."""
        if "iteration" not in said:
            return
        self._iterations = max(1, said["iterations"])
        self._shares[name] = said["iteration"] / self._iterations
        self._figures[name] = {figure: said[figure] for figure in FIGURES}
        self._tell(said["steps"])

    def end(self, name: str, arrays: Arrays) -> None:
        """A task is finished."""
        self._finish(name, arrays)
        self._tell(0)

    def _finish(self, name: str, arrays: Arrays) -> None:
        self._shares[name] = 1.0
        returns, survival = arrays["score.returns"], arrays["score.survival"]
        self._figures[name] = {"returns": returns, "survival": survival, "best": returns}

    def _tell(self, steps: int) -> None:
        """A watch is told once for each update that is new."""
        done = sum(share * _size(self._pieces[name]) for name, share in self._shares.items())
        problems = sum(map(_size, self._pieces.values()))
        now = round(done * self._iterations), problems * self._iterations
        if self._watch is None or now == self._last:
            return
        self._last = now
        figures = {f: np.concatenate([one[f] for one in self._figures.values()]) for f in FIGURES}
        self._watch(Progress(*now, **figures, policy=None, steps=steps, metrics={}))


def _size(piece: slice) -> int:
    return piece.stop - piece.start
