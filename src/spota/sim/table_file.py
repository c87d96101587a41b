"""Tables of distributions in files: what `--domain` takes, and what `spota envs ENV --write table.toml` writes.

table = read("table.toml", make("cart-pole"))   # TOML, JSON, rows in an .npz, or a directory that keeps a table
save(env.with_domain(table), "again.json")

A table is data from a stranger: size first, then syntax, then the schema, then the platform's names, units and signs.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w

from spota.files.archives import read_archive
from spota.files.atomic import plain, write_atomically, write_json
from spota.files.documents import LIMIT, check, check_format, read_json, read_toml
from spota.sim.domain import DomainDistribution, Empirical, Parameter
from spota.sim.env import Platform
from spota.text import suggest

FORMAT = 1
"""`spota/files/schemas/domain-table.schema.json` says what is in it."""
KIND = "domain table"
KEPT = "domain.json"
"""The table in a directory that has one: of a fit, or of a run with another table than its platform's."""


def read(source: str | Path, env: Platform) -> DomainDistribution:
    """The table of a file or a directory, for that platform; rows that it leaves out are the platform's."""
    path = file_of(source)
    if path.suffix == ".npz":
        return _rows(path, env)
    document = _document(path)
    if document["env"] != env.name and not _same_machine(document, env):
        raise ValueError(
            f"{path} is a table of {document['env']!r}, not of {env.name!r}; write one with: "
            f"spota envs {env.name} --write {env.name}.toml"
        )
    try:
        table = DomainDistribution.from_dict(_completed(document["domain"], env))
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} does not fit {env.name}: {error.args[0]}") from error
    return table.learned_from(tuple(document.get("recordings", ())))


def save(env: Platform, path: str | Path, about: str = "") -> Path:
    """Write a platform's table, as TOML or JSON by the file's ending."""
    path = Path(path)
    head = {"format": FORMAT, "env": env.name, **({"about": about} if about else {})}
    recordings = {"recordings": list(env.domain.recordings)} if env.domain.recordings else {}
    document = plain({**head, **recordings, "domain": env.domain.to_dict()})
    if path.suffix == ".json":
        return write_json(path, document)
    if path.suffix == ".toml":
        return write_atomically(path, lambda file: tomli_w.dump(document, file))
    raise ValueError(f"{path}: write a file whose name ends in .toml or .json.")


def file_of(source: str | Path) -> Path:
    """The file that a user means; a directory keeps its table as domain.json."""
    path = Path(source)
    if path.is_dir() and (path / KEPT).is_file():
        return path / KEPT
    if path.is_dir():
        raise ValueError(f"{path} has no {KEPT}: it is neither a fit nor a run with a table of its own.")
    if not path.is_file():
        raise ValueError(f"There is no table {path}; write one with: spota envs ENV --write {path.stem}.toml")
    if path.suffix not in (".toml", ".json", ".npz"):
        raise ValueError(f"{path} is no table: give a .toml, .json or .npz file, or the directory of a fit.")
    return path


def digest(source: str | Path) -> str:
    """SHA-256 of the file, to know it again."""
    return hashlib.sha256(file_of(source).read_bytes()).hexdigest()


def _document(path: Path) -> dict[str, Any]:
    document = read_json(path) if path.suffix == ".json" else read_toml(path)
    check_format(document, (FORMAT,), KIND, str(path))
    check(document, KIND, str(path))
    return document


def _same_machine(document: Mapping[str, Any], env: Platform) -> bool:
    """Whether both tasks are of one machine: their tables have the same parameters in the same units."""
    known = {**env.domain, **env.optional}
    rows: Mapping[str, Any] = document["domain"]
    same = set(env.domain) <= set(rows) <= set(known)
    return same and all(rows[name].get("unit", row.unit) == row.unit for name, row in known.items() if name in rows)


def _completed(rows: Mapping[str, Mapping[str, Any]], env: Platform) -> dict[str, Any]:
    """The rows with what the platform knows about each; unknown names and other units are refused."""
    known = {**env.domain, **env.optional}
    for name, row in rows.items():
        if name not in known:
            raise ValueError(f"there is no parameter {name!r}; {suggest(name, known)}")
        if row.get("unit", known[name].unit) != known[name].unit:
            raise ValueError(f"{name} is in {row['unit']!r} there, and in {known[name].unit!r} here.")
    whole = {name: {**_about(known[name]), **row} for name, row in rows.items()}
    observed = any(row["family"] == "Observed" for row in rows.values())
    if missing := [name for name in env.domain if name not in rows]:
        if observed:
            raise ValueError(f"observed rows need a value of every parameter, and {missing[0]} has none.")
        whole |= {name: env.domain[name].to_dict() for name in missing}
    ordered = [*env.domain, *(name for name in whole if name not in env.domain)]
    return {name: whole[name] for name in ordered}


def _about(row: Parameter) -> dict[str, Any]:
    return {"unit": row.unit, "meaning": row.meaning, "symbol": row.symbol, "sign": row.sign}


def _rows(path: Path, env: Platform) -> DomainDistribution:
    """Whole rows, one array a parameter."""
    try:
        arrays = read_archive(path, LIMIT)
    except ValueError as error:
        raise ValueError(f"{path} has no rows of parameters: {error}.") from error
    for name, column in arrays.items():
        if column.ndim != 1 or column.dtype.kind not in "iuf" or column.size == 0:
            raise ValueError(f"{path}: {name} is not one number a row; give one array [n] for each parameter.")
    rows = {name: {"family": "Observed", "values": column.tolist()} for name, column in arrays.items()}
    try:
        known = _completed(rows, env)
        return Empirical({name: known[name]["values"] for name in known}, {**env.domain, **env.optional})
    except (ValueError, KeyError) as error:
        raise ValueError(f"{path} does not fit {env.name}: {error.args[0]}") from error
