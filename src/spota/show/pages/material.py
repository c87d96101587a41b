"""Everything that a page is made of."""

from dataclasses import dataclass

from spota.show.pages.evaluation import Evaluation
from spota.show.pages.story import Story
from spota.sim.domain import DomainDistribution


@dataclass(frozen=True)
class Material:
    """A run, and the rollouts of its policy."""

    story: Story
    evaluation: Evaluation | None
    missing: str = ""
    """Why there is no evaluation."""

    @property
    def domain(self) -> DomainDistribution | None:
        """The distribution: as the certificate states it, else the platform's own."""
        if self.story.certificate is not None:
            return DomainDistribution.from_dict(self.story.certificate.domain)
        if self.story.own_platform:
            return None
        try:
            return self.story.find_platform().domain
        except ValueError:  # a file that is gone or has changed
            return None
