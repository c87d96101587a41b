"""Settings: frozen dataclasses ↔ TOML; later layers win (preset, then file, then flags). The optimizers by name.

solver = optimizer("ppo", env, preset="paper")
solver = override(solver, from_flags(["iterations=200", "learning_rate=1e-3"]), "--set")
"""

import tomllib
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from spota.envs.catapult import Catapult
from spota.files import documents
from spota.polopt import cma_es, default_solver, exact, reference_solver, tuned_ppo
from spota.polopt.analytic import Analytic
from spota.polopt.epopt import EPOpt
from spota.polopt.ppo import PPO
from spota.polopt.solve import Optimizer
from spota.sim.env import Platform
from spota.sim.objects import is_reference, named
from spota.text import suggest

T = TypeVar("T")
Table = dict[str, Any]
MISFIT = object()


def read_toml(path: str | Path) -> Table:
    """A TOML file as nested dictionaries."""
    try:
        return documents.read_toml(Path(path))
    except OSError as error:
        raise ValueError(f"The settings file {path} cannot be read: {error.strerror}.") from error


def to_dict(settings: Any) -> Table:
    """A dataclass as TOML can say it: tuples are lists, what is None is left out, other dataclasses are tables."""
    values = {f.name: getattr(settings, f.name) for f in fields(settings) if f.init}
    return {name: plain(value) for name, value in values.items() if value is not None}


def plain(value: Any) -> Any:
    """A setting as TOML can say it; a solver that is a function becomes its name."""
    if is_dataclass(value):
        return to_dict(value)
    if isinstance(value, Mapping):
        return {name: plain(inner) for name, inner in value.items()}
    if callable(value):
        return f"{value.__module__}.{getattr(value, '__qualname__', type(value).__qualname__)}"
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return str(value) if isinstance(value, Path) else value


def from_flags(assignments: Sequence[str]) -> Table:
    """What `--set NAME=VALUE …` says; values are written as in TOML, and text needs no quotes."""
    table: Table = {}
    for text in assignments:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value):
            raise ValueError(f"--set {text}: write NAME=VALUE, e.g. --set iterations=200.")
        table = merge(table, _assignment(text, name, value))
    return table


def merge(*layers: Mapping[str, Any]) -> Table:
    """Tables on top of each other, the later one wins; inner tables are merged likewise."""
    result: Table = {}
    for layer in layers:
        for name, value in layer.items():
            old = result.get(name)
            inner = isinstance(old, Mapping) and isinstance(value, Mapping)
            result[name] = merge(typing.cast(Table, old), value) if inner else value
    return result


def build(cls: type[T], values: Mapping[str, Any], where: str) -> T:
    """A dataclass from plain values; what is not named keeps its default."""
    needed = [f.name for f in fields(cast(Any, cls)) if f.default is MISSING and f.default_factory is MISSING]
    if missing := [name for name in needed if name not in values]:
        raise ValueError(f"{where}: {cls.__name__} needs {missing[0]!r}, which is not given.")
    return cls(**_fitted(cls, values, where, None))


def override(base: T, values: Mapping[str, Any], where: str) -> T:
    """The same settings with some values changed; `where` is named when one is refused."""
    return replace(typing.cast(Any, base), **_fitted(type(base), values, where, base))


ALGORITHMS: dict[str, Callable[[Platform], Any]] = {
    "default": default_solver,
    "ppo": lambda env: tuned_ppo(PPO, env),
    "udr": lambda env: tuned_ppo(PPO, env, fresh_domains=True, smoothing=0.0),
    "epopt": lambda env: tuned_ppo(EPOpt, env),
    "analytic": lambda _: Analytic(),
}
"""Optimizers by name; each may fit its settings to the platform."""
SOLVERS = ("default", "ppo", "epopt", "analytic", "cma")
"""Those that can work inside SPOTA: they solve for the domains that they are given."""
FROM_NEW = 0.5
"""The first step of sep-CMA-ES from a new network, whose weights are about as large."""
Preset = Literal["tuned", "quick", "paper"]


def optimizer(name: str, env: Platform, preset: Preset = "tuned") -> Any:
    """The optimizer of that name: with our settings (`tuned`), or with the paper's where it has them."""
    if name not in ALGORITHMS:
        raise ValueError(f"There is no algorithm {name!r}; {suggest(name, ALGORITHMS)}")
    tuned = ALGORITHMS[name](env)
    if preset == "tuned":
        return tuned
    if preset == "quick":
        raise ValueError(f"quick is a preset of spota; with --algo {name} write e.g. --set iterations=50.")
    if not hasattr(tuned, "paper"):
        raise ValueError(f"The paper has no settings for {name!r}; leave out --preset, or write --algo ppo.")
    return replace(tuned.paper(), fresh_domains=tuned.fresh_domains)


def solvers(name: str, env: Platform, preset: Preset = "tuned") -> tuple[Any, Any]:
    """The solvers of that name inside SPOTA, the candidate's and the references'.

    `default` is the platform's best, and the closed form where there is one; `file.py:name` is someone's own. `paper`
    has the paper's numbers for those that the paper used, and ours for others.
    """
    if is_reference(name):
        own = named(name, _may_solve, "a solver: a function solve(key, env, domains, start) that returns a policy")
        return own, own
    if name not in SOLVERS:
        raise ValueError(f"There is no solver {name!r}; {suggest(name, SOLVERS)} Your own is FILE.py:NAME.")
    if name == "cma":
        cma_es.installed()
        return cma_es.SepCMAES(step=FROM_NEW), cma_es.SepCMAES()
    if name != "default":
        tuned = ALGORITHMS[name](env)
        one = tuned.paper() if preset == "paper" and hasattr(tuned, "paper") else tuned
        return one, replace(one, smoothing=0.0)  # a reference knows its domains
    if isinstance(env, Catapult):
        return exact.catapult, exact.catapult
    return default_solver(env), reference_solver(env)


def _may_solve(found: Any) -> bool:
    return callable(found) or isinstance(found, Optimizer)


def _assignment(text: str, name: str, value: str) -> Table:
    quoted = value.replace("\\", "\\\\").replace('"', '\\"')
    for line in (f"{name} = {value}", f'{name} = "{quoted}"'):
        try:
            return tomllib.loads(line)
        except tomllib.TOMLDecodeError:
            continue
    raise ValueError(f"--set {text}: {name!r} is not the name of a setting; write NAME=VALUE, e.g. iterations=200.")


def _fitted(cls: Any, values: Mapping[str, Any], where: str, base: Any) -> Table:
    hints = typing.get_type_hints(cls)
    names = [f.name for f in fields(cls) if f.init]
    result = {}
    for name, value in values.items():
        if name not in names:
            raise ValueError(f"{where}: {cls.__name__} has no setting {name!r}; {suggest(name, names)}")
        old = getattr(base, name, None)
        if is_dataclass(old) and isinstance(value, Mapping):
            result[name] = override(old, value, where)
        else:
            result[name] = _fit(value, hints[name], f"{where}: {name}")
    return result


def _fit(value: Any, hint: Any, where: str) -> Any:
    """The value in the field's type: 1 may be a float, a list a tuple; nothing else is bent."""
    options = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    for option in options:
        fitted = _as_type(value, option, where)
        if fitted is not MISFIT:
            return fitted
    words = [name for option in options if typing.get_origin(option) is Literal for name in typing.get_args(option)]
    if words and isinstance(value, str):
        raise ValueError(f"{where} = {value!r} is not a choice; {suggest(value, words)}")
    raise ValueError(f"{where} = {value!r}: {' or '.join(map(_type_name, options))} is needed.")


def _as_type(value: Any, hint: Any, where: str) -> Any:
    kind = typing.get_origin(hint) or hint
    if kind is Any:
        return value
    if kind is Literal:
        return value if value in typing.get_args(hint) else MISFIT
    if kind in (int, float):
        allowed = int if kind is int else int | float
        return kind(value) if isinstance(value, allowed) and _is_number(value) else MISFIT
    if kind is tuple:
        return _as_tuple(value, typing.get_args(hint), where)
    if is_dataclass(kind):
        return build(typing.cast(Any, kind), value, where) if isinstance(value, Mapping) else MISFIT
    return value if isinstance(value, kind) else MISFIT


def _is_number(value: int | float) -> bool:
    """Whether it is no truth value, not NaN, and within what a number of 64 bits can be."""
    return not isinstance(value, bool) and (isinstance(value, float) or -(2**63) <= value < 2**63) and value == value


def _as_tuple(value: Any, kinds: tuple[Any, ...], where: str) -> Any:
    if not isinstance(value, list | tuple):
        return MISFIT
    each = [kinds[0]] * len(value) if kinds[-1:] == (...,) else kinds
    return tuple(_fit(v, k, where) for v, k in zip(value, each, strict=True)) if len(each) == len(value) else MISFIT


def _type_name(hint: Any) -> str:
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "text", type(None): "nothing"}
    if typing.get_origin(hint) is Literal:
        return " or ".join(map(repr, typing.get_args(hint)))
    if typing.get_origin(hint) is tuple:
        return f"a list of {_type_name(typing.get_args(hint)[0]).removeprefix('a ')}s"
    return names.get(hint, getattr(hint, "__name__", str(hint)))
