"""What a run means, in sentences: the verdict, a certificate's two parts, what it promises and what it does not."""

from collections.abc import Iterator
from dataclasses import dataclass

from spota.certify.certificate import Certificate
from spota.show.pages.story import Story
from spota.text import figure, percent, plural

TITLES = {
    "certified": "Certified",
    "warned": "Certified, with warnings",
    "refuted": "Refuted",
    "undecided": "Undecided",
    "unfinished": "Unfinished",
    "trained": "Trained, without a certificate",
    "void": "Void for your machine",
}


@dataclass(frozen=True)
class Verdict:
    """The answer that stands at the top of the page."""

    title: str
    sentence: str
    advice: str = ""


@dataclass(frozen=True)
class Fact:
    """One number of the head of the page."""

    value: str
    label: str


@dataclass(frozen=True)
class LossPart:
    """A line of the table that adds up the loss."""

    name: str
    measured: float
    bound: float
    source: str
    """What it was measured on."""


def mark(story: Story) -> str:
    """What chooses title, sign and colour: the status, except that a certificate with warnings is never green.

    One whose table does not cover the recorded machine is void.
    """
    if story.void and story.certificate is not None:
        return "void"
    doubted = story.status == "certified" and story.certificate is not None and story.certificate.warnings
    return "warned" if doubted else story.status


def verdict(story: Story) -> Verdict:
    """How it ended, and what to do about it."""
    title, c, here = TITLES[mark(story)], story.certificate, story.directory
    if story.void and c is not None:
        return Verdict(
            title,
            f"Recordings show a machine that is not covered by the table of this certificate: {story.void}. For "
            f"machines of the table it says: {_lower_first(c.sentence)}",
            "Do not rely on it for that machine. Learn a table that covers it: spota fit, then spota assess --domain.",
        )
    if story.status == "trained":
        return Verdict(
            title,
            "The policy was trained once, on a fixed number of domains. How much it loses on domains that it has never "
            "seen is not known.",
            f"Find out with: spota assess {here}",
        )
    if story.status == "unfinished":
        so_far = f" So far: {_lower_first(c.sentence)}" if c else " There is no certificate yet."
        return Verdict(
            title,
            f"The run stands in {story.stopped_in}.{so_far}",
            f"Go on with: spota {story.command} --resume {here}",
        )
    assert c is not None  # the other verdicts are a certificate's
    sentence = c.sentence.partition(": ")[2]
    advice = "Read the warnings below before you rely on it." if c.warnings else ""
    if not c.certified and story.kind == "spota":
        ended = f"It ended after {plural(len(story.assessed), 'iteration')}"
        advice = f"{ended}; the policy with the lowest bound is shown here. {advice}"
    return Verdict(title, sentence[0].upper() + sentence[1:], advice.strip())


def facts(story: Story) -> Iterator[Fact]:
    """The numbers that matter most."""
    c = story.certificate
    if c is not None:
        yield Fact(figure(c.ucbog), f"mean loss at most, ≈ {percent(c.confidence)} confidence")
        yield Fact(figure(c.threshold), "threshold")
        if c.performance is not None:
            p = c.performance
            lower = figure(p.mean_lower) if p.in_range else figure(p.mean)
            yield Fact(lower, f"mean return {'at least' if p.in_range else 'measured'}, of {figure(c.max_return)}")
            yield Fact(percent(p.survived), f"of {p.n} unseen domains survived")
    elif story.result is not None and "unseen_domains" in story.result:
        far, most = story.result["unseen_domains"], figure(story.result["max_return"])
        yield Fact(figure(far["mean"]), f"mean return on {far['n']} unseen domains, of {most}")
        yield Fact(figure(far["worst_20_mean"]), "mean of the worst fifth")
        yield Fact(percent(far["survival"]), "survived")


def gap_part(c: Certificate) -> str:
    """The first part of a certificate: what others could do better."""
    bound = (
        f"With probability ≈ {percent(c.confidence)}, the policy's return is on average at most {figure(c.ucbog)} "
        "below that of policies which were trained for the very domains that they are compared on."
        if c.bounded
        else "The data hold no upper bound: there are too few gaps, or too many are equal."
    )
    mean = "" if loss_parts(c) else f" On average they did better by {figure(c.mean_gap)}."
    return (
        f"{bound} {c.n_G} such references were trained, on {plural(c.n_r, 'random domain')} each.{mean} {c.effort} The "
        f"threshold was {figure(c.threshold)}.{_starts(c)}"
    )


def loss_parts(c: Certificate) -> list[LossPart]:
    """The loss in its parts, the sum last; none unless the split interval decided."""
    if c.split is None or c.method != "split":
        return []
    ordinary, rare = c.split.ordinary, c.split.rare
    parts = [
        LossPart("ordinary loss", ordinary.mean, ordinary.bound, f"{ordinary.n} domains of {c.n_G} references"),
        LossPart("rare failures", rare.mean, rare.bound, f"{rare.n} unseen domains"),
    ]
    if c.effort_references and c.effort_gain is not None and c.effort_margin is not None:
        longer = f"{c.effort_references} references, trained {c.effort_factor} times as long"
        parts.append(LossPart("longer training of references", c.effort_gain, c.effort_margin, longer))
    return [*parts, LossPart("together", sum(part.measured for part in parts), c.ucbog, "")]


def failures(c: Certificate) -> str:
    """How often the policy failed on the domains of the certificate, as a sentence."""
    return c.failures[:1].upper() + c.failures[1:]


def _starts(c: Certificate) -> str:
    """Where the references came from, if not all of them had the same start."""
    started = [f"{n} from {name}" for name, n in c.starts.items() if n]
    return f" On their own domains each started from the best policy there was: {', '.join(started)}." * (
        len(c.starts) > 1
    )


def performance_part(c: Certificate) -> str:
    """The second part: what it earns, whatever others do."""
    p = c.performance
    if p is None:
        return "The return on unseen domains was not measured (performance_domains = 0)."
    share = f"{percent(p.survived)} of the rollouts lasted until the time limit."
    if not p.in_range:
        return f"On {p.n} unseen domains it earned {figure(p.mean)} on average; no bound holds. {share}"
    return (
        f"On {p.n} unseen domains it earned {figure(p.mean)} on average. The expected return is at least "
        f"{figure(p.mean_lower)}, and the mean of the worst {percent(p.worst_share)} at least {figure(p.worst_lower)} "
        f"({percent(p.confidence)} confidence each, exact for any number of domains). {share}"
    )


def promised(c: Certificate) -> Iterator[str]:
    """What follows from the certificate."""
    even = f", even with {c.effort_factor} times the effort," if c.effort_references else ""
    if c.bounded:
        yield (
            "Draw machines at random from the distribution below. On average over them, no policy that the solver "
            f"finds{even} is better than this one by more than {figure(c.ucbog)} of return."
        )
    if c.performance is not None and c.performance.in_range:
        yield (
            f"On average over these machines it earns at least {figure(c.performance.mean_lower)} of at most "
            f"{figure(c.max_return)}."
        )
    yield (
        f"Such a statement is wrong in about {percent(1 - c.confidence)} of the cases. That is the nominal rate; the "
        "next section says how often it was wrong where the truth is known."
    )


def not_promised() -> Iterator[str]:
    """What does not follow from any certificate."""
    yield "Nothing about one particular machine: both parts are averages, and a single machine can be much worse."
    yield "Nothing outside the distribution: on a machine that it never draws, anything can happen."
    yield (
        "Nothing about policies that the solver cannot find. The loss is measured against the references; weak "
        "references make it look small."
    )
    yield "Nothing about what the simulation leaves out: this is no safety case for the real machine."


def _lower_first(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]
