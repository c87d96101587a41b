"""One episode over a line as a certificate counts it: its start state, its length, and rewards of true states."""

from collections.abc import Mapping

import numpy as np

from spota.deploy.emulator import Emulator, emulator
from spota.deploy.inference import Controller, begin_episode
from spota.deploy.judgement import Judgement
from spota.deploy.phases import RUN
from spota.deploy.virtual import VirtualLink
from spota.sim.env import Platform

FAILED = 1 - 1e-9
"""Danger from which on an episode has failed: the ends of a machine hold it exactly where danger is 1."""


def episode(env: Platform, controller: Controller, domain: Mapping[str, float], seed: int) -> float:
    """The return on one machine of the table, over frames and a virtual clock; a failure earns nothing more.

    The machine is held in its start state until the first frame has come, so that the policy's first command acts in
    the first step, as in the simulator.
    """
    made = emulator(env, domain, seed=seed)
    machine, link = made.device.drive.machine, VirtualLink(made)
    machine.hold_at_start()
    begin_episode(controller)
    link.receive(1.0)
    machine.held = False
    return _earned(made, link, controller, Judgement(env, domain))


def _earned(made: Emulator, link: VirtualLink, controller: Controller, judgement: Judgement) -> float:
    drive = made.device.drive
    env, body = drive.machine.env, drive.machine.body
    total, command, before, after = 0.0, np.zeros(len(env.actions)), *np.zeros((2, len(env.observations)))
    body.observe(after)
    for _ in range(env.max_steps):
        before[:] = after
        controller(link.inbox.values, command)
        link.send(command, RUN)
        link.receive(1.0)
        body.observe(after)
        rewards = judgement.rewards(before[None], drive.acting[None])
        if rewards is None:
            raise ValueError(f"The return of {env.name} cannot be computed from what its sensors say.")
        total += float(rewards[0])
        if not judgement.danger(after) < FAILED:
            break
    return total
