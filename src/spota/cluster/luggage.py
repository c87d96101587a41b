"""Code of one's own that workers need: on this machine they look where it lies, on others it is sent to them.

Whatever is pickled names modules. Those that are installed must be installed everywhere. Others travel: the directory
that they lie in, without what is hidden, and runs. `file.py:name` is executed there as it was here.
"""

import contextlib
import hashlib
import io
import os
import pickletools
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from spota.sim.memory import in_units

LARGEST = 5e7
"""Bytes that a directory with code may have."""
LEFT = ("__pycache__", "runs", "site", "node_modules", "venv")
"""Directories that stay, as hidden ones do."""


@dataclass(frozen=True)
class Luggage:
    """Where imports look, and which files are modules of their own."""

    home: str
    """The working directory."""
    roots: tuple[str, ...] = ()
    """Directories of modules."""
    files: tuple[str, ...] = ()
    """Files that were named as `file.py:name`."""
    packed: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """The directories as archives; none on this machine."""


def packed_for(content: bytes, elsewhere: bool) -> Luggage:
    """What a worker needs to read this."""
    own = {name: module for name in _names(content) if (module := _own(name)) is not None}
    files = tuple(sorted(str(module.__file__) for name, module in own.items() if _is_file(name)))
    folders = {str(Path(file).parent) for file in files}
    roots = tuple(sorted(folders | {_root(module) for name, module in own.items() if not _is_file(name)}))
    home = str(Path.cwd())
    return Luggage(home, roots, files, {root: _archive(Path(root)) for root in roots} if elsewhere else {})


def unpack(given: Luggage) -> None:
    """Let imports find it in this process."""
    places = {root: _extracted(given.packed[root]) if given.packed else Path(root) for root in given.roots}
    for place in places.values():
        if str(place) not in sys.path:
            sys.path.append(str(place))
    for file in map(Path, given.files):
        from spota.sim.objects import execute_file  # which imports jax

        execute_file(places[str(file.parent)] / file.name)
    with contextlib.suppress(OSError):
        os.chdir(next(iter(places.values()), given.home) if given.packed else given.home)


def _names(content: bytes) -> set[str]:
    """Every loaded module that a pickle may import."""
    texts = {argument for _, argument, _ in pickletools.genops(content) if isinstance(argument, str)}
    return {name for text in texts for name in (text, text.partition(" ")[0]) if name in sys.modules}


def _own(name: str) -> ModuleType | None:
    """The module, if it is nobody's library."""
    from spota.sim.identity import LIBRARIES

    module = sys.modules[name]
    file = getattr(module, "__file__", None)
    foreign = file is None or name == "__main__" or name.partition(".")[0] == "spota"
    return None if foreign or str(file).startswith(LIBRARIES) else module


def _is_file(name: str) -> bool:
    from spota.sim.objects import PREFIX

    return name.startswith(PREFIX)


def _root(module: ModuleType) -> str:
    """The directory that imports look into to find it."""
    path = Path(str(module.__file__))
    inside = module.__name__.count(".") + (path.name == "__init__.py")
    return str(path.parents[inside])


def _archive(root: Path) -> bytes:
    size, buffer = 0, io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in _files(root):
            size += path.stat().st_size
            if size > LARGEST:
                raise ValueError(
                    f"{root} has more than {in_units(LARGEST)}, and workers on other machines need what lies beside "
                    "your code; put it into a directory of its own, or install it there."
                )
            archive.write(path, path.relative_to(root))
    return buffer.getvalue()


def _files(root: Path) -> Iterator[Path]:
    """What travels, in a fixed order."""
    for path in sorted(root.iterdir()):
        if path.name.startswith(".") or path.name in LEFT or (path / "config.toml").exists():
            continue
        if path.is_dir():
            yield from _files(path)
        elif path.is_file():
            yield path


def _extracted(archive: bytes) -> Path:
    """The directory; the same archive is unpacked once on a machine."""
    parent = Path(tempfile.gettempdir()) / f"spota-code-{os.getuid()}"
    parent.mkdir(mode=0o700, exist_ok=True)
    place = parent / hashlib.sha256(archive).hexdigest()[:16]
    if not place.exists():
        new = Path(tempfile.mkdtemp(dir=parent))
        with zipfile.ZipFile(io.BytesIO(archive)) as content:
            content.extractall(new)
        with contextlib.suppress(OSError):  # another worker was faster
            new.rename(place)
    return place
