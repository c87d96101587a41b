"""Animated pictures of rollouts: record some, then write one page (HTML) or one picture (GIF) that moves.

recording = record(env, policy, env.domain.nominal(), jax.random.key(0), caption="nominal")
save([recording], "rollout.html")
"""

from collections.abc import Sequence
from pathlib import Path

from spota.show.animation.gif import to_gif
from spota.show.animation.html import fragment, page, to_html
from spota.show.animation.recording import ANIMATED, Recording, record

__all__ = ["ANIMATED", "Recording", "fragment", "page", "record", "save", "to_gif", "to_html"]


def save(recordings: Sequence[Recording], path: str | Path) -> Path:
    """Write the recordings side by side, as the ending of the path says."""
    writers = {".html": to_html, ".gif": to_gif}
    ending = Path(path).suffix.lower()
    if ending not in writers:
        raise ValueError(f"{path} ends in {ending!r}, which no animation has; write .html or .gif.")
    return writers[ending](recordings, path)
