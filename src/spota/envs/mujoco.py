"""MuJoCo models as platforms: `spota.mujoco("robot.xml", …)`, many simulations side by side on `mujoco.batch`.

A domain is a copy of the compiled model with other numbers in it, each where its target says (`mujoco_targets`), or a
model that was compiled anew. A simulation that diverges is a failure: MuJoCo's silent reset is off.
"""

import contextlib
import functools
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, UInt32

from spota.envs import mujoco_pictures
from spota.envs.mujoco_machines import MuJoCoMachines, installed
from spota.envs.mujoco_targets import Target, resolve
from spota.sim.domain import DomainDistribution
from spota.sim.effects import Effects
from spota.sim.env import Signal
from spota.sim.host import Draw, HostDomains, HostEnv, Machines
from spota.text import suggest

Recompile = Callable[[Any, float], None]
"""(MjSpec, value) → nothing: changes the model before it is compiled."""
Xi = HostDomains
Rows = Float[np.ndarray, "d n"] | Sequence[Float[np.ndarray, "n"]]
Start = Callable[[np.random.Generator, np.ndarray, np.ndarray], tuple[Any, Any]]
"""(random numbers, qpos0, qvel0) → qpos, qvel of one machine."""
Place = Callable[[Any, Mapping[str, np.ndarray], Xi], None]
"""(simulations, observed signals by name, ξ) → nothing: sets qpos and qvel of every simulation."""


def mujoco(
    model: str | Path | Any,
    *,
    domain: DomainDistribution,
    targets: Mapping[str, str | Recompile | Sequence[str]],
    observations: Sequence[Signal],
    observe: Callable[[Any, Xi], Rows],
    reward: Callable[[Any, np.ndarray, Xi], np.ndarray],
    dt: float,
    max_steps: int,
    max_reward: float,
    min_reward: float = 0.0,
    failed: Callable[[Any, Xi], np.ndarray] | None = None,
    start: Start | None = None,
    control: Callable[[Any, np.ndarray, Xi], Any] | None = None,
    derived: Mapping[str, Callable[[Xi], np.ndarray]] | None = None,
    actions: Sequence[Signal] | None = None,
    place: Place | None = None,
    effects: Effects | None = None,
    name: str | None = None,
    at_once: int = 1024,
    time_limit: float = 60.0,
) -> "MuJoCoEnv":
    """A MuJoCo model as a platform to train and certify on.

    Functions get n simulations side by side, a `mujoco.batch.Batch` with arrays [n, …], and ξ by name, [n] each.

    Args:
        model: The file of a model (.xml), or an `MjSpec`.
        domain: What is random about it.
        targets: Where each parameter acts: `body/pole.mass`, `joint/slide.damping`, `geom/floor.friction[0]`,
            `actuator/u.gear[0] *` (times the compiled value), `opt.gravity[2] +`; several as a list; or a function
            (MjSpec, value) that changes the model before it is compiled. What only effects or functions use has none.
        observations: What the policy sees: name, unit and usual range of each signal.
        observe: (simulations, ξ) → one row of n numbers for each signal.
        reward: (simulations, command, ξ) → n rewards, of the state before the step and the command [a, n] that acts.
        dt: Seconds between two decisions; a multiple of the model's timestep.
        max_steps: Decisions in an episode.
        max_reward: No reward is above it, and none is below min_reward.
        failed: (simulations, ξ) → whether each of n episodes ends in failure here. A diverged one does in any case.
        start: (random numbers, qpos, qvel) → qpos and qvel of one machine; by default those of the model.
        control: (simulations, command, ξ) → one row of n numbers for each actuator; by default the command itself.
        derived: Further targets whose values follow from ξ: `{"actuator/u.gear[0]": lambda xi: xi["a"] * xi["b"]}`.
        actions: Names, units and ranges of the commands; by default the actuators' own.
        place: (simulations, signals, ξ): sets `qpos` and `qvel` to where signals, `{"x": [n], …}`, were observed; only
            `applies` and `fit` need it, which begin where recordings were.
        effects: Noise, delay, offset, dead band.
        name: What it is called; by default as the file is.
        at_once: Simulations side by side at most.
        time_limit: Seconds after which a step of all of them counts as hanging.
    """
    package, spec = installed(), _spec(model)
    compiled = _compiled(spec)
    _check_parameters(domain, targets)
    here = MuJoCoEnv(
        domain=domain, effects=effects or Effects(), name=name or _name(model), dt=dt, max_steps=max_steps,
        max_reward=max_reward, min_reward=min_reward, observations=tuple(observations),
        actions=tuple(actions) if actions is not None else _signals(compiled), at_once=at_once, time_limit=time_limit,
        spec=spec, model_sha256=_digest(package, compiled), targets=dict(targets), derived=dict(derived or {}),
        substeps=_substeps(compiled, dt), functions=Functions(observe, reward, failed, start, control), place=place,
    )  # fmt: skip
    here.resolved  # noqa: B018, refuses targets that do not exist
    return here


@dataclass(frozen=True)
class Functions:
    """What a user writes about a model."""

    observe: Callable[[Any, Xi], Rows]
    reward: Callable[[Any, np.ndarray, Xi], np.ndarray]
    failed: Callable[[Any, Xi], np.ndarray] | None
    start: Start | None
    control: Callable[[Any, np.ndarray, Xi], Any] | None


@dataclass(frozen=True, eq=False, kw_only=True)
class MuJoCoEnv(HostEnv):
    """What `spota.mujoco` returns."""

    name: str  # type: ignore[misc]
    dt: float  # type: ignore[misc]
    max_steps: int  # type: ignore[misc]
    max_reward: float  # type: ignore[misc]
    min_reward: float  # type: ignore[misc]
    observations: tuple[Signal, ...]  # type: ignore[misc]
    actions: tuple[Signal, ...]  # type: ignore[misc]
    at_once: int  # type: ignore[misc]
    time_limit: float  # type: ignore[misc]
    spec: Any
    model_sha256: str
    """Of the compiled model, meshes and all: part of the platform's identity."""
    targets: Mapping[str, str | Recompile | Sequence[str]]
    derived: Mapping[str, Callable[[Xi], np.ndarray]]
    substeps: int
    functions: Functions
    place: Place | None = None

    @functools.cached_property
    def model(self) -> Any:
        """The compiled nominal model."""
        return _compiled(self.spec)

    @functools.cached_property
    def resolved(self) -> dict[str, tuple[Target, ...]]:
        """The targets of every parameter that has some, by its name."""
        told = {n: (t,) if isinstance(t, str) else tuple(t) for n, t in self.targets.items() if not callable(t)}
        return {name: tuple(resolve(self.model, one) for one in several) for name, several in told.items()}

    @functools.cached_property
    def derived_targets(self) -> list[tuple[Target, Callable[[Xi], np.ndarray]]]:
        """The targets whose values follow from several parameters."""
        return [(resolve(self.model, target), function) for target, function in self.derived.items()]

    @property
    def recompiling(self) -> dict[str, Recompile]:
        """The parameters for which the model is compiled anew."""
        return {name: target for name, target in self.targets.items() if callable(target)}

    def drawn(self, domains: Xi) -> list[tuple[Target, Float[np.ndarray, "n"]]]:
        """All targets with their values on n domains."""
        own = [(target, domains[name]) for name, several in self.resolved.items() for target in several]
        return own + [(target, np.asarray(f(domains), np.float64)) for target, f in self.derived_targets]

    def recompiled(self, domains: Xi, machine: int) -> Any:
        """The model of one domain, compiled anew, before its targets are written."""
        spec = self.spec.copy()
        for name, change in self.recompiling.items():
            change(spec, float(domains[name][machine]))
        return _compiled(spec)

    def open(self, domains: HostDomains, seeds: UInt32[np.ndarray, "n"]) -> MuJoCoMachines:
        """One simulation per domain, at its start state."""
        return MuJoCoMachines(self, domains, seeds)

    def pictured(
        self, domains: HostDomains, seeds: UInt32[np.ndarray, "n"]
    ) -> contextlib.AbstractContextManager[tuple[Machines, Draw]]:
        """The same simulations, and MuJoCo's renderer, which draws the first of them."""
        return mujoco_pictures.pictured(self, domains, seeds)

    @property
    def lacks(self) -> str | None:
        """A function that places simulations, unless there is one."""
        words = "spota.mujoco(…, place=lambda sim, signals, xi: …), which sets sim.qpos and sim.qvel"
        return words if self.place is None else None

    def open_at(self, domains: HostDomains, observation: Float[np.ndarray, "d n"]) -> MuJoCoMachines:
        """One simulation per domain, where these signals were observed."""
        machines = self.open(domains, np.zeros(observation.shape[1], np.uint32))
        machines.place({s.name: row for s, row in zip(self.observations, observation, strict=True)})
        return machines


def _spec(model: Any) -> Any:
    package = installed()
    if isinstance(model, package.MjSpec):
        return model.copy()
    path = Path(model)
    if not path.is_file():
        raise ValueError(f"There is no model {str(model)!r} in {Path.cwd()}; give the file of a MuJoCo model (.xml).")
    try:
        return package.MjSpec.from_file(str(path))
    except ValueError as error:
        raise ValueError(f"{path.name} is no MuJoCo model: {' '.join(str(error).split())}") from error


def _compiled(spec: Any) -> Any:
    """A compiled model whose simulations do not reset themselves silently when they diverge."""
    model = spec.compile()
    model.opt.disableflags |= int(installed().mjtDisableBit.mjDSBL_AUTORESET)
    return model


def _digest(package: Any, model: Any) -> str:
    data = np.zeros(package.mj_sizeModel(model), np.uint8)
    package.mj_saveModel(model, None, data)
    return hashlib.sha256(data.tobytes()).hexdigest()


def _name(model: Any) -> str:
    own = Path(model).stem if isinstance(model, str | Path) else model.modelname
    return (own or "mujoco").replace(" ", "-").replace("_", "-").lower()


def _substeps(model: Any, dt: float) -> int:
    """How often MuJoCo steps in one step of ours."""
    timestep = float(model.opt.timestep)
    substeps = round(dt / timestep)
    if substeps < 1 or abs(substeps * timestep - dt) > 1e-9:
        near = max(1, substeps) * timestep
        raise ValueError(f"dt = {dt:g} s is no multiple of the model's timestep of {timestep:g} s; write dt={near:g}.")
    return substeps


def _signals(model: Any) -> tuple[Signal, ...]:
    """The actuators as commands; each needs a range."""
    found = []
    for i in range(model.nu):
        actuator = model.actuator(i)
        label = actuator.name or f"actuator_{i}"
        if not actuator.ctrllimited[0]:
            raise ValueError(
                f"The actuator {label!r} has no ctrlrange, so nobody knows what an action of 1 means; give it one in "
                f"the model, or write actions=(Signal({label!r}, 'N', -1.0, 1.0), …)."
            )
        found.append(Signal(label, "-", *map(float, actuator.ctrlrange)))
    return tuple(found)


def _check_parameters(domain: DomainDistribution, targets: Mapping[str, Any]) -> None:
    for name in targets:
        if name not in domain:
            raise ValueError(f"targets names {name!r}, which the domain distribution lacks; {suggest(name, domain)}")
