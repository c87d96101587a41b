"""Run policies on the same domains with the same random numbers, and sweep one or two parameters.

Every policy meets the same domains with the same keys, so the same start states and the same noise; so does every
point of a sweep. Policies run one after the other: adding or reordering them changes no number of the others.

policies = {"pd": find("pd", env), "mine": find("runs/a", env)}
sweep(jax.random.key(0), env, policies, {"ball_mass": span(env, "ball_mass")}).mean    # [policies, points]
"""

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from spota.sim import devices, randomness, rollout
from spota.sim.domain import Domains, chosen, count
from spota.sim.env import Platform, Policy
from spota.sim.marginals import Bernoulli, Integers
from spota.sim.randomness import checked_seed
from spota.sim.rollout import Outcome
from spota.text import check_choice

ROLLOUTS = 360
"""Rollouts at each point of a sweep, as in the paper."""
PART = 8 * rollout.CHUNK
"""Rollouts between two words about the progress."""
OTHERS = ("nominal", "random")

Policies = Mapping[str, Policy]
Tell = Callable[[float], None]
"""Hears which share of the work is done."""
Values = Float[np.ndarray, "_"]


def evaluation_key(seed: int) -> Key[Array, ""]:
    """A key that no training with the same seed shares.

    `split(key(seed), n)` begins with the same keys for every n, and a training draws its domains from the first one:
    domains that are called unseen must come from elsewhere.
    """
    return jax.random.fold_in(jax.random.key(checked_seed(seed)), zlib.crc32(b"evaluate"))


def evaluation_keys(seed: int) -> tuple[Key[Array, ""], Key[Array, ""]]:
    """One key for unseen domains, one for the rollouts on them; `sweep` splits its key likewise."""
    k_domains, k_rollouts = jax.random.split(evaluation_key(seed))
    return k_domains, k_rollouts


@dataclass(frozen=True)
class Axis:
    """A swept parameter and the values that it takes."""

    name: str
    unit: str
    meaning: str
    nominal: float
    support: tuple[float, float]
    """Where the distribution draws its values from; a sweep may go beyond."""
    values: Values


@dataclass(frozen=True)
class Sweep:
    """Returns over one parameter, or over two as a map; points stand in the order of the axes."""

    env: str
    axes: tuple[Axis, ...]
    policies: tuple[str, ...]
    others: str
    """What the other parameters are: nominal, random, or a given set."""
    noise: bool
    """Whether observations were noisy."""
    max_return: float
    returns: Float[np.ndarray, "policies *points rollouts"]
    survived: Bool[np.ndarray, "policies *points rollouts"]

    def __post_init__(self):
        """Results are not to be written to."""
        for array in (self.returns, self.survived):
            array.setflags(write=False)

    @property
    def mean(self) -> Float[np.ndarray, "policies *points"]:
        """Mean return at each point."""
        return self.returns.mean(axis=-1)

    @property
    def std(self) -> Float[np.ndarray, "policies *points"]:
        """Standard deviation of the return at each point."""
        return self.returns.std(axis=-1)

    @property
    def survival(self) -> Float[np.ndarray, "policies *points"]:
        """Share of the rollouts that lasted until the time limit."""
        return self.survived.mean(axis=-1)

    def quantile(self, share: float) -> Float[np.ndarray, "policies *points"]:
        """The return that this share of the rollouts stays below."""
        return np.quantile(self.returns, share, axis=-1)

    def to_dict(self) -> dict[str, Any]:
        """The figures of every point, for JSON."""
        figures = {"mean": self.mean, "std": self.std, "quantile_10": self.quantile(0.1)}
        figures |= {"quantile_90": self.quantile(0.9), "survival": self.survival}
        return {
            "env": self.env,
            "others": self.others,
            "noise": self.noise,
            "rollouts": self.returns.shape[-1],
            "max_return": self.max_return,
            "axes": [{**vars(axis), "values": axis.values.tolist()} for axis in self.axes],
            "policies": {
                name: {what: values[k].tolist() for what, values in figures.items()}
                for k, name in enumerate(self.policies)
            },
        }


def span(
    env: Platform, parameter: str, points: int = 21, low: float | None = None, high: float | None = None
) -> Float[np.ndarray, "_"]:
    """Values to sweep, over the distribution unless given ends; whole ones where only those make sense."""
    if points < 2:
        raise ValueError(f"{points} points are no sweep; ask for at least 2.")
    marginal = env.domain[parameter].marginal
    ends = zip((low, high), marginal.usual_range, strict=True)
    low, high = (float(end if given is None else given) for given, end in ends)
    if not low < high:
        raise ValueError(
            f"{parameter} from {low:g} to {high:g} is no range; say from where to where, the lower end first "
            f"(nominal: {env.domain[parameter].nominal_value:g} {env.domain[parameter].unit})."
        )
    values = np.linspace(low, high, points)
    whole = isinstance(marginal, Integers | Bernoulli) or parameter == env.effects.delay.parameter
    return np.unique(np.round(values)) if whole else values


def sweep(
    key: Key[Array, ""],
    env: Platform,
    policies: Policies,
    values: Mapping[str, Any],
    others: Literal["nominal", "random"] | Domains = "nominal",
    rollouts: int = ROLLOUTS,
    tell: Tell | None = None,
) -> Sweep:
    """Returns [policies, points, rollouts] over the values of one parameter (fig_QBB_QCP_sim_eval_dp_range), or of two.

    All points and policies have the same start states and noise. With `others="random"`, or with domains of your own,
    rollout j meets the same other parameters at every point; whole rows are kept, the swept value alone is replaced.
    Values beyond the distribution's support are fine as long as they make physical sense.
    """
    if len(values) not in (1, 2):
        raise ValueError(f"A sweep is over one parameter or two, but {', '.join(values) or 'none'} was given.")
    check_request(policies, rollouts)
    axes = tuple(_axis(env, name, some) for name, some in values.items())
    k_domains, k_rollouts = jax.random.split(key)
    domains, index = _at_every_point(_others(k_domains, env, others, rollouts), axes)
    env, keys = roomy(env, domains), randomness.chosen(jax.random.split(k_rollouts, rollouts), index)
    found = [
        run(env, policy, domains, keys, within(tell, i, len(policies))) for i, policy in enumerate(policies.values())
    ]
    shape = (len(found), *(axis.values.size for axis in axes), rollouts)
    returns = np.stack([np.asarray(o.returns, np.float64) for o in found]).reshape(shape)
    survived = np.stack([np.asarray(o.survived) for o in found]).reshape(shape)
    label = others if isinstance(others, str) else f"{count(others)} given domains"
    noisy = env.effects.noise is not None
    return Sweep(env.name, axes, tuple(policies), label, noisy, env.max_return, returns, survived)


def run(env: Platform, policy: Policy, domains: Domains, keys: Key[Array, "n"], tell: Tell | None = None) -> Outcome:
    """One rollout per domain: returns and survival [n, 1], in equal parts so that the progress can be told."""
    n = keys.shape[0]
    parts = -(-n // PART)
    found = []
    for part, (index, _) in enumerate(devices.pieces(n, -(-n // parts))):
        theirs = randomness.chosen(keys, index[:, None])
        found.append(rollout.returns(env, policy, chosen(domains, index), theirs))
        within(tell, part, parts)(1.0)
    returns, survived = (np.concatenate([getattr(o, what) for o in found])[:n] for what in ("returns", "survived"))
    return Outcome(returns, survived)


def roomy(env: Platform, domains: Domains) -> Platform:
    """The platform, with a buffer that holds the longest delay of these domains."""
    env.domain.check(domains)
    delay = env.effects.delay
    longest = int(np.max(np.asarray(domains[delay.parameter]))) if delay.parameter in domains else 0
    return env if longest <= delay.longest else env.with_effects(delay=replace(delay, longest=longest))


def nominal(env: Platform, n: int = 1) -> Domains:
    """The nominal domain, n times, with a whole delay: the mean of observed ones is none."""
    domains, delay = env.domain.nominal(n), env.effects.delay.parameter
    return {**domains, delay: jnp.round(domains[delay])} if delay in domains else domains


def _at_every_point(base: Domains, axes: tuple[Axis, ...]) -> tuple[Domains, np.ndarray]:
    """The same domains at every point but for the swept values, and the row of `base` that each one comes from."""
    points = np.meshgrid(*(axis.values for axis in axes), indexing="ij")
    index = np.tile(np.arange(count(base)), points[0].size)
    swept = {a.name: np.repeat(p.reshape(-1), count(base)) for a, p in zip(axes, points, strict=True)}
    columns = {name: jnp.asarray(column, jnp.float32) for name, column in swept.items()}
    return {**chosen(base, index), **columns}, index


def _others(key: Key[Array, ""], env: Platform, others: str | Domains, rollouts: int) -> Domains:
    """One domain a rollout; of given ones, as many as are needed, from the first again if there are too few."""
    if not isinstance(others, str):
        env.domain.check(others)
        return chosen(others, np.arange(rollouts) % count(others))
    check_choice("others", others, OTHERS)
    return nominal(env, rollouts) if others == "nominal" else env.domain.sample(key, rollouts)


def _axis(env: Platform, name: str, values: Any) -> Axis:
    env.domain.grid(name, values)  # refuses what is unknown, not finite or physically impossible
    p = env.domain[name]
    return Axis(name, p.unit, p.meaning, p.nominal_value, p.marginal.support, np.asarray(values, np.float64))


def check_request(policies: Policies, rollouts: int) -> None:
    """Refuse to evaluate nothing."""
    if not policies:
        raise ValueError("No policy was given; give at least one, e.g. {'lqr': find('lqr', env)}.")
    if rollouts < 1:
        raise ValueError(f"rollouts = {rollouts}: ask for at least 1.")


def within(tell: Tell | None, done: int, total: int) -> Tell:
    """Tell the progress of one of `total` equal pieces of work as progress of the whole."""
    return lambda share: None if tell is None else tell((done + share) / total)
