"""What a run directory tells: a finished run or one that was killed, SPOTA, an assessment or a plain training."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float

from spota.certify.certificate import Certificate
from spota.envs import PLATFORMS
from spota.runs.platforms import platform_of
from spota.sim.env import Platform
from spota.sim.objects import is_reference

Kind = Literal["spota", "assess", "training"]
Status = Literal["certified", "refuted", "undecided", "unfinished", "trained"]
BLOCKS = (
    "imitation", "candidate", "starts", "references", "effort", "comparison", "performance", "certificate",
    "challenger",
)  # fmt: skip
"""The blocks of an iteration, in the order in which they are computed; a further look has some of them again."""


@dataclass(frozen=True)
class Learning:
    """How a solver fared: one line per problem, and the domains that it was given."""

    evaluated_at: Float[np.ndarray, "evaluations"]
    returns: Float[np.ndarray, "problems evaluations"]
    domains: Mapping[str, np.ndarray]
    """Empty where the block does not keep them."""
    finished: bool = True


@dataclass(frozen=True)
class GapSamples:
    """The gaps of a comparison, before and after outlier rejection."""

    raw: Float[np.ndarray, "n_G n_r"]
    final: Float[np.ndarray, "n_G n_r"]
    replaced: Bool[np.ndarray, "n_G n_r"]
    clipped: Bool[np.ndarray, "n_G n_r"]


@dataclass(frozen=True)
class Iteration:
    """The blocks of one iteration that are finished."""

    number: int
    candidate: Learning | None
    references: Learning | None
    gaps: GapSamples | None
    unseen: Float[np.ndarray, "n"] | None
    """Returns on unseen domains, one rollout each."""
    certificate: Certificate | None
    seconds: Mapping[str, float]
    """What each finished block has cost, in all looks together."""


@dataclass(frozen=True)
class Story:
    """A run directory, as far as it got."""

    directory: Path
    config: Mapping[str, Any]
    kind: Kind
    iterations: tuple[Iteration, ...]
    training: Learning | None
    """Of a plain training, or of the block in which a run was stopped."""
    result: Mapping[str, Any] | None
    """result.json: how the run ended."""
    damaged: tuple[str, ...]
    """Files that could not be read, in words."""
    edited: tuple[str, ...] = ()
    """Files that say something else than the blocks that they come from, in words."""
    void: str = ""
    """Why the certificate says nothing about the machine that was recorded, as `spota applies` found; else nothing."""
    tasks: tuple[Mapping[str, Any], ...] = ()
    """Lines of metrics.jsonl about tasks of workers: which worker has finished one, or was lost over it."""

    @property
    def env(self) -> str:
        """The platform's name."""
        return str(self.config.get("env", self.certificate.env if self.certificate else "unknown platform"))

    @property
    def own_platform(self) -> bool:
        """Whether the platform is a Python object, which no command can name."""
        return "platform" in self.config or not (self.env in PLATFORMS or is_reference(self.env))

    def find_platform(self) -> Platform:
        """The platform, by its name or from the file that the run was made with."""
        return platform_of(self.directory, {"env": self.env, **self.config})

    @property
    def command(self) -> str:
        """The command that makes such a run."""
        return "assess" if self.kind == "assess" else "train"

    @property
    def assessed(self) -> tuple[Iteration, ...]:
        """The iterations that ended with a certificate."""
        return tuple(i for i in self.iterations if i.certificate is not None)

    @property
    def kept(self) -> Iteration | None:
        """The iteration whose policy the run keeps: that with the lowest bound."""
        return min(self.assessed, key=lambda i: i.certificate.ucbog, default=None)  # type: ignore[union-attr]

    @property
    def certificate(self) -> Certificate | None:
        """The certificate of the policy that the run keeps."""
        return self.kept.certificate if self.kept else None

    @property
    def shown(self) -> Iteration | None:
        """The iteration that a page shows in detail: the kept one, else the last that has begun."""
        return self.kept or (self.iterations[-1] if self.iterations else None)

    @property
    def status(self) -> Status:
        """How the run ended, or that it has not."""
        if self.kind == "training":
            return "trained" if self.training is not None and self.training.finished else "unfinished"
        if self.certificate is None or not (self.certificate.certified or self._ended):
            return "unfinished"
        return self.certificate.verdict

    @property
    def _ended(self) -> bool:
        most = self.config.get("spota", {}).get("max_iterations")
        last = self.assessed[-1].certificate if self.assessed else None
        no_more = last is not None and (last.verdict != "undecided" or last.look == last.looks)
        return self.result is not None or (no_more and (self.kind == "assess" or len(self.assessed) == most))

    @property
    def stopped_in(self) -> str | None:
        """Where an unfinished run stands: the block that comes next, in words."""
        if self.status != "unfinished":
            return None
        if self.kind == "training":
            return "the training"
        last = self.iterations[-1] if self.iterations else None
        if last is None:
            return "iteration 1"
        if last.certificate is not None:
            return f"iteration {last.number}, after look {last.certificate.look} at its candidate"
        block = next((block for block in self._blocks if block not in last.seconds), "certificate")
        return f"iteration {last.number}, before its {block} {'were' if block.endswith('s') else 'was'} finished"

    @property
    def _blocks(self) -> list[str]:
        """The blocks that an iteration of this run must have."""
        settings, solver = self.config.get("spota", {}), self.config.get("reference", {})
        absent = {
            "imitation": True,  # nobody knows it beforehand
            "starts": self.kind == "spota",
            "effort": settings.get("effort_references") == 0 or "iterations" not in solver,
            "performance": settings.get("performance_domains") == 0,
            "challenger": True,
        }
        return [block for block in BLOCKS if not absent.get(block)]
