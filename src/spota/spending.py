"""How a run that tests more than once keeps its probability of error: α is spent over candidates and looks.

A run may try one candidate after the other, and look at each several times while references join. If test j errs with
probability α_j at most, then any of them errs with probability Σ α_j at most, whatever the run decides in between: each
α_j has to be fixed before its data are seen.

spent(0.05, candidate=1, look=2, looks=3)   # 0.0101: of the first candidate's 0.0304, the part of the second look
"""

import math

from spota.bootstrap import check_alpha

SPENDING = ("none", "squares")
"""Whether α is spent over the candidates of a run: each has all of it, or 6α/(πk)²."""


def spent(alpha: float, candidate: int, look: int = 1, looks: int = 1) -> float:
    """α of one look at one candidate: 6α/(πk)² for candidate k = 1, 2, …, in equal parts for its looks.

    Over any number of candidates they sum up to less than `alpha`. The first candidate, which usually passes, has 61 %.
    """
    check_alpha(alpha)
    if candidate < 1:
        raise ValueError(f"candidate={candidate}: candidates count from 1.")
    if not 1 <= look <= looks:
        raise ValueError(f"look={look} of looks={looks}: looks count from 1, and their number is fixed beforehand.")
    return alpha * 6 / (math.pi * candidate) ** 2 / looks
