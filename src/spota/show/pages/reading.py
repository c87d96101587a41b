"""Run directory → `Story`. Only reads, and takes no lock: a page can be written while the run goes on."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spota.certify.certificate import Certificate, differing
from spota.files.blocks import Arrays, read_block
from spota.files.documents import read_json, read_toml
from spota.fit.verdict import FILE
from spota.runs.directory import edited_config, fingerprint_of
from spota.show.pages.story import BLOCKS, GapSamples, Iteration, Kind, Learning, Story

NAME = re.compile(rf"solution|iteration-(\d+)/(look-\d+/)?({'|'.join(BLOCKS)})")


@dataclass(frozen=True)
class Block:
    """What a block file tells, and what it has cost."""

    content: Any
    seconds: float


def read(directory: str | Path) -> Story:
    """Read everything that is there; a block that is damaged or missing is left out."""
    directory = Path(directory)
    config = _config(directory)
    blocks, damaged = _blocks(directory, fingerprint_of(config))
    numbers = sorted({int(name.split("/")[0].removeprefix("iteration-")) for name in blocks if "/" in name})
    iterations = tuple(_iteration(number, blocks) for number in numbers)
    kind = _kind(config, iterations)
    result, more = _json(directory / "result.json")
    training = blocks["solution"].content if "solution" in blocks else _so_far(directory, kind, blocks)
    edited = (*_edited_settings(directory, config), *_edited_certificates(directory, iterations))
    void, tasks = _void(directory), _tasks(directory)
    return Story(directory, config, kind, iterations, training, result, (*damaged, *more), edited, void, tasks)


def _void(directory: Path) -> str:
    """What `spota applies` has found out about the recorded machine, if the table does not cover it."""
    found, _ = _json(directory / FILE)
    return str(found.get("why", "")) if found and found.get("answer") == "not covered" else ""


def _config(directory: Path) -> dict[str, Any]:
    path = directory / "config.toml"
    if not path.is_file():
        raise ValueError(
            f"{directory} is not a run directory, because it has no config.toml; name one that `spota train` or "
            "`spota assess` has made, e.g. spota report runs/cart-pole-spota-20260101-120000."
        )
    try:
        return read_toml(path)
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read ({error}); repair it.") from error


def _edited_settings(directory: Path, config: Mapping[str, Any]) -> list[str]:
    return [f"config.toml was edited after the run began: {edit}." for edit in edited_config(directory, config)]


def _edited_certificates(directory: Path, iterations: tuple[Iteration, ...]) -> list[str]:
    """certificate.json, if it is none of the run's: a page says what the blocks say."""
    known = [i.certificate for i in iterations if i.certificate is not None]
    path = directory / "certificate.json"
    if not known or not path.is_file():
        return []
    try:
        stated = Certificate.from_dict(read_json(path), path.name)
    except (OSError, ValueError) as error:
        return [f"certificate.json was edited or damaged: {error}"]
    if stated in known:  # of the best so far: a run that goes on may have a better one just now
        return []
    edits = min((differing(stated, true) for true in known), key=len)
    return [f"certificate.json was edited: {'; '.join(edits)}. This page shows what the run has found."]


def _kind(config: Mapping[str, Any], iterations: tuple[Iteration, ...]) -> Kind:
    algo = config.get("algo")
    if algo in ("spota", "assess"):
        return algo
    if not iterations:
        return "training"
    return "assess" if iterations[0].candidate is None and iterations[0].references is not None else "spota"


def _blocks(directory: Path, fingerprint: str) -> tuple[dict[str, Block], list[str]]:
    """All blocks that can be read, by name, and words about the others."""
    found, damaged = {}, []
    names = [path.relative_to(directory).with_suffix("").as_posix() for path in sorted(directory.rglob("*.npz"))]
    for name in filter(NAME.fullmatch, names):
        try:
            arrays = read_block(directory / f"{name}.npz", name, fingerprint)
            content = PARSERS[name.split("/")[-1]](arrays)
            found[name] = Block(content, float(arrays.get("seconds", np.nan)))
        except Exception as error:  # whatever strange bytes, or another version of spota, provoke
            damaged.append(f"{name}.npz is not a finished block of this run ({error}); it was left out.")
    return found, damaged


def _learning(arrays: Arrays) -> Learning:
    domains = {name.removeprefix("domain."): a for name, a in arrays.items() if name.startswith("domain.")}
    return Learning(np.asarray(arrays["evaluated_at"], np.float64), np.atleast_2d(arrays["curve"]), domains)


def _gaps(arrays: Arrays) -> GapSamples:
    return GapSamples(**{name: arrays[f"gaps.{name}"] for name in ("raw", "final", "replaced", "clipped")})


def _told(arrays: Arrays) -> Certificate:
    return Certificate.from_json(str(arrays["json"]))


PARSERS: dict[str, Callable[[Arrays], Any]] = {
    "solution": _learning,
    "imitation": lambda _: None,
    "candidate": _learning,
    "starts": lambda _: None,
    "references": _learning,
    "effort": _learning,
    "comparison": _gaps,
    "performance": lambda arrays: arrays["returns"],
    "certificate": _told,
    "challenger": _told,
}


def _iteration(number: int, blocks: Mapping[str, Block]) -> Iteration:
    own: dict[str, list[Block]] = {block: [] for block in BLOCKS}
    for name in sorted(blocks, key=_look):
        iteration, _, block = name.rpartition("/")
        if iteration.split("/")[0] == f"iteration-{number:02d}":
            own[block].append(blocks[name])
    contents = {block: [one.content for one in looks] for block, looks in own.items()}
    certificates = sorted((*contents["certificate"], *contents["challenger"]), key=lambda c: c.look)
    return Iteration(
        number=number,
        candidate=contents["candidate"][-1] if contents["candidate"] else None,
        references=_joined_learning(contents["references"]),
        gaps=_joined_gaps(contents["comparison"]),
        unseen=contents["performance"][-1] if contents["performance"] else None,
        certificate=certificates[-1] if certificates else None,
        seconds={block: sum(one.seconds for one in looks) for block, looks in own.items() if looks},
    )


def _look(name: str) -> int:
    """Which look at its candidate a block belongs to."""
    found = re.search(r"look-(\d+)/", name)
    return int(found[1]) if found else 1


def _joined_gaps(looks: list[GapSamples]) -> GapSamples | None:
    """The gaps of all looks."""
    if not looks:
        return None
    return GapSamples(*(np.concatenate(parts) for parts in zip(*(vars(one).values() for one in looks), strict=True)))


def _joined_learning(looks: list[Learning]) -> Learning | None:
    """The references of all looks."""
    if not looks:
        return None
    domains = {name: np.concatenate([one.domains[name] for one in looks]) for name in looks[0].domains}
    return Learning(looks[0].evaluated_at, np.concatenate([one.returns for one in looks]), domains)


def _json(path: Path) -> tuple[dict[str, Any] | None, list[str]]:
    if not path.is_file():
        return None, []
    try:
        return json.loads(path.read_text("utf-8")), []
    except (OSError, ValueError) as error:
        return None, [f"{path.name} cannot be read ({error}); it was left out."]


def _so_far(directory: Path, kind: Kind, blocks: Mapping[str, Block]) -> Learning | None:
    """The curve of the block that is not finished, from metrics.jsonl."""
    lines = [line for line in _metrics(directory / "metrics.jsonl") if "returns" in line and "iteration" in line]
    name = lines[-1].get("block") if lines else None
    if not lines or name in blocks or (kind == "training") != (name in (None, "solution")):
        return None
    lines = [line for line in lines if line.get("block") == name]
    at, returns = (np.array([line[key] for line in lines], np.float64) for key in ("iteration", "returns"))
    return Learning(at, returns[None], {}, finished=False)


def _tasks(directory: Path) -> tuple[dict[str, Any], ...]:
    """What became of the tasks of workers."""
    return tuple(line for line in _metrics(directory / "metrics.jsonl") if "worker" in line or "lost" in line)


def _metrics(path: Path) -> list[dict[str, Any]]:
    """The lines that are whole: the last one may be written just now."""
    lines = []
    for text in path.read_bytes().split(b"\n") if path.is_file() else []:
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if isinstance(line, dict):
            lines.append(line)
    return lines
