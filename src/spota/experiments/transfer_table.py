"""What a policy earns over a line on machines of its table, beside the simulator and what its certificate says.

Few machines say little about an average over the table: their returns differ by more than what is asked. So each one
is also simulated, from the same start state: what the line changes is the mean of the differences, which is known well,
and with the certificate's mean over many simulated machines it gives the mean over the table.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from spota import policies
from spota.certify.certificate import Performance
from spota.deploy.emulator import drawn_domain
from spota.deploy.episode import episode
from spota.deploy.sources import Deployable
from spota.experiments.transfer import FIRST
from spota.sim import rollout
from spota.text import percent

MACHINES = 20
CONFIDENCE = 0.95


@dataclass(frozen=True)
class OnTheTable:
    """Returns of true states on the same machines, from the same start states; sensor noise differs."""

    line: np.ndarray
    """Over the line, a machine each."""
    simulated: np.ndarray
    certified: Performance | None = None

    @property
    def difference(self) -> tuple[float, float]:
        """What the line changes on average over machines, with its standard error."""
        return _mean(self.line - self.simulated)

    @property
    def interval(self) -> tuple[float, float] | None:
        """Where the mean over the whole table lies, over the line; None without a certificate that has bounds.

        The certificate's own mean is taken as it is: it comes from so many machines that its error is small beside.
        """
        if self.certified is None or not self.certified.in_range:
            return None
        change, error = self.difference
        half = float(stats.t.ppf((1 + CONFIDENCE) / 2, self.line.size - 1)) * error
        return self.certified.mean + change - half, self.certified.mean + change + half

    @property
    def holds(self) -> bool | None:
        """Whether the certificate's bound on the mean holds there; None if it lies inside the interval."""
        if self.interval is None or self.certified is None:
            return None
        low, high = self.interval
        return True if low >= self.certified.mean_lower else False if high < self.certified.mean_lower else None

    def __str__(self) -> str:
        """Two or three sentences."""
        (mean, error), (change, change_error) = _mean(self.line), self.difference
        said = (
            f"On {self.line.size} machines of the table it earned {mean:.1f} ± {error:.1f} over the line and "
            f"{self.simulated.mean():.1f} in the simulator, from the same start states: {change:+.1f} ± "
            f"{change_error:.1f} (standard errors)."
        )
        if self.interval is None or self.certified is None:
            return f"{said} There is no certificate with a bound to compare with."
        words = {True: "which holds", False: "which does NOT hold", None: "which is inside: both agree"}
        return (
            f"{said} With the certificate's {self.certified.mean:.1f} over {self.certified.n} simulated machines, the "
            f"mean over the table lies between {self.interval[0]:.1f} and {self.interval[1]:.1f} "
            f"({percent(CONFIDENCE)}); the certificate promises at least {self.certified.mean_lower:.1f}, "
            f"{words[self.holds]}."
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        (mean, error), (change, change_error) = _mean(self.line), self.difference
        own = self.certified if self.certified and self.certified.in_range else None
        return {
            "words": str(self), "holds": self.holds, "interval": self.interval, "mean": mean, "standard_error": error,
            "difference": change, "difference_standard_error": change_error,
            "certified_mean": own and own.mean, "certified_at_least": own and own.mean_lower,
            "line": self.line, "simulated": self.simulated,
        }  # fmt: skip


def on_the_table(policy: Deployable, seed: int = 0, machines: int = MACHINES) -> OnTheTable:
    """Try a policy on machines of its table that it has not seen, over a virtual line and in the simulator."""
    numbers = range(seed, seed + machines)
    domains = [drawn_domain(policy.env, FIRST + i) for i in numbers]
    line = [episode(policy.env, policy.controller, d, i) for i, d in zip(numbers, domains, strict=True)]
    certified = policy.certificate.performance if policy.certificate else None
    return OnTheTable(np.array(line), _simulated(policy, domains, numbers), certified)


def _simulated(policy: Deployable, domains: Sequence[Mapping[str, float]], numbers: range) -> np.ndarray:
    columns = {name: jnp.asarray([domain[name] for domain in domains], jnp.float32) for name in domains[0]}
    keys = jax.vmap(jax.random.key)(jnp.asarray(numbers))[:, None]
    return rollout.returns(policy.env, policies.find(policy.source, policy.env), columns, keys).returns[:, 0]


def _mean(values: np.ndarray) -> tuple[float, float]:
    error = float(values.std(ddof=1) / math.sqrt(values.size)) if values.size > 1 else math.inf
    return float(values.mean()), error
