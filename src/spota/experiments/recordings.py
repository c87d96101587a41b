"""The paper's table against recordings of a real machine: is it covered, which machine is it, and what follows.

Real recordings decide whether a table covers the machine and which machine it is; everything after that, returns and
certificates, happens in a simulator that was fitted to them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from spota.analysis.standings import Standings, compare
from spota.envs import make
from spota.fit.coordinates import Plain
from spota.fit.covering import applies
from spota.fit.fitting import Fit, Settings, fit
from spota.fit.holding_out import LEAD, ahead, nominal, watched
from spota.fit.recording import measured
from spota.fit.recording_file import read_all
from spota.fit.segments import Segments, cut
from spota.fit.verdict import Coverage
from spota.runs import plan
from spota.runs.directory import Run
from spota.runs.plan import Plan
from spota.sim.env import Env, Platform, Policy

WIDEN = {
    "cart-pole": ("pole_length=0.05:0.3", "cart_mass=3", "torque_constant=3"),
    "qube": ("1.5",),
}
"""Where the recordings say that the table is too narrow."""
CHIRPS = {"cart-pole": "sample:cart-pole/chirp*", "qube": "sample:qube/chirp*"}
SWING_UPS = {"cart-pole": "sample:cart-pole/swing-up*", "qube": "sample:qube/swing-up*"}
ROWS = 40
"""Machines of a fit that predict the swing-ups."""


@dataclass(frozen=True)
class Machine:
    """What recordings say about one real machine."""

    paper: Coverage
    """Whether the paper's table covers it."""
    fit: Fit
    held_out: Coverage
    """Whether the fitted table covers the recordings that were not fitted."""
    swing_ups: dict[str, dict[str, float]]
    """Errors over half a second of swing-ups, which nobody fitted: by signal, fitted and nominal."""

    def to_dict(self) -> dict[str, Any]:
        """In figures."""
        held = self.fit.held_out.to_dict()
        learned = {row.name: {"mean": row.mean, "std": row.std, "spread_left": row.ratio} for row in self.fit.learned}
        covered = {"paper": self.paper.to_dict(), "fitted": self.held_out.to_dict()}
        return {"applies": covered, "learned": learned, "held_out": held, "swing_ups": self.swing_ups}


def machine(name: str, directory: Path, seed: int, quick: bool, warn: Callable[[str], None]) -> Machine:
    """Ask the recordings of a real machine; the fit stays in `directory`."""
    env, key = make(name), jax.random.key(seed)
    assert isinstance(env, Env)
    chirps, swings = read_all([CHIRPS[name]], env), read_all([SWING_UPS[name]], env)
    machines = 99 if quick else 199
    paper = applies(jax.random.fold_in(key, 1), env, chirps, machines)
    settings = Settings(WIDEN[name], seed=seed)
    config = {"env": name, "algo": "fit", "recordings": [r.sha256 for r in chirps], **vars(settings)}
    with Run(directory, config, warn=warn) as run:
        found = fit(env, chirps, settings, run)
    fresh = [r for r in chirps if r.name not in found.fitted]
    held_out = applies(jax.random.fold_in(key, 2), found.env, fresh, machines)
    return Machine(paper, found, held_out, swing_up_errors(env, found, cut(swings, env, 10, LEAD)))


def swing_up_errors(env: Env, found: Fit, segments: Segments) -> dict[str, dict[str, float]]:
    """Half a second ahead, after a lead: the mean prediction of fitted machines, and the nominal one's."""
    names = tuple(found.env.domain)
    rows = {n: np.asarray(x) for n, x in found.env.domain.sample(jax.random.key(0), ROWS).items()}
    fitted, middle = Plain(names, {}), np.array([np.median(rows[n]) for n in names])
    start, _ = watched(found.env, fitted, middle, found.noise, segments)
    off = ahead(found.env, fitted, np.stack([rows[n] for n in names]), start[:, None], segments).mean(axis=2)
    system, z = nominal(env)
    start, _ = watched(env, system, z, found.noise, segments)
    errors = {"fitted": off, "nominal": ahead(env, system, z[:, None], start[:, None], segments)[:, :, 0]}
    by_signal = {kind: np.sqrt((r**2).mean(axis=(0, 2))) for kind, r in errors.items()}
    return {s.name: {k: float(v[i]) for k, v in by_signal.items()} for i, s in enumerate(measured(env))}


def plans(name: str, fitted: Path, seed: int, quick: bool) -> dict[str, Plan]:
    """A policy for the paper's table, and one for the fitted one."""
    about = {"env": name, "seed": seed, "preset": "quick" if quick else "tuned"}
    return {"paper": plan.resolve(None, about), "fitted": plan.resolve(None, {**about, "domain": str(fitted)})}


def on_the_machine(seed: int, env: Platform, policies: dict[str, Policy], rows: int = 1000) -> Standings:
    """What policies earn on machines that the recordings allow."""
    k_domains, k_rollouts = jax.random.split(jax.random.key(seed + 17))
    return compare(k_rollouts, env, policies, env.domain.sample(k_domains, rows))
