"""The settings of Algorithm 1, under the paper's names, and how its sample sizes grow."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from spota.certify.certificate import METHODS
from spota.policies import SMALL, Architecture, Gains, Start
from spota.polopt import default_start
from spota.sim.env import Platform
from spota.sim.memory import refuse_beyond_memory
from spota.stats.bootstrap import check_alpha
from spota.stats.gap import RULES
from spota.stats.spending import SPENDING
from spota.text import check_choice

NonDecrSeq = Callable[[int, int], int]
"""(n_0, iteration) → n; iterations count from 1, and n never falls."""


def linear_growth(n_0: int, iteration: int) -> int:
    """n_0, 2 n_0, 3 n_0, …: the paper's."""
    return n_0 * iteration


def doubling(n_0: int, iteration: int) -> int:
    """n_0, 2 n_0, 4 n_0, …"""
    return n_0 * 2 ** (iteration - 1)


def constant(n_0: int, iteration: int) -> int:
    """n_0 for ever."""
    del iteration
    return n_0


GROWTHS: dict[str, NonDecrSeq] = {"linear": linear_growth, "doubling": doubling, "constant": constant}
PAPER: dict[str, dict[str, Any]] = {
    "ball-balancer": {"beta": 50.0, "n_J": 120},
    "cart-pole": {"beta": 60.0, "n_J": 50},
}
"""What tab_exp_hparams says about a platform."""
AS_PUBLISHED: dict[str, Any] = {
    "method": "basic_pooled",
    "rejection": "first",
    "spend_alpha": "none",
    "effort_references": 0,
    "performance_domains": 2000,
    "looks": 1,
}
"""The paper's procedure, where ours differs from it."""
THRESHOLD = 0.025
"""β as a share of the largest return, or of the largest cost, where the paper has none; its own are 0.024 and 0.025."""

LEAST_ALPHA = 1e-6
"""Quantiles further out are rounded, and bounds there too small."""
LARGEST_GAIN = 100.0
FEWEST_LONGER = 4
"""References that are trained longer, at least: Student's t is wide with fewer."""


@dataclass(frozen=True)
class Spota:
    """The settings of Algorithm 1, under the paper's names."""

    n_c: int = 5
    """Domains of the first candidate."""
    n_r: int = 1
    """Domains of a reference in the first iteration."""
    n_G: int = 20
    """References of the first look at a candidate."""
    looks: int = 3
    """Looks at a candidate, at most: while it is neither certified nor refuted, the next adds as many references as
    there are."""
    n_J: int = 50
    """Rollouts a domain in the comparison."""
    n_b: int = 1000
    """Resamples of the bootstrap."""
    alpha: float = 0.05
    """Probability of error."""
    beta: float = 50.0
    """Threshold of trust: the largest loss of return, on average, that is accepted."""
    max_iterations: int = 10
    """The run ends here, certified or not."""
    max_seconds: float | None = None
    """No iteration and no further look begins that would last longer than this, by what the one before has cost; time
    before an interruption counts."""
    growth: str = "linear"
    """How n_c and n_r grow over the iterations: linear (the paper's), doubling or constant."""
    method: str = "split"
    """The interval that decides; docs/coverage.md says why, and `basic_pooled` is the paper's."""
    rejection: str = "reference"
    """What another reference replaces: one that lost on average over its own domains (reference), or each negative gap,
    by that of the first better one (first, the paper's) or of the best."""
    warm_start: bool = False
    """Whether a candidate starts from the one before."""
    spend_alpha: str = "cubes"
    """Whether α is spent over the iterations, each of which is a test: cubes, or none (the paper's). Looks share the
    α of their candidate in any case."""
    effort_references: int | None = None
    """How many references of the first look are trained once more and longer, to measure what they still gain; None
    means about a quarter of them, at least 4, and 0 does not measure it. Later looks add the same share."""
    effort_factor: int = 3
    """How many times as long."""
    performance_domains: int = 20_000
    """Unseen domains for the rare failures and for the bounds on the return; 0 leaves both out."""
    worst_share: float = 0.2
    """The share of rollouts that counts as worst."""
    hidden: tuple[int, ...] = (16, 16)
    """Hidden layers of a new policy."""
    memory: int | None = None
    """Observations that a new policy acts on: the last one, or the last N with its own actions between them."""
    stride: int | None = None
    """Steps from one of them to the next; 1 unless told otherwise."""
    recurrent: int | None = None
    """Units of a new policy that remember; none unless told otherwise. References have the same memory in any case."""
    trainings: int = 1
    """How often a candidate is trained, each time from another network; the best one is the candidate, and references
    may start from all of them."""
    gain: float = SMALL
    """The size of a new network's last layer: a small one does nothing at first, which PPO needs; gradients through a
    simulator learn from what a policy does (docs/solver_studies.md)."""
    first_gain: float = 1.0
    """The size of its first layer: a large one tells apart what is small beside the ranges of the sensors."""
    start: Start = "new"
    """What a candidate starts from: a new network, or one that imitates the platform's controller."""
    chunk: int | None = None
    """References that the comparison runs at once; None means all. It changes the memory that is used, nothing else."""

    def __post_init__(self):
        """Refuse settings that cannot work."""
        for name in ("n_c", "n_r", "n_G", "n_J", "n_b", "looks", "max_iterations", "trainings"):
            _at_least(name, getattr(self, name), 1)
        _at_least("performance_domains", self.performance_domains, 0)
        _at_least("effort_factor", self.effort_factor, 2)
        self._check_effort_references()
        if self.chunk is not None:
            _at_least("chunk", self.chunk, 1)
        check_alpha(self.alpha)
        if self.alpha < LEAST_ALPHA:
            raise ValueError(
                f"alpha={self.alpha:g}: so far out the quantiles, which are numbers of 32 bits, say nothing; "
                f"write alpha={LEAST_ALPHA:g} or more, usually 0.05."
            )
        for name in ("beta", "max_seconds"):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise ValueError(f"{name}={value}: must be positive and finite; write {name}=60.")
        for name in ("gain", "first_gain"):
            if not 0 < getattr(self, name) <= LARGEST_GAIN:
                raise ValueError(
                    f"{name}={getattr(self, name)}: the size of a layer is in ]0, {LARGEST_GAIN:g}]; write {name}=1."
                )
        if not 0 < self.worst_share <= 1:
            raise ValueError(f"worst_share={self.worst_share}: a share is in ]0, 1]; write worst_share=0.2.")
        _ = self.architecture  # refuses what is no network
        check_choice("method", self.method, METHODS)
        check_choice("rejection", self.rejection, RULES)
        check_choice("spend_alpha", self.spend_alpha, SPENDING)
        check_choice("growth", self.growth, GROWTHS)
        if self.method == "split" and not self.performance_domains:
            raise ValueError(
                "method='split' counts rare failures on unseen domains, and performance_domains=0 leaves these out; "
                "write performance_domains=20000, or method='studentized_reference'."
            )

    @property
    def architecture(self) -> Architecture:
        """Of a new policy."""
        return Architecture.told(self.hidden, self.memory, self.stride, self.recurrent)

    @property
    def gains(self) -> Gains:
        """Of a new policy."""
        return Gains(self.first_gain, self.gain)

    def joining(self, look: int) -> int:
        """References that join in a look: n_G, then as many as there are."""
        return self.n_G * 2 ** max(look - 2, 0)

    def trained_longer(self, look: int) -> int:
        """How many of those that join are trained longer."""
        quarter = self.n_G // 4
        usual = min(self.n_G, max(FEWEST_LONGER, quarter + quarter % 2))  # an even number keeps two cores busy
        first = usual if self.effort_references is None else self.effort_references
        return first * self.joining(look) // self.n_G

    def check_memory(self, env: Platform) -> None:
        """Refuse sizes whose largest arrays, in the first look already, are more than the machine's memory."""
        parameters, number = len(env.domain), 4.0  # bytes
        domains, rows = self.n_G * self.n_r, self.n_G * self.n_r * self.n_J
        sizes = (len(env.observations), *self.hidden, len(env.actions))
        weights = sum(a * b for a, b in pairwise(sizes))
        needs = {
            ("n_c",): self.n_c * parameters * number,
            ("n_G", "n_r", "n_J"): (domains * parameters + rows * (parameters + 5)) * number,
            ("n_G", "hidden"): (self.n_G + 1) * weights * number,
            ("performance_domains",): self.performance_domains * (parameters + 5) * number,
            ("n_b",): self.n_b * number,
        }
        names, most = max(needs.items(), key=lambda one: one[1])
        largest = ", ".join(f"{name}={getattr(self, name)}" for name in names)
        refuse_beyond_memory(most, f"{largest}:", f"write a smaller {' or '.join(names)}")

    def _check_effort_references(self) -> None:
        m = self.effort_references
        if m is not None and not (m == 0 or 2 <= m <= self.n_G):
            raise ValueError(
                f"effort_references={m}: these are some of the n_G = {self.n_G} references, and one alone has no "
                f"spread; write a number from 2 to {self.n_G}, or 0 to leave it out."
            )

    @classmethod
    def tuned(cls, env: Platform, **others: Any) -> "Spota":
        """Our settings for a platform; its threshold is the paper's or, where that has none, a share of the returns."""
        beta = THRESHOLD * (env.max_return if env.max_return > 0 else -env.min_return)
        return cls(**{"beta": beta, "start": default_start(env), **PAPER.get(env.name, {}), **others})

    @classmethod
    def paper(cls, env_name: str, **others: Any) -> "Spota":
        """The values of tab_exp_hparams, and the paper's interval, rejection and tests; there is no effort margin."""
        check_choice("env_name", env_name, PAPER)
        return cls(**{**AS_PUBLISHED, **PAPER[env_name], **others})


def _at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise ValueError(f"{name}={value}: must be at least {least}; write {name}={max(least, 1)}.")
