"""Answers to "solve the approximated stochastic program" (eq_SPn); each file is one."""

from dataclasses import replace
from typing import Any, TypeVar

from spota.policies.network import USUAL_GAINS, Gains
from spota.policies.start import Start
from spota.polopt.analytic import Analytic
from spota.polopt.polished import Polished
from spota.polopt.ppo import PPO
from spota.sim.env import Platform
from spota.sim.host import HostEnv

Learner = TypeVar("Learner", bound=PPO)

SETTINGS = {
    "ball-balancer": Analytic(
        iterations=1800, learning_rate=3e-2, rows=64, clip_norm=0.1, barrier=300.0, barrier_start=0.8, smoothing=1.0
    ),
    "cart-pole": Analytic(iterations=800, learning_rate=3e-2, rows=48, smoothing=1.0),
    "cart-pole-swing-up": Analytic(
        iterations=300, learning_rate=2e-2, rows=64, horizon=150, barrier=1000.0, smoothing=0.5
    ),
    "qube": Analytic(iterations=600, learning_rate=3e-2, rows=64, barrier=1000.0, smoothing=1.0),
    "qube-swing-up": Analytic(
        iterations=300, learning_rate=1e-2, rows=64, horizon=400, outlier=5.0, barrier=1000.0, smoothing=1.0
    ),
}
"""On a swing-up a gradient looks a fraction of a second ahead: through thousands of steps it is as chaotic as the
swing. It starts from an imitation of the controller, so that this is enough. A crash costs all later rewards, which
such a gradient does not see; the barrier is high instead."""
PPO_SWING_UP: dict[str, Any] = {
    "iterations": 100, "learning_rate": 1e-3, "gamma": 0.9997, "lam": 0.995, "minibatches": 40,
    "initial_std": 0.15, "smoothing": 1.0, "evaluate_every": 10,
}  # fmt: skip
"""Little exploration, because it starts from an imitation of the controller; a horizon as long as the episode, because
a shorter one pays for haste with crashes."""
PPO_SETTINGS: dict[str, dict[str, Any]] = {
    "ball-balancer": {
        "learning_rate": 3e-4, "gamma": 0.999, "lam": 0.998, "minibatches": 40, "initial_std": 1.0, "smoothing": 1.0
    },
    "cart-pole": {"smoothing": 1.0},
    "cart-pole-swing-up": PPO_SWING_UP,
    "qube-swing-up": PPO_SWING_UP,
}  # fmt: skip
"""A slow ball needs advantages that look further ahead, and more exploration."""
REFERENCE = Analytic(iterations=180, rows=64, cut=100.0, barrier=300.0, barrier_start=0.8, barrier_end=0.95)
"""Many references side by side keep a core's vectors full only if each has some dozens of rows: 48 cost as much as 20,
and find a third more. One machine that is about to fail would still decide where all go, unless its gradient is cut. A
barrier that stays where it is keeps references from half of what they could gain: on few domains a policy may go closer
to a bound than on all (docs/solver_studies.md)."""
REFERENCES = {"ball-balancer": replace(REFERENCE, iterations=480, rows=48, cut=None, clip_norm=0.1)}
"""Near its bounds one rollout in a hundred fails, and references are long in finding how close they may go. Most
rollouts stay far from the barrier, so that those that it pushes are giants by comparison, and a cut would silence it.
Shortening the whole update, whose length varies tenfold, keeps its direction."""

MANY_DOMAINS = 2000
"""With fewer a policy learns them instead of the distribution, and crashes on others (docs/solver_studies.md)."""
FROM_CONTROLLER = ("cart-pole-swing-up", "qube", "qube-swing-up")
"""Platforms that a training starts on from an imitation of their controller unless told otherwise."""


HOST_REFERENCE: dict[str, Any] = {
    "iterations": 40, "rollouts": 2, "smoothing": 0.0, "restart": True, "polish_rows": 16,
}  # fmt: skip
"""A reference on a host environment, where steps cost: it starts from a trained policy."""
HOST_DOMAINS = 100
"""Domains of a candidate there, with one rollout each in an update: as many as need no kernel around them. A candidate
of 40, with a kernel and two rollouts each, earned 2388 on unseen Cart-Poles, and one of 100 earned 2416."""
CANDIDATE_ROWS = 48
"""Imagined rollouts in an update of a candidate, whose domains differ more than those of a reference."""
HOST_RATE = 1e-3
"""PPO's step size there: few rollouts and few updates want long steps. In a trial on 20 of our own Cart-Poles, with 80
rollouts in each of 60 updates, a policy earned 2387 on unseen ones (one seed) instead of 2355 (two)."""
FAST = 0.005
"""Steps [s] below which PPO looks as far ahead as on our own platforms; slower ones need fewer steps for the same."""
MOST_MINIBATCHES = 50


def default_domains(optimizer: Any) -> int:
    """How many domains to train on unless told otherwise: `Analytic` takes some in an update, so more cost nothing."""
    if isinstance(optimizer, Polished):
        return HOST_DOMAINS
    return MANY_DOMAINS if isinstance(optimizer, Analytic) else 10


def default_hidden(optimizer: Any) -> tuple[int, ...]:
    """The hidden layers of a new network unless told otherwise: for gradients, wider than the paper's.

    A 32-32 network learns in 400 updates what one of 16-16 may not learn in 1200, and costs little more.
    """
    return (32, 32) if isinstance(optimizer, Analytic) else (16, 16)


def default_gains(optimizer: Any) -> Gains:
    """The sizes of a new network's first and last layer unless told otherwise, for gradients through a simulator.

    They want a network that acts: a command within a motor's dead band moves nothing, and its gradient is zero (of
    eight new networks that did little, six learned one axis of the Ball-Balancer only). And one that can bend within a
    few percent of its sensors' ranges, where a machine is that balances: others stay linear there and end on a plateau.
    """
    return Gains(first=4.0, last=1.0) if isinstance(optimizer, Analytic) else USUAL_GAINS


def default_start(env: Platform) -> Start:
    """What a training starts from unless told otherwise."""
    return "controller" if env.name in FROM_CONTROLLER else "new"


def reference_solver(env: Platform) -> Analytic | Polished:
    """The solver for references unless told otherwise: they start from a trained policy, on domains of their own."""
    found = default_solver(env)
    if isinstance(found, Polished):
        return replace(found, **HOST_REFERENCE)
    if found.horizon is None:
        return REFERENCES.get(env.name, REFERENCE)
    return replace(found, smoothing=0.0, iterations=REFERENCE.iterations)  # what tames its gradients stays


def default_solver(env: Platform) -> Analytic | Polished:
    """The solver for a platform unless told otherwise: gradients through the simulator, or through a learned model."""
    if isinstance(env, HostEnv):
        return tuned_ppo(Polished, env, rollouts=1, polish_rows=CANDIDATE_ROWS)
    return SETTINGS.get(env.name, Analytic())


def tuned_ppo(kind: type[Learner], env: Platform, **changes: Any) -> Learner:
    """PPO, or a kind of it, with the settings that learn fastest on the platform."""
    usual = _on_host(env) if isinstance(env, HostEnv) else PPO_SETTINGS.get(env.name, {})
    return kind(**{**usual, **changes})


def _on_host(env: HostEnv) -> dict[str, Any]:
    """Settings for a simulator that is slow: fewer rollouts in an update, more updates, seldom an evaluation."""
    minibatches = max(d for d in range(1, MOST_MINIBATCHES + 1) if env.max_steps % d == 0)
    cheap = {"iterations": 100, "rollouts": 4, "evaluation_rollouts": 2, "evaluate_every": 5, "smoothing": 1.0}
    cheap |= {"learning_rate": HOST_RATE}
    ahead = {} if env.dt < FAST else {"gamma": 0.99, "lam": 0.95}
    return {**cheap, **ahead, "minibatches": minibatches}
