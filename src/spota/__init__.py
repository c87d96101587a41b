"""Train control policies on randomized simulators, and know how much return they can lose on an unseen domain."""

from spota.api import assess, train
from spota.domain import DomainDistribution, Empirical, Parameter
from spota.envs import make
from spota.marginals import Bernoulli, Constant, Integers, NumPyro, TruncatedNormal, Uniform
from spota.policies import FNN, Linear, find, fnn, load, save
from spota.rollout import collect, returns
from spota.types import Env, Policy, Signal, Trajectories

__all__ = [
    "FNN",
    "Bernoulli",
    "Constant",
    "DomainDistribution",
    "Empirical",
    "Env",
    "Integers",
    "Linear",
    "NumPyro",
    "Parameter",
    "Policy",
    "Signal",
    "Trajectories",
    "TruncatedNormal",
    "Uniform",
    "assess",
    "collect",
    "find",
    "fnn",
    "load",
    "make",
    "returns",
    "save",
    "train",
]
