"""From simulation to machines that no policy has seen: the paper's real-world experiment (fig_real_eval), emulated."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from spota.deploy.emulator import Emulator, drawn_domain, emulator
from spota.deploy.rules import Rules
from spota.deploy.sources import Deployable
from spota.deploy.trial import Protocol, Rig, Tried
from spota.deploy.trials import Tell, make_trials
from spota.deploy.virtual import VirtualLink
from spota.deploy.wear import Wear
from spota.envs import make
from spota.runs.directory import Run
from spota.sim.domain import DomainDistribution
from spota.sim.env import Platform

WORN = Wear(noise=False, encoder=1.0, filter=60.0, coulomb=0.2, backlash=2e-4)
"""Encoders, filtered velocities, dry friction and play: what the simulation leaves out."""
FIRST = 7_000
"""Machines are numbered from here on: no training draws its domains so."""
RULES = Rules(danger=1.0)
"""Nothing can break here, so a trial ends where the simulator's episode does: at a failure, not 5 % before it.

With that margin a policy that tilts a servo to 97 % of its range is stopped on the machine that it was trained on, too.
"""


RECORDED = {
    "gravity": 9.641, "cart_mass": 0.6476, "pole_mass": 0.08626, "pole_length": 0.1621, "pinion_radius": 0.005854,
    "gear_efficiency": 0.9094, "motor_efficiency": 0.9063, "torque_constant": 0.00516, "motor_resistance": 2.596,
    "cart_damping": 1.781, "pole_damping": 0.000228, "action_delay": 4.0, "cart_friction": 0.4087,
}  # fmt: skip
"""The authors' Cart-Pole as ten of its recordings show it, whose pole is outside the paper's table: the best machine of

spota fit "sample:cart-pole/chirp*" --env cart-pole --widen pole_length=0.05:0.3 cart_mass=3 torque_constant=3

(its block `again`, at the delay with the lowest cost). The rail is nominal: no recording reaches its ends.
"""


@dataclass(frozen=True)
class Machine:
    """One emulated machine."""

    name: str
    env: str
    number: int | None
    """Of the table; None is nominal."""
    wear: Wear = Wear()  # noqa: RUF009, frozen
    fitted: Mapping[str, float] = field(default_factory=dict)
    """What recordings have shown of it; who swings its pole up knows that."""

    def made(self, seed: int) -> Emulator:
        """Switch it on."""
        env = make(self.env)
        extra = {name: row for name, row in env.optional.items() if name in self.fitted}
        env = env.with_domain(DomainDistribution({**env.domain, **extra})) if extra else env
        domain = drawn_domain(env, self.number or 0, nominal=self.number is None) | dict(self.fitted)
        return emulator(env, domain, self.wear, seed=seed)

    @property
    def known(self) -> dict[str, float]:
        """The parameters that are known of it, of those that its table has."""
        return {name: value for name, value in self.fitted.items() if name in make(self.env).domain}


MACHINES = (
    Machine("table 1", "ball-balancer", FIRST + 1),
    Machine("table 2", "ball-balancer", FIRST + 2),
    Machine("worn", "ball-balancer", FIRST + 3, WORN),
    Machine("table 1", "cart-pole", FIRST + 1),
    Machine("table 2", "cart-pole", FIRST + 2),
    Machine("worn", "cart-pole", FIRST + 3, WORN),
    Machine("fitted", "cart-pole", None, replace(WORN, coulomb=0.0), RECORDED),
)
"""The fitted one has its dry friction from the recordings."""


def protocol_of(env: Platform, quick: bool) -> Protocol:
    """The paper's; the quick one has four start points once, or three repetitions."""
    whole = Protocol.of(env)
    if not quick:
        return whole
    return replace(whole, starts=whole.starts[::2], repetitions=1 if len(whole.starts) > 1 else 3)


def on_machine(
    run: Run, machine: Machine, policies: Mapping[str, Deployable], quick: bool, seed: int, tell: Tell | None = None
) -> list[Tried]:
    """All trials on a machine, in lock-step with a virtual clock: the same bytes and rules, but not in real time."""
    env = make(machine.env)
    made = machine.made(seed)
    rig = Rig(env, lambda: VirtualLink(made), RULES, machine.known)
    below = f"trials-{machine.env}-{machine.name.replace(' ', '-')}"
    return make_trials(run, rig, policies, protocol_of(env, quick), seed=seed, tell=tell, below=below)
