"""The paper's experiments in simulation: which trainings they need, and what comes out of them.

Every training has a run directory of its own, so that an experiment that was stopped goes on where it was.
"""
