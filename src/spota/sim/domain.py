"""ν(ξ; φ), the distribution of the domain parameters: a named table with units that can be drawn, printed and stored.

pendulum = DomainDistribution(
    pole_mass=Parameter(TruncatedNormal(0.127, 0.0254), "kg", "mass of the pole"),
    action_delay=Parameter(Integers(0, 10), "steps", "time until a command acts"),
)
domains = pendulum.sample(jax.random.key(0), 500)   # {"pole_mass": [500 values], "action_delay": [500 values]}
"""

import copy
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, Float, Int, Key

from spota.sim.marginals import Constant, Marginal, Observed, is_finite, marginal_from
from spota.sim.memory import refuse_beyond_memory
from spota.text import suggest

Sign = Literal["any", "nonnegative", "positive"]
ABOUT = ("unit", "meaning", "symbol", "nominal", "sign")
"""What a row says beside its law."""
Domains = dict[str, Float[Array, "_"]]
"""Drawn domains: parameter name → one value per domain."""


@dataclass(frozen=True)
class Parameter:
    """One row of the table: a marginal, its unit and meaning, the symbol in the equations, the nominal value."""

    marginal: Marginal
    unit: str = "-"
    meaning: str = ""
    symbol: str = ""
    nominal: float | None = None
    sign: Sign = "any"

    def __post_init__(self):
        """Refuse a law that can draw what is physically impossible."""
        if self.sign not in get_args(Sign):
            raise ValueError(f"sign={self.sign!r} is not one of {', '.join(get_args(Sign))}.")
        if self.nominal is not None and not is_finite(self.nominal):
            raise ValueError(f"nominal={self.nominal!r}: a nominal value is a finite number.")
        low = self.marginal.support[0]
        if not self.allows(low):
            raise ValueError(
                f"{self.marginal} can draw {low:g} {self.unit}, but a {self.meaning or 'value here'} is {self.sign}; "
                "raise the lower bound or, for a normal law, lower the standard deviation."
            )

    def allows(self, values: ArrayLike) -> np.ndarray | np.bool_:
        """Which values are physically possible."""
        values = np.asarray(values)
        return {"any": values == values, "nonnegative": values >= 0, "positive": values > 0}[self.sign]

    @property
    def nominal_value(self) -> float:
        """The manufacturer's value where one is given, else the mean."""
        return self.marginal.mean if self.nominal is None else self.nominal

    def to_dict(self) -> dict:
        """As plain values, for JSON and TOML."""
        given = {"nominal": self.nominal} if self.nominal is not None else {}
        about = {"unit": self.unit, "meaning": self.meaning, "symbol": self.symbol, "sign": self.sign}
        return {**self.marginal.to_dict(), **about, **given}


class DomainDistribution(Mapping[str, Parameter]):
    """A named table of independent parameters; read it like a dictionary, draw from it with `sample`."""

    def __init__(self, parameters: Mapping[str, Parameter] | None = None, /, **named: Parameter):
        """Take the table as a dictionary or as keyword arguments."""
        self._parameters = {**(parameters or {}), **named}
        self.recordings: tuple[str, ...] = ()
        """SHA-256 of the recordings of one machine that the table was fitted to; none for a table of many machines."""
        if not self._parameters:
            raise ValueError("A domain distribution needs at least one parameter; write DomainDistribution(mass=…).")
        for name, parameter in self._parameters.items():
            if not isinstance(parameter, Parameter):
                raise TypeError(f"{name} is {parameter!r}; write {name}=Parameter({parameter!r}, 'unit').")

    def __getitem__(self, name: str) -> Parameter:
        """The row of that name."""
        self._check(name)
        return self._parameters[name]

    def __eq__(self, other: object) -> bool:
        """A table is an object of its own: only the same one is equal."""
        return self is other

    def __hash__(self) -> int:
        """By identity."""
        return id(self)

    def __iter__(self):
        """The names, in order."""
        return iter(self._parameters)

    def __len__(self) -> int:
        """How many parameters."""
        return len(self._parameters)

    def sample(self, key: Key[Array, ""], n: int) -> Domains:
        """Draw n independent domains; the first m of them are the same for every n ≥ m."""
        self._check_number(n)
        return {name: self._column(key, name, n) for name in self}

    def nominal(self, n: int = 1) -> Domains:
        """The nominal domain, n times."""
        self._check_number(n)
        return {name: jnp.full(n, p.nominal_value, jnp.float32) for name, p in self.items()}

    def grid(self, name: str, values: Sequence[float] | np.ndarray) -> Domains:
        """One domain a value of one parameter, all others nominal."""
        self._check(name)
        column = np.asarray(values, dtype=np.float32)
        if column.ndim != 1 or column.size == 0 or not np.isfinite(column).all():
            raise ValueError(f"grid({name!r}, {values!r}): give one or more finite values, e.g. [0.1, 0.2].")
        domains = {**self.nominal(column.size), name: jnp.asarray(column)}
        self.check(domains)
        return domains

    def check(self, domains: Domains):
        """Refuse domains whose names, lengths or values do not fit this table."""
        for name in [*domains, *self]:
            self._check(name)
            if name not in domains:
                raise ValueError(f"The domains have no value for {name!r}; start from nominal() or sample().")
        if len({column.shape for column in domains.values()}) > 1:
            raise ValueError(f"Columns differ in length: { {n: c.shape for n, c in domains.items()} }.")
        _positive(count(domains))
        for name, column in domains.items():
            values = np.asarray(column)
            bad = ~np.isfinite(values) | ~self[name].allows(values)
            if bad.any():
                need = {"any": "finite"}.get(self[name].sign, self[name].sign)
                raise ValueError(
                    f"{name} = {values[bad][0]:g} {self[name].unit} in domain {int(bad.argmax())}: must be {need}."
                )

    def replace(self, **marginals: Marginal) -> "DomainDistribution":
        """The same table with other marginals: `nu.replace(ball_mass=Uniform(0.001, 0.01))`."""
        rows = dict(self._parameters)
        for name, marginal in marginals.items():
            old = self[name]
            rows[name] = Parameter(marginal, old.unit, old.meaning, old.symbol, sign=old.sign)
        return DomainDistribution(rows)

    def learned_from(self, recordings: Sequence[str]) -> "DomainDistribution":
        """The same table, which names the recordings that it was fitted to by their SHA-256."""
        same = copy.copy(self)
        same.recordings = tuple(recordings)
        return same

    def to_dict(self) -> dict:
        """The table as plain values, for JSON and TOML."""
        return {name: parameter.to_dict() for name, parameter in self.items()}

    def to_json(self) -> str:
        """The table as JSON; `from_json` reads it back."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    @staticmethod
    def from_dict(table: Mapping[str, Mapping[str, Any]]) -> "DomainDistribution":
        """Read what `to_dict` wrote, or what a TOML file says."""
        rows = {name: _parameter_from(name, row) for name, row in table.items()}
        observed = {name: row.marginal.values for name, row in rows.items() if isinstance(row.marginal, Observed)}
        if observed and len(observed) < len(rows):
            raise ValueError("Observed values are rows of all parameters; give them for each, or for none.")
        return Empirical(observed, rows) if observed else DomainDistribution(rows)

    @staticmethod
    def from_json(text: str) -> "DomainDistribution":
        """Read what `to_json` wrote."""
        return DomainDistribution.from_dict(json.loads(text))

    def __str__(self) -> str:
        """A readable table."""
        rows = [(n, p.symbol, str(p.marginal), p.unit, f"{p.nominal_value:g}", p.meaning) for n, p in self.items()]
        rows = [("parameter", "symbol", "distribution", "unit", "nominal", "meaning"), *rows]
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        return "\n".join("  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in rows)

    def _column(self, key: Key[Array, ""], name: str, n: int) -> Float[Array, "_"]:
        """Draw one column; every parameter has a stream of its own, so that adding one moves no other."""
        return jnp.asarray(self[name].marginal.draw(_generator(key, name), n), jnp.float32)

    def _check_number(self, n: int):
        """Refuse no domains at all, and more than there is memory for."""
        _positive(n)
        refuse_beyond_memory(4.0 * n * len(self), f"{n} domains:", "ask for fewer")

    def _check(self, name: str):
        if name not in self._parameters:
            raise KeyError(f"No domain parameter {name!r}; {suggest(name, self._parameters)}")


class Empirical(DomainDistribution):
    """Rows of samples from anywhere, a posterior for example; a draw is one whole row, so correlations survive."""

    def __init__(self, rows: Mapping[str, Sequence[float]], about: Mapping[str, Parameter] | None = None):
        """Take equally long columns; `about` gives units, meanings and symbols."""
        columns = {name: np.asarray(column, dtype=np.float64) for name, column in rows.items()}
        lengths = {name: column.size for name, column in columns.items()}
        if len(set(lengths.values())) > 1 or 0 in lengths.values():
            raise ValueError(f"Empirical: columns must have the same length, at least 1, but have {lengths}.")
        for name, column in columns.items():
            if not np.isfinite(column).all():
                raise ValueError(f"Empirical: column {name!r} has values that are not finite; drop those rows.")
        super().__init__({n: _observed(c, (about or {}).get(n)) for n, c in columns.items()})

    def sample(self, key: Key[Array, ""], n: int) -> Domains:
        """Draw n rows with replacement."""
        self._check_number(n)
        return {name: jnp.asarray(p.marginal.draw(_generator(key, "row"), n), jnp.float32) for name, p in self.items()}


def repeat(domains: dict[str, Float[Array, "*sets n"]], times: int) -> dict[str, Float[Array, "*sets m"]]:
    """Each domain `times` times in a row: d₁ d₁ … d₂ d₂ …"""
    return {name: _repeated(values, times) for name, values in domains.items()}


def _repeated(values: Float[Array, "*sets n"], times: int) -> Float[Array, "*sets m"]:
    if isinstance(values, Tracer):
        return jnp.repeat(values, times, axis=-1)
    return jnp.asarray(np.repeat(np.asarray(values), times, axis=-1))  # jax would compile a program for every shape


def chosen(domains: Domains, index: Int[np.ndarray, "m"] | slice) -> Domains:
    """Some of the domains, chosen on the host: jax would compile a program for every number of them."""
    return {name: jnp.asarray(np.asarray(column)[index]) for name, column in domains.items()}


def count(domains: Domains) -> int:
    """How many domains these are."""
    return next(iter(domains.values())).shape[-1]


def _observed(column: np.ndarray, about: Parameter | None) -> Parameter:
    about = about or Parameter(Constant(0.0))
    return Parameter(Observed(tuple(map(float, column))), about.unit, about.meaning, about.symbol, sign=about.sign)


def _generator(key: Key[Array, ""], name: str) -> np.random.Generator:
    """A counter-based generator for one column: domains are drawn on the host, without compiling anything."""
    words = np.asarray(jax.random.key_data(key), np.uint64)
    return np.random.Generator(np.random.Philox(key=[(words[0] << 32) | words[1], zlib.crc32(name.encode())]))


def _positive(n: int):
    if n < 1:
        raise ValueError(f"{n} domains were asked for; ask for at least 1.")


def _parameter_from(name: str, row: Mapping[str, Any]) -> Parameter:
    if not isinstance(row, Mapping):
        raise ValueError(f"{name} is {row!r}; write a table with its family and arguments.")
    about = {k: row[k] for k in ABOUT if k in row}
    return Parameter(marginal_from(name, {k: v for k, v in row.items() if k not in ABOUT}), **about)
