"""Train one policy on one set of domains, and see how it fares on domains that it has never met."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from spota import policies
from spota.files.blocks import Arrays, from_arrays, to_arrays
from spota.policies import Architecture, Network, Start, first_policy, new_network
from spota.policies.controllers import Beside, own_controller
from spota.policies.imitate import Round
from spota.polopt import default_domains, default_gains, default_hidden, default_start
from spota.polopt.imitating import imitation_progress
from spota.polopt.optimizer import refuse_memory
from spota.polopt.rows import Score
from spota.polopt.solve import Progress, Solution, Watch, solve
from spota.runs import config
from spota.runs.directory import Run
from spota.runs.platforms import keep_table, planned, table_digest
from spota.sim.domain import Domains
from spota.sim.env import Platform
from spota.sim.identity import platform_sha256
from spota.sim.objects import recorded
from spota.sim.randomness import checked_seed
from spota.sim.rollout import Outcome, returns
from spota.stats.bounds import worst_mean

UNSEEN = 500
"""Random domains of the closing evaluation, one rollout each."""
WORST = 0.2
"""The share of the returns whose mean says how bad it gets."""

Listen = Callable[[str, int], Watch]
"""(name of a block that begins, its domains) → who hears of its progress."""


@dataclass(frozen=True)
class Training:
    """Everything that decides the result; the run directory keeps it in config.toml."""

    env: str
    """The platform: a name, or `file.py:name` for one of someone's own."""
    env_sha256: str | None = None
    """Its identity, `identity.platform_sha256`; it is computed, whatever a file says."""
    domain: str | None = None
    """The file or directory with the table of distributions, if it is not the platform's own; the run keeps a copy."""
    domain_sha256: str | None = None
    """That table's digest, as certificates name it; it is computed, whatever a file says."""
    algo: str = "default"
    """How to train: a name of `config.ALGORITHMS`."""
    preset: config.Preset = "tuned"
    """Where the optimizer's settings start from."""
    domains: int = 10
    """Training domains."""
    nominal: bool = False
    """Whether all of them are the nominal domain."""
    seed: int = 0
    """The same seed gives the same domains, start states, noise and exploration."""
    hidden: tuple[int, ...] = (16, 16)
    """Sizes of the network's hidden layers."""
    memory: int | None = None
    """Observations that it acts on: the last one, or the last N with its own actions between them."""
    stride: int | None = None
    """Steps from one of them to the next; 1 unless told otherwise."""
    recurrent: int | None = None
    """Units that remember; none unless told otherwise."""
    start: Start = "new"
    """What it starts from: a new network, or one that imitates the platform's controller."""
    optimizer: Any = None
    """The optimizer with all its settings."""

    def __post_init__(self):
        """Refuse settings that cannot work."""
        if self.domains < 1:
            raise ValueError(f"domains = {self.domains}: train on at least 1 domain.")
        checked_seed(self.seed)
        if self.architecture.remembers:
            refuse_memory(self.optimizer)
        if self.nominal and getattr(self.optimizer, "fresh_domains", False):
            raise ValueError(
                f"{self.algo} draws fresh random domains, so it cannot train on the nominal one; "
                "leave out --nominal, or write --algo ppo."
            )

    @property
    def architecture(self) -> Architecture:
        """Of the network."""
        return Architecture.told(self.hidden, self.memory, self.stride, self.recurrent)


def resolve(file: Path | None, flags: Mapping[str, Any]) -> Training:
    """The settings from defaults and preset, then a TOML file, then flags (None: not given)."""
    given = {name: value for name, value in flags.items() if value is not None}
    from_file = config.read_toml(file) if file else {}
    inner, inner_from_file = given.pop("optimizer", {}), from_file.pop("optimizer", {})
    if not isinstance(inner_from_file, Mapping):
        raise ValueError(f"{file}: optimizer = {inner_from_file!r}: write a table [optimizer] with its settings.")
    head = config.build(Training, config.merge({**from_file}, given), str(file) if file else "the command line")
    head = replace(head, env=recorded(head.env), domain_sha256=None if "domain" in given else head.domain_sha256)
    env = planned(head, file and file.parent)
    start = head.start if "start" in {**from_file, **given} else default_start(env)
    if start == "controller":
        own_controller(env)  # refuses a platform without one
    solver = config.optimizer(head.algo, env, head.preset)
    if head.nominal and hasattr(solver, "smoothing"):
        solver = replace(solver, smoothing=0.0)  # around the nominal domain is not on it
    solver = config.override(solver, inner_from_file, f"{file} [optimizer]")
    solver = config.override(solver, inner, "--set")
    usual = {"domains": default_domains(solver), "hidden": default_hidden(solver)}
    sizes = {name: value for name, value in usual.items() if name not in {**from_file, **given}}
    digests = {"env_sha256": platform_sha256(env), "domain_sha256": table_digest(head, env)}
    found = {"start": start, "optimizer": solver, **digests}
    return Training(**{**vars(head), **sizes, **found})


@dataclass(frozen=True)
class Trained:
    """A trained policy and what it earns."""

    settings: Training
    env: Platform
    solution: Solution
    unseen: Outcome
    beside: Beside | None
    """The platform's own controller on the same unseen domains; None if it has none."""
    seconds: float

    @property
    def warnings(self) -> list[str]:
        """What a user should know before trusting the policy."""
        found = []
        if bool(self.solution.diverged):
            found.append(
                "The training diverged: an update was not finite and was left out. The best policy before is kept; "
                "try a smaller learning_rate."
            )
        if float(self.solution.score.returns) <= float(self.solution.start.returns):
            found.append(f"The training found nothing better than its start; the policy is {self._start}.")
        return found + (self.beside.warnings if self.beside else [])

    def to_dict(self) -> dict[str, Any]:
        """For result.json."""
        s = self.settings
        updates = s.optimizer.iterations * s.optimizer.rollouts_on(s.domains)[0] * self.env.max_steps
        return {
            "env": s.env,
            "algo": s.algo,
            "seed": s.seed,
            "domains": s.domains,
            "nominal": s.nominal,
            "start_from": s.start,
            "max_return": self.env.max_return,
            "own_domains": _figures(self.solution.score),
            "start": _figures(self.solution.start),
            "unseen_domains": statistics(self.unseen),
            "controller": self.beside.to_dict() if self.beside else None,
            "diverged": bool(self.solution.diverged),
            "iterations": s.optimizer.iterations,
            "environment_steps": updates,
            "seconds": self.seconds,
            "warnings": self.warnings,
        }

    def __str__(self) -> str:
        """In words."""
        s, own, start, far = self.settings, self.solution.score, self.solution.start, statistics(self.unseen)
        where = "the nominal domain" if s.nominal else f"{s.domains} random domain{'s' if s.domains > 1 else ''}"
        return (
            f"Trained {s.env} with {s.algo} on {where} in {self.seconds:.0f} s.\n"
            f"On its own domains the mean return went from {float(start.returns):.1f} to {float(own.returns):.1f} "
            f"(of at most {self.env.max_return:g}); {100 * float(own.survival):.1f} % of the rollouts survived.\n"
            f"On {far['n']} random domains that it has never seen it is {far['mean']:.1f} ± {far['std']:.1f}, "
            f"{far['worst_20_mean']:.1f} on the worst fifth; {100 * far['survival']:.1f} % survived."
            f"{f'{chr(10)}{self.beside}' if self.beside else ''}"
        )

    @property
    def _start(self) -> str:
        return "the untrained one" if self.settings.start == "new" else f"the imitation of {self.env.controller}"


def train(settings: Training, run: Run, listen: Listen | None = None) -> Trained:
    """Solve the problem, evaluate the policy on unseen domains, and leave both in the run directory."""
    env = planned(settings, run.directory)
    keep_table(run.directory, settings, env)
    k_domains, k_init, k_solve, k_unseen, k_rollouts = jax.random.split(jax.random.key(settings.seed), 5)
    n = settings.domains
    domains = env.domain.nominal(n) if settings.nominal else env.domain.sample(k_domains, n)
    init, imitating = _first(settings, env, k_init, run, listen)
    watch = listen("training", n) if listen else None
    found = run.block("solution", lambda: _solve(settings, env, k_solve, domains, init, run, watch))
    solution = from_arrays(found, _like(init))
    unseen, keys = env.domain.sample(k_unseen, UNSEEN), jax.random.split(k_rollouts, (UNSEEN, 1))
    outcome = returns(env, solution.policy, unseen, keys)
    beside = Beside.of(env, outcome, unseen, keys) if env.controller else None
    trained = Trained(settings, env, solution, outcome, beside, imitating + float(found["seconds"]))
    with run.writing("policy.npz") as path:
        policies.save(solution.policy, path)
    run.write_json("result.json", trained.to_dict())
    return trained


def progress_figures(progress: Progress) -> dict[str, Any]:
    """An optimizer's word for metrics.jsonl; means over its problems, if it solves several."""
    return {
        "iteration": progress.iteration,
        "returns": float(progress.returns.mean()),
        "survival": float(progress.survival.mean()),
        "best": float(progress.best.mean()),
        "steps": progress.steps,
        **{name: float(values.mean()) for name, values in progress.metrics.items()},
    }


def statistics(outcome: Outcome) -> dict[str, Any]:
    """Mean and standard deviation of the returns over domains, the mean of the worst fifth, the share that survived."""
    values = np.asarray(outcome.returns, np.float64).mean(axis=1)
    return {
        "n": values.size,
        "mean": float(values.mean()),
        "std": float(values.std()),
        "worst_20_mean": float(worst_mean(values, WORST)),
        "survival": float(np.mean(outcome.survived)),
    }


def _first(settings: Training, env: Platform, key: Any, run: Run, listen: Listen | None) -> tuple[Network, float]:
    """The policy before the first update, and the seconds that it took; an imitation is a block of the run."""
    new = new_network(key, env, settings.architecture, default_gains(settings.optimizer))
    if settings.start == "new":
        return new, 0.0
    watch = listen("imitation", 0) if listen else None

    def make_one() -> Arrays:
        began = time.perf_counter()

        def tell(one: Round):
            progress = imitation_progress(one)
            run.log(**progress_figures(progress), seconds=round(time.perf_counter() - began, 3))
            if watch is not None:
                watch(progress)

        policy = first_policy(key, env, settings.start, settings.architecture, tell)
        return {**to_arrays(policy), "seconds": np.array(time.perf_counter() - began)}

    found = run.block("imitation", make_one)
    return from_arrays(found, new), float(found["seconds"])


def _solve(
    settings: Training, env: Platform, key: Any, domains: Domains, init: Network, run: Run, watch: Watch | None
) -> Arrays:
    began, best = time.perf_counter(), None

    def tell(progress: Progress):
        nonlocal best
        best = progress.policy
        run.log(**progress_figures(progress), seconds=round(time.perf_counter() - began, 3))
        if watch is not None:
            watch(progress)

    try:
        solution = solve(settings.optimizer, key, env, domains, init, tell)
    except KeyboardInterrupt:
        if best is not None:
            with run.writing("policy.npz") as path:
                policies.save(jax.tree.map(lambda x: x[0], best), path)
        raise
    return {**to_arrays(solution), "seconds": np.array(time.perf_counter() - began)}


def _like(init: Network) -> Solution:
    """The structure of a solution that starts from that policy; its values do not matter."""
    zero = jnp.zeros(())
    score, curve = Score(zero, zero), jnp.zeros(1)
    return Solution(init, score, score, curve, curve, curve, jnp.array(False))


def _figures(score: Score) -> dict[str, float]:
    return {"mean": float(score.returns), "survival": float(score.survival)}
