"""The run directory: plain files, and every finished block is one of them. To resume is to ask: is the file there?

with Run("runs/a", {"env": "cart-pole", "seed": 0}) as run:
    found = run.block("iteration-01/candidate", lambda: {"weights": train()})  # computed once, read ever after
    run.log(iteration=1, returns=2300.0)  # one line of metrics.jsonl
    run.write_json("certificate.json", {"ucbog": 41.0})
"""

import contextlib
import hashlib
import json
import os
import re
import tomllib
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import tomli_w

from spota.files.atomic import explained, plain, remove_unfinished, write_atomically, write_json
from spota.files.blocks import Arrays, checked, read_block, run_of, write_block
from spota.files.documents import read_toml

CONFIG = "config.toml"
AS_MADE = ".config-as-made.toml"
"""A copy of config.toml that nobody edits: it tells what someone has changed in the other."""
CODE = {
    "env_sha256": " (the platform's fields or code differ; undo that to go on)",
    "solver_sha256": " (the solver's code differs; undo that to go on)",
    "policy_sha256": " (the policy differs; undo that to go on)",
}
"""What it means that a digest in config.toml differs."""
FREE = ("spota.max_iterations", "spota.max_seconds", "spota.looks", "spota.chunk")
"""Settings that no finished block depends on: a run may go on with others, with more iterations for example."""
ONCE = {"spota.max_iterations": "candidate", "spota.looks": "look"}
"""Those of them that cannot be raised from 1, because the only test of a run has all of α."""
BLOCK_NAME = re.compile(r"[\w-]+(/[\w-]+)*", re.ASCII)


class Run:
    """A run directory that one process at a time works in; use it in a `with` statement.

    `config` is everything that decides the results, as TOML can say it. A directory with another config is refused,
    unless only FREE settings differ: with these it goes on, and all finished blocks stay.
    """

    def __init__(self, directory: str | Path, config: Mapping[str, Any], warn: Callable[[str], None] = warnings.warn):
        """Make or reopen the directory; `warn` hears of damaged files that are computed again."""
        self.directory = Path(directory)
        self.config = tomllib.loads(tomli_w.dumps(config))  # as a later reader will see it
        self.fingerprint = fingerprint_of(self.config)
        self.warn = warn
        self._block: str | None = None
        with explained(self.directory):
            self.directory.mkdir(parents=True, exist_ok=True)
            self._refuse_strange_directory()
        self._lock = _lock(self.directory)
        try:
            remove_unfinished(self.directory)
            self._keep_config()
            self._mend_metrics()
        except BaseException:
            self._lock.close()
            raise

    def __enter__(self) -> "Run":
        """Nothing more to do: the directory is locked already."""
        return self

    def __exit__(self, *_: object):
        """Leave no half-written file, and let others in."""
        self.close()

    def close(self):
        """Let another process work in the directory."""
        if not self._lock.closed:
            remove_unfinished(self.directory)
            self._lock.close()

    def block(self, name: str, compute: Callable[[], Mapping[str, Any]]) -> Arrays:
        """The arrays of a block: read from its file, or computed and written to it.

        A file that is truncated, corrupted, or of another run or block is named in a warning and computed again. What
        a killed attempt has logged inside the block is forgotten.
        """
        found = self.kept(name)
        if found is not None:
            return found
        self._forget_metrics(name)
        with self._inside(name):
            arrays = compute()
        return self.keep(name, arrays)

    def kept(self, name: str) -> Arrays | None:
        """The arrays of a block that is there, whole and of this run; else None."""
        path = self.path_of(name)
        if path.exists():
            try:
                return read_block(path, name, self.fingerprint)
            except Exception as error:  # whatever strange bytes provoke
                self.warn(f"{path} is not a finished block of this run ({error}); it is computed again.")
        return None

    def keep(self, name: str, arrays: Mapping[str, Any]) -> Arrays:
        """Write a block."""
        found = checked(name, arrays)
        write_block(self.path_of(name), name, self.fingerprint, found)
        return found

    def path_of(self, name: str) -> Path:
        """The file of a block."""
        if not BLOCK_NAME.fullmatch(name):
            raise ValueError(f"block({name!r}): write letters, digits, - and _, e.g. 'iteration-01/candidate'.")
        return self.directory / f"{name}.npz"

    def log(self, **figures: Any):
        """Append one line to metrics.jsonl; inside a block the line names it."""
        where = {"block": self._block} if self._block else {}
        line = json.dumps(plain({**where, **figures}), ensure_ascii=False, allow_nan=False) + "\n"
        with explained(self._metrics), self._metrics.open("ab") as file:
            file.write(line.encode())

    def metrics(self) -> list[dict]:
        """All lines of metrics.jsonl."""
        if not self._metrics.exists():
            return []
        return [json.loads(line) for line in self._metrics.read_bytes().split(b"\n") if line]

    def write_json(self, name: str, document: Any) -> Path:
        """Write one JSON document; NaN becomes null and infinity the text "inf" or "-inf"."""
        return write_json(self.directory / name, document)

    @contextlib.contextmanager
    def writing(self, name: str) -> Iterator[Path]:
        """The path of a file that someone else writes; a disk that is full is told in one sentence."""
        with explained(self.directory / name):
            yield self.directory / name

    @property
    def _metrics(self) -> Path:
        return self.directory / "metrics.jsonl"

    @contextlib.contextmanager
    def _inside(self, name: str) -> Iterator[None]:
        outer, self._block = self._block, name
        try:
            yield
        finally:
            self._block = outer

    def _refuse_strange_directory(self):
        ours = re.compile(r"config\.toml|\.config-as-made\.toml|\.lock|\..*\.tmp")
        names = [entry.name for entry in self.directory.iterdir()]
        if "config.toml" not in names and any(not ours.fullmatch(name) for name in names):
            raise ValueError(
                f"{self.directory} has files but no config.toml, so it is not a run directory; "
                "choose a new one with --out."
            )

    def _keep_config(self):
        path = self.directory / CONFIG
        if path.exists():
            try:
                old = read_toml(path)
            except (ValueError, OSError) as error:
                raise ValueError(f"{path} cannot be read ({error}); repair it, or choose a new --out.") from error
            self._refuse_edited_config(old)
            self._refuse_spent(old)
            changes = [f"{k} is {a} there, {b} now" for k, a, b in differences(old, self.config) if k not in FREE]
            if changes:
                code = "".join(words for name, words in CODE.items() if name in "".join(changes))
                raise ValueError(
                    f"{self.directory} holds a run with other settings: {'; '.join(changes)}{code}. "
                    f"Choose a new directory with --out, or continue that run with --config {path}."
                )
        for name in (CONFIG, AS_MADE):
            write_atomically(self.directory / name, lambda file: tomli_w.dump(self.config, file))

    def _refuse_spent(self, old: Mapping[str, Any]):
        """More tests than one need a share of α each, which the only one has not left to them."""
        before, now = _flat(old), _flat(self.config)
        for name, test in ONCE.items():
            shared = test == "look" or before.get("spota.spend_alpha") != "none"
            if shared and before.get(name) == 1 and now.get(name, 1) != 1:
                raise ValueError(
                    f"{self.directory} was planned with {name} = 1, so its only {test} has all of α, and another would "
                    f"have none; choose a new --out to try {now[name]}."
                )

    def _refuse_edited_config(self, config: Mapping[str, Any]):
        """Its blocks come from the settings as they were: with others they would be overwritten one by one."""
        edits = edited_config(self.directory, config)
        if edits:
            raise ValueError(
                f"{self.directory / CONFIG} was edited after the run began: {'; '.join(edits)}. "
                "Undo that to go on, or start a run with the new settings: --config with a copy of it, and a new --out."
            )

    def _mend_metrics(self):
        """Drop what a crash has left of the last line; after any other damage, drop what follows it and say so."""
        if not self._metrics.exists():
            return
        data = self._metrics.read_bytes()
        whole = 0
        for line in data.splitlines(keepends=True):
            if not (line.endswith(b"\n") and _is_object(line)):
                break
            whole += len(line)
        lost = data[whole:].count(b"\n")
        if lost:
            self.warn(f"{self._metrics} is damaged; its last {lost} lines are dropped.")
        if whole < len(data):
            write_atomically(self._metrics, lambda file: file.write(data[:whole]))

    def _forget_metrics(self, name: str):
        lines = self.metrics()
        kept = [line for line in lines if line.get("block") != name]
        if len(kept) < len(lines):
            text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in kept)
            write_atomically(self._metrics, lambda file: file.write(text.encode()))


def fingerprint_of(config: Mapping[str, Any]) -> str:
    """What the blocks of a run are marked with: a digest of what they depend on in its config."""
    deciding = {name: value for name, value in _flat(config).items() if name not in FREE}
    return hashlib.sha256(json.dumps(deciding, sort_keys=True, default=str).encode()).hexdigest()


def edited_config(directory: Path, config: Mapping[str, Any]) -> list[str]:
    """What someone has changed in config.toml since the run began, in words.

    The copy tells it or, in a run without one, the blocks: they carry the fingerprint of the settings they come from.
    """
    copy = directory / AS_MADE
    if copy.exists():
        return [f"{k} was {a} and is {b}" for k, a, b in differences(read_toml(copy), config) if k not in FREE]
    found = [path for path in sorted(directory.glob("iteration-*/**/*.npz")) if path.is_file()]
    foreign = [path for path in found if _run_or_none(path) not in (None, fingerprint_of(config))]
    return ["its blocks come from other settings"] if found and len(foreign) == len(found) else []


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """The settings that differ, with both values."""
    before, after = _flat(old), _flat(new)
    keys = [k for k in {**before, **after} if repr(before.get(k)) != repr(after.get(k))]  # repr: NaN equals NaN
    return [(k, _say(before, k), _say(after, k)) for k in keys]


def new_directory(wanted: str | Path) -> Path:
    """Make that directory or, where it exists, the first of NAME-2, NAME-3, … that does not."""
    wanted = Path(wanted)
    with explained(wanted):
        wanted.parent.mkdir(parents=True, exist_ok=True)
        for i in range(1, 10_000):
            path = wanted if i == 1 else wanted.with_name(f"{wanted.name}-{i}")
            with contextlib.suppress(FileExistsError):
                path.mkdir()
                return path
    raise ValueError(f"{wanted} and 10,000 directories like it exist; choose another name.")


def _lock(directory: Path) -> IO[str]:
    """Hold `.lock` as long as the file is open; the system lets it go when the process ends, however it ends."""
    path = directory / ".lock"
    with explained(path):
        file = path.open("a+")
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:  # no such locks on this system: nobody is kept out
        pass
    except OSError as error:
        file.seek(0)
        owner = file.read().strip() or "unknown"
        file.close()
        raise ValueError(
            f"Another process ({owner}) works in {directory}; wait until it has ended, or choose another --out."
        ) from error
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    return file


def _run_or_none(path: Path) -> str | None:
    """The run that a block belongs to; None if it is damaged."""
    try:
        return run_of(path)
    except Exception:  # whatever strange bytes provoke
        return None


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as one with dotted keys."""
    flat = {}
    for key, value in table.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return flat


def _say(flat: Mapping[str, Any], key: str) -> str:
    return repr(flat[key]) if key in flat else "absent"
