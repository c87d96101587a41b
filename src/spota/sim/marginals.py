"""The distributions that one domain parameter can have; each checks its arguments when it is made."""

import abc
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, cast

import jax
import numpy as np
import scipy.special

from spota.text import suggest


class Marginal(abc.ABC):
    """The distribution of one parameter."""

    @abc.abstractmethod
    def draw(self, generator: np.random.Generator, n: int) -> np.ndarray:
        """Draw n values."""

    @property
    @abc.abstractmethod
    def support(self) -> tuple[float, float]:
        """Smallest and largest value that can be drawn; ±inf where there is no bound."""

    @property
    def mean(self) -> float:
        """Expected value."""
        low, high = self.support
        return (low + high) / 2

    @property
    def usual_range(self) -> tuple[float, float]:
        """The support; where it has no end, the middle 99 % of the draws."""
        draws, ends = self.draw(np.random.default_rng(0), 2000), zip(self.support, (0.005, 0.995), strict=True)
        low, high = (float(s if np.isfinite(s) else np.quantile(draws, q)) for s, q in ends)
        return low, high

    def to_dict(self) -> dict:
        """The family's name and its arguments, for JSON and TOML."""
        return {
            "family": type(self).__name__,
            **{f.name: getattr(self, f.name) for f in fields(cast(Any, self))},
        }


@dataclass(frozen=True)
class TruncatedNormal(Marginal):
    """A normal law cut at mean ± `cut` standard deviations, drawn from the truncated law (never clamped)."""

    center: float
    std: float
    cut: float = 3.0

    def __post_init__(self):
        """Refuse what is no truncated normal."""
        _finite(self)
        if self.std <= 0 or self.cut <= 0:
            raise ValueError(
                f"{self}: standard deviation and cut must be positive; for a fixed value write Constant({self.center})."
            )

    def draw(self, generator: np.random.Generator, n: int) -> np.ndarray:
        """By the inverse of the truncated law."""
        outside = scipy.special.ndtr(-self.cut)
        u = outside + generator.random(n) * (1 - 2 * outside)
        return self.center + self.std * scipy.special.ndtri(u)

    @property
    def support(self) -> tuple[float, float]:
        """The two cuts."""
        return self.center - self.cut * self.std, self.center + self.cut * self.std

    def __str__(self) -> str:
        """As in the paper's tables."""
        return f"N({self.center:g}, {self.std:g}) ±{self.cut:g}σ"


@dataclass(frozen=True)
class Uniform(Marginal):
    """Every value between two bounds alike."""

    low: float
    high: float

    def __post_init__(self):
        """Refuse bounds in the wrong order."""
        _finite(self)
        if self.low > self.high:
            raise ValueError(
                f"{self!r}: the lower bound exceeds the upper one; write Uniform({self.high}, {self.low})."
            )
        if self.low == self.high:
            raise ValueError(f"{self!r}: the bounds are equal; for a fixed value write Constant({self.low}).")

    def draw(self, generator: np.random.Generator, n: int) -> np.ndarray:
        """Between the bounds."""
        return self.low + (self.high - self.low) * generator.random(n)

    @property
    def support(self) -> tuple[float, float]:
        """The bounds."""
        return self.low, self.high

    def __str__(self) -> str:
        """As in the paper's tables."""
        return f"U({self.low:g}, {self.high:g})"


@dataclass(frozen=True)
class Integers(Marginal):
    """Every whole number from low to high alike, both included."""

    low: int
    high: int

    def __post_init__(self):
        """Refuse bounds in the wrong order, and broken ones."""
        _finite(self)
        if self.low != math.floor(self.low) or self.high != math.floor(self.high):
            raise ValueError(f"{self!r}: the bounds must be whole numbers; write Uniform for all numbers between them.")
        if self.low > self.high:
            raise ValueError(
                f"{self!r}: the lower bound exceeds the upper one; write Integers({self.high}, {self.low})."
            )

    def draw(self, generator: np.random.Generator, n: int) -> np.ndarray:
        """Whole numbers."""
        return self.low + np.floor((self.high - self.low + 1) * generator.random(n))

    @property
    def support(self) -> tuple[float, float]:
        """The bounds."""
        return float(self.low), float(self.high)

    def __str__(self) -> str:
        """As a set."""
        return f"{{{self.low}, …, {self.high}}}"


@dataclass(frozen=True)
class Bernoulli(Marginal):
    """One with a given probability, else zero."""

    probability: float

    def __post_init__(self):
        """Refuse what is no probability."""
        _finite(self)
        if not 0 <= self.probability <= 1:
            raise ValueError(f"{self!r}: a probability lies between 0 and 1.")

    def draw(self, generator: np.random.Generator, n: int) -> np.ndarray:
        """Zeros and ones."""
        return (generator.random(n) < self.probability).astype(float)

    @property
    def mean(self) -> float:
        """The probability."""
        return self.probability

    @property
    def support(self) -> tuple[float, float]:
        """Zero and one."""
        return 0.0, 1.0

    def __str__(self) -> str:
        """As in the paper."""
        return f"B({self.probability:g})"


@dataclass(frozen=True)
class Constant(Marginal):
    """A parameter that is not randomized, but may be swept."""

    value: float

    def __post_init__(self):
        """Refuse what is not a number."""
        _finite(self)

    def draw(self, generator: np.random.Generator, n: int) -> np.ndarray:
        """The value, n times."""
        del generator
        return np.full(n, self.value)

    @property
    def support(self) -> tuple[float, float]:
        """The point, twice."""
        return self.value, self.value

    def __str__(self) -> str:
        """The value."""
        return f"{self.value:g}"


@dataclass(frozen=True, eq=False)
class NumPyro(Marginal):
    """Any scalar NumPyro distribution: `NumPyro(numpyro.distributions.Gamma(2.0, 1.0))`."""

    distribution: Any  # a numpyro.distributions.Distribution; NumPyro is imported only by those who use it

    def __post_init__(self):
        """Refuse vectors: a parameter is one number."""
        if self.distribution.batch_shape or self.distribution.event_shape:
            shape = self.distribution.batch_shape + self.distribution.event_shape
            raise ValueError(f"{self.distribution} draws arrays of shape {shape}; a domain parameter is one number.")

    def draw(self, generator: np.random.Generator, n: int) -> np.ndarray:
        """By NumPyro, with a key from the generator."""
        return np.asarray(self.distribution.sample(jax.random.key(generator.integers(2**31)), (n,)), np.float64)

    @property
    def support(self) -> tuple[float, float]:
        """As NumPyro states it."""
        support = self.distribution.support
        low, high = getattr(support, "lower_bound", -math.inf), getattr(support, "upper_bound", math.inf)
        return float(low), float(high)

    @property
    def mean(self) -> float:
        """As NumPyro states it."""
        return float(self.distribution.mean)

    def to_dict(self) -> dict:
        """Its class name and the arguments that NumPyro lists for it."""
        arguments = {name: float(getattr(self.distribution, name)) for name in self.distribution.arg_constraints}
        return {"family": f"numpyro.{type(self.distribution).__name__}", **arguments}

    def __str__(self) -> str:
        """Class and arguments."""
        return ", ".join(f"{k}={v:g}" if k != "family" else f"{v}:" for k, v in self.to_dict().items())


@dataclass(frozen=True)
class Observed(Marginal):
    """One column of an `Empirical` distribution: values that were observed, all alike."""

    values: tuple[float, ...]

    def __post_init__(self):
        """Refuse what nobody can have observed."""
        if not isinstance(self.values, tuple) or not self.values or not all(map(is_finite, self.values)):
            raise ValueError("Observed needs a list of one or more finite numbers.")

    def draw(self, generator: np.random.Generator, n: int) -> np.ndarray:
        """Observed values; the same generator gives every column the same rows."""
        return np.asarray(self.values)[np.floor(len(self.values) * generator.random(n)).astype(int)]

    @property
    def support(self) -> tuple[float, float]:
        """Smallest and largest observed value."""
        return min(self.values), max(self.values)

    @property
    def mean(self) -> float:
        """Mean of the observed values."""
        return float(np.mean(self.values))

    def __str__(self) -> str:
        """Mean, spread and range."""
        low, high = self.support
        return f"{len(self.values)} rows: {self.mean:.4g} ± {np.std(self.values):.2g}, from {low:.4g} to {high:.4g}"


_FAMILIES: dict[str, Any] = {f.__name__: f for f in (TruncatedNormal, Uniform, Integers, Bernoulli, Constant, Observed)}


def marginal_from(name: str, row: Mapping[str, Any]) -> Marginal:
    """Read what `Marginal.to_dict` wrote; `name` is the parameter's, for the error."""
    arguments = {k: tuple(v) if isinstance(v, list) else v for k, v in row.items() if k != "family"}
    family = str(row.get("family", "missing"))
    if family.startswith("numpyro."):
        return _numpyro_marginal(name, family, arguments)
    if family not in _FAMILIES:
        raise ValueError(f"{name}: unknown family {family!r}; {suggest(family, [*_FAMILIES, 'numpyro.<Name>'])}")
    try:
        return _FAMILIES[family](**arguments)
    except TypeError as error:
        needs = ", ".join(f.name for f in fields(_FAMILIES[family]))
        given = ", ".join(f"{k}={v!r}" for k, v in arguments.items()) or "nothing"
        raise ValueError(f"{name}: {family} takes {needs}, but was given {given}.") from error


def _numpyro_marginal(name: str, family: str, arguments: Mapping[str, Any]) -> NumPyro:
    """One of NumPyro's laws with the arguments that NumPyro lists for it, all of them numbers."""
    law = _numpyro_family(name, family)
    listed = getattr(law, "arg_constraints", None)
    if not isinstance(listed, Mapping) or not set(arguments) <= set(listed):
        raise ValueError(f"{name}: {family} does not take {', '.join(map(repr, arguments)) or 'nothing'}.")
    if wrong := [key for key, value in arguments.items() if not is_finite(value)]:
        raise ValueError(f"{name}: {family} needs a finite number as {wrong[0]}.")
    try:
        made = NumPyro(law(**arguments, validate_args=True))
        _ = made.support, made.mean  # which some laws do not have
    except Exception as error:  # each law complains in its own way
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{name}: {family} cannot be made of {dict(arguments)} ({reason}).") from error
    return made


def _numpyro_family(name: str, family: str) -> Any:
    from numpyro import distributions  # slow to import

    found = getattr(distributions, family.removeprefix("numpyro."), None)
    if not (isinstance(found, type) and issubclass(found, distributions.Distribution)):
        raise ValueError(f"{name}: NumPyro has no distribution {family.removeprefix('numpyro.')!r}.")
    return found


def is_finite(value: Any) -> bool:
    """Whether it is a number, and neither infinite nor NaN."""
    try:
        return math.isfinite(value)
    except (TypeError, OverflowError):
        return False


def _finite(marginal: Any):
    for field in fields(marginal):
        if not is_finite(getattr(marginal, field.name)):
            raise ValueError(f"{marginal!r}: {field.name} must be a finite number.")
