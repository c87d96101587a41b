"""From a rollout to what must be drawn: plain arrays at about 50 frames a second, in physical units."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import jax
import numpy as np
from jaxtyping import Array, Float, Key

from spota.show.animation.film import Film, film
from spota.sim import rollout
from spota.sim.domain import Domains, count
from spota.sim.env import Env, Platform, Policy, Signal
from spota.sim.host import HostEnv, NoPictureError

FRAMES_PER_SECOND = 50

Scene = Literal["plate", "rail", "rotary", "film", "curves"]
Track = Float[np.ndarray, " F"]
Tracks = dict[str, Track]
Sizes = dict[str, float]


@dataclass(frozen=True, eq=False)
class Recording:
    """One rollout to be drawn; the last frame is its end, whether that is a failure or the time limit."""

    platform: str
    """The environment's name."""
    caption: str
    """What stands above the picture."""
    scene: Scene
    """Which picture draws it."""
    interval: float
    """Time between two frames [s]; the last one may follow sooner."""
    time: Track
    """When each frame is [s]."""
    tracks: Tracks
    """What moves, by name [rad or m]; of films and curves, each signal in its own unit."""
    sizes: Sizes
    """What does not move [m]."""
    signals: tuple[Signal, ...]
    """The actuators' names, units and ranges."""
    commands: Float[np.ndarray, "F a"]
    """What acts at each frame, after the delay, in the units of `signals`."""
    rewards: Track
    """The reward of the step that begins at each frame; zero at the end."""
    returns: Track
    """The undiscounted return earned until each frame."""
    max_return: float
    """The largest return that an episode can have."""
    failed: bool
    """Whether the end is a failure."""
    film: Film | None = None
    """The pictures of a host environment's own renderer."""
    why_curves: str = ""
    """Why there are none, as a clause."""

    @property
    def duration(self) -> float:
        """When the rollout ends [s]."""
        return float(self.time[-1])

    @property
    def outcome(self) -> str:
        """How it ended, in words."""
        end = f"failed at {self.duration:.2f} s" if self.failed else f"lasted all {self.duration:g} s"
        return f"return {self.returns[-1]:.0f} of {self.max_return:.0f}, {end}"


def record(env: Platform, policy: Policy, domain: Domains, key: Key[Array, ""], *, caption: str = "") -> Recording:
    """Run one rollout on one domain and keep what a picture of it needs.

    A host environment is shown as its own renderer draws it, or as curves where it has none.
    """
    if count(domain) != 1:
        raise ValueError(f"{count(domain)} domains were given; an animation shows one, e.g. env.domain.nominal().")
    if isinstance(env, HostEnv):
        return _filmed(env, rollout.watch(env, policy, domain, key[None]), domain, key, caption)
    scene, geometry = picture_of(env.name)
    steps = rollout.watch(env, policy, domain, key[None])
    env = rollout.pure(env)
    xi = env.params({name: column[0] for name, column in domain.items()})
    states, failed = _states(env, steps, domain, xi)
    frames = _frames(env, states[0].size - 1)
    state = jax.tree.unflatten(jax.tree.structure(steps.state), [leaf[frames] for leaf in states])
    return _recording(env, steps, scene, *geometry(state, jax.tree.map(float, xi)), frames, failed, caption)


def _filmed(env: HostEnv, steps: rollout.Step, domain: Domains, key: Key[Array, ""], caption: str) -> Recording:
    """As its own renderer draws it, or as curves that say why it does not."""
    curves = _curves(env, steps, caption)
    try:
        return replace(curves, scene="film", film=film(env, domain, key, steps))
    except NoPictureError as why:
        return replace(curves, why_curves=str(why))


def _curves(env: Platform, steps: rollout.Step, caption: str) -> Recording:
    """What the sensors of a hidden state would show, without their noise."""
    alive, ideal = np.asarray(steps.alive[:, 0]), np.asarray(steps.state[..., 0])
    end = int(alive.sum())
    frames = _frames(env, end)
    tracks = {s.name: ideal[np.minimum(frames, end - 1), i] for i, s in enumerate(env.observations)}
    return _recording(env, steps, "curves", tracks, {}, frames, not alive.all(), caption)


def _frames(env: Platform, end: int) -> np.ndarray:
    """The steps that are shown, the last one included."""
    return np.append(np.arange(0, end, _stride(env.dt)), end)


def _recording(
    env: Platform,
    steps: rollout.Step,
    scene: Scene,
    tracks: Tracks,
    sizes: Sizes,
    frames: np.ndarray,
    failed: bool,
    caption: str,
) -> Recording:
    _check_finite(env.name, tracks)
    end = int(frames[-1])
    rewards = np.asarray(steps.reward[:end, 0])
    return Recording(
        platform=env.name,
        caption=caption or env.name,
        scene=scene,
        interval=_stride(env.dt) * env.dt,
        time=frames * env.dt,
        tracks=tracks,
        sizes=sizes,
        signals=env.actions,
        commands=np.asarray(steps.command[..., 0])[np.minimum(frames, end - 1)],
        rewards=np.append(rewards, 0)[frames],
        returns=np.append(0, np.cumsum(rewards, dtype=np.float64))[frames],
        max_return=env.max_return,
        failed=failed,
    )


def check_some(recordings: Sequence[Recording]):
    """Refuse an empty picture."""
    if not recordings:
        raise ValueError("There is nothing to draw; give at least one recording, e.g. [record(env, policy, …)].")


def _states(env: Env, steps: rollout.Step, domain: Domains, xi: Any) -> tuple[list[np.ndarray], bool]:
    """The state's leaves from the start to the end, and whether the end is a failure."""
    leaves = [np.asarray(leaf[:, 0]) for leaf in jax.tree.leaves(steps.state)]
    alive = np.asarray(steps.alive[:, 0])
    if not alive.all():
        failure = int(alive.argmin())
        return [leaf[: failure + 1] for leaf in leaves], True
    final = _after_the_last(env, steps, domain, xi)
    leaves = [np.append(leaf, np.float32(last)) for leaf, last in zip(leaves, jax.tree.leaves(final), strict=True)]
    return leaves, bool(env.failed(final, xi))


def _after_the_last(env: Env, steps: rollout.Step, domain: Domains, xi: Any) -> Any:
    """The state after the last step: a rollout keeps only the states in which it acts."""
    last = jax.tree.map(lambda leaf: leaf[-1, 0], steps.state)
    return env.step(last, tuple(env.effects.reach(steps.command[-1], domain)[:, 0]), xi)


def _stride(dt: float) -> int:
    return max(1, round(1 / (FRAMES_PER_SECOND * dt)))


def _check_finite(name: str, tracks: Tracks):
    for track, values in tracks.items():
        if not np.isfinite(values).all():
            raise ValueError(
                f"{track} of {name} is not a number at frame {int(np.isfinite(values).argmin())}; "
                "look for NaN in the policy's actions, e.g. a division by zero or a file with NaN weights."
            )


def _plate(s: Any, xi: Any) -> tuple[Tracks, Sizes]:
    """The Ball-Balancer: positive tilts lower the sides of positive x and y; the servos' offsets are in."""
    servo_x, servo_y = (s.theta_x + np.deg2rad(xi.Delta_theta_x), s.theta_y + np.deg2rad(xi.Delta_theta_y))
    tilt_x, tilt_y = (np.arcsin(xi.c_kin * np.sin(servo)) for servo in (servo_x, servo_y))
    moving = {"x": s.x, "y": s.y, "tilt_x": tilt_x, "tilt_y": tilt_y, "servo_x": servo_x, "servo_y": servo_y}
    return moving, {"plate": xi.l_p, "ball": xi.r_b, "arm": xi.r_kin}


def _rail(s: Any, xi: Any) -> tuple[Tracks, Sizes]:
    """The Cart-Pole; its l_p is half of the pole."""
    return {"x": s.x, "alpha": s.alpha}, {"rail": xi.l_r, "pole": 2 * xi.l_p}


def _rotary(s: Any, xi: Any) -> tuple[Tracks, Sizes]:
    """The Qube; its l_p is the whole pendulum."""
    return {"theta": s.theta, "alpha": s.alpha}, {"arm": xi.l_r, "pole": xi.l_p}


Geometry = Callable[[Any, Any], tuple[Tracks, Sizes]]
_PICTURES: Mapping[str, tuple[Scene, Geometry]] = {
    "ball-balancer": ("plate", _plate),
    "cart-pole": ("rail", _rail),
    "cart-pole-swing-up": ("rail", _rail),
    "qube": ("rotary", _rotary),
    "qube-swing-up": ("rotary", _rotary),
}
ANIMATED: tuple[str, ...] = tuple(_PICTURES)
"""The platforms that have an animation."""


def picture_of(name: str) -> tuple[Scene, Geometry]:
    """The scene of a platform, and a function from its state and ξ to what moves and what does not."""
    if name not in _PICTURES:
        raise ValueError(f"{name} has no animation; these platforms have one: {', '.join(ANIMATED)}.")
    return _PICTURES[name]
