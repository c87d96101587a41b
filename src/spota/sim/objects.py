"""Objects of one's own by name: `file.py:name`, or `module:name` for what can be imported.

robot = named("my_robot.py:Robot")    # a class is constructed without arguments; anything else is taken as it is

To name a file is to execute it, as `python my_robot.py` would. Nothing else is ever executed: policy files, domain
sets and settings are data.
"""

import functools
import hashlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from spota.sim.checks import users_line
from spota.text import suggest

PREFIX = "own_"
"""Before the name of a file, so that `my_robot.py` is its own module and hides none that is installed."""


def is_reference(text: object) -> bool:
    """Whether it names an object in a file or a module; what exists as a path is a path."""
    place, colon, name = str(text).rpartition(":")
    return bool(colon and place) and name.isidentifier() and not Path(str(text)).exists()


def name_in(reference: str) -> str:
    """The object's own name."""
    return reference.rpartition(":")[2]


def recorded(reference: str) -> str:
    """The reference as a run keeps it: relative to the working directory if the file lies there, else absolute."""
    if not is_reference(reference):
        return reference
    place, _, name = reference.rpartition(":")
    if not _is_file(place):
        return reference
    whole, here = Path(os.path.abspath(place)), Path.cwd()  # noqa: PTH100, which leaves links as they are
    return f"{(whole.relative_to(here) if whole.is_relative_to(here) else whole).as_posix()}:{name}"


def named(reference: str, fits: Callable[[Any], bool], wanted: str) -> Any:
    """The object; a class is constructed. `fits` says whether it is of the kind that is `wanted`, in words.

    The same object each time, as long as its file is the same.
    """
    place, _, name = reference.rpartition(":")
    if _is_file(place):
        path = Path(place).resolve()
        if not path.is_file():
            raise ValueError(f"{reference}: there is no file {place} in {Path.cwd()}.")
        found = _built(str(path), name, hashlib.sha256(path.read_bytes()).hexdigest())
    else:
        found = _built(place, name, None)
    if not fits(found):
        raise ValueError(f"{reference} is {_kind(found)}; name {wanted}.")
    return found


def execute_file(path: Path) -> ModuleType:
    """The module of a file, for whoever needs its classes and not one object; a second time it is the same."""
    return _executed(path.resolve(), hashlib.sha256(path.read_bytes()).hexdigest())


def refuse_inside(directory: Path, *references: object) -> None:
    """Refuse references that a run has recorded to a file which is part of the run: whoever sent it may have put it."""
    whole = directory.resolve()
    for reference in filter(is_reference, references):
        place = str(reference).rpartition(":")[0]
        file = Path(place) if _is_file(place) else Path(place.replace(".", "/"))
        if file.resolve().is_relative_to(whole):
            raise ValueError(
                f"{directory / 'config.toml'} names {reference}, which lies inside the run, and files that come with a "
                "run are not executed; look at it, and move it out of the directory if you trust it."
            )


def _is_file(place: str) -> bool:
    return place.endswith(".py") or "/" in place or os.sep in place


@functools.cache
def _built(place: str, name: str, version: str | None) -> Any:
    """The object in a file with that content, or in a module."""
    module = _imported(place) if version is None else _executed(Path(place), version)
    if not hasattr(module, name):
        public = [n for n, value in vars(module).items() if not n.startswith("_") and not isinstance(value, ModuleType)]
        raise ValueError(f"{_short(place)} has no {name!r}; {suggest(name, public)}")
    found = getattr(module, name)
    return _constructed(f"{_short(place)}:{name}", found) if isinstance(found, type) else found


@functools.cache
def _executed(path: Path, version: str) -> ModuleType:
    """The file as a module; beside it may be others that it imports."""
    del version
    name = f"{PREFIX}{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path.name} is no Python file; name one that ends in .py.")
    _look_in(path.parent)
    loader, module = spec.loader, importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses and `inspect` look for it
    _in_one_sentence(path.name, lambda: loader.exec_module(module))
    return module


def _imported(name: str) -> ModuleType:
    """The module of that name, installed or in the working directory."""
    _look_in(Path.cwd())
    return _in_one_sentence(name, lambda: importlib.import_module(name))


def _look_in(directory: Path) -> None:
    """Let imports look there, too, after everything that is installed."""
    if str(directory) not in sys.path:
        sys.path.append(str(directory))


def _in_one_sentence(what: str, execute: Callable[[], Any]) -> Any:
    """What goes wrong in someone's file is told with their own line."""
    try:
        return execute()
    except SyntaxError as error:
        where = f" ({Path(error.filename or what).name}, line {error.lineno}: {(error.text or '').strip()})"
        raise ValueError(f"{what} is no Python: {error.msg}{where}.") from error
    except (Exception, SystemExit) as error:
        raise ValueError(f"{what} cannot be imported: {type(error).__name__}: {error}{users_line(error)}.") from error


def _constructed(what: str, cls: type) -> Any:
    try:
        return cls()
    except Exception as error:
        raise ValueError(
            f"{what} is a class that cannot be constructed without arguments: {error}{users_line(error)}; name an "
            f"object of it, e.g. write mine = {cls.__name__}(…) in that file and name :mine."
        ) from error


def _kind(found: Any) -> str:
    """What was found, in words."""
    what = "module" if isinstance(found, ModuleType) else "function" if hasattr(found, "__name__") else ""
    return f"the {what} {found.__name__}" if what else f"of the kind {type(found).__name__}"


def _short(place: str) -> str:
    return Path(place).name if _is_file(place) else place
