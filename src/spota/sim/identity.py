"""Which platform it is: a digest over its fields and its code, so that blocks of one are never taken for another's.

Two platforms are the same if every field and every attribute of their classes has the same value, and if the code of
their methods, and of their author's functions, classes and constants that these name, is the same. Comments,
docstrings, line breaks and where a file lies do not count. Code of libraries, and of spota beside its platforms, counts
by name only.
"""

import ast
import contextlib
import functools
import hashlib
import inspect
import sys
import sysconfig
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any

import jax
import numpy as np

from spota.sim.env import Platform
from spota.sim.host import HostEnv
from spota.sim.marginals import Marginal

HOOKS = ("__post_init__", "__call__", "__getattr__")
"""Methods with underscores that someone writes; the others are made by `dataclass`."""
MANNERS = ("at_once", "lacks", "open_at", "pictured", "place", "processes", "time_limit")
"""How somebody else's simulator is run and drawn on this computer, and put where a recording was: its machines give the
same returns in any case."""
LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})


def platform_sha256(env: Platform) -> str:
    """The platform's identity."""
    digest = hashlib.sha256(env.name.encode())
    for part in _Walk(type(env).__module__).object(env):
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()


def code_sha256(*objects: Any) -> str:
    """The identity of solvers, or of other objects with code: what they hold, and what they do."""
    digest = hashlib.sha256()
    for one in objects:
        for part in _Walk(one.__module__).value(one):
            digest.update(part.encode() + b"\0")
    return digest.hexdigest()


class _Walk:
    """One way through everything that a platform consists of; what was met before is not described again."""

    def __init__(self, module: str):
        self.package = module.partition(".")[0]
        self.met: dict[int, Any] = {}

    def object(self, value: Any) -> Iterator[str]:
        """A platform, an effect, a law: its class, then its fields."""
        if not self._is_new(value):
            return
        yield type(value).__qualname__
        yield from self.mapping({n: v for n, v in _state(value).items() if not _is_manner(type(value), n)})
        for cls in type(value).__mro__:
            yield from self.members(cls)

    def value(self, value: Any) -> Iterator[str]:
        """Anything that a field, a constant or a name can stand for."""
        function = _function(value)
        if isinstance(value, Marginal):
            yield from self.mapping(value.to_dict())
            yield from self.members(type(value))
        elif value is None or isinstance(value, bool | int | float | complex | str | bytes):
            yield repr(value)
        elif isinstance(value, np.ndarray | np.generic | jax.Array):
            array = np.asarray(value)
            yield f"{array.dtype} {array.shape} {array.tobytes().hex()}"
        elif isinstance(value, Mapping):
            yield from self.mapping(dict(value))
        elif isinstance(value, list | tuple):
            for inner in value:
                yield from self.value(inner)
        elif isinstance(value, set | frozenset):
            yield from sorted(map(repr, value))
        elif isinstance(value, functools.partial):
            yield from self.value((value.func, value.args, value.keywords))
        elif function is not None:
            yield from self.function(function)
        elif isinstance(value, type):
            yield from self.referred(value)
        elif isinstance(value, ModuleType):
            yield value.__name__.rpartition(".")[2] if self._is_foreign(value.__name__) else _source(value)
        else:
            yield from self.object(value)

    def mapping(self, values: Mapping[Any, Any]) -> Iterator[str]:
        """Values by name."""
        for name, value in values.items():
            yield str(name)
            yield from self.value(value)

    def members(self, cls: type) -> Iterator[str]:
        """What a class says: constants and methods."""
        if self._is_foreign(cls.__module__):
            return
        for name, value in sorted(vars(cls).items()):
            if name in HOOKS or not (name.startswith(("__", "_abc_")) or _is_manner(cls, name)):
                yield name
                yield from self.value(value)

    def function(self, function: FunctionType) -> Iterator[str]:
        """The code of a function, and what it names."""
        if not self._is_new(function):
            return
        if self._is_foreign(function.__module__):
            yield function.__qualname__
            return
        tree = _tree(function)
        yield _bytecode(function.__code__) if tree is None else ast.unparse(tree)
        names = set(function.__code__.co_names) if tree is None else _names(tree)
        yield from self.value((function.__defaults__, function.__kwdefaults__))
        yield from self.named(names, {**function.__globals__, **_closure(function)})

    def referred(self, cls: type) -> Iterator[str]:
        """A class that code names: its source, and what that names."""
        yield cls.__qualname__
        if self._is_foreign(cls.__module__) or not self._is_new(cls):
            return
        tree = _tree(cls)
        if tree is None:
            yield from self.members(cls)
            return
        yield ast.unparse(tree)
        yield from self.named(_names(tree), vars(sys.modules[cls.__module__]))

    def named(self, names: set[str], scope: Mapping[str, Any]) -> Iterator[str]:
        """What names of a module or a closure stand for."""
        for name in sorted(names & scope.keys()):
            yield name
            yield from self.value(scope[name])

    def _is_new(self, value: Any) -> bool:
        new = id(value) not in self.met
        self.met[id(value)] = value  # which keeps it alive, so that no other gets its number
        return new

    def _is_foreign(self, module: str | None) -> bool:
        """Whether a module belongs to a library, and not to the platform's author."""
        if module is None:  # code that someone has typed
            return False
        root = module.partition(".")[0]
        if root == "spota":
            return not module.startswith("spota.envs")
        if root in (self.package, "__main__"):
            return False
        file = getattr(sys.modules.get(module), "__file__", None)
        return file is None or file.startswith(LIBRARIES)


def _is_manner(cls: type, name: str) -> bool:
    """Whether this is about how a simulator is run."""
    return name in MANNERS and issubclass(cls, HostEnv)


def _state(value: Any) -> dict[str, Any]:
    """The fields of an object; what it has only computed and kept is none of them."""
    kept = {n for cls in type(value).__mro__ for n, v in vars(cls).items() if isinstance(v, functools.cached_property)}
    declared = {f.name: getattr(value, f.name) for f in fields(value)} if is_dataclass(value) else {}
    own = getattr(value, "__dict__", {})
    return {**declared, **{n: v for n, v in own.items() if n not in kept}} if isinstance(own, dict) else declared


def _function(value: Any) -> FunctionType | None:
    """The function behind a method, a property or a decorator."""
    for name in ("fget", "func", "__func__"):
        value = getattr(value, name, value)
    value = inspect.unwrap(value) if callable(value) and not isinstance(value, type) else value
    return value if isinstance(value, FunctionType) else None


def _closure(function: FunctionType) -> dict[str, Any]:
    """What a function has from the functions around it."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # not filled yet
            found[name] = cell.cell_contents
    return found


def _tree(what: Any) -> ast.Module | None:
    """The source of a function or a class without docstrings and annotations; None where there is no file."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(what)))
    except (OSError, TypeError, SyntaxError):
        return None
    return ast.fix_missing_locations(_Bare().visit(tree))


class _Bare(ast.NodeTransformer):
    """Leaves out what decides nothing."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        return ast.Pass() if isinstance(node.value, ast.Constant) else self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)


def _source(module: ModuleType) -> str:
    tree = _tree(module)
    return module.__name__ if tree is None else ast.unparse(tree)


def _names(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _bytecode(code: CodeType) -> str:
    """Where there is no source: instructions, names and constants, those of inner functions included."""
    inner = [_bytecode(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    return f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {inner}"
