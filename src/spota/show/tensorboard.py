"""The curves of a run for TensorBoard: `tensorboard --logdir runs`."""

from pathlib import Path
from typing import Any

from spota.certify.events import Assessed, Event, Solving
from spota.runs.certifying import figures


def writer_class() -> Any:
    """What writes TensorBoard's files, if it is installed."""
    try:
        from tensorboardX import SummaryWriter
    except ImportError as error:
        raise ValueError("--tensorboard needs tensorboardX; install it with: pip install 'spota[logging]'") from error
    return SummaryWriter


class TensorBoard:
    """Listens to the events of a run and writes them below its directory, until it is closed."""

    def __init__(self, directory: Path):
        """Open a file of events."""
        self._writer = writer_class()(str(directory / "tensorboard"))

    def __call__(self, event: Event) -> None:
        """Write the figures of an event; a second process writes the same ones at the same steps."""
        if isinstance(event, Solving):
            now = event.progress
            step = (event.iteration - 1) * now.iterations + now.iteration
            for name, values in {"return": now.returns, "best": now.best, "survival": now.survival}.items():
                self._writer.add_scalar(f"{event.block}/{name}", float(values.mean()), step)
        elif isinstance(event, Assessed):
            for name, value in figures(event.certificate).items():
                if isinstance(value, int | float):
                    self._writer.add_scalar(f"certificate/{name}", float(value), event.iteration)

    def close(self) -> None:
        """Write what is left."""
        self._writer.close()
