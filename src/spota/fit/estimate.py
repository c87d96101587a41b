"""The machine that explains recordings best: Levenberg-Marquardt through the simulator, many machines side by side.

Unknown are the coordinates z of a machine, with prior N(0, I / precision), and where every segment begins. The latter
are eliminated segment by segment (a Schur complement), so that a step solves a small system. The simulator is compiled;
the small systems are solved by NumPy on the host.
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int

from spota.fit import prediction
from spota.fit.coordinates import Coordinates, Linear
from spota.fit.noise import Noise, beginnings, seen
from spota.fit.segments import Segments
from spota.sim.env import Platform
from spota.sim.host import HostEnv

FARTHEST = 8.0
"""Prior standard deviations that no coordinate leaves: beyond, the simulator itself may not hold."""
FAR = 1e-2
"""How much steps are shortened at first, far from the best machine."""
NEAR = 1e-3
"""And near it, where directions that hardly matter would otherwise be left as they are."""
SETTLED = 0.1
"""A machine is found if a further step promises less than this: a tenth of what a parameter costs one deviation off."""
ROUNDS = 3
"""How often machines that are not found go on."""
TOGETHER = 32
"""Machines that go on at least, in jax: for fewer, a program would be compiled for every number of them."""


@dataclass(frozen=True)
class Estimate:
    """The best machine for each of m sets of segments."""

    z: Float[np.ndarray, "p m"]
    start: Float[np.ndarray, "d n m"]
    """Where every segment began, by this machine."""
    information: Float[np.ndarray, "p p m"]
    """What the segments say about z, with the beginnings unknown: the inverse covariance without the prior."""
    cost: Float[np.ndarray, "m"]
    """Twice the negative log posterior, but for a constant."""
    gain: Float[np.ndarray, "m"]
    """What one more step promises to take off the cost: next to nothing at the best machine."""

    def replaced(self, which: Int[np.ndarray, "some"], others: "Estimate") -> "Estimate":
        """The same with other estimates for some machines."""
        mine = {name: x.copy() for name, x in vars(self).items()}
        for name, x in vars(others).items():
            mine[name][..., which] = x
        return Estimate(**mine)

    def covariance(self, precision: float = 1.0) -> Float[np.ndarray, "m p p"]:
        """Of z after the segments, by Laplace."""
        return np.linalg.inv(np.moveaxis(self.information, -1, 0) + precision * np.eye(self.z.shape[0]))


@dataclass(frozen=True)
class Problem:
    """What is to be explained, and what is believed about it."""

    env: Platform
    coordinates: Coordinates
    segments: Segments
    """n segments of each of m machines, one machine after the other."""
    noise: Noise
    machines: int = 1
    precision: float = 1.0
    """Of the prior: 1 believes the table, less looks beyond it."""
    horizon: float = 1.0
    """The first share of every segment that counts: far from the machine, a short look is the better guide."""

    pinned: tuple[str, ...] = ()
    """Coordinates that stay where they are: whole delays, which are tried one by one."""

    @property
    def free(self) -> Bool[np.ndarray, "p"]:
        """Which coordinates move."""
        return np.array([name not in self.pinned for name in self.coordinates.names])

    @property
    def each(self) -> int:
        """Segments of one machine."""
        return self.segments.n // self.machines

    @property
    def weights(self) -> Float[np.ndarray, "t q"]:
        """What each squared residual counts."""
        t = self.segments.positions.shape[0]
        counts = np.arange(t) < max(5, round(self.horizon * t))
        return counts[:, None] * self.noise.weights

    def only(self, which: Int[np.ndarray, "some"]) -> "Problem":
        """The problem of some of its machines."""
        places = (which[:, None] * self.each + np.arange(self.each)).reshape(-1)
        return replace(self, segments=self.segments.chosen(places), machines=which.size)

    def lanes(self, z: Float[np.ndarray, "p m"]) -> Float[np.ndarray, "p n"]:
        """The machine of every segment."""
        return np.repeat(z, self.each, axis=1)

    def residuals(
        self, z: Float[np.ndarray, "p m"], start: Float[np.ndarray, "d n m"]
    ) -> Float[np.ndarray, "t q lanes"]:
        """What machines that begin there leave unexplained."""
        flat = start.reshape(start.shape[0], -1, order="F")
        return prediction.predicted(self.env, self.coordinates, self.lanes(z), flat, self.segments)


def estimate(
    problem: Problem,
    iterations: int = 8,
    z: Float[np.ndarray, "p m"] | None = None,
    start: Float[np.ndarray, "d n m"] | None = None,
    damping: float = FAR,
) -> Estimate:
    """Improve all machines step by step; a step that makes one worse is taken back, and shorter ones follow."""
    p, m = len(problem.coordinates.names), problem.machines
    spread = beginnings(problem.env, problem.noise, problem.segments)
    measured = _by_machine(np.asarray(problem.segments.start, np.float64), m)
    first = np.zeros((p, m)) if z is None else np.asarray(z, np.float64)
    here = _Point.at(problem, first, measured if start is None else start, measured, spread)
    shorter = np.full(m, damping)
    for _ in range(iterations):
        step_z, step_start = here.step(problem, shorter)
        moved = np.where(problem.free[:, None], np.clip(_moved(problem, here.z, step_z), -FARTHEST, FARTHEST), here.z)
        there = _Point.at(problem, moved, here.start + step_start, measured, spread)
        better = there.cost <= here.cost
        here = here.replaced(there, better)
        shorter = np.where(better, shorter / 5, shorter * 10)
    _, information, gradient = here.reduced()
    return Estimate(here.z, here.start, information, here.cost, _gain(problem, here.z, information, gradient))


def settled(problem: Problem, z: Float[np.ndarray, "p m"], start: Float[np.ndarray, "d n m"]) -> Estimate:
    """The best machines from guesses nearby; most are found in a few steps, and the others go on alone."""
    found = estimate(problem, 4, z, start, NEAR / 10)
    promised = found.gain
    for _ in range(ROUNDS):
        waiting = int((promised > SETTLED).sum())
        if not waiting:
            break
        rest = np.sort(np.argsort(-promised)[: max(waiting, 1 if isinstance(problem.env, HostEnv) else TOGETHER)])
        again = estimate(problem.only(rest), 4, found.z[:, rest], found.start[..., rest], NEAR)
        kept = found.cost[rest] - again.cost > SETTLED / 5  # at a kink, a step promises what it does not keep
        found, promised = found.replaced(rest, again), promised.copy()
        promised[rest] = np.where(kept, again.gain, 0.0)
    return found


def best_machine(problem: Problem, wide: float = 0.1) -> tuple[Estimate, Noise]:
    """The machine that explains the segments best, near the table or not, and what it leaves unexplained.

    A short look first, then a longer one, each from where the last one ended; beyond the table by a prior of that
    precision, and at last with the noise that is seen.
    """
    found = estimate(replace(problem, horizon=0.2), 6)
    found = estimate(replace(problem, horizon=0.5), 5, found.z, found.start)
    problem = replace(problem, precision=wide)
    found = estimate(problem, 8, found.z, found.start)
    noise = problem.noise
    for _ in range(2):
        noise = seen(problem.residuals(found.z, found.start), found.start.size + found.z.size)
        problem = replace(problem, noise=noise)
        found = estimate(problem, 5, found.z, found.start)
    return found, seen(problem.residuals(found.z, found.start), found.start.size + found.z.size)


def beginnings_of(
    problem: Problem, z: Float[np.ndarray, "p"], start: Float[np.ndarray, "d n"]
) -> tuple[Float[np.ndarray, "t q d n"], Float[np.ndarray, "n d d"]]:
    """How what a machine leaves unexplained depends on where segments begin, and the covariance of the latter."""
    lanes = np.repeat(z[:, None], start.shape[1], axis=1)
    segments = problem.segments.chosen(np.arange(start.shape[1]))
    pinned = np.zeros(z.size, bool)
    _, J = prediction.jacobians(problem.env, problem.coordinates, lanes, start, segments, pinned)
    S = J[:, :, z.size :]
    spread = beginnings(problem.env, problem.noise, problem.segments)
    return S, np.linalg.inv(np.einsum("tqin,tq,tqjn->nij", S, problem.weights, S) + np.diag(1 / spread**2))


@dataclass(frozen=True)
class _Point:
    """All machines at one point, with what a step from there needs."""

    z: np.ndarray
    start: np.ndarray
    matrix: np.ndarray
    """JᵀWJ, [k, k, n, m], with the prior of the beginnings."""
    gradient: np.ndarray
    cost: np.ndarray

    @staticmethod
    def at(problem: Problem, z: np.ndarray, start: np.ndarray, measured: np.ndarray, spread: np.ndarray) -> "_Point":
        p, m = z.shape
        flat = start.reshape(start.shape[0], -1, order="F")
        found = prediction.linearised(
            problem.env, problem.coordinates, problem.lanes(z), flat, problem.segments, problem.weights, problem.free
        )
        matrix, gradient, cost = (_by_machine(np.nan_to_num(x, nan=1e12, posinf=1e12, neginf=-1e12), m) for x in found)
        off = (start - measured) / spread[:, None, None] ** 2
        diagonal = np.arange(p, p + spread.size)
        matrix[diagonal, diagonal] += (1 / spread**2)[:, None, None]
        gradient[p:] += off
        believed = problem.precision * (z[problem.free] ** 2).sum(axis=0)
        cost = cost.sum(axis=0) + (off * (start - measured)).sum(axis=(0, 1)) + believed
        return _Point(z, start, matrix, gradient, cost)

    def reduced(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """C⁻¹ [Bᵀ, g_s] of every segment; information and gradient of the coordinates with beginnings eliminated."""
        p = self.z.shape[0]
        order = (2, 3, 0, 1)
        A, B, C = (np.transpose(x, order) for x in (self.matrix[:p, :p], self.matrix[:p, p:], self.matrix[p:, p:]))
        g = np.transpose(self.gradient, (1, 2, 0))[..., None]
        solved = np.linalg.solve(C, np.concatenate([np.swapaxes(B, -1, -2), g[..., p:, :]], axis=-1))
        information = (A - B @ solved[..., :p]).sum(axis=0)
        information = (information + np.swapaxes(information, -1, -2)) / 2  # which rounding had spoiled
        gradient = (g[..., :p, :] - B @ solved[..., p:]).sum(axis=0)[..., 0]
        return solved, np.moveaxis(information, 0, -1), gradient

    def step(self, problem: Problem, damping: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        p = self.z.shape[0]
        solved, information, gradient = self.reduced()
        H = np.moveaxis(information, -1, 0)
        ridge = damping[:, None] * np.diagonal(H, axis1=1, axis2=2) + problem.precision
        H = H + ridge[:, :, None] * np.eye(p)
        pull = gradient + problem.precision * self.z.T
        fixed = ~problem.free
        H[:, fixed] = H[:, :, fixed] = 0.0
        H[:, fixed, fixed], pull[:, fixed] = 1.0, 0.0
        step = -np.linalg.solve(H, pull[..., None])
        starts = -(solved[..., p:] + solved[..., :p] @ step)[..., 0]
        return step[..., 0].T, np.moveaxis(starts, -1, 0)

    def replaced(self, other: "_Point", where: np.ndarray) -> "_Point":
        return _Point(*(np.where(where, b, a) for a, b in zip(vars(self).values(), vars(other).values(), strict=True)))


def _gain(problem: Problem, z: np.ndarray, information: np.ndarray, gradient: np.ndarray) -> Float[np.ndarray, "m"]:
    free = problem.free
    H = np.moveaxis(information[np.ix_(free, free)], -1, 0) + problem.precision * np.eye(int(free.sum()))
    pull = (gradient + problem.precision * z.T)[:, free]
    return np.einsum("mi,mi->m", pull, np.linalg.solve(H, pull[..., None])[..., 0])


def _moved(problem: Problem, z: np.ndarray, step: np.ndarray) -> np.ndarray:
    system = problem.coordinates
    return system.moved(z, step) if isinstance(system, Linear) else z + step


def _by_machine(x: np.ndarray, machines: int) -> np.ndarray:
    """[…, n · m] → […, n, m]."""
    return x.reshape(*x.shape[:-1], machines, -1).swapaxes(-1, -2).copy()
