"""n simulations of a MuJoCo model side by side, each on its own domain."""

import ctypes
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float, UInt32

from spota.envs.mujoco_targets import writings
from spota.sim.devices import usable_cores
from spota.sim.host import HostDomains, MachineError
from spota.sim.watchdog import turn_of

if TYPE_CHECKING:
    from spota.envs.mujoco import MuJoCoEnv

MANY = 256
"""From so many simulations on a second thread pays, if it has a core of its own: two on one core take turns, and each
step takes four times as long."""


def installed() -> Any:
    """The package `mujoco`, if it is there and new enough."""
    try:
        import mujoco
        import mujoco.batch
    except ImportError as error:
        raise ValueError(
            "MuJoCo models need the package mujoco, 3.17 or newer, which is not installed; write: "
            "pip install 'spota[mujoco]'"
        ) from error
    return mujoco


class MuJoCoMachines:
    """Simulations with hidden state; what MuJoCo derives from it is as new as the state whenever a function looks."""

    def __init__(self, env: "MuJoCoEnv", domains: HostDomains, seeds: UInt32[np.ndarray, "n"]):
        """Build the models of the domains, and begin at the start states."""
        mujoco = installed()
        self._env, self._xi, self._stage = env, dict(domains), int(mujoco.mjtStage.mjSTAGE_VEL)
        self._error = mujoco.batch.SimulationError
        models = _recompiled(env, domains) if env.recompiling else None
        threads = 0 if seeds.size >= MANY and usable_cores() > 1 else 1
        self.sim = mujoco.batch.Batch(models[0] if models else env.model, seeds.size, threads, persistent=True)
        if models:
            self.sim.set_models(models)
        else:
            _write(self.sim, env, domains)
        self.sim.reset(stage=int(mujoco.mjtStage.mjSTAGE_NONE))
        self._start(seeds)
        self._run(lambda: self.sim.forward(stage=self._stage))
        self._warned = self.sim.warning[:, :, 1].copy()

    def place(self, signals: Mapping[str, Float[np.ndarray, "n"]]) -> None:
        """Put every simulation where these signals were observed."""
        assert self._env.place is not None
        self._env.place(self.sim, signals, self._xi)
        self._run(lambda: self.sim.forward(stage=self._stage))
        self._warned = self.sim.warning[:, :, 1].copy()

    def observe(self) -> Float[np.ndarray, "d n"]:
        """The ideal observation."""
        with np.errstate(all="ignore"):  # of machines that have diverged
            return np.array(self._env.functions.observe(self.sim, self._xi), np.float64)  # of our own: it moves on

    def step(
        self, command: Float[np.ndarray, "a n"], active: Bool[np.ndarray, "n"]
    ) -> tuple[Float[np.ndarray, "n"], Bool[np.ndarray, "n"]]:
        """Let the commands act until the next decision."""
        told, xi = self._env.functions, self._xi
        with np.errstate(all="ignore"):
            reward = np.array(told.reward(self.sim, command, xi), np.float64)
            rows = command if told.control is None else told.control(self.sim, command, xi)
            self.sim.ctrl[:] = np.asarray(rows).T
            ids = None if active.all() else np.flatnonzero(active)
            self._run(lambda: self.sim.step(ids, nstep=self._env.substeps, stage=self._stage))
            failed = self.diverged
            return reward, failed if told.failed is None else failed | np.asarray(told.failed(self.sim, xi), bool)

    @property
    def diverged(self) -> Bool[np.ndarray, "n"]:
        """Which simulations MuJoCo has warned of since they began; they have failed."""
        return (self.sim.warning[:, :, 1] > self._warned).any(axis=1)

    def close(self) -> None:
        """Let go of the simulations, and of their memory."""
        del self.sim
        _give_back()

    def _start(self, seeds: UInt32[np.ndarray, "n"]) -> None:
        draw, sim = self._env.functions.start, self.sim
        if draw is None:
            return
        for i, seed in enumerate(seeds):
            turn_of(i)
            rng = np.random.Generator(np.random.Philox(int(seed)))
            sim.qpos[i], sim.qvel[i] = draw(rng, sim.qpos[i].copy(), sim.qvel[i].copy())

    def _run(self, call: Any) -> None:
        try:
            call()
        except self._error as error:
            raise MachineError(int(error.ids[0]), str(error)) from error


def _give_back() -> None:
    """Give free memory back to the system, where the C library can.

    Each simulation has an arena of megabytes, of which it touches a little, at another place each time. What was
    touched once would stay in memory, until a long run has touched all of it.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def _write(sim: Any, env: "MuJoCoEnv", domains: HostDomains) -> None:
    """Every simulation its own numbers in the compiled model, and what MuJoCo derives of them set anew."""
    for field, entries, values in writings(env.model, env.drawn(domains)):
        sim.expand(field).reshape(sim.nsim, -1)[:, list(entries)] = values
    sim.set_const()


def _recompiled(env: "MuJoCoEnv", domains: HostDomains) -> list[Any]:
    """A model for each machine; machines of the same domain share theirs."""
    mujoco = installed()
    rows = np.stack([domains[name] for name in domains], axis=1)
    _, first, which = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    models = []
    for machine in first:
        turn_of(int(machine))
        model = env.recompiled(domains, int(machine))
        one = {name: column[machine : machine + 1] for name, column in domains.items()}
        for field, entries, values in writings(model, env.drawn(one)):
            holder, name = (model.opt, field[4:]) if field.startswith("opt.") else (model, field)
            whole = np.asarray(getattr(holder, name))
            if whole.ndim == 0:
                setattr(holder, name, float(values[0, 0]))
            else:
                whole.reshape(-1)[list(entries)] = values[0]
        mujoco.mj_setConst(model, mujoco.MjData(model))
        models.append(model)
    return [models[i] for i in which.reshape(-1)]
