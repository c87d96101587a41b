"""Documents from strangers, in JSON or TOML: size first, then syntax, then the schema.

The schemas are files in `spota/files/schemas`, in the words of JSON Schema, of which `check` knows what they use.
"""

import functools
import json
import math
import tomllib
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

LIMIT = 64 * 2**20
"""Bytes of the largest document that is read."""
DEEPEST = 50
"""Tables within tables."""
SHOWN = 60
"""Characters of a wrong value that an error repeats."""

TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda v: isinstance(v, Mapping),
    "array": lambda v: isinstance(v, list | tuple),
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
    "number": lambda v: _is_number(v),
    "integer": lambda v: _is_number(v) and float(v).is_integer(),
}
WORDS = {
    "object": "a table", "array": "a list", "string": "text", "boolean": "true or false", "null": "null",
    "number": "a finite number", "integer": "a whole number",
}  # fmt: skip


def read_json(path: Path, limit: int = LIMIT) -> Any:
    """A JSON file as plain values; a ValueError says in one sentence why it is none."""
    try:
        text = _text(path, limit)
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {_why(error)}.") from error
    return parse_json(text, str(path))


def parse_json(text: str, where: str) -> Any:
    """JSON text as plain values; NaN and infinity, for which JSON has no word, are refused."""
    try:
        return _shallow(json.loads(text, parse_constant=_refuse_constant))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{where} is not JSON: {_why(error)}.") from error


def read_toml(path: Path, limit: int = LIMIT) -> dict[str, Any]:
    """A TOML file as nested dictionaries; a ValueError says in one sentence why it is none."""
    try:
        return _shallow(tomllib.loads(_text(path, limit)))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not valid TOML: {_why(error)}.") from error


def check(document: Any, schema: str, where: str) -> None:
    """Refuse a document that is not as the schema of that name says; the error names the first place."""
    rules = schema_of(schema)
    wrong = _mistake(document, rules, rules["$defs"])
    if wrong is not None:
        raise ValueError(f"{where} is not a {schema}: {wrong}.")


def check_format(document: Any, formats: tuple[int, ...], what: str, where: str) -> int:
    """The format number of a document, which must be one of those that can be read; a document without one has 1."""
    if not isinstance(document, Mapping):
        raise ValueError(f"{where} is not a {what}: it is not a table.")
    number = document.get("format", 1)
    if number not in formats or isinstance(number, bool):
        known = " and ".join(map(str, formats))
        raise ValueError(f"{where} has format {_shown(number)}; this spota reads {what}s of format {known}.")
    return int(number)


@functools.cache
def schema_of(name: str) -> dict[str, Any]:
    """The written schema of a kind of file."""
    file = resources.files("spota.files").joinpath("schemas", f"{name.replace(' ', '-')}.schema.json")
    return {"$defs": {}, **json.loads(file.read_text("utf-8"))}


def _mistake(value: Any, rules: Mapping[str, Any], defs: Mapping[str, Any], place: str = "") -> str | None:
    """What is wrong with a value, in words; None if nothing is."""
    if "$ref" in rules:
        return _mistake(value, defs[rules["$ref"].rpartition("/")[2]], defs, place)
    if "anyOf" in rules:
        wrong = [_mistake(value, option, defs, place) for option in rules["anyOf"]]
        return None if None in wrong else wrong[0]
    return _wrong_value(value, rules, place) or _wrong_part(value, rules, defs, place)


def _wrong_value(value: Any, rules: Mapping[str, Any], place: str) -> str | None:
    """A value of another type, or outside what is allowed."""
    types = rules.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(TYPES[name](value) for name in types):
        return f"{place or 'it'} is {_shown(value)}, and {' or '.join(WORDS[name] for name in types)} is needed"
    if "enum" in rules and value not in rules["enum"]:
        return f"{place or 'it'} is {_shown(value)}, and one of {', '.join(map(str, rules['enum']))} is needed"
    if not TYPES["number"](value):
        return None
    if value < rules.get("minimum", -math.inf) or value > rules.get("maximum", math.inf):
        return f"{place} is {_shown(value)}, which is out of range"
    if value <= rules.get("exclusiveMinimum", -math.inf):
        return f"{place} is {_shown(value)}, and must be above {rules['exclusiveMinimum']}"
    return None


def _wrong_part(value: Any, rules: Mapping[str, Any], defs: Mapping[str, Any], place: str) -> str | None:
    """What is missing from a table or a list, or the first mistake inside it."""
    if isinstance(value, Mapping):
        missing = [name for name in rules.get("required", ()) if name not in value]
        if missing:
            return f"{place + ': ' if place else ''}{missing[0]} is missing"
        known, others = rules.get("properties", {}), rules.get("additionalProperties", {})
        parts = [(inner, known.get(name, others), _below(place, name)) for name, inner in value.items()]
    elif isinstance(value, list | tuple):
        if len(value) < rules.get("minItems", 0):
            return f"{place} has no entries"
        parts = [(inner, rules.get("items", {}), f"{place}[{i}]") for i, inner in enumerate(value)]
    else:
        return None
    found = (_mistake(inner, its_rules, defs, where) for inner, its_rules, where in parts if its_rules)
    return next((wrong for wrong in found if wrong is not None), None)


def _below(place: str, name: str) -> str:
    name = name if name.isidentifier() else _shown(name)
    return f"{place}.{name}" if place else name


def _text(path: Path, limit: int) -> str:
    """The text of a file that is not too large."""
    with path.open("rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise ValueError(f"it has more than {limit:,} bytes")
    return data.decode("utf-8")


def _shallow(document: Any) -> Any:
    """Refuse what nests so deeply that code which walks through it would not come back."""
    level = [document]
    for _ in range(DEEPEST):
        tables = [v.values() if isinstance(v, dict) else v for v in level if isinstance(v, dict | list)]
        level = [v for inner in tables for v in inner if isinstance(v, dict | list)]
        if not level:
            return document
    raise RecursionError


def _why(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it nests too deeply"
    return " ".join(str(error).split()).rstrip(".")


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number there")


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def _shown(value: Any) -> str:
    """A value as an error repeats it: on one line, and not too long."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 10**SHOWN:
        return "a number beyond all sizes"
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
