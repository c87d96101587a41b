"""Which parameter costs the return? Shares of its variance, the worst domains, and what to measure first.

print(explain(jax.random.key(0), env, "mine", policy))
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float, Key

from spota.analysis.evaluate import Policies, Tell, run
from spota.analysis.information import FEWEST, Gain, Information, information
from spota.analysis.sobol import NOISE, Indices, sobol
from spota.analysis.worst import WorstDomain, worst_domains
from spota.certify.comparison import Solved
from spota.files.blocks import read_block
from spota.policies import Network
from spota.runs.config import read_toml
from spota.runs.directory import fingerprint_of
from spota.sim.domain import Domains, Empirical, count, repeat
from spota.sim.env import Platform, Policy
from spota.text import figure, percent


@dataclass(frozen=True)
class Explanation:
    """What moves a policy's return, where it fails, and what to measure first."""

    env: str
    policy: str
    max_return: float
    indices: Indices | None
    """None for an `Empirical` distribution: shares of the variance need independent parameters."""
    information: Information | None
    """None without other policies to choose from."""
    worst: tuple[WorstDomain, ...]
    units: Mapping[str, str]
    nominal: Mapping[str, float]

    @property
    def measure_first(self) -> list[str]:
        """What to measure, most useful first: what earns something, then what tells something; both for certain."""
        telling = [] if self.indices is None else self.indices.telling
        return [*self.earning, *(name for name in telling if name not in self.earning)]

    @property
    def earning(self) -> list[str]:
        """The parameters that are worth something to know, for certain, largest gain first."""
        known = self.information
        return [] if known is None else [name for name in known.ranking if known.gains[name].certain]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        parts = {"indices": self.indices, "information": self.information}
        return {
            "env": self.env,
            "policy": self.policy,
            "max_return": self.max_return,
            **{name: None if part is None else part.to_dict() for name, part in parts.items()},
            "measure_first": self.measure_first,
            "worst": [w.to_dict() for w in self.worst],
            "units": dict(self.units),
            "nominal": dict(self.nominal),
            "words": str(self),
        }

    def __str__(self) -> str:
        """In words."""
        return "\n".join([_variance_words(self.indices), _measure_words(self), _worst_words(self)])


def explain(
    key: Key[Array, ""],
    env: Platform,
    name: str,
    policy: Policy,
    others: Policies | None = None,
    domains: Domains | None = None,
    *,
    n: int = 1000,
    tell: Callable[[str, float], None] | None = None,
) -> Explanation:
    """Attribute the return of a policy; `others` are policies that one could take instead.

    n domains are drawn for each part; `domains`, if given, are used instead where any will do (the value of
    information, the worst that were drawn).
    """
    if n < FEWEST:
        raise ValueError(f"{n} domains are too few to attribute anything; take at least {FEWEST}, better 1000.")
    k_indices, k_domains, k_information, k_worst = jax.random.split(key, 4)

    def telling(what: str) -> Tell:
        return lambda share: None if tell is None else tell(what, share)

    def model(some: Domains, keys: Key[Array, "n"]) -> Float[np.ndarray, "n"]:
        return np.asarray(run(env, policy, some, keys, telling("shares of the variance")).returns[:, 0], np.float64)

    indices = None if isinstance(env.domain, Empirical) else sobol(k_indices, env.domain, model, n)
    drawn = env.domain.sample(k_domains, n) if domains is None else domains
    choice = {name: policy, **(others or {})}
    known = None
    if others:
        known = _information_of(k_information, env, choice, drawn, telling("the value of knowing"))
    worst = worst_domains(k_worst, env, policy, domains, n=n, tell=telling("the worst domains"))
    units = {parameter: p.unit for parameter, p in env.domain.items()}
    nominal = {parameter: p.nominal_value for parameter, p in env.domain.items()}
    return Explanation(env.name, name, env.max_return, indices, known, worst, units, nominal)


def alternatives(directory: Path, policy: Policy) -> dict[str, Policy]:
    """The references of the newest iteration in a run directory; none if it has none, or if they are no networks."""
    newest = max(directory.glob("iteration-*"), default=None)
    if newest is None or not isinstance(policy, Network):
        return {}
    found = [*newest.glob("references.npz"), *sorted(newest.glob("look-*/references.npz"))]
    policies = [one for path in found for one in _references_in(path, directory, policy)]
    return {f"reference {k + 1}": one for k, one in enumerate(policies)}


def _references_in(path: Path, directory: Path, like: Network) -> list[Network]:
    try:
        run_id = fingerprint_of(read_toml(directory / "config.toml"))
        arrays = read_block(path, path.relative_to(directory).with_suffix("").as_posix(), run_id)
        many = Solved.from_arrays(arrays, like).policy
    except Exception as error:  # whatever strange bytes provoke
        raise ValueError(f"{path} is damaged ({error}); let `spota train` write it again, or move it away.") from error
    n = jax.tree.leaves(many)[0].shape[0]
    return [jax.tree.map(lambda x, k=k: x[k], many) for k in range(n)]


def _information_of(
    key: Key[Array, ""], env: Platform, policies: Policies, domains: Domains, tell: Tell
) -> Information:
    k_rollouts, k_bootstrap = jax.random.split(key)
    n, m = count(domains), 2
    rows, keys = repeat(domains, m), jax.random.split(k_rollouts, n * m)
    returns = []
    for policy in policies.values():
        returns.append(np.asarray(run(env, policy, rows, keys).returns).reshape(n, m))
        tell(len(returns) / len(policies))
    return information(k_bootstrap, list(policies), np.stack(returns), domains)


def _variance_words(indices: Indices | None) -> str:
    if indices is None:
        return "The parameters depend on each other (rows of samples), so there are no shares of the variance."
    return (
        f"It earns {figure(indices.mean)} ± {figure(indices.std)} on random domains. Most of the spread comes from "
        f"{', '.join(f'{name} {_share(indices, name)}' for name in indices.ranking[:3])} (shares of the variance, "
        f"interactions included, with {percent(indices.confidence)} intervals); {_share(indices, NOISE)} would remain "
        "on a known domain, from start states and noise."
    )


def _share(indices: Indices, name: str) -> str:
    i = indices.names.index(name)
    low, high = 100 * indices.total_interval[i]
    return f"{100 * indices.total[i]:.0f} % [{low:.0f}, {high:.0f}]"


def _measure_words(found: Explanation) -> str:
    known = found.information
    if known is None:
        return f"One policy alone earns the same whatever is known. {_prediction_words(found.indices)}".strip()
    if found.earning:
        first = found.earning[0]
        return (
            f"Measure {first} first: choosing among {len(known.policies)} policies by its value earns "
            f"{_interval(known.gains[first])} more than always taking {known.best}; knowing everything would earn "
            f"{_interval(known.everything)}."
        )
    return (
        f"No single measurement earns anything for certain by a better choice among {len(known.policies)} policies; "
        f"knowing everything would earn {_interval(known.everything)}. {_prediction_words(found.indices)}"
    ).strip()


def _prediction_words(indices: Indices | None) -> str:
    """What to measure in order to predict the return better, as far as the samples carry it."""
    if indices is None:
        return ""
    if not indices.leading:
        return "Nor do these samples say what to measure in order to predict its return; take more of them (--samples)."
    best = indices.leading[0]
    i = indices.names.index(best)
    left, least, most = (
        indices.std * (1 - float(share)) ** 0.5 for share in (indices.first[i], *indices.first_interval[i, ::-1])
    )
    falls = f"from {figure(indices.std)} to {figure(left)} [{figure(least)}, {figure(most)}]"
    if len(indices.leading) == 1:
        return (
            f"To predict its return, measure {best} first: it tells most about it, and the standard deviation would "
            f"fall {falls}."
        )
    return (
        f"To predict its return, measure {' or '.join(indices.leading[:3])}: these samples do not say which tells more "
        f"about it. With {best} the standard deviation would fall {falls}."
    )


def _interval(gain: Gain) -> str:
    return f"{figure(gain.mean)} [{figure(gain.low)}, {figure(gain.high)}]"


def _worst_words(found: Explanation) -> str:
    worst = found.worst[0]
    said = [
        f"{name} = {worst.domain[name]:.3g}{_unit(found.units[name])} (nominal {found.nominal[name]:.3g})"
        for name in worst.causes[:3]
        if worst.recovery[name] > 0
    ]
    because = f", above all because of {'; '.join(said)}" if said else ""
    return (
        f"On the worst domain that was found it earns {figure(worst.returns)} and "
        f"{percent(worst.survival)} of the rollouts survive{because}."
    )


def _unit(unit: str) -> str:
    return "" if unit == "-" else f" {unit}"
