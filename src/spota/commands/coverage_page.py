"""docs/coverage.md: the tables of the coverage study, and what we conclude from them."""

from collections.abc import Callable, Sequence

from spota.certify.certificate import METHODS
from spota.experiments.intervals import COLUMNS, PILOT, UNSEEN, Coverage
from spota.experiments.rope import TOP
from spota.experiments.whole_runs import Counts

CHOSEN = "split"
GAPS_ALONE = "studentized_reference"
PAPERS = "basic_pooled"
STUDENT = "student_t_reference"
SHOWN = (PAPERS, STUDENT, GAPS_ALONE, CHOSEN)
"""The intervals that are compared where crashes are rare."""

HEAD = """# How far can the interval be trusted?

This page is written by `spota reproduce coverage --seed {seed} --out docs`. A certificate is an upper confidence
bound on the mean optimality gap at nominal 95 %. On problems whose truth is known we can count how often such a
bound is right.

**The problems.** `exponential`: synthetic gaps with an exponential law of mean 1; the gaps of one reference
correlate by a Gaussian copula. `catapult`: the illustrative example, with the closed form as solver, and a
candidate that is 0.15 m off the optimum. `lq`: one step of a linear-quadratic regulator, s' = a s + b u and u = −θ
s, with uniform a and b; its gain 0.15 off the optimum. On the last two, references are the exact optima of their
n_r domains, and negative gaps go through the outlier rejection of Algorithm 1. Each line has {sets} independent
comparisons (standard error {error:.1f} points at 95 %), and 1000 resamples.

**The intervals.** `basic` is the paper's, 2 Ḡ − Q_α[Ḡᴮ]; `studentized` is the bootstrap-t; `student_t` resamples
nothing. *p* resamples all n_G n_r gaps as if they were independent, as in the paper; *r* resamples whole
references. `split` sees single returns, and the candidate's on unseen domains (below); synthetic returns of references
are 200 mean gaps minus an exponential number with the mean of four. MRP, I2RP and A2RP are the classical procedures on
gaps before outlier rejection, which are also the split's; the last two use two references only.
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

CRASHES = """
## Rare crashes

A policy that fails on one machine in a hundred loses there most of what it loses anywhere. Fifty domains hold no such
machine in six cases of ten. Their gaps then look small and even, and no resampling can show what is not among them:
the bound is small, narrow and wrong. This has happened. A run of ours was "certified: loses on average at most 18.9",
and a policy existed that earned 23.9 more, half of it on one domain in a hundred.

Below, gaps are exponential with mean 12, and on a share p of the domains the candidate crashes and loses 500 to 1900
more. The *split* interval cuts the gap at a level of return that was fixed before, here the policy's 5 % quantile on
{pilot} other domains: what references gain above the level, from the n_G × n_r domains, and what the policy loses below
it, from {unseen} unseen domains of its own, which need no reference and take seconds. A reference counts with the
policy's 1 % quantile at least.

Coverage of the true mean gap in %, and the 90 % quantile of bound / truth: a bound should be right, and not far off.
inf: more than a tenth of the answers are "no bound".
"""

PROCEDURE = """
## Whole runs

An interval that is right in 95 % of all comparisons is not yet a run that is right. A run tries one candidate after the
other, looks at each several times while references join, and stops when a bound happens to be low enough. So we count
runs: {runs} of each kind, stopping included (standard error {error:.1f} points at 95 %).

**The problem.** A rope is pulled once, and every rope has its own best pull; to be off costs quadratically. On a share
p of the ropes a pull beyond a limit tears the rope, and earns nothing of {top:.0f}. The limits lie just below the mean
of the best pulls. A candidate on n_c = {n_c} ropes does not know of them, and half of all candidates tear every weak
rope; the optimum stays below. Candidates and references are exact on their own ropes, and the gap of every candidate is
known in closed form. n_G = {n_G}, n_r = {n_r}, at most {candidates} candidates with {looks} looks each, and a threshold
β that candidates fall on both sides of.

*default* is what users get: the split interval, rejection by reference, and α spent over candidates and looks. *paper*
is the procedure as published: the basic bootstrap over single gaps, rejection gap by gap, one look, and all of α for
every candidate.

*covers*: in how many runs no candidate's bound was below its true gap, whether it was certified or not. *false*: runs
that end with a certificate whose bound is below the true gap. *beyond β*: runs that certify a policy that loses more
than β. *wrongly*: runs in which a lower bound was above the true gap of its candidate. The last columns are the median
and the 90 % quantile of bound / truth of the policies that were returned, which is large where a policy loses almost
nothing. All but these in % of the runs.
"""

FOUND = """
The default procedure is right in at least {covers:.1f} % of the runs, and at most {false:.1f} % end with a false
certificate. Likely reasons why it is more than 95 %, which the count does not tell apart: exact references look better
on their own domains than they are, which counts against the policy; what unseen domains say holds at any size; and α is
also spent on candidates and looks that a run does not reach. So it does not show what spending α is worth. The paper's
procedure is right in {papers:.1f} % of the runs in its worst line, and up to {papers_false:.1f} % end with a false
certificate: the count does find a procedure that misses rare failures.
"""

END = """
## What we choose

**`{chosen}`**, the split interval. Over all lines of this page its lowest coverage of the mean is {chosen_worst:.1f} %,
and with 20 references of 50 domains nine bounds in ten are at most {reach:.2f} times the truth. Three things make it
so. The policy's own losses below the level are bounded by betting, which holds at any size, with a fifth of α. The
rest is Student's t over references, with four fifths of α and two corrections, without which it covers too little
where ten references meet a long tail, as on `lq` and the catapult. One more reference is imagined above the best, as
far as the next record of an exponential law would be. And if reference means happen to agree better than their domains
do, the spread over domains counts.

It needs single returns, the range that they cannot leave, and unseen domains. Where only gaps are known, the best is
`{gaps_alone}`, the bootstrap-t over whole references. Without crashes its lowest coverage is {alone_worst:.1f} %; the
next best, `{second}`, falls to {second_worst:.1f} %, Student's t on reference means to {t_worst:.1f} %, and the
paper's `{papers}` to {papers_worst:.1f} %. With rare crashes these are {alone_crash:.1f}, {second_crash:.1f},
{t_crash:.1f} and {papers_crash:.1f} %. Two things go wrong with the paper's even without crashes. Gaps are skewed, and
a basic interval mirrors the long tail to the wrong side: with n_r = 1, where nothing else is wrong, it covers
{skewed_low:.1f} to {skewed_high:.1f} %. And the gaps of one reference share one policy: drawn one by one they look like
more evidence than they are, and more domains per reference make it worse, not better.

The price is width: at the median the split bound is {wider:.0f} % above the paper's on average over the lines without
crashes. The bootstrap-t may also answer "no bound" (in {unbounded:.1f} % of the comparisons in the worst line) when
more than a share α of the resamples consist of equal values, as with few references or with gaps that are mostly zero.

The paper's interval stays available (`method = "basic_pooled"`; `Spota.paper` uses it); a certificate lists them all.
"""


def coverage_page(rows: Sequence[Coverage], crashes: Sequence[Coverage], runs: Sequence[Counts], seed: int) -> str:
    """The page as Markdown."""
    sets = rows[0].sets
    parts = [HEAD.format(seed=seed, sets=sets, error=100 * (0.95 * 0.05 / sets) ** 0.5)]
    parts += [MEAN, _table(rows, lambda r: r.covers_mean, ".1f")]
    parts += [GAP, _table(rows, lambda r: r.covers_gap, ".1f")]
    parts += [SIZES, _sizes(rows), WIDTH, _table(rows, lambda r: r.width, ".2f")]
    parts += [CRASHES.format(pilot=PILOT, unseen=f"{UNSEEN:,}"), _crashes(crashes)]
    parts += [_procedure(runs[0]), _runs(runs), _found(runs), _end(rows, crashes)]
    return "\n".join(part.strip("\n") + "\n" for part in parts)


def _table(rows: Sequence[Coverage], values: Callable[[Coverage], dict[str, float]], form: str) -> str:
    head = ["problem", "n_G", "n_r", "corr.", *(_short(name) for name in COLUMNS)]
    lines = [[*_case(r), *(_cell(values(r).get(name), form, name) for name in COLUMNS)] for r in rows]
    return _markdown(head, lines)


def _crashes(rows: Sequence[Coverage]) -> str:
    names = [_short(name) for name in SHOWN]
    head = ["p", "n_G", "n_r", "corr.", *(f"{name} covers" for name in names), *(f"{name} / truth" for name in names)]
    lines = [
        [f"{100 * r.case.crash:g} %", *_case(r)[1:]]
        + [_cell(r.covers_gap[name], ".1f", name) for name in SHOWN]
        + [_cell(r.high[name], ".2f", name) for name in SHOWN]
        for r in rows
    ]
    return _markdown(head, lines)


def _sizes(rows: Sequence[Coverage]) -> str:
    known = [r for r in rows if r.case.problem != "exponential"]
    head = ["problem", "n_G", "n_r", "corr.", "true gap", "bias", "negative before rejection", "mean gap after it"]
    return _markdown(
        head, [[*_case(r), f"{r.gap:.3f}", f"{r.bias:.3f}", f"{r.negative:.0f} %", f"{r.mean:.3f}"] for r in known]
    )


def _procedure(counts: Counts) -> str:
    s, error = counts.kind.settings, 100 * (0.95 * 0.05 / counts.runs) ** 0.5
    sizes = {"n_c": s.n_c, "n_G": s.n_G, "n_r": s.n_r, "candidates": s.max_iterations, "looks": s.looks}
    return PROCEDURE.format(runs=counts.runs, error=error, top=TOP, **sizes)


def _runs(runs: Sequence[Counts]) -> str:
    shares = ("covers", "certified", "false", "beyond β", "refuted", "wrongly")
    head = ["procedure", "p", "β", *shares, "median / truth", "90 % / truth"]
    return _markdown(head, [_run_line(counts) for counts in runs])


def _run_line(c: Counts) -> list[str]:
    shares = c.covers, c.certified, c.false_certificates, c.beyond, c.refuted, c.refuted_wrongly
    figures = [*(f"{share:.1f}" for share in shares), f"{c.median_ratio:.2f}", f"{c.high_ratio:.2f}"]
    return [c.kind.procedure, f"{100 * c.kind.weak:g} %", f"{c.threshold:g}", *figures]


def _found(runs: Sequence[Counts]) -> str:
    ours, papers = ([c for c in runs if c.kind.procedure == name] for name in ("default", "paper"))
    return FOUND.format(
        covers=min(c.covers for c in ours), false=max(c.false_certificates for c in ours),
        papers=min(c.covers for c in papers), papers_false=max(c.false_certificates for c in papers),
    )  # fmt: skip


def _end(rows: Sequence[Coverage], crashes: Sequence[Coverage]) -> str:
    worst, crash = ({name: min(r.covers_mean[name] for r in some) for name in COLUMNS[:-2]} for some in (rows, crashes))
    second = max((name for name in METHODS if name not in (CHOSEN, GAPS_ALONE)), key=lambda name: worst[name])
    skewed = [r.covers_mean[PAPERS] for r in rows if r.case.n_r == 1]
    wider = [r.width[CHOSEN] / r.width[PAPERS] for r in rows]
    return END.format(
        chosen=CHOSEN, gaps_alone=GAPS_ALONE, papers=PAPERS, second=second,
        chosen_worst=min(worst[CHOSEN], crash[CHOSEN]), reach=max(r.high[CHOSEN] for r in _largest(crashes)),
        alone_worst=worst[GAPS_ALONE], second_worst=worst[second], t_worst=worst[STUDENT], papers_worst=worst[PAPERS],
        alone_crash=crash[GAPS_ALONE], second_crash=crash[second], t_crash=crash[STUDENT], papers_crash=crash[PAPERS],
        skewed_low=min(skewed), skewed_high=max(skewed),
        wider=100 * (sum(wider) / len(wider) - 1), unbounded=max(r.unbounded[GAPS_ALONE] for r in rows),
    )  # fmt: skip


def _largest(rows: Sequence[Coverage]) -> list[Coverage]:
    most = max(r.case.n_G * r.case.n_r for r in rows)
    return [r for r in rows if r.case.n_G * r.case.n_r == most]


def _case(row: Coverage) -> list[str]:
    c = row.case
    return [c.problem, str(c.n_G), str(c.n_r), "" if c.correlation is None else f"{c.correlation:g}"]


def _cell(value: float | None, form: str, name: str) -> str:
    text = "" if value is None else format(value, form)
    return f"**{text}**" if name == CHOSEN else text


def _short(name: str) -> str:
    if name == "split":
        return name
    interval, _, unit = name.rpartition("_")
    return f"{interval.replace('_', ' ')} *{unit[0]}*" if interval else name.upper()


def _markdown(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rule = ["---", *("---:" for _ in head[1:])]
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, rule, *lines))
