"""How a run that tests more than once keeps its probability of error: α is spent over candidates and looks.

A run may try one candidate after the other, and look at each several times while references join. If test j errs with
probability α_j at most, then any of them errs with probability Σ α_j at most, whatever the run decides in between: each
α_j has to be fixed before its data are seen.

The shares are those of an endless series: a run that was to try three candidates may try a fourth, and nothing that
was said before changes.

Trial(candidate=1, candidates=3, look=2, looks=3).alpha(0.05)   # 0.0043: the first candidate's 0.0416, the second look
"""

from dataclasses import dataclass

from spota.stats.bootstrap import check_alpha

SPENDING = ("none", "cubes")
"""Whether α is spent over the candidates of a run: each has all of it, or shares that fall with 1/k³."""
ENDLESS = 1.2020569031595942
"""Σ 1/k³ over all k."""


@dataclass(frozen=True)
class Trial:
    """One test of a run: which look at which candidate, of how many that there may be.

    Looks at one candidate always share its α; candidates share that of the run if it is spent in cubes. The first
    ones, which usually decide, have most of it; the only one has all.
    """

    candidate: int = 1
    candidates: int = 1
    look: int = 1
    looks: int = 1
    spending: str = "cubes"

    def __post_init__(self):
        """Refuse numbers that nobody can count."""
        for name, i, n in (("candidate", self.candidate, self.candidates), ("look", self.look, self.looks)):
            if not 1 <= i <= n:
                raise ValueError(f"{name}={i} of {name}s={n}: they count from 1.")

    def alpha(self, alpha: float) -> float:
        """This test's part of a run's probability of error."""
        check_alpha(alpha)
        of_run = 1.0 if self.spending == "none" else share(self.candidate, self.candidates)
        return alpha * of_run * share(self.look, self.looks)


def share(i: int, n: int) -> float:
    """What test i of n has: all if there is one, else its part of a series that could go on for ever."""
    return 1.0 if n == 1 else i**-3 / ENDLESS
