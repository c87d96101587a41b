"""Figures and words: how numbers, times and wrong names are said, everywhere in the same way."""

import difflib
import math
from collections.abc import Iterable


def figure(value: float) -> str:
    """A number as people write it: three digits or so, never 1e+03."""
    if not math.isfinite(value):
        return "no bound"
    if abs(value) < 1e-3:
        return "0"
    return f"{value:.0f}" if abs(value) >= 99.95 else f"{value:.3g}"


def percent(share: float) -> str:
    """0.953 → 95 %; 0.005 → 0.5 %."""
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:.4g} %"


def duration(seconds: float) -> str:
    """47 s, 3:20 min, 2:05 h."""
    whole = round(seconds)
    if whole < 100:
        return f"{whole} s"
    minutes = round(whole / 60)
    return f"{minutes // 60}:{minutes % 60:02d} h" if minutes > 99 else f"{whole // 60}:{whole % 60:02d} min"


def plural(n: int, what: str) -> str:
    """1 domain, 2 domains."""
    return f"{n} {what}{'' if n == 1 else 's'}"


def suggest(wrong: str, names: Iterable[str]) -> str:
    """The end of an error about a name that does not exist; n_g is nearer to n_G than to n_r."""
    names = list(names)
    near = [name for name in names if name.lower() == wrong.lower()]
    near = near or difflib.get_close_matches(wrong, names, 1, cutoff=0.4)
    return f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(names)}."


def check_choice(name: str, given: str, choices: Iterable[str]) -> None:
    """Raise a ValueError that proposes the nearest of `choices` unless `given` is one of them."""
    choices = tuple(choices)
    if given in choices:
        return
    near = difflib.get_close_matches(str(given), choices, 1)
    hint = f"did you mean {name}={near[0]!r}?" if near else f"write {name}={choices[0]!r}."
    raise ValueError(f"{name}={given!r} is not one of {', '.join(map(repr, choices))}; {hint}")
