"""docs/coverage.md: the tables of the coverage study, and what we conclude from them."""

from collections.abc import Callable, Sequence

from spota.studies import METHODS, REPLICATIONS, Coverage

CHOSEN = "studentized_reference"
PAPERS = "basic_pooled"

HEAD = """# How far can the interval be trusted?

This page is written by `spota reproduce coverage --seed {seed} --out docs`. A certificate is an upper confidence
bound on the mean optimality gap at nominal 95 %. On problems whose truth is known we can count how often such a
bound is right.

**The problems.** `exponential`: synthetic gaps with an exponential law of mean 1; the gaps of one reference
correlate by a Gaussian copula. `catapult`: the illustrative example, with the closed form as optimizer, and a
candidate that is 0.15 m off the optimum. `lq`: one step of a linear-quadratic regulator, s' = a s + b u and u = −θ
s, with uniform a and b; its gain 0.15 off the optimum. On the last two, references are the exact optima of their
n_r domains, and negative gaps go through the outlier rejection of Algorithm 1. Each line has {sets} independent
comparisons (standard error {error:.1f} points at 95 %), and 1000 resamples.

**The intervals.** `basic` is the paper's, 2 Ḡ − Q_α[Ḡᴮ]; `studentized` is the bootstrap-t; `student_t` resamples
nothing. *p* resamples all n_G n_r gaps as if they were independent, as in the paper; *r* resamples whole
references. MRP, I2RP and A2RP are the classical procedures on gaps before outlier rejection; the last two use two
references only.
"""

MEAN = """
## How often the bound is at least the mean of the gaps that it is given

This is what an interval promises: 95 is right, less is too little. Nothing but the interval's own quality helps
here.
"""

GAP = """
## How often the bound is at least the true optimality gap

This is what a user cares about. Exact references help: the best policy for n_r domains looks better on them than it
is (the simulation optimization bias), and outlier rejection only ever raises gaps. So every bootstrap interval is
on the safe side here. Real references are not exact, and their weakness pulls the other way; do not count on this
reserve.
"""

SIZES = """
## What is estimated

The gaps' mean after rejection is the true gap, plus the bias, plus what outlier rejection adds. With n_r > 1 an
exact reference is best on average over its domains, not on each of them: many of its gaps are negative, and this is
*not* a sign of weakness. Replacing them one by one raises the mean, so that UCBOG falls more slowly with n_r than
the bias does. A certificate therefore shows `mrp` beside UCBOG, and judges references by their mean over their own
domains.
"""

WIDTH = """
## The price

Median bound, divided by the mean of the gaps that it is given. inf: more than half of the answers are "no bound".
"""

END = """
## What we choose

The default is **`{chosen}`**, the bootstrap-t over whole references. Over all lines above its lowest coverage of
the mean is {chosen_worst:.1f} %; the next best, `{second}`, falls to {second_worst:.1f} %, Student's t on reference
means to {t_worst:.1f} %, and the paper's `{papers}` to {papers_worst:.1f} %. Two things go wrong with the latter.
Gaps are skewed, and a basic interval mirrors the long tail to the wrong side: with n_r = 1, where nothing else is
wrong, it covers {skewed_low:.1f} to {skewed_high:.1f} %. And the gaps of one reference share one policy: drawn one
by one they look like more evidence than they are, and more domains a reference make it worse, not better.

Its price is width: at the median the bound is {wider:.0f} % above the paper's on average over the lines. And it may
answer "no bound" (in {unbounded:.1f} % of the comparisons in the worst line) when more than a share α of the
resamples consist of equal values, as with few references or with gaps that are mostly zero. Such data do not hold a
bound; the certificate then says "not certified".

The paper's interval stays available (`method = "basic_pooled"`; `Spota.paper` uses it); a certificate lists them all.
"""


def coverage_page(rows: Sequence[Coverage], seed: int) -> str:
    """The page as Markdown."""
    sets = rows[0].sets
    parts = [HEAD.format(seed=seed, sets=sets, error=100 * (0.95 * 0.05 / sets) ** 0.5)]
    parts += [MEAN, _table(rows, lambda r: r.covers_mean, ".1f")]
    parts += [GAP, _table(rows, lambda r: r.covers_gap, ".1f")]
    parts += [SIZES, _sizes(rows), WIDTH, _table(rows, lambda r: r.width, ".2f"), _end(rows)]
    return "\n".join(part.strip("\n") + "\n" for part in parts)


def _table(rows: Sequence[Coverage], values: Callable[[Coverage], dict[str, float]], form: str) -> str:
    names = (*METHODS, *REPLICATIONS)
    head = ["problem", "n_G", "n_r", "corr.", *(_short(name) for name in names)]
    lines = [[*_case(r), *(_cell(values(r).get(name), form, name) for name in names)] for r in rows]
    return _markdown(head, lines)


def _sizes(rows: Sequence[Coverage]) -> str:
    known = [r for r in rows if r.case.problem != "exponential"]
    head = ["problem", "n_G", "n_r", "corr.", "true gap", "bias", "negative before rejection", "mean gap after it"]
    return _markdown(
        head, [[*_case(r), f"{r.gap:.3f}", f"{r.bias:.3f}", f"{r.negative:.0f} %", f"{r.mean:.3f}"] for r in known]
    )


def _end(rows: Sequence[Coverage]) -> str:
    worst = {name: min(r.covers_mean[name] for r in rows) for name in METHODS}
    second = max((name for name in METHODS if name != CHOSEN), key=lambda name: worst[name])
    skewed = [r.covers_mean[PAPERS] for r in rows if r.case.n_r == 1]
    finite = [r.width[CHOSEN] / r.width[PAPERS] for r in rows if r.width[CHOSEN] < float("inf")]
    return END.format(
        chosen=CHOSEN, papers=PAPERS, chosen_worst=worst[CHOSEN], papers_worst=worst[PAPERS],
        second=second, second_worst=worst[second], t_worst=worst["student_t_reference"],
        skewed_low=min(skewed), skewed_high=max(skewed),
        wider=100 * (sum(finite) / len(finite) - 1), unbounded=max(r.unbounded[CHOSEN] for r in rows),
    )  # fmt: skip


def _case(row: Coverage) -> list[str]:
    c = row.case
    return [c.problem, str(c.n_G), str(c.n_r), "" if c.correlation is None else f"{c.correlation:g}"]


def _cell(value: float | None, form: str, name: str) -> str:
    text = "" if value is None else format(value, form)
    return f"**{text}**" if name == CHOSEN else text


def _short(name: str) -> str:
    interval, _, unit = name.rpartition("_")
    return f"{interval.replace('_', ' ')} *{unit[0]}*" if interval else name.upper()


def _markdown(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rule = ["---", *("---:" for _ in head[1:])]
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, rule, *lines))
