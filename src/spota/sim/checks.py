"""A platform and a policy are looked at once, before any work begins: shapes, types and names of all that they return.

Nothing is computed: jax traces each method with one abstract domain. What does not fit is said in the names of whoever
wrote the platform, with what to type, instead of by the internals of jax.
"""

import contextlib
import functools
import math
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax.errors import ConcretizationTypeError, TracerArrayConversionError, TracerBoolConversionError

from spota.sim.acting import remembers, stepping
from spota.sim.env import Env, Platform, Policy, Signal
from spota.text import suggest

PACKAGE = str(Path(__file__).parent.parent)
SEVERAL = 3
"""Rollouts side by side for which a policy is tried."""


@functools.lru_cache(maxsize=64)
def check_env(env: Platform) -> None:
    """Refuse a platform whose methods do not fit its signals, its table or each other.

    What a host environment does is looked at when it runs.
    """
    _check_signals(env)
    if not isinstance(env, Env):
        return
    scalar = jax.ShapeDtypeStruct((), jnp.float32)
    action = tuple(scalar for _ in env.actions)
    xi = _traced(env, "params", lambda domain: env.params(_Table(env, domain)), dict.fromkeys(env.domain, scalar))
    state = _traced(env, "start", env.start, jax.eval_shape(lambda: jax.random.key(0)), xi)
    _check_tuple(env, "observe", _traced(env, "observe", env.observe, state, xi), env.observations)
    _check_scalar(env, "reward", _traced(env, "reward", env.reward, state, action, xi))
    _check_same(env.name, state, _traced(env, "step", env.step, state, action, xi))
    _check_tuple(env, "danger", _traced(env, "danger", env.danger, state, xi), None)


def check_policy(env: Platform, policy: Policy) -> None:
    """Refuse a policy that does not return one row for each actuator, or whose memory does not stay what it is."""
    if not (callable(policy) or remembers(policy)):
        raise ValueError(
            f"The policy is {policy!r}, which cannot be called; give a function: observation → action, or an object "
            "with the methods start and step."
        )
    seen = jax.ShapeDtypeStruct((len(env.observations), SEVERAL), jnp.float32)
    start, step = stepping(policy)
    with _in_plain_words(f"The policy for {env.name}"):
        memory = jax.eval_shape(lambda: start(SEVERAL))
        later, action = jax.eval_shape(lambda m, o: step(m, o), memory, seen)
    _check_memory(memory, later)
    _check_action(env, action)


def _check_action(env: Platform, action: Any) -> None:
    wanted, found = (len(env.actions), SEVERAL), getattr(action, "shape", None)
    if found == wanted:
        return
    if found == (SEVERAL,) and len(env.actions) == 1:
        hint = "it lacks the axis of actuators: write action[None]"
    else:
        hint = f"write one row for each actuator: {_names(env.actions)}"
    raise ValueError(
        f"The policy returns {described(action)} for {SEVERAL} observations of shape ({len(env.observations)},), "
        f"but {env.name} takes an array of shape {wanted}; {hint}."
    )


def _check_memory(first: Any, then: Any) -> None:
    """Refuse a memory whose batch is not its last axis, and a step that returns another kind than `start`."""
    for path, leaf in jax.tree.leaves_with_path(first):
        if leaf.shape[-1:] != (SEVERAL,):
            name = jax.tree_util.keystr(path, simple=True, separator=".") or "the state"
            raise ValueError(
                f"start({SEVERAL}) of the policy returns {described(leaf)} for {name}; its last axis must be the "
                f"rollouts, here {SEVERAL}."
            )
    _check_same("the policy", first, then)


class _Table(dict):
    """One domain by name; a name that the table of distributions lacks is an error that helps."""

    def __init__(self, env: Env, domain: Mapping[str, Any]):
        super().__init__(domain)
        self.env = env

    def __missing__(self, name: str) -> Any:
        raise ValueError(
            f"params of {self.env.name} asks for the parameter {name!r}, which its domain distribution lacks; "
            f"{suggest(str(name), self)}"
        )


def _traced(env: Env, method: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """The shapes and types that a method returns."""
    with _in_plain_words(f"{method} of {env.name}"):
        return jax.eval_shape(function, *arguments)


@contextlib.contextmanager
def _in_plain_words(what: str) -> Iterator[None]:
    """Say what a method does that cannot be compiled, and where."""
    try:
        yield
    except TracerBoolConversionError as error:
        raise ValueError(
            f"{what} decides by a value that is known only when it runs{users_line(error)}; instead of `if`, `and`, "
            "`or`, `min` and `max` write jnp.where(condition, this, that), &, |, jnp.minimum and jnp.maximum."
        ) from error
    except TracerArrayConversionError as error:
        raise ValueError(
            f"{what} hands its values to NumPy{users_line(error)}, which cannot be compiled; write jnp (import "
            "jax.numpy as jnp) instead of np."
        ) from error
    except ConcretizationTypeError as error:
        raise ValueError(
            f"{what} needs a value that is known only when it runs{users_line(error)}; instead of float(), int() and "
            "the module math use jnp (import jax.numpy as jnp)."
        ) from error


def users_line(error: BaseException) -> str:
    """The user's own line: the last one that is neither Python's, nor ours, nor an installed package's."""
    others = (*(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")), PACKAGE, "<frozen")
    own = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(others)]
    return f" ({Path(own[-1].filename).name}, line {own[-1].lineno}: {own[-1].line})" if own else ""


def _check_signals(env: Platform) -> None:
    for kind in ("observations", "actions"):
        signals = getattr(env, kind)
        if not signals or not all(isinstance(signal, Signal) for signal in signals):
            raise ValueError(f"{kind} of {env.name} is {signals!r}; write a tuple: (Signal('x', 'm', -1.0, 1.0),).")
        again = [s.name for i, s in enumerate(signals) if s.name in [other.name for other in signals[:i]]]
        if again:
            raise ValueError(f"{kind} of {env.name} has {again[0]!r} twice; give every signal a name of its own.")
        for signal in signals:
            if not (math.isfinite(signal.low) and math.isfinite(signal.high) and signal.low < signal.high):
                raise ValueError(
                    f"{signal.name} of {env.name} ranges from {signal.low:g} to {signal.high:g}; give it finite "
                    "bounds, the lower one first."
                )


def _check_tuple(env: Env, method: str, found: Any, signals: tuple[Signal, ...] | None) -> None:
    """Refuse anything but a tuple of scalars, one for each signal."""
    named = "" if signals is None else f" for {_names(signals)}"
    if not isinstance(found, tuple | list):
        raise ValueError(
            f"{method} of {env.name} returns {described(found)}; write a tuple of scalars{named}, e.g. return (x,)."
        )
    for value in found:
        _check_scalar(env, method, value)
    if signals is not None and len(found) != len(signals):
        raise ValueError(
            f"{method} of {env.name} returns {len(found)} value{'s' if len(found) != 1 else ''}, but its observations "
            f"are {len(signals)} ({_names(signals)}); return one scalar for each of them, in this order."
        )


def _check_scalar(env: Env, method: str, found: Any) -> None:
    if getattr(found, "shape", None) != ():
        raise ValueError(
            f"{method} of {env.name} returns {described(found)} where a scalar is needed; platforms are written for "
            "one domain: take x[0] apart, or sum over what has several entries."
        )


def _check_same(who: str, start: Any, moved: Any) -> None:
    """Refuse a step that returns another kind of state than `start`."""
    if jax.tree.structure(start) != jax.tree.structure(moved):
        raise ValueError(
            f"step of {who} returns {described(moved)}, but start returns {described(start)}; both must return "
            "the same kind of state."
        )
    pairs = zip(jax.tree.leaves_with_path(start), jax.tree.leaves(moved), strict=True)
    for (path, first), then in pairs:
        if (first.shape, first.dtype) != (then.shape, then.dtype):
            name = jax.tree_util.keystr(path, simple=True, separator=".") or "the state"
            raise ValueError(
                f"step of {who} returns {described(then)} for {name}, but start returns {described(first)}; "
                "let both return the same, e.g. jnp.zeros(()) instead of 0."
            )


def described(value: Any) -> str:
    """What someone has returned, in a few words."""
    if hasattr(value, "shape"):
        kind = "a scalar" if value.shape == () else f"an array of shape {value.shape}"
        return f"{kind} ({value.dtype})"
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    return "nothing" if value is None else f"a {type(value).__name__}"


def _names(signals: tuple[Signal, ...]) -> str:
    return ", ".join(signal.name for signal in signals)
