"""What people name on the command line: policies by file, run directory or controller, and domains by file.

A platform, a policy or a solver of one's own is `file.py:name` or `module:name`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import tyro

from spota import policies
from spota.analysis import evaluate
from spota.commands.output import warn
from spota.envs import PLATFORMS, make
from spota.policies.clipping import clipping_warning
from spota.policies.onnx_files import is_onnx, notes, platform_of_onnx, refuse_code
from spota.policies.onnx_reading import split_words
from spota.runs.config import read_toml
from spota.runs.directory import CONFIG
from spota.runs.platforms import platform_of
from spota.sim import domain_set
from spota.sim.domain import Domains
from spota.sim.env import Platform, Policy
from spota.sim.objects import is_reference, name_in
from spota.sim.table_file import KEPT

Named = Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="POLICY ...", help_behavior_hint="")]
"""Policies as a user names them, side by side."""
Words = Annotated[
    tuple[str, ...],
    tyro.conf.arg(
        metavar="NAME=VALUE ...",
        help_behavior_hint="(default: none)",
        help="How ONNX files are used, e.g. --contract units=physical output=actions; a TOML file beside one says the "
        "same, and docs/own_policy.md has all words.",
    ),
]
"""`--contract`, of every command that takes a policy."""


OtherTable = Annotated[
    Path | None,
    tyro.conf.arg(
        metavar="TABLE",
        help="Another table of distributions: a file (`spota envs ENV --write` writes one; .npz has rows), a fit, a "
        "run that has one, or the platform's name for its own.",
        help_behavior_hint="(default: the platform's own, or that of the run)",
    ),
]
"""`--domain`, of every command that draws domains."""


def named_table(domain: Path | None) -> str | None:
    """The table as settings keep it."""
    return None if domain is None else str(domain)


def contestants(
    sources: Sequence[str], env: str | None, noise: bool = True, domain: Path | None = None
) -> tuple[Platform, dict[str, Policy]]:
    """The platform, and the policies under short names; policy files know their platform, controllers do not.

    Its table is the given one, or that of the runs; the platform's name means its own.
    """
    name = platform_named(sources, env)
    platform = make(name, noise=noise, domain=table_named(sources, name, domain))
    found = [told(policies.find(source, platform), platform) for source in sources]
    return platform, dict(zip(_labels(sources), found, strict=True))


def told(policy: Policy, env: Platform) -> Policy:
    """The policy, after people have heard what was assumed about it."""
    for note in notes(policy, env):
        warn(note)
    return policy


def with_contract(sources: Sequence[str], words: Sequence[str]) -> tuple[str, ...]:
    """The sources with what `--contract` says behind the names of ONNX files: policy.onnx,units=physical."""
    if words and not any(map(is_onnx, sources)):
        raise ValueError(f"--contract {' '.join(words)}: it is about ONNX files, and none was given.")
    return tuple(",".join([source, *words]) if is_onnx(source) else source for source in sources)


def platform_named(sources: Sequence[str], env: str | None) -> str:
    """The platform by its name or as `file.py:name`: the given one, or the one that the policies were made for."""
    if not sources:
        raise ValueError("No policy was given; write one or more run directories, policy files or controllers.")
    return env or _platform_of(sources)


def table_named(sources: Sequence[str], platform: str, domain: Path | None) -> Path | None:
    """The table that was named, or the one that all runs here were made with; None for the platform's own."""
    if domain is not None:
        return None if str(domain) == platform else domain
    runs = [Path(source) for source in sources if (Path(source) / CONFIG).is_file()]
    tables = {run: str(read_toml(run / CONFIG).get("domain_sha256", platform)) for run in runs}
    if len(set(tables.values())) > 1:
        own = next(run for run in runs if (run / KEPT).is_file())
        raise ValueError(
            f"{', '.join(map(str, runs))} were made with different tables; say which machines to compare on: --domain "
            f"{own} for those of {own}, or --domain {platform} for the platform's own."
        )
    return next((run for run in runs if (run / KEPT).is_file()), None)


def warn_of_clipping(env: Platform, found: Mapping[str, Policy]) -> None:
    """Say which of these policies, by their sources, ask for more than their actuators give; ours do not."""
    for source, policy in found.items():
        warning = None if source in policies.CONTROLLERS else clipping_warning(env, policy, source)
        if warning:
            warn(warning)


def domains_of(file: Path, env: Platform) -> tuple[Domains, Platform]:
    """The domains of a file, and the platform with room for their delays."""
    chosen = domain_set.load(file, env).domains
    return chosen, evaluate.roomy(env, chosen)


def _platform_of(sources: Sequence[str]) -> str:
    stored = [s for s in sources if s not in policies.CONTROLLERS and not is_reference(s)]
    made_for = {source: _made_for(source) for source in stored}
    if not made_for:
        raise ValueError(
            f"{', '.join(sources)}: a controller, or code of your own, does not know its platform; add --env, e.g. "
            "--env cart-pole or --env my_robot.py:Robot."
        )
    if len(set(made_for.values())) > 1:
        several = ", ".join(f"{source} is for {env}" for source, env in made_for.items())
        raise ValueError(f"{several}; give policies of one platform only.")
    source, name = next(iter(made_for.items()))
    own = next(filter(None, map(_own_platform, stored)), None)
    if own is None and name not in PLATFORMS and not is_reference(name):
        raise ValueError(
            f"{source} was made for {name!r}, a platform of your own; say where it is, e.g. --env my_robot.py:Robot."
        )
    return own or name


def _made_for(source: str) -> str:
    """The platform of a policy file, or what is said beside an ONNX file."""
    if not is_onnx(source):
        return policies.load(_file(source)).contract.env
    file, words = split_words(source)
    name = platform_of_onnx(Path(file), words)
    if name is None:
        raise ValueError(f"{file} does not know its platform; add --env, or write env = … beside it in a TOML file.")
    return name


def _own_platform(source: str) -> str | None:
    """The `file.py:name` that a run directory was made with, if it was, and if it still is the same platform."""
    run = Path(split_words(source)[0]).parent if is_onnx(source) else _file(source).parent
    settings = read_toml(run / CONFIG) if (run / CONFIG).is_file() else {}
    if not is_reference(settings.get("env", "")):
        return None
    platform_of(run, settings)
    return settings["env"]


def _file(source: str) -> Path:
    path = Path(source)
    refuse_code(path)
    path = path / "policy.npz" if path.is_dir() else path
    if not path.is_file():
        raise ValueError(
            f"{source} is neither a controller ({', '.join(policies.CONTROLLERS)}), nor a policy file, "
            "nor a run directory with a policy.npz, nor FILE.py:NAME."
        )
    return path


def _labels(sources: Sequence[str]) -> list[str]:
    """Short names; the whole ones where short ones are the same."""
    again = [source for source, times in Counter(sources).items() if times > 1]
    if again:
        raise ValueError(f"{again[0]} was given more than once.")
    short = [_label(Path(source)) for source in sources]
    return short if len(set(short)) == len(short) else list(sources)


def _label(path: Path) -> str:
    if is_onnx(path):
        return Path(split_words(str(path))[0]).stem
    if is_reference(path):
        return name_in(str(path))
    if path.name == "policy.npz" and path.parent.name:
        return path.parent.name
    return path.stem if path.suffix == ".npz" else path.name or str(path)
