"""Everything that decides a run of SPOTA: the platform, the settings of Algorithm 1, and the solvers inside it.

A plan comes from a preset, then a TOML file, then flags or arguments; the run directory keeps it in config.toml.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal

from spota.certify.settings import Spota
from spota.cluster.tasks import Tasks
from spota.polopt import HOST_DOMAINS, MANY_DOMAINS, default_domains, default_gains, default_hidden
from spota.polopt.analytic import Analytic
from spota.polopt.optimizer import refuse_memory
from spota.polopt.solve import Optimizer
from spota.polopt.solver import check_solver, is_optimal
from spota.runs import config
from spota.runs.platforms import planned, table_digest
from spota.sim.env import Platform
from spota.sim.host import HostEnv
from spota.sim.identity import code_sha256, platform_sha256
from spota.sim.objects import is_reference, recorded
from spota.sim.randomness import checked_seed
from spota.text import suggest

TABLES = ("spota", "candidate", "reference", "tasks")
"""The tables of a settings file."""
LOOP_ONLY = ("max_iterations", "growth", "warm_start", "spend_alpha")
"""Settings of the loop over the iterations, without meaning for a policy that exists already."""
QUICK = {"n_G": 10, "max_iterations": 3, "growth": "constant"}
"""The same sizes again if the first candidate does not pass: then all programs are compiled already."""
SIZES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "tuned": ({"n_c": 5 * MANY_DOMAINS, "n_r": 20, "n_J": 10}, {}),
    "quick": ({"n_c": MANY_DOMAINS, "n_r": 10, "n_J": 10}, {"n_c": 40, "n_r": 5, "n_J": 20}),
    "paper": ({}, {}),
}
"""Domains and rollouts of a preset: for gradients and closed forms, where domains cost nothing, and for solvers
that pay for each. A reference looks better on its own domains than it is, of ten more so than of fifty. That margin
covers what it cannot find: references of fifty, from a candidate on a plateau, certified what was not true
(docs/results.md)."""
MORE_DOMAINS = {"ball-balancer": 5}
"""Where it pays much to know a few machines, references have so many times the domains. On the Ball-Balancer they may
go closer to the bounds then, and win 20 on twenty domains over a policy that loses 7 to the best that is known."""
TRAININGS = 2
"""Of a candidate, one on each core of a small machine: the better one is rarely on a plateau
(docs/solver_studies.md)."""
HOST_SIZES: dict[str, dict[str, int]] = {
    "tuned": {"n_c": 2 * HOST_DOMAINS, "n_r": 10, "n_J": 10, "performance_domains": 20000},
    "quick": {"n_c": HOST_DOMAINS, "n_r": 10, "n_J": 10, "performance_domains": 8000, "max_iterations": 1, "looks": 2},
    "paper": {},
}
"""The same on a host environment, where every step costs. `quick` has one candidate and two looks at it, so that it
ends after a time that can be told beforehand; all of α is theirs. On the MuJoCo Cart-Pole that is 15 minutes of one
core, and one look (docs/results.md); `tuned` was chosen by counting steps."""
QUICK_ITERATIONS = 0.6
"""The share of its iterations that a candidate's solver has in the quick preset."""
ASSESSED_ON = 5
"""n_r of an assessment where domains cost: the more a reference has, the less it is too good for them alone."""
OWN = "own"
"""What `solver` says in a plan whose solvers were given as objects."""

Layer = tuple[str, Mapping[str, Any]]
"""(where it comes from, its tables)."""


@dataclass(frozen=True)
class Plan:
    """Everything that decides the result."""

    env: str
    """The platform: a name, or `file.py:name` for one of someone's own."""
    env_sha256: str | None = None
    """Its identity, `identity.platform_sha256`; it is computed, whatever a file says."""
    domain: str | None = None
    """The file or directory with the table of distributions, if it is not the platform's own; the run keeps a copy."""
    domain_sha256: str | None = None
    """That table's digest, as certificates name it; it is computed, whatever a file says."""
    algo: Literal["spota", "assess"] = "spota"
    """Train until certified, or assess a policy that exists."""
    preset: config.Preset = "tuned"
    """Where the settings start from."""
    solver: str = "default"
    """The solvers inside SPOTA: a name of `config.SOLVERS`, or `file.py:name`."""
    solver_sha256: str | None = None
    """Their identity, if they are someone's own; it is computed, whatever a file says."""
    seed: int = 0
    """The same seed gives the same result."""
    policy: str | None = None
    """The policy to assess: a controller, a file, a run directory or `file.py:name`."""
    policy_sha256: str | None = None
    """Its fingerprint."""
    against: tuple[str, ...] | None = None
    """Known policies that its references may start from."""
    against_sha256: tuple[str, ...] | None = None
    """Their fingerprints."""
    platform: Mapping[str, Any] | None = None
    """What is particular about a platform that was given as an object."""
    spota: Any = None
    """The settings of Algorithm 1."""
    candidate: Any = None
    """The candidate's solver; in an assessment, that of a candidate of our own for references to start from."""
    reference: Any = None
    """The references' solver."""
    tasks: Any = None
    """How problems are cut into tasks for workers; None where they are solved in one process."""

    def __post_init__(self):
        """Refuse settings that cannot work."""
        checked_seed(self.seed)

    def table(self) -> config.Table:
        """For config.toml."""
        table = config.to_dict(self)
        if self.algo == "assess":
            table["spota"] = {name: value for name, value in table["spota"].items() if name not in LOOP_ONLY}
        return table


def resolve(file: Path | None, flags: Mapping[str, Any], layers: Sequence[Layer] = ()) -> Plan:
    """The plan from a TOML file, flags by the names of `Plan` (None: not given), and tables on top of both."""
    from_file = config.read_toml(file) if file else {}
    where = str(file) if file else "the command line"
    if from_file.get("solver") == OWN or "platform" in from_file:
        raise ValueError(f"{where} was written from Python, with objects of its own; go on with it there.")
    given = {name: value for name, value in flags.items() if value is not None}
    tables = {name: from_file.pop(name) for name in TABLES if name in from_file}
    if "domain" in given:
        from_file.pop("domain_sha256", None)
    head = _recorded(config.build(Plan, config.merge(from_file, given), where))
    return complete(head, planned(head, file and file.parent), [(where, tables), *layers])


def _recorded(head: Plan) -> Plan:
    """The plan with names of files as config.toml keeps them."""
    policy, against = head.policy and recorded(head.policy), head.against and tuple(map(recorded, head.against))
    return replace(head, env=recorded(head.env), solver=recorded(head.solver), policy=policy, against=against)


def complete(head: Plan, env: Platform, layers: Sequence[Layer]) -> Plan:
    """Fill in the preset's settings and solvers, changed by the layers in their order."""
    parts = _assessing(head, env, layers) if head.algo == "assess" else _training(head, env)
    parts["tasks"] = head.tasks or (Tasks() if any("tasks" in layer for _, layer in layers) else None)
    for where, layer in layers:
        _check_names(head, parts, layer, where)
        parts |= {name: _changed(parts[name], change, f"{where} [{name}]") for name, change in layer.items()}
    for solver in (parts["candidate"], parts["reference"]):
        check_solver(solver, env)
    if isinstance(parts["spota"], Spota):
        parts["spota"].check_memory(env)
        if parts["spota"].architecture.remembers:
            for solver in (parts["candidate"], parts["reference"]):
                refuse_memory(solver)
    own = [one for one in (parts["candidate"], parts["reference"]) if not one.__module__.startswith("spota.")]
    digests = {"env_sha256": platform_sha256(env), "domain_sha256": table_digest(head, env)}
    return replace(head, **digests, solver_sha256=code_sha256(*own) if own else None, **parts)


def _training(head: Plan, env: Platform) -> dict[str, Any]:
    """The settings of a run that trains until it is certified."""
    candidate, reference = config.solvers(head.solver, env, head.preset)
    settings = replace(preset_settings(head.preset, env), **_sizes(head.preset, candidate, env))
    if head.preset == "quick":
        candidate = _shortened(candidate)
    return {"spota": settings, "candidate": candidate, "reference": reference}


def _sizes(preset: str, solver: Any, env: Platform) -> dict[str, Any]:
    """How many domains and rollouts the preset has for such a solver on such a platform."""
    if isinstance(env, HostEnv):
        return HOST_SIZES[preset]
    many, few = SIZES[preset]
    if isinstance(solver, Analytic):
        gains = default_gains(solver)
        ours = {"hidden": default_hidden(solver), "gain": gains.last, "first_gain": gains.first, "trainings": TRAININGS}
        return many if preset == "paper" else {**many, "n_r": MORE_DOMAINS.get(env.name, 1) * many["n_r"], **ours}
    return many if is_optimal(solver) else few


def _assessing(head: Plan, env: Platform, layers: Sequence[Layer]) -> dict[str, Any]:
    """The settings of an assessment, in which a candidate of our own has its whole training, whatever the preset."""
    _, reference = config.solvers(head.solver, env, head.preset)
    own = [layer["reference"] for _, layer in layers if _is_object(layer.get("reference"))]
    few = {"n_r": ASSESSED_ON} if head.preset == "tuned" else {}
    sizes = {**few, **_sizes(head.preset, own[-1] if own else reference, env)}
    if own or is_reference(head.solver):  # the platform's solver may not fit it
        candidate = own[-1] if own else reference
    else:
        candidate, _ = config.solvers("default", env)
        sizes["n_c"] = sizes["n_c"] if isinstance(env, HostEnv) else default_domains(candidate)
    settings = replace(preset_settings(head.preset, env), **sizes)
    return {"spota": settings, "candidate": candidate, "reference": reference}


def flag_tables(
    beta: float | None, max_minutes: float | None = None, hidden: tuple[int, ...] = (), **memory: int | None
) -> config.Table:
    """What the flags of their own say, as tables; `memory` has those of the memory, by the names of `Spota`."""
    if max_minutes is not None and not 0 < max_minutes < float("inf"):
        raise ValueError(f"{max_minutes:g} minutes at most: give a positive number of minutes, e.g. 30.")
    limit = None if max_minutes is None else 60.0 * max_minutes
    given = {"beta": beta, "max_seconds": limit, "hidden": hidden or None, **memory}
    return {"spota": {name: value for name, value in given.items() if value is not None}}


def preset_settings(preset: config.Preset, env: Platform) -> Spota:
    """The settings of Algorithm 1 in a preset."""
    if preset != "paper":
        return Spota.tuned(env, **QUICK) if preset == "quick" else Spota.tuned(env)
    try:
        return Spota.paper(env.name)
    except ValueError as error:
        raise ValueError(f"The paper has no settings for {env.name}; leave out --preset.") from error


def _shortened(solver: Any) -> Any:
    """The same solver with less to do; a closed form stays as it is."""
    if not isinstance(solver, Optimizer):
        return solver
    iterations = max(1, round(QUICK_ITERATIONS * solver.iterations))
    return replace(solver, iterations=iterations)  # type: ignore[type-var]


def _check_names(head: Plan, parts: Mapping[str, Any], layer: Mapping[str, Any], where: str) -> None:
    """Refuse tables that do not exist, and settings without a meaning here."""
    for name, values in layer.items():
        if name not in TABLES:
            homes = [table for table in TABLES if name in _names(parts[table])]
            hint = f"write {homes[0]}.{name}={values}" if homes else suggest(name, TABLES).rstrip("?.")
            raise ValueError(f"{where}: there is no table {name!r}; {hint}.")
        if head.algo == "assess" and name == "spota" and isinstance(values, Mapping):
            for setting in set(values) & set(LOOP_ONLY):
                raise ValueError(f"{where}: {setting} belongs to the loop over candidates; leave it out here.")


def _names(settings: Any) -> list[str]:
    return [f.name for f in fields(settings)] if is_dataclass(settings) else []


def _is_object(change: Any) -> bool:
    """Whether someone gave settings or a solver as an object, and no table of changes."""
    return is_dataclass(change) or callable(change)


def _changed(settings: Any, change: Any, where: str) -> Any:
    """The settings with what was told, or another object instead; a function is named, and has no settings."""
    if _is_object(change):
        return change
    if not is_dataclass(settings):
        name = config.plain(settings)
        if change == name:
            return settings
        raise ValueError(f"{where}: {name} has no settings.")
    if not isinstance(change, Mapping):
        raise ValueError(f"{where} = {change!r}: write a table with its settings.")
    return config.override(settings, change, where)
