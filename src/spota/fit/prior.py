"""What is believed before a fit: the platform's table, with what recordings ask for, widened where someone says so."""

from collections.abc import Sequence

import numpy as np

from spota.fit.coordinates import possible
from spota.sim.domain import DomainDistribution, Parameter
from spota.sim.env import Platform
from spota.sim.marginals import Constant, Integers, Marginal, TruncatedNormal, Uniform
from spota.text import suggest


def prior(env: Platform, widen: Sequence[str] = ()) -> DomainDistribution:
    """The table with the platform's optional rows; `pole_length=0.05:0.3`, `pole_length=3` or `2` for all widen it."""
    rows = {**env.domain, **{name: row for name, row in env.optional.items() if name not in env.domain}}
    for text in widen:
        name, equals, how = text.partition("=")
        chosen = [name.strip()] if equals else [n for n in rows if not isinstance(rows[n].marginal, Constant)]
        for one in chosen:
            if one not in rows:
                raise ValueError(f"--widen {text}: there is no parameter {one!r}; {suggest(one, rows)}")
            wider = _widened(DomainDistribution(rows), env, one, how if equals else name, text)
            rows[one] = Parameter(wider, rows[one].unit, rows[one].meaning, rows[one].symbol, sign=rows[one].sign)
    return DomainDistribution(rows)


def _widened(table: DomainDistribution, env: Platform, name: str, how: str, text: str) -> Marginal:
    low, high = possible(table, env, name)
    try:
        if ":" in how:
            first, last = (float(x) for x in how.split(":"))
            if first < low or last > high or first >= last:
                raise ValueError(f"it must lie between {low:g} and {high:g}, the smaller end first")
            return Uniform(first, last)
        factor = float(how)
        if not 1 <= factor <= 20:
            raise ValueError("a factor lies between 1 and 20")
    except ValueError as error:
        raise ValueError(f"--widen {text}: {error}; write e.g. pole_length=0.05:0.3, pole_length=3, or 2.") from error
    return _by_factor(table[name].marginal, factor, low, high)


def _by_factor(old: Marginal, factor: float, low: float, high: float) -> Marginal:
    first, last = old.support
    if isinstance(old, TruncatedNormal):
        room = min(old.center - low, high - old.center) / (factor * old.std)
        return TruncatedNormal(old.center, factor * old.std, min(old.cut, 0.999 * room))
    if isinstance(old, Integers):
        return Integers(int(first), int(np.ceil(first + factor * (last - first))))
    if isinstance(old, Constant):
        return Uniform(max(low, first * (1 - 0.2 * factor)), min(high, first * (1 + 0.2 * factor)))
    middle, half = (first + last) / 2, factor * (last - first) / 2
    return Uniform(max(low, middle - half), min(high, middle + half))
