"""SPOTA from Python: `spota.train` and `spota.assess`."""

import contextlib
import hashlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, cast, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from rich.console import Console

from spota.certify.algorithm import Result
from spota.certify.assessment import Assessment
from spota.certify.events import Listener, to_all
from spota.certify.settings import Spota
from spota.cluster.connecting import engine_on, tasks_on
from spota.driver import drive, drive_assessment
from spota.envs import PLATFORMS, make
from spota.policies import find, fingerprint
from spota.policies.clipping import clipping_warning
from spota.policies.onnx_files import notes
from spota.polopt.solver import AnySolver
from spota.runs import config
from spota.runs.plan import OWN, Plan, complete, flag_tables
from spota.show.live import Live
from spota.sim import devices
from spota.sim.acting import followed, remembers
from spota.sim.checks import check_env
from spota.sim.env import Platform, Policy, Reactive
from spota.sim.host_policy import ready
from spota.sim.objects import recorded
from spota.text import suggest

Settings = Mapping[str, Any]
TRIED = 8
"""Steps after which two policies with memory that did the same are taken for one."""


def train(
    env: str | Platform,
    *,
    preset: config.Preset = "tuned",
    solver: str = "default",
    seed: int = 0,
    beta: float | None = None,
    max_minutes: float | None = None,
    memory: int | None = None,
    recurrent: int | None = None,
    settings: Spota | Settings | None = None,
    candidate: AnySolver | Settings | None = None,
    reference: AnySolver | Settings | None = None,
    out: str | Path | None = None,
    workers: str | None = None,
    progress: bool = False,
    listener: Listener | None = None,
) -> Result:
    """Train a policy until the upper bound on what it loses on unseen domains is at most β: Algorithm 1.

        result = spota.train("cart-pole", preset="quick", seed=0)
        print(result.certificate)
        result.policy.save("policy.npz")

    Args:
        env: A platform, its name, or `file.py:name` for one of your own, which executes that file.
        preset: tuned (our settings), quick (two to four minutes) or paper (the paper's numbers and interval).
        solver: The solvers inside: default (the platform's best), ppo, epopt, analytic, or `file.py:name`.
        seed: The same seed gives the same result.
        beta: The threshold β, in return.
        max_minutes: No iteration begins after this time.
        memory: Let the policy act on the last N observations and its own actions between them; references do, too.
        recurrent: Give the network so many units that remember; references have them, too.
        settings: Settings of Algorithm 1 that differ from the preset, e.g. {"n_c": 10}, or all of them.
        candidate: Settings of the candidate's solver that differ, e.g. {"iterations": 50}, or another solver: a
            function solve(key, env, domains, start) that returns a policy, see docs/contracts.md.
        reference: The same for the references.
        out: A run directory, which the same call continues if it was interrupted; without it nothing is written.
        workers: Where problems are solved: ray (this machine's cores), ray:4 (four workers on it) or ray://HOST:PORT
            (a cluster), see docs/cluster.md; without it, all in this process as one program.
        progress: Show on standard error how it goes.
        listener: A function that hears every event of the run.
    """
    devices.use_all_cores()
    _check_preset(preset)
    platform = _platform(env)
    given = {"spota": settings, "candidate": candidate, "reference": reference}
    head = _head(env, platform, preset=preset, solver=solver, seed=seed, tasks=tasks_on(workers))
    plan = _complete(head, platform, given, flag_tables(beta, max_minutes, memory=memory, recurrent=recurrent))
    display = _shown(progress, plan, platform, listener)
    with engine_on(workers, plan.tasks) as engine:
        return drive(plan, platform, _path(out), display, engine=engine).result


def assess(
    policy: str | Path | Policy,
    env: str | Platform,
    *,
    preset: config.Preset = "tuned",
    solver: str = "default",
    seed: int = 0,
    beta: float | None = None,
    against: Sequence[str | Path | Policy] = (),
    settings: Spota | Settings | None = None,
    candidate: AnySolver | Settings | None = None,
    reference: AnySolver | Settings | None = None,
    out: str | Path | None = None,
    workers: str | None = None,
    progress: bool = False,
    listener: Listener | None = None,
) -> Assessment:
    """A certificate for a policy that exists already, trained anywhere: any callable, a file, a run or a controller.

        print(spota.assess("policy.npz", "cart-pole").certificate)

    Each reference starts from the best, on its own domains, of: the policy itself (or a network that imitates it, if
    it is none of ours); a candidate of our own, which is trained on n_c other domains; and the policies in `against`,
    as files, run directories, controllers or objects. References have their full training in every preset. A quarter
    of them is trained three times as long, and what that gains is part of the bound (`effort_margin`).

        spota.assess("policy.npz", "cart-pole", against=["runs/a", "lqr"])

    The other arguments are those of `train`; `candidate` is the solver of our own candidate, by default the
    platform's.
    """
    devices.use_all_cores()
    _check_preset(preset)
    platform = _platform(env)
    name = str(policy) if isinstance(policy, str | Path) else None
    found = find(policy, platform) if isinstance(policy, str | Path) else ready(platform, policy)
    known = known_policies(against, platform)
    for told in notes(found, platform):
        warnings.warn(told, stacklevel=2)
    told_of_clipping = clipping_warning(platform, found, name or "the policy")
    if told_of_clipping:
        warnings.warn(told_of_clipping, stacklevel=2)
    source = {"policy": name, "policy_sha256": identity(found, platform), **named_in_plan(known, platform)}
    usual = {"algo": "assess", "preset": preset, "solver": solver, "seed": seed, "tasks": tasks_on(workers)}
    head = _head(env, platform, **usual, **source)
    given = {"spota": settings, "candidate": candidate, "reference": reference}
    plan = _complete(head, platform, given, flag_tables(beta))
    display = _shown(progress, plan, platform, listener)
    with engine_on(workers, plan.tasks) as engine:
        return drive_assessment(plan, platform, found, _path(out), display, against=known, engine=engine).assessment


def known_policies(sources: Sequence[str | Path | Policy], env: Platform) -> dict[str, Policy]:
    """Policies under the names that they were given by; objects are counted."""
    if isinstance(sources, str | Path):
        raise ValueError(f"against={str(sources)!r}: give a list of policies; write against=[{str(sources)!r}].")
    names = [str(s) if isinstance(s, str | Path) else f"policy {i}" for i, s in enumerate(sources, start=1)]
    again = [name for i, name in enumerate(names) if name in names[:i]]
    if again:
        raise ValueError(f"against: {again[0]} was given more than once.")
    found = [find(s, env) if isinstance(s, str | Path) else ready(env, s) for s in sources]
    return dict(zip(names, found, strict=True))


def named_in_plan(known: Mapping[str, Policy], env: Platform) -> dict[str, tuple[str, ...] | None]:
    """The known policies as config.toml keeps them: names and fingerprints."""
    sha256 = tuple(identity(policy, env) for policy in known.values())
    return {"against": tuple(known) or None, "against_sha256": sha256 or None}


def identity(policy: Policy, env: Platform) -> str:
    """The fingerprint of a policy or, if it is someone's own callable, of what it does where it may come."""
    ours = fingerprint(policy) if type(policy).__module__.startswith("spota.") else None
    low, high = (jnp.asarray([getattr(s, end) for s in env.observations])[:, None] for end in ("low", "high"))
    seen = low + (high - low) * jax.random.uniform(jax.random.key(0), (len(env.observations), 256))
    return ours or hashlib.sha256(np.asarray(_done(policy, seen)).tobytes()).hexdigest()


def _done(policy: Policy, seen: Float[Array, "d n"]) -> Float[Array, "*T a n"]:
    """What a policy does when it sees this; one with memory sees it in several orders, one after the other."""
    if not remembers(policy):
        return jnp.asarray(cast(Reactive, policy)(seen))
    return followed(policy, jnp.stack([jnp.roll(seen, shift, axis=1) for shift in range(TRIED)]))


def _check_preset(preset: str) -> None:
    names = get_args(config.Preset)
    if preset not in names:
        raise ValueError(f"There is no preset {preset!r}; {suggest(str(preset), names)}")


def _platform(env: str | Platform) -> Platform:
    """The platform of that name, or the given one if its methods fit together."""
    platform = make(env) if isinstance(env, str) else env
    if not isinstance(platform, Platform):
        raise ValueError(f"env = {env!r}: give the name of a platform, or an object of a class that extends spota.Env.")
    check_env(platform)
    return platform


def _head(given: str | Platform, env: Platform, **settings: Any) -> Plan:
    """The plan without its tables; a platform that `make` does not give is described."""
    if isinstance(given, str):
        return Plan(recorded(given), **settings)
    known = env.name in PLATFORMS and env is make(env.name)
    return Plan(env.name, **settings, platform=None if known else _about(env))


def _about(env: Platform) -> dict[str, Any]:
    """What is particular about a platform, for people to read; `env_sha256` tells it apart."""
    own = {f.name: repr(getattr(env, f.name)) for f in fields(env) if f.name not in ("domain", "effects")}
    return {"class": type(env).__qualname__, **own, "domain": env.domain.to_dict(), "effects": repr(env.effects)}


def _complete(head: Plan, env: Platform, given: Mapping[str, Any], limits: Mapping[str, Any]) -> Plan:
    """The plan with the arguments' settings and objects."""
    tables = {name: value for name, value in given.items() if value is not None}
    objects = [value for name, value in tables.items() if name != "spota" and not isinstance(value, Mapping)]
    plan = complete(head, env, [("the arguments", tables), ("the arguments", limits)])
    return replace(plan, solver=OWN) if objects else plan


def _path(out: str | Path | None) -> Path | None:
    return None if out is None else Path(out)


@contextlib.contextmanager
def _shown(progress: bool, plan: Plan, env: Platform, listener: Listener | None) -> Iterator[Listener | None]:
    """The listener, with the display before it if that is wanted."""
    if not progress:
        yield listener
        return
    console = Console(stderr=True, highlight=False, emoji=False)
    with Live(console, plan.env, env.max_return, plan.spota.beta) as live:
        yield to_all(live, listener)
