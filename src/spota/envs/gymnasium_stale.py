"""What an environment computed from its parameters when it was made, and still has after ξ was applied: nobody raises.

Three looks, each where it is possible: the constructor's own formulas in Python, the same ξ through the constructor,
and the arrays of a MuJoCo model.
"""

import ast
import inspect
import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np

from spota.envs.gymnasium_recipe import Recipe, Xi, construct, constructor_arguments

STEPS = 50
"""How long an applied and a constructed environment are compared."""


def stale_after(recipe: Recipe, xi: Xi) -> list[str]:
    """What is stale, one sentence each; nothing where ξ is not applied to an existing environment."""
    if recipe.way in ("constructor", "nothing"):
        return []
    env = recipe.make(xi)
    try:
        env.reset(seed=0)
        before, model = _numbers(env.unwrapped), _model(env.unwrapped)
        recipe.begin(env, xi, 0)
        after = _numbers(env.unwrapped)
        found = _stale_formulas(type(env.unwrapped), before, after) + _stale_model(model, _model(env.unwrapped))
        return found or _other_than_constructed(recipe, env, xi)
    finally:
        env.close()


def _numbers(inner: Any) -> dict[str, float]:
    """The attributes of an environment that are numbers."""
    return {n: float(v) for n, v in vars(inner).items() if isinstance(v, int | float | np.number) and v == v}


def _stale_formulas(cls: type, before: Mapping[str, float], after: Mapping[str, float]) -> list[str]:
    """Attributes that the constructor computes from others, which have changed while these have not."""
    changed = {name for name in after if after[name] != before.get(name)}
    found = []
    for name, sources in _formulas(cls).items():
        moved = sorted(sources & changed)
        if moved and name in after and name not in changed:
            found.append(
                f"{cls.__name__} computes {name} from {' and '.join(sorted(sources))} when it is made; "
                f"{', '.join(moved)} has changed, and {name} is still {after[name]:g}. Let apply set {name}, too."
            )
    return found


def _formulas(cls: type) -> dict[str, set[str]]:
    """Attribute → attributes that its formula in a constructor names, directly or as the argument of that name."""
    found: dict[str, set[str]] = {}
    for one in reversed(cls.__mro__):
        constructor = vars(one).get("__init__")
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(constructor)))  # type: ignore[arg-type]
        except (OSError, TypeError, SyntaxError):
            continue
        assigned = [(_attribute(n.targets[0]), n.value) for n in ast.walk(tree) if isinstance(n, ast.Assign)]
        alias = {v.id: name for name, v in assigned if name and isinstance(v, ast.Name)}
        for name, formula in assigned:
            if name and not isinstance(formula, ast.Name):
                found[name] = _named(formula, alias) - {name}
    return found


def _attribute(node: ast.AST) -> str | None:
    """`x` of `self.x`."""
    own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return node.attr if own else None  # type: ignore[attr-defined]


def _named(formula: ast.AST, alias: Mapping[str, str]) -> set[str]:
    """The attributes that a formula reads; an argument stands for the attribute that keeps it."""
    nodes = list(ast.walk(formula))
    own = {name for node in nodes if (name := _attribute(node))}
    return own | {alias[node.id] for node in nodes if isinstance(node, ast.Name) and node.id in alias}


def _model(inner: Any) -> dict[str, np.ndarray]:
    """Masses and what follows from them, if the environment has a model of MuJoCo."""
    model = getattr(inner, "model", None)
    names = ("body_mass", "body_inertia", "body_subtreemass")
    return {n: np.array(getattr(model, n)) for n in names} if all(hasattr(model, n) for n in names) else {}


def _stale_model(before: Mapping[str, np.ndarray], after: Mapping[str, np.ndarray]) -> list[str]:
    """Masses that changed alone."""
    if not before:
        return []
    heavier = before["body_mass"] != after["body_mass"]
    stiff = heavier & (before["body_inertia"] == after["body_inertia"]).all(axis=1) & before["body_inertia"].any(axis=1)
    found = []
    if stiff.any():
        found.append(
            f"The mass of body {int(stiff.argmax())} changed without its inertia; scale model.body_inertia with "
            "model.body_mass, then call mujoco.mj_setConst(model, data)."
        )
    if heavier.any() and (before["body_subtreemass"] == after["body_subtreemass"]).all():
        found.append("Masses changed, and what MuJoCo derives from them did not; call mujoco.mj_setConst(model, data).")
    return found


def _other_than_constructed(recipe: Recipe, env: Any, xi: Xi) -> list[str]:
    """Whether an environment that was made with ξ moves otherwise than one that ξ was applied to."""
    taken = {name: xi[name] for name in recipe.parameters if name in constructor_arguments(recipe.source)}
    if not taken:
        return []
    other = construct(recipe.source, {**recipe.arguments, **taken})
    try:
        first, second = recipe.begin(env, xi, 0), recipe.begin(other, xi, 0)
        env.action_space.seed(0)
        for _ in range(STEPS):
            if not np.array_equal(first, second, equal_nan=True):
                return [
                    f"An environment that is made with {', '.join(taken)} moves otherwise than one that they were "
                    "applied to: something that the constructor computes from them is stale. Let apply set that, too."
                ]
            action = env.action_space.sample()
            (first, _, over, *_), (second, *_) = env.step(action), other.step(action)
            if over:
                break
        return []
    finally:
        other.close()
