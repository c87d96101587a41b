"""Everything that a page is made of."""

from dataclasses import dataclass

from spota.envs import PLATFORMS, make
from spota.show.report.evaluation import Evaluation
from spota.show.report.story import Story
from spota.sim.domain import DomainDistribution


@dataclass(frozen=True)
class Material:
    """A run, and the rollouts of its policy."""

    story: Story
    evaluation: Evaluation | None
    missing: str = ""
    """Why there is no evaluation."""

    @property
    def own_platform(self) -> bool:
        """Whether the platform is a Python object, which no command can name."""
        return "platform" in self.story.config or self.story.env not in PLATFORMS

    @property
    def domain(self) -> DomainDistribution | None:
        """The distribution: as the certificate states it, else the platform's own."""
        if self.story.certificate is not None:
            return DomainDistribution.from_dict(self.story.certificate.domain)
        return None if self.own_platform else make(self.story.env).domain
