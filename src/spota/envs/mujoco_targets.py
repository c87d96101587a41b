"""Where a domain parameter acts in a MuJoCo model, in MuJoCo's own names: `body/pole.mass`, `opt.gravity[2] *`.

The value that was drawn replaces the compiled one, multiplies it (`*`) or is added to it (`+`). It is always the
compiled one, so nothing compounds. Inertia follows mass, unless it is a target itself.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from spota.text import suggest

KINDS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "body": ("nbody", ("body_",)),
    "joint": ("njnt", ("jnt_", "dof_", "")),
    "geom": ("ngeom", ("geom_",)),
    "site": ("nsite", ("site_",)),
    "actuator": ("nu", ("actuator_",)),
    "tendon": ("ntendon", ("tendon_",)),
    "equality": ("neq", ("eq_",)),
    "pair": ("npair", ("pair_",)),
}
"""Kinds of objects: where a model counts them, and how the fields begin that hold their attributes. What has no name is
called by its number."""
TARGET = re.compile(
    r"(?:(?P<kind>\w+)/(?P<name>[^\s.]+)|opt)\.(?P<attribute>\w+)(?:\[(?P<index>\d+)\])?\s*(?P<how>[*+]?)"
)
COMPUTED = ("invweight0", "subtreemass", "M0", "length0", "acc0", "lengthrange", "rbound")
"""What MuJoCo computes of the rest: a value that is written there is lost."""


@dataclass(frozen=True)
class Target:
    """Some entries of a field of a compiled model, and what happens to them."""

    field: str
    entries: tuple[int, ...]
    """In the flat field."""
    how: str

    def values(self, compiled: Float[np.ndarray, "k"], drawn: Float[np.ndarray, "n"]) -> Float[np.ndarray, "n k"]:
        """What stands there instead of the compiled values, on each of n domains."""
        column, row = drawn[:, None], compiled[None, :]
        if self.how == "*":
            return row * column
        return row + column if self.how == "+" else np.broadcast_to(column, (drawn.size, compiled.size))


def resolve(model: Any, target: str) -> Target:
    """The entries that a target names; one that does not exist is refused with the nearest that does."""
    found = TARGET.fullmatch(target.strip())
    if found is None:
        raise ValueError(
            f"The target {target!r} cannot be read; write KIND/NAME.ATTRIBUTE or opt.ATTRIBUTE, with [INDEX] and then "
            "* or + if need be, e.g. 'body/pole.mass', 'geom/floor.friction[0]', 'opt.gravity[2] *'."
        )
    part, field = _option(model, target, found) if found["kind"] is None else _attribute(model, target, found)
    start = 0 if found["kind"] is None else _offset(part, getattr(model, field))
    if found["index"] is None:
        return Target(field, tuple(range(start, start + part.size)), found["how"])
    index = int(found["index"])
    if index >= part.size:
        raise ValueError(
            f"{target!r}: {found['attribute']} has {part.size} entries; write an index from 0 to {part.size - 1}."
        )
    return Target(field, (start + index,), found["how"])


def flat(model: Any, field: str) -> Float[np.ndarray, "k"]:
    """A field of a compiled model as one row of numbers."""
    holder, name = (model.opt, field.removeprefix("opt.")) if field.startswith("opt.") else (model, field)
    return np.array(getattr(holder, name), np.float64).reshape(-1)


Writing = tuple[str, tuple[int, ...], Float[np.ndarray, "n _"]]
"""A field, entries of it, and their values on n domains."""


def writings(model: Any, targets: Sequence[tuple[Target, Float[np.ndarray, "n"]]]) -> list[Writing]:
    """All that is written into a model for n domains; what inertia becomes where mass is written is part of it."""
    named = {entry for target, _ in targets if target.field == "body_inertia" for entry in target.entries}
    told: list[Writing] = []
    for target, drawn in targets:
        compiled = flat(model, target.field)[list(target.entries)]
        values = target.values(compiled, drawn)
        told.append((target.field, target.entries, values))
        if target.field == "body_mass":
            told.extend(_inertia(model, target.entries, values / compiled[None, :], named))
    return told


def _inertia(
    model: Any, bodies: Sequence[int], ratios: Float[np.ndarray, "n k"], named: Iterable[int]
) -> list[Writing]:
    """Inertia in proportion to mass: the shape stays, the density changes."""
    found = []
    for i, body in enumerate(bodies):
        entries = tuple(e for e in range(3 * body, 3 * body + 3) if e not in named)
        if entries:
            compiled = flat(model, "body_inertia")[None, list(entries)]
            found.append(("body_inertia", entries, compiled * ratios[:, i, None]))
    return found


def _option(model: Any, target: str, found: re.Match[str]) -> tuple[np.ndarray, str]:
    names = [n for n in dir(model.opt) if not n.startswith("_") and _is_number(getattr(model.opt, n))]
    if found["attribute"] not in names:
        raise ValueError(f"{target!r}: opt has no {found['attribute']!r}; {suggest(found['attribute'], names)}")
    return np.asarray(getattr(model.opt, found["attribute"])).reshape(-1), f"opt.{found['attribute']}"


def _attribute(model: Any, target: str, found: re.Match[str]) -> tuple[np.ndarray, str]:
    kind, name, attribute = found["kind"], found["name"], found["attribute"]
    if kind not in KINDS:
        raise ValueError(f"{target!r}: there is no kind {kind!r}; {suggest(kind, KINDS)}")
    count, prefixes = KINDS[kind]
    names = [getattr(model, kind)(i).name or str(i) for i in range(getattr(model, count))]
    if name not in names:
        there = suggest(name, names) if names else "it has none at all."
        raise ValueError(f"{target!r}: the model has no {kind} {name!r}; {there}")
    view = getattr(model, kind)(names.index(name))
    fields = {a: p + a for a in dir(view) for p in prefixes if _holds(model, p + a, view, a)}
    usable = {a: f for a, f in fields.items() if a not in COMPUTED and not a.startswith("_")}
    if attribute not in usable:
        why = "is computed of the rest" if attribute in fields else "does not exist"
        raise ValueError(f"{target!r}: {attribute!r} of a {kind} {why}; {suggest(attribute, sorted(usable))}")
    return getattr(view, attribute), usable[attribute]


def _holds(model: Any, field: str, view: Any, attribute: str) -> bool:
    """Whether the field is where the attribute's numbers are."""
    whole = getattr(model, field, None)
    if not isinstance(whole, np.ndarray) or not _is_number(whole):
        return False
    return np.shares_memory(whole, getattr(view, attribute))


def _is_number(value: Any) -> bool:
    return np.asarray(value).dtype.kind == "f" and np.asarray(value).size > 0


def _offset(part: np.ndarray, whole: np.ndarray) -> int:
    """Where a named part begins in its field."""
    return (part.__array_interface__["data"][0] - whole.__array_interface__["data"][0]) // whole.itemsize
