"""Two platforms for the command line: a sound one, and one whose mass is dead."""

import slider


def deaf(env, xi):
    env.unwrapped.stiffness = xi["stiffness"]


sound = slider.platform()
dead = slider.platform(apply=deaf, name="deaf slider")
